"""A quantity that lies below L - mu p on all sets of a branch: label values, category weights and a constant.

A sum goes term by term; an indicator that is decided opens or shuts what it multiplies; a maximum is at least any
mixture of its operands; a table of a count k is at least its lowest line of a given slope, k included; a quantity that
is bounded may be added at any slope, less what the slope makes of its bound. Sums over pairs count what pairs with the
labels that are in. All else is taken at the lower end of its interval. Two parts are left to be optimised beside it: a
threshold on the entries of labels (columns, farthest pairs), and a table of the number of labels.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill
from udcp_solvers.search.layout import (
    ABOVE,
    ADD,
    CATEGORY_LABELS,
    CATEGORY_STARTS,
    CODE,
    COSTS,
    CROSSING,
    FARTHEST,
    FIRST,
    FREE,
    GATE,
    IF,
    IN,
    LARGER,
    MAY,
    NEAR_PAIRS,
    NOT,
    NUMBERS,
    PAIRS,
    QUANTITY,
    QUANTITY_CATEGORIES,
    QUANTITY_STARTS,
    SCALE,
    SECOND,
    SMALLER,
    TABLE,
    TABLES,
    TOUCHED,
    WEIGHTS,
    WHOLE,
    WORST,
    Floats,
    Ints,
    Marks,
    numbers,
    part,
)


@jit
def minorant(
    ints: Ints,
    floats: Floats,
    base: Floats,
    p: Floats,
    worth: Floats,
    x: Marks,
    decided: Marks,
    lines: Floats,
    labels: Ints,
    everyone: Ints,
    state: Ints,
    q: Floats,
    ends: Floats,
    counted: int,
    value: Floats,
    weight: Floats,
    waiting: Ints,
    factors: Floats,
    factor_of: Floats,
) -> tuple[float, int, float, float, int, float]:
    """Fill label values (K,) and category weights (C,); `worth` is mu p, `base` (Q,) what
    quantities are without the labels, `everyone` the labels and those behind it. `factor_of` (N,) gets the factor of
    every operation that is reached.

    Returns the constant; the operation whose threshold is left, or -1, and its factor; the factor of the table
    `counted` (an operation, or -1), which is left too; the operation whose pairs of free labels are left, or -1, and
    its factor.
    """
    K = len(x)
    code, number, tables = part(ints, CODE), numbers(ints, floats, NUMBERS), numbers(ints, floats, TABLES)
    Q = q.shape[1]
    constant, of_count = 0.0, 0.0
    threshold, of_threshold = -1, 0.0
    pairs, of_pairs = -1, 0.0
    for y in labels:
        value[y] = -worth[y]
    fill(weight, 0.0)
    fill(factor_of, 0.0)
    for j in range(Q):
        if lines[j] != 0.0:
            constant -= lines[j] * (q[1, j] if lines[j] > 0.0 else q[0, j])
            constant += _add(ints, floats, base, j, lines[j], p, x, labels, state, value, weight)
    waiting[0], factors[0] = len(code) // 4 - 1, 1.0
    top = 1
    while top > 0:
        top -= 1
        i, f = waiting[top], factors[top]
        factor_of[i] = f
        kind, a, b = code[4 * i], code[4 * i + 1], code[4 * i + 2]
        if ends[0, i] == ends[1, i]:
            constant += f * ends[0, i]
            continue
        through = opened(code, i, f, decided, ends)
        if through >= 0:
            f = f * number[2 * i] if kind == SCALE else -f if kind == NOT else f
            constant += -f if kind == NOT else 0.0
            waiting[top], factors[top] = through, f
            top += 1
        elif kind == ADD:
            waiting[top], factors[top] = a, f
            waiting[top + 1], factors[top + 1] = b, f
            top += 2
        elif kind == QUANTITY:
            constant += _add(ints, floats, base, a, f, p, x, labels, state, value, weight)
        elif i == counted:
            of_count = f
        elif kind == TABLE:
            constant += lowest(tables, b, f, lines[Q + i], q[0, a], q[1, a])
            if lines[Q + i] != 0.0:
                constant += _add(ints, floats, base, a, lines[Q + i], p, x, labels, state, value, weight)
        elif mixes(kind, f):
            mix = min(max(0.5 + lines[Q + i], 0.0), 1.0)
            waiting[top], factors[top] = a, f * mix
            waiting[top + 1], factors[top + 1] = b, f * (1.0 - mix)
            top += 2
        elif f > 0.0 and (kind in (WORST, FARTHEST)):
            # The one that can cost most; others count as on the labels that are in.
            if f * number[2 * i] > of_threshold * (number[2 * threshold] if threshold >= 0 else 0.0):
                if threshold >= 0:
                    constant += of_threshold * ends[0, threshold]
                threshold, of_threshold = i, f
            else:
                constant += f * ends[0, i]
        elif f > 0.0 and kind == PAIRS:
            constant += f * ends[0, i]
            pairs, of_pairs = i, f
            entries = numbers(ints, floats, NEAR_PAIRS)
            for z in everyone:
                if x[z] == IN:
                    at = (a * K + z) * K
                    for y in labels:
                        if x[y] == FREE:
                            value[y] += f * entries[at + y]
        else:
            constant += f * ends[0 if f > 0.0 else 1, i]
    return constant, threshold, of_threshold, of_count, pairs, of_pairs


@jit
def opened(code: Ints, i: int, f: float, decided: Marks, ends: Floats) -> int:
    """The operand that an operation is, or a multiple of, in this branch; -1 where it is none."""
    kind, a, b, c = code[4 * i], code[4 * i + 1], code[4 * i + 2], code[4 * i + 3]
    if kind in (SCALE, NOT):
        return int(a)
    if kind == GATE and ends[0, a] > 0.5:
        return int(b)
    if kind == IF and (ends[0, a] > 0.5 or ends[1, a] < 0.5):
        return int(b if ends[0, a] > 0.5 else c)
    if kind == SMALLER:
        if decided[i] == FIRST or ends[1, a] <= ends[0, b]:
            return int(a)
        if decided[i] == SECOND or ends[1, b] <= ends[0, a]:
            return int(b)
    if kind == LARGER:
        if ends[0, a] >= ends[1, b]:
            return int(a)
        if ends[0, b] >= ends[1, a]:
            return int(b)
    return -1


@jit
def mixes(kind: int, f: float) -> bool:
    """Whether a multiple of a maximum or minimum is at least every mixture of its operands."""
    return (kind == LARGER and f > 0.0) or (kind == SMALLER and f < 0.0)


@jit
def lowest(tables: Floats, start: int, f: float, line: float, low: float, high: float) -> float:
    """The least f table(k) - line k over the counts of an interval."""
    least = np.inf
    for k in range(math.ceil(low - WHOLE), math.floor(high + WHOLE) + 1):
        least = min(least, f * tables[start + k] - line * k)
    return least


@jit
def _add(
    ints: Ints,
    floats: Floats,
    base: Floats,
    j: int,
    f: float,
    p: Floats,
    x: Marks,
    labels: Ints,
    state: Ints,
    value: Floats,
    weight: Floats,
) -> float:
    """Add f times a quantity; what it adds to the constant."""
    K = len(x)
    costs, above = numbers(ints, floats, COSTS), part(ints, ABOVE)
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    members, member = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
    constant = f * base[j]
    for y in labels:
        value[y] += f * costs[j * K + y]
    for e in range(starts[j], starts[j + 1]):
        c, w = of[e], f * weights[e]
        if state[c] & TOUCHED or (state[c] & MAY and w < 0.0):
            constant += w
        elif state[c] & MAY and above[c] != CROSSING:
            weight[c] += w
        elif state[c] & MAY:
            # It is touched if its likeliest label is in.
            likeliest = -1
            for m in range(members[c], members[c + 1]):
                y = member[m]
                if x[y] == FREE and (likeliest < 0 or p[y] > p[likeliest]):
                    likeliest = y
            value[likeliest] += w
    return float(constant)
