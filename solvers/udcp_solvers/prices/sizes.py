"""Prices under L(S) = f(|S|) + the sum of label costs l(y), for any table f.

At price mu, of the sets of k labels the best takes the k labels of least l - mu p, so only K + 1 sets matter: prefixes
of that order. The hull is traced between two known prices a < b: the lines of their sets meet at a price m; if no set
is better there, S jumps from the one to the other, else the interval is cut (Eisner and Severance). Where all label
costs are equal the order is that of falling p, whatever the price, and the hull of K + 1 points is walked.

Orders and values that are near each other are compared by cross-multiplication to 106 bits: ties are as in rationals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Ints, Masks, Probabilities, Records, plain, records
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.double_double import minus, plus, ratio, sign_of_cross, times
from udcp_solvers.numeric.falling import falling_order, order_scratch
from udcp_solvers.prices.hull import is_below, lower_hull, meeting, price_between

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Values closer than this, relatively, are compared exactly.
_NEAR = 1e-12
# How many ends of intervals wait at most.
_HELD = 64
# An order is mended from the one at the price before, unless that takes more moves than this for each label.
_MOVES = 16


END = np.dtype([("size", "i8"), ("cost", "f8"), ("cost_low", "f8"), ("rem", "f8"), ("rem_low", "f8")], align=True)


class Ends(NamedTuple):
    """Sets that were best at a price: size, cost and mass left out (high + low); labels. `order` is that of the labels
    at the last price that was asked for."""

    sets: Records
    chosen: Masks
    order: Ints


class SizePrices:
    """The prices of one loss, by row."""

    def __init__(self, table: Floats, costs: Floats) -> None:
        self._equal = bool((costs == costs[0]).all())
        self._table = table + costs[0] * np.arange(len(table)) if self._equal else table
        self._costs = costs

    @staticmethod
    def of(loss: Loss) -> Callable[[], SizePrices] | None:
        """What makes them; None where the loss is not a function of size and label costs."""
        form = loss.form
        if form is None or form.of_size is None or form.categories or form.diameters:
            return None
        return partial(SizePrices, form.of_size, form.label_costs)

    def scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        if self._equal:
            over_rows(_by_falling_p, *P.shape, plain(P), self._table, out)
        else:
            over_rows(_block, *P.shape, plain(P), self._table, self._costs, out)
        return out


# Functions of size alone ----------------------------------------------------------------------------------------------


@jit
def _by_falling_p(start: int, stop: int, P: Probabilities, f: Floats, out: Floats) -> None:
    K = P.shape[1]
    scratch = order_scratch(K)
    rem, low = np.zeros(K + 1), np.zeros(K + 1)
    corner = np.empty(K + 1, np.int64)
    for n in range(start, stop):
        order = falling_order(P[n], scratch)
        for k in range(K, 0, -1):
            rem[k - 1], low[k - 1] = plus(rem[k], low[k], np.float64(P[n, order[k - 1]]))
        _walk(order, f, rem, low, corner, out[n])


@jit
def _walk(order: Ints, f: Floats, rem: Floats, low: Floats, corner: Ints, score: Floats) -> None:
    """The lower hull of the points (mass left out, f) of the prefixes, from the cheapest on."""
    K = len(score)
    first = 0
    for k in range(1, K + 1):
        if f[k] < f[first] or (f[k] == f[first] and (rem[k] < rem[first] or low[k] < low[first])):
            first = k
    many = lower_hull(first, f, rem, low, corner)
    score[:] = np.inf
    for i in range(first):
        score[order[i]] = 0.0
    for c in range(1, many):
        a, b = corner[c - 1], corner[c]
        price = price_between(a, b, f, rem, low)
        for i in range(a, b):
            score[order[i]] = price


# With label costs -----------------------------------------------------------------------------------------------------


def _block(start: int, stop: int, P: Probabilities, f: Floats, costs: Floats, out: Floats) -> None:
    """A block of rows, with ends of its own."""
    many = _HELD + 2
    K = P.shape[1]
    ends = Ends(records(many, END), np.empty((many, K), dtype=np.bool_), np.arange(K))
    _traced(start, stop, P, f, costs, ends, out)


@jit
def _traced(start: int, stop: int, P: Probabilities, f: Floats, costs: Floats, ends: Ends, out: Floats) -> None:
    K = P.shape[1]
    p = np.empty(K)
    for n in range(start, stop):
        for y in range(K):
            p[y] = P[n, y]
        _trace(p, f, costs, ends, out[n])


@jit
def _trace(p: Floats, f: Floats, costs: Floats, ends: Ends, score: Floats) -> None:
    """End _HELD is the left one of the interval; 0 .. top are the right ones that wait, the nearest last."""
    # Not constants: functions would be compiled for each of them apart.
    a = len(ends.sets) - 2
    top = a - _HELD
    left = ends.sets[a]
    score[:] = np.inf
    _best(a, 0.0, 0.0, 1.0, 0.0, p, f, costs, ends)
    _enter(a, 0.0, ends, score)
    _best(top, 1.0, 0.0, 0.0, 0.0, p, f, costs, ends)
    while top >= 0:
        step, step_low, gain, gain_low = meeting(left, ends.sets[top])
        if gain > 0.0:
            m = top + 1
            _best(m, step, step_low, gain, gain_low, p, f, costs, ends)
            if is_below(ends.sets[m], left, step, step_low, gain, gain_low):
                if m < _HELD - 1:
                    top = m
                else:  # no room: the end before is forgotten, and found again from here
                    _move(m, top, ends)
                continue
            _enter(top, ratio(step, step_low, gain, gain_low), ends, score)
        _move(top, a, ends)
        top -= 1


@jit
def _move(v: int, to: int, ends: Ends) -> None:
    old, new = ends.sets[v], ends.sets[to]
    new.size = old.size
    new.cost, new.cost_low = old.cost, old.cost_low
    new.rem, new.rem_low = old.rem, old.rem_low
    # A loop: assigning one slice to another takes a second to compile, for the message about unequal shapes.
    for y in range(ends.chosen.shape[1]):
        ends.chosen[to, y] = ends.chosen[v, y]


@jit
def _enter(v: int, price: float, ends: Ends, score: Floats) -> None:
    for y in range(len(score)):
        if ends.chosen[v, y]:
            score[y] = min(score[y], price)


@jit
def _best(
    v: int,
    step: float,
    step_low: float,
    gain: float,
    gain_low: float,
    p: Floats,
    f: Floats,
    costs: Floats,
    ends: Ends,
) -> None:
    """Make end v the best set at price step / gain (0 / 1 and 1 / 0 are the prices 0 and without end)."""
    K = len(p)
    value = np.empty(K)
    for y in range(K):
        value[y] = costs[y] * gain - step * p[y]
    order = ends.order
    # Neighbouring prices have nearly the same order; the result does not depend on where it began.
    for most in (_MOVES * K, K * K):
        moves = 0
        for i in range(1, K):
            y = order[i]
            j = i
            while j > 0 and _before(y, order[j - 1], value, step, step_low, gain, gain_low, p, costs):
                order[j] = order[j - 1]
                j -= 1
            order[j] = y
            moves += i - j
            if moves > most:
                break
        if moves <= most:
            break
        fresh = np.argsort(value, kind="mergesort")
        for i in range(K):
            order[i] = fresh[i]
    # Masses left out are summed from the end, so that small ones keep their digits; costs from the start.
    rem, rem_low = np.zeros(K + 1), np.zeros(K + 1)
    for k in range(K, 0, -1):
        rem[k - 1], rem_low[k - 1] = plus(rem[k], rem_low[k], p[order[k - 1]])
    cost, cost_low = 0.0, 0.0
    size = 0.0
    least = np.inf
    best = ends.sets[v]
    best.size = -1
    for k in range(K + 1):
        if k > 0:
            cost, cost_low = plus(cost, cost_low, costs[order[k - 1]])
            size += abs(costs[order[k - 1]])
        whole, whole_low = plus(cost, cost_low, f[k])
        worth = gain * whole + step * rem[k]
        near = _NEAR * (gain * (size + abs(f[k])) + step * rem[k])
        if worth > least + near:
            continue
        better = worth < least - near
        least = min(least, worth)
        if not better:
            rise, rise_low = minus(whole, whole_low, best.cost, best.cost_low)
            fall, fall_low = minus(best.rem, best.rem_low, rem[k], rem_low[k])
            sign = sign_of_cross(rise, rise_low, gain, gain_low, step, step_low, fall, fall_low)
            # At a tie more mass; then the cheaper one (at a price without end); then fewer labels, as found first.
            better = sign < 0 or (sign == 0 and (fall > 0.0 or (fall == 0.0 and rise < 0.0)))
        if better:
            best.size = k
            best.cost, best.cost_low = whole, whole_low
            best.rem, best.rem_low = rem[k], rem_low[k]
    for i in range(K):
        ends.chosen[v, order[i]] = i < best.size


@jit
def _before(
    y: int,
    z: int,
    value: Floats,
    step: float,
    step_low: float,
    gain: float,
    gain_low: float,
    p: Floats,
    costs: Floats,
) -> bool:
    """Whether label y comes before z: less l - mu p, then (exact ties) more p, then less cost, then lower index."""
    if abs(value[y] - value[z]) > _NEAR * (abs(costs[y] * gain) + abs(costs[z] * gain) + step * (p[y] + p[z])):
        return bool(value[y] < value[z])
    rise, rise_low = minus(costs[y], 0.0, costs[z], 0.0)
    fall, fall_low = minus(p[y], 0.0, p[z], 0.0)
    a, a_low = times(rise, rise_low, gain, gain_low)
    b, b_low = times(step, step_low, fall, fall_low)
    sign = sign_of_cross(a, a_low, 1.0, 0.0, b, b_low, 1.0, 0.0)
    if sign != 0:
        return sign < 0
    if p[y] != p[z]:
        return bool(p[y] > p[z])
    return bool(costs[y] < costs[z] or (costs[y] == costs[z] and y < z))
