"""The best set at a price: the least L(S) - mu p(S) over sets that hold some labels and leave out others.

Open branches wait on a stack, the one of the set just found on top. A branch ends where its bound is no better than the
best set known, where its set costs what the minorant says, or where nothing in it is free. Whatever the loss, all sets
are covered; with the budget used up, the least bound of what is left open tells how much better another set could be.

Of min(L, c) branches are those of L; beside them there is one set more, all labels at the limit c.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill, order_by, put
from udcp_solvers.search.bound import (
    ALL_WITH_ROW,
    ALL_WITHOUT_ROW,
    BASE_ROW,
    CAP,
    CHANGE_ROW,
    EVERYONE_ROW,
    FACTOR_OF_ROW,
    FACTORS_ROW,
    HIGH_ROW,
    LABELS_ROW,
    LOOKED,
    LOW_ROW,
    ORDER_ROW,
    POINT_Q_ROW,
    POINT_ROW,
    POINT_STATE_ROW,
    QHIGH_ROW,
    QLOW_ROW,
    SPARE_ROW,
    STATE_ROW,
    TOUCHED_ROW,
    TRIAL_ROW,
    V_ROW,
    VALUE_ROW,
    WAITING_ROW,
    WITH_ROW,
    WITHOUT_ROW,
    WORTH_ROW,
    Scratch,
    bounded,
    ended,
    margins,
)
from udcp_solvers.search.branching import branching_operation, by_label, decidable_operand, divide, nearest
from udcp_solvers.search.forest_minimum import settle
from udcp_solvers.search.intervals import cost_beside, intervals, touch
from udcp_solvers.search.layout import (
    CODE,
    CONSTANTS,
    COSTS,
    FARTHEST,
    FIRST,
    FREE,
    IN,
    LABEL_CATEGORIES,
    LABEL_STARTS,
    LARGER,
    LEAST,
    NUMBERS,
    OUT,
    PAIRS,
    TOUCHED,
    WORST,
    Floats,
    Ints,
    Marks,
    counted_of,
    limit_of,
    numbers,
    part,
    sizes_of,
)
from udcp_solvers.search.lines import AT as _AT
from udcp_solvers.search.lines import COUNTED, next_line
from udcp_solvers.search.lines import LEFT as _LEFT

# Values closer than this, relative to what they are made of, are equal.
NEAR = 1e-12
# Labels that are tried, one by one, to better the set of the first branch: twice as many of a sum of many labels, where
# a trial is quick and a better set ends many branches.
_NEAR_LABELS, _MANY_LABELS = 8, 256
# With so many free labels at most a table of their number is optimised count by count.
_COUNTABLE = 64
# Of trees of so few branches it is known what changes of labels make of them.
_FEW_BRANCHES = 8
# How often a line is moved at most, in the first branch and in others.
_FIRST_MOVES, _MOVES = 14, 5


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
    how much another set may be better at most: 0 unless the budget of branches was used up. `T.margin` is filled for
    the labels that are free.
    """
    K, C, Q, N = sizes_of(ints)
    adds = numbers(ints, floats, LEAST)
    chosen, root, worth = T.small[0], T.small[1], T.floats[WORTH_ROW][:K]
    state, point_state = T.ints[STATE_ROW][:C], T.ints[POINT_STATE_ROW][:C]
    point_q, point = T.floats[POINT_Q_ROW][:Q], T.floats[POINT_ROW][:N]
    base, touched = T.floats[BASE_ROW][:Q], T.ints[TOUCHED_ROW][:C]
    put(base, numbers(ints, floats, CONSTANTS))
    fill(touched, 0)
    many, scale, heaviest = 0, span, 0.0
    for y in range(K):
        root[y] = fixed[y]
        if fixed[y] == FREE:
            T.margin[y] = adds[y] - mu * p[y]
            if T.margin[y] > 0.0 or (p[y] == 0.0 and adds[y] >= 0.0):
                root[y] = OUT
            elif mu * p[y] > (1.0 + 1e-9) * span and p[y] > 0.0:
                root[y] = IN
                T.margin[y] = mu * p[y] - span
        if root[y] != OUT:
            T.ints[LABELS_ROW, many] = y
            many += 1
            # What every set has does not count: beside it small values would lose their digits.
            worth[y] = mu * p[y] if root[y] == FREE else 0.0
            scale += worth[y]
            heaviest = max(heaviest, worth[y])
    fill(chosen, 0)
    labels, everyone, _ = _fewer(
        ints, floats, root, T.ints[LABELS_ROW][:many], T.ints[EVERYONE_ROW], worth, base, touched, chosen
    )
    for row in (WITH_ROW, WITHOUT_ROW):
        fill(T.floats[row], -np.inf)
    for row in (ALL_WITH_ROW, ALL_WITHOUT_ROW):
        fill(T.floats[row], np.inf)
    fill(T.marks[0], 0)
    put(T.marks[0][:K], root)
    fill(T.reals[0], -np.inf)
    fill(T.reals[0][Q : 2 * Q], np.inf)
    put(T.reals[0][2 * Q : 3 * Q + N], T.warm)
    best, ceiling = np.inf, np.inf
    capped = limit_of(ints)
    if capped >= 0:
        T.marks[0][K + C + N - 1] = FIRST
        ceiling = numbers(ints, floats, NUMBERS)[2 * capped]
        for y in range(K):
            if fixed[y] == FREE and root[y] != IN:
                ceiling -= mu * p[y]
                scale += mu * p[y] if root[y] == OUT else 0.0
    slack = NEAR * scale
    if started and _agrees(found, root):
        best = _net(ints, floats, base, touched, worth, found, labels, everyone, point_state, point_q, point)
    top, looked = 1, 0
    by_sum = _is_sum(ints)
    room_of_ties = slack if ties else -slack
    open_bound, shift = np.inf, 0.0
    # Whether every branch that ended so far told what changes make of it, and nothing was settled.
    told = True
    while top > 0:
        top -= 1
        marks, reals = T.marks[top], T.reals[top]
        limit = min(best, ceiling) + room_of_ties
        bound = reals[3 * Q + N]
        if bound >= limit:
            if told:
                ended(bound, -np.inf, marks, labels, T)
            continue
        if looked >= budget:
            open_bound = min(open_bound, bound)
            told = False
            continue
        looked += 1
        told = told and looked <= _FEW_BRANCHES
        x, said, decided = marks[:K], marks[K : K + C], marks[K + C :]
        ends, q = T.floats[LOW_ROW : HIGH_ROW + 1, :N], T.floats[QLOW_ROW : QHIGH_ROW + 1, :Q]
        if not touch(ints, x, said, labels, touched, state):
            continue
        if not intervals(ints, floats, base, x, decided, reals[: 2 * Q], labels, everyone, state, q, ends):
            continue
        lines = reals[2 * Q : 3 * Q + N]
        T.search[_AT] = -1.0
        T.search[_LEFT] = _FIRST_MOVES if looked == 1 else _MOVES
        T.search[COUNTED] = _countable(ints, x, labels, by_sum)
        solved, again, last = False, True, False
        while again:
            value = bounded(ints, floats, p, marks, lines, labels, everyone, T)
            better = value > bound
            bound = max(bound, value)
            if bound >= limit:
                break
            cost = _net(ints, floats, base, touched, worth, chosen, labels, everyone, point_state, point_q, point)
            if cost < best - slack or (ties and cost <= best + slack and _comes_first(p, chosen, found, best < np.inf)):
                best = min(best, cost)
                put(found, chosen)
                limit = min(best, ceiling) + room_of_ties
            if cost <= value + slack:
                solved = not ties
                break
            at_root = last and T.search[COUNTED] < 0.0
            again = not last and next_line(
                ints, floats, lines, reals[: 2 * Q], q, ends, point_q, point, heaviest, value, limit,
                T.floats[FACTOR_OF_ROW][:N], T.search,
            )  # fmt: skip
            if not again and not last and looked == 1 and T.search[COUNTED] < 0.0:
                # What is settled in the first branch, at its best lines, is so in all.
                at_root = value == bound
                again = last = not at_root
            if at_root:
                best = _polished(
                    ints, floats, base, touched, worth, x, labels, everyone, T.floats[VALUE_ROW][:K], found, best,
                    slack, point_state, point_q, point, T.ints[ORDER_ROW], T.ints[SPARE_ROW], T.floats[TRIAL_ROW],
                    2 * _NEAR_LABELS if by_sum and K > _MANY_LABELS else _NEAR_LABELS,
                )  # fmt: skip
                limit = min(best, ceiling) + room_of_ties
                margins(value, labels, T)
            room = limit - value
            settles = at_root or (better and not told and looked > 1)
            if (
                settles
                and T.search[CAP] > room
                and settle(ints, x, said, labels, state, T.floats[V_ROW][:C], chosen, T.floats[CHANGE_ROW][:K], room)
            ):
                told = False
                if not touch(ints, x, said, labels, touched, state):
                    bound = np.inf
                    break
            if not again and T.search[COUNTED] < 0.0:
                # Lines have settled what they could: few labels may be left.
                T.search[COUNTED] = _countable(ints, x, labels, by_sum)
                again = T.search[COUNTED] >= 0.0
        if looked == 1:
            put(T.warm, lines)
        if solved or bound >= limit:
            if told:
                ended(bound, value, marks, labels, T)
            continue
        if looked == 1:
            labels, everyone, shift = _fewer(
                ints, floats, x, labels, T.ints[EVERYONE_ROW], worth, base, touched, chosen
            )
            best += shift
            ceiling += shift
            bound += shift
        reals[3 * Q + N] = bound
        end = _divided(ints, floats, p, top, labels, T)
        if told and end == top:
            ended(bound, -np.inf, marks, labels, T)
        top = end
    T.search[LOOKED] = looked
    least = min(best, ceiling)
    gap = least - min(least, open_bound)
    gap = gap if gap > slack else 0.0
    at_limit = False
    if capped >= 0 and ceiling <= best + slack:
        for y in range(K):
            chosen[y] = IN if fixed[y] == IN or (fixed[y] == FREE and p[y] > 0.0) else 0
        at_limit = ceiling < best - slack or _comes_first(p, chosen, found, best < np.inf)
        if at_limit:
            put(found, chosen)
    for y in range(K):
        if fixed[y] == FREE:
            other, of_all = (WITHOUT_ROW, ALL_WITHOUT_ROW) if found[y] == IN else (WITH_ROW, ALL_WITH_ROW)
            if root[y] == FREE:
                lowest = max(T.floats[other, y], T.floats[of_all, y] if told else -np.inf)
                T.margin[y] = max(lowest - least + shift, -gap)
            elif at_limit and root[y] == OUT:
                T.margin[y] = 0.0
            if capped >= 0:
                T.margin[y] = min(T.margin[y], ceiling - least + (mu * p[y] if found[y] == IN else 0.0))
    return gap


@jit
def repeats(p: Floats, least: Floats, order: Ints, spare: Ints) -> bool:
    """Whether two labels that may be in a best set have the same mass."""
    K, many = len(p), 0
    for y in range(K):
        order[y] = y
    order_by(p, order[:K], spare)
    for n in range(K):
        y = order[n]
        many += (p[y] == 0.0 and least[y] < 0.0) or (n > 0 and p[y] > 0.0 and p[y] == p[order[n - 1]])
    return many > 0


@jit
def _is_sum(ints: Ints) -> bool:
    """Whether quantities are all that a loss is made of: no hard atom asks which labels are in."""
    code = part(ints, CODE)
    hard = 0
    for i in range(len(code) // 4):
        hard += code[4 * i] in (WORST, FARTHEST, PAIRS)
    return hard == 0


@jit
def _countable(ints: Ints, x: Marks, labels: Ints, by_sum: bool) -> float:
    """The table that is optimised count by count, where few labels are free; -1 for none."""
    free = 0
    for y in labels:
        free += x[y] == FREE
    return float(counted_of(ints)) if by_sum and free <= _COUNTABLE else -1.0


@jit
def _polished(
    ints: Ints,
    floats: Floats,
    base: Floats,
    touched: Ints,
    worth: Floats,
    x: Marks,
    labels: Ints,
    everyone: Ints,
    value: Floats,
    found: Marks,
    best: float,
    slack: float,
    state: Ints,
    q: Floats,
    point: Floats,
    near: Ints,
    spare: Ints,
    distance: Floats,
    most: int,
) -> float:
    """Let free labels into the set found, or out of it, one by one, where that makes it better: those that hardly pay,
    or hardly do not. What it costs then, less what it is worth."""
    free = 0
    for y in labels:
        if x[y] == FREE:
            near[free], distance[y] = y, abs(value[y])
            free += 1
    order_by(distance, near[:free], spare)
    many = min(free, most)
    n, since = 0, 0
    while since < many:
        y = near[n % many]
        found[y] = IN if found[y] != IN else 0
        cost = _net(ints, floats, base, touched, worth, found, labels, everyone, state, q, point)
        since += 1
        if cost < best - slack:
            best, since = cost, 0
        else:
            found[y] = IN if found[y] != IN else 0
        n += 1
    return best


@jit
def _fewer(
    ints: Ints,
    floats: Floats,
    x: Marks,
    labels: Ints,
    everyone: Ints,
    worth: Floats,
    base: Floats,
    touched: Ints,
    chosen: Marks,
) -> tuple[Ints, Ints, float]:
    """Labels that are fixed in every branch no longer go along: what those that are in cost and touch is noted. The
    labels that stay; everyone: these and those that are in; what the others are worth, which counts no more."""
    costs = numbers(ints, floats, COSTS)
    starts, of = part(ints, LABEL_STARTS), part(ints, LABEL_CATEGORIES)
    K = len(x)
    many, held, gone = 0, 0, 0.0
    for y in labels:
        if x[y] == FREE:
            labels[many] = y
            many += 1
            continue
        chosen[y] = x[y] == IN
        if x[y] == IN:
            gone += worth[y]
            for j in range(len(base)):
                base[j] += costs[j * K + y]
            for e in range(starts[y], starts[y + 1]):
                touched[of[e]] = TOUCHED
    put(everyone[:many], labels[:many])
    for y in range(K):
        if x[y] == IN:
            everyone[many + held] = y
            held += 1
    return labels[:many], everyone[: many + held], gone


@jit
def _net(
    ints: Ints,
    floats: Floats,
    base: Floats,
    touched: Ints,
    worth: Floats,
    chosen: Marks,
    labels: Ints,
    everyone: Ints,
    state: Ints,
    q: Floats,
    point: Floats,
) -> float:
    """What a set costs, less what it is worth."""
    gained = 0.0
    for y in labels:
        if chosen[y] == IN:
            gained += worth[y]
    put(state, touched)
    put(q, base)
    return cost_beside(ints, floats, chosen, labels, everyone, state, q, point) - gained


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
    put(here, there)
    put(reals_here, reals_there)
    state, chosen = T.ints[STATE_ROW][:C], T.small[0]
    ends, q = T.floats[LOW_ROW : HIGH_ROW + 1, :N], T.floats[QLOW_ROW : QHIGH_ROW + 1, :Q]
    point_q, point = T.floats[POINT_Q_ROW][:Q], T.floats[POINT_ROW][:N]
    i, category = branching_operation(
        ints, floats, here[K + C :], reals_here[2 * Q :], state, q, ends, chosen, point_q, point,
        int(T.search[COUNTED]), T.ints[WAITING_ROW], T.floats[FACTORS_ROW],
    )  # fmt: skip
    mixed = i >= 0 and part(ints, CODE)[4 * i] == LARGER
    if i >= 0 and category < 0:
        i = decidable_operand(ints, i, ends, point)
    if mixed:
        category = nearest(ints, labels, here[:K], state, T.floats[VALUE_ROW][:K], T.floats[V_ROW][:C])
    if i >= 0 and divide(
        ints, floats, i, category, state, q, chosen, point_q, point, here, there, reals_here, reals_there
    ):
        return top + 2
    return top + 2 if by_label(ints, p, labels, T.floats[VALUE_ROW][:K], chosen, mixed, here, there) else top
