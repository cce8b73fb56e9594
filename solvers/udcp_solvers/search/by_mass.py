"""The cheapest set that has a mass: branch and bound over labels, bounded by prices.

Let g(mu) be the least L(S) - mu p(S) among the sets that agree with the labels fixed so far. A set of mass t costs at
least g(mu) + mu t, for every price mu >= 0. Each known set is a line L(S) + mu (t - p(S)) above that bound; the next
price to ask for is where the lines of a set that is short of t and of one that is not meet. A branch ends if its bound
is no better than the cheapest known set that has the mass. Otherwise it is divided by a label, in or out: the heaviest
of those in which the two sets that meet differ. If the values of the loss are on a grid, bounds are rounded up to it.

The next question depends on the answer: `_begin` asks the first, `_advance` takes in an answer and asks the next, and
best sets are found in one place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Record, Records, records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import plus
from udcp_solvers.numeric.filling import fill, order_by, put
from udcp_solvers.search.best import best_set
from udcp_solvers.search.intervals import cost_of
from udcp_solvers.search.layout import FREE, IN, OUT, TWIN, Floats, Ints, Marks, part, size_numbers
from udcp_solvers.search.workspace import Question, Workspace, workspace_of

# The most prices that are asked for in the first branch, and in others.
_FIRST_ASKS, _ASKS = 40, 3
# Costs are equal if they differ by less than this part of them plus this part of the span of the loss.
_NEAR, _NEAR_SPAN = 1e-10, 1e-11
# In steps of the grid: how far above a point of it rounding may leave a bound; the most steps that floats tell apart.
_ABOVE_GRID_POINT, _MANY_STEPS = 1e-6, 1e8

# Places: the present branch; its parent, of which it is a half; then those that wait.
_HERE, _PARENT, _WAITING = range(3)
# The two sets of a branch: the one that is short of the mass, the one that has it.
_SHORT, _HAS_MASS = range(2)
# Which half the present branch is: the first branch is none; the half with the label that divides; the one without it.
_ROOT, _WITH, _WITHOUT = range(3)

# The cost of a set, and its mass minus t.
SET = np.dtype([("cost", "f8"), ("excess", "f8")])
# The number of waiting branches; branches and nodes of the search so far (`work`), and how many there may be; prices
# still to be asked for; the half and the label that divides; whether every set of the branch has the mass. The mass t
# and the cost of the cheapest known set that has it; the price asked for, and the height at which two lines meet. The
# span of the loss, and the grid of its values: a step of 0 for none.
STATE = np.dtype([
    ("waiting", "i8"), ("work", "i8"), ("budget", "i8"), ("asks", "i8"), ("half", "i8"), ("label", "i8"),
    ("all_have_mass", "?"), ("t", "f8"), ("least", "f8"), ("mu", "f8"), ("height", "f8"),
    ("span", "f8"), ("offset", "f8"), ("step", "f8"),
], align=True)  # fmt: skip


class MassRows(NamedTuple):
    """Rows P (n, K), the masses t (n,), and labels that sets have to hold or leave out, `fixed` (n, K). `masks` (n, K)
    gets the cheapest sets, and `gaps` (n,) how much cheaper another set may be.

    `branches`: the most branches per row, including nodes of the search; `budget`: the most nodes per best set; `span`:
    the difference between the highest and lowest possible cost; `grid`: offset and step of costs, a step of 0 for none.
    """

    P: Floats
    t: Floats
    fixed: Marks
    masks: Marks
    gaps: Floats
    branches: int
    budget: int
    span: float
    grid: Floats


class Branches(NamedTuple):
    """Branches of one row by place: bounds, labels that are `fixed` (places, K), two sets each (places, 2, K) and their
    costs. Of the row: p, labels by rising p, the set `found` last and the `best` that has the mass; the state. `trial`
    (3, K) is scratch for sets."""

    bounds: Floats
    fixed: Marks
    sets: Marks
    costs: Records
    p: Floats
    order: Ints
    found: Marks
    best: Marks
    trial: Marks
    state: Record


def mass_block(start: int, stop: int, ints: Ints, floats: Floats, rows: MassRows) -> None:
    """`mass_rows` with its own branches and workspace."""
    K, places = size_numbers(ints)[0], _WAITING + rows.branches + 3
    state = records(1, STATE)[0]
    state.span, state.offset, state.step = rows.span, rows.grid[0], rows.grid[1]
    W = Branches(
        bounds=np.zeros(places),
        fixed=np.zeros((places, K), np.int8),
        sets=np.zeros((places, 2, K), np.int8),
        costs=records(2 * places, SET),
        p=np.empty(K),
        order=np.arange(K),
        found=np.zeros(K, np.int8),
        best=np.zeros(K, np.int8),
        trial=np.zeros((3, K), np.int8),
        state=state,
    )
    mass_rows(start, stop, ints, floats, rows, W, workspace_of(ints))


@jit
def mass_rows(start: int, stop: int, ints: Ints, floats: Floats, rows: MassRows, W: Branches, T: Workspace) -> None:
    """Find the cheapest sets of rows start .. stop - 1."""
    for n in range(start, stop):
        put(W.p, rows.P[n])
        W.state.t, W.state.budget = rows.t[n], rows.branches
        more = _begin(ints, floats, rows.fixed[n], W, T)
        while more:
            fill(T.warm_lines, 0.0)
            asked = Question(W.p, W.state.mu, W.fixed[_HERE], rows.span, max(rows.budget, 1), False, -np.inf)
            gap = best_set(ints, floats, asked, W.found, True, T)
            more = _advance(ints, floats, gap, T.search.node_count, W, T)
        rows.gaps[n] = _gap_of(W)
        for y in range(len(W.best)):
            rows.masks[n, y] = W.best[y] == IN


@jit
def _begin(ints: Ints, floats: Floats, inside: Marks, W: Branches, T: Workspace) -> bool:
    """Ask the first question of a row, about the sets that agree with `inside`; False if none of them has the mass."""
    state = W.state
    state.waiting, state.work, state.asks, state.label, state.all_have_mass = 0, 0, 0, 0, False
    state.least, state.half = np.inf, _ROOT
    fill(W.best, 0)
    for y in range(len(W.p)):
        W.order[y] = y
    order_by(W.p, W.order, T.spare)
    put(W.fixed[_HERE], inside)
    W.bounds[_HERE] = -np.inf
    return _begin_branch(ints, floats, W, T)


@jit
def _gap_of(W: Branches) -> float:
    """How much cheaper than the best set found another set may be, at most."""
    bound = W.state.least
    for i in range(_WAITING, _WAITING + W.state.waiting):
        bound = min(bound, W.bounds[i])
    return float(W.state.least - bound) if bound < _useful_below(W) else 0.0


@jit
def _advance(ints: Ints, floats: Floats, gap: float, work: int, W: Branches, T: Workspace) -> bool:
    """Take in the best set at the price asked for, and ask the next question; False if the row is done.

    `work`: how many nodes it took to find the set.
    """
    state = W.state
    state.work += work
    cost, excess = cost_of(ints, floats, W.found, T), _excess_mass(W, W.found)
    _keep_if_cheapest(W, W.found, cost, excess)
    if state.all_have_mass:
        if gap > 0.0 and cost - gap < _useful_below(W):
            W.bounds[_HERE] = cost - gap
            _store_set(W, _SHORT, W.found, cost, excess)
            _store_set(W, _HAS_MASS, W.found, cost, excess)
            _keep_waiting(W)
        return _next_branch(ints, floats, W, T)
    line = cost - state.mu * excess
    W.bounds[_HERE] = max(W.bounds[_HERE], _rounded_up(W, line - gap))
    if W.bounds[_HERE] < _useful_below(W) and line < state.height - _tolerance(W, state.height) and state.asks > 0:
        _store_set(W, _SHORT if excess < 0.0 else _HAS_MASS, W.found, cost, excess)
        _improve(ints, floats, W, T)
        state.asks -= 1
        _set_meeting_price(W)
        return True
    if W.bounds[_HERE] < _useful_below(W):
        _keep_waiting(W)
    return _next_branch(ints, floats, W, T)


@jit
def _next_branch(ints: Ints, floats: Floats, W: Branches, T: Workspace) -> bool:
    """Go on to the other half, or to the waiting branch of least bound; False if none can hold a better set, or the
    budget is used up."""
    state = W.state
    while True:
        if state.half == _WITH:
            state.half = _WITHOUT
        else:
            least = -1
            for i in range(_WAITING, _WAITING + state.waiting):
                if least < 0 or W.bounds[i] < W.bounds[least]:
                    least = i
            if least < 0 or state.work >= state.budget or W.bounds[least] >= _useful_below(W):
                return False
            _copy(W, least, _PARENT)
            _copy(W, _WAITING + state.waiting - 1, least)
            state.waiting -= 1
            state.label = _branching_label(W)
            state.half = _WITH
        state.work += 1
        _copy(W, _PARENT, _HERE)
        _fix_half(ints, W)
        if _begin_branch(ints, floats, W, T):
            return True


@jit
def _fix_half(ints: Ints, W: Branches) -> None:
    """Fix the label that divides; of twins, the likelier enter first, then those of lower index."""
    twin, fixed, p, y = part(ints, TWIN), W.fixed[_HERE], W.p, W.state.label
    for k in range(len(p)):
        if twin[k] == twin[y] and fixed[k] == FREE:
            before = p[k] > p[y] or (p[k] == p[y] and k < y)
            if W.state.half == _WITH and (before or k == y):
                fixed[k] = IN
            elif W.state.half == _WITHOUT and not before:
                fixed[k] = OUT


@jit
def _begin_branch(ints: Ints, floats: Floats, W: Branches, T: Workspace) -> bool:
    """Begin the present branch, with the two sets of its parent, or with its smallest and largest set.

    False if none of its sets has the mass.
    """
    state, fixed, smallest, largest = W.state, W.fixed[_HERE], W.trial[0], W.trial[1]
    state.all_have_mass = False
    for y in range(len(fixed)):
        smallest[y] = IN if fixed[y] == IN else 0
        largest[y] = IN if fixed[y] != OUT else 0
    excess = _excess_mass(W, largest)
    if excess < 0.0:
        return False
    cost = cost_of(ints, floats, largest, T)
    _keep_if_cheapest(W, largest, cost, excess)
    short_excess = _excess_mass(W, smallest)
    if short_excess >= 0.0:  # every set of the branch has the mass
        state.all_have_mass, state.mu = True, 0.0
        put(W.found, largest)
        return True
    short_cost = cost_of(ints, floats, smallest, T)
    half = state.half != _ROOT
    kept_short, kept_has = _inherit(ints, floats, W, T) if half else (False, False)
    if not kept_short:
        _store_set(W, _SHORT, smallest, short_cost, short_excess)
    if not kept_has:
        _store_set(W, _HAS_MASS, largest, cost, excess)
    state.asks = _ASKS if half else _FIRST_ASKS
    _set_meeting_price(W)
    return True


@jit
def _inherit(ints: Ints, floats: Floats, W: Branches, T: Workspace) -> tuple[bool, bool]:
    """Change the two sets of the parent to agree with what is fixed in the half; returns whether the one is still short
    of the mass, and whether the other still has it."""
    fixed = W.fixed[_HERE]
    for which in (_SHORT, _HAS_MASS):
        mask, changed = W.sets[_HERE, which], 0
        for y in range(len(fixed)):
            if fixed[y] != FREE and (mask[y] == IN) != (fixed[y] == IN):
                mask[y] = IN if fixed[y] == IN else 0
                changed += 1
        if changed > 0:
            known = _set_of(W, _HERE, which)
            known.cost, known.excess = cost_of(ints, floats, mask, T), _excess_mass(W, mask)
            _keep_if_cheapest(W, mask, known.cost, known.excess)
    short, has = _set_of(W, _HERE, _SHORT), _set_of(W, _HERE, _HAS_MASS)
    if short.excess < 0.0 or has.excess >= 0.0:
        return short.excess < 0.0, has.excess >= 0.0
    # The two have exchanged their roles.
    put(W.trial[2], W.sets[_HERE, _SHORT])
    cost, excess = short.cost, short.excess
    _store_set(W, _SHORT, W.sets[_HERE, _HAS_MASS], has.cost, has.excess)
    _store_set(W, _HAS_MASS, W.trial[2], cost, excess)
    return True, True


@jit
def _set_meeting_price(W: Branches) -> None:
    """Set the price at which the two sets meet, and the better of them to begin with."""
    short, has = _set_of(W, _HERE, _SHORT), _set_of(W, _HERE, _HAS_MASS)
    mu = max(0.0, (has.cost - short.cost) / (has.excess - short.excess))
    of_short, of_has = short.cost - mu * short.excess, has.cost - mu * has.excess
    W.state.mu, W.state.height = mu, min(of_short, of_has)
    put(W.found, W.sets[_HERE, _SHORT if of_short < of_has else _HAS_MASS])


@jit
def _branching_label(W: Branches) -> int:
    """The heaviest free label in which the two sets that meet differ; if there is none, the heaviest free label."""
    p, found = W.p, -1
    for alike in (False, True):
        for y in range(len(p)):
            differs = alike or W.sets[_PARENT, _SHORT, y] != W.sets[_PARENT, _HAS_MASS, y]
            if W.fixed[_PARENT, y] == FREE and differs and (found < 0 or p[y] > p[found]):
                found = y
        if found >= 0:
            break
    return found


@jit
def _keep_waiting(W: Branches) -> None:
    """Let the present branch wait, unless none of its labels is free."""
    free = 0
    for mark in W.fixed[_HERE]:
        free += mark == FREE
    if free > 0:
        _copy(W, _HERE, _WAITING + W.state.waiting)
        W.state.waiting += 1


@jit
def _improve(ints: Ints, floats: Floats, W: Branches, T: Workspace) -> None:
    """Try sets between the two: drop labels that the one with the mass can do without, or add one label to the
    other."""
    short, has, trial, p = W.sets[_HERE, _SHORT], W.sets[_HERE, _HAS_MASS], W.trial[0], W.p
    known = _set_of(W, _HERE, _HAS_MASS)
    cost, excess = known.cost, known.excess
    put(trial, has)
    for y in W.order:
        if trial[y] == IN and short[y] != IN and p[y] <= excess:
            trial[y] = 0
            less = cost_of(ints, floats, trial, T)
            if less < cost:
                cost, excess = less, excess - p[y]
            else:
                trial[y] = IN
    _keep_if_cheapest(W, trial, cost, _excess_mass(W, trial))
    put(trial, short)
    for y in W.order:
        if has[y] == IN and short[y] != IN and p[y] >= -_set_of(W, _HERE, _SHORT).excess:
            trial[y] = IN
            _keep_if_cheapest(W, trial, cost_of(ints, floats, trial, T), _excess_mass(W, trial))
            trial[y] = 0


@jit
def _set_of(W: Branches, place: int, which: int) -> Any:
    """The record of one of the two sets of a branch."""
    return W.costs[2 * place + which]


@jit
def _copy(W: Branches, of: int, to: int) -> None:
    """Copy a branch to another place."""
    W.bounds[to] = W.bounds[of]
    put(W.fixed[to], W.fixed[of])
    for which in (_SHORT, _HAS_MASS):
        put(W.sets[to, which], W.sets[of, which])
        old, new = _set_of(W, of, which), _set_of(W, to, which)
        new.cost, new.excess = old.cost, old.excess


@jit
def _store_set(W: Branches, which: int, mask: Marks, cost: float, excess: float) -> None:
    """Make a set one of the two of the present branch."""
    put(W.sets[_HERE, which], mask)
    known = _set_of(W, _HERE, which)
    known.cost, known.excess = cost, excess


@jit
def _keep_if_cheapest(W: Branches, mask: Marks, cost: float, excess: float) -> None:
    """Note a set if it has the mass and is cheaper than all before."""
    if excess >= 0.0 and cost < W.state.least:
        W.state.least = cost
        for y in range(len(mask)):
            W.best[y] = IN if mask[y] == IN else 0


@jit
def _excess_mass(W: Branches, mask: Marks) -> float:
    """The mass of a set minus t."""
    high, low = -W.state.t, 0.0
    for y in range(len(mask)):
        if mask[y] == IN:
            high, low = plus(high, low, W.p[y])
    return float(high + low)


@jit
def _useful_below(W: Branches) -> float:
    """The bound below which a branch may still hold a better set."""
    least = float(W.state.least)
    return least - _tolerance(W, least) if least < np.inf else least


@jit
def _tolerance(W: Branches, cost: float) -> float:
    return _NEAR * abs(cost) + _NEAR_SPAN * float(W.state.span)


@jit
def _rounded_up(W: Branches, bound: float) -> float:
    """A bound, rounded up to the next value that the loss can take."""
    step, offset = float(W.state.step), float(W.state.offset)
    if step <= 0.0 or abs(bound - offset) > _MANY_STEPS * step:
        return bound
    return max(bound, float(offset + step * np.ceil((bound - offset) / step - _ABOVE_GRID_POINT)))
