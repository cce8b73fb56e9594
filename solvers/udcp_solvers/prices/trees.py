"""Prices under a tree diameter plus a laminar part: L(S) = w * diameter(S) + laminar(S).

S_mu lies in one of the regions of the hierarchy (see `regions`). At price mu the value of region r is

    G_r(mu) = w D_r + mu * (mass outside r) + the least of (cost + mu * mass left out) over sets inside r,

concave in mu, and S_mu is the best set inside the region of least G (see `region_choice`). The hull is traced
(`hull.tracer`). Between two sets, a region is dropped if its chord lies above the point where the lines of the two sets
meet, since it cannot be better anywhere between them. If one region is left, labels enter at their laminar prices
inside it; otherwise the best set is looked for in the regions that are left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Indices, Ints, Masks, Probabilities
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.compiled import over_rows
from udcp_solvers.numeric.exact_costs import ExactForm, exact_forms
from udcp_solvers.prices.ball_sums import pairs_of
from udcp_solvers.prices.hull import (
    AT_INFINITY,
    AT_ZERO,
    BELOW,
    ENOUGH,
    ENTERED,
    NEIGHBOURS,
    Slope,
    is_below,
    price_of,
    slope_of_sets,
    tracer,
)
from udcp_solvers.prices.laminar import Forest, PricedForest, own_price, tree_prices
from udcp_solvers.prices.region_choice import (
    HeldSets,
    RegionModel,
    Scratch,
    best_set,
    held_sets_for,
    list_regions,
    list_runs,
    load_row,
    revalue,
    scratch_for,
)
from udcp_solvers.prices.regions import Tree, tree_of

if TYPE_CHECKING:
    from udcp_dsl.expression.domain import TreeMetric
    from udcp_dsl.loss import Loss

# The most sets that are held; at least 4: the left end, the right end, the nearest that waits, and one in between.
_MAX_HELD = 25
# A region is dropped if its chord is above the lines by more than this part of their value.
_ABOVE = 1e-9


class TraceRequest(NamedTuple):
    """By row: scores above `limit`, or above that of label `only` (-1 for none), are not needed. Of `scores`,
    `score_of` and `masks`, those that have rows are filled."""

    limit: Floats
    only: Ints
    scores: Floats
    score_of: Floats
    masks: Masks


class Inside(NamedTuple):
    """Laminar prices inside one region: the place of each label of the forest, the forest, the prices by place, and the
    number of the region."""

    labels: Ints
    forest: PricedForest
    price: Floats
    region: Ints


class RowTrace(NamedTuple):
    """The trace of the row that was loaded: the sets found and the scores by place. Scores above `limit`, or above that
    of place `only` (-1 for none), are not needed and may stay infinite."""

    limit: float
    only: int
    model: RegionModel
    scratch: Scratch
    held: HeldSets
    inside: Inside
    score: Floats


class TreePrices:
    """Computes the prices of the labels of each row under one loss."""

    def __init__(self, weight: float, metric: TreeMetric, forest: Forest, exact: ExactForm) -> None:
        tree = tree_of(metric)
        K, C = len(forest.labels), len(forest.weight)
        place = np.empty(K, dtype=np.int64)
        place[tree.labels] = np.arange(K)
        costs, innermost = np.empty(K), np.full(K, C)
        labels = place[forest.labels]
        costs[labels] = forest.costs
        costs_low, weight_low = np.empty(K), np.empty(C)
        weights = {np.sort(part.members).tobytes(): exact.weights[key] for key, part in exact.members.items()}
        costs_low[labels] = (exact.labels[0][forest.labels] - forest.costs) + exact.labels[1][forest.labels]
        single_cost = costs.copy()
        parent = np.full(C, C)
        for c in range(C):
            inside = labels[forest.low[c] : forest.high[c]]
            innermost[inside] = c
            high, low = weights[np.sort(forest.labels[forest.low[c] : forest.high[c]]).tobytes()]
            weight_low[c] = (high - forest.weight[c]) + low
            single_cost[inside] += forest.weight[c]
            parent[c + 1 : forest.last[c]] = c
        of_nodes, of_labels, shared = _weights(tree, labels, forest)
        self._model = RegionModel(
            tree=tree,
            pairs=pairs_of(tree, costs + of_labels, of_nodes),
            place=place,
            costs=costs,
            costs_low=costs_low,
            innermost=innermost,
            run_end=_run_ends(innermost),
            single_cost=single_cost,
            kind=_kinds(single_cost, costs, innermost, parent, forest.weight),
            parent=parent,
            weight=forest.weight,
            weight_low=weight_low,
            diameter_cost=np.concatenate([np.zeros(K), weight * tree.balls.diameter]),
            gains=-float(np.minimum(costs, 0.0).sum()),
            free=bool((costs <= 0).any()),
            shared=shared,
        )
        self._forest, self._labels = forest, labels

    @staticmethod
    def of(loss: Loss) -> Callable[[], TreePrices] | None:
        """A constructor of the prices; None if the loss is not the diameter of one hierarchy plus a laminar part."""
        form = loss.form
        if form is None or len(form.diameters) != 1 or form.of_size is not None:
            return None
        ((weight, metric),) = form.diameters.values()
        forest = Forest.of(form)
        if weight < 0 or forest is None:
            return None
        return partial(TreePrices, weight, metric, forest, exact_forms(loss.expression)[id(loss.expression.root)])

    def scores(self, P: Probabilities) -> Floats:
        scores = np.empty(P.shape)
        self._run(P, scores=scores)
        return scores

    def score_of(self, P: Probabilities, y: Indices) -> Floats:
        score_of = np.empty(len(P))
        self._run(P, only=y, score_of=score_of)
        return score_of

    def sets(self, P: Probabilities, tau: Floats) -> Masks:
        masks = np.empty(P.shape, dtype=np.bool_)
        self._run(P, limit=tau, masks=masks)
        return masks

    def _run(
        self,
        P: Probabilities,
        *,
        limit: Floats | None = None,
        only: Indices | None = None,
        scores: Floats | None = None,
        score_of: Floats | None = None,
        masks: Masks | None = None,
    ) -> None:
        n, K = P.shape
        request = TraceRequest(
            limit=np.full(n, np.inf) if limit is None else np.array(limit),
            only=np.full(n, -1) if only is None else np.array(only),
            scores=np.empty((0, K)) if scores is None else scores,
            score_of=np.empty(0) if score_of is None else score_of,
            masks=np.empty((0, K), dtype=np.bool_) if masks is None else masks,
        )

        def block(start: int, stop: int) -> None:
            """Score a block of rows, with its own arrays."""
            _rows(start, stop, P, self._new_trace(), np.arange(_MAX_HELD), request)

        over_rows(block, n, K)

    def _new_trace(self) -> RowTrace:
        forest, C, K = self._forest, len(self._forest.weight), len(self._labels)
        places = np.empty(K), np.empty(K)
        priced = PricedForest(forest.costs, forest.weight, forest.low, forest.high, forest.last, *places, np.empty(C))
        inside = Inside(self._labels, priced, np.empty(K), np.empty(1, dtype=np.int64))
        held = held_sets_for(_MAX_HELD + 1, self._model)
        return RowTrace(np.inf, -1, self._model, scratch_for(self._model), held, inside, np.empty(K))


def _weights(tree: Tree, labels: Ints, forest: Forest) -> tuple[Floats, Floats, bool]:
    """The weights of categories that are nodes or single labels, by node and by place; and whether all categories are.

    If several nodes have the same labels, the lowest one has the weight.
    """
    nodes = tree.nodes[:-1]
    runs = zip(tree.nodes.leaves[nodes.below].tolist(), tree.nodes.leaves[1:].tolist(), strict=True)
    node_of: dict[tuple[int, int], int] = {}
    for v, run in enumerate(runs):
        node_of.setdefault(run, v)
    of_nodes, of_labels, shared = np.zeros(len(nodes)), np.zeros(len(labels)), True
    for weight, start, stop in zip(forest.weight, forest.low, forest.high, strict=True):
        low, high = int(labels[start:stop].min()), int(labels[start:stop].max()) + 1
        if high - low == 1:
            of_labels[low] += weight
        elif high - low == stop - start and (low, high) in node_of:
            of_nodes[node_of[low, high]] += weight
        else:
            shared = False
    return of_nodes, of_labels, shared


def _kinds(single_cost: Floats, costs: Floats, innermost: Ints, parent: Ints, weight: Floats) -> Ints:
    """By place, the kind of a label: labels are of one kind if their own cost and the weights around them are equal.
    Kinds are numbered by rising `single_cost`."""
    around: list[tuple[float, ...]] = []
    for c, above in enumerate(parent.tolist()):
        around.append((*(around[above] if above < len(parent) else ()), float(weight[c])))
    around = [*(tuple(sorted(weights)) for weights in around), ()]
    terms = [(cost, around[c]) for cost, c in zip(costs.tolist(), innermost.tolist(), strict=True)]
    sums = dict(zip(terms, single_cost.tolist(), strict=True))
    rank = {term: r for r, term in enumerate(sorted(sums, key=sums.__getitem__))}
    return np.array([rank[term] for term in terms])


def _run_ends(values: Ints) -> Ints:
    """For each element, the end of its run of equal elements."""
    ends = np.append(np.flatnonzero(np.diff(values)) + 1, len(values))
    return ends[np.searchsorted(ends, np.arange(len(values)), side="right")]


@jit
def _meeting(row: RowTrace, a: int, b: int) -> Slope:
    return slope_of_sets(row.held.sets[a], row.held.sets[b])


@jit
def _search(row: RowTrace, a: int, b: int, new: int, slope: Slope) -> int:
    """The search of the tracer. Up to `left.listed_until`, only the regions listed with the left set matter.

    If the right end is beyond that, because the one before it was dropped for lack of slots, the left set is valued
    again in the regions of the right end.
    """
    held, mid = row.held, price_of(slope)
    left, right = held.sets[a], held.sets[b]
    # Prices rise, so the first price of a label is its lowest.
    bought = row.only >= 0 and row.score[row.only] < np.inf
    if left.mu > row.limit or bought or mid == np.inf:  # the price is beyond all floats, like those that follow
        return ENOUGH
    if left.listed_until < right.mu:
        revalue(a, b, row.model, row.scratch, held)
    if _keep_below(new, mid, a, b, held, row.scratch) == 1 and left.region == right.region:
        if not _enter_known(row, a, b, new):
            _enter_inside(left.region, left.mu, right.mu, row)
        _enter_set(row, b, right.mu)
        return ENTERED
    best_set(new, mid, slope, row.model, row.scratch, held)
    held.sets[new].listed_until = right.mu
    return BELOW if is_below(_meeting(row, a, new), slope) else NEIGHBOURS


@jit
def _enter(row: RowTrace, a: int, b: int, slope: Slope) -> None:
    _enter_set(row, b, min(price_of(slope), row.held.sets[b].mu))


@jit
def _enter_set(row: RowTrace, v: int, price: float) -> None:
    chosen, score = row.held.chosen[v], row.score
    for i in range(len(score)):
        score[i] = min(score[i], price if chosen[i] else np.inf)


_trace = jit(tracer(_meeting, _search, _enter))


@jit
def _rows(start: int, stop: int, P: Probabilities, trace: RowTrace, slots: Ints, request: TraceRequest) -> None:
    """Compute all that is requested of some rows: one kernel for all cases, since it is slow to compile."""
    model, scratch, held, score, limit = trace.model, trace.scratch, trace.held, trace.score, request.limit
    labels = model.tree.labels
    for n in range(start, stop):
        only = model.place[request.only[n]] if request.only[n] >= 0 else -1
        row = RowTrace(limit[n], only, model, scratch, held, trace.inside, score)
        first, last = slots[-1], slots[0]
        trace.inside.region[0] = -1
        score[:] = np.inf
        regions = load_row(P[n], model, scratch)
        list_regions(regions, first, scratch, held)
        list_regions(regions, last, scratch, held)
        best_set(first, 0.0, AT_ZERO, model, scratch, held)
        _enter_set(row, first, 0.0)
        best_set(last, np.inf, AT_INFINITY, model, scratch, held)
        held.sets[first].listed_until = np.inf
        _trace(row, slots)
        if len(request.scores) > 0:
            for i in range(len(labels)):
                request.scores[n, labels[i]] = score[i]
        if len(request.score_of) > 0:
            request.score_of[n] = score[only]
        if len(request.masks) > 0:
            for i in range(len(labels)):
                request.masks[n, labels[i]] = score[i] <= limit[n]


@jit
def _keep_below(m: int, mid: float, a: int, b: int, held: HeldSets, scratch: Scratch) -> int:
    """How many regions have a chord from a to b that is not above the lines of a and b where these meet, at mid.

    Those that matter are listed with m. A region in which nothing pays at b is left out: nothing in it pays at lower
    prices, and the empty set is in every region.
    """
    left, right = held.sets[a], held.sets[b]
    line = left.cost + mid * left.rem
    shorter = a if left.region_count < right.region_count else b
    slack = line + _ABOVE * (abs(line) + abs(left.cost))
    mu, end = left.mu, right.mu
    part = (mid - mu) / (end - mu)
    first, second = left.region, right.region
    G, G_end, may_pay, outside, kept = held.G[a], held.G[b], held.may_pay[b], scratch.outside, held.listed[m]
    below, count = 0, 0
    for q in held.listed[shorter, : held.sets[shorter].region_count]:
        chord = G[q] + (G_end[q] - G[q]) * part if end < np.inf else G[q] + outside[q] * (mid - mu)
        own = q in (first, second)
        if own or not chord > slack:
            below += 1
            if own or may_pay[q]:
                kept[count] = q
                count += 1
    held.sets[m].region_count = count
    return below


@jit
def _enter_known(row: RowTrace, a: int, b: int, new: int) -> bool:
    """Enter what is needed between two sets of one region if laminar prices are not needed for this; returns whether
    they are not."""
    limit, held = row.limit, row.held
    left, right, found = held.sets[a], held.sets[b], held.sets[new]
    only_beyond = row.only >= 0 and not held.chosen[b, row.only]
    if right.sure and (right.mu <= limit < np.inf or only_beyond):
        return True
    if limit >= right.mu:
        return False
    held.listed[new, 0], found.region_count = left.region, 1
    best_set(new, limit, (limit, 0.0, 1.0, 0.0), row.model, row.scratch, held)
    if found.sure:
        _enter_set(row, new, limit)
    return bool(found.sure)


@jit
def _enter_inside(r: int, mu_a: float, mu_b: float, row: RowTrace) -> None:
    """Enter the labels of region r at their laminar prices between the prices mu_a and mu_b."""
    model, scratch, inside, score = row.model, row.scratch, row.inside, row.score
    count = list_runs(r, model, scratch)
    price = inside.price
    if inside.region[0] != r:
        inside.region[0] = r
        if r < len(score):
            price[r] = own_price(model.single_cost[r], scratch.p[r])
        else:
            _prices_inside(count, scratch, inside)
    for j in range(count):
        for i in range(scratch.runs[j, 0], scratch.runs[j, 1]):
            enters = price[i] <= mu_b and price[i] < np.inf
            score[i] = min(score[i], max(price[i], mu_a) if enters else np.inf)


@jit
def _prices_inside(count: int, scratch: Scratch, inside: Inside) -> None:
    """The laminar prices inside the runs listed, as if there were no other labels."""
    price, labels, forest = inside.price, inside.labels, inside.forest
    price[:] = np.inf
    for j in range(count):
        price[scratch.runs[j, 0] : scratch.runs[j, 1]] = 0.0
    for k in range(len(labels)):
        forest.p[k] = scratch.p[labels[k]]
        own = own_price(forest.costs[k], forest.p[k])
        forest.price[k] = own if price[labels[k]] == 0.0 else np.inf
    tree_prices(0, len(forest.weight), forest)
    for k in range(len(labels)):
        price[labels[k]] = forest.price[k]
