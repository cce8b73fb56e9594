"""What is compared exactly at price 0: the costs of sets to 106 bits, and their masses in full.

Numbers of the model are sums of numbers of the spec, rounded to floats; the parts `..._LOW` hold what they lack. Costs
closer than 2^-96 of the span are equal. Comparisons have a tolerance of their own, so that floats decide them.
"""

from __future__ import annotations

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import EQUAL as EQUAL_DOUBLES
from udcp_solvers.numeric.double_double import Double, minus, plus, times
from udcp_solvers.numeric.exact_sum import add
from udcp_solvers.numeric.filling import fill
from udcp_solvers.search.intervals import hard
from udcp_solvers.search.layout import (
    ADD,
    AT_LEAST,
    CODE,
    CONSTANT,
    CONSTANTS,
    CONSTANTS_LOW,
    COSTS,
    COSTS_LOW,
    EQUAL,
    FARTHEST,
    GATE,
    IF,
    IN,
    LABEL_CATEGORIES,
    LABEL_STARTS,
    LARGER,
    NOT,
    NUMBERS,
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
    WORST,
    Floats,
    Ints,
    Marks,
    numbers,
    numbers_of,
    operation,
    part,
)
from udcp_solvers.search.workspace import NEAR, Workspace

# The bits of a limb of an exact sum.
_LIMB = 32


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
