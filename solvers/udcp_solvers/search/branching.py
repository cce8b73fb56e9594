"""Where a node is divided: at the operation that is farthest above its minorant on the chosen set.

    indicator    0 or 1                       minimum     its first operand or its second
    count        at most k, or more           category    touched, or all its labels out
    label        in or out, if nothing else is undecided

Of the chosen labels, the one of least value is taken, together with its twins that are likelier. Of the two halves,
`here` is the one that has the chosen set, `there` the other.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.arrays import Records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import put
from udcp_solvers.search.layout import (
    ABOVE,
    ADD,
    AT_LEAST,
    CATEGORY_LABELS,
    CATEGORY_STARTS,
    CODE,
    CROSSING,
    EQUAL,
    FIRST,
    FREE,
    GATE,
    HOME,
    IF,
    IN,
    INDICATOR,
    LARGER,
    MAY,
    NOT,
    NUMBERS,
    ONE,
    OUT,
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
    TWIN,
    WEIGHTS,
    WHOLE,
    ZERO,
    Floats,
    Ints,
    Marks,
    kind_of,
    number_of,
    numbers,
    numbers_of,
    operation,
    part,
)
from udcp_solvers.search.minorant import lowest, mixes, mixture, only_operand
from udcp_solvers.search.workspace import Node, Workspace, node_at, open_labels, visit


@jit
def branch(ints: Ints, floats: Floats, top: int, T: Workspace) -> int:
    """Put two nodes in place of the one at `top`, that of the chosen set above; returns where the stack ends."""
    put(T.marks[top + 1], T.marks[top])
    put(T.reals[top + 1], T.reals[top])
    T.bounds[top + 1] = T.bounds[top]
    here, there = node_at(ints, top + 1, T), node_at(ints, top, T)
    i, category = branching_operation(ints, floats, here, T)
    mixed = i >= 0 and kind_of(part(ints, CODE), i) == LARGER
    if i >= 0 and category < 0:
        i = decidable_operand(ints, i, T.operations)
    if mixed:
        category = _nearest_category(ints, here, T)
    if i >= 0 and _divide(ints, floats, i, category, here, there, T):
        return top + 2
    return top + 2 if _divide_by_label(ints, mixed, here, there, T) else top


@jit
def branching_operation(ints: Ints, floats: Floats, node: Node, T: Workspace) -> tuple[int, int]:
    """The operation that is farthest above its part of the minorant on the chosen set, -1 if there is none; and the
    category of it that the minorant has wrong, or -1."""
    code, number, tables = part(ints, CODE), numbers(ints, floats, NUMBERS), numbers(ints, floats, TABLES)
    Q, operations = len(T.quantities), T.operations
    most, which, category = 0.0, -1, -1
    top = visit(len(operations) - 1, 1.0, 0, T.pending)
    while top > 0:
        top -= 1
        i, f = T.pending[top].operation, T.pending[top].factor
        here = operations[i]
        kind, a, b, _ = operation(code, i)
        if here.low == here.high or i == T.left_over.counted:
            continue
        through = only_operand(code, i, node.decided, T.operations)
        miss = 0.0
        if through >= 0:
            f = f * number_of(number, i) if kind == SCALE else -f if kind == NOT else f
            top = visit(through, f, top, T.pending)
        elif kind == ADD:
            top = visit(b, f, visit(a, f, top, T.pending), T.pending)
        elif kind == QUANTITY:
            weight, c = _missed_category(ints, floats, a, f, most, T)
            if c >= 0:
                most, which, category = weight, i, c
        elif kind == TABLE:
            quantity, line = T.quantities[a], node.lines[Q + i]
            miss = f * here.point - line * quantity.point - lowest(tables, b, f, line, quantity.low, quantity.high)
        elif mixes(kind, f):
            share = mixture(node.lines[Q + i])
            miss = f * (here.point - share * operations[a].point - (1.0 - share) * operations[b].point)
            top = visit(b, f * (1.0 - share), visit(a, f * share, top, T.pending), T.pending)
        else:
            miss = f * here.point - f * (here.low if f > 0.0 else here.high)
        if miss > most:
            most, which, category = miss, i, -1
    return which, category


@jit
def _missed_category(ints: Ints, floats: Floats, j: int, f: float, most: float, T: Workspace) -> tuple[float, int]:
    """In f times a quantity, a category that the minorant has wrong for the chosen set: the largest weight above
    `most`, and its category; -1 if there is none."""
    above, category = part(ints, ABOVE), -1
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    for e in range(starts[j], starts[j + 1]):
        c, w = of[e], f * weights[e]
        missed = T.categories[c].state == MAY and (w < 0.0 or above[c] == CROSSING) and abs(w) > most
        if missed and _touches(ints, c, T.chosen) == (w > 0.0):
            most, category = abs(w), c
    return most, category


@jit
def _touches(ints: Ints, c: int, chosen: Marks) -> bool:
    starts, member = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
    count = 0
    for m in range(starts[c], starts[c + 1]):
        count += chosen[member[m]] == IN
    return count > 0


@jit
def decidable_operand(ints: Ints, i: int, operations: Records) -> int:
    """The operand that can be decided, on the way down from an operation; -1 if there is none."""
    code = part(ints, CODE)
    while i >= 0:
        kind, a, b, third = operation(code, i)
        if operations[i].low == operations[i].high:
            return -1
        if kind in (GATE, IF, NOT, SCALE):
            i = a
        elif kind == ADD:
            width_a, width_b = operations[a].high - operations[a].low, operations[b].high - operations[b].low
            i = a if width_a >= width_b else b
        elif third == INDICATOR:
            undecided_a, undecided_b = operations[a].low < operations[a].high, operations[b].low < operations[b].high
            # The operand that determines the value of the whole on the chosen set.
            i = a if undecided_a and (not undecided_b or operations[a].point == operations[i].point) else b
        else:
            return int(i)
    return -1


@jit
def _divide(ints: Ints, floats: Floats, i: int, category: int, here: Node, there: Node, T: Workspace) -> bool:
    """Divide a node at an operation, or at a category of it; False if nothing of it can be decided."""
    kind, a, b, _ = operation(part(ints, CODE), i)
    if category < 0 and kind == QUANTITY:
        category = _heaviest_category(ints, floats, a, T.categories)
    if category >= 0:
        _divide_at_category(ints, category, here, there, T.chosen)
        return True
    if kind == TABLE:
        return _divide_at_count(numbers(ints, floats, TABLES), b, a, here, there, T.quantities)
    if here.decided[i] != 0:
        return False
    if kind in (AT_LEAST, EQUAL):
        _divide_at_comparison(ints, floats, i, here, there, T.operations)
        return True
    if kind == SMALLER:
        # A set may be in both halves; in that of its smaller operand, the minorant is below the loss.
        first = T.operations[a].point <= T.operations[b].point
        here.decided[i], there.decided[i] = (FIRST, SECOND) if first else (SECOND, FIRST)
        return True
    return False


@jit
def _heaviest_category(ints: Ints, floats: Floats, j: int, categories: Records) -> int:
    """The category of largest weight in a quantity that is not decided yet; -1 if there is none."""
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    most, category = 0.0, -1
    for e in range(starts[j], starts[j + 1]):
        if categories[of[e]].state == MAY and abs(weights[e]) > most:
            most, category = abs(weights[e]), of[e]
    return category


@jit
def _divide_at_category(ints: Ints, category: int, here: Node, there: Node, chosen: Marks) -> None:
    """Divide a node: a category is touched, or all its labels are out."""
    starts, member = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
    touched, shut = (here, there) if _touches(ints, category, chosen) else (there, here)
    touched.must_touch[category] = 1
    for m in range(starts[category], starts[category + 1]):
        if shut.x[member[m]] == FREE:
            shut.x[member[m]] = OUT


@jit
def _divide_at_count(tables: Floats, start: int, j: int, here: Node, there: Node, quantities: Records) -> bool:
    """Divide a node: a count, quantity j, is at most k, or more. k is next to the count of the chosen set, where the
    table has the larger step. False if only one number is possible."""
    count = quantities[j].point
    first, last = math.ceil(quantities[j].low - WHOLE), math.floor(quantities[j].high + WHOLE)
    if first >= last:
        return False
    k = max(first, min(int(count + 0.5), last - 1))
    at = start + k
    if k > first and abs(tables[at] - tables[at - 1]) > abs(tables[at + 1] - tables[at]):
        k -= 1
    below, beyond = (here, there) if count < k + 0.5 else (there, here)
    below.high[j] = min(below.high[j], float(k))
    beyond.low[j] = max(beyond.low[j], float(k + 1))
    return True


@jit
def _divide_at_comparison(ints: Ints, floats: Floats, i: int, here: Node, there: Node, operations: Records) -> None:
    """Divide a node: a comparison holds, or it does not; if it compares a quantity, that gets a bound."""
    code = part(ints, CODE)
    kind, a, _, _ = operation(code, i)
    number, slack = numbers_of(numbers(ints, floats, NUMBERS), i)
    yes, no = (here, there) if operations[i].point > 0.5 else (there, here)
    yes.decided[i], no.decided[i] = ONE, ZERO
    compared, j, _, _ = operation(code, a)
    if compared == QUANTITY:
        yes.low[j] = max(yes.low[j], number - slack)
        if kind == EQUAL:
            yes.high[j] = min(yes.high[j], number + slack)
        else:
            no.high[j] = min(no.high[j], number)


@jit
def _nearest_category(ints: Ints, node: Node, T: Workspace) -> int:
    """The category whose least value is nearest to 0; -1 if there is none, or if the value of a label is nearer."""
    home, above, rising = part(ints, HOME), part(ints, ABOVE), part(ints, RISING)
    categories = T.categories
    least, found = np.inf, -1
    for c in rising:
        in_reach = above[c] < 0 or categories[above[c]].state & TOUCHED
        if categories[c].state == MAY and abs(categories[c].v) < least and in_reach:
            least, found = abs(categories[c].v), c
    for y in open_labels(T):
        in_reach = home[y] < 0 or categories[home[y]].state & TOUCHED
        if node.x[y] == FREE and abs(T.labels[y].value) < least and in_reach:
            return -1
    return int(found)


@jit
def _divide_by_label(ints: Ints, mixed: bool, here: Node, there: Node, T: Workspace) -> bool:
    """Divide a node: a label is in or out; False if none is free.

    The chosen label of least value is taken; if operands are `mixed`, as in a knapsack, the label whose value is
    nearest to 0. Of twins, the likelier enter first, then those of lower index.
    """
    twin, labels = part(ints, TWIN), T.labels
    at, most = -1, -np.inf
    for y in open_labels(T):
        if here.x[y] == FREE and (T.chosen[y] == IN or mixed):
            gain = -abs(labels[y].value) if mixed else -labels[y].value
            if gain > most:
                at, most = y, gain
    if at < 0:
        for y in open_labels(T):
            if here.x[y] == FREE and labels[y].p > most:
                at, most = y, labels[y].p
    if at < 0:
        return False
    entering, leaving = (here, there) if T.chosen[at] == IN else (there, here)
    for y in open_labels(T):
        if twin[y] == twin[at] and entering.x[y] == FREE and leaving.x[y] == FREE:
            before = labels[y].p > labels[at].p or (labels[y].p == labels[at].p and y < at)
            if before or y == at:
                entering.x[y] = IN
            if not before:
                leaving.x[y] = OUT
    return True
