"""Prices under the diameter of a hierarchy whose leaves are all at one depth, and nothing else.

A set of diameter <= D lies in a subtree of height D / 2, and only the heaviest of each height matters. In depth-first
order a subtree is a run of neighbours, and one running sum, of 106 bits, gives the masses of all and of what lies
outside of each; where little lies outside, that is summed by itself, so that small probabilities keep their digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_dsl.expression.domain import Hierarchy
from udcp_solvers.numeric.arrays import Floats, Indices, Ints, Masks, Probabilities, Row
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.double_double import Double, minus, plus, two_sum
from udcp_solvers.prices.hull import lower_hull, price_between
from udcp_solvers.prices.regions import subtrees

# The high parts of running sums are exact to far less than this, relative to the mass of the row.
_NEAR = 1e-12
# A mass below this part of the row's is summed by itself: a difference of running sums would have too few digits.
_LITTLE = 1e-9


class Runs(NamedTuple):
    """Subtrees by rising height: those of height h are `low[h0:h1]`, `high[h0:h1]`, h0, h1 = starts[h], starts[h + 1].

    `order` lists the labels depth first, `position` is where each stands; `cost` is that of the diameter, by height.
    The first are the single labels, depth first; the last is the whole tree.
    """

    order: Ints
    position: Ints
    starts: Ints
    low: Ints
    high: Ints
    cost: Floats


class Sums(NamedTuple):
    """p in depth-first order, and its running sums: high + low."""

    p: Floats
    high: Floats
    low: Floats


class Winners(NamedTuple):
    """By height: the heaviest subtree, the mass outside it, its price; infinite if it is never bought.

    `corner` is room for the heights on the hull.
    """

    low: Ints
    high: Ints
    rem: Floats
    rem_low: Floats
    price: Floats
    corner: Ints


class SubtreePrices:
    """The prices of one loss, by row."""

    def __init__(self, weight: float, hierarchy: Hierarchy) -> None:
        nodes, edges = subtrees(hierarchy)
        heights, starts = np.unique(edges, return_index=True)
        self._runs = Runs(
            order=hierarchy.order,
            position=hierarchy.position,
            starts=np.append(starts, len(nodes)).astype(np.int64),
            low=hierarchy.low[nodes],
            high=hierarchy.high[nodes],
            cost=weight * heights.astype(np.float64),
        )

    def scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        over_rows(_scores, *P.shape, P, self._runs, out)
        return out

    def score_of(self, P: Probabilities, y: Indices) -> Floats:
        out = np.empty(len(P))
        over_rows(_score_of, *P.shape, P, self._runs, y, out)
        return out

    def sets(self, P: Probabilities, tau: Floats) -> Masks:
        out = np.empty(P.shape, dtype=np.bool_)
        over_rows(_sets, *P.shape, P, self._runs, np.ascontiguousarray(tau), out)
        return out


@jit
def _scores(start: int, stop: int, P: Probabilities, runs: Runs, out: Floats) -> None:
    sums, winners = _room(P.shape[1], runs)
    for n in range(start, stop):
        _trace(P[n], runs, sums, winners)
        out[n] = np.inf
        for h in range(len(runs.cost)):
            price = winners.price[h]
            if price < np.inf:
                for i in range(winners.low[h], winners.high[h]):
                    y = runs.order[i]
                    if sums.p[i] > 0.0 and price < out[n, y]:
                        out[n, y] = price


@jit
def _score_of(start: int, stop: int, P: Probabilities, runs: Runs, y: Ints, out: Floats) -> None:
    sums, winners = _room(P.shape[1], runs)
    for n in range(start, stop):
        out[n] = np.inf
        if P[n, y[n]] > 0.0:
            _trace(P[n], runs, sums, winners)
            i = runs.position[y[n]]
            for h in range(len(runs.cost)):
                if winners.low[h] <= i < winners.high[h]:
                    out[n] = min(out[n], winners.price[h])


@jit
def _sets(start: int, stop: int, P: Probabilities, runs: Runs, tau: Floats, out: Masks) -> None:
    sums, winners = _room(P.shape[1], runs)
    for n in range(start, stop):
        if tau[n] == np.inf:
            out[n] = True
            continue
        _trace(P[n], runs, sums, winners)
        out[n] = False
        for h in range(len(runs.cost)):
            if winners.price[h] <= tau[n]:
                for i in range(winners.low[h], winners.high[h]):
                    if sums.p[i] > 0.0:
                        out[n, runs.order[i]] = True


@jit
def _room(K: int, runs: Runs) -> tuple[Sums, Winners]:
    H = len(runs.cost)
    winners = Winners(
        low=np.empty(H, np.int64),
        high=np.empty(H, np.int64),
        rem=np.empty(H),
        rem_low=np.empty(H),
        price=np.empty(H),
        corner=np.empty(H, np.int64),
    )
    return Sums(np.empty(K), np.zeros(K + 1), np.zeros(K + 1)), winners


@jit
def _trace(row: Row, runs: Runs, sums: Sums, winners: Winners) -> None:
    """The hull of the heaviest subtrees of all heights."""
    high, low = 0.0, 0.0
    for i in range(len(row)):
        x = np.float64(row[runs.order[i]])
        high, error = two_sum(high, x)
        low += error
        sums.p[i] = x
        sums.high[i + 1] = high
        sums.low[i + 1] = low
    H = len(runs.cost)
    for h in range(H):
        winner = _heaviest(h, runs, sums) if h > 0 else runs.position[_likeliest(row)]
        winners.low[h], winners.high[h] = runs.low[winner], runs.high[winner]
        winners.rem[h], winners.rem_low[h] = _outside(runs.low[winner], runs.high[winner], sums)
        winners.price[h] = np.inf
    corner = winners.corner
    many = lower_hull(0, runs.cost, winners.rem, winners.rem_low, corner)
    winners.price[0] = 0.0
    for c in range(1, many):
        winners.price[corner[c]] = price_between(corner[c - 1], corner[c], runs.cost, winners.rem, winners.rem_low)


@jit
def _likeliest(row: Row) -> int:
    best = 0
    for y in range(1, len(row)):
        if row[y] > row[best]:
            best = y
    return best


@jit
def _heaviest(h: int, runs: Runs, sums: Sums) -> int:
    """The heaviest subtree of height h; ties by fewer labels with p > 0, then by the lowest index among these."""
    first, stop = runs.starts[h], runs.starts[h + 1]
    total = sums.high
    best = first
    most = -1.0
    rival = -1.0
    for r in range(first, stop):
        mass = total[runs.high[r]] - total[runs.low[r]]
        if mass > rival:
            if mass > most:
                rival = most
                most = mass
                best = r
            else:
                rival = mass
    least = most - _NEAR * total[len(sums.p)]
    if rival < least:
        return int(best)
    best = -1
    for r in range(first, stop):
        if total[runs.high[r]] - total[runs.low[r]] >= least and (best < 0 or _beats(r, best, runs, sums)):
            best = r
    return int(best)


@jit
def _beats(a: int, b: int, runs: Runs, sums: Sums) -> bool:
    mass_a, low_a = _mass(runs.low[a], runs.high[a], sums)
    mass_b, low_b = _mass(runs.low[b], runs.high[b], sums)
    if mass_a != mass_b:
        return mass_a > mass_b
    if low_a != low_b:
        return low_a > low_b
    many_a, first_a = _positive(runs, sums.p, a)
    many_b, first_b = _positive(runs, sums.p, b)
    return many_a < many_b or (many_a == many_b and first_a < first_b)


@jit
def _positive(runs: Runs, p: Floats, r: int) -> tuple[int, int]:
    """How many labels of a subtree have p > 0, and the lowest index among them."""
    many, first = 0, len(p)
    for i in range(runs.low[r], runs.high[r]):
        if p[i] > 0.0:
            many += 1
            first = min(first, runs.order[i])
    return many, first


@jit
def _mass(start: int, stop: int, sums: Sums) -> Double:
    """The sum of a run."""
    mass, low = minus(sums.high[stop], sums.low[stop], sums.high[start], sums.low[start])
    if mass < _LITTLE * sums.high[len(sums.p)]:
        mass, low = _sum(start, stop, sums)
    return mass, low


@jit
def _outside(start: int, stop: int, sums: Sums) -> Double:
    """The sum of all but a run."""
    K = len(sums.p)
    rem, low = minus(sums.high[K], sums.low[K], sums.high[stop], sums.low[stop])
    rem, low = plus(rem, low, sums.high[start])
    rem, low = plus(rem, low, sums.low[start])
    if rem < _LITTLE * sums.high[K]:
        rem, low = _sum(0, start, sums)
        more, more_low = _sum(stop, K, sums)
        rem, low = plus(rem, low, more)
        rem, low = plus(rem, low, more_low)
    return rem, low


@jit
def _sum(start: int, stop: int, sums: Sums) -> Double:
    high, low = 0.0, 0.0
    for i in range(start, stop):
        high, error = two_sum(high, sums.p[i])
        low += error
    return two_sum(high, low)
