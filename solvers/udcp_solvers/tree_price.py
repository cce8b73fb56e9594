"""Prices under a tree diameter plus a laminar part: L(S) = w * diameter(S) + laminar(S).

S_mu lies in one of the regions of the hierarchy (see `regions`). At price mu region r is worth

    G_r(mu) = w D_r + mu * (mass outside r) + the least of (cost + mu * mass left out) over sets inside r,

concave in mu, and S_mu is the best set inside the region of least G. All parts are sums of nonnegative terms: with
masses left out instead of masses taken, prices of 1e30 keep their digits.

The lower hull is traced between two known prices a < b: the tangents of their sets meet at a price m. If no set is
better at m, S jumps from one to the other there (Eisner and Severance). If the region is the same at a and b and no
other can be better in between (its G lies above its chord, that of ours below the tangents, so one look at m decides),
labels enter at their prices inside the region. Else the interval is cut at m.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.oracle import Floats, Indices, Masks, Probabilities
from udcp_solvers.compiled import jit, over_rows
from udcp_solvers.laminar_price import Forest, Ints, own_price, tree_prices
from udcp_solvers.regions import Regions

# Values closer than this, relatively, count as equal, and the rules for ties decide.
_SAME = 1e-12
# How many ends of intervals are held; what does not fit is found again.
_HELD = 48

Flags = NDArray[np.bool_]
# Regions: starts, members, cost of the diameter; the categories that each touches, innermost first: starts, numbers.
Areas = tuple[Ints, Ints, Floats, Ints, Ints]
# Label costs, innermost category of each label, parent and weight of each category.
Part = tuple[Floats, Ints, Ints, Floats]
# The forest in its own order: labels, costs, weight, low, high, last.
Trees = tuple[Ints, Floats, Floats, Ints, Ints, Ints]


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
        self._areas: Areas = (
            regions.starts,
            regions.members,
            weight * regions.edges.astype(np.float64),
            np.cumsum([0, *map(len, touched)]).astype(np.int64),
            np.array([c for part in touched for c in part], dtype=np.int64),
        )
        self._part: Part = (costs, innermost, parent, forest.weight)
        self._trees: Trees = (
            forest.labels, forest.costs, forest.weight, forest.low, forest.high, forest.last,
        )  # fmt: skip
        self._pure = C == 0 and not costs.any()

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
        over_rows(kernel, *P.shape, P, self._areas, self._part, self._trees, self._pure, *rest)


def _around(innermost: Ints, parent: Ints) -> list[int]:
    """The categories around some labels, those inside before those around them."""
    found: set[int] = set()
    for c in set(innermost.tolist()):
        while c >= 0 and c not in found:
            found.add(c)
            c = int(parent[c])
    return sorted(found, reverse=True)


@jit
def _scores(
    start: int, stop: int, P: Probabilities, areas: Areas, part: Part, trees: Trees, pure: bool, out: Floats
) -> None:
    work = _room(P.shape[1], areas, part)
    for n in range(start, stop):
        _row(P[n], np.inf, areas, part, trees, pure, work)
        out[n] = work[1]


@jit
def _score_of(
    start: int, stop: int, P: Probabilities, areas: Areas, part: Part, trees: Trees, pure: bool, y: Ints, out: Floats
) -> None:
    work = _room(P.shape[1], areas, part)
    for n in range(start, stop):
        _row(P[n], np.inf, areas, part, trees, pure, work)
        out[n] = work[1][y[n]]


@jit
def _sets(
    start: int, stop: int, P: Probabilities, areas: Areas, part: Part, trees: Trees, pure: bool, tau: Floats, out: Masks
) -> None:
    work = _room(P.shape[1], areas, part)
    for n in range(start, stop):
        _row(P[n], tau[n], areas, part, trees, pure, work)
        for y in range(P.shape[1]):
            out[n, y] = work[1][y] <= tau[n]


@jit
def _room(K, areas, part):  # type: ignore[no-untyped-def]
    """Scratch: p, scores, outside mass, take and skip by category, G held, chosen labels twice, prices, doors, p again."""
    R, C = len(areas[0]) - 1, len(part[3])
    return (
        np.empty(K),
        np.empty(K),
        np.empty(R),
        np.zeros(C),
        np.zeros(C),
        np.empty((_HELD + 2, R)),
        np.zeros(K, np.bool_),
        np.zeros(K, np.bool_),
        np.empty(K),
        np.empty(C),
        np.empty(K),
        np.zeros(C, np.bool_),
        np.zeros(C),
    )


@jit
def _row(row, limit, areas, part, trees, pure, work):  # type: ignore[no-untyped-def]
    """Scores of one row into work[1]; those above the limit may be left at infinity."""
    p, score, outside = work[0], work[1], work[2]
    for y in range(len(row)):
        p[y] = row[y]
        score[y] = np.inf
    _outside(p, areas, outside, work[6])
    if pure:
        _trace_pure(p, score, outside, areas, work)
    else:
        _trace(p, score, outside, limit, areas, part, trees, work)


@jit
def _outside(p, areas, outside, flag):  # type: ignore[no-untyped-def]
    """The mass outside each region; where it is the smaller part it is summed by itself, to keep its digits."""
    starts, members = areas[0], areas[1]
    total = 0.0
    for y in range(len(p)):
        total += p[y]
        flag[y] = False
    for r in range(len(starts) - 1):
        inside = 0.0
        for j in range(starts[r], starts[r + 1]):
            inside += p[members[j]]
        if 2.0 * inside < total:
            outside[r] = total - inside
            continue
        for j in range(starts[r], starts[r + 1]):
            flag[members[j]] = True
        rest = 0.0
        for y in range(len(p)):
            if not flag[y]:
                rest += p[y]
        for j in range(starts[r], starts[r + 1]):
            flag[members[j]] = False
        outside[r] = rest


@jit
def _skip(mu: float, mass: float) -> float:
    """What leaving out a mass costs; nothing costs nothing, even at an infinite price."""
    return mu * mass if mass > 0.0 else 0.0


# The diameter alone ---------------------------------------------------------------------------------------------------


@jit
def _trace_pure(p, score, outside, areas, work):  # type: ignore[no-untyped-def]
    """Only the heaviest region of each diameter matters; the hull of these few points is wrapped."""
    starts, toll = areas[0], areas[2]
    R = len(starts) - 1
    at = _heaviest(p, outside, areas, 0)
    price = 0.0
    while True:
        for j in range(starts[at], starts[at + 1]):
            y = areas[1][j]
            if p[y] > 0.0:
                score[y] = min(score[y], price)
        if outside[at] == 0.0:
            return
        best, where = np.inf, -1
        r = at
        while r < R and toll[r] == toll[at]:
            r += 1
        while r < R:
            heavy = _heaviest(p, outside, areas, r)
            if outside[heavy] < outside[at] * (1.0 - _SAME):
                slope = (toll[heavy] - toll[at]) / (outside[at] - outside[heavy])
                if slope <= best * (1.0 + _SAME):
                    best, where = slope, heavy
            while r < R and toll[r] == toll[heavy]:
                r += 1
        if where < 0:
            return
        at, price = where, best


@jit
def _heaviest(p, outside, areas, first):  # type: ignore[no-untyped-def]
    """Of the regions with the diameter of region `first`, the one with least mass outside; ties as the rules say."""
    starts, members, toll = areas[0], areas[1], areas[2]
    best = first
    r = first + 1
    while r < len(starts) - 1 and toll[r] == toll[first]:
        gap = outside[r] - outside[best]
        if abs(gap) > _SAME * outside[best]:
            if gap < 0.0:
                best = r
        elif _fewer(p, members[starts[r] : starts[r + 1]], members[starts[best] : starts[best + 1]]):
            best = r
        r += 1
    return best


@jit
def _fewer(p, a, b):  # type: ignore[no-untyped-def]
    """Whether the labels of a with p > 0 are fewer than those of b, or as many and first in order of indices."""
    many_a, many_b = 0, 0
    for y in a:
        many_a += p[y] > 0.0
    for y in b:
        many_b += p[y] > 0.0
    if many_a != many_b:
        return many_a < many_b
    i, j = 0, 0
    for _ in range(many_a):
        while not p[a[i]] > 0.0:
            i += 1
        while not p[b[j]] > 0.0:
            j += 1
        if a[i] != b[j]:
            return a[i] < b[j]
        i += 1
        j += 1
    return False


# With a laminar part --------------------------------------------------------------------------------------------------


@jit
def _worth(mu, p, outside, areas, part, take, skip, G):  # type: ignore[no-untyped-def]
    """G of every region at price mu."""
    starts, members, toll, cat_starts, cats = areas
    costs, innermost, parent, weight = part
    for r in range(len(starts) - 1):
        total = toll[r] + _skip(mu, outside[r])
        for j in range(starts[r], starts[r + 1]):
            y = members[j]
            left = _skip(mu, p[y])
            value = min(costs[y], left)
            if innermost[y] < 0:
                total += value
            else:
                take[innermost[y]] += value
                skip[innermost[y]] += left
        for j in range(cat_starts[r], cat_starts[r + 1]):
            c = cats[j]
            value = min(skip[c], weight[c] + take[c])
            if parent[c] < 0:
                total += value
            else:
                take[parent[c]] += value
                skip[parent[c]] += skip[c]
            take[c] = 0.0
            skip[c] = 0.0
        G[r] = total


@jit
def _choose(mu, r, p, outside, areas, part, take, skip, gets, inside, chosen):  # type: ignore[no-untyped-def]
    """The best set in region r at price mu, into `chosen`: its cost, the mass left out, its size."""
    starts, members, toll, cat_starts, cats = areas
    costs, innermost, parent, weight = part
    chosen[:] = False
    for j in range(starts[r], starts[r + 1]):
        y = members[j]
        if innermost[y] >= 0:
            left = _skip(mu, p[y])
            take[innermost[y]] += min(costs[y], left)
            skip[innermost[y]] += left
            if costs[y] <= left:
                gets[innermost[y]] += p[y]
    for j in range(cat_starts[r], cat_starts[r + 1]):
        c = cats[j]
        enter = weight[c] + take[c]
        # At a tie more mass is better; without mass fewer labels are.
        inside[c] = enter < skip[c] or (enter == skip[c] and gets[c] > 0.0)
        if parent[c] >= 0:
            take[parent[c]] += min(skip[c], enter)
            skip[parent[c]] += skip[c]
            if inside[c]:
                gets[parent[c]] += gets[c]
        take[c] = 0.0
        skip[c] = 0.0
        gets[c] = 0.0
    cost, rem, size = toll[r], outside[r], 0
    for j in range(cat_starts[r + 1] - 1, cat_starts[r] - 1, -1):
        c = cats[j]
        inside[c] = inside[c] and (parent[c] < 0 or inside[parent[c]])
        if inside[c]:
            cost += weight[c]
    for j in range(starts[r], starts[r + 1]):
        y = members[j]
        left = _skip(mu, p[y])
        pays = costs[y] < left or (costs[y] == left and p[y] > 0.0)
        if pays and (innermost[y] < 0 or inside[innermost[y]]):
            chosen[y] = True
            cost += costs[y]
            size += 1
        else:
            rem += p[y]
    return cost, rem, size


@jit
def _best(mu, G, p, outside, areas, part, take, skip, gets, inside, chosen, other):  # type: ignore[no-untyped-def]
    """The region of least G, ties by the rules: less mass left out, fewer labels, first in order of indices."""
    r = int(np.argmin(G))
    least = G[r]
    cost, rem, size = _choose(mu, r, p, outside, areas, part, take, skip, gets, inside, chosen)
    for q in range(len(G)):
        if q == r or not G[q] <= least + _SAME * abs(least):
            continue
        cost_q, rem_q, size_q = _choose(mu, q, p, outside, areas, part, take, skip, gets, inside, other)
        better = rem_q < rem * (1.0 - _SAME)
        if not better and rem_q <= rem * (1.0 + _SAME):
            better = size_q < size
            if size_q == size:
                for y in range(len(p)):
                    if chosen[y] != other[y]:
                        better = other[y]
                        break
        if better:
            r, cost, rem, size = q, cost_q, rem_q, size_q
            chosen[:] = other
    return r, cost, rem


@jit
def _trace(p, score, outside, limit, areas, part, trees, work):  # type: ignore[no-untyped-def]
    take, skip, held, chosen, other, inside, gets = work[3], work[4], work[5], work[6], work[7], work[11], work[12]
    R = len(outside)
    mus, costs, rems, where = np.empty(_HELD), np.empty(_HELD), np.empty(_HELD), np.empty(_HELD, np.int64)
    # Row _HELD of `held` is G at the left end of the interval; rows 0.. are G at the right ends that wait.
    left, fresh = held[_HELD], held[_HELD + 1]
    mu_a = 0.0
    _worth(mu_a, p, outside, areas, part, take, skip, left)
    r_a, cost_a, rem_a = _best(mu_a, left, p, outside, areas, part, take, skip, gets, inside, chosen, other)
    _enter(score, chosen, 0.0)
    top = -1
    while mu_a <= limit and mu_a < np.inf:
        if top < 0:
            top = 0
            mus[0] = np.inf
            _worth(np.inf, p, outside, areas, part, take, skip, held[0])
            where[0], costs[0], rems[0] = _best(
                np.inf, held[0], p, outside, areas, part, take, skip, gets, inside, chosen, other
            )
        mu_b, r_b = mus[top], where[top]
        step, gain = costs[top] - cost_a, rem_a - rems[top]
        if not (gain > _SAME * rem_a and step > 0.0):
            done = True
        else:
            mid = step / gain
            line = cost_a + mid * rem_a
            done = False
            if r_a == r_b and _alone(r_a, mu_a, mu_b, mid, line, left, held[top], outside):
                _inside_prices(r_a, p, areas, trees, work)
                for j in range(areas[0][r_a], areas[0][r_a + 1]):
                    y = areas[1][j]
                    if work[8][y] <= mu_b and work[8][y] < np.inf:
                        score[y] = min(score[y], max(work[8][y], mu_a))
                done = True
            else:
                _worth(mid, p, outside, areas, part, take, skip, fresh)
                r_m, cost_m, rem_m = _best(mid, fresh, p, outside, areas, part, take, skip, gets, inside, chosen, other)
                if fresh[r_m] < line * (1.0 - _SAME) and mu_a < mid < mu_b:
                    top = min(top + 1, _HELD - 1)
                    mus[top], where[top], costs[top], rems[top] = mid, r_m, cost_m, rem_m
                    held[top, :R] = fresh
                else:
                    _choose(mu_b, r_b, p, outside, areas, part, take, skip, gets, inside, chosen)
                    _enter(score, chosen, mid)
                    done = True
        if done:
            mu_a, r_a, cost_a, rem_a = mu_b, r_b, costs[top], rems[top]
            left[:] = held[top]
            top -= 1


@jit
def _enter(score, chosen, price):  # type: ignore[no-untyped-def]
    for y in range(len(score)):
        if chosen[y]:
            score[y] = min(score[y], price)


@jit
def _alone(r, mu_a, mu_b, mid, line, left, right, outside):  # type: ignore[no-untyped-def]
    """Whether no other region can be better than r between a and b: at `mid` every chord lies above our tangents."""
    for q in range(len(left)):
        if q == r:
            continue
        if mu_b < np.inf:
            chord = left[q] + (right[q] - left[q]) * ((mid - mu_a) / (mu_b - mu_a))
        else:
            chord = left[q] + outside[q] * (mid - mu_a)
        if not chord > line * (1.0 + 1e-9):
            return False
    return True


@jit
def _inside_prices(r, p, areas, trees, work):  # type: ignore[no-untyped-def]
    """The laminar prices of the labels of region r, with all other labels out, into work[8]."""
    labels, costs, weight, low, high, last = trees
    result, flag, price, mass = work[8], work[6], np.empty(len(p)), work[10]
    flag[:] = False
    for j in range(areas[0][r], areas[0][r + 1]):
        flag[areas[1][j]] = True
    for i in range(len(p)):
        mass[i] = p[labels[i]]
        price[i] = own_price(costs[i], mass[i]) if flag[labels[i]] else np.inf
    tree_prices(0, len(weight), costs, weight, low, high, last, mass, price, work[9])
    for i in range(len(p)):
        result[labels[i]] = price[i]
