"""The best set at a price among the regions of a hierarchy, exactly: costs and masses left out have 106 bits.

Region r < K is the label at place r alone, K + b is ball b (see `regions`). Values of regions are compared as floats
first. Regions near the least value, and sets inside a region that differ by labels or categories near their price, are
compared by cross-multiplication. So ties are ties as in rationals, and the rules break them: less mass left out, fewer
labels, the lexicographically first list of indices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Ints, Masks, Records, Row, records
from udcp_solvers.numeric.compiled import jit_any_order
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import Double, minus, plus, two_sum
from udcp_solvers.prices.ball_sums import (
    NEAR_CATEGORY,
    NEAR_LABEL,
    SUM,
    Pairs,
    load_masses,
    load_values,
    mass_outside,
    value_of,
)
from udcp_solvers.prices.hull import Slope, compare, slope_of_sets
from udcp_solvers.prices.regions import Tree, runs_of

# Values of regions closer than this, relatively, are compared exactly.
_NEAR = 1e-12
# A mass outside a region that is below this part of the row's is summed directly: a difference would have too few
# digits.
_LITTLE = 1e-9
# Balls are valued together if they hold more than K / this many labels in all.
_MANY = 4

CATEGORY = np.dtype([("enter", "f8"), ("skip", "f8"), ("gets", "f8"), ("touched", "?"), ("inside", "?")], align=True)
VERTEX = np.dtype([
    ("mu", "f8"), ("until", "f8"), ("region", "i8"), ("labels", "i8"), ("many", "i8"), ("sure", "?"),
    ("cost", "f8"), ("cost_low", "f8"), ("rem", "f8"), ("rem_low", "f8"),
], align=True)  # fmt: skip


class Areas(NamedTuple):
    """The regions and the laminar part of a loss.

    By place: a label's cost, its `innermost` category, the place `until` which that is the same, and what the label
    costs `alone`. Labels of one `kind` cost the same alone, and later kinds more. By category, outer ones before inner
    ones: `parent` and `weight`; C stands for none. By region: the cost of its diameter. `gains` is minus the sum of the
    negative costs; `free`: whether some label costs nothing or less; `shared`: whether values come from sums that balls
    share, as all categories are nodes or single labels.
    """

    tree: Tree
    pairs: Pairs
    place: Ints
    costs: Floats
    innermost: Ints
    until: Ints
    alone: Floats
    kind: Ints
    parent: Ints
    weight: Floats
    diameter_cost: Floats
    gains: float
    free: bool
    shared: bool


class Scratch(NamedTuple):
    """Arrays for one row. By place: p. By region: the mass outside, high + low. By pair: sums. By category (C for
    labels in none): the cost of entering and of skipping it, the mass taken, whether it is in.

    `best` are the likeliest labels of each kind, `candidates` the regions that matter, `runs` the places of the last
    region, `touched` its categories, innermost first, and `marks` are marks of places.
    """

    p: Floats
    outside: Floats
    outside_low: Floats
    sums: Records
    categories: Records
    best: Ints
    candidates: Ints
    runs: Ints
    touched: Ints
    marks: Masks


class Vertices(NamedTuple):
    """Sets that were best at a price mu: region, cost, mass left out (high + low), number of labels; `sure`: whether
    nothing in the region was near its price; `chosen`: the labels, by place.

    For the regions q in listed[v, :many]: G[v, q] is the value at mu, may_pay[v, q] whether anything in the region may
    pay. From mu to `until`, no other regions matter.
    """

    sets: Records
    chosen: Masks
    G: Floats
    may_pay: Masks
    listed: Ints


def scratch_for(areas: Areas) -> Scratch:
    K, R, C = len(areas.costs), len(areas.diameter_cost), len(areas.weight)
    categories = records(C + 1, CATEGORY)
    categories[C].touched = categories[C].inside = True
    return Scratch(
        p=np.empty(K),
        outside=np.empty(R),
        outside_low=np.empty(R),
        sums=records(len(areas.pairs.starts) - 1, SUM),
        categories=categories,
        best=np.empty(areas.kind.max() + 1, dtype=np.int64),
        candidates=np.concatenate([np.arange(K, R), np.zeros(K, dtype=np.int64)]),
        runs=np.empty((len(areas.tree.nodes), 2), dtype=np.int64),
        touched=np.empty(C, dtype=np.int64),
        marks=np.empty(K, dtype=np.bool_),
    )


def vertices_for(many: int, areas: Areas) -> Vertices:
    """Arrays for `many` vertices; the last vertex is scratch of `best_set`."""
    K, R = len(areas.costs), len(areas.diameter_cost)
    return Vertices(
        sets=records(many, VERTEX),
        chosen=np.empty((many, K), dtype=np.bool_),
        G=np.empty((many, R)),
        may_pay=np.empty((many, R), dtype=np.bool_),
        listed=np.empty((many, R), dtype=np.int64),
    )


@jit
def _move_set(v: int, to: int, held: Vertices) -> None:
    old, new = held.sets[v], held.sets[to]
    new.region, new.labels, new.sure = old.region, old.labels, old.sure
    new.cost, new.cost_low = old.cost, old.cost_low
    new.rem, new.rem_low = old.rem, old.rem_low
    # A loop: slice assignment takes a second to compile, for the message about unequal shapes.
    chosen, chosen_to = held.chosen[v], held.chosen[to]
    for i in range(len(chosen)):
        chosen_to[i] = chosen[i]


@jit
def load(row: Row, areas: Areas, scratch: Scratch) -> int:
    """Load p of a row, the regions that matter, and the mass outside each; returns the number of these regions."""
    p, best, candidates = scratch.p, scratch.best, scratch.candidates
    labels, kind, alone = areas.tree.labels, areas.kind, areas.alone
    K = len(p)
    best[:] = -1
    for i in range(K):
        p[i] = row[labels[i]]
        other = best[kind[i]]
        if other < 0 or p[i] > p[other] or (p[i] == p[other] and labels[i] < labels[other]):
            best[kind[i]] = i
    # All balls, and the single labels that are not both less likely and more expensive than another.
    many = len(areas.tree.balls)
    highest, cost = -1.0, 0.0
    for i in best:
        dearer = cost < alone[i] - _NEAR * abs(alone[i])
        if not (p[i] < highest * (1.0 - _NEAR) or (p[i] <= highest and dearer)):
            candidates[many] = i
            many += 1
        if p[i] > highest:
            highest, cost = p[i], alone[i]
    load_masses(p, areas.tree, areas.pairs, scratch.sums)
    total = scratch.sums[-1]
    for r in candidates[:many]:
        if r < K:
            high, low = minus(total.mass, total.mass_low, p[r], 0.0)
        else:
            high, low = mass_outside(r - K, areas.tree, areas.pairs, scratch.sums)
        if high < _LITTLE * total.mass:
            high, low = _sum_outside(r, areas, scratch)
        scratch.outside[r], scratch.outside_low[r] = high, low
    return many


@jit
def list_first(many: int, v: int, scratch: Scratch, held: Vertices) -> None:
    """List the first `many` regions that matter with vertex v."""
    listed, candidates = held.listed[v], scratch.candidates
    for j in range(many):
        listed[j] = candidates[j]
    held.sets[v].many = many


@jit
def open_region(r: int, areas: Areas, scratch: Scratch) -> int:
    """List the runs of region r; returns how many there are."""
    K = len(scratch.p)
    if r >= K:
        return runs_of(r - K, areas.tree, scratch.runs)
    scratch.runs[0, 0], scratch.runs[0, 1] = r, r + 1
    return 1


@jit
def _sum_outside(r: int, areas: Areas, scratch: Scratch) -> Double:
    marks = scratch.marks
    marks[:] = True
    for j in range(open_region(r, areas, scratch)):
        marks[scratch.runs[j, 0] : scratch.runs[j, 1]] = False
    rem, low = 0.0, 0.0
    for i in range(len(marks)):
        if marks[i]:
            rem, error = two_sum(rem, scratch.p[i])
            low += error
    return two_sum(rem, low)


@jit
def _worth(v: int, mu: float, areas: Areas, scratch: Scratch, held: Vertices) -> None:
    """Compute G at price mu for the regions listed with vertex v."""
    listed, G, may_pay = held.listed[v, : held.sets[v].many], held.G[v], held.may_pay[v]
    outside, alone, K, gains = scratch.outside, areas.alone, len(scratch.p), areas.gains
    # At price 0, only gains are bought. At an infinite price, only regions that leave nothing out matter; if there is
    # just one, its value does not.
    whole, labels = 0, 0
    for r in listed:
        whole += outside[r] == 0.0
        labels += areas.tree.balls[r - K].many if r >= K else 0
    idle = whole < 2 if mu == np.inf else mu == 0.0 and gains == 0.0
    together = areas.shared and mu < np.inf and not idle and _MANY * labels > K
    if together:
        load_values(mu, gains, scratch.p, areas.tree, areas.pairs, scratch.sums)
    for r in listed:
        left = mu * outside[r] if outside[r] > 0.0 else 0.0
        if idle or left == np.inf:
            value, pays = 0.0, mu > 0.0
        elif r < K:
            skip = mu * scratch.p[r] if scratch.p[r] > 0.0 else 0.0
            value, pays = min(skip, alone[r]), alone[r] <= skip * (1.0 + NEAR_LABEL)
        elif together:
            value, pays = value_of(r - K, mu, gains, areas.tree, areas.pairs, scratch.sums)
        else:
            value, pays, _, _ = _settle(open_region(r, areas, scratch), mu, 1.0, areas, scratch, scratch.marks)
        G[r] = value + (areas.diameter_cost[r] + left)
        may_pay[r] = pays or areas.free


@jit
def revalue(v: int, w: int, areas: Areas, scratch: Scratch, held: Vertices) -> None:
    """List the regions of vertex w with vertex v, and compute their values at the price of v."""
    many, mu = held.sets[w].many, held.sets[w].mu
    held.sets[v].many, held.sets[v].until = many, mu
    listed, listed_to = held.listed[w, :many], held.listed[v]
    for j, q in enumerate(listed):
        listed_to[j] = q
    _worth(v, held.sets[v].mu, areas, scratch, held)


@jit
def best_set(v: int, mu: float, slope: Slope, areas: Areas, scratch: Scratch, held: Vertices) -> None:
    """Make vertex v the best set at a price among all sets in the regions listed with it."""
    _worth(v, mu, areas, scratch, held)
    best = held.sets[v]
    best.mu = mu
    listed, G, may_pay = held.listed[v, : best.many], held.G[v], held.may_pay[v]
    least = np.inf
    for q in listed:
        least = min(least, G[q])
    slack = least + _NEAR * (abs(least) + areas.gains)
    trial = len(held.sets) - 1
    found, empty = False, False
    for q in listed:
        if not G[q] <= slack:
            continue
        # Many regions may tie. The empty set is tried once. At price 0 without negative costs, values are exact, and a
        # region that leaves out more mass (by more than rounding) is not better.
        if not may_pay[q]:
            if empty:
                continue
            empty = True
        if mu == 0.0 and found and areas.gains == 0.0 and scratch.outside[q] > best.rem * (1.0 + _NEAR):
            continue
        # The largest set of the region; if a label or category is near its price, also the smallest.
        for lean in (1.0, -1.0):
            sure = _choose(trial, mu, lean, q, areas, scratch, held)
            if not found or _better(trial, v, slope, areas.place, scratch.p, held):
                _move_set(trial, v, held)
                found = True
            if sure:
                break


@jit_any_order
def _settle_run(
    start: int, stop: int, mu: float, lean: float, p: Floats, costs: Floats, chosen: Masks
) -> tuple[float, float, float, bool, bool]:
    """Decide on each label of a run in one category.

    Returns cost + mu * mass left out for the best set of these labels, the same for the empty set, the mass taken,
    whether any label is taken, and whether none was near its price.
    """
    # Slices, since a loop from start to stop is not vectorised: indices might be negative.
    p, costs, chosen = p[start:stop], costs[start:stop], chosen[start:stop]
    take, skip, gets, taken, near = 0.0, 0.0, 0.0, 0, 0
    for i in range(len(p)):
        mass, cost = p[i], costs[i]
        left = mu * mass if mass > 0.0 else 0.0
        # A label without mass is taken only if it is a gain.
        pays = (cost <= left * (1.0 + lean * NEAR_LABEL)) & ((mass > 0.0) | (cost < 0.0))
        chosen[i] = pays
        take += min(cost, left)
        skip += left
        gets += mass if pays else 0.0
        taken += pays
        near += (cost > 0.0) & (abs(cost - left) <= NEAR_LABEL * cost)
    return take, skip, gets, taken > 0, near == 0


@jit
def _settle(
    many: int, mu: float, lean: float, areas: Areas, scratch: Scratch, chosen: Masks
) -> tuple[float, bool, bool, int]:
    """Decide on each label of the runs listed, and on each category that they touch.

    Returns the least of (cost + mu * mass left out) over sets of the labels, whether anything may pay, whether nothing
    was near its price (`lean` decides what is), and how many categories are touched.
    """
    categories, innermost = scratch.categories, areas.innermost
    C = len(areas.weight)
    sure, may_pay = True, False
    waiting, c = 0, -1
    for j in range(many):
        start = scratch.runs[j, 0]
        while start < scratch.runs[j, 1]:
            stop = min(areas.until[start], scratch.runs[j, 1])
            take, skip, gets, taken, clear = _settle_run(start, stop, mu, lean, scratch.p, areas.costs, chosen)
            category = categories[innermost[start]]
            category.enter += take
            category.skip += skip
            category.gets += gets
            sure = sure and clear
            may_pay = may_pay or (taken and innermost[start] == C)
            if not category.touched:
                category.touched = True
                waiting += 1
                c = max(c, innermost[start])
            start = stop
    touched = 0
    while waiting > 0:
        category, above, weight = categories[c], categories[areas.parent[c]], areas.weight[c]
        if category.touched:
            enter, skip = weight + category.enter, category.skip
            near = NEAR_CATEGORY * (weight + abs(category.enter) + areas.gains)
            if skip < np.inf and abs(enter - skip) <= near and not (enter == 0.0 and skip == 0.0):
                sure = False
                category.inside = lean > 0.0
            else:
                # At a tie more mass is better; without mass fewer labels are.
                category.inside = enter < skip or (enter == skip and category.gets > 0.0)
            above.enter += min(skip, enter)
            above.skip += skip
            above.gets += category.gets if category.inside else 0.0
            if areas.parent[c] == C:
                may_pay = may_pay or enter <= skip + NEAR_CATEGORY * (weight + skip + areas.gains)
            if not above.touched:
                above.touched = True
                waiting += 1
            category.enter, category.skip, category.gets, category.touched = 0.0, 0.0, 0.0, False
            scratch.touched[touched] = c
            touched += 1
            waiting -= 1
        c -= 1
    rest = categories[C]
    value = rest.enter
    rest.enter, rest.skip, rest.gets = 0.0, 0.0, 0.0
    return value, may_pay, sure, touched


@jit
def _choose(v: int, mu: float, lean: float, r: int, areas: Areas, scratch: Scratch, held: Vertices) -> bool:
    """Make vertex v the best set in region r at price mu; returns whether nothing in it was near its price."""
    categories, innermost, chosen = scratch.categories, areas.innermost, held.chosen[v]
    chosen[:] = False
    many = open_region(r, areas, scratch)
    _, _, sure, touched = _settle(many, mu, lean, areas, scratch, chosen)
    cost, cost_low = areas.diameter_cost[r], 0.0
    rem, rem_low = scratch.outside[r], scratch.outside_low[r]
    for j in range(touched - 1, -1, -1):
        c = scratch.touched[j]
        categories[c].inside = categories[c].inside and categories[areas.parent[c]].inside
        if categories[c].inside:
            cost, cost_low = plus(cost, cost_low, areas.weight[c])
    labels = 0
    for j in range(many):
        start = scratch.runs[j, 0]
        while start < scratch.runs[j, 1]:
            stop = min(areas.until[start], scratch.runs[j, 1])
            inside = categories[innermost[start]].inside
            p, costs, taken = scratch.p[start:stop], areas.costs[start:stop], chosen[start:stop]
            for i in range(len(taken)):
                # Without branches, many of which would be mispredicted.
                taken[i] &= inside
                labels += taken[i]
                cost, error = two_sum(cost, costs[i] if taken[i] else 0.0)
                cost_low += error
                rem, error = two_sum(rem, 0.0 if taken[i] else p[i])
                rem_low += error
            start = stop
    found = held.sets[v]
    found.region, found.labels, found.sure = r, labels, sure
    found.cost, found.cost_low = two_sum(cost, cost_low)
    found.rem, found.rem_low = two_sum(rem, rem_low)
    return sure


@jit
def _better(v: int, w: int, slope: Slope, place: Ints, p: Floats, held: Vertices) -> bool:
    """Whether set v is better than set w at a price, by the rules at ties."""
    new, old = held.sets[v], held.sets[w]
    other = slope_of_sets(old, new)
    rise, _, fall, _ = other
    sign = compare(other, slope)
    if sign != 0:
        return sign < 0
    if rise != 0.0:
        return fall > 0.0 or (fall == 0.0 and rise < 0.0)
    # Masses may differ by less than 106 bits of the row's mass show.
    more, more_low = 0.0, 0.0
    for i in range(len(p)):
        if held.chosen[v, i] != held.chosen[w, i]:
            more, error = two_sum(more, p[i] if held.chosen[v, i] else -p[i])
            more_low += error
    more += more_low
    if more != 0.0:
        return more > 0.0
    if new.labels != old.labels:
        return bool(new.labels < old.labels)
    for i in place:
        if held.chosen[v, i] != held.chosen[w, i]:
            return bool(held.chosen[v, i])
    return False
