"""Where a branch is divided: at the operation that makes most of the difference between the set and its minorant.

An indicator is 0 or 1, a count at most k or more, a category touched or not, a minimum one operand or the other; last,
a label is in or out: of those chosen the weightiest, and with it those that are interchangeable with it and likelier.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
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
    numbers,
    part,
)
from udcp_solvers.search.minorant import lowest, mixes, opened


@jit
def branching_operation(
    ints: Ints,
    floats: Floats,
    decided: Marks,
    lines: Floats,
    state: Ints,
    q: Floats,
    ends: Floats,
    chosen: Marks,
    point_q: Floats,
    point: Floats,
    counted: int,
    waiting: Ints,
    factors: Floats,
) -> tuple[int, int]:
    """The operation that is farthest above what the minorant made of it at the chosen set, and the category of it, or
    -1; operation -1 if there is none."""
    code, number, tables = part(ints, CODE), numbers(ints, floats, NUMBERS), numbers(ints, floats, TABLES)
    above = part(ints, ABOVE)
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    Q = q.shape[1]
    most, which, category = 0.0, -1, -1
    waiting[0], factors[0] = len(code) // 4 - 1, 1.0
    top = 1
    while top > 0:
        top -= 1
        i, f = waiting[top], factors[top]
        kind, a, b = code[4 * i], code[4 * i + 1], code[4 * i + 2]
        if ends[0, i] == ends[1, i] or i == counted:
            continue
        through = opened(code, i, f, decided, ends)
        miss = 0.0
        if through >= 0:
            waiting[top] = through
            factors[top] = f * number[2 * i] if kind == SCALE else -f if kind == NOT else f
            top += 1
        elif kind == ADD:
            waiting[top], factors[top] = a, f
            waiting[top + 1], factors[top + 1] = b, f
            top += 2
        elif kind == QUANTITY:
            for e in range(starts[a], starts[a + 1]):
                c, w = of[e], f * weights[e]
                missed = state[c] == MAY and (w < 0.0 or above[c] == CROSSING) and abs(w) > most
                if missed and touches(ints, c, chosen) == (w > 0.0):
                    most, which, category = abs(w), i, c
        elif kind == TABLE:
            least = lowest(tables, b, f, lines[Q + i], q[0, a], q[1, a])
            miss = f * point[i] - lines[Q + i] * point_q[a] - least
        elif mixes(kind, f):
            mix = min(max(0.5 + lines[Q + i], 0.0), 1.0)
            miss = f * (point[i] - mix * point[a] - (1.0 - mix) * point[b])
            waiting[top], factors[top] = a, f * mix
            waiting[top + 1], factors[top + 1] = b, f * (1.0 - mix)
            top += 2
        else:
            miss = f * point[i] - f * ends[0 if f > 0.0 else 1, i]
        if miss > most:
            most, which, category = miss, i, -1
    return which, category


@jit
def touches(ints: Ints, c: int, chosen: Marks) -> bool:
    starts, member = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
    many = 0
    for m in range(starts[c], starts[c + 1]):
        many += chosen[member[m]] == IN
    return many > 0


@jit
def decidable_operand(ints: Ints, i: int, ends: Floats, point: Floats) -> int:
    """From an operation down to the operand that can be decided; -1 where there is none."""
    code = part(ints, CODE)
    while i >= 0:
        kind, a, b = code[4 * i], code[4 * i + 1], code[4 * i + 2]
        if ends[0, i] == ends[1, i]:
            return -1
        if kind in (GATE, IF, NOT, SCALE):
            i = a
        elif kind == ADD:
            i = a if ends[1, a] - ends[0, a] >= ends[1, b] - ends[0, b] else b
        elif code[4 * i + 3] == INDICATOR:
            open_a, open_b = ends[0, a] < ends[1, a], ends[0, b] < ends[1, b]
            # The operand that makes the whole what it is at the chosen set.
            i = a if open_a and (not open_b or point[a] == point[i]) else b
        else:
            return int(i)
    return -1


@jit
def divide(
    ints: Ints,
    floats: Floats,
    i: int,
    category: int,
    state: Ints,
    q: Floats,
    chosen: Marks,
    point_q: Floats,
    point: Floats,
    here: Marks,
    there: Marks,
    bounds_here: Floats,
    bounds_there: Floats,
) -> bool:
    """Make two branches of one: `here`, where the chosen set is, and `there`, both copies of it; False if nothing of
    the operation can be decided. Marks are of labels, categories and operations."""
    code, number, tables = part(ints, CODE), numbers(ints, floats, NUMBERS), numbers(ints, floats, TABLES)
    K, C, Q = len(chosen), len(state), q.shape[1]
    kind, a, b = code[4 * i], code[4 * i + 1], code[4 * i + 2]
    if category < 0 and kind == QUANTITY:
        starts, of = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES)
        weights = numbers(ints, floats, WEIGHTS)
        most = 0.0
        for e in range(starts[a], starts[a + 1]):
            if state[of[e]] == MAY and abs(weights[e]) > most:
                most, category = abs(weights[e]), of[e]
    if category >= 0:
        touched, shut = (here, there) if touches(ints, category, chosen) else (there, here)
        touched[K + category] = 1
        starts, member = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
        for m in range(starts[category], starts[category + 1]):
            if shut[member[m]] == FREE:
                shut[member[m]] = OUT
        return True
    if kind == TABLE:
        first, last = math.ceil(q[0, a] - WHOLE), math.floor(q[1, a] + WHOLE)
        if first >= last:
            return False
        # Up to k, or beyond: next to the chosen set's count, where the table bends more.
        k = max(first, min(int(point_q[a] + 0.5), last - 1))
        if k > first and abs(tables[b + k] - tables[b + k - 1]) > abs(tables[b + k + 1] - tables[b + k]):
            k -= 1
        below, beyond = (bounds_here, bounds_there) if point_q[a] < k + 0.5 else (bounds_there, bounds_here)
        below[Q + a] = min(below[Q + a], float(k))
        beyond[a] = max(beyond[a], float(k + 1))
        return True
    if here[K + C + i] != 0:
        return False
    if kind in (AT_LEAST, EQUAL):
        holds = point[i] > 0.5
        here[K + C + i], there[K + C + i] = (ONE, ZERO) if holds else (ZERO, ONE)
        if code[4 * a] == QUANTITY:
            j = code[4 * a + 1]
            yes, no = (bounds_here, bounds_there) if holds else (bounds_there, bounds_here)
            slack = number[2 * i + 1]
            yes[j] = max(yes[j], number[2 * i] - slack)
            if kind == EQUAL:
                yes[Q + j] = min(yes[Q + j], number[2 * i] + slack)
            else:
                no[Q + j] = min(no[Q + j], number[2 * i])
        return True
    if kind == SMALLER:
        here[K + C + i], there[K + C + i] = (FIRST, SECOND) if point[a] <= point[b] else (SECOND, FIRST)
        return True
    return False


@jit
def nearest(ints: Ints, labels: Ints, x: Marks, state: Ints, value: Floats, v: Floats) -> int:
    """The category that hardly pays, or hardly does not, where no label does so less; -1 if there is none."""
    home, above, rising = part(ints, HOME), part(ints, ABOVE), part(ints, RISING)
    least, found = np.inf, -1
    for c in rising:
        if state[c] == MAY and abs(v[c]) < least and (above[c] < 0 or state[above[c]] & TOUCHED):
            least, found = abs(v[c]), c
    for y in labels:
        if x[y] == FREE and abs(value[y]) < least and (home[y] < 0 or state[home[y]] & TOUCHED):
            return -1
    return int(found)


@jit
def by_label(
    ints: Ints, p: Floats, labels: Ints, value: Floats, chosen: Marks, mixed: bool, here: Marks, there: Marks
) -> bool:
    """Make two branches of one: a label is in or out. False if none is free.

    Of those chosen the weightiest; where operands are `mixed`, as in a knapsack, the one that hardly pays, or hardly
    does not. Of interchangeable labels the likelier ones come first, then those of lower index.
    """
    twin = part(ints, TWIN)
    at, most = -1, -np.inf
    for y in labels:
        if here[y] == FREE and (chosen[y] == IN or mixed):
            worth = -abs(value[y]) if mixed else -value[y]
            if worth > most:
                at, most = y, worth
    if at < 0:
        for y in labels:
            if here[y] == FREE and p[y] > most:
                at, most = y, p[y]
    if at < 0:
        return False
    entering, leaving = (here, there) if chosen[at] == IN else (there, here)
    for y in labels:
        if twin[y] == twin[at] and entering[y] == FREE and leaving[y] == FREE:
            before = p[y] > p[at] or (p[y] == p[at] and y < at)
            if before or y == at:
                entering[y] = IN
            if not before:
                leaving[y] = OUT
    return True
