"""The best set at a price among the regions of a hierarchy, exactly: costs and masses left out are held to 106 bits.

Values of regions are compared as floats first; those that are near the least, and sets inside a region that differ by
labels or categories whose price is near, are compared by cross-multiplication. Ties are then ties as in rationals, and
the rules decide: less mass left out, fewer labels, the lexicographically first list of indices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_dsl.oracle import Floats, Masks
from udcp_solvers.compiled import jit
from udcp_solvers.double_double import Double, minus, plus, sign_of_cross, two_sum
from udcp_solvers.falling import Row
from udcp_solvers.laminar_price import Ints

# Values of regions closer than this, relatively, are compared exactly.
_NEAR = 1e-12
# The same, for a category inside a region and for a label: sums of fewer terms, and a single product.
_NEAR_CATEGORY = 1e-13
_NEAR_LABEL = 1e-15
# A mass below this part of the row's is summed by itself: a difference would have too few digits.
_LITTLE = 1e-9


class Areas(NamedTuple):
    """Regions: starts and members, cost of the diameter; the categories each touches, innermost first.

    `free` says whether a label in it costs nothing, or less.
    """

    starts: Ints
    members: Ints
    toll: Floats
    category_starts: Ints
    categories: Ints
    free: Masks


class Part(NamedTuple):
    """The laminar part: costs and innermost category of each label, parent and weight of each category.

    `gains` is minus the sum of the negative costs.
    """

    costs: Floats
    innermost: Ints
    parent: Ints
    weight: Floats
    gains: float


class Room(NamedTuple):
    """Of a row: p, the mass outside each region, whether anything in it may pay at the price looked at last.

    By category: what taking and skipping costs, mass, whether in.
    """

    p: Floats
    outside: Floats
    outside_low: Floats
    live: Masks
    take: Floats
    skip: Floats
    gets: Floats
    inside: Masks
    flag: Masks


class Vertices(NamedTuple):
    """Sets that were best at a price: which region, cost, mass left out (high + low), size, labels.

    G[v, q] is the value of region q there, for the regions alive[v, :many[v]]; of a stale one they are not known.
    """

    mu: Floats
    region: Ints
    cost: Floats
    cost_low: Floats
    rem: Floats
    rem_low: Floats
    size: Ints
    chosen: Masks
    G: Floats
    alive: Ints
    many: Ints
    stale: Masks


@jit
def room_for(areas: Areas, part: Part) -> Room:
    K, R, C = len(part.costs), len(areas.toll), len(part.weight)
    return Room(
        np.empty(K),
        np.empty(R),
        np.empty(R),
        np.empty(R, np.bool_),
        np.zeros(C),
        np.zeros(C),
        np.zeros(C),
        np.zeros(C, np.bool_),
        np.zeros(K, np.bool_),
    )


@jit
def vertices_for(many: int, areas: Areas, part: Part) -> Vertices:
    """Room for some vertices; the last is scratch of `best_set`."""
    K, R = len(part.costs), len(areas.toll)
    return Vertices(
        np.empty(many),
        np.zeros(many, np.int64),
        np.empty(many),
        np.empty(many),
        np.empty(many),
        np.empty(many),
        np.empty(many, np.int64),
        np.zeros((many, K), np.bool_),
        np.empty((many, R)),
        np.empty((many, R), np.int64),
        np.zeros(many, np.int64),
        np.zeros(many, np.bool_),
    )


@jit
def move(v: int, to: int, held: Vertices) -> None:
    _move_set(v, to, held)
    held.mu[to] = held.mu[v]
    held.stale[to] = held.stale[v]
    held.many[to] = held.many[v]
    for j in range(held.many[v]):
        q = held.alive[v, j]
        held.alive[to, j] = q
        held.G[to, q] = held.G[v, q]


@jit
def _move_set(v: int, to: int, held: Vertices) -> None:
    held.region[to] = held.region[v]
    held.cost[to] = held.cost[v]
    held.cost_low[to] = held.cost_low[v]
    held.rem[to] = held.rem[v]
    held.rem_low[to] = held.rem_low[v]
    held.size[to] = held.size[v]
    held.chosen[to] = held.chosen[v]


@jit
def load(row: Row, areas: Areas, room: Room) -> None:
    """p of a row, and the mass outside each region."""
    total, total_low = 0.0, 0.0
    for y in range(len(row)):
        room.p[y] = row[y]
        total, error = two_sum(total, room.p[y])
        total_low += error
    for r in range(len(areas.toll)):
        inside, inside_low = 0.0, 0.0
        for j in range(areas.starts[r], areas.starts[r + 1]):
            inside, error = two_sum(inside, room.p[areas.members[j]])
            inside_low += error
        room.outside[r], room.outside_low[r] = minus(total, total_low, inside, inside_low)
        if room.outside[r] < _LITTLE * total:
            room.outside[r], room.outside_low[r] = _sum_outside(r, areas, room)


@jit
def _sum_outside(r: int, areas: Areas, room: Room) -> Double:
    for j in range(areas.starts[r], areas.starts[r + 1]):
        room.flag[areas.members[j]] = True
    rem, low = 0.0, 0.0
    for y in range(len(room.p)):
        if not room.flag[y]:
            rem, error = two_sum(rem, room.p[y])
            low += error
    for j in range(areas.starts[r], areas.starts[r + 1]):
        room.flag[areas.members[j]] = False
    return two_sum(rem, low)


@jit
def _skipped(mu: float, mass: float) -> float:
    """What leaving out a mass costs; nothing costs nothing, even at an infinite price."""
    return mu * mass if mass > 0.0 else 0.0


@jit
def worth(v: int, mu: float, areas: Areas, part: Part, room: Room, held: Vertices) -> None:
    """G at price mu of the regions listed with vertex v."""
    take, skip = room.take, room.skip
    for i in range(held.many[v]):
        r = held.alive[v, i]
        total = areas.toll[r] + _skipped(mu, room.outside[r])
        live = areas.free[r] or total == np.inf
        if total == np.inf or (mu == 0.0 and part.gains == 0.0):
            held.G[v, r] = total
            room.live[r] = live
            continue
        for j in range(areas.starts[r], areas.starts[r + 1]):
            y = areas.members[j]
            left = _skipped(mu, room.p[y])
            value = min(part.costs[y], left)
            c = part.innermost[y]
            if c < 0:
                total += value
                live = live or part.costs[y] <= left * (1.0 + _NEAR_LABEL)
            else:
                take[c] += value
                skip[c] += left
        for j in range(areas.category_starts[r], areas.category_starts[r + 1]):
            c = areas.categories[j]
            enter = part.weight[c] + take[c]
            value = min(skip[c], enter)
            above = part.parent[c]
            if above < 0:
                total += value
                live = live or enter <= skip[c] + _NEAR_CATEGORY * (part.weight[c] + skip[c] + part.gains)
            else:
                take[above] += value
                skip[above] += skip[c]
            take[c] = 0.0
            skip[c] = 0.0
        held.G[v, r] = total
        room.live[r] = live


@jit
def best_set(
    v: int,
    mu: float,
    step: float,
    step_low: float,
    gain: float,
    gain_low: float,
    areas: Areas,
    part: Part,
    room: Room,
    held: Vertices,
) -> None:
    """Make vertex v the best set at price mu = step / gain of all in the regions listed with it."""
    worth(v, mu, areas, part, room, held)
    least = np.inf
    for i in range(held.many[v]):
        least = min(least, held.G[v, held.alive[v, i]])
    slack = least + _NEAR * (abs(least) + part.gains)
    trial = len(held.mu) - 1
    found, empty = False, False
    for i in range(held.many[v]):
        q = held.alive[v, i]
        if not held.G[v, q] <= slack:
            continue
        # Where many regions tie: the empty set is looked at once; and at price 0, if no cost is negative, the values
        # are exact, and a region that leaves more outside is not better.
        if not room.live[q]:
            if empty:
                continue
            empty = True
        if mu == 0.0 and found and part.gains == 0.0 and room.outside[q] > held.rem[v]:
            continue
        # The largest and, where a label or category is near its price, also the smallest set of the region.
        for lean in (1.0, -1.0):
            sure = _choose(trial, mu, lean, q, areas, part, room, held)
            if not found or _better(trial, v, step, step_low, gain, gain_low, held):
                _move_set(trial, v, held)
                found = True
            if sure:
                break
    held.mu[v] = mu
    held.stale[v] = False


@jit
def _choose(v: int, mu: float, lean: float, r: int, areas: Areas, part: Part, room: Room, held: Vertices) -> bool:
    """Make vertex v the best set in region r at price mu; whether nothing in it was near its price."""
    take, skip, gets, inside, chosen = room.take, room.skip, room.gets, room.inside, held.chosen[v]
    sure = True
    old = held.region[v]
    for j in range(areas.starts[old], areas.starts[old + 1]):
        chosen[areas.members[j]] = False
    for j in range(areas.starts[r], areas.starts[r + 1]):
        y = areas.members[j]
        left, cost = _skipped(mu, room.p[y]), part.costs[y]
        # A label without mass is taken only if it is a gain.
        chosen[y] = cost <= left * (1.0 + lean * _NEAR_LABEL) if room.p[y] > 0.0 else cost < 0.0
        if cost > 0.0 and abs(cost - left) <= _NEAR_LABEL * cost:
            sure = False
        c = part.innermost[y]
        if c >= 0:
            take[c] += min(cost, left)
            skip[c] += left
            if chosen[y]:
                gets[c] += room.p[y]
    for j in range(areas.category_starts[r], areas.category_starts[r + 1]):
        c, above = areas.categories[j], part.parent[areas.categories[j]]
        enter = part.weight[c] + take[c]
        near = _NEAR_CATEGORY * (part.weight[c] + abs(take[c]) + part.gains)
        if skip[c] < np.inf and abs(enter - skip[c]) <= near and not (enter == 0.0 and skip[c] == 0.0):
            sure = False
            inside[c] = lean > 0.0
        else:
            # At a tie more mass is better; without mass fewer labels are.
            inside[c] = enter < skip[c] or (enter == skip[c] and gets[c] > 0.0)
        if above >= 0:
            take[above] += min(skip[c], enter)
            skip[above] += skip[c]
            if inside[c]:
                gets[above] += gets[c]
        take[c] = 0.0
        skip[c] = 0.0
        gets[c] = 0.0
    cost, cost_low = areas.toll[r], 0.0
    rem, rem_low = room.outside[r], room.outside_low[r]
    size = 0
    for j in range(areas.category_starts[r + 1] - 1, areas.category_starts[r] - 1, -1):
        c = areas.categories[j]
        inside[c] = inside[c] and (part.parent[c] < 0 or inside[part.parent[c]])
        if inside[c]:
            cost, cost_low = plus(cost, cost_low, part.weight[c])
    for j in range(areas.starts[r], areas.starts[r + 1]):
        y = areas.members[j]
        c = part.innermost[y]
        chosen[y] = chosen[y] and (c < 0 or inside[c])
        if chosen[y]:
            cost, error = two_sum(cost, part.costs[y])
            cost_low += error
            size += 1
        else:
            rem, error = two_sum(rem, room.p[y])
            rem_low += error
    held.region[v] = r
    held.cost[v], held.cost_low[v] = two_sum(cost, cost_low)
    held.rem[v], held.rem_low[v] = two_sum(rem, rem_low)
    held.size[v] = size
    return sure


@jit
def _better(v: int, w: int, step: float, step_low: float, gain: float, gain_low: float, held: Vertices) -> bool:
    """Whether set v is to be preferred to w at the price step / gain."""
    rise, rise_low = minus(held.cost[v], held.cost_low[v], held.cost[w], held.cost_low[w])
    fall, fall_low = minus(held.rem[w], held.rem_low[w], held.rem[v], held.rem_low[v])
    sign = sign_of_cross(rise, rise_low, gain, gain_low, step, step_low, fall, fall_low)
    if sign != 0:
        return sign < 0
    if fall != 0.0 or rise != 0.0:
        return fall > 0.0 or (fall == 0.0 and rise < 0.0)
    if held.size[v] != held.size[w]:
        return bool(held.size[v] < held.size[w])
    for y in range(held.chosen.shape[1]):
        if held.chosen[v, y] != held.chosen[w, y]:
            return bool(held.chosen[v, y])
    return False
