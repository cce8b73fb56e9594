"""The bound of a node N, the set that attains it, and by how much the bound rises if a label changes sides.

With a minorant m, m(S) <= L(S) - mu p(S) for S in N:

    bound      = a lower bound of m(S) over S in N
    change(y) <= min of m(S) - bound over those S in N that have y on the other side than `chosen`

Besides label values and category weights, a minorant may have a threshold on entries, a table of a count, or pairs of
free labels; they are minimised together with these. `chosen`, the set that attains the bound, has the labels that are
in and none that are out. It may miss a category that N must touch, or a decision, but is still worth trying. If bound +
change(y) is above the incumbent, y is fixed.

Pairs. In a set S of k labels each is paired with k - 1 others, so that the sum over pairs is at least

    sum over y in S of half(y), half(y) = half of the sum of the k - 1 least entries of y.

So the k least of value(y) + half(y) bound the sets of k labels. A label with value(y) + 2 half(y) above 0 is best left
out of every set of k or more labels, so it no longer counts there, neither by itself nor beside others.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import order_by
from udcp_solvers.search.counts import by_count
from udcp_solvers.search.forest_minimum import by_threshold, changes, forest_minimum, touching
from udcp_solvers.search.layout import (
    CODE,
    FREE,
    IN,
    LEAST,
    NEIGHBOURS,
    PAIR_ENTRIES,
    Floats,
    Ints,
    numbers,
    operand_of,
    part,
)
from udcp_solvers.search.minorant import minorant
from udcp_solvers.search.workspace import Node, Workspace, open_labels


@jit
def bounded(ints: Ints, floats: Floats, node: Node, T: Workspace) -> float:
    """The bound of a node at its lines; fills the set that attains it (`chosen`) and by how much it rises if a label
    changes sides (`change`)."""
    constant, left = minorant(ints, floats, node, T), T.left_over
    left.max_change = 0.0
    for y in open_labels(T):
        T.labels[y].change = 0.0
    if left.count_factor != 0.0:
        return constant + by_count(ints, floats, node, T)
    total = forest_minimum(ints, node, np.inf, T)
    if left.threshold < 0 and left.pairs >= 0:
        # Category weights and pairs cost at least 0, so either may be left out, and the better bound counts.
        forced = 0.0
        for y in open_labels(T):
            forced += T.labels[y].value if node.x[y] == IN else 0.0
        total = max(total, forced + _by_pairs(ints, floats, node, T))
        _grow(ints, floats, node, T)
        return constant + total
    t, max_change = np.inf, np.inf
    if left.threshold < 0:
        more = touching(ints, node, T)
        if more > 0.0:
            return constant + total + more
    else:
        if T.search.at_zero:
            _note_rest(ints, total, node, T)
        total, t, second = by_threshold(ints, floats, total, node, T)
        forest_minimum(ints, node, t, T)
        max_change = second - total
    left.max_change = max_change
    changes(ints, node, t, max_change, T)
    if left.threshold >= 0 and T.search.at_zero:
        _raise_changes(total, node, T)
    return constant + total


@jit
def _note_rest(ints: Ints, rest: float, node: Node, T: Workspace) -> None:
    """Note the least value of sets in which a label changes sides, if nothing is paid for a threshold."""
    changes(ints, node, np.inf, np.inf, T)
    for y in open_labels(T):
        label = T.labels[y]
        label.rest, label.rest_in = rest + label.change, T.chosen[y] == IN


@jit
def _raise_changes(total: float, node: Node, T: Workspace) -> None:
    """Raise changes to what they are without a threshold, where that is more: at price 0, sets of one entry tie, and no
    threshold is better than the next."""
    T.left_over.max_change = np.inf
    for y in open_labels(T):
        label = T.labels[y]
        if node.x[y] == FREE and label.rest_in == (T.chosen[y] == IN):
            label.change = max(label.change, label.rest - total)


@jit
def _by_pairs(ints: Ints, floats: Floats, node: Node, T: Workspace) -> float:
    """A lower bound of the values of free labels plus f times the sum over pairs of them."""
    labels, order, count = T.labels, T.order, 0
    for y in range(len(labels)):
        labels[y].alive, labels[y].next = False, 0
    for y in open_labels(T):
        if node.x[y] == FREE and labels[y].value < 0.0:
            order[count] = y
            labels[y].half, labels[y].alive = 0.0, True
            count += 1
    bound, k = 0.0, 1
    while count >= k:
        for n in range(count):
            T.keys[order[n]] = labels[order[n]].value + labels[order[n]].half
        # From one number to the next the order hardly changes.
        order_by(T.keys, order[:count], T.spare)
        total, lowest = 0.0, 0.0
        for n in range(count):
            if n < k:
                total += T.keys[order[n]]
            lowest += min(T.keys[order[n]], 0.0)
        bound = min(bound, total)
        if lowest >= bound:  # with more labels each pays more: no number beyond this one is better
            break
        k += 1
        count = _pay_next(ints, floats, count, T)
    return bound


@jit
def _pay_next(ints: Ints, floats: Floats, count: int, T: Workspace) -> int:
    """Go on to sets of one label more: the first `count` labels in order each pay for their next neighbour; how many
    stay."""
    K, f, stay = len(T.labels), T.left_over.pairs_factor, 0
    at = operand_of(part(ints, CODE), T.left_over.pairs) * K * K
    entries = numbers(ints, floats, PAIR_ENTRIES)[at : at + K * K]
    neighbours = part(ints, NEIGHBOURS)[at : at + K * K]
    for n in range(count):
        y = T.order[n]
        label = T.labels[y]
        z = label.next
        while z < K and (not T.labels[neighbours[y * K + z]].alive or neighbours[y * K + z] == y):
            z += 1
        if z == K:
            label.alive = False
            continue
        label.half += 0.5 * f * entries[y * K + neighbours[y * K + z]]
        label.next = z + 1
        if label.value + 2.0 * label.half > 0.0:
            label.alive = False
        else:
            T.order[stay] = y
            stay += 1
    return stay


@jit
def _grow(ints: Ints, floats: Floats, node: Node, T: Workspace) -> None:
    """Choose the labels that are in, then, one by one, the free label that lowers the sum of values and pairs most."""
    K, f, more = len(node.x), T.left_over.pairs_factor, T.keys
    at = operand_of(part(ints, CODE), T.left_over.pairs) * K * K
    entries = numbers(ints, floats, PAIR_ENTRIES)[at : at + K * K]
    for y in open_labels(T):
        T.chosen[y] = IN if node.x[y] == IN else 0
        more[y] = T.labels[y].value
    while True:
        best, label = 0.0, -1
        for y in open_labels(T):
            if node.x[y] == FREE and T.chosen[y] != IN and more[y] < best:
                best, label = more[y], y
        if label < 0:
            return
        T.chosen[label] = IN
        for y in open_labels(T):
            more[y] += f * entries[label * K + y]


@jit
def note_root(value: float, T: Workspace) -> None:
    """Note lower bounds of the sets with and without each label, by the bound of the first node."""
    for y in open_labels(T):
        label = T.labels[y]
        if T.chosen[y] == IN:
            label.root_with, label.root_without = value, value + label.change
        else:
            label.root_without, label.root_with = value, value + label.change


@jit
def note_closed(bound: float, value: float, node: Node, T: Workspace) -> None:
    """Note that a node is closed: lower bounds of its sets with and without each label count for the whole search.

    `value` is the minorant's minimum that was just found, -inf if there is none.
    """
    known = value > -np.inf
    for y in open_labels(T):
        label, free = T.labels[y], node.x[y] == FREE
        other = max(bound, value + label.change) if free and known else bound if free else np.inf
        is_in = T.chosen[y] == IN if free else node.x[y] == IN
        with_y, without_y = (bound, other) if is_in else (other, bound)
        label.closed_with = min(label.closed_with, with_y)
        label.closed_without = min(label.closed_without, without_y)


@jit
def repeats(ints: Ints, floats: Floats, T: Workspace) -> bool:
    """Whether two open labels have the same mass, or one has none that a set may gain by.

    Labels worth less than the slack do not count: `take_free` decides them.
    """
    count = 0
    for y in open_labels(T):
        if T.labels[y].fixed == FREE and not 0.0 < T.labels[y].worth <= T.search.slack:
            T.order[count] = y
            count += 1
    return _masses_repeat(ints, floats, count, T)


@jit
def may_tie(ints: Ints, floats: Floats, node: Node, T: Workspace) -> bool:
    """Whether another set of a node may be as good as the one that attains its bound, because masses repeat.

    A set that differs in a label is worse by the label's change, at least. So the others that are as good differ only
    in labels whose change is within the slack.
    """
    if T.left_over.max_change <= 0.0:  # no changes were computed
        return True
    count = 0
    for y in open_labels(T):
        label = T.labels[y]
        if node.x[y] == FREE and label.change <= 2.0 * T.search.slack and not 0.0 < label.worth <= T.search.slack:
            T.order[count] = y
            count += 1
    return _masses_repeat(ints, floats, count, T)


@jit
def _masses_repeat(ints: Ints, floats: Floats, count: int, T: Workspace) -> bool:
    """Whether two of the first `count` labels in order have the same mass, or one has none and may lower the cost."""
    least, order, equal = numbers(ints, floats, LEAST), T.order, 0
    for n in range(count):
        T.keys[order[n]] = T.labels[order[n]].p
    order_by(T.keys, order[:count], T.spare)
    for n in range(count):
        y, p = order[n], T.keys[order[n]]
        equal += (p == 0.0 and least[y] < 0.0) or (n > 0 and p > 0.0 and p == T.keys[order[n - 1]])
    return equal > 0
