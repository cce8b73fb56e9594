"""A node at price 0, where the best set is, of the sets of least cost, the heaviest, then the smallest, then the first.

All sets of least cost are ties, and there may be very many. Two rules leave few of them:

    a label on which nothing that matters in the node depends    is in if it has mass, else out: the cost is the same
    the incumbent costs as little as any set can                 a node whose labels together weigh less is dropped

What matters are the quantities and hard atoms on which the loss still depends, and those that decide what is in the
node: bounded quantities, operands of decided comparisons. Whether a label adds to one is read from the numbers of the
model, not from sums, so that no rounding is in it.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.search.exact import compare_masses
from udcp_solvers.search.intervals import intervals, touch
from udcp_solvers.search.layout import (
    AT_LEAST,
    CATEGORY_LABELS,
    CATEGORY_STARTS,
    CODE,
    CONSTANT,
    COSTS,
    COSTS_LOW,
    EQUAL,
    FARTHEST,
    FREE,
    GATE,
    IN,
    INDICATOR,
    LABEL_CATEGORIES,
    LABEL_STARTS,
    NOT,
    ONE,
    OUT,
    PAIRS,
    QUANTITY,
    QUANTITY_CATEGORIES,
    QUANTITY_STARTS,
    TABLE,
    TOUCHED,
    WEIGHTS,
    WHOLE,
    WORST,
    ZERO,
    Floats,
    Ints,
    Marks,
    numbers,
    operation,
    part,
)
from udcp_solvers.search.minorant import only_operand
from udcp_solvers.search.workspace import Node, Workspace, open_labels, visit

# Whether something matters: not at all; for the cost; for a bound of the node.
NOTHING, COST, BOUND = range(3)


@jit
def enter_at_zero(ints: Ints, floats: Floats, node: Node, found: Marks, T: Workspace) -> bool:
    """Compute the state of a node, and put in or leave out the labels that either rule decides; False if it has no set
    that may come before the incumbent."""
    search, more = T.search, True
    while more:
        if not touch(ints, node, T) or not intervals(ints, floats, node, T):
            return False
        more = _leave_out_of_bounds(ints, floats, node, T)
    if not _mark_what_matters(ints, floats, node, T):
        _decide_free_labels(ints, floats, node, T)
    if search.least_known and compare_masses(node.x, FREE, found, T) < 0:
        search.margins_from_closed = False
        return False
    return True


@jit
def _mark_what_matters(ints: Ints, floats: Floats, node: Node, T: Workspace) -> bool:
    """Mark the quantities and categories that matter; returns whether a hard atom does."""
    code, starts, of = part(ints, CODE), part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES)
    for j in range(len(T.quantities)):
        bounded = node.low[j] > -np.inf or node.high[j] < np.inf
        T.quantities[j].matters = BOUND if bounded else NOTHING
    for i in range(len(T.operations)):
        T.operations[i].factor = 0.0  # 1 once it is reached
    hard, top = False, visit(len(T.operations) - 1, 1.0, 0, T.pending)
    for i in range(len(T.operations)):
        if node.decided[i] == ZERO or node.decided[i] == ONE:
            top = visit(operation(code, i)[1], 1.0, top, T.pending)
    while top > 0:
        top -= 1
        i = T.pending[top].operation
        kind, a, b, c = operation(code, i)
        if T.operations[i].factor != 0.0 or _is_known(code, i, T):
            continue
        T.operations[i].factor = 1.0
        through = only_operand(code, i, node.decided, T.operations)
        if kind in (QUANTITY, TABLE):
            T.quantities[a].matters = max(T.quantities[a].matters, COST)
        elif kind in (WORST, FARTHEST, PAIRS):
            hard = True
        elif through >= 0:
            top = visit(through, 1.0, top, T.pending)
        elif kind != CONSTANT:
            top = visit(a, 1.0, top, T.pending)
            if b >= 0 and kind not in (AT_LEAST, EQUAL, NOT):
                top = visit(b, 1.0, top, T.pending)
            if c >= 0:
                top = visit(c, 1.0, top, T.pending)
    for c in range(len(T.categories)):
        T.categories[c].matters = NOTHING
    for j in range(len(T.quantities)):
        if T.quantities[j].matters != NOTHING:
            for e in range(starts[j], starts[j + 1]):
                T.categories[of[e]].matters = COST
    return hard


@jit
def _is_known(code: Ints, i: int, T: Workspace) -> bool:
    """Whether an operation has one value in the node, whatever the rounding of sums."""
    kind, a, _, third = operation(code, i)
    here = T.operations[i]
    if kind == GATE:
        return bool(T.operations[a].high < 0.5)
    exact = kind in (CONSTANT, TABLE, AT_LEAST, EQUAL, NOT, WORST, FARTHEST) or third == INDICATOR
    return bool(exact and here.low == here.high)


@jit
def _decide_free_labels(ints: Ints, floats: Floats, node: Node, T: Workspace) -> None:
    """Put in the free labels with mass on which nothing that matters depends; leave those without mass out."""
    K = len(node.x)
    costs, lows = numbers(ints, floats, COSTS), numbers(ints, floats, COSTS_LOW)
    starts, of = part(ints, LABEL_STARTS), part(ints, LABEL_CATEGORIES)
    for y in open_labels(T):
        if node.x[y] != FREE:
            continue
        adds, needed = 0, 0
        for j in range(len(T.quantities)):
            if T.quantities[j].matters != NOTHING:
                adds += costs[j * K + y] != 0.0 or lows[j * K + y] != 0.0
        for e in range(starts[y], starts[y + 1]):
            category = T.categories[of[e]]
            adds += category.matters != NOTHING and category.state & TOUCHED == 0
            needed += node.must_touch[of[e]] == 1
        has_mass = T.labels[y].p > 0.0
        if adds == 0 and (has_mass or needed == 0):
            node.x[y] = IN if has_mass else OUT
            T.search.margins_from_closed = False


@jit
def _leave_out_of_bounds(ints: Ints, floats: Floats, node: Node, T: Workspace) -> bool:
    """Leave out the free labels that would take a bounded quantity above its bound; returns whether there is one."""
    K, costs, left = len(node.x), numbers(ints, floats, COSTS), 0
    member_starts, members = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    for j in range(len(T.quantities)):
        room = node.high[j] + WHOLE - T.quantities[j].low
        if node.high[j] == np.inf or T.quantities[j].low == node.low[j]:
            continue
        for y in open_labels(T):
            if node.x[y] == FREE and costs[j * K + y] > room:
                node.x[y] = OUT
                left += 1
        for e in range(starts[j], starts[j + 1]):
            c = of[e]
            if weights[e] > room and T.categories[c].state & TOUCHED == 0:
                for m in range(member_starts[c], member_starts[c + 1]):
                    if node.x[members[m]] == FREE:
                        node.x[members[m]] = OUT
                        left += 1
    return left > 0
