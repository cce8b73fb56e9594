"""The bound of a node N, the set that attains it, and by how much the bound rises if a label changes sides.

With a minorant m, m(S) <= L(S) - mu p(S) for S in N:

    bound      = a lower bound of m(S) over S in N
    change(y) <= min of m(S) - bound over those S in N that have y on the other side than `chosen`

Besides label values and category weights, a minorant may have a threshold on entries, a table of a count, or pairs of
free labels; they are minimised together with these. `chosen`, the set that attains the bound, has the labels that are
in and none that are out. It may miss a category that N must touch, or a decision, but is still worth trying. If bound +
change(y) is above the incumbent, y is fixed.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.search.counts import by_count
from udcp_solvers.search.forest_minimum import by_threshold, changes, forest_minimum, touching
from udcp_solvers.search.layout import FREE, IN, Floats, Ints
from udcp_solvers.search.minorant import minorant
from udcp_solvers.search.pairs import by_pairs, grow
from udcp_solvers.search.workspace import Node, Workspace, open_labels


@jit
def bounded(ints: Ints, floats: Floats, node: Node, T: Workspace) -> float:
    """The bound of a node at its lines; fills the set that attains it (`chosen`) and by how much it rises if a label
    changes sides (`change`)."""
    constant, left = minorant(ints, floats, node, T), T.left_over
    left.max_change = 0.0
    for y in range(len(T.labels)):
        T.labels[y].change = 0.0
    if left.count_factor != 0.0:
        return constant + by_count(ints, floats, node, T)
    total = forest_minimum(ints, node, np.inf, T)
    if left.threshold < 0 and left.pairs >= 0:
        # Category weights and pairs cost at least 0, so either may be left out, and the better bound counts.
        forced = 0.0
        for y in open_labels(T):
            forced += T.labels[y].value if node.x[y] == IN else 0.0
        total = max(total, forced + by_pairs(ints, floats, node, T))
        grow(ints, floats, node, T)
        return constant + total
    t, max_change = np.inf, np.inf
    if left.threshold < 0:
        more = touching(ints, node, T)
        if more > 0.0:
            return constant + total + more
    else:
        total, t, second = by_threshold(ints, floats, total, node, T)
        forest_minimum(ints, node, t, T)
        max_change = second - total
    left.max_change = max_change
    changes(ints, node, t, max_change, T)
    return constant + total


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
