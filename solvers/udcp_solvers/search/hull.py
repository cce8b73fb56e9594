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

UP_TO is traced only if a corner beyond S* lacks a label of S*. Until then, all sets and supersets have the same
corners.

Scores, the score of one label and sets agree even if a budget ended a search, since each answer is a function of its
question. What two corners enclose depends on these two alone: the price at which they meet, kept between those where
the corners were found; the lines to start with; the nodes for all questions between them, of which each half gets the
share of the labels that change in it, and at least three quarters. So what is not wanted may be left out: corners are
skipped (`may_skip`) if none of them can have a label that is wanted. Right ends are the same for all, one after the
other; they share their nodes.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import ratio
from udcp_solvers.numeric.filling import fill, put
from udcp_solvers.search.best import best_set
from udcp_solvers.search.intervals import cost_of, take_free
from udcp_solvers.search.layout import FREE, IN, OUT, Floats, Ints, size_numbers
from udcp_solvers.search.trace import (
    ALL,
    ANCHOR_SET,
    BEST,
    BETWEEN,
    BEYOND,
    CORNER,
    INNER_END,
    INSIDE,
    LAST_END,
    LEFT,
    LEFT_END,
    MAX_WAITING,
    NESTED,
    NOT_NESTED,
    ONE,
    PLACES,
    PLAIN,
    PRICE_ROUNDING,
    RESUME_LEFT,
    RESUME_RIGHT,
    RIGHT_END,
    SET,
    STAR,
    STATE,
    UNKNOWN,
    UP_TO,
    PriceRows,
    Trace,
    are_neighbours,
    buy,
    buy_below,
    copy_corner,
    difference,
    fix_between,
    is_better,
    is_bought,
    mass_between,
    may_skip,
    move_left_end,
    outside,
    start_lines,
)
from udcp_solvers.search.workspace import Question, Workspace, is_within, workspace_of

# The guide of the question at price 0, relative to the span.
_GUIDE = 2.0**-20
# The nodes that are free in each question, so that one of many corners is found, too; how often the nodes of a stretch
# are halved, at most, for the questions between one right end and the next.
_FREE_NODES, _MOST_HALVINGS = 8, 3
# Inner ends, from the anchor to price 0: the first step, relative to the price of the end, the factor by which steps
# grow, and how many there are.
_FIRST_INNER_STEP, _INNER_GROWTH, _INNER_ENDS = 0.03, 10.0, 1
# Right ends of stretches: the first step beyond the anchor, relative to it; the factor by which steps grow; the most
# ends before the last set.
_FIRST_STEP, _GROWTH, _ENDS = 0.03, 4.0, 12


def price_block(start: int, stop: int, ints: Ints, floats: Floats, rows: PriceRows) -> None:
    """`price_rows` with its own trace and workspace."""
    K, _, Q, N = size_numbers(ints)[:4]
    R = Trace(
        p=np.empty(K),
        score=np.empty(K),
        inside=np.empty(K),
        marks=np.zeros((PLACES, K), np.int8),
        corners=records(PLACES, CORNER),
        margins=np.zeros((PLACES, K)),
        lines=np.zeros((PLACES, Q + N)),
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
        _close_beyond(R)
        rows.gaps[n] = max(rows.gaps[n], R.state.unresolved)
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
    state.span, state.ends, state.right, state.nested, state.unresolved = rows.span, 0, 0.0, UNKNOWN, 0.0
    state.budget, state.nodes, state.stretch = rows.budget, rows.budget, PLAIN
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
            rows.masks[n, k] = R.marks[STAR, k] == IN


@jit
def _answer(ints: Ints, floats: Floats, rows: PriceRows, R: Trace, T: Workspace) -> float:
    """Find the best set that is asked for; returns how much better another set may be, at most."""
    state = R.state
    fill(T.margin, np.inf)
    _restrict(R, T.margin)
    start_lines(R, T.warm_lines)
    at_zero = state.asked == LEFT_END or (state.asked == ANCHOR_SET and state.anchor == 0.0)
    free = min(_FREE_NODES, state.budget)
    question = Question(R.p, state.mu, R.asked, state.span, _nodes(R) + free, at_zero, rows.low)
    found, corner = R.marks[state.place], R.corners[state.place]
    gap = best_set(ints, floats, question, found, state.started, T)
    exact = at_zero and gap == 0.0
    corner.cost = cost_of(ints, floats, found, T) if exact else take_free(ints, floats, question, found, T)
    corner.price = corner.reached = state.mu
    corner.held = state.held
    put(R.margins[state.place], T.margin)
    put(R.lines[state.place], T.warm_lines)
    used = max(T.search.node_count - free, 0)
    if state.asked == BETWEEN:
        R.corners[state.top].nodes -= used
    elif state.asked == INNER_END:
        corner.nodes = state.budget
    elif state.asked == LEFT_END:
        corner.reached = np.nextafter(0.0, 1.0)  # labels that are not in the best set at price 0 have a higher price
        _guess_first_right(ints, floats, R, T)
    else:
        state.nodes -= used
        corner.nodes = state.budget >> min(max(state.ends - 1, 0), _MOST_HALVINGS)
        corner.price = np.inf if state.asked == LAST_END else corner.price
    return gap


@jit
def _nodes(R: Trace) -> int:
    """How many nodes the search may look at for a question, beside those that are free."""
    state = R.state
    if state.asked == BETWEEN:
        return int(R.corners[state.top].nodes)
    if state.asked == INNER_END:
        return int(state.budget >> 2)
    return int(state.budget if state.asked == LEFT_END else max(state.nodes, 0))


@jit
def _restrict(R: Trace, margin: Floats) -> None:
    """Fix the labels of the question: those of the stretch; for LAST_END, also all labels with mass."""
    put(R.asked, R.fixed)
    if R.state.held:
        for k in range(len(R.p)):
            if R.marks[STAR, k] == IN:
                R.asked[k] = IN
    if R.state.asked == LAST_END:
        for k in range(len(R.p)):
            if R.asked[k] == FREE and R.p[k] > 0.0:
                R.asked[k] = IN
    elif R.state.asked == BETWEEN:
        fix_between(R, margin)


@jit
def _guess_first_right(ints: Ints, floats: Floats, R: Trace, T: Workspace) -> None:
    """Guess the first right end without an anchor: by the cost that the likeliest label outside the left end would
    add."""
    left = R.marks[LEFT]
    _, likeliest = outside(R.p, left)
    if likeliest >= 0:
        before = left[likeliest]
        left[likeliest] = IN
        added = cost_of(ints, floats, left, T) - R.corners[LEFT].cost
        left[likeliest] = before
        R.state.first_right = (max(added, 0.0) + PRICE_ROUNDING * R.state.span) / R.p[likeliest]


@jit
def _ask(R: Trace, asked: int, mu: float, place: int, started: bool) -> bool:
    """Ask for the best set at a price."""
    state, corners = R.state, R.corners
    state.asked, state.mu, state.place, state.started, state.held = asked, mu, place, started, False
    if asked == BETWEEN:
        state.held = corners[LEFT].held or corners[state.top].held
    elif asked in (RIGHT_END, LAST_END):
        state.held = corners[LEFT].held
    return True


@jit
def begin(R: Trace) -> bool:
    """Ask the first question of a row; False if there is none."""
    state = R.state
    if state.wanted == SET and (state.threshold < 0.0 or state.threshold == np.inf):
        return False
    # At an anchor of 0, S* has the labels of price 0, and the scores are the plain ones.
    if state.wanted == BEST or state.anchor > 0.0:
        return _ask(R, ANCHOR_SET, state.anchor if state.anchor > 0.0 else _guide(R), STAR, False)
    return _begin_stretch(R, PLAIN)


@jit
def advance(R: Trace) -> bool:
    """Take in the answer and ask the next question; False if the row is done.

        question     stretch          answer               next question
        (a row)                       no anchor            LEFT_END of PLAIN
                                      an anchor            ANCHOR_SET
        ANCHOR_SET                    S*                   INNER_END of INSIDE, if a price within S* is wanted;
                                                           else RIGHT_END of BEYOND; none, if only S* is wanted
        INNER_END    INSIDE, UP_TO    a set                INNER_END, farther left; LEFT_END after the last
        LEFT_END     PLAIN            a set                RIGHT_END
                     INSIDE, UP_TO    a set                BETWEEN this set and the last INNER_END
        RIGHT_END                     a set                BETWEEN the left end and this set
        BETWEEN                       a better set         BETWEEN the left end and this set
                                      no better set        BETWEEN the next corner and the one after it; at the last
                                                           corner the stretch ends
        (any)        UP_TO            one not within S*    the stretch ends
        (either)     BEYOND           one that lacks a     INNER_END of UP_TO; if that is known to end early, the same
                                      label of S*          question again, held to supersets of S*
        (the end)    PLAIN, BEYOND                         RIGHT_END, farther right; none, if no higher price is wanted
                     INSIDE                                RIGHT_END of BEYOND; none, if no price beyond is wanted
                     UP_TO                                 those of BEYOND since the last RIGHT_END once more

    If the next right end is the last, the set that has all mass, LAST_END takes the place of RIGHT_END.
    """
    asked, stretch = R.state.asked, R.state.stretch
    if asked == ANCHOR_SET:
        return _after_anchor_set(R)
    if asked == INNER_END:
        if _is_nested(R):
            R.state.top = R.state.place
            buy_below(R, R.state.top)
            return _ask_inner_end(R)
    elif asked == LEFT_END:
        _take_left_end(R)
    else:
        if stretch == BEYOND and asked != BETWEEN:
            copy_corner(R, LEFT, RESUME_LEFT)
            copy_corner(R, 0, RESUME_RIGHT)
        if _lacks_star(R):
            return _ask_held(R) if R.state.nested == NOT_NESTED else _begin_stretch(R, UP_TO)
        if asked == BETWEEN:
            _take_between(R)
        else:
            buy_below(R, 0)
    return _ask_between(R) or _end_stretch(R)


@jit
def _lacks_star(R: Trace) -> bool:
    """Whether the answer may be none among those that are wanted, since it lacks a label of S*."""
    state, found = R.state, R.state.place
    if state.stretch != BEYOND or state.held or state.nested == NESTED:
        return False
    return not is_within(R.marks[STAR], R.marks[found]) and (state.asked != BETWEEN or is_better(R))


@jit
def _ask_held(R: Trace) -> bool:
    """Ask once more, for supersets of S*."""
    state = R.state
    put(R.marks[state.place], R.marks[state.top if state.asked == BETWEEN else LEFT])
    state.held = True
    return True


@jit
def _after_anchor_set(R: Trace) -> bool:
    """After ANCHOR_SET: S* is known."""
    state = R.state
    if state.wanted == BEST:
        return False
    within_star = state.wanted == ALL or (state.wanted == ONE and R.marks[STAR, state.label] == IN)
    if within_star or (state.wanted == SET and state.threshold < state.anchor):
        return _begin_stretch(R, INSIDE)
    return _begin_beyond(R)


@jit
def _begin_beyond(R: Trace) -> bool:
    """Go on from S* to prices above the anchor."""
    state = R.state
    state.stretch, state.top, state.right, state.nodes = BEYOND, -1, state.anchor, state.budget
    copy_corner(R, STAR, LEFT)
    fill(R.fixed, FREE)
    for k in range(len(R.p)):
        R.score[k] = state.anchor if R.marks[STAR, k] == IN else np.inf
    return _go_right(R)


@jit
def _begin_stretch(R: Trace, stretch: int) -> bool:
    """Begin a stretch at price 0."""
    R.state.stretch, R.state.top = stretch, -1
    for k in range(len(R.p)):
        R.fixed[k] = OUT if stretch == INSIDE and R.marks[STAR, k] != IN else FREE
    if stretch == PLAIN:
        return _ask(R, LEFT_END, _guide(R), LEFT, False)
    copy_corner(R, STAR, 0)
    R.corners[0].nodes = R.state.budget
    R.state.top = 0
    return _ask_inner_end(R)


@jit
def _ask_inner_end(R: Trace) -> bool:
    """Ask for the next set between the anchor and price 0, or for that at price 0."""
    top = R.state.top
    if top == _INNER_ENDS:
        return _ask(R, LEFT_END, _guide(R), LEFT, False)
    put(R.marks[top + 1], R.marks[top])
    return _ask(R, INNER_END, R.state.anchor / (1.0 + _FIRST_INNER_STEP * _INNER_GROWTH**top), top + 1, True)


@jit
def _is_nested(R: Trace) -> bool:
    """Whether, in UP_TO, the answer is within S*; if not, that is noted."""
    state = R.state
    if state.stretch != UP_TO or is_within(R.marks[state.place], R.marks[STAR]):
        return True
    state.nested = NOT_NESTED
    return False


@jit
def _take_left_end(R: Trace) -> None:
    """Take in the left end of a stretch."""
    state = R.state
    buy(R, LEFT, 0.0)
    if state.stretch == UP_TO:
        state.nested = NESTED  # until a set is found that is not within S*
        _is_nested(R)


@jit
def _ask_between(R: Trace) -> bool:
    """Ask for the best set where the lines of the left end and the next waiting corner meet; False if none waits, or
    nothing is wanted of those that do."""
    state, left = R.state, R.corners[LEFT]
    while state.top >= 0 and not _is_done(R):
        top = state.top
        gain, gain_low = mass_between(R.p, R.marks[LEFT], R.marks[top])
        if gain > 0.0:
            meeting = ratio(R.corners[top].cost - left.cost, 0.0, gain, gain_low)
            state.gain, state.mu = gain, min(max(meeting, left.reached), R.corners[top].price)
            if not may_skip(R):
                if not are_neighbours(R):
                    put(R.marks[top + 1], R.marks[top])
                    return _ask(R, BETWEEN, state.mu, top + 1, True)
                buy(R, top, state.mu)
        else:  # not heavier, since a search was not proved, or the same set
            buy(R, top, R.corners[top].price)
        move_left_end(R)
    return False


@jit
def _is_done(R: Trace) -> bool:
    """Whether nothing is wanted any more of the stretch: for UP_TO, a set is known that is not within S*; else the
    label is bought, or prices are above those that matter."""
    if R.state.stretch == UP_TO:
        return bool(R.state.nested == NOT_NESTED)
    return is_bought(R) or bool(R.corners[LEFT].reached > R.state.upper)


@jit
def _take_between(R: Trace) -> None:
    """Take in the best set where two corners meet: it is a corner between them, or they are neighbours."""
    state, corners, top, found = R.state, R.corners, R.state.top, R.state.place
    if is_better(R):
        if not _is_nested(R):
            return
        if found < MAX_WAITING:
            state.top = found
            buy_below(R, found)
            before, after = difference(R.marks[LEFT], R.marks[found]), difference(R.marks[found], R.marks[top])
            nodes, share = corners[top].nodes, before / (before + after)
            corners[found].nodes, corners[top].nodes = nodes * max(share, 0.75), nodes * max(1.0 - share, 0.75)
            return
        state.unresolved = max(state.unresolved, state.mu * state.gain)
    buy(R, top, state.mu)
    move_left_end(R)


@jit
def _end_stretch(R: Trace) -> bool:
    """Go on from a stretch of which all is known that is wanted; False if the row is done."""
    state = R.state
    if state.stretch == INSIDE:
        _close_inside(R)
        return state.wanted == ALL and _begin_beyond(R)
    if state.stretch == UP_TO:
        return _resume_beyond(R)
    return _go_right(R)


@jit
def _go_right(R: Trace) -> bool:
    """Ask for the next right end, if higher prices are wanted; False if the row is done."""
    return not is_bought(R) and R.state.right < R.state.upper and _next_end(R)


@jit
def _resume_beyond(R: Trace) -> bool:
    """Go on with BEYOND at its last right end, as it is known now whether the best sets up to S* are nested."""
    state = R.state
    state.stretch, state.top = BEYOND, 0
    copy_corner(R, RESUME_LEFT, LEFT)
    copy_corner(R, RESUME_RIGHT, 0)
    if state.nested == NOT_NESTED and not is_within(R.marks[STAR], R.marks[0]):
        return _ask_end(R) and _ask_held(R)
    buy_below(R, 0)
    return _ask_between(R) or _go_right(R)


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
        put(R.marks[0], R.marks[LEFT])
        return _ask(R, RIGHT_END, R.state.right, 0, True)
    return _ask(R, LAST_END, 0.0, 0, False)


@jit
def _next_price(R: Trace) -> float:
    """The price of the next right end; infinite for the last, 0 if there is none."""
    state = R.state
    least, likeliest = outside(R.p, R.marks[LEFT])
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
def _close_inside(R: Trace) -> None:
    """End INSIDE: every label of S* is bought at the anchor; in the set at a lower threshold, only those found to be
    bought."""
    for k in range(len(R.score)):
        bought = R.score[k] < np.inf or (R.state.wanted != SET and R.marks[STAR, k] == IN)
        R.score[k] = min(R.score[k], R.state.anchor) if bought else np.inf
    put(R.inside, R.score)


@jit
def _close_beyond(R: Trace) -> None:
    """End BEYOND: labels of S* have their prices from INSIDE, others a price above the anchor."""
    if R.state.stretch != BEYOND or R.state.wanted == BEST:
        return
    beyond = np.nextafter(R.state.anchor, np.inf)
    for k in range(len(R.score)):
        if R.marks[STAR, k] == IN:
            R.score[k] = R.inside[k] if R.state.wanted == ALL else R.state.anchor
        elif R.score[k] < np.inf:
            R.score[k] = max(R.score[k], beyond)
