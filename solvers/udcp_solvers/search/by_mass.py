"""The cheapest set that has a mass: branch and bound over labels, bounded by prices.

With g(mu) the least L(S) - mu p(S) among the sets that agree with the labels fixed so far, a set of mass t costs at
least g(mu) + mu t, for every price mu >= 0. Each set known is a line L(S) + mu (t - p(S)) above that bound; the price
asked next is where the lines of a set that is short of t and of one that is not meet. A branch ends where its bound is
no better than the cheapest set known that has the mass; else a label is put in or left out, the heaviest of those in
which the two sets that meet differ. Where the loss takes values on a grid, bounds are rounded up to it.

What is asked next depends on the answer: `_begin` and `_advance` say so, and best sets are found in one place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import plus
from udcp_solvers.numeric.filling import fill, order_by, put
from udcp_solvers.search.best import best_set, repeats
from udcp_solvers.search.bound import LOOKED, ORDER_ROW, SPARE_ROW, Scratch, scratch_of
from udcp_solvers.search.intervals import cost_of
from udcp_solvers.search.layout import FREE, IN, LEAST, OUT, TWIN, Floats, Ints, Marks, numbers, part, size_numbers

# Prices that are asked for in the first branch, and in others.
_FIRST_ASKS, _ASKS = 40, 3
# Costs are equal that differ by less than this part of them, and of all that the loss may vary.
_NEAR, _NEAR_SPAN = 1e-10, 1e-11
# How far below a point of the grid rounding may leave a bound, in steps; and the most steps that floats tell apart.
_BELOW, _MANY_STEPS = 1e-6, 1e8

# Places: the branch at hand, the one that it is half of, the best set known and one to try; then those that wait.
_HERE, _WHOLE_BRANCH, _BEST, _TRIAL, _WAITING = range(5)
# Of a place: labels that are fixed, the set that is short, the one that has the mass.
_FIXED, _SHORT, _HAS = range(3)
_BOUND, _SHORT_COST, _SHORT_OVER, _HAS_COST, _HAS_OVER = range(5)
# What is kept: branches that wait, those looked at here and in finding best sets, how many may be, prices still to be
# asked, which half, the label that divides, whether every set of the branch has the mass.
_COUNT, _WORK, _BUDGET, _LEFT, _HALF, _LABEL, _SETTLED = range(7)
# The first branch, the half with the label, the one without.
_ROOT, _WITH, _WITHOUT = range(3)
# The mass, the cost of the best set, the price, the height at which two lines meet.
_T, _LEAST, _MU, _VALUE, _SPAN, _OFFSET, _STEP = range(7)


class Branches(NamedTuple):
    """Branches of one row by place: `marks` (places, 3, K), `reals` (places, 5); what is kept; room for costs."""

    marks: Marks
    reals: Floats
    at: Ints
    kept: Floats
    order: Ints
    every: Ints
    state: Ints
    q: Floats
    point: Floats


def mass_block(
    start: int,
    stop: int,
    ints: Ints,
    floats: Floats,
    P: Floats,
    t: Floats,
    branches: int,
    span: float,
    budget: int,
    masks: Marks,
    gaps: Floats,
    fixed: Marks,
    grid: Floats,
) -> None:
    """`mass_rows`, with room of its own. `grid`: the offset and step of what the loss costs; a step of 0 for none."""
    K = P.shape[1]
    W, p, found = _branches_of(ints, branches, span, grid), np.empty(K), np.zeros(K, np.int8)
    rest = (P, t, branches, span, budget, masks, gaps, fixed)
    mass_rows(start, stop, ints, floats, scratch_of(ints), W, p, found, *rest)


@jit
def mass_rows(
    start: int,
    stop: int,
    ints: Ints,
    floats: Floats,
    T: Scratch,
    W: Branches,
    p: Floats,
    found: Marks,
    P: Floats,
    t: Floats,
    branches: int,
    span: float,
    budget: int,
    masks: Marks,
    gaps: Floats,
    fixed: Marks,
) -> None:
    """Fill masks (n, K) with the cheapest sets of the masses t (n,), found within so many branches, each of whose best
    sets takes at most the budget; gaps (n,): by how much a set may be cheaper.

    `fixed` (n, K): labels that the set holds or leaves out.
    """
    K = len(p)
    for n in range(start, stop):
        put(p, P[n])
        ties = repeats(p, numbers(ints, floats, LEAST), T.ints[ORDER_ROW], T.ints[SPARE_ROW])
        more = _begin(ints, floats, W, p, t[n], fixed[n], branches, found, T)
        while more:
            fill(T.warm, 0.0)
            fill(T.margin, np.inf)
            gap = best_set(
                ints, floats, p, W.kept[_MU], W.marks[_HERE, _FIXED], span, max(budget, 1), ties, T, found, True
            )
            cost = _cost(ints, floats, W, found)
            more = _advance(ints, floats, W, p, found, cost, gap, int(T.search[LOOKED]))
        gaps[n] = _gap_of(W)
        for k in range(K):
            masks[n, k] = W.marks[_BEST, _HAS, k] == IN


def _branches_of(ints: Ints, budget: int, span: float, grid: Floats) -> Branches:
    """Room for the branches of a row."""
    K, C, Q, N = size_numbers(ints)[:4]
    places = _WAITING + budget + 3
    kept = np.zeros(7)
    kept[_SPAN], kept[_OFFSET], kept[_STEP] = span, grid[0], grid[1]
    return Branches(
        np.zeros((places, 3, K), np.int8), np.zeros((places, 5)), np.zeros(7, np.int64), kept, np.arange(K),
        np.arange(K), np.zeros(C, np.int64), np.zeros(Q), np.zeros(N),
    )  # fmt: skip


@jit
def _begin(
    ints: Ints, floats: Floats, W: Branches, p: Floats, t: float, inside: Marks, budget: int, found: Marks, T: Scratch
) -> bool:
    """The first question of a row, about the sets that agree with `inside`; `found` is a set to begin with. False where
    there is none."""
    fill(W.at, 0)
    W.at[_BUDGET] = budget
    W.kept[_T], W.kept[_LEAST] = t, np.inf
    for k in range(len(p)):
        W.order[k] = k
    order_by(p, W.order, T.ints[SPARE_ROW])
    put(W.marks[_HERE, _FIXED], inside)
    W.at[_HALF] = _ROOT
    return _open(ints, floats, W, p, found, False)


@jit
def _gap_of(W: Branches) -> float:
    """By how much a set may be cheaper than the best one."""
    bound = W.kept[_LEAST]
    for i in range(_WAITING, _WAITING + W.at[_COUNT]):
        bound = min(bound, W.reals[i, _BOUND])
    return W.kept[_LEAST] - bound if bound < _enough(W) else 0.0


@jit
def _advance(
    ints: Ints, floats: Floats, W: Branches, p: Floats, found: Marks, cost: float, gap: float, work: int
) -> bool:
    """Take in the best set at the price asked for, and ask the next question; False where the row is done.

    `work`: the branches that it took to find the set.
    """
    W.at[_WORK] += work
    here = W.reals[_HERE]
    over = _over(W, p, found)
    _consider(W, found, cost, over)
    if W.at[_SETTLED] == 1:
        if gap > 0.0 and cost - gap < _enough(W):
            here[_BOUND] = cost - gap
            _put(W, _SHORT, found, cost, over)
            _put(W, _HAS, found, cost, over)
            _wait(W)
        return _next(ints, floats, W, p, found)
    line = cost - W.kept[_MU] * over
    here[_BOUND] = max(here[_BOUND], _rounded_up(W, line - gap))
    if here[_BOUND] < _enough(W) and line < W.kept[_VALUE] - _near(W, W.kept[_VALUE]) and W.at[_LEFT] > 0:
        _put(W, _SHORT if over < 0.0 else _HAS, found, cost, over)
        _improve(ints, floats, W, p)
        W.at[_LEFT] -= 1
        _meet(W, found)
        return True
    if here[_BOUND] < _enough(W):
        _wait(W)
    return _next(ints, floats, W, p, found)


@jit
def _next(ints: Ints, floats: Floats, W: Branches, p: Floats, found: Marks) -> bool:
    """Go on to the other half, or to the branch of least bound; False where none can hold a better set."""
    while True:
        if W.at[_HALF] == _WITH:
            W.at[_HALF] = _WITHOUT
        else:
            least = -1
            for i in range(_WAITING, _WAITING + W.at[_COUNT]):
                if least < 0 or W.reals[i, _BOUND] < W.reals[least, _BOUND]:
                    least = i
            if least < 0 or W.at[_WORK] >= W.at[_BUDGET] or W.reals[least, _BOUND] >= _enough(W):
                return False
            last = _WAITING + W.at[_COUNT] - 1
            _copy(W, least, _WHOLE_BRANCH)
            _copy(W, last, least)
            W.at[_COUNT] -= 1
            W.at[_LABEL] = _divides(W, p)
            W.at[_HALF] = _WITH
        W.at[_WORK] += 1
        _copy(W, _WHOLE_BRANCH, _HERE)
        _halve(ints, W, p)
        if _open(ints, floats, W, p, found, True):
            return True


@jit
def _halve(ints: Ints, W: Branches, p: Floats) -> None:
    """Fix the label that divides; of interchangeable ones the likelier come first, then those of lower index."""
    twin, fixed, y = part(ints, TWIN), W.marks[_HERE, _FIXED], W.at[_LABEL]
    for k in range(len(p)):
        if twin[k] == twin[y] and fixed[k] == FREE:
            before = p[k] > p[y] or (p[k] == p[y] and k < y)
            if W.at[_HALF] == _WITH and (before or k == y):
                fixed[k] = IN
            elif W.at[_HALF] == _WITHOUT and not before:
                fixed[k] = OUT


@jit
def _open(ints: Ints, floats: Floats, W: Branches, p: Floats, found: Marks, half: bool) -> bool:
    """Begin the branch at hand: with the two sets of the whole, `half` of which it is, the least and the largest set.

    False where no set of it has the mass.
    """
    here, fixed, trial = W.reals[_HERE], W.marks[_HERE, _FIXED], W.marks[_TRIAL]
    if not half:
        here[_BOUND] = -np.inf
    W.at[_SETTLED] = 0
    for k in range(len(p)):
        trial[0, k] = IN if fixed[k] == IN else 0
        trial[1, k] = IN if fixed[k] != OUT else 0
    most_over = _over(W, p, trial[1])
    if most_over < 0.0:
        return False
    most = _cost(ints, floats, W, trial[1])
    _consider(W, trial[1], most, most_over)
    least_over = _over(W, p, trial[0])
    if least_over >= 0.0:  # every set of the branch has the mass
        W.at[_SETTLED] = 1
        W.kept[_MU] = 0.0
        put(found, trial[1])
        return True
    least = _cost(ints, floats, W, trial[0])
    kept_short, kept_has = half, half
    if half:
        for which in (_SHORT, _HAS):
            mine = W.marks[_HERE, which]
            changed = 0
            for k in range(len(p)):
                if fixed[k] != FREE and (mine[k] == IN) != (fixed[k] == IN):
                    mine[k] = IN if fixed[k] == IN else 0
                    changed += 1
            if changed > 0:
                here[1 + 2 * (which - 1)] = _cost(ints, floats, W, mine)
                here[2 + 2 * (which - 1)] = _over(W, p, mine)
                _consider(W, mine, here[1 + 2 * (which - 1)], here[2 + 2 * (which - 1)])
        kept_short, kept_has = here[_SHORT_OVER] < 0.0, here[_HAS_OVER] >= 0.0
        if not kept_short and not kept_has:  # they have changed places
            put(trial[2], W.marks[_HERE, _SHORT])
            cost, over = here[_SHORT_COST], here[_SHORT_OVER]
            _put(W, _SHORT, W.marks[_HERE, _HAS], here[_HAS_COST], here[_HAS_OVER])
            _put(W, _HAS, trial[2], cost, over)
            kept_short, kept_has = True, True
    if not kept_short:
        _put(W, _SHORT, trial[0], least, least_over)
    if not kept_has:
        _put(W, _HAS, trial[1], most, most_over)
    W.at[_LEFT] = _ASKS if half else _FIRST_ASKS
    _meet(W, found)
    return True


@jit
def _meet(W: Branches, found: Marks) -> None:
    """The price at which the two sets meet, and one of them to begin with."""
    here = W.reals[_HERE]
    mu = max(0.0, (here[_HAS_COST] - here[_SHORT_COST]) / (here[_HAS_OVER] - here[_SHORT_OVER]))
    W.kept[_MU] = mu
    short, has = here[_SHORT_COST] - mu * here[_SHORT_OVER], here[_HAS_COST] - mu * here[_HAS_OVER]
    W.kept[_VALUE] = min(short, has)
    put(found, W.marks[_HERE, _SHORT if short < has else _HAS])


@jit
def _divides(W: Branches, p: Floats) -> int:
    """The heaviest free label in which the sets that meet differ; where they do not, of all that are free."""
    marks, found = W.marks[_WHOLE_BRANCH], -1
    for alike in (False, True):
        for k in range(len(p)):
            differs = marks[_FIXED, k] == FREE and (alike or marks[_SHORT, k] != marks[_HAS, k])
            if differs and (found < 0 or p[k] > p[found]):
                found = k
        if found >= 0:
            break
    return found


@jit
def _wait(W: Branches) -> None:
    """The branch at hand waits, unless nothing in it is free."""
    free = 0
    for mark in W.marks[_HERE, _FIXED]:
        free += mark == FREE
    if free > 0:
        i = _WAITING + W.at[_COUNT]
        _copy(W, _HERE, i)
        W.at[_COUNT] += 1


@jit
def _improve(ints: Ints, floats: Floats, W: Branches, p: Floats) -> None:
    """Try what lies between the two sets: leave out what the one can do without, or add one label to the other."""
    here, short, has, trial = W.reals[_HERE], W.marks[_HERE, _SHORT], W.marks[_HERE, _HAS], W.marks[_TRIAL, 0]
    put(trial, has)
    cost, over = here[_HAS_COST], here[_HAS_OVER]
    for k in W.order:
        if trial[k] == IN and short[k] != IN and p[k] <= over:
            trial[k] = 0
            less = _cost(ints, floats, W, trial)
            if less < cost:
                cost, over = less, over - p[k]
            else:
                trial[k] = IN
    _consider(W, trial, cost, _over(W, p, trial))
    put(trial, short)
    for k in W.order:
        if has[k] == IN and short[k] != IN and p[k] >= -here[_SHORT_OVER]:
            trial[k] = IN
            _consider(W, trial, _cost(ints, floats, W, trial), _over(W, p, trial))
            trial[k] = 0


@jit
def _copy(W: Branches, of: int, to: int) -> None:
    """Put a branch in another place."""
    for which in range(3):
        put(W.marks[to, which], W.marks[of, which])
    put(W.reals[to], W.reals[of])


@jit
def _put(W: Branches, which: int, mask: Marks, cost: float, over: float) -> None:
    put(W.marks[_HERE, which], mask)
    W.reals[_HERE, 2 * which - 1], W.reals[_HERE, 2 * which] = cost, over


@jit
def _consider(W: Branches, mask: Marks, cost: float, over: float) -> None:
    """A set that has the mass may be the cheapest."""
    if over >= 0.0 and cost < W.kept[_LEAST]:
        W.kept[_LEAST] = cost
        for k in range(len(mask)):
            W.marks[_BEST, _HAS, k] = IN if mask[k] == IN else 0


@jit
def _cost(ints: Ints, floats: Floats, W: Branches, mask: Marks) -> float:
    return cost_of(ints, floats, mask, W.every, W.state, W.q, W.point)


@jit
def _over(W: Branches, p: Floats, mask: Marks) -> float:
    """The mass of a set less t."""
    high, low = -W.kept[_T], 0.0
    for k in range(len(p)):
        if mask[k] == IN:
            high, low = plus(high, low, p[k])
    return float(high + low)


@jit
def _enough(W: Branches) -> float:
    """Below this a bound may be of use."""
    least = float(W.kept[_LEAST])
    return least - _near(W, least) if least < np.inf else least


@jit
def _near(W: Branches, cost: float) -> float:
    return _NEAR * abs(cost) + _NEAR_SPAN * float(W.kept[_SPAN])


@jit
def _rounded_up(W: Branches, bound: float) -> float:
    """To the next value that the loss takes."""
    step, offset = float(W.kept[_STEP]), float(W.kept[_OFFSET])
    if step <= 0.0 or abs(bound - offset) > _MANY_STEPS * step:
        return bound
    return max(bound, float(offset + step * np.ceil((bound - offset) / step - _BELOW)))
