"""Prices of labels from best sets: the lower hull of all sets is traced, from the left, as far as it is wanted.

Mathematics. Each set S is a point (p(S), L(S)). At a price mu the best set, of least L(S) - mu p(S), is a *corner* of
the lower hull of these points. The lines of two corners a and b, p(a) < p(b), meet at the price

    mu = (L(b) - L(a)) / (p(b) - p(a)).

If some set is better there, it is a corner between them, and each half is looked at in turn; if none is, a and b are
neighbours, and the labels of b are bought at mu (Eisner and Severance). The price of a label is the lowest at which it
is bought. With an anchor m and S* the best set at m: labels of S* are priced among the subsets of S*, at most at m; the
others above m, among the supersets of S*, or among all sets if the best sets up to m have no labels outside S*.

The next question to the search depends on its answer. So tracing is a state machine: `begin` asks the first question,
`advance` takes in an answer and asks the next, and the search, which takes long to compile, is called in one place. The
state of the machine is a question and the stretch of hull that it belongs to; `advance` has the table of transitions.

    stretch   sets                          from      to
    PLAIN     all                           price 0   as far as wanted
    INSIDE    subsets of S*                 price 0   S*
    UP_TO     all                           price 0   S*: is every best set within S*?
    BEYOND    all if so, else supersets     S*        as far as wanted

The label or threshold that is wanted decides only how many questions are asked, not which: so scores, the score of one
label and sets agree even if a budget ended a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Record, Records, records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import Double, plus, ratio
from udcp_solvers.numeric.filling import fill, put
from udcp_solvers.search.best import best_set
from udcp_solvers.search.intervals import cost_of, take_free
from udcp_solvers.search.layout import FREE, IN, OUT, Floats, Ints, Marks, size_numbers
from udcp_solvers.search.workspace import NEAR, Question, Workspace, is_within, same_set, workspace_of

# What is wanted of a row: every score, the score of one label, the set at a threshold, only the best set at the anchor.
ALL, ONE, SET, BEST = range(4)
# Questions (see `advance`) and stretches (see above).
ANCHOR_SET, STILL_BEST, LEFT_END, RIGHT_END, LAST_END, BETWEEN = range(6)
PLAIN, INSIDE, UP_TO, BEYOND = range(4)

# Places of corners. Waiting corners come first, the next one last; behind it is the one that is asked for; then the
# left end, the best set at the anchor, and the best set at a right end beyond the anchor.
_MAX_WAITING = 48
_LEFT, _STAR, _OTHER = range(_MAX_WAITING + 1, _MAX_WAITING + 4)
_PLACES = _MAX_WAITING + 4

# Relative tolerance of prices: up to a price this much higher, a set may be bought at the price itself, given rounding.
PRICE_ROUNDING = 1e-9
# The guide of the question at price 0, relative to the span.
_GUIDE = 2.0**-20
# Right ends of stretches: the first step beyond the anchor, relative to it; the factor by which steps grow; the most
# ends before the last set.
_FIRST_STEP, _GROWTH, _ENDS = 0.03, 4.0, 12

# A corner: the cost of the set, and the price at which it was found to be the best.
CORNER = np.dtype([("cost", "f8"), ("price", "f8")])
# See `Trace`: what is wanted, the question, how far the hull is known.
STATE = np.dtype([
    ("wanted", "i8"), ("label", "i8"), ("anchor", "f8"), ("threshold", "f8"), ("upper", "f8"), ("span", "f8"),
    ("asked", "i8"), ("stretch", "i8"), ("mu", "f8"), ("place", "i8"), ("started", "?"), ("gain", "f8"),
    ("nodes", "i8"), ("anew", "?"),
    ("price", "f8"), ("top", "i8"), ("nested", "?"), ("still_best", "f8"),
    ("right", "f8"), ("ends", "i8"), ("first_right", "f8"),
], align=True)  # fmt: skip


class PriceRows(NamedTuple):
    """Rows P (n, K) and what is `wanted` of them: scores (n, K); scores (n, 1) of the labels y (n,); masks (n, K) at
    the thresholds tau (n,); or masks of the best sets at the anchors (n,). An anchor below 0 is none.

    `gaps` (n,) gets how much better another set may be, at most, after the budget of nodes was used up; 0 if all is
    exact. `fixed` (n, K), or empty: labels that a best set has to hold or leave out. `span`: the difference between the
    highest and lowest possible cost; `low`: a cost that no set is below, in exact arithmetic.
    """

    P: Floats
    wanted: int
    anchor: Floats
    y: Ints
    tau: Floats
    fixed: Marks
    scores: Floats
    masks: Marks
    gaps: Floats
    budget: int
    span: float
    low: float


class Trace(NamedTuple):
    """The hull of one row, as far as it is known: p, the scores, and the scores found inside the anchor.

    Corners by place: their `marks` (places, K), costs and prices, and `margins` (places, K), how much worse sets are in
    which a label is changed, at the price where the corner was found. `fixed` (K,): labels that all sets of the stretch
    hold or leave out; `asked` (K,): those of the question. The `state`:

    - what is `wanted` of the row, and of which `label`; the `anchor`, below 0 for none; the `threshold`; `upper`, the
      highest price that matters; `span`, as in `PriceRows`;
    - what is `asked`, in which `stretch`: the best set at the price `mu`, for which `place`, and whether it is
      `started` with a set that is there; `gain`, for BETWEEN, the mass between the two sets that meet;
    - `nodes` that the search may still look at; whether this budget and the lines of the search begin `anew`;
    - the `price` of the left end; `top`, the place of the next waiting corner, -1 for none;
    - `nested`: no best set up to the anchor has a label outside S*; `still_best`: the price up to which S* is the best;
    - the price of the `right` end, how many `ends` there were, and the `first_right` end without an anchor.
    """

    p: Floats
    score: Floats
    inside: Floats
    marks: Marks
    corners: Records
    margins: Floats
    fixed: Marks
    asked: Marks
    state: Record


def price_block(start: int, stop: int, ints: Ints, floats: Floats, rows: PriceRows) -> None:
    """`price_rows` with its own trace and workspace."""
    K = size_numbers(ints)[0]
    R = Trace(
        p=np.empty(K),
        score=np.empty(K),
        inside=np.empty(K),
        marks=np.zeros((_PLACES, K), np.int8),
        corners=records(_PLACES, CORNER),
        margins=np.zeros((_PLACES, K)),
        fixed=np.zeros(K, np.int8),
        asked=np.zeros(K, np.int8),
        state=records(1, STATE)[0],
    )
    price_rows(start, stop, ints, floats, rows, R, workspace_of(ints))


@jit
def price_rows(start: int, stop: int, ints: Ints, floats: Floats, rows: PriceRows, R: Trace, T: Workspace) -> None:
    """Compute the prices of rows start .. stop - 1, or their sets."""
    for n in range(start, stop):
        _load_row(rows, n, R)
        rows.gaps[n] = 0.0
        more = begin(R)
        while more:
            gap = _answer(ints, floats, rows, R, T)
            rows.gaps[n] = max(rows.gaps[n], gap)
            more = advance(R)
        _write_row(rows, n, R)


@jit
def _load_row(rows: PriceRows, n: int, R: Trace) -> None:
    """Begin row n: nothing is known yet."""
    state = R.state
    state.wanted, state.label, state.anchor, state.threshold = rows.wanted, rows.y[n], rows.anchor[n], rows.tau[n]
    if state.anchor <= PRICE_ROUNDING * rows.span:  # so near to 0, what labels are worth is below the rounding of costs
        state.anchor = min(state.anchor, 0.0)
    # A set may be bought at the threshold itself, up to rounding.
    state.upper = rows.tau[n] * (1.0 + PRICE_ROUNDING) if rows.wanted == SET else np.inf
    state.span, state.anew, state.ends, state.right = rows.span, True, 0, 0.0
    put(R.p, rows.P[n])
    fill(R.score, np.inf)
    fill(R.fixed, FREE)
    if len(rows.fixed) > 0:
        put(R.fixed, rows.fixed[n])


@jit
def _write_row(rows: PriceRows, n: int, R: Trace) -> None:
    """Write what is wanted of row n, which is done."""
    if rows.wanted == ONE:
        rows.scores[n, 0] = R.score[R.state.label]
        return
    for k in range(len(R.p)):
        if rows.wanted == ALL:
            rows.scores[n, k] = R.score[k]
        elif rows.wanted == SET:
            rows.masks[n, k] = R.score[k] <= R.state.threshold
        else:
            rows.masks[n, k] = R.marks[_STAR, k] == IN


@jit
def _answer(ints: Ints, floats: Floats, rows: PriceRows, R: Trace, T: Workspace) -> float:
    """Find the best set that is asked for; returns how much better another set may be, at most."""
    state = R.state
    if state.anew:
        fill(T.warm_lines, 0.0)
        state.anew, state.nodes = False, rows.budget
    fill(T.margin, np.inf)
    _restrict(R, T.margin)
    at_zero = state.asked == LEFT_END or (state.asked == ANCHOR_SET and state.anchor == 0.0)
    question = Question(R.p, state.mu, R.asked, state.span, max(state.nodes, 1), at_zero, rows.low)
    found, corner = R.marks[state.place], R.corners[state.place]
    gap = best_set(ints, floats, question, found, state.started, T)
    exact = at_zero and gap == 0.0
    corner.cost = cost_of(ints, floats, found, T) if exact else take_free(ints, floats, question, found, T)
    corner.price = state.mu
    put(R.margins[state.place], T.margin)
    state.nodes -= max(T.search.node_count - 1, 0)  # the first is free
    if state.asked == LEFT_END:
        _guess_first_right(ints, floats, R, T)
    return gap


@jit
def _restrict(R: Trace, margin: Floats) -> None:
    """Fix the labels of the question: those of the stretch; for LAST_END, also all labels with mass."""
    put(R.asked, R.fixed)
    if R.state.asked == LAST_END:
        for k in range(len(R.p)):
            if R.asked[k] == FREE and R.p[k] > 0.0:
                R.asked[k] = IN
    elif R.state.asked == BETWEEN:
        _fix_between(R, margin)


@jit
def _fix_between(R: Trace, margin: Floats) -> None:
    """Fix labels on which the two corners that meet agree, if every best set at their price does so, too.

    The least L - mu p of sets in which a label is changed is concave in the price. So it is above the line between its
    lower bounds at the two prices where the corners were found. At `mu`, the line between the values of the two corners
    is `height` below their common value.
    """
    state, top, mu = R.state, R.state.top, R.state.mu
    a, b = R.corners[_LEFT].price, R.corners[top].price
    if not a < mu < b < np.inf or mu <= state.price:
        return
    share = (mu - a) / (b - a)
    height = share * (b - mu) * state.gain
    slack = PRICE_ROUNDING * height + NEAR * (state.span + mu)
    for k in range(len(R.p)):
        if R.fixed[k] == FREE and (R.marks[_LEFT, k] == IN) == (R.marks[top, k] == IN):
            more = (1.0 - share) * R.margins[_LEFT, k] + share * R.margins[top, k] - height
            if more > slack:
                R.asked[k] = IN if R.marks[top, k] == IN else OUT
                margin[k] = more


@jit
def _guess_first_right(ints: Ints, floats: Floats, R: Trace, T: Workspace) -> None:
    """Guess the first right end without an anchor: by the cost that the likeliest label outside the left end would
    add."""
    left = R.marks[_LEFT]
    _, likeliest = _outside(R.p, left)
    if likeliest >= 0:
        before = left[likeliest]
        left[likeliest] = IN
        added = cost_of(ints, floats, left, T) - R.corners[_LEFT].cost
        left[likeliest] = before
        R.state.first_right = (max(added, 0.0) + PRICE_ROUNDING * R.state.span) / R.p[likeliest]


@jit
def _ask(R: Trace, asked: int, mu: float, place: int, started: bool) -> bool:
    """Ask for the best set at a price."""
    state = R.state
    state.asked, state.mu, state.place, state.started = asked, mu, place, started
    return True


@jit
def begin(R: Trace) -> bool:
    """Ask the first question of a row; False if there is none."""
    state = R.state
    if state.wanted == SET and (state.threshold < 0.0 or state.threshold == np.inf):
        return False
    # At an anchor of 0, S* has the labels of price 0, and the scores are the plain ones.
    if state.wanted == BEST or state.anchor > 0.0:
        return _ask(R, ANCHOR_SET, state.anchor if state.anchor > 0.0 else _guide(R), _STAR, False)
    return _begin_stretch(R, PLAIN)


@jit
def advance(R: Trace) -> bool:
    """Take in the answer and ask the next question; False if the row is done.

        question     stretch          answer               next question
        (a row)                       no anchor            LEFT_END of PLAIN
                                      an anchor            ANCHOR_SET
        ANCHOR_SET                    S*                   LEFT_END of INSIDE, if a price within S* is wanted;
                                                           else STILL_BEST; none, if only S* is wanted
        STILL_BEST                    S*                   STILL_BEST at a higher price; none, if that is not wanted
                                      another set          LEFT_END of UP_TO
        LEFT_END     PLAIN            a set                RIGHT_END
                     INSIDE, UP_TO    a set                BETWEEN this set and S*
        RIGHT_END                     a set                BETWEEN the left end and this set
        BETWEEN                       a better set         BETWEEN the left end and this set
                                      no better set        BETWEEN the next corner and the one after it; at the last
                                                           corner the stretch ends
                     UP_TO            one not within S*    the stretch ends
        (the end)    PLAIN, BEYOND                         RIGHT_END, farther right; none, if no higher price is wanted
                     INSIDE                                STILL_BEST; none, if only prices within S* are wanted
                     UP_TO                                 RIGHT_END of BEYOND; BETWEEN S* and that end, if it is known

    If the next right end is the last, the set that has all mass, LAST_END takes the place of RIGHT_END, and LEFT_END
    of UP_TO that of STILL_BEST.
    """
    asked, stretch, ended = R.state.asked, R.state.stretch, False
    if asked == ANCHOR_SET:
        return _after_anchor_set(R)
    if asked == STILL_BEST:
        return _after_still_best(R)
    if asked == LEFT_END:
        ended = _take_left_end(R)
        if stretch == PLAIN:
            return not ended and _next_end(R)
    elif asked == BETWEEN:
        ended = _take_between(R)
    return (not ended and _ask_between(R)) or _end_stretch(R, ended)


@jit
def _after_anchor_set(R: Trace) -> bool:
    """After ANCHOR_SET: S* is known."""
    state = R.state
    if state.wanted == BEST:
        return False
    within_star = state.wanted == ALL or (state.wanted == ONE and R.marks[_STAR, state.label] == IN)
    if within_star or (state.wanted == SET and state.threshold < state.anchor):
        return _begin_stretch(R, INSIDE)
    return _begin_above(R)


@jit
def _begin_above(R: Trace) -> bool:
    """Go on from S* to prices above the anchor."""
    R.state.anew, R.state.still_best = True, R.state.anchor
    for k in range(len(R.p)):
        R.score[k] = R.state.anchor if R.marks[_STAR, k] == IN else np.inf
    return _ask_still_best(R)


@jit
def _ask_still_best(R: Trace) -> bool:
    """Ask whether S* is the best at the next right end, too; False if it has all mass."""
    state = R.state
    put(R.marks[_LEFT], R.marks[_STAR])
    fill(R.fixed, FREE)
    _, likeliest = _outside(R.p, R.marks[_STAR])
    if likeliest < 0:
        _close_beyond(R)
        return False
    state.right = _next_price(R)
    if state.right < np.inf:
        put(R.marks[_OTHER], R.marks[_STAR])
        return _ask(R, STILL_BEST, state.right, _OTHER, True)
    return _begin_stretch(R, UP_TO)


@jit
def _after_still_best(R: Trace) -> bool:
    """After STILL_BEST: the best set at a right end is S*, or another one."""
    state = R.state
    if not same_set(R.marks[_OTHER], R.marks[_STAR]):
        return _begin_stretch(R, UP_TO)
    state.still_best = state.right
    return state.upper > state.still_best and _ask_still_best(R)


@jit
def _begin_stretch(R: Trace, stretch: int) -> bool:
    """Begin a stretch at price 0."""
    state = R.state
    state.stretch, state.top, state.price = stretch, -1, 0.0
    state.anew = state.anew or stretch == INSIDE
    for k in range(len(R.p)):
        R.fixed[k] = OUT if stretch == INSIDE and R.marks[_STAR, k] != IN else FREE
    return _ask(R, LEFT_END, _guide(R), _LEFT, False)


@jit
def _take_left_end(R: Trace) -> bool:
    """Take in the left end of a stretch; returns whether no more of the stretch is wanted."""
    state = R.state
    _buy(R, _LEFT, 0.0)
    state.price = np.nextafter(0.0, 1.0)  # labels that are not in the best set at price 0 have a higher one
    if state.stretch != PLAIN:
        _copy(R, _STAR, 0)
        state.top = 0
        state.nested = is_within(R.marks[_LEFT], R.marks[_STAR])
    if state.stretch == UP_TO:
        return not state.nested
    return _is_bought(R) or state.price > state.upper


@jit
def _ask_between(R: Trace) -> bool:
    """Ask for the best set where the lines of the left end and the next waiting corner meet; False if none waits."""
    state = R.state
    while state.top >= 0:
        top = state.top
        gain, gain_low = _mass_between(R.p, R.marks[_LEFT], R.marks[top])
        if gain > 0.0:
            rise = R.corners[top].cost - R.corners[_LEFT].cost
            state.gain = gain
            put(R.marks[top + 1], R.marks[top])
            return _ask(R, BETWEEN, max(ratio(rise, 0.0, gain, gain_low), state.price), top + 1, True)
        _move_left_end(R)
    return False


@jit
def _take_between(R: Trace) -> bool:
    """Take in the best set where two corners meet; returns whether the stretch ends.

    It ends if the label that is wanted is bought, if prices are above those that matter, or if a best set up to the
    anchor is not within S*.
    """
    state, corners, top, found = R.state, R.corners, R.state.top, R.state.place
    gain, _ = _mass_between(R.p, R.marks[_LEFT], R.marks[found])
    rise, step = corners[top].cost - corners[_LEFT].cost, corners[found].cost - corners[_LEFT].cost
    slack = NEAR * (state.span + abs(rise) + abs(step))
    if gain > 0.0 and step - state.mu * gain < -slack and not same_set(R.marks[found], R.marks[top]):
        if state.stretch == UP_TO and not is_within(R.marks[found], R.marks[_STAR]):
            state.nested = False
            return True
        if found < _MAX_WAITING:
            state.top = found
        else:  # no space: it replaces the waiting corner, which is found again from here
            _copy(R, found, top)
        return False
    if state.mu > state.upper:
        return True
    state.price = state.mu
    _buy(R, top, state.mu)
    _move_left_end(R)
    return state.stretch != UP_TO and _is_bought(R)


@jit
def _end_stretch(R: Trace, ended: bool) -> bool:
    """Go on from a stretch of which all corners are known, or which `ended` before that; False if the row is done."""
    state = R.state
    if state.stretch == INSIDE:
        _close_inside(R)
        return state.wanted == ALL and _begin_above(R)
    if state.stretch == UP_TO:
        ended = False
        if _begin_beyond(R) or _ask_between(R):
            return True
    # Labels bought beyond a right end have a price above it, even if a search was not proved.
    state.price = max(state.price, state.right)
    if not ended and state.price < state.upper and _next_end(R):
        return True
    if state.stretch == BEYOND:
        _close_beyond(R)
    return False


@jit
def _begin_beyond(R: Trace) -> bool:
    """Begin the stretch beyond the anchor; False if its right end is known, so that nothing is asked."""
    state = R.state
    state.stretch, state.top, state.price = BEYOND, -1, state.still_best
    for k in range(len(R.p)):
        R.fixed[k] = IN if not state.nested and R.marks[_STAR, k] == IN else FREE
    _copy(R, _STAR, _LEFT)
    if state.nested and state.right < np.inf:
        _copy(R, _OTHER, 0)
        state.top = 0
        return False
    return _ask_end(R)


@jit
def _next_end(R: Trace) -> bool:
    """Ask for the next right end; False if all mass is bought already."""
    R.state.right = _next_price(R)
    return R.state.right > 0.0 and _ask_end(R)


@jit
def _ask_end(R: Trace) -> bool:
    """Ask for the set at the right end; the last one is the cheapest of the heaviest sets."""
    R.state.top = 0
    if R.state.right < np.inf:
        put(R.marks[0], R.marks[_LEFT])
        return _ask(R, RIGHT_END, R.state.right, 0, True)
    return _ask(R, LAST_END, 0.0, 0, False)


@jit
def _next_price(R: Trace) -> float:
    """The price of the next right end; infinite for the last, 0 if there is none."""
    state = R.state
    least, likeliest = _outside(R.p, R.marks[_LEFT])
    if likeliest < 0:
        return 0.0
    steps = _GROWTH**state.ends
    state.ends += 1
    price = state.anchor * (1.0 + _FIRST_STEP * steps) if state.anchor > 0.0 else state.first_right * steps
    # At prices above this every label with mass is bought.
    return np.inf if state.ends > _ENDS or price * least > state.span or price > 1e300 else price


@jit
def _guide(R: Trace) -> float:
    """The price that guides the search for the best set at price 0 (see `best`)."""
    return float(_GUIDE * R.state.span if R.state.span > 0.0 else 1.0)


@jit
def _buy(R: Trace, place: int, price: float) -> None:
    """Buy the labels of a corner at a price, unless they are bought already."""
    if R.state.stretch == UP_TO:
        return
    for k in range(len(R.score)):
        if R.marks[place, k] == IN:
            R.score[k] = min(R.score[k], price)


@jit
def _is_bought(R: Trace) -> bool:
    """Whether one label is wanted and its price is known."""
    return bool(R.state.wanted == ONE and R.score[R.state.label] < np.inf)


@jit
def _close_inside(R: Trace) -> None:
    """End INSIDE: every label of S* is bought at the anchor; in the set at a lower threshold, only those found to be
    bought."""
    for k in range(len(R.score)):
        bought = R.score[k] < np.inf or (R.state.wanted != SET and R.marks[_STAR, k] == IN)
        R.score[k] = min(R.score[k], R.state.anchor) if bought else np.inf
    put(R.inside, R.score)


@jit
def _close_beyond(R: Trace) -> None:
    """End BEYOND: labels of S* have their prices from INSIDE, others a price above the anchor."""
    beyond = np.nextafter(R.state.anchor, np.inf)
    for k in range(len(R.score)):
        if R.marks[_STAR, k] == IN:
            R.score[k] = R.inside[k] if R.state.wanted == ALL else R.state.anchor
        elif R.score[k] < np.inf:
            R.score[k] = max(R.score[k], beyond)


@jit
def _copy(R: Trace, of: int, to: int) -> None:
    """Copy a corner to another place."""
    R.corners[to].cost, R.corners[to].price = R.corners[of].cost, R.corners[of].price
    put(R.marks[to], R.marks[of])
    put(R.margins[to], R.margins[of])


@jit
def _move_left_end(R: Trace) -> None:
    """Make the next waiting corner the left end."""
    _copy(R, R.state.top, _LEFT)
    R.state.top -= 1


@jit
def _outside(p: Floats, marks: Marks) -> tuple[float, int]:
    """The least positive mass of a label outside a set, and the likeliest of these labels, or -1."""
    least, likeliest = np.inf, -1
    for k in range(len(p)):
        if marks[k] != IN and p[k] > 0.0:
            least = min(least, p[k])
            if likeliest < 0 or p[k] > p[likeliest]:
                likeliest = k
    return least, likeliest


@jit
def _mass_between(p: Floats, a: Marks, b: Marks) -> Double:
    """The mass of b minus that of a."""
    high, low = 0.0, 0.0
    for k in range(len(p)):
        if (a[k] == IN) != (b[k] == IN):
            high, low = plus(high, low, p[k] if b[k] == IN else -p[k])
    return high, low
