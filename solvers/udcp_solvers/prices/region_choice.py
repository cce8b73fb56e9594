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
_JOINT_VALUES = 4

CATEGORY = np.dtype(
    [("enter", "f8"), ("skip", "f8"), ("mass_taken", "f8"), ("touched", "?"), ("inside", "?")], align=True
)
HELD_SET = np.dtype([
    ("mu", "f8"), ("listed_until", "f8"), ("region", "i8"), ("labels", "i8"), ("region_count", "i8"), ("sure", "?"),
    ("cost", "f8"), ("cost_low", "f8"), ("rem", "f8"), ("rem_low", "f8"),
], align=True)  # fmt: skip


class RegionModel(NamedTuple):
    """The regions and the laminar part of a loss.

    By place: a label's cost, its `innermost` category, where the run of places of the same innermost category ends, and
    what the label costs as the only one in a set. Labels of one `kind` have the same single cost, and later kinds a
    higher one. By category, outer ones before inner ones: `parent` and `weight`; C stands for none. `costs_low` and
    `weight_low` are what costs and weights lack, as they are sums that were rounded. By region: the cost of its
    diameter. `gains` is minus the sum of the negative costs; `free`: whether some label costs nothing or less;
    `shared`: whether values come from sums that balls share, as all categories are nodes or single labels.
    """

    tree: Tree
    pairs: Pairs
    place: Ints
    costs: Floats
    costs_low: Floats
    innermost: Ints
    run_end: Ints
    single_cost: Floats
    kind: Ints
    parent: Ints
    weight: Floats
    weight_low: Floats
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


class HeldSets(NamedTuple):
    """Sets that were best at a price mu: region, cost, mass left out (high + low), number of labels; `sure`: whether
    nothing in the region was near its price; `chosen`: the labels, by place.

    For the regions q in listed[v, :region_count]: G[v, q] is the value at mu, may_pay[v, q] whether anything in the
    region may pay. From mu to `listed_until`, no other regions matter.
    """

    sets: Records
    chosen: Masks
    G: Floats
    may_pay: Masks
    listed: Ints


def scratch_for(model: RegionModel) -> Scratch:
    K, R, C = len(model.costs), len(model.diameter_cost), len(model.weight)
    categories = records(C + 1, CATEGORY)
    categories[C].touched = categories[C].inside = True
    return Scratch(
        p=np.empty(K),
        outside=np.empty(R),
        outside_low=np.empty(R),
        sums=records(len(model.pairs.starts) - 1, SUM),
        categories=categories,
        best=np.empty(model.kind.max() + 1, dtype=np.int64),
        candidates=np.concatenate([np.arange(K, R), np.zeros(K, dtype=np.int64)]),
        runs=np.empty((len(model.tree.nodes), 2), dtype=np.int64),
        touched=np.empty(C, dtype=np.int64),
        marks=np.empty(K, dtype=np.bool_),
    )


def held_sets_for(count: int, model: RegionModel) -> HeldSets:
    """Arrays for `count` held sets; the last one is scratch of `best_set`."""
    K, R = len(model.costs), len(model.diameter_cost)
    return HeldSets(
        sets=records(count, HELD_SET),
        chosen=np.empty((count, K), dtype=np.bool_),
        G=np.empty((count, R)),
        may_pay=np.empty((count, R), dtype=np.bool_),
        listed=np.empty((count, R), dtype=np.int64),
    )


@jit
def _move_set(v: int, to: int, held: HeldSets) -> None:
    old, new = held.sets[v], held.sets[to]
    new.region, new.labels, new.sure = old.region, old.labels, old.sure
    new.cost, new.cost_low = old.cost, old.cost_low
    new.rem, new.rem_low = old.rem, old.rem_low
    # A loop: slice assignment takes a second to compile, for the message about unequal shapes.
    chosen, chosen_to = held.chosen[v], held.chosen[to]
    for i in range(len(chosen)):
        chosen_to[i] = chosen[i]


@jit
def load_row(row: Row, model: RegionModel, scratch: Scratch) -> int:
    """Load p of a row, the regions that matter, and the mass outside each; returns the number of these regions."""
    p, best, candidates = scratch.p, scratch.best, scratch.candidates
    labels, kind, single_cost = model.tree.labels, model.kind, model.single_cost
    K = len(p)
    best[:] = -1
    for i in range(K):
        p[i] = row[labels[i]]
        other = best[kind[i]]
        if other < 0 or p[i] > p[other] or (p[i] == p[other] and labels[i] < labels[other]):
            best[kind[i]] = i
    # All balls, and the single labels that are not both less likely and more expensive than another.
    count = len(model.tree.balls)
    highest, cost = -1.0, 0.0
    for i in best:
        dearer = cost < single_cost[i] - _NEAR * abs(single_cost[i])
        if not (p[i] < highest * (1.0 - _NEAR) or (p[i] <= highest and dearer)):
            candidates[count] = i
            count += 1
        if p[i] > highest:
            highest, cost = p[i], single_cost[i]
    load_masses(p, model.tree, model.pairs, scratch.sums)
    total = scratch.sums[-1]
    for r in candidates[:count]:
        if r < K:
            high, low = minus(total.mass, total.mass_low, p[r], 0.0)
        else:
            high, low = mass_outside(r - K, model.tree, model.pairs, scratch.sums)
        if high < _LITTLE * total.mass:
            high, low = _sum_outside(r, model, scratch)
        scratch.outside[r], scratch.outside_low[r] = high, low
    return count


@jit
def list_regions(count: int, v: int, scratch: Scratch, held: HeldSets) -> None:
    """List the first `count` regions that matter with held set v."""
    listed, candidates = held.listed[v], scratch.candidates
    for j in range(count):
        listed[j] = candidates[j]
    held.sets[v].region_count = count


@jit
def list_runs(r: int, model: RegionModel, scratch: Scratch) -> int:
    """List the runs of region r; returns how many there are."""
    K = len(scratch.p)
    if r >= K:
        return runs_of(r - K, model.tree, scratch.runs)
    scratch.runs[0, 0], scratch.runs[0, 1] = r, r + 1
    return 1


@jit
def _sum_outside(r: int, model: RegionModel, scratch: Scratch) -> Double:
    marks = scratch.marks
    marks[:] = True
    for j in range(list_runs(r, model, scratch)):
        marks[scratch.runs[j, 0] : scratch.runs[j, 1]] = False
    rem, low = 0.0, 0.0
    for i in range(len(marks)):
        if marks[i]:
            rem, error = two_sum(rem, scratch.p[i])
            low += error
    return two_sum(rem, low)


@jit
def _value_regions(v: int, mu: float, model: RegionModel, scratch: Scratch, held: HeldSets) -> None:
    """Compute G at price mu for the regions listed with held set v."""
    listed, G, may_pay = held.listed[v, : held.sets[v].region_count], held.G[v], held.may_pay[v]
    outside, single_cost, K, gains = scratch.outside, model.single_cost, len(scratch.p), model.gains
    # At price 0, only gains are bought. At an infinite price, only regions that leave nothing out matter; if there is
    # just one, its value does not.
    whole, labels = 0, 0
    for r in listed:
        whole += outside[r] == 0.0
        labels += model.tree.balls[r - K].label_count if r >= K else 0
    idle = whole < 2 if mu == np.inf else mu == 0.0 and gains == 0.0
    together = model.shared and mu < np.inf and not idle and _JOINT_VALUES * labels > K
    if together:
        load_values(mu, gains, scratch.p, model.tree, model.pairs, scratch.sums)
    for r in listed:
        left = mu * outside[r] if outside[r] > 0.0 else 0.0
        if idle or left == np.inf:
            value, pays = 0.0, mu > 0.0
        elif r < K:
            skip = mu * scratch.p[r] if scratch.p[r] > 0.0 else 0.0
            value, pays = min(skip, single_cost[r]), single_cost[r] <= skip * (1.0 + NEAR_LABEL)
        elif together:
            value, pays = value_of(r - K, mu, gains, model.tree, model.pairs, scratch.sums)
        else:
            value, pays, _, _ = _decide_labels(list_runs(r, model, scratch), mu, 1.0, model, scratch, scratch.marks)
        G[r] = value + (model.diameter_cost[r] + left)
        may_pay[r] = pays or model.free


@jit
def revalue(v: int, w: int, model: RegionModel, scratch: Scratch, held: HeldSets) -> None:
    """List the regions of held set w with held set v, and compute their values at the price of v."""
    count, mu = held.sets[w].region_count, held.sets[w].mu
    held.sets[v].region_count, held.sets[v].listed_until = count, mu
    listed, listed_to = held.listed[w, :count], held.listed[v]
    for j, q in enumerate(listed):
        listed_to[j] = q
    _value_regions(v, held.sets[v].mu, model, scratch, held)


@jit
def best_set(v: int, mu: float, slope: Slope, model: RegionModel, scratch: Scratch, held: HeldSets) -> None:
    """Make held set v the best set at a price among all sets in the regions listed with it."""
    _value_regions(v, mu, model, scratch, held)
    best = held.sets[v]
    best.mu = mu
    listed, G, may_pay = held.listed[v, : best.region_count], held.G[v], held.may_pay[v]
    least = np.inf
    for q in listed:
        least = min(least, G[q])
    slack = least + _NEAR * (abs(least) + model.gains)
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
        if mu == 0.0 and found and model.gains == 0.0 and scratch.outside[q] > best.rem * (1.0 + _NEAR):
            continue
        # The largest set of the region; if a label or category is near its price, also the smallest.
        for lean in (1.0, -1.0):
            sure = _choose(trial, mu, lean, q, model, scratch, held)
            if not found or _better(trial, v, slope, model.place, scratch.p, held):
                _move_set(trial, v, held)
                found = True
            if sure:
                break


@jit_any_order
def _decide_run(
    start: int, stop: int, mu: float, lean: float, p: Floats, costs: Floats, chosen: Masks
) -> tuple[float, float, float, bool, bool]:
    """Decide on each label of a run in one category.

    Returns cost + mu * mass left out for the best set of these labels, the same for the empty set, the mass taken,
    whether any label is taken, and whether none was near its price.
    """
    # Slices, since a loop from start to stop is not vectorised: indices might be negative.
    p, costs, chosen = p[start:stop], costs[start:stop], chosen[start:stop]
    take, skip, mass_taken, taken, near = 0.0, 0.0, 0.0, 0, 0
    for i in range(len(p)):
        mass, cost = p[i], costs[i]
        left = mu * mass if mass > 0.0 else 0.0
        # A label without mass is taken only if it is a gain.
        pays = (cost <= left * (1.0 + lean * NEAR_LABEL)) & ((mass > 0.0) | (cost < 0.0))
        chosen[i] = pays
        take += min(cost, left)
        skip += left
        mass_taken += mass if pays else 0.0
        taken += pays
        near += (cost > 0.0) & (abs(cost - left) <= NEAR_LABEL * cost)
    return take, skip, mass_taken, taken > 0, near == 0


@jit
def _decide_labels(
    count: int, mu: float, lean: float, model: RegionModel, scratch: Scratch, chosen: Masks
) -> tuple[float, bool, bool, int]:
    """Decide on each label of the runs listed, and on each category that they touch.

    Returns the least of (cost + mu * mass left out) over sets of the labels, whether anything may pay, whether nothing
    was near its price (`lean` decides what is), and how many categories are touched.
    """
    categories, innermost = scratch.categories, model.innermost
    C = len(model.weight)
    sure, may_pay = True, False
    waiting, c = 0, -1
    for j in range(count):
        start = scratch.runs[j, 0]
        while start < scratch.runs[j, 1]:
            stop = min(model.run_end[start], scratch.runs[j, 1])
            take, skip, mass_taken, taken, clear = _decide_run(start, stop, mu, lean, scratch.p, model.costs, chosen)
            category = categories[innermost[start]]
            category.enter += take
            category.skip += skip
            category.mass_taken += mass_taken
            sure = sure and clear
            may_pay = may_pay or (taken and innermost[start] == C)
            if not category.touched:
                category.touched = True
                waiting += 1
                c = max(c, innermost[start])
            start = stop
    touched = 0
    while waiting > 0:
        category, above, weight = categories[c], categories[model.parent[c]], model.weight[c]
        if category.touched:
            enter, skip = weight + category.enter, category.skip
            near = NEAR_CATEGORY * (weight + abs(category.enter) + model.gains)
            if skip < np.inf and abs(enter - skip) <= near and not (enter == 0.0 and skip == 0.0):
                sure = False
                category.inside = lean > 0.0
            else:
                # At a tie more mass is better; without mass fewer labels are.
                category.inside = enter < skip or (enter == skip and category.mass_taken > 0.0)
            above.enter += min(skip, enter)
            above.skip += skip
            above.mass_taken += category.mass_taken if category.inside else 0.0
            if model.parent[c] == C:
                may_pay = may_pay or enter <= skip + NEAR_CATEGORY * (weight + skip + model.gains)
            if not above.touched:
                above.touched = True
                waiting += 1
            category.enter, category.skip, category.mass_taken, category.touched = 0.0, 0.0, 0.0, False
            scratch.touched[touched] = c
            touched += 1
            waiting -= 1
        c -= 1
    rest = categories[C]
    value = rest.enter
    rest.enter, rest.skip, rest.mass_taken = 0.0, 0.0, 0.0
    return value, may_pay, sure, touched


@jit
def _choose(v: int, mu: float, lean: float, r: int, model: RegionModel, scratch: Scratch, held: HeldSets) -> bool:
    """Make held set v the best set in region r at price mu; returns whether nothing in it was near its price."""
    categories, innermost, chosen = scratch.categories, model.innermost, held.chosen[v]
    chosen[:] = False
    count = list_runs(r, model, scratch)
    _, _, sure, touched = _decide_labels(count, mu, lean, model, scratch, chosen)
    cost, cost_low = model.diameter_cost[r], 0.0
    rem, rem_low = scratch.outside[r], scratch.outside_low[r]
    for j in range(touched - 1, -1, -1):
        c = scratch.touched[j]
        categories[c].inside = categories[c].inside and categories[model.parent[c]].inside
        if categories[c].inside:
            cost, cost_low = plus(cost, cost_low, model.weight[c])
            cost_low += model.weight_low[c]
    labels = 0
    for j in range(count):
        start = scratch.runs[j, 0]
        while start < scratch.runs[j, 1]:
            stop = min(model.run_end[start], scratch.runs[j, 1])
            inside = categories[innermost[start]].inside
            p, costs, taken = scratch.p[start:stop], model.costs[start:stop], chosen[start:stop]
            lows = model.costs_low[start:stop]
            for i in range(len(taken)):
                # Without branches, many of which would be mispredicted.
                taken[i] &= inside
                labels += taken[i]
                cost, error = two_sum(cost, costs[i] if taken[i] else 0.0)
                cost_low += error + (lows[i] if taken[i] else 0.0)
                rem, error = two_sum(rem, 0.0 if taken[i] else p[i])
                rem_low += error
            start = stop
    found = held.sets[v]
    found.region, found.labels, found.sure = r, labels, sure
    found.cost, found.cost_low = two_sum(cost, cost_low)
    found.rem, found.rem_low = two_sum(rem, rem_low)
    return sure


@jit
def _better(v: int, w: int, slope: Slope, place: Ints, p: Floats, held: HeldSets) -> bool:
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
