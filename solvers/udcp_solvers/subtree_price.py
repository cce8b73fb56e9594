"""Prices under the diameter of a hierarchy whose leaves are all at one depth, and nothing else.

A set of diameter <= D lies in a subtree of height D / 2, and only the heaviest of each height matters. In depth-first
order a subtree is a run of neighbours: one running sum gives all masses, nearly; where two are too near to call, they
are summed to 106 bits. Prices come from the mass outside, so that small probabilities keep their digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_dsl.domain import Hierarchy
from udcp_dsl.oracle import Floats, Indices, Masks, Probabilities
from udcp_solvers.compiled import jit, over_rows
from udcp_solvers.double_double import minus, plus, ratio, sign_of_cross, two_sum
from udcp_solvers.falling import Row
from udcp_solvers.laminar_price import Ints
from udcp_solvers.regions import subtrees

# Running sums are exact to far less than this, relative to the mass of the row.
_NEAR = 1e-12


class Runs(NamedTuple):
    """Subtrees by rising height: those of height h are `low[h0:h1]`, `high[h0:h1]`, h0, h1 = starts[h], starts[h + 1].

    `order` lists the labels depth first; `cost` is that of the diameter, by height. The last is the whole tree.
    """

    order: Ints
    starts: Ints
    low: Ints
    high: Ints
    cost: Floats


class Winners(NamedTuple):
    """By height: the heaviest subtree, the mass outside it, its price; infinite if it is never bought."""

    low: Ints
    high: Ints
    rem: Floats
    rem_low: Floats
    price: Floats


class SubtreePrices:
    """The prices of one loss, by row."""

    def __init__(self, weight: float, hierarchy: Hierarchy) -> None:
        nodes, edges = subtrees(hierarchy)
        heights, starts = np.unique(edges, return_index=True)
        self._position = hierarchy.position
        self._runs = Runs(
            hierarchy.order,
            np.append(starts, len(nodes)).astype(np.int64),
            hierarchy.low[nodes],
            hierarchy.high[nodes],
            weight * heights.astype(np.float64),
        )

    def scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        over_rows(_scores, *P.shape, P, self._runs, out)
        return out

    def score_of(self, P: Probabilities, y: Indices) -> Floats:
        out = np.empty(len(P))
        over_rows(_score_of, *P.shape, P, self._runs, y, self._position[y], out)
        return out

    def sets(self, P: Probabilities, tau: Floats) -> Masks:
        out = np.empty(P.shape, dtype=np.bool_)
        over_rows(_sets, *P.shape, P, self._runs, np.ascontiguousarray(tau), out)
        return out


@jit
def _scores(start: int, stop: int, P: Probabilities, runs: Runs, out: Floats) -> None:
    p, total, winners = _room(P.shape[1], runs)
    for n in range(start, stop):
        _trace(P[n], runs, p, total, winners)
        out[n] = np.inf
        for h in range(len(runs.cost)):
            price = winners.price[h]
            if price < np.inf:
                for i in range(winners.low[h], winners.high[h]):
                    y = runs.order[i]
                    if p[i] > 0.0 and price < out[n, y]:
                        out[n, y] = price


@jit
def _score_of(start: int, stop: int, P: Probabilities, runs: Runs, y: Ints, position: Ints, out: Floats) -> None:
    p, total, winners = _room(P.shape[1], runs)
    for n in range(start, stop):
        out[n] = np.inf
        if P[n, y[n]] > 0.0:
            _trace(P[n], runs, p, total, winners)
            for h in range(len(runs.cost)):
                if winners.low[h] <= position[n] < winners.high[h]:
                    out[n] = min(out[n], winners.price[h])


@jit
def _sets(start: int, stop: int, P: Probabilities, runs: Runs, tau: Floats, out: Masks) -> None:
    p, total, winners = _room(P.shape[1], runs)
    for n in range(start, stop):
        if tau[n] == np.inf:
            out[n] = True
            continue
        _trace(P[n], runs, p, total, winners)
        out[n] = False
        for h in range(len(runs.cost)):
            if winners.price[h] <= tau[n]:
                for i in range(winners.low[h], winners.high[h]):
                    if p[i] > 0.0:
                        out[n, runs.order[i]] = True


@jit
def _room(K: int, runs: Runs) -> tuple[Floats, Floats, Winners]:
    """p in depth-first order, its running sums, and the winners."""
    H = len(runs.cost)
    winners = Winners(np.empty(H, np.int64), np.empty(H, np.int64), np.empty(H), np.empty(H), np.empty(H))
    return np.empty(K), np.zeros(K + 1), winners


@jit
def _trace(row: Row, runs: Runs, p: Floats, total: Floats, winners: Winners) -> None:
    K = len(row)
    mass = 0.0
    for i in range(K):
        x = np.float64(row[runs.order[i]])
        p[i] = x
        mass += x
        total[i + 1] = mass
    H = len(runs.cost)
    for h in range(H):
        winner = _heaviest(h, runs, p, total)
        winners.low[h], winners.high[h] = runs.low[winner], runs.high[winner]
        winners.price[h] = np.inf
    _masses_outside(p, winners)
    at = 0
    winners.price[0] = 0.0
    while winners.rem[at] > 0.0:
        best = -1
        step, step_low, gain, gain_low = 0.0, 0.0, 0.0, 0.0
        for h in range(at + 1, H):
            fall, fall_low = minus(winners.rem[at], winners.rem_low[at], winners.rem[h], winners.rem_low[h])
            if not fall > 0.0:
                continue
            rise, rise_low = two_sum(runs.cost[h], -runs.cost[at])
            # At a tie the later one has more mass.
            if best < 0 or sign_of_cross(rise, rise_low, gain, gain_low, step, step_low, fall, fall_low) <= 0:
                best = h
                step, step_low, gain, gain_low = rise, rise_low, fall, fall_low
        at = best
        winners.price[at] = ratio(step, step_low, gain, gain_low)


@jit
def _heaviest(h: int, runs: Runs, p: Floats, total: Floats) -> int:
    """The heaviest subtree of height h; ties by fewer labels with p > 0, then by the lowest index among these."""
    first, stop = runs.starts[h], runs.starts[h + 1]
    best = first
    most = -1.0
    rival = -1.0
    for r in range(first, stop):
        mass = total[runs.high[r]] - total[runs.low[r]]
        if mass > most:
            rival = most
            most = mass
            best = r
        elif mass > rival:
            rival = mass
    slack = _NEAR * total[len(p)]
    if rival < most - slack:
        return best
    best = -1
    for r in range(first, stop):
        if not total[runs.high[r]] - total[runs.low[r]] < most - slack and (best < 0 or _beats(r, best, runs, p)):
            best = r
    return best


@jit
def _beats(a: int, b: int, runs: Runs, p: Floats) -> bool:
    mass_a, low_a = _sum(p, runs.low[a], runs.high[a], 0.0, 0.0)
    mass_b, low_b = _sum(p, runs.low[b], runs.high[b], 0.0, 0.0)
    if mass_a != mass_b:
        return mass_a > mass_b
    if low_a != low_b:
        return low_a > low_b
    many_a, first_a = _positive(runs, p, a)
    many_b, first_b = _positive(runs, p, b)
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
def _sum(p: Floats, start: int, stop: int, high: float, low: float) -> tuple[float, float]:
    """high + low + the sum of a run."""
    for i in range(start, stop):
        high, error = two_sum(high, p[i])
        low += error
    return two_sum(high, low)


@jit
def _masses_outside(p: Floats, winners: Winners) -> None:
    """From the whole tree down; where winners are nested, only what is between them is summed."""
    H = len(winners.rem)
    winners.rem[H - 1], winners.rem_low[H - 1] = 0.0, 0.0
    around = H - 1
    for h in range(H - 2, -1, -1):
        low, high = winners.low[h], winners.high[h]
        if not (winners.low[around] <= low and high <= winners.high[around]):
            around = H - 1
        mass, rest = _sum(p, winners.low[around], low, 0.0, 0.0)
        mass, rest = _sum(p, high, winners.high[around], mass, rest)
        mass, rest = plus(mass, rest, winners.rem[around])
        winners.rem[h], winners.rem_low[h] = plus(mass, rest, winners.rem_low[around])
        around = h
