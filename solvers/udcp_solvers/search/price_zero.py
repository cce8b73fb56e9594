"""A node at price 0, where the best set is, of the sets of least cost, the heaviest, then the smallest, then the first.

All sets of least cost are ties, and there may be very many. Two rules leave few of them:

    a label on which nothing that matters in the node depends    is in if it has mass, else out: the cost is the same
    the incumbent costs as little as any set can                 a node whose labels together weigh less is dropped

What matters are the quantities and hard atoms on which the loss still depends, and those that decide what is in the
node: bounded quantities, operands of decided comparisons. Whether a label adds to one is read from the numbers of the
model, not from sums, so that no rounding is in it.

Sets are compared by their costs to 106 bits, and by their masses in full. Numbers of the model are sums of numbers of
the spec, rounded to floats; the parts `..._LOW` hold what they lack. Costs closer than 2^-96 of the span are equal.
Comparisons have a tolerance of their own, so that floats decide them.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import EQUAL as EQUAL_DOUBLES
from udcp_solvers.numeric.double_double import Double, minus, plus, times
from udcp_solvers.numeric.exact_sum import add
from udcp_solvers.numeric.filling import fill
from udcp_solvers.search.intervals import hard, intervals, touch
from udcp_solvers.search.layout import (
    ADD,
    AT_LEAST,
    CATEGORY_LABELS,
    CATEGORY_STARTS,
    CODE,
    CONSTANT,
    CONSTANTS,
    CONSTANTS_LOW,
    COSTS,
    COSTS_LOW,
    EQUAL,
    FARTHEST,
    FREE,
    GATE,
    IF,
    IN,
    INDICATOR,
    LABEL_CATEGORIES,
    LABEL_STARTS,
    LARGER,
    NOT,
    NUMBERS,
    ONE,
    OUT,
    PAIR_ENTRIES,
    PAIRS,
    QUANTITY,
    QUANTITY_CATEGORIES,
    QUANTITY_STARTS,
    SCALE,
    TABLE,
    TABLES,
    TOUCHED,
    WEIGHTS,
    WEIGHTS_LOW,
    WHOLE,
    WORST,
    ZERO,
    Floats,
    Ints,
    Marks,
    numbers,
    numbers_of,
    operation,
    part,
)
from udcp_solvers.search.minorant import only_operand
from udcp_solvers.search.workspace import NEAR, Node, Workspace, open_labels, visit

# The bits of a limb of an exact sum.
_LIMB = 32
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


# Exact costs and masses ----------------------------------------------------------------------------------------------


@jit
def exact_cost(ints: Ints, floats: Floats, chosen: Marks, T: Workspace) -> Double:
    """L of a set, to 106 bits."""
    held = _quantities(ints, floats, chosen, T)
    code, last = part(ints, CODE), T.operations[-1]
    for i in range(len(T.operations)):
        kind, k, _, _ = operation(code, i)
        here = T.operations[i]
        if held == 0 and kind in (WORST, FARTHEST, PAIRS):
            here.exact, here.exact_low = 0.0, 0.0
        elif kind == PAIRS:
            here.exact, here.exact_low = _pairs(ints, floats, k, chosen, held, T)
        elif kind in (WORST, FARTHEST):
            here.exact, here.exact_low = hard(ints, floats, kind, k, chosen, IN, T.order[:held]), 0.0
        else:
            here.exact, here.exact_low = _value(ints, floats, i, T)
    return last.exact, last.exact_low


@jit
def _quantities(ints: Ints, floats: Floats, chosen: Marks, T: Workspace) -> int:
    """Compute every quantity on a set, and list its labels in `order`; returns how many there are."""
    K, held = len(chosen), 0
    label_starts, of_label = part(ints, LABEL_STARTS), part(ints, LABEL_CATEGORIES)
    starts, of = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES)
    constants, constants_low = numbers(ints, floats, CONSTANTS), numbers(ints, floats, CONSTANTS_LOW)
    costs, costs_low = numbers(ints, floats, COSTS), numbers(ints, floats, COSTS_LOW)
    weights, weights_low = numbers(ints, floats, WEIGHTS), numbers(ints, floats, WEIGHTS_LOW)
    for c in range(len(T.categories)):
        T.categories[c].touched = 0
    for y in range(K):
        if chosen[y] == IN:
            T.order[held] = y
            held += 1
            for e in range(label_starts[y], label_starts[y + 1]):
                T.categories[of_label[e]].touched = TOUCHED
    for j in range(len(constants)):
        high, low = constants[j], constants_low[j]
        for y in T.order[:held]:
            if costs[j * K + y] != 0.0 or costs_low[j * K + y] != 0.0:
                high, low = plus(high, low, costs[j * K + y])
                high, low = plus(high, low, costs_low[j * K + y])
        for e in range(starts[j], starts[j + 1]):
            if T.categories[of[e]].touched == TOUCHED:
                high, low = plus(high, low, weights[e])
                high, low = plus(high, low, weights_low[e])
        T.quantities[j].exact, T.quantities[j].exact_low = high, low
    return held


@jit
def _pairs(ints: Ints, floats: Floats, k: int, chosen: Marks, held: int, T: Workspace) -> Double:
    """The sum over pairs of labels."""
    K, high, low = len(chosen), 0.0, 0.0
    entries = numbers(ints, floats, PAIR_ENTRIES)
    for n in range(held):
        at = (k * K + T.order[n]) * K
        for m in range(n):
            high, low = plus(high, low, entries[at + T.order[m]])
    return high, low


@jit
def _value(ints: Ints, floats: Floats, i: int, T: Workspace) -> Double:
    """The value of an operation on a set, from those of its operands."""
    kind, a, b, c = operation(part(ints, CODE), i)
    number, slack = numbers_of(numbers(ints, floats, NUMBERS), i)
    if kind == CONSTANT:
        return number, slack
    if kind == QUANTITY:
        return T.quantities[a].exact, T.quantities[a].exact_low
    if kind == TABLE:
        return numbers(ints, floats, TABLES)[b + int(T.quantities[a].exact + 0.5)], 0.0
    first, first_low = T.operations[a].exact, T.operations[a].exact_low
    if kind == SCALE:
        return times(first, first_low, number, 0.0)
    if kind == AT_LEAST:
        return 1.0 if first >= number else 0.0, 0.0
    if kind == EQUAL:
        return 1.0 if abs(first - number) <= slack else 0.0, 0.0
    if kind == NOT:
        return 1.0 - first, 0.0
    second, second_low = T.operations[b].exact, T.operations[b].exact_low
    if kind == ADD:
        high, low = plus(first, first_low, second)
        return plus(high, low, second_low)
    if kind == GATE:
        return first * second, first * second_low
    if kind == IF:
        third = T.operations[c]
        return (second, second_low) if first > 0.5 else (third.exact, third.exact_low)
    more, _ = minus(first, first_low, second, second_low)
    takes_first = more >= 0.0 if kind == LARGER else more <= 0.0  # SMALLER is left
    return (first, first_low) if takes_first else (second, second_low)


@jit
def compare_costs(high: float, low: float, other: float, other_low: float, span: float) -> int:
    """-1, 0 or 1: the sign of a cost minus another."""
    more, _ = minus(high, low, other, other_low)
    if abs(more) <= EQUAL_DOUBLES * (span + abs(high) + abs(other)):
        return 0
    return 1 if more > 0.0 else -1


@jit
def compare_masses(marks: Marks, least: int, found: Marks, T: Workspace) -> int:
    """-1, 0 or 1: the sign of the mass of the labels whose mark is at least `least`, minus that of the set found."""
    more, total = 0.0, 0.0
    for y in range(len(found)):
        if (marks[y] >= least) != (found[y] == IN):
            p = T.labels[y].p
            more += p if marks[y] >= least else -p
            total += p
    if abs(more) > NEAR * total:
        return 1 if more > 0.0 else -1
    return _exact_sign(marks, least, found, T)


@jit
def _exact_sign(marks: Marks, least: int, found: Marks, T: Workspace) -> int:
    """`compare_masses` without rounding."""
    fill(T.limbs, 0)
    for y in range(len(found)):
        p = T.labels[y].p
        if p > 0.0 and (marks[y] >= least) != (found[y] == IN):
            add(T.limbs, p, 1 if marks[y] >= least else -1)
    carry, there = 0, 0
    for i in range(len(T.limbs)):
        value = T.limbs[i] + carry
        carry = value >> _LIMB
        there |= value - (carry << _LIMB)
    if carry < 0:
        return -1
    return 1 if carry > 0 or there != 0 else 0
