"""Prices of labels from best sets: the lower hull of all sets is traced, from the left, as far as it is wanted.

Between two sets of the hull the price at which their lines meet is asked for; a set that is better there is a point of
the hull between them, and if there is none, the two are neighbours (Eisner and Severance). A label's price is that of
the first set that has it.

With an anchor m, and S* the best set at m: labels of S* are priced among the subsets of S*, at most m; the others
above m, among the supersets of S*, or among all sets where the best sets up to m hold nothing beyond S*.

A row asks for one best set after another, and what it asks next depends on the answer: so it is a machine of few
states, and the search, which takes long to compile, is called in one place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.double_double import Double, plus, ratio
from udcp_solvers.search.best import LOOKED, NEAR, best_set, scratch_of
from udcp_solvers.search.by_mass import advance, begin, best_of, branches_of, fixed_of, gap_of, price_of
from udcp_solvers.search.intervals import cost_of
from udcp_solvers.search.layout import FREE, IN, OUT, Floats, Ints, Marks, sizes_of

# What is wanted of a row: every score, that of one label, the set at a threshold, the best set at the anchor alone, the
# cheapest set of a mass.
ALL, ONE, SET, BEST, MASS = range(5)

# Sets that wait at most; behind them the left end, the best set at the anchor, labels that are fixed, and these as they
# were, where they are changed for a while.
_WAIT = 48
_LEFT, _STAR, _FIXED, _SAVED = range(_WAIT + 2, _WAIT + 6)

# Stretches of hull that a row may ask for: of all sets, of subsets of S*, up to the anchor, and beyond it.
_PLAIN, _INSIDE, _UP_TO, _BEYOND = range(4)
# What was asked for: S*, the set at the threshold, a left end, a right end, one with the label, the last, one between.
_ASKED_STAR, _ASKED_SET, _ASKED_LEFT, _ASKED_RIGHT, _ASKED_WITH, _ASKED_LAST, _ASKED_BETWEEN = range(7)

# Up to a price this much higher a set may be bought at the price itself, but for rounding.
ABOVE = 1e-9
_NOTHING = 1e-6
# How often the price at which a label is bought is guessed higher, before the last set is asked for.
_GUESSES = 12


class Row(NamedTuple):
    """A row at hand: p, its scores and those kept from inside the anchor; sets and their costs; the machine's state.

    `at`: what was asked for, in which stretch, the set that is wanted next and whether it begins with one, how many
    wait, how often was guessed. `real`: the price asked for, the last price, how much the loss may vary.
    """

    p: Floats
    score: Floats
    kept: Floats
    hold: Marks
    cost: Floats
    at: Ints
    real: Floats


_ASKED, _STRETCH, _TO, _STARTED, _TOP, _GUESSED = range(6)
_MU, _PRICE, _SPAN = range(3)


@jit
def price_rows(
    start: int,
    stop: int,
    ints: Ints,
    floats: Floats,
    P: Floats,
    face: int,
    anchor: Floats,
    y: Ints,
    tau: Floats,
    span: float,
    budget: int,
    scores: Floats,
    masks: Marks,
    gaps: Floats,
    fixed: Marks,
    grid: Floats,
) -> None:
    """Fill scores (n, K), scores (n, 1) of the labels y, masks (n, K) at the thresholds tau, of the best sets at the
    anchors, or of the cheapest sets of the masses tau within y branches, by `face`.

    `anchor` is (n,), below 0 for none. `gaps` (n,) says by how much a better set may have been missed, with the budget
    of branches used up; 0 where all is exact. `fixed` (n, K), or none: labels that a best set, or one of a mass, holds
    or leaves out. `grid`: the offset and step of what the loss costs; a step of 0 for none.
    """
    K, C, Q, N = sizes_of(ints)
    T = scratch_of(ints)
    R = Row(
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.zeros((_SAVED + 1, K), np.int8),
        np.zeros(_SAVED + 1),
        np.zeros(6, np.int64),
        np.zeros(3),
    )
    every, state, q, point = np.arange(K), np.zeros(C, np.int64), np.zeros(Q), np.zeros(N)
    R.real[_SPAN] = span
    W = branches_of(ints, y[start] if face == MASS else 0, span, grid)
    for n in range(start, stop):
        for k in range(K):
            R.p[k] = P[n, k]
        ties = _repeats(R.p)
        gaps[n] = 0.0
        # A set may be bought at the threshold itself, but for rounding.
        upper = tau[n] * (1.0 + ABOVE) if face == SET else np.inf
        if face == MASS:
            R.at[_TO], R.at[_STARTED] = 0, 1
            more = begin(ints, floats, W, R.p, tau[n], fixed[n], y[n], R.hold[0])
        else:
            more = _begin(R, face, anchor[n], tau[n])
            if len(fixed) > 0:
                R.hold[_FIXED] = fixed[n]
        while more:
            if face == MASS:
                R.hold[_FIXED], R.real[_MU] = fixed_of(W), price_of(W)
            to = R.at[_TO]
            gap = best_set(
                ints, floats, R.p, R.real[_MU], R.hold[_FIXED], span, budget, ties, T, R.hold[to], R.at[_STARTED] == 1
            )
            gaps[n] = max(gaps[n], gap)
            R.cost[to] = cost_of(ints, floats, R.hold[to], every, state, q, point)
            if face == MASS:
                more = advance(ints, floats, W, R.p, R.hold[0], R.cost[0], gap, int(T.search[LOOKED]))
                continue
            if R.at[_ASKED] == _ASKED_LEFT and face == ONE:
                # What the label would add to the left end: its price is guessed from it.
                R.hold[_SAVED] = R.hold[_LEFT]
                R.hold[_SAVED, y[n]] = IN
                R.cost[_SAVED] = cost_of(ints, floats, R.hold[_SAVED], every, state, q, point)
            more = _advance(R, face, anchor[n], y[n], upper)
        if face == ALL:
            for k in range(K):
                scores[n, k] = R.score[k]
        elif face == ONE:
            scores[n, 0] = R.score[y[n]]
        elif face == SET:
            for k in range(K):
                masks[n, k] = R.score[k] <= tau[n]
        elif face == MASS:
            gaps[n] = gap_of(W)
            for k in range(K):
                masks[n, k] = best_of(W)[k] == IN
        else:
            for k in range(K):
                masks[n, k] = R.hold[_STAR, k] == IN


@jit
def _repeats(p: Floats) -> bool:
    ordered = np.sort(p)
    return bool((ordered[1:] == ordered[:-1]).any())


@jit
def _ask(R: Row, what: int, mu: float, to: int, started: int) -> bool:
    R.at[_ASKED], R.at[_TO], R.at[_STARTED] = what, to, started
    R.real[_MU] = mu
    return True


@jit
def _begin(R: Row, face: int, m: float, tau: float) -> bool:
    """The first question of a row; False if there is none."""
    R.score[:] = np.inf
    R.hold[_FIXED] = FREE
    if face == SET and (tau < 0.0 or tau == np.inf):
        return False
    if face == BEST or m >= 0.0:
        return _ask(R, _ASKED_STAR, m if face == BEST else max(m, _lowest(R)), _STAR, 0)
    return _stretch(R, _PLAIN, m, True)


@jit
def _stretch(R: Row, stretch: int, m: float, nested: bool) -> bool:
    """Begin a stretch of hull: which labels are fixed, and where it starts."""
    R.at[_STRETCH], R.at[_TOP], R.at[_GUESSED] = stretch, 0, 0
    star, fixed = R.hold[_STAR], R.hold[_FIXED]
    for k in range(len(R.p)):
        fixed[k] = FREE
        if stretch == _INSIDE and star[k] != IN:
            fixed[k] = OUT
        if stretch == _BEYOND and not nested and star[k] == IN:
            fixed[k] = IN
    if stretch == _BEYOND:
        R.hold[_LEFT], R.cost[_LEFT] = star, R.cost[_STAR]
        R.real[_PRICE] = m
        _enter(R, _LEFT, m)
        return False
    R.real[_PRICE] = 0.0
    return _ask(R, _ASKED_LEFT, _lowest(R), _LEFT, 0)


@jit
def _lowest(R: Row) -> float:
    """A price that stands for 0: of the cheapest sets the heaviest is the best at it."""
    return ABOVE * R.real[_SPAN] if R.real[_SPAN] > 0.0 else 1.0


@jit
def _advance(R: Row, face: int, m: float, y: int, upper: float) -> bool:
    """Take in the answer and ask the next question; False where the row is done."""
    asked, stretch = R.at[_ASKED], R.at[_STRETCH]
    if asked == _ASKED_STAR:
        if face == BEST:
            return False
        if face == ALL or (face == ONE and R.hold[_STAR, y] == IN) or (face == SET and upper < m):
            return _stretch(R, _INSIDE, m, True)
        if face == SET:
            return _ask(R, _ASKED_SET, upper, 0, 0)
        return _stretch(R, _UP_TO, m, True)
    if asked == _ASKED_SET:
        if not _same(R.hold[0], R.hold[_STAR]):
            return _stretch(R, _UP_TO, m, True)
        for k in range(len(R.p)):
            R.score[k] = m if R.hold[_STAR, k] == IN else np.inf
        return False
    done = False
    if asked == _ASKED_LEFT:
        _enter(R, _LEFT, 0.0)
        done = face == ONE and stretch != _UP_TO and R.score[y] < np.inf
        if not done and _right(R, face, y, upper):
            return True
    elif asked == _ASKED_WITH and R.hold[0, y] != IN:
        if _guess(R, y, 4.0 * R.real[_MU]):
            return True
        return _last(R)
    elif asked == _ASKED_LAST:
        R.hold[_FIXED] = R.hold[_SAVED]
    elif asked == _ASKED_BETWEEN:
        done = _between(R, y if face == ONE and stretch != _UP_TO else -1, upper)
    while not done:
        if _meet(R):
            return True
        # The stretch is at its end; another may follow.
        done = True
    return _finish(R, face, m, y, upper)


@jit
def _right(R: Row, face: int, y: int, upper: float) -> bool:
    """Ask for the right end of a stretch; False where it is S*."""
    stretch = R.at[_STRETCH]
    if stretch in (_UP_TO, _INSIDE):
        R.hold[0], R.cost[0] = R.hold[_STAR], R.cost[_STAR]
        return False
    # At prices near 0 the mass of unlikely labels is worth less than rounding.
    if face == SET and upper > _NOTHING * R.real[_SPAN]:
        return _ask(R, _ASKED_RIGHT, upper, 0, 0)
    if face == ONE:
        more = max(R.cost[_SAVED] - R.cost[_LEFT], 0.0) + ABOVE * R.real[_SPAN]
        if R.p[y] > 0.0 and _guess(R, y, more / R.p[y]):
            return True
    return _last(R)


@jit
def _guess(R: Row, y: int, mu: float) -> bool:
    """Ask for the set at a price at which a label may be bought, unless it is surely in the last set only."""
    R.at[_GUESSED] += 1
    if R.at[_GUESSED] > _GUESSES or mu * R.p[y] > R.real[_SPAN] or mu > 1e300:
        return False
    return _ask(R, _ASKED_WITH, mu, 0, 0)


@jit
def _last(R: Row) -> bool:
    """Ask for the set at prices without end: the cheapest of the heaviest."""
    R.hold[_SAVED] = R.hold[_FIXED]
    for k in range(len(R.p)):
        if R.hold[_FIXED, k] == FREE and R.p[k] > 0.0:
            R.hold[_FIXED, k] = IN
    return _ask(R, _ASKED_LAST, 0.0, 0, 0)


@jit
def _meet(R: Row) -> bool:
    """Ask for the set where the left end and the next that waits meet; False where none waits."""
    while R.at[_TOP] >= 0:
        top = R.at[_TOP]
        gain, gain_low = _mass_between(R.p, R.hold[_LEFT], R.hold[top])
        if gain > 0.0:
            at = max(ratio(R.cost[top] - R.cost[_LEFT], 0.0, gain, gain_low), R.real[_PRICE])
            R.hold[top + 1] = R.hold[top]
            return _ask(R, _ASKED_BETWEEN, at, top + 1, 1)
        _go_on(R)
    return False


@jit
def _go_on(R: Row) -> None:
    """The next set that waits becomes the left end."""
    top = R.at[_TOP]
    R.hold[_LEFT], R.cost[_LEFT] = R.hold[top], R.cost[top]
    R.at[_TOP] = top - 1


@jit
def _between(R: Row, y: int, upper: float) -> bool:
    """Take in the best set where two meet; whether the stretch is done: label y is bought, or prices are above."""
    top = R.at[_TOP]
    m, at = top + 1, R.real[_MU]
    gain, _ = _mass_between(R.p, R.hold[_LEFT], R.hold[m])
    rise, step = R.cost[top] - R.cost[_LEFT], R.cost[m] - R.cost[_LEFT]
    slack = NEAR * (R.real[_SPAN] + abs(rise) + abs(step))
    if gain > 0.0 and step - at * gain < -slack and not _same(R.hold[m], R.hold[top]):
        if m < _WAIT:
            R.at[_TOP] = m
        else:  # no room: the end before is forgotten, and found again from here
            R.hold[top], R.cost[top] = R.hold[m], R.cost[m]
        return False
    if at > upper:
        return True
    R.real[_PRICE] = at
    _enter(R, top, at)
    _go_on(R)
    return y >= 0 and R.score[y] < np.inf


@jit
def _finish(R: Row, face: int, m: float, y: int, upper: float) -> bool:
    """Close a stretch, and begin the next; False where the row is done."""
    star, score = R.hold[_STAR], R.score
    stretch = R.at[_STRETCH]
    if stretch == _INSIDE:
        for k in range(len(score)):
            # Every label of S* is bought at m; in the set at a lower threshold only those that are found to be.
            score[k] = min(score[k], m) if score[k] < np.inf or (face != SET and star[k] == IN) else np.inf
        if face != ALL:
            return False
        R.kept[:] = score
        score[:] = np.inf
        return _stretch(R, _UP_TO, m, True)
    if stretch == _UP_TO:
        nested = True
        for k in range(len(score)):
            nested = nested and (score[k] == np.inf or star[k] == IN)
            score[k] = np.inf
        _stretch(R, _BEYOND, m, nested)
        return _right(R, face, y, upper)
    if stretch == _BEYOND:
        beyond = np.nextafter(m, np.inf)
        for k in range(len(score)):
            if star[k] == IN:
                score[k] = R.kept[k] if face == ALL else m
            elif score[k] < np.inf:
                score[k] = max(score[k], beyond)
    return False


@jit
def _enter(R: Row, which: int, price: float) -> None:
    """The labels of a set are bought at a price, if they are not yet."""
    for k in range(len(R.score)):
        if R.hold[which, k] == IN:
            R.score[k] = min(R.score[k], price)


@jit
def _same(a: Marks, b: Marks) -> bool:
    differ = 0
    for k in range(len(a)):
        differ += (a[k] == IN) != (b[k] == IN)
    return differ == 0


@jit
def _mass_between(p: Floats, a: Marks, b: Marks) -> Double:
    """How much more mass b has than a."""
    high, low = 0.0, 0.0
    for k in range(len(p)):
        if (a[k] == IN) != (b[k] == IN):
            high, low = plus(high, low, p[k] if b[k] == IN else -p[k])
    return high, low
