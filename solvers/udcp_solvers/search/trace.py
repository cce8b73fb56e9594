"""The hull of one row as far as it is known, and what is known of the sets between two of its corners.

The two are the left end a and the next waiting corner b, whose lines meet at the price mu (see `hull`). For each label,
the *margins* of a corner bound how much worse than the corner every set is in which the label is changed, at the price
where the corner was found. The least L - mu p of these sets is concave in the price, so it is above the line between
the two bounds (`_height`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Record, Records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import Double, plus
from udcp_solvers.numeric.filling import fill, put
from udcp_solvers.search.layout import FREE, IN, OUT, Floats, Ints, Marks
from udcp_solvers.search.workspace import NEAR, same_set

# What is wanted of a row: every score, the score of one label, the set at a threshold, only the best set at the anchor.
ALL, ONE, SET, BEST = range(4)
# Questions (see `advance`) and stretches (see above).
ANCHOR_SET, INNER_END, LEFT_END, RIGHT_END, LAST_END, BETWEEN = range(6)
PLAIN, INSIDE, UP_TO, BEYOND = range(4)
# Whether every best set up to the anchor is within S*.
UNKNOWN, NESTED, NOT_NESTED = range(3)

# Places of corners. Waiting corners come first, the next one last; behind it is the one that is asked for; then the
# left end, the best set at the anchor, and the ends between which BEYOND goes on after UP_TO.
MAX_WAITING = 48
LEFT, STAR, RESUME_LEFT, RESUME_RIGHT = range(MAX_WAITING + 1, MAX_WAITING + 5)
PLACES = MAX_WAITING + 5

# Relative tolerance of prices: up to a price this much higher, a set may be bought at the price itself, given rounding.
PRICE_ROUNDING = 1e-9
# A corner: the cost of the set; the price at which it was found to be the best; the least price of sets to its right;
# the nodes for questions between it and the left end; whether it was found among supersets of S*.
CORNER = np.dtype([("cost", "f8"), ("price", "f8"), ("reached", "f8"), ("nodes", "i8"), ("held", "?")], align=True)
# See `Trace`: what is wanted, the question, how far the hull is known.
STATE = np.dtype([
    ("wanted", "i8"), ("label", "i8"), ("anchor", "f8"), ("threshold", "f8"), ("upper", "f8"), ("span", "f8"),
    ("asked", "i8"), ("stretch", "i8"), ("mu", "f8"), ("place", "i8"), ("started", "?"), ("held", "?"), ("gain", "f8"),
    ("budget", "i8"), ("nodes", "i8"), ("unresolved", "f8"), ("top", "i8"), ("nested", "i8"),
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

    Corners by place: their `marks` (places, K); `margins` (places, K), how much worse sets are in which a label is
    changed, at the price where the corner was found; `lines` (places, Q + N), those of the first node. `fixed`
    (K,): labels that all sets of the stretch hold or leave out; `asked` (K,): those of the question. The `state`:

    - what is `wanted` of the row, and of which `label`; the `anchor`, below 0 for none; the `threshold`; `upper`, the
      highest price that matters; `span`, as in `PriceRows`;
    - what is `asked`, in which `stretch`: the best set at the price `mu`, for which `place`, and whether it is
      `started` with a set that is there, or `held` to supersets of S*; `gain`, for BETWEEN, the mass between the two
      sets that meet;
    - `budget`, the nodes of each stretch; `nodes` that are left for right ends; `unresolved`, how much better a corner
      is for which there was no place;
    - `top`, the place of the next waiting corner, -1 for none; `nested`: whether a best set up to the anchor has a
      label outside S*;
    - the price of the `right` end, how many `ends` there were, and the `first_right` end without an anchor.
    """

    p: Floats
    score: Floats
    inside: Floats
    marks: Marks
    corners: Records
    margins: Floats
    lines: Floats
    fixed: Marks
    asked: Marks
    state: Record


@jit
def copy_corner(R: Trace, of: int, to: int) -> None:
    """Copy a corner to another place."""
    a, b = R.corners[of], R.corners[to]
    b.cost, b.price, b.reached, b.nodes, b.held = a.cost, a.price, a.reached, a.nodes, a.held
    put(R.lines[to], R.lines[of])
    put(R.marks[to], R.marks[of])
    put(R.margins[to], R.margins[of])


@jit
def move_left_end(R: Trace) -> None:
    """Make the next waiting corner the left end."""
    copy_corner(R, R.state.top, LEFT)
    R.state.top -= 1


@jit
def buy(R: Trace, place: int, price: float) -> None:
    """Buy the labels of a corner at a price, unless they are bought already."""
    if R.state.stretch == UP_TO:
        return
    for k in range(len(R.score)):
        if R.marks[place, k] == IN:
            R.score[k] = min(R.score[k], price)


@jit
def buy_below(R: Trace, place: int) -> None:
    """Of a set at a threshold, the labels of a corner below it are known, before their prices are."""
    if R.state.wanted == SET and R.corners[place].price <= R.state.threshold:
        buy(R, place, R.corners[place].price)


@jit
def is_bought(R: Trace) -> bool:
    """Whether one label is wanted and its price is known."""
    return bool(R.state.wanted == ONE and R.score[R.state.label] < np.inf)


@jit
def start_lines(R: Trace, lines: Floats) -> None:
    """The lines to start with: those of the left end, or between those of the two corners that meet."""
    state, a, b = R.state, R.corners[LEFT].price, R.corners[R.state.top].price
    if state.asked == ANCHOR_SET or state.asked == LEFT_END:
        fill(lines, 0.0)
        return
    put(lines, R.lines[state.top if state.asked == INNER_END else LEFT])
    if state.asked == BETWEEN and a < state.mu < b < np.inf:
        share = (state.mu - a) / (b - a)
        for s in range(len(lines)):
            lines[s] += share * (R.lines[state.top, s] - lines[s])


@jit
def _height(R: Trace) -> tuple[float, float, float]:
    """Where the price at which two corners meet lies between those where they were found, how far the line between
    their values is below their common value there, and what is rounding; an infinite height if that is not known.

    The least L - mu p of sets in which a label is changed is concave in the price. So it is above the line between its
    lower bounds, the margins, at the two prices where the corners were found.
    """
    state, mu = R.state, R.state.mu
    a, b = R.corners[LEFT].price, R.corners[state.top].price
    if not a < mu < b < np.inf:
        return 0.0, np.inf, 0.0
    share = (mu - a) / (b - a)
    height = share * (b - mu) * state.gain
    return share, height, PRICE_ROUNDING * height + NEAR * (state.span + mu)


@jit
def fix_between(R: Trace, margin: Floats) -> None:
    """Fix labels on which the two corners that meet agree, if every best set at their price does so, too."""
    top = R.state.top
    share, height, slack = _height(R)
    for k in range(len(R.p)):
        if R.asked[k] == FREE and (R.marks[LEFT, k] == IN) == (R.marks[top, k] == IN):
            more = (1.0 - share) * R.margins[LEFT, k] + share * R.margins[top, k] - height
            if more > slack:
                R.asked[k] = IN if R.marks[top, k] == IN else OUT
                margin[k] = more


@jit
def may_skip(R: Trace) -> bool:
    """Whether no corner between the left end and the next waiting one has a label that is wanted.

    That are the labels outside S*, for UP_TO; the one label; for a set, those that are not known to be in it. A set
    with a label that neither end has is at least as high as the lower of the two at every price between them: at
    either end by its margin, which is not below 0, where the two meet by `_height`, and as both are linear from
    there to the ends, everywhere.
    """
    state, top = R.state, R.state.top
    up_to, one = state.stretch == UP_TO, state.wanted == ONE and state.stretch != UP_TO
    if state.wanted == ALL and not up_to:
        return False
    share, height, slack = _height(R)
    for k in range(state.label, state.label + 1) if one else range(len(R.p)):
        wanted = one or (R.marks[STAR, k] != IN if up_to else R.score[k] > state.threshold)
        if wanted and R.fixed[k] == FREE:
            a, b = R.margins[LEFT, k], R.margins[top, k]
            excluded = a >= 0.0 and b >= 0.0 and (1.0 - share) * a + share * b - height > slack
            if not excluded or R.marks[top, k] == IN or R.marks[LEFT, k] == IN:
                return False
    return True


@jit
def are_neighbours(R: Trace) -> bool:
    """Whether the left end and the next waiting corner are the only sets that may be the best where they meet."""
    top, free = R.state.top, 0
    share, height, slack = _height(R)
    for k in range(len(R.p)):
        if R.fixed[k] == FREE:
            more = (1.0 - share) * R.margins[LEFT, k] + share * R.margins[top, k] - height
            free += not more > slack or (R.marks[LEFT, k] == IN) != (R.marks[top, k] == IN)
            if free > 1:
                return False
    return True


@jit
def is_better(R: Trace) -> bool:
    """Whether the set found where two corners meet is better than both."""
    state, corners, top, found = R.state, R.corners, R.state.top, R.state.place
    gain, _ = mass_between(R.p, R.marks[LEFT], R.marks[found])
    rise, step = corners[top].cost - corners[LEFT].cost, corners[found].cost - corners[LEFT].cost
    slack = NEAR * (state.span + abs(rise) + abs(step))
    lower = min(rise - state.mu * state.gain, 0.0)
    return gain > 0.0 and step - state.mu * gain < lower - slack and not same_set(R.marks[found], R.marks[top])


@jit
def difference(a: Marks, b: Marks) -> int:
    """In how many labels two sets differ."""
    count = 0
    for k in range(len(a)):
        count += (a[k] == IN) != (b[k] == IN)
    return count


@jit
def outside(p: Floats, marks: Marks) -> tuple[float, int]:
    """The least positive mass of a label outside a set, and the likeliest of these labels, or -1."""
    least, likeliest = np.inf, -1
    for k in range(len(p)):
        if marks[k] != IN and p[k] > 0.0:
            least = min(least, p[k])
            if likeliest < 0 or p[k] > p[likeliest]:
                likeliest = k
    return least, likeliest


@jit
def mass_between(p: Floats, a: Marks, b: Marks) -> Double:
    """The mass of b minus that of a."""
    high, low = 0.0, 0.0
    for k in range(len(p)):
        if (a[k] == IN) != (b[k] == IN):
            high, low = plus(high, low, p[k] if b[k] == IN else -p[k])
    return high, low
