"""Prices under L(S) = f(|S|) + the sum of label costs l(y), for any table f.

At price mu, the best set of k labels has the k labels of least l - mu p. So only K + 1 sets matter, the prefixes of
that order, and the hull is traced (`hull.tracer`). If all label costs are equal, the order is by falling p at every
price, and the hull of K + 1 points is walked.

Labels and values that are close are compared by cross-multiplication to 106 bits: ties are as in rationals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Ints, Masks, Probabilities, Record, Records, plain, records
from udcp_solvers.numeric.compiled import jit, jit_uncounted, over_rows
from udcp_solvers.numeric.double_double import plus, two_sum
from udcp_solvers.numeric.falling import falling_order, order_scratch
from udcp_solvers.numeric.filling import order_by
from udcp_solvers.prices.hull import (
    AT_INFINITY,
    AT_ZERO,
    BELOW,
    NEIGHBOURS,
    Slope,
    compare,
    is_below,
    lower_hull,
    price_of,
    slope_of_points,
    slope_of_sets,
    tracer,
)

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Values closer than this, relatively, are compared exactly.
_NEAR = 1e-12
# The most sets that are held.
_MAX_HELD = 65
# The order at a price is sorted by insertion from that at the last price, with at most this many moves per label.
_MOVES = 16


# A set: its cost and the mass left out (high + low); for a prefix, also the sum of the absolute terms of its cost.
_FIELDS = [("cost", "f8"), ("cost_low", "f8"), ("rem", "f8"), ("rem_low", "f8"), ("magnitude", "f8")]
SET = np.dtype(_FIELDS, align=True)


class RowTrace(NamedTuple):
    """The trace of one row: its p and scores; f and the label costs of the loss; the sets that were best at a price,
    and their labels. `order` has the labels in their order at the last price, `prefixes` the sets of the first 0 to K
    of them, `value` their l - mu p; `spare` is scratch."""

    p: Floats
    f: Floats
    costs: Floats
    sets: Records
    chosen: Masks
    order: Ints
    prefixes: Records
    value: Floats
    spare: Ints
    score: Floats


class SizePrices:
    """Computes the prices of the labels of each row under one loss."""

    def __init__(self, table: Floats, costs: Floats) -> None:
        self._equal = bool((costs == costs[0]).all())
        self._table = table + costs[0] * np.arange(len(table)) if self._equal else table
        self._costs = costs

    @staticmethod
    def of(loss: Loss) -> Callable[[], SizePrices] | None:
        """A constructor of the prices; None if the loss is not a function of size plus label costs."""
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
    """Score labels by the lower hull of the points (mass left out, f) of the prefixes, from the cheapest on."""
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
        price = price_of(slope_of_points(a, b, f, rem, low))
        for i in range(a, b):
            score[order[i]] = price


# With label costs -----------------------------------------------------------------------------------------------------


def _block(start: int, stop: int, P: Floats, f: Floats, costs: Floats, out: Floats) -> None:
    """Score a block of rows, with its own arrays."""
    K = P.shape[1]
    chosen = np.empty((_MAX_HELD, K), dtype=np.bool_)
    sets, prefixes = records(_MAX_HELD, SET), records(K + 1, SET)
    value, spare = np.empty(K), np.empty(K, np.int64)
    row = RowTrace(np.empty(K), f, costs, sets, chosen, np.arange(K), prefixes, value, spare, np.empty(K))
    _rows(start, stop, P, row, np.arange(_MAX_HELD), out)


@jit_uncounted
def _meeting(row: RowTrace, a: int, b: int) -> Slope:
    return slope_of_sets(row.sets[a], row.sets[b])


@jit_uncounted
def _search(row: RowTrace, a: int, b: int, new: int, slope: Slope) -> int:
    _best(row, new, slope)
    return BELOW if is_below(_meeting(row, a, new), slope) else NEIGHBOURS


@jit_uncounted
def _enter(row: RowTrace, a: int, b: int, slope: Slope) -> None:
    price = price_of(slope)
    for y in range(len(row.score)):
        if row.chosen[b, y]:
            row.score[y] = min(row.score[y], price)


_trace = jit_uncounted(tracer(_meeting, _search, _enter))


@jit_uncounted
def _rows(start: int, stop: int, P: Floats, row: RowTrace, slots: Ints, out: Floats) -> None:
    K = len(row.p)
    for n in range(start, stop):
        for y in range(K):
            row.p[y] = P[n, y]
            row.score[y] = np.inf
        _best(row, slots[-1], AT_ZERO)
        _enter(row, slots[-1], slots[-1], AT_ZERO)
        _best(row, slots[0], AT_INFINITY)
        _trace(row, slots)
        for y in range(K):
            out[n, y] = row.score[y]


@jit_uncounted
def _best(row: RowTrace, v: int, slope: Slope) -> None:
    """Make set v the best set at a price: the best prefix of the labels by rising l - mu p."""
    _sort_labels(row, slope)
    _sum_prefixes(row)
    size = _best_prefix(row.prefixes, slope)
    best, found = row.sets[v], row.prefixes[size]
    best.cost, best.cost_low = found.cost, found.cost_low
    best.rem, best.rem_low = found.rem, found.rem_low
    for i in range(len(row.order)):
        row.chosen[v, row.order[i]] = i < size


@jit_uncounted
def _sort_labels(row: RowTrace, slope: Slope) -> None:
    """Sort labels by rising l - mu p. Neighbouring prices have nearly the same order, so sorting starts from that at
    the last price; the result does not depend on where it starts from."""
    p, costs, order, value = row.p, row.costs, row.order, row.value
    step, _, gain, _ = slope
    K = len(p)
    for y in range(K):
        value[y] = costs[y] * gain - step * p[y]
    if not _sort_by_insertion(order, value, slope, p, costs, _MOVES * K):
        order_by(value, order, row.spare)
        _sort_by_insertion(order, value, slope, p, costs, K * K)


@jit_uncounted
def _sort_by_insertion(order: Ints, value: Floats, slope: Slope, p: Floats, costs: Floats, most_moves: int) -> bool:
    """Sort labels by `_before`; gives up after too many moves, and returns whether it did not."""
    moves = 0
    for i in range(1, len(order)):
        y = order[i]
        j = i
        while j > 0 and _before(y, order[j - 1], value, slope, p, costs):
            order[j] = order[j - 1]
            j -= 1
        order[j] = y
        moves += i - j
        if moves > most_moves:
            return False
    return True


@jit_uncounted
def _before(y: int, z: int, value: Floats, slope: Slope, p: Floats, costs: Floats) -> bool:
    """Whether label y comes before z: less l - mu p, then (exact ties) more p, then less cost, then lower index."""
    step, _, gain, _ = slope
    if abs(value[y] - value[z]) > _NEAR * (abs(costs[y] * gain) + abs(costs[z] * gain) + step * (p[y] + p[z])):
        return bool(value[y] < value[z])
    rise, rise_low = two_sum(costs[y], -costs[z])
    fall, fall_low = two_sum(p[y], -p[z])
    sign = compare((rise, rise_low, fall, fall_low), slope)
    if sign != 0:
        return sign < 0
    if p[y] != p[z]:
        return bool(p[y] > p[z])
    return bool(costs[y] < costs[z] or (costs[y] == costs[z] and y < z))


@jit_uncounted
def _sum_prefixes(row: RowTrace) -> None:
    """The costs and the masses left out of all prefixes of the order. Masses are summed from the end, so that small
    ones keep their digits; costs from the start."""
    p, f, costs, order, prefixes = row.p, row.f, row.costs, row.order, row.prefixes
    rem, rem_low = 0.0, 0.0
    for k in range(len(p), -1, -1):
        prefix = prefixes[k]
        prefix.rem, prefix.rem_low = rem, rem_low
        if k > 0:
            rem, rem_low = plus(rem, rem_low, p[order[k - 1]])
    cost, cost_low, magnitude = 0.0, 0.0, 0.0
    for k in range(len(p) + 1):
        prefix = prefixes[k]
        prefix.cost, prefix.cost_low = plus(cost, cost_low, f[k])
        prefix.magnitude = magnitude + abs(f[k])
        if k < len(p):
            cost, cost_low = plus(cost, cost_low, costs[order[k]])
            magnitude += abs(costs[order[k]])


@jit_uncounted
def _best_prefix(prefixes: Records, slope: Slope) -> int:
    """The size of the best prefix at a price. At a tie more mass is better; then a lower cost (at an infinite price);
    then fewer labels, which are found first."""
    step, _, gain, _ = slope
    best, least = 0, np.inf
    for k in range(len(prefixes)):
        prefix = prefixes[k]
        worth = gain * prefix.cost + step * prefix.rem
        near = _NEAR * (gain * prefix.magnitude + step * prefix.rem)
        if worth > least + near:
            continue
        if worth < least - near or _is_better(prefixes[best], prefix, slope):
            best = k
        least = min(least, worth)
    return best


@jit_uncounted
def _is_better(best: Record, other: Record, slope: Slope) -> bool:
    """Whether a set is better at a price than the best so far, compared exactly."""
    found = slope_of_sets(best, other)
    rise, _, fall, _ = found
    sign = compare(found, slope)
    return bool(sign < 0 or (sign == 0 and (fall > 0.0 or (fall == 0.0 and rise < 0.0))))
