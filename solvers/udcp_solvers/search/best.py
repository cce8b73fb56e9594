"""The best set at a price: the least L(S) - mu p(S) over sets that hold some labels and leave out others.

Open branches wait on a stack, the one of the set just found on top. A branch ends where its bound is no better than the
best set known, where its set costs what the minorant says, or where nothing in it is free. Whatever the loss, all sets
are covered; with the budget used up, the least bound of what is left open tells how much better another set could be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.compiled import jit
from udcp_solvers.search.branching import by_label, culprit, divide, undecided
from udcp_solvers.search.counts import by_count
from udcp_solvers.search.intervals import cost_of, intervals, touch
from udcp_solvers.search.layout import (
    CATEGORY_LABELS,
    CODE,
    FREE,
    IN,
    LARGER,
    LEAST,
    OUT,
    TABLES,
    Floats,
    Ints,
    Marks,
    counted_of,
    numbers,
    part,
    sizes_of,
)
from udcp_solvers.search.lightest import by_threshold, lightest, settle, touching
from udcp_solvers.search.lines import AT as _AT
from udcp_solvers.search.lines import KEPT_OF_LINES, next_line
from udcp_solvers.search.lines import LEFT as _LEFT
from udcp_solvers.search.minorant import lowest, minorant
from udcp_solvers.search.pairs import by_pairs, grow

# Values closer than this, relative to what they are made of, are equal.
NEAR = 1e-12
# How often a line is moved at most, in the first branch and in others.
_FIRST_MOVES, _MOVES = 14, 5


class Scratch(NamedTuple):
    """Open branches by place on the stack: `marks` of labels, categories and operations; `reals`, bounds of quantities,
    lines, and the bound of the branch. Rows of `ints`, `floats` and `small` are for the branch at hand. `warm`: where
    the lines of the first branch were the last time."""

    marks: Marks
    reals: Floats
    ints: Ints
    floats: Floats
    small: Marks
    search: Floats
    warm: Floats
    pool: Floats
    picks: Ints


# Behind what is kept of lines: whether the label values of the minorant are all there is to it; the branches looked at.
_SETTLES, LOOKED = 6, 7
# Rows of the scratch.
_LABELS, _STATE, _POINT_STATE, _WAITING, _ORDER = range(5)
_FACTORS, _VALUE, _WEIGHT, _V, _ENTRY, _TRIAL, _POINT_Q, _POINT, _LOW, _HIGH, _QLOW, _QHIGH, _FACTOR_OF, _WORTH = range(
    14
)


@jit
def scratch_of(ints: Ints) -> Scratch:
    """Room for the search of one thread."""
    K, C, Q, N = sizes_of(ints)
    deep = 2 * K + 2 * C + 64 * (Q + N) + 64
    wide = max(max(K, C), 3 * (Q + N)) + 2
    counts = counted_of(ints) >= 0
    inside = len(part(ints, CATEGORY_LABELS))
    return Scratch(
        np.zeros((deep, K + C + N), np.int8),
        np.zeros((deep, 3 * Q + N + 1)),
        np.zeros((5, wide), np.int64),
        np.zeros((14, wide)),
        np.zeros((2, K), np.int8),
        np.zeros(KEPT_OF_LINES),
        np.zeros(Q + N),
        np.zeros(inside + 2 * C + 2 * K + 4 if counts else 1),
        np.zeros((C + 1) * (K + 1) if counts else 1, np.int64),
    )


@jit
def best_set(
    ints: Ints,
    floats: Floats,
    p: Floats,
    mu: float,
    fixed: Marks,
    span: float,
    budget: int,
    ties: bool,
    T: Scratch,
    found: Marks,
    started: bool,
) -> float:
    """Fill `found` (K,) with the best set among those that agree with `fixed` (OUT, FREE, IN).

    With `started`, `found` is a set to begin with. `span` is how much the loss may vary. With `ties` sets of equal
    value are looked for too: of them the heaviest, then the smallest, then the first by indices is found. Returns by
    how much another set may be better at most: 0 unless the budget of branches was used up.
    """
    K, C, Q, N = sizes_of(ints)
    least = numbers(ints, floats, LEAST)
    chosen, root, worth = T.small[0], T.small[1], T.floats[_WORTH][:K]
    state, point_state = T.ints[_STATE][:C], T.ints[_POINT_STATE][:C]
    point_q, point = T.floats[_POINT_Q][:Q], T.floats[_POINT][:N]
    many, scale, heaviest = 0, span, 0.0
    for y in range(K):
        root[y] = fixed[y]
        if fixed[y] == FREE:
            if least[y] > mu * p[y] or (p[y] == 0.0 and least[y] >= 0.0):
                root[y] = OUT
            elif mu * p[y] > (1.0 + 1e-9) * span and p[y] > 0.0:
                root[y] = IN
        if root[y] != OUT:
            T.ints[_LABELS, many] = y
            many += 1
            # What every set has does not count: beside it small values would lose their digits.
            worth[y] = mu * p[y] if root[y] == FREE else 0.0
            scale += worth[y]
            heaviest = max(heaviest, worth[y])
    labels = T.ints[_LABELS][:many]
    chosen[:] = 0
    T.marks[0, :K] = root
    T.marks[0, K:] = 0
    T.reals[0, :Q] = -np.inf
    T.reals[0, Q : 2 * Q] = np.inf
    T.reals[0, 2 * Q : 3 * Q + N] = T.warm
    T.reals[0, 3 * Q + N] = -np.inf
    slack = NEAR * scale
    best = np.inf
    if started and _agrees(found, root):
        best = _net(ints, floats, worth, found, labels, point_state, point_q, point)
    top, looked = 1, 0
    open_bound = np.inf
    while top > 0:
        top -= 1
        marks, reals = T.marks[top], T.reals[top]
        limit = best + slack if ties else best - slack
        bound = reals[3 * Q + N]
        if bound >= limit:
            continue
        if looked >= budget:
            open_bound = min(open_bound, bound)
            continue
        looked += 1
        x, said, decided = marks[:K], marks[K : K + C], marks[K + C :]
        ends, q = T.floats[_LOW : _HIGH + 1, :N], T.floats[_QLOW : _QHIGH + 1, :Q]
        if not touch(ints, x, said, labels, state):
            continue
        if not intervals(ints, floats, x, decided, reals[: 2 * Q], labels, state, q, ends):
            continue
        lines = reals[2 * Q : 3 * Q + N]
        T.search[_AT] = -1.0
        T.search[_LEFT] = _FIRST_MOVES if looked == 1 else _MOVES
        solved, again = False, True
        while again:
            value = _bounded(ints, floats, p, marks, lines, labels, T)
            better = value > bound
            bound = max(bound, value)
            if bound >= limit:
                break
            cost = _net(ints, floats, worth, chosen, labels, point_state, point_q, point)
            if cost < best - slack or (ties and cost <= best + slack and _comes_first(p, chosen, found, best < np.inf)):
                best = min(best, cost)
                found[:] = 0
                for y in labels:
                    found[y] = chosen[y]
                limit = best + slack if ties else best - slack
            if cost <= value + slack:
                solved = not ties
                break
            if better and T.search[_SETTLES] > 0.0:
                value_of, v = T.floats[_VALUE][:K], T.floats[_V][:C]
                settled = settle(ints, x, labels, state, value_of, v, chosen, limit - value)
                if settled and not touch(ints, x, said, labels, state):
                    bound = np.inf
                    break
            again = next_line(
                ints,
                floats,
                lines,
                reals[: 2 * Q],
                q,
                ends,
                point_q,
                point,
                heaviest,
                value,
                limit,
                T.floats[_FACTOR_OF][:N],
                T.search,
            )
        if looked == 1:
            T.warm[:] = lines
        if solved or bound >= limit:
            continue
        reals[3 * Q + N] = bound
        top = _divided(ints, floats, p, top, labels, T)
    T.search[LOOKED] = looked
    gap = best - min(best, open_bound)
    return gap if gap > slack else 0.0


@jit
def _bounded(ints: Ints, floats: Floats, p: Floats, marks: Marks, lines: Floats, labels: Ints, T: Scratch) -> float:
    """The bound of a branch at these lines, and the set that attains it."""
    K, C, Q, N = sizes_of(ints)
    x, said, decided = marks[:K], marks[K : K + C], marks[K + C :]
    state = T.ints[_STATE][:C]
    ends, q = T.floats[_LOW : _HIGH + 1, :N], T.floats[_QLOW : _QHIGH + 1, :Q]
    value, weight, v = T.floats[_VALUE][:K], T.floats[_WEIGHT][:C], T.floats[_V][:C]
    entry, chosen = T.floats[_ENTRY][:K], T.small[0]
    counted = counted_of(ints)
    constant, threshold, f, of_count, pairs, of_pairs = minorant(
        ints, floats, p, T.floats[_WORTH][:K], x, decided, lines, labels, state, q, ends, counted, value, weight,
        T.ints[_WAITING], T.floats[_FACTORS], T.floats[_FACTOR_OF][:N],
    )  # fmt: skip
    T.search[_SETTLES] = 0.0
    if of_count != 0.0 and threshold < 0:
        return constant + by_count(
            ints, floats, counted, of_count, x, labels, state, value, weight, q, T.pool, T.picks, chosen
        )
    if of_count != 0.0:
        code = part(ints, CODE)
        j = code[4 * counted + 1]
        constant += lowest(numbers(ints, floats, TABLES), code[4 * counted + 2], of_count, 0.0, q[0, j], q[1, j])
    total = lightest(ints, p, x, labels, state, value, weight, value, np.inf, v, chosen)
    if threshold < 0 and pairs >= 0:
        # Weights of categories are at least 0.
        forced = 0.0
        for y in labels:
            forced += value[y] if x[y] == IN else 0.0
        room = T.floats[_TRIAL][:K]
        total = max(total, forced + by_pairs(ints, floats, pairs, of_pairs, x, labels, value, room, T.ints[_ORDER][:K]))
        grow(ints, floats, pairs, of_pairs, x, labels, value, room, chosen)
        return constant + total
    if threshold < 0:
        more = touching(ints, x, said, labels, value, v, chosen)
        T.search[_SETTLES] = 1.0 if more == 0.0 else 0.0
        return constant + total + more
    total, t = by_threshold(
        ints, floats, threshold, f, x, labels, state, value, weight, total, v, entry, T.floats[_TRIAL][:K],
        T.ints[_ORDER][:K],
    )  # fmt: skip
    lightest(ints, p, x, labels, state, value, weight, entry, t, v, chosen)
    return constant + total


@jit
def _net(
    ints: Ints, floats: Floats, worth: Floats, chosen: Marks, labels: Ints, state: Ints, q: Floats, point: Floats
) -> float:
    """What a set costs, less what it is worth."""
    gained = 0.0
    for y in labels:
        if chosen[y] == IN:
            gained += worth[y]
    return cost_of(ints, floats, chosen, labels, state, q, point) - gained


@jit
def _agrees(found: Marks, root: Marks) -> bool:
    """Whether a set is one of those that are looked at."""
    against = 0
    for y in range(len(found)):
        against += root[y] != FREE and (root[y] == IN) != (found[y] == IN)
    return against == 0


@jit
def _comes_first(p: Floats, chosen: Marks, found: Marks, any_found: bool) -> bool:
    """Whether a set is heavier than the one found, or as heavy and smaller, or both and has the first indices."""
    more, total, size, lead = 0.0, 0.0, 0, 0
    for y in range(len(p)):
        if chosen[y] != found[y]:
            sign = 1 if chosen[y] == IN else -1
            more += sign * p[y]
            total += p[y]
            size += sign
            if lead == 0:
                lead = sign
    if not any_found or abs(more) > NEAR * total:
        return not any_found or more > 0.0
    return size < 0 if size != 0 else lead > 0


@jit
def _divided(ints: Ints, floats: Floats, p: Floats, top: int, labels: Ints, T: Scratch) -> int:
    """Two branches in place of the one at `top`, that of the chosen set on top; where the stack ends."""
    K, C, Q, N = sizes_of(ints)
    here, there = T.marks[top + 1], T.marks[top]
    reals_here, reals_there = T.reals[top + 1], T.reals[top]
    here[:] = there
    reals_here[:] = reals_there
    state, chosen = T.ints[_STATE][:C], T.small[0]
    ends, q = T.floats[_LOW : _HIGH + 1, :N], T.floats[_QLOW : _QHIGH + 1, :Q]
    point_q, point = T.floats[_POINT_Q][:Q], T.floats[_POINT][:N]
    i, category = culprit(
        ints, floats, here[K + C :], reals_here[2 * Q :], state, q, ends, chosen, point_q, point, counted_of(ints),
        T.ints[_WAITING], T.floats[_FACTORS],
    )  # fmt: skip
    mixed = i >= 0 and part(ints, CODE)[4 * i] == LARGER
    if i >= 0 and category < 0:
        i = undecided(ints, i, ends, point)
    if i >= 0 and divide(
        ints, floats, i, category, state, q, chosen, point_q, point, here, there, reals_here, reals_there
    ):
        return top + 2
    return top + 2 if by_label(ints, p, labels, T.floats[_VALUE][:K], chosen, mixed, here, there) else top
