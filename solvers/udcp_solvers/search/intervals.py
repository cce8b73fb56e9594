"""The interval of every quantity and operation on the sets of a node, and the cost of one set.

    quantity    the sums of its negative and of its positive parts over the free labels, plus that of labels in
    operation   interval arithmetic on its operands; a table, its least and largest value over the counts in reach
    hard atom   its values on the labels that are in, and on those plus the free ones, since hard atoms are monotone

Computing the cost of a set also records what the set touches, and the value of every quantity and operation on it,
which branching needs: it looks for the operation whose value is farthest above the minorant.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
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
    IN,
    LABEL_CATEGORIES,
    LABEL_STARTS,
    LARGER,
    LEAST,
    MAY,
    NOT,
    NUMBERS,
    ONE,
    OUT,
    PAIR_ENTRIES,
    PAIRS,
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
    numbers_of,
    operation,
    part,
)
from udcp_solvers.search.workspace import NEAR, Node, Question, Workspace, candidate_labels, open_labels

# The most free labels for which the upper ends of hard atoms are worth their time.
_MAX_FREE_FOR_UPPER = 12


@jit
def touch(ints: Ints, node: Node, T: Workspace) -> bool:
    """Compute the state of each category in a node; False if one that must be touched cannot be."""
    starts, of = part(ints, LABEL_STARTS), part(ints, LABEL_CATEGORIES)
    rising, above = part(ints, RISING), part(ints, ABOVE)
    categories, C = T.categories, len(above)
    for c in range(C):
        categories[c].state = categories[c].settled
    for y in open_labels(T):
        if node.x[y] != OUT:
            bit = TOUCHED if node.x[y] == IN else MAY
            for e in range(starts[y], starts[y + 1]):
                categories[of[e]].state |= bit
    for c in range(C):
        if node.must_touch[c] == 1:
            if categories[c].state == 0:
                return False
            categories[c].state |= TOUCHED
    for c in rising:
        if categories[c].state & TOUCHED and above[c] >= 0:
            categories[above[c]].state |= TOUCHED
    return True


@jit
def intervals(ints: Ints, floats: Floats, node: Node, T: Workspace) -> bool:
    """Compute the interval of every quantity and operation; False if the node has no set."""
    code = part(ints, CODE)
    if not _quantities(ints, floats, node, T):
        return False
    free, held = 0, 0
    for y in candidate_labels(T):
        free += node.x[y] == FREE
        held += node.x[y] == IN
    for i in range(len(T.operations)):
        kind, a, b, _ = operation(code, i)
        if kind in (WORST, FARTHEST, PAIRS):
            low, high = _of_hard_atom(ints, floats, i, free, held, node, T)
        elif kind == TABLE:
            low, high = _of_table(numbers(ints, floats, TABLES), b, T.quantities[a].low, T.quantities[a].high)
            if low > high:
                return False
        else:
            low, high = _of_operands(ints, floats, i, node.decided[i], T)
        if node.decided[i] == ZERO or node.decided[i] == ONE:
            fixed = 0.0 if node.decided[i] == ZERO else 1.0
            if low > fixed or high < fixed:
                return False
            low, high = fixed, fixed
        T.operations[i].low, T.operations[i].high = low, high
    return True


@jit
def _of_operands(ints: Ints, floats: Floats, i: int, decided: int, T: Workspace) -> tuple[float, float]:
    """The ends of an operation, from those of its operands."""
    kind, a, b, c = operation(part(ints, CODE), i)
    number, slack = numbers_of(numbers(ints, floats, NUMBERS), i)
    if kind == CONSTANT:
        return number, number
    if kind == QUANTITY:
        return T.quantities[a].low, T.quantities[a].high
    first = T.operations[a]
    if kind == SCALE:
        return (number * first.low, number * first.high) if number >= 0.0 else (number * first.high, number * first.low)
    if kind == AT_LEAST:
        return 1.0 if first.low >= number else 0.0, 1.0 if first.high >= number else 0.0
    if kind == EQUAL:
        return (
            1.0 if first.low >= number - slack and first.high <= number + slack else 0.0,
            1.0 if first.high >= number - slack and first.low <= number + slack else 0.0,
        )
    if kind == NOT:
        return 1.0 - first.high, 1.0 - first.low
    second = T.operations[b]
    if kind == ADD:
        return first.low + second.low, first.high + second.high
    if kind == LARGER:
        return max(first.low, second.low), max(first.high, second.high)
    if kind == SMALLER:
        if decided in (FIRST, SECOND):
            chosen = T.operations[a if decided == FIRST else b]
            return chosen.low, chosen.high
        return min(first.low, second.low), min(first.high, second.high)
    if kind == GATE:
        if first.low > 0.5:
            return second.low, second.high
        return (min(0.0, second.low), max(0.0, second.high)) if first.high > 0.5 else (0.0, 0.0)
    # IF is left.
    other = T.operations[c]
    if first.low > 0.5:
        return second.low, second.high
    if first.high < 0.5:
        return other.low, other.high
    return min(second.low, other.low), max(second.high, other.high)


@jit
def _of_table(tables: Floats, start: int, low: float, high: float) -> tuple[float, float]:
    """The ends of a table over the counts in an interval; the lower is above the upper if there is no count."""
    least, most = np.inf, -np.inf
    for k in range(math.ceil(low - WHOLE), math.floor(high + WHOLE) + 1):
        least, most = min(least, tables[start + k]), max(most, tables[start + k])
    return least, most


@jit
def _of_hard_atom(
    ints: Ints, floats: Floats, i: int, free: int, held: int, node: Node, T: Workspace
) -> tuple[float, float]:
    """The ends of a hard atom, given how many labels are free and how many are in."""
    kind, k, _, _ = operation(part(ints, CODE), i)
    high, low = numbers_of(numbers(ints, floats, NUMBERS), i)
    low = min(low, 0.0)
    if held > 0:
        low = hard(ints, floats, kind, k, node.x, IN, candidate_labels(T))
    elif free == 0:
        low, high = 0.0, 0.0
    if 0 < free <= _MAX_FREE_FOR_UPPER:
        # The empty set has the value 0.
        high = max(
            hard(ints, floats, kind, k, node.x, FREE, candidate_labels(T)),
            low if held > 0 else 0.0,
        )
    elif free == 0:
        high = low
    return low, high


@jit
def _quantities(ints: Ints, floats: Floats, node: Node, T: Workspace) -> bool:
    """Compute the ends of every quantity; False if one has no value within its bounds."""
    K = len(node.x)
    costs = numbers(ints, floats, COSTS)
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    for j in range(len(T.quantities)):
        quantity = T.quantities[j]
        low, high, size = quantity.settled, quantity.settled, abs(quantity.settled)
        for y in open_labels(T):
            cost = costs[j * K + y]
            if node.x[y] == OUT:
                continue
            size += abs(cost)
            if node.x[y] == IN or cost < 0.0:
                low += cost
            if node.x[y] == IN or cost > 0.0:
                high += cost
        for e in range(starts[j], starts[j + 1]):
            state, weight = T.categories[of[e]].state, weights[e]
            size += abs(weight)
            if state & TOUCHED or (state & MAY and weight < 0.0):
                low += weight
            if state & TOUCHED or (state & MAY and weight > 0.0):
                high += weight
        slack = NEAR * size
        if node.low[j] > high + slack or node.high[j] < low - slack:
            return False
        quantity.low, quantity.high = max(low, node.low[j]), min(high, node.high[j])
    return True


@jit
def cost_of(ints: Ints, floats: Floats, chosen: Marks, T: Workspace) -> float:
    """L of a set."""
    constants, held = numbers(ints, floats, CONSTANTS), 0
    for y in range(len(chosen)):
        if chosen[y] == IN:
            T.order[held] = y
            held += 1
    for c in range(len(T.categories)):
        T.categories[c].touched = 0
    for j in range(len(constants)):
        T.quantities[j].point = constants[j]
    return _cost_beside(ints, floats, chosen, T.order[:held], T.order[:held], T)


@jit
def net_cost(ints: Ints, floats: Floats, chosen: Marks, T: Workspace) -> float:
    """L of a set minus the worth of its open labels; what the other candidates touch and cost is already in the
    records."""
    gained, labels = 0.0, open_labels(T)
    for y in labels:
        if chosen[y] == IN:
            gained += T.labels[y].worth
    for c in range(len(T.categories)):
        T.categories[c].touched = T.categories[c].settled
    for j in range(len(T.quantities)):
        T.quantities[j].point = T.quantities[j].settled
    return _cost_beside(ints, floats, chosen, labels, candidate_labels(T), T) - gained


@jit
def _cost_beside(ints: Ints, floats: Floats, chosen: Marks, labels: Ints, candidates: Ints, T: Workspace) -> float:
    """L of the chosen candidates; what candidates outside `labels` touch and cost is already in the records."""
    K = len(chosen)
    label_starts, of_label = part(ints, LABEL_STARTS), part(ints, LABEL_CATEGORIES)
    costs = numbers(ints, floats, COSTS)
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    code = part(ints, CODE)
    held = 0
    for y in candidates:
        held += chosen[y] == IN
    for y in labels:
        if chosen[y] == IN:
            for e in range(label_starts[y], label_starts[y + 1]):
                T.categories[of_label[e]].touched = TOUCHED
    for j in range(len(T.quantities)):
        point = T.quantities[j].point
        for y in labels:
            if chosen[y] == IN:
                point += costs[j * K + y]
        for e in range(starts[j], starts[j + 1]):
            if T.categories[of[e]].touched == TOUCHED:
                point += weights[e]
        T.quantities[j].point = point
    for i in range(len(T.operations)):
        kind, k, _, _ = operation(code, i)
        if kind not in (WORST, FARTHEST, PAIRS):
            T.operations[i].point = _value(ints, floats, i, T)
        else:
            T.operations[i].point = hard(ints, floats, kind, k, chosen, IN, candidates) if held > 0 else 0.0
    return float(T.operations[-1].point)


@jit
def _value(ints: Ints, floats: Floats, i: int, T: Workspace) -> float:
    """The value of an operation on a set, from those of its operands."""
    kind, a, b, c = operation(part(ints, CODE), i)
    number, slack = numbers_of(numbers(ints, floats, NUMBERS), i)
    if kind == CONSTANT:
        return number
    if kind == QUANTITY:
        return float(T.quantities[a].point)
    if kind == TABLE:
        return float(numbers(ints, floats, TABLES)[b + int(T.quantities[a].point + 0.5)])
    first = T.operations[a].point
    if kind == SCALE:
        return float(number * first)
    if kind == AT_LEAST:
        return 1.0 if first >= number else 0.0
    if kind == EQUAL:
        return 1.0 if abs(first - number) <= slack else 0.0
    if kind == NOT:
        return float(1.0 - first)
    second = T.operations[b].point
    if kind == ADD:
        return float(first + second)
    if kind == GATE:
        return float(first * second)
    if kind == LARGER:
        return float(max(first, second))
    if kind == SMALLER:
        return float(min(first, second))
    return float(second if first > 0.5 else T.operations[c].point)  # IF is left


@jit
def hard(ints: Ints, floats: Floats, kind: int, k: int, x: Marks, least: int, labels: Ints) -> float:
    """The value of a hard atom on the labels whose mark is at least `least`; there must be one."""
    if kind == WORST:
        return _worst(ints, floats, k, x, least, labels)
    K, value = len(x), 0.0
    entries = numbers(ints, floats, FAR if kind == FARTHEST else PAIR_ENTRIES)
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
def _worst(ints: Ints, floats: Floats, k: int, x: Marks, least: int, labels: Ints) -> float:
    """The least over columns of the largest entry of these labels."""
    K, held, value = len(x), 0, np.inf
    starts, columns, prefix = part(ints, COLUMN_STARTS), numbers(ints, floats, COLUMNS), part(ints, PREFIX_STARTS)
    for y in labels:
        held += x[y] >= least
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


@jit
def take_free(ints: Ints, floats: Floats, asked: Question, found: Marks, T: Workspace) -> float:
    """Add to the set found the labels that cost nothing there; returns L of it.

    A best set has all labels with mass that add no cost; but where mu p(y) is below the rounding of costs, the search
    does not see what such a label is worth.
    """
    least, p, slack = numbers(ints, floats, LEAST), asked.p, 2.0 * NEAR * (asked.span + asked.mu)
    cost, empty = cost_of(ints, floats, found, T), True
    for y in range(len(p)):
        empty = empty and found[y] != IN
    for y in range(len(p)):
        if found[y] != IN and asked.fixed[y] == FREE and p[y] > 0.0 and asked.mu * p[y] <= slack and least[y] <= 0.0:
            with_y = _cost_with(ints, floats, y, found, empty, T)
            if with_y <= cost:
                found[y], cost, T.margin[y], empty = IN, with_y, 0.0, False
    return cost


@jit
def _cost_with(ints: Ints, floats: Floats, y: int, chosen: Marks, empty: bool, T: Workspace) -> float:
    """L of a set and one label more. Costs of single labels are cached: at the lowest price, most sets are empty."""
    if empty and not np.isnan(T.single_cost[y]):
        return float(T.single_cost[y])
    before = chosen[y]
    chosen[y] = IN
    cost = cost_of(ints, floats, chosen, T)
    chosen[y] = before
    if empty:
        T.single_cost[y] = cost
    return cost
