"""Prices under a tree diameter plus a laminar part: L(S) = w * diameter(S) + laminar(S).

S_mu lies in one of the regions of the hierarchy (see `regions`). At price mu region r is worth

    G_r(mu) = w D_r + mu * (mass outside r) + the least of (cost + mu * mass left out) over sets inside r,

concave in mu, and S_mu is the best set inside the region of least G (see `region_choice`). The hull is traced between
two known prices a < b: the lines of their sets meet at a price m. Regions whose chord from a to b is above that point
cannot be better anywhere between, and are dropped for the interval. If one region is left, labels enter at their
laminar prices inside it. Else all that are left are looked at at m: if no set is better, S jumps from the one set to
the other there (Eisner and Severance); if one is, the interval is cut at m.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.oracle import Floats, Indices, Masks, Probabilities
from udcp_solvers.compiled import jit, over_rows
from udcp_solvers.double_double import minus, ratio, sign_of_cross
from udcp_solvers.laminar_price import Forest, Ints, own_price, tree_prices
from udcp_solvers.region_choice import Areas, Part, Room, Vertices, best_set, load, move, room_for, vertices_for, worth
from udcp_solvers.regions import Regions, one_depth, regions_of
from udcp_solvers.subtree_price import SubtreePrices

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# How many ends of intervals wait at most.
_HELD = 24
# A chord must be above the lines by this part of their value for its region to be dropped.
_ABOVE = 1e-9


class Trees(NamedTuple):
    """The forest of the laminar part in its own order."""

    labels: Ints
    costs: Floats
    weight: Floats
    low: Ints
    high: Ints
    last: Ints


class Prices(NamedTuple):
    """Scratch for prices inside one region: of labels, p and prices in the forest's order, doors; which region."""

    price: Floats
    p: Floats
    ordered: Floats
    door: Floats
    region: Ints


class TreePrices:
    """The prices of one loss, by row."""

    def __init__(self, weight: float, regions: Regions, forest: Forest) -> None:
        K, C = len(forest.labels), len(forest.weight)
        innermost = np.full(K, -1, dtype=np.int64)
        parent = np.full(C, -1, dtype=np.int64)
        for c in range(C):
            innermost[forest.labels[forest.low[c] : forest.high[c]]] = c
            parent[c + 1 : forest.last[c]] = c
        costs = np.empty(K)
        costs[forest.labels] = forest.costs
        touched = [
            _around(innermost[regions.members[a:b]], parent)
            for a, b in zip(regions.starts[:-1], regions.starts[1:], strict=True)
        ]
        self._areas = Areas(
            regions.starts,
            regions.members,
            weight * regions.edges.astype(np.float64),
            np.cumsum([0, *map(len, touched)]).astype(np.int64),
            np.array([c for part in touched for c in part], dtype=np.int64),
            np.logical_or.reduceat(costs[regions.members] <= 0, regions.starts[:-1]),
        )
        gains = -float(np.minimum(costs, 0.0).sum())
        self._part = Part(costs, innermost, parent, forest.weight, gains)
        self._trees = Trees(forest.labels, forest.costs, forest.weight, forest.low, forest.high, forest.last)

    @staticmethod
    def of(loss: Loss) -> TreePrices | SubtreePrices | None:
        """None where the loss is not the diameter of one hierarchy and a laminar part."""
        form = loss.form
        if form is None or len(form.diameters) != 1 or form.of_size is not None:
            return None
        ((weight, metric),) = form.diameters.values()
        forest = Forest.of(form)
        if weight < 0 or forest is None:
            return None
        if one_depth(metric.hierarchy) and not form.categories and not form.label_costs.any():
            return SubtreePrices(weight, metric.hierarchy)
        return TreePrices(weight, regions_of(metric.hierarchy), forest)

    def scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        self._run(_scores, P, out)
        return out

    def score_of(self, P: Probabilities, y: Indices) -> Floats:
        out = np.empty(len(P))
        self._run(_score_of, P, y, out)
        return out

    def sets(self, P: Probabilities, tau: Floats) -> Masks:
        out = np.empty(P.shape, dtype=np.bool_)
        self._run(_sets, P, np.ascontiguousarray(tau), out)
        return out

    def _run(self, kernel: Callable[..., None], P: Probabilities, *rest: NDArray[Any]) -> None:
        over_rows(kernel, *P.shape, P, self._areas, self._part, self._trees, *rest)


def _around(innermost: Ints, parent: Ints) -> list[int]:
    """The categories around some labels, those inside before those around them."""
    found: set[int] = set()
    for c in set(innermost.tolist()):
        while c >= 0 and c not in found:
            found.add(c)
            c = int(parent[c])
    return sorted(found, reverse=True)


@jit
def _scores(start: int, stop: int, P: Probabilities, areas: Areas, part: Part, trees: Trees, out: Floats) -> None:
    room, held, prices = room_for(areas, part), vertices_for(_HELD + 2, areas, part), _prices_for(part)
    for n in range(start, stop):
        load(P[n], areas, room)
        _trace(np.inf, areas, part, trees, room, held, prices, out[n])


@jit
def _score_of(
    start: int, stop: int, P: Probabilities, areas: Areas, part: Part, trees: Trees, y: Ints, out: Floats
) -> None:
    room, held, prices = room_for(areas, part), vertices_for(_HELD + 2, areas, part), _prices_for(part)
    score = np.empty(P.shape[1])
    for n in range(start, stop):
        load(P[n], areas, room)
        _trace(np.inf, areas, part, trees, room, held, prices, score)
        out[n] = score[y[n]]


@jit
def _sets(
    start: int, stop: int, P: Probabilities, areas: Areas, part: Part, trees: Trees, tau: Floats, out: Masks
) -> None:
    room, held, prices = room_for(areas, part), vertices_for(_HELD + 2, areas, part), _prices_for(part)
    score = np.empty(P.shape[1])
    for n in range(start, stop):
        load(P[n], areas, room)
        _trace(tau[n], areas, part, trees, room, held, prices, score)
        for y in range(P.shape[1]):
            out[n, y] = score[y] <= tau[n]


@jit
def _prices_for(part: Part) -> Prices:
    K, C = len(part.costs), len(part.weight)
    return Prices(np.empty(K), np.empty(K), np.empty(K), np.empty(C), np.empty(1, np.int64))


@jit
def _trace(
    limit: float,
    areas: Areas,
    part: Part,
    trees: Trees,
    room: Room,
    held: Vertices,
    prices: Prices,
    score: Floats,
) -> None:
    """Scores of the row that was loaded; those above the limit may be left at infinity.

    Vertex _HELD is the left end of the interval, 0 .. top are the right ends that wait, the nearest last. The regions
    listed with a right end are those that were looked at there: between it and the end before it no other matters.
    """
    R = len(areas.toll)
    # _HELD and 0, but not as constants: functions would be compiled for each of them apart.
    a = len(held.mu) - 2
    top = a - _HELD
    prices.region[0] = -1
    score[:] = np.inf
    for q in range(R):
        held.alive[a, q] = q
        held.alive[top, q] = q
    held.many[a] = R
    held.many[top] = R
    best_set(a, 0.0, 0.0, 0.0, 1.0, 0.0, areas, part, room, held)
    _enter(a, 0.0, held, score)
    best_set(top, np.inf, 1.0, 0.0, 0.0, 0.0, areas, part, room, held)
    while top >= 0 and held.mu[a] <= limit:
        step, step_low = minus(held.cost[top], held.cost_low[top], held.cost[a], held.cost_low[a])
        gain, gain_low = minus(held.rem[a], held.rem_low[a], held.rem[top], held.rem_low[top])
        if gain > 0.0:
            mid = ratio(step, step_low, gain, gain_low)
            m = top + 1
            _keep_below(m, mid, a, top, held, room)
            if held.many[m] == 1 and held.region[a] == held.region[top]:
                _enter_inside(held.region[a], held.mu[a], held.mu[top], areas, trees, room, prices, score)
            else:
                best_set(m, mid, step, step_low, gain, gain_low, areas, part, room, held)
                rise, rise_low = minus(held.cost[m], held.cost_low[m], held.cost[a], held.cost_low[a])
                fall, fall_low = minus(held.rem[a], held.rem_low[a], held.rem[m], held.rem_low[m])
                if sign_of_cross(rise, rise_low, gain, gain_low, step, step_low, fall, fall_low) < 0:
                    held.stale[m] = m == _HELD - 1
                    if held.stale[m]:  # no room: the end before is forgotten, and found again from here
                        move(m, top, held)
                    else:
                        top = m
                    continue
                _enter(top, mid, held, score)
        if held.mu[top] < np.inf:
            _enter(top, held.mu[top], held, score)
        move(top, a, held)
        top -= 1
        if held.stale[a] and top >= 0:
            held.many[a] = held.many[top]
            held.alive[a] = held.alive[top]
            worth(a, held.mu[a], areas, part, room, held)


@jit
def _keep_below(m: int, mid: float, a: int, b: int, held: Vertices, room: Room) -> None:
    """List with m the regions whose chord from a to b is not above the lines of a and b where these meet, at mid."""
    line = held.cost[a] + mid * held.rem[a]
    listed = a if held.many[a] < held.many[b] else b
    slack = line + _ABOVE * (abs(line) + abs(held.cost[a]))
    mu, end = held.mu[a], held.mu[b]
    part = (mid - mu) / (end - mu)
    many = 0
    for j in range(held.many[listed]):
        q = held.alive[listed, j]
        left = held.G[a, q]
        chord = left + (held.G[b, q] - left) * part if end < np.inf else left + room.outside[q] * (mid - mu)
        if q == held.region[a] or q == held.region[b] or not chord > slack:
            held.alive[m, many] = q
            many += 1
    held.many[m] = many


@jit
def _enter(v: int, price: float, held: Vertices, score: Floats) -> None:
    chosen = held.chosen[v]
    for y in range(len(score)):
        if chosen[y]:
            score[y] = min(score[y], price)


@jit
def _enter_inside(
    r: int, mu_a: float, mu_b: float, areas: Areas, trees: Trees, room: Room, prices: Prices, score: Floats
) -> None:
    """Labels of region r enter at their laminar prices between a and b."""
    if prices.region[0] != r:
        prices.region[0] = r
        prices.price[:] = np.inf
        for j in range(areas.starts[r], areas.starts[r + 1]):
            prices.price[areas.members[j]] = 0.0
        for i in range(len(trees.labels)):
            y = trees.labels[i]
            prices.p[i] = room.p[y]
            prices.ordered[i] = own_price(trees.costs[i], room.p[y]) if prices.price[y] == 0.0 else np.inf
        tree_prices(
            0, len(trees.weight), trees.costs, trees.weight, trees.low, trees.high, trees.last,
            prices.p, prices.ordered, prices.door,
        )  # fmt: skip
        for i in range(len(trees.labels)):
            prices.price[trees.labels[i]] = prices.ordered[i]
    for j in range(areas.starts[r], areas.starts[r + 1]):
        y = areas.members[j]
        if prices.price[y] <= mu_b and prices.price[y] < np.inf:
            score[y] = min(score[y], max(prices.price[y], mu_a))
