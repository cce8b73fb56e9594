"""Prices of labels from best sets: the lower hull of all sets is traced, from the left, as far as it is wanted.

Between two sets of the hull the price at which their lines meet is asked for; a set that is better there is a point of
the hull between them, and if there is none, the two are neighbours (Eisner and Severance). A label's price is that of
the first set that has it.

With an anchor m, and S* the best set at m: labels of S* are priced among the subsets of S*, at most m; the others
above m, among the supersets of S*, or among all sets where the best sets up to m hold nothing beyond S*.

A row asks for one best set after another, and what it asks next depends on the answer: so it is a machine of few
states, and the search, which takes long to compile, is called in one place. What is asked depends neither on the label
nor on the threshold that is wanted, only how far it goes: the faces agree even where a budget ended a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import Double, plus, ratio
from udcp_solvers.numeric.filling import fill, put
from udcp_solvers.search.best import best_set, repeats
from udcp_solvers.search.intervals import cost_of, take_free
from udcp_solvers.search.layout import FREE, IN, OUT, Floats, Ints, Marks, size_numbers
from udcp_solvers.search.workspace import NEAR, Question, Workspace, workspace_of

# What is wanted of a row: every score, that of one label, the set at a threshold, the best set at the anchor alone.
ALL, ONE, SET, BEST = range(4)

# Sets that wait at most; behind them the left end, the best set at the anchor, one from beyond it, and labels that are
# fixed, as they are, as they were where they are changed for a while, and as the next question has them.
_WAIT = 48
_LEFT, _STAR, _OTHER, _FIXED, _SAVED, _ASKED_OF = range(_WAIT + 2, _WAIT + 8)

# Stretches of hull that a row may ask for: of all sets, of subsets of S*, up to the anchor, and beyond it.
_PLAIN, _INSIDE, _UP_TO, _BEYOND = range(4)
# What was asked for: S*, whether it is still the best beyond m, a left end, a right end, the last, one between.
_ASKED_STAR, _ASKED_STILL, _ASKED_LEFT, _ASKED_RIGHT, _ASKED_LAST, _ASKED_BETWEEN = range(6)

# Up to a price this much higher a set may be bought at the price itself, but for rounding.
ABOVE = 1e-9
# Right ends of stretches: the first so much above the anchor, others so many times as far; so many, then the last set.
_FIRST_STEP, _GROWTH, _ENDS = 0.03, 4.0, 12


class Row(NamedTuple):
    """A row at hand: p, its scores and those kept from inside the anchor; sets, their costs, the prices at which they
    were found to be the best and how much worse they are there with a label changed; the machine's state.

    `at`: what was asked for, in which stretch, the set that is wanted next and whether it begins with one, how many
    wait, how many right ends there were, whether the best sets up to the anchor hold nothing beyond S*, the branches
    that are left, whether a new count of them begins. `real`: the price asked for, the last price, how much the loss
    may vary, the price of the right end, the price up to which S* is the best, the first right end without an anchor,
    the mass between two sets that meet.
    """

    p: Floats
    score: Floats
    kept: Floats
    hold: Marks
    cost: Floats
    found_at: Floats
    margin: Floats
    at: Ints
    real: Floats


_ASKED, _STRETCH, _TO, _STARTED, _TOP, _END, _NESTED, _BRANCHES, _FRESH = range(9)
_MU, _PRICE, _SPAN, _RIGHT, _FROM, _GUESS, _GAIN = range(7)


def price_block(start: int, stop: int, ints: Ints, floats: Floats, *rest: object) -> None:
    """`price_rows`, with room of its own."""
    K = size_numbers(ints)[0]
    R = Row(
        p=np.empty(K),
        score=np.empty(K),
        kept=np.empty(K),
        hold=np.zeros((_ASKED_OF + 1, K), np.int8),
        cost=np.zeros(_ASKED_OF + 1),
        found_at=np.zeros(_ASKED_OF + 1),
        margin=np.zeros((_ASKED_OF + 1, K)),
        at=np.zeros(9, np.int64),
        real=np.zeros(7),
    )
    price_rows(start, stop, ints, floats, workspace_of(ints), R, *rest)  # type: ignore[arg-type]


@jit
def price_rows(
    start: int,
    stop: int,
    ints: Ints,
    floats: Floats,
    T: Workspace,
    R: Row,
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
) -> None:
    """Fill scores (n, K), scores (n, 1) of the labels y, masks (n, K) at the thresholds tau, or of the best sets at the
    anchors, by `face`.

    `anchor` is (n,), below 0 for none. `gaps` (n,) says by how much a better set may have been missed, with the budget
    of branches used up; 0 where all is exact. `fixed` (n, K), or none: labels that a best set holds or leaves out.
    """
    K = len(R.p)
    R.real[_SPAN] = span
    for n in range(start, stop):
        for k in range(K):
            R.p[k] = P[n, k]
        ties = repeats(ints, floats, R.p, T)
        gaps[n] = 0.0
        # A set may be bought at the threshold itself, but for rounding.
        upper = tau[n] * (1.0 + ABOVE) if face == SET else np.inf
        more = _begin(R, face, anchor[n], tau[n])
        if len(fixed) > 0:
            put(R.hold[_FIXED], fixed[n])
        while more:
            if R.at[_FRESH] == 1:
                fill(T.warm, 0.0)
                R.at[_FRESH], R.at[_BRANCHES] = 0, budget
            to = R.at[_TO]
            put(R.hold[_ASKED_OF], R.hold[_FIXED])
            fill(T.margin, np.inf)
            if R.at[_ASKED] == _ASKED_BETWEEN:
                _fix(R, T.margin)
            asked = Question(R.p, R.real[_MU], R.hold[_ASKED_OF], span, max(R.at[_BRANCHES], 1), ties)
            gap = best_set(ints, floats, asked, R.hold[to], R.at[_STARTED] == 1, T)
            gaps[n] = max(gaps[n], gap)
            R.cost[to] = take_free(ints, floats, asked, R.hold[to], T)
            R.found_at[to] = R.real[_MU]
            put(R.margin[to], T.margin)
            R.at[_BRANCHES] -= T.search.looked
            if R.at[_ASKED] == _ASKED_LEFT:
                # What the likeliest of the other labels would add: the first right end is guessed from it.
                _, likeliest = _outside(R.p, R.hold[_LEFT])
                if likeliest >= 0:
                    put(R.hold[_SAVED], R.hold[_LEFT])
                    R.hold[_SAVED, likeliest] = IN
                    more_cost = cost_of(ints, floats, R.hold[_SAVED], T)
                    R.real[_GUESS] = (max(more_cost - R.cost[_LEFT], 0.0) + ABOVE * span) / R.p[likeliest]
            more = _advance(R, face, anchor[n], y[n], tau[n], upper)
        if face == ALL:
            for k in range(K):
                scores[n, k] = R.score[k]
        elif face == ONE:
            scores[n, 0] = R.score[y[n]]
        elif face == SET:
            for k in range(K):
                masks[n, k] = R.score[k] <= tau[n]
        else:
            for k in range(K):
                masks[n, k] = R.hold[_STAR, k] == IN


@jit
def _ask(R: Row, what: int, mu: float, to: int, started: int) -> bool:
    R.at[_ASKED], R.at[_TO], R.at[_STARTED] = what, to, started
    R.real[_MU] = mu
    return True


@jit
def _begin(R: Row, face: int, m: float, tau: float) -> bool:
    """The first question of a row; False if there is none."""
    fill(R.score, np.inf)
    fill(R.hold[_FIXED], FREE)
    R.at[_FRESH], R.at[_END], R.real[_RIGHT] = 1, 0, 0.0
    if face == SET and (tau < 0.0 or tau == np.inf):
        return False
    # At an anchor of 0, S* are the labels of price 0, and the scores are the plain ones.
    if face == BEST or m > _lowest(R):
        return _ask(R, _ASKED_STAR, m, _STAR, 0)
    return _stretch(R, _PLAIN)


@jit
def _lowest(R: Row) -> float:
    """A price that stands for 0: of the cheapest sets the heaviest is the best at it."""
    return ABOVE * R.real[_SPAN] if R.real[_SPAN] > 0.0 else 1.0


@jit
def _stretch(R: Row, stretch: int) -> bool:
    """Begin a stretch of hull at price 0."""
    R.at[_STRETCH], R.at[_TOP] = stretch, -1
    if stretch == _INSIDE:
        R.at[_FRESH] = 1
    for k in range(len(R.p)):
        R.hold[_FIXED, k] = OUT if stretch == _INSIDE and R.hold[_STAR, k] != IN else FREE
    R.real[_PRICE] = 0.0
    return _ask(R, _ASKED_LEFT, _lowest(R), _LEFT, 0)


@jit
def _advance(R: Row, face: int, m: float, y: int, tau: float, upper: float) -> bool:
    """Take in the answer and ask the next question; False where the row is done."""
    asked, stretch = R.at[_ASKED], R.at[_STRETCH]
    if asked == _ASKED_STAR:
        if face == BEST:
            return False
        if face == ALL or (face == ONE and R.hold[_STAR, y] == IN) or (face == SET and tau < m):
            return _stretch(R, _INSIDE)
        return _still(R, face, m)
    if asked == _ASKED_STILL:
        if not _same(R.hold[_OTHER], R.hold[_STAR]):
            return _stretch(R, _UP_TO)
        R.real[_FROM] = R.real[_RIGHT]
        return upper > R.real[_FROM] and _still(R, face, m)
    done = False
    if asked == _ASKED_LEFT:
        done = _left(R, face, y)
        if stretch == _PLAIN and not done and _next_end(R, m):
            return True
    elif asked == _ASKED_LAST:
        put(R.hold[_FIXED], R.hold[_SAVED])
    elif asked == _ASKED_BETWEEN:
        done = _between(R, y if face == ONE and stretch != _UP_TO else -1, upper)
    while True:
        if not done and _meet(R):
            return True
        if stretch == _INSIDE:
            _close_inside(R, face, m)
            return face == ALL and _still(R, face, m)
        if stretch != _UP_TO:
            break
        if _beyond(R):
            return True
        stretch, done = _BEYOND, False
    # What is bought beyond a right end has a price above it, even where a search was not proved.
    R.real[_PRICE] = max(R.real[_PRICE], R.real[_RIGHT])
    if not done and R.real[_PRICE] < upper and _next_end(R, m):
        return True
    if stretch == _BEYOND:
        _close_beyond(R, face, m)
    return False


@jit
def _left(R: Row, face: int, y: int) -> bool:
    """Take in the left end of a stretch; whether no more of it is wanted."""
    _enter(R, _LEFT, 0.0)
    if R.at[_STRETCH] != _PLAIN:
        _copy(R, _STAR, 0)
        R.at[_TOP] = 0
        R.at[_NESTED] = 1 if _within(R.hold[_LEFT], R.hold[_STAR]) else 0
    if R.at[_STRETCH] == _UP_TO:
        return bool(R.at[_NESTED] == 0)
    return bool(face == ONE and R.score[y] < np.inf)


@jit
def _still(R: Row, face: int, m: float) -> bool:
    """Ask whether S* stays the best beyond m; False if it has all mass."""
    if R.at[_END] == 0:
        R.at[_FRESH], R.real[_FROM] = 1, m
        for k in range(len(R.p)):
            R.score[k] = m if R.hold[_STAR, k] == IN else np.inf
    put(R.hold[_LEFT], R.hold[_STAR])
    fill(R.hold[_FIXED], FREE)
    _, likeliest = _outside(R.p, R.hold[_STAR])
    if likeliest < 0:
        _close_beyond(R, face, m)
        return False
    R.real[_RIGHT] = _next_price(R, m)
    if R.real[_RIGHT] < np.inf:
        put(R.hold[_OTHER], R.hold[_STAR])
        return _ask(R, _ASKED_STILL, R.real[_RIGHT], _OTHER, 1)
    return _stretch(R, _UP_TO)


@jit
def _beyond(R: Row) -> bool:
    """Begin the stretch beyond the anchor; whether a set is asked for: False where the right end is known."""
    R.at[_STRETCH], R.at[_TOP] = _BEYOND, -1
    for k in range(len(R.p)):
        R.hold[_FIXED, k] = IN if R.at[_NESTED] == 0 and R.hold[_STAR, k] == IN else FREE
    _copy(R, _STAR, _LEFT)
    R.real[_PRICE] = R.real[_FROM]
    if R.at[_NESTED] == 1 and R.real[_RIGHT] < np.inf:
        _copy(R, _OTHER, 0)
        R.at[_TOP] = 0
        return False
    return _right(R)


@jit
def _next_end(R: Row, m: float) -> bool:
    """Ask for the next right end; False if all mass is bought already."""
    R.real[_RIGHT] = _next_price(R, m)
    return R.real[_RIGHT] > 0.0 and _right(R)


@jit
def _next_price(R: Row, m: float) -> float:
    """The price of the next right end; infinite for the last, 0 if there is none."""
    least, likeliest = _outside(R.p, R.hold[_LEFT])
    if likeliest < 0:
        return 0.0
    steps = _GROWTH ** R.at[_END]
    R.at[_END] += 1
    price = m * (1.0 + _FIRST_STEP * steps) if m > _lowest(R) else R.real[_GUESS] * steps
    # At prices above this every label with mass is bought.
    return np.inf if R.at[_END] > _ENDS or price * least > R.real[_SPAN] or price > 1e300 else price


@jit
def _right(R: Row) -> bool:
    """Ask for the set at the right end; the last is the cheapest of the heaviest sets."""
    R.at[_TOP] = 0
    if R.real[_RIGHT] < np.inf:
        put(R.hold[0], R.hold[_LEFT])
        return _ask(R, _ASKED_RIGHT, R.real[_RIGHT], 0, 1)
    put(R.hold[_SAVED], R.hold[_FIXED])
    for k in range(len(R.p)):
        if R.hold[_FIXED, k] == FREE and R.p[k] > 0.0:
            R.hold[_FIXED, k] = IN
    return _ask(R, _ASKED_LAST, 0.0, 0, 0)


@jit
def _outside(p: Floats, marks: Marks) -> tuple[float, int]:
    """The least mass above 0 of a label that is not in a set, and the likeliest of these labels, or -1."""
    least, likeliest = np.inf, -1
    for k in range(len(p)):
        if marks[k] != IN and p[k] > 0.0:
            least = min(least, p[k])
            if likeliest < 0 or p[k] > p[likeliest]:
                likeliest = k
    return least, likeliest


@jit
def _meet(R: Row) -> bool:
    """Ask for the set where the left end and the next that waits meet; False where none waits."""
    while R.at[_TOP] >= 0:
        top = R.at[_TOP]
        gain, gain_low = _mass_between(R.p, R.hold[_LEFT], R.hold[top])
        if gain > 0.0:
            at = max(ratio(R.cost[top] - R.cost[_LEFT], 0.0, gain, gain_low), R.real[_PRICE])
            R.real[_GAIN] = gain
            put(R.hold[top + 1], R.hold[top])
            return _ask(R, _ASKED_BETWEEN, at, top + 1, 1)
        _go_on(R)
    return False


@jit
def _fix(R: Row, margin: Floats) -> None:
    """Of labels that are in both of two sets, or in neither, fix those that are so in every best set where they meet.

    What the best set with a label changed costs, less what it is worth, is concave in the price: it lies above the line
    between what it is at least where the two sets were found. These are `height` above theirs where they meet.
    """
    left, top, mu = _LEFT, R.at[_TOP], R.real[_MU]
    a, b = R.found_at[left], R.found_at[top]
    if not a < mu < b < np.inf or mu <= R.real[_PRICE]:
        return
    share = (mu - a) / (b - a)
    height = share * (b - mu) * R.real[_GAIN]
    slack = ABOVE * height + NEAR * (R.real[_SPAN] + mu)
    for k in range(len(R.p)):
        if R.hold[_FIXED, k] == FREE and (R.hold[left, k] == IN) == (R.hold[top, k] == IN):
            more = (1.0 - share) * R.margin[left, k] + share * R.margin[top, k] - height
            if more > slack:
                R.hold[_ASKED_OF, k] = IN if R.hold[top, k] == IN else OUT
                margin[k] = more


@jit
def _copy(R: Row, of: int, to: int) -> None:
    """Put a set in another place, with what is known of it."""
    R.cost[to], R.found_at[to] = R.cost[of], R.found_at[of]
    put(R.hold[to], R.hold[of])
    put(R.margin[to], R.margin[of])


@jit
def _go_on(R: Row) -> None:
    """The next set that waits becomes the left end."""
    top = R.at[_TOP]
    _copy(R, top, _LEFT)
    R.at[_TOP] = top - 1


@jit
def _between(R: Row, y: int, upper: float) -> bool:
    """Take in the best set where two meet; whether the stretch is done: label y is bought, prices are above,
    or a best set up to the anchor does not lie within S*."""
    top = R.at[_TOP]
    m, at = top + 1, R.real[_MU]
    gain, _ = _mass_between(R.p, R.hold[_LEFT], R.hold[m])
    rise, step = R.cost[top] - R.cost[_LEFT], R.cost[m] - R.cost[_LEFT]
    slack = NEAR * (R.real[_SPAN] + abs(rise) + abs(step))
    if gain > 0.0 and step - at * gain < -slack and not _same(R.hold[m], R.hold[top]):
        if R.at[_STRETCH] == _UP_TO and not _within(R.hold[m], R.hold[_STAR]):
            R.at[_NESTED] = 0
            return True
        if m < _WAIT:
            R.at[_TOP] = m
        else:  # no room: the end before is forgotten, and found again from here
            _copy(R, m, top)
        return False
    if at > upper:
        return True
    R.real[_PRICE] = at
    _enter(R, top, at)
    _go_on(R)
    return y >= 0 and R.score[y] < np.inf


@jit
def _close_inside(R: Row, face: int, m: float) -> None:
    """Every label of S* is bought at m; in the set at a lower threshold only those that are found to be."""
    for k in range(len(R.score)):
        bought = R.score[k] < np.inf or (face != SET and R.hold[_STAR, k] == IN)
        R.score[k] = min(R.score[k], m) if bought else np.inf
    put(R.kept, R.score)


@jit
def _close_beyond(R: Row, face: int, m: float) -> None:
    """Labels of S* have their prices from inside, others one above m."""
    beyond = np.nextafter(m, np.inf)
    for k in range(len(R.score)):
        if R.hold[_STAR, k] == IN:
            R.score[k] = R.kept[k] if face == ALL else m
        elif R.score[k] < np.inf:
            R.score[k] = max(R.score[k], beyond)


@jit
def _enter(R: Row, which: int, price: float) -> None:
    """The labels of a set are bought at a price, if they are not yet."""
    if R.at[_STRETCH] == _UP_TO:
        return
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
def _within(a: Marks, b: Marks) -> bool:
    beyond = 0
    for k in range(len(a)):
        beyond += a[k] == IN and b[k] != IN
    return beyond == 0


@jit
def _mass_between(p: Floats, a: Marks, b: Marks) -> Double:
    """How much more mass b has than a."""
    high, low = 0.0, 0.0
    for k in range(len(p)):
        if (a[k] == IN) != (b[k] == IN):
            high, low = plus(high, low, p[k] if b[k] == IN else -p[k])
    return high, low
