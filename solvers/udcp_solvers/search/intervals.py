"""The interval of every quantity and operation on the sets of a branch, and the cost of one set.

Atoms that never fall as labels come in lie between their values on the labels that are in and on those that may be.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill, put
from udcp_solvers.search.layout import (
    ABOVE,
    ADD,
    AT_LEAST,
    CODE,
    COLUMN_STARTS,
    COLUMNS,
    CONSTANT,
    CONSTANTS,
    COSTS,
    EQUAL,
    FAR,
    FARTHEST,
    FIRST,
    FREE,
    GATE,
    IF,
    IN,
    LABEL_CATEGORIES,
    LABEL_STARTS,
    LARGER,
    LEAST,
    MAY,
    NEAR_PAIRS,
    NOT,
    NUMBERS,
    ONE,
    OUT,
    PREFIX_STARTS,
    QUANTITY,
    QUANTITY_CATEGORIES,
    QUANTITY_STARTS,
    RISING,
    SCALE,
    SECOND,
    SMALLER,
    TABLE,
    TABLES,
    TOUCHED,
    WEIGHTS,
    WHOLE,
    WORST,
    ZERO,
    Floats,
    Ints,
    Marks,
    numbers,
    part,
)

# With at most so many free labels the upper ends of columns and pairs are worth their time.
_FEW = 12


@jit
def touch(ints: Ints, x: Marks, said: Marks, labels: Ints, touched: Ints, state: Ints) -> bool:
    """The state of each category, from what is touched anyway; False if one that is said to be touched cannot be."""
    starts, of = part(ints, LABEL_STARTS), part(ints, LABEL_CATEGORIES)
    rising, above = part(ints, RISING), part(ints, ABOVE)
    C = len(above)
    for c in range(C):
        state[c] = touched[c]
    for y in labels:
        if x[y] != OUT:
            bit = TOUCHED if x[y] == IN else MAY
            for e in range(starts[y], starts[y + 1]):
                state[of[e]] |= bit
    for c in range(C):
        if said[c] == 1:
            if state[c] == 0:
                return False
            state[c] |= TOUCHED
    for c in rising:
        if state[c] & TOUCHED and above[c] >= 0:
            state[above[c]] |= TOUCHED
    return True


@jit
def intervals(
    ints: Ints,
    floats: Floats,
    base: Floats,
    x: Marks,
    decided: Marks,
    bounds: Floats,
    labels: Ints,
    everyone: Ints,
    state: Ints,
    q: Floats,
    ends: Floats,
) -> bool:
    """The ends of every quantity, q (2, Q), and operation, ends (2, N); False where the branch has no set. `base` (Q,)
    is what quantities are without the labels, `everyone` the labels and those behind it."""
    K = len(x)
    code, number = part(ints, CODE), numbers(ints, floats, NUMBERS)
    tables = numbers(ints, floats, TABLES)
    if not _quantities(ints, floats, base, x, bounds, labels, state, q):
        return False
    free, held = 0, 0
    for y in everyone:
        free += x[y] == FREE
        held += x[y] == IN
    for i in range(len(code) // 4):
        kind, a, b, c = code[4 * i], code[4 * i + 1], code[4 * i + 2], code[4 * i + 3]
        f, g = number[2 * i], number[2 * i + 1]
        low, high = 0.0, 0.0
        if kind == CONSTANT:
            low, high = f, f
        elif kind == QUANTITY:
            low, high = q[0, a], q[1, a]
        elif kind == TABLE:
            first, last = math.ceil(q[0, a] - WHOLE), math.floor(q[1, a] + WHOLE)
            if first > last:
                return False
            low, high = np.inf, -np.inf
            for k in range(b + first, b + last + 1):
                low, high = min(low, tables[k]), max(high, tables[k])
        elif kind == ADD:
            low, high = ends[0, a] + ends[0, b], ends[1, a] + ends[1, b]
        elif kind == SCALE:
            low, high = f * ends[0, a], f * ends[1, a]
            if f < 0.0:
                low, high = high, low
        elif kind == GATE:
            if ends[0, a] > 0.5:
                low, high = ends[0, b], ends[1, b]
            elif ends[1, a] > 0.5:
                low, high = min(0.0, ends[0, b]), max(0.0, ends[1, b])
        elif kind == LARGER:
            low, high = max(ends[0, a], ends[0, b]), max(ends[1, a], ends[1, b])
        elif kind == SMALLER:
            low, high = min(ends[0, a], ends[0, b]), min(ends[1, a], ends[1, b])
            if decided[i] == FIRST or decided[i] == SECOND:
                chosen = a if decided[i] == FIRST else b
                low, high = ends[0, chosen], ends[1, chosen]
        elif kind == AT_LEAST:
            low, high = 1.0 if ends[0, a] >= f else 0.0, 1.0 if ends[1, a] >= f else 0.0
        elif kind == EQUAL:
            low = 1.0 if ends[0, a] >= f - g and ends[1, a] <= f + g else 0.0
            high = 1.0 if ends[1, a] >= f - g and ends[0, a] <= f + g else 0.0
        elif kind == NOT:
            low, high = 1.0 - ends[1, a], 1.0 - ends[0, a]
        elif kind == IF:
            low, high = min(ends[0, b], ends[0, c]), max(ends[1, b], ends[1, c])
            if ends[0, a] > 0.5 or ends[1, a] < 0.5:
                chosen = b if ends[0, a] > 0.5 else c
                low, high = ends[0, chosen], ends[1, chosen]
        else:
            low, high = min(g, 0.0), f
            if held > 0:
                low = hard(ints, floats, kind, a, x, IN, everyone)
            elif free == 0:
                low, high = 0.0, 0.0
            if 0 < free <= _FEW:
                # The empty set has the value 0.
                high = max(hard(ints, floats, kind, a, x, FREE, everyone), low if held > 0 else 0.0)
            elif free == 0:
                high = low
        if decided[i] == ZERO or decided[i] == ONE:
            fixed = 0.0 if decided[i] == ZERO else 1.0
            if low > fixed or high < fixed:
                return False
            low, high = fixed, fixed
        ends[0, i], ends[1, i] = low, high
    return K > 0


@jit
def _quantities(
    ints: Ints, floats: Floats, base: Floats, x: Marks, bounds: Floats, labels: Ints, state: Ints, q: Floats
) -> bool:
    """The ends of every quantity; False where one has no value within its bounds."""
    K = len(x)
    costs = numbers(ints, floats, COSTS)
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    Q = len(base)
    for j in range(Q):
        low, high, size = base[j], base[j], abs(base[j])
        for y in labels:
            v = costs[j * K + y]
            if x[y] == OUT:
                continue
            size += abs(v)
            if x[y] == IN or v < 0.0:
                low += v
            if x[y] == IN or v > 0.0:
                high += v
        for e in range(starts[j], starts[j + 1]):
            s, w = state[of[e]], weights[e]
            size += abs(w)
            if s & TOUCHED or (s & MAY and w < 0.0):
                low += w
            if s & TOUCHED or (s & MAY and w > 0.0):
                high += w
        slack = 1e-12 * size
        if bounds[j] > high + slack or bounds[Q + j] < low - slack:
            return False
        q[0, j], q[1, j] = max(low, bounds[j]), min(high, bounds[Q + j])
    return True


@jit
def hard(ints: Ints, floats: Floats, kind: int, k: int, x: Marks, least: int, labels: Ints) -> float:
    """The value of a hard atom on the labels whose mark is at least `least`; there is one."""
    K = len(x)
    if kind == WORST:
        starts, columns, prefix = part(ints, COLUMN_STARTS), numbers(ints, floats, COLUMNS), part(ints, PREFIX_STARTS)
        held = 0
        for y in labels:
            held += x[y] >= least
        value = np.inf
        for a in range(starts[k], starts[k + 1]):
            if prefix[a + 1] - prefix[a] < held:
                continue
            most = -np.inf
            for y in labels:
                if x[y] >= least:
                    most = max(most, columns[a * K + y])
                    if most >= value:
                        break
            value = min(value, most)
        return value
    entries = numbers(ints, floats, FAR if kind == FARTHEST else NEAR_PAIRS)
    value = 0.0
    for i in range(len(labels)):
        y = labels[i]
        if x[y] < least:
            continue
        at = (k * K + y) * K
        if kind == FARTHEST:
            for j in range(i + 1):
                if x[labels[j]] >= least:
                    value = max(value, entries[at + labels[j]])
        else:
            for j in range(i):
                if x[labels[j]] >= least:
                    value += entries[at + labels[j]]
    return value


@jit
def cost_of(ints: Ints, floats: Floats, chosen: Marks, labels: Ints, state: Ints, q: Floats, value: Floats) -> float:
    """L of the chosen labels; the values of quantities and operations on the way."""
    fill(state, 0)
    put(q, numbers(ints, floats, CONSTANTS))
    return cost_beside(ints, floats, chosen, labels, labels, state, q, value)


@jit
def take_free(
    ints: Ints,
    floats: Floats,
    p: Floats,
    fixed: Marks,
    slack: float,
    mu: float,
    found: Marks,
    margin: Floats,
    labels: Ints,
    state: Ints,
    q: Floats,
    value: Floats,
) -> float:
    """L of the set found, once it has the labels that it may have for nothing.

    A best set leaves out no label with mass that costs nothing beside it; but where mu p(y) is below the rounding of
    costs, the search does not see what such a label is worth.
    """
    least = numbers(ints, floats, LEAST)
    cost = cost_of(ints, floats, found, labels, state, q, value)
    for y in range(len(p)):
        if found[y] != IN and fixed[y] == FREE and p[y] > 0.0 and mu * p[y] <= slack and least[y] <= 0.0:
            before = found[y]
            found[y] = IN
            with_y = cost_of(ints, floats, found, labels, state, q, value)
            if with_y <= cost:
                cost, margin[y] = with_y, 0.0
            else:
                found[y] = before
    return cost


@jit
def cost_beside(
    ints: Ints,
    floats: Floats,
    chosen: Marks,
    labels: Ints,
    everyone: Ints,
    state: Ints,
    q: Floats,
    value: Floats,
) -> float:
    """L of the chosen ones of everyone, by what others than the labels touch and make of the quantities, to which the
    labels are added."""
    K = len(chosen)
    label_starts, categories = part(ints, LABEL_STARTS), part(ints, LABEL_CATEGORIES)
    costs = numbers(ints, floats, COSTS)
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    code, number, tables = part(ints, CODE), numbers(ints, floats, NUMBERS), numbers(ints, floats, TABLES)
    held = 0
    for y in everyone:
        held += chosen[y] == IN
    for y in labels:
        if chosen[y] == IN:
            for e in range(label_starts[y], label_starts[y + 1]):
                state[categories[e]] = TOUCHED
    for j in range(len(q)):
        v = q[j]
        for y in labels:
            if chosen[y] == IN:
                v += costs[j * K + y]
        for e in range(starts[j], starts[j + 1]):
            if state[of[e]] == TOUCHED:
                v += weights[e]
        q[j] = v
    N = len(code) // 4
    for i in range(N):
        kind, a, b, c = code[4 * i], code[4 * i + 1], code[4 * i + 2], code[4 * i + 3]
        f, g = number[2 * i], number[2 * i + 1]
        v = 0.0
        if kind == CONSTANT:
            v = f
        elif kind == QUANTITY:
            v = q[a]
        elif kind == TABLE:
            v = tables[b + int(q[a] + 0.5)]
        elif kind == ADD:
            v = value[a] + value[b]
        elif kind == SCALE:
            v = f * value[a]
        elif kind == GATE:
            v = value[a] * value[b]
        elif kind == LARGER:
            v = max(value[a], value[b])
        elif kind == SMALLER:
            v = min(value[a], value[b])
        elif kind == AT_LEAST:
            v = 1.0 if value[a] >= f else 0.0
        elif kind == EQUAL:
            v = 1.0 if abs(value[a] - f) <= g else 0.0
        elif kind == NOT:
            v = 1.0 - value[a]
        elif kind == IF:
            v = value[b] if value[a] > 0.5 else value[c]
        elif held > 0:
            v = hard(ints, floats, kind, a, chosen, IN, everyone)
        value[i] = v
    return float(value[N - 1])
