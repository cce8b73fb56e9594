"""Prices under any loss of few labels: all 2^K sets are points (mass left out, cost), and the lower hull is walked.

A set is a number whose bit y says whether label y is in it. Masses left out are held to 106 bits, and slopes that are
near each other are compared by cross-multiplication, so that ties are ties as in rationals and the rules decide them:
more mass, fewer labels, the lexicographically first list of indices.

Not by `hull.lower_hull`: that wants the points in order, and sorting them takes longer than leaving out, corner by
corner, those above the line from it to the last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.domain import numbered_sets
from udcp_solvers.numeric.arrays import Floats, Ints, Probabilities, plain
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.double_double import minus, plus, ratio, sign_of_cross

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


# The most labels for which all sets are looked at.
MOST = 20
# Slopes farther apart than this, relatively, are told apart by floats.
_NEAR = 1e-14


class Enumeration:
    """The prices of one loss, by row."""

    def __init__(self, loss: Loss) -> None:
        numbers = np.arange(1 << loss.K, dtype=np.int64)
        blocks = np.array_split(numbers, max(1, len(numbers) >> 14))
        self._costs = np.concatenate([loss.batch(numbered_sets(block, loss.K)) for block in blocks])

    @staticmethod
    def of(loss: Loss) -> Callable[[], Enumeration] | None:
        """What makes them; None where there are too many sets."""
        return partial(Enumeration, loss) if loss.K <= MOST else None

    def scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        over_rows(_scores, len(P), len(self._costs), plain(P), self._costs, out)
        return out


@jit
def _scores(start: int, stop: int, P: Probabilities, costs: Floats, out: Floats) -> None:
    K = P.shape[1]
    rem, low = np.empty(len(costs)), np.empty(len(costs))
    ahead = np.empty(len(costs), np.int64)
    for n in range(start, stop):
        _masses_left_out(P[n], rem, low)
        at, last = _ends(costs, rem, low)
        price = 0.0
        many = len(costs)
        for i in range(many):
            ahead[i] = i
        out[n] = np.inf
        while True:
            for y in range(K):
                if at >> y & 1:
                    out[n, y] = min(out[n, y], price)
            if at == last:
                break
            many = _below_chord(at, last, costs, rem, low, ahead, many)
            at, price = _next(at, costs, rem, low, ahead, many)


@jit
def _masses_left_out(row: Floats, rem: Floats, low: Floats) -> None:
    """Doubling: the sets with label y leave out what they leave out without it, less p(y); so y is left out instead."""
    K = len(row)
    full = (1 << K) - 1
    rem[full], low[full] = 0.0, 0.0
    for y in range(K):
        # The sets known so far are those that hold all labels from y on.
        for part in range(1 << y):
            with_y = full - part
            without = with_y - (1 << y)
            rem[without], low[without] = plus(rem[with_y], low[with_y], np.float64(row[y]))


@jit
def _first_set(a: int, b: int) -> bool:
    """Whether a has fewer labels than b, or as many and the first list of indices."""
    many_a, many_b = 0, 0
    x, y = a, b
    while x:
        x &= x - 1
        many_a += 1
    while y:
        y &= y - 1
        many_b += 1
    if many_a != many_b:
        return many_a < many_b
    differ = a ^ b
    return a & differ & -differ != 0


@jit
def _less_left_out(a: int, b: int, rem: Floats, low: Floats) -> bool:
    """Whether set a leaves out less than b; where it is the same, whether it has fewer labels or comes first."""
    if rem[a] != rem[b]:
        return bool(rem[a] < rem[b])
    if low[a] != low[b]:
        return bool(low[a] < low[b])
    return _first_set(a, b)


@jit
def _ends(costs: Floats, rem: Floats, low: Floats) -> tuple[int, int]:
    """The sets at price 0 and at prices without end: the cheapest, and the cheapest of those that leave out least."""
    first, last = 0, 0
    for i in range(1, len(costs)):
        if costs[i] < costs[first] or (costs[i] == costs[first] and _less_left_out(i, first, rem, low)):
            first = i
        same = rem[i] == rem[last] and low[i] == low[last]
        if same:
            if costs[i] < costs[last] or (costs[i] == costs[last] and _first_set(i, last)):
                last = i
        elif _less_left_out(i, last, rem, low):
            last = i
    return first, last


@jit
def _below_chord(a: int, b: int, costs: Floats, rem: Floats, low: Floats, ahead: Ints, many: int) -> int:
    """Keep the sets that leave out less than a and lie below the line from a to b, or on it; how many there are."""
    price = (costs[b] - costs[a]) / ((rem[a] - rem[b]) + (low[a] - low[b]))
    kept = 0
    for j in range(many):
        i = ahead[j]
        gain = (rem[a] - rem[i]) + (low[a] - low[i])
        if gain > 0.0 and costs[i] - costs[a] <= gain * price * (1.0 + _NEAR):
            ahead[kept] = i
            kept += 1
    return kept


@jit
def _next(a: int, costs: Floats, rem: Floats, low: Floats, ahead: Ints, many: int) -> tuple[int, float]:
    """The set that follows a on the hull, and the price of the step."""
    best = np.inf
    for j in range(many):
        i = ahead[j]
        best = min(best, (costs[i] - costs[a]) / ((rem[a] - rem[i]) + (low[a] - low[i])))
    at = -1
    step, step_low, gain, gain_low = 0.0, 0.0, 0.0, 0.0
    for j in range(many):
        i = ahead[j]
        if (costs[i] - costs[a]) / ((rem[a] - rem[i]) + (low[a] - low[i])) > best * (1.0 + _NEAR):
            continue
        rise, rise_low = minus(costs[i], 0.0, costs[a], 0.0)
        fall, fall_low = minus(rem[a], low[a], rem[i], low[i])
        better = at < 0
        if not better:
            sign = sign_of_cross(rise, rise_low, gain, gain_low, step, step_low, fall, fall_low)
            better = sign < 0 or (sign == 0 and _less_left_out(i, at, rem, low))
        if better:
            at = i
            step, step_low, gain, gain_low = rise, rise_low, fall, fall_low
    return at, ratio(step, step_low, gain, gain_low)
