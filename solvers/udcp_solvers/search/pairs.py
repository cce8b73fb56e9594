"""A lower bound of label values plus a sum over pairs, and a set that is good by both.

In a set S of k labels each is paired with k - 1 others, so that the sum over pairs is at least

    sum over y in S of half(y), half(y) = half of the sum of the k - 1 least entries of y.

So the k least of value(y) + half(y) bound the sets of k labels. A label with value(y) + 2 half(y) above 0 is best left
out of every set of k or more labels, so it no longer counts there, neither by itself nor beside others.
"""

from __future__ import annotations

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import order_by
from udcp_solvers.search.layout import (
    CODE,
    FREE,
    IN,
    NEIGHBOURS,
    PAIR_ENTRIES,
    Floats,
    Ints,
    numbers,
    operand_of,
    part,
)
from udcp_solvers.search.workspace import Node, Workspace, open_labels


@jit
def by_pairs(ints: Ints, floats: Floats, node: Node, T: Workspace) -> float:
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
def grow(ints: Ints, floats: Floats, node: Node, T: Workspace) -> None:
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
