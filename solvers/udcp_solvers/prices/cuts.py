"""Prices under losses that are cuts (see `cut_form`): the S_mu are nested, and each is a minimum cut.

Labels are nodes behind the source: leaving y out cuts mu p(y), taking it cuts its cost. A category is a node behind its
labels: touching it cuts its weight. A capped sum is a node behind what it counts: the cut severs either what is counted
or the cap. The hull is traced (`hull.tracer`). The labels between two sets are a run of the order in which they are
bought; a cut of the graph of these labels alone divides the run, since what is before it has been paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_dsl.per_row import array_of, as_number
from udcp_solvers.numeric.arrays import Floats, Ints, Masks, Probabilities, plain
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.double_double import plus
from udcp_solvers.prices.cut_form import Cut
from udcp_solvers.prices.hull import BELOW, NEIGHBOURS, Slope, is_below, price_of, tracer
from udcp_solvers.prices.max_flow import Graph, add_arc, add_node, clear, graph_of, mark_smallest, saturate

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


class Parts(NamedTuple):
    """Costs by label, weights by category; capped sums: weight, cap.

    Label y is in the categories `of[starts[y]:starts[y + 1]]`. Capped sums count labels and categories: element i
    (label i, or category i - K) counts `units[j]` in sum `sums[j]` for j in counts[i] .. counts[i + 1] - 1.
    """

    costs: Floats
    weight: Floats
    starts: Ints
    of: Ints
    sum_weight: Floats
    cap: Floats
    counts: Ints
    sums: Ints
    units: Floats


class State(NamedTuple):
    """What has been bought: the categories that are `paid` for, and the count that each capped sum holds (`held`).

    For the present run: the graph's nodes of categories and capped sums, and the categories that have been `seen`.
    """

    paid: Masks
    held: Floats
    category_node: Ints
    sum_node: Ints
    seen: Masks


class RowTrace(NamedTuple):
    """The trace of one row: p, scores, and an order of the labels; a set is all labels before its entry in `ends`."""

    p: Floats
    score: Floats
    order: Ints
    ends: Ints
    parts: Parts
    state: State
    graph: Graph


class CutPrices:
    """Computes the prices of the labels of each row under one loss."""

    def __init__(self, cut: Cut) -> None:
        K = len(cut.costs)
        members = list(cut.categories)
        members += sorted({m for capped in cut.capped for _, m in capped.categories} - set(members))
        number = {m: c for c, m in enumerate(members)}
        categories: list[list[int]] = [[] for _ in range(K)]
        for c, labels in enumerate(members):
            for y in labels:
                categories[y].append(c)
        counted: list[list[tuple[int, float]]] = [[] for _ in range(K + len(members))]
        for g, capped in enumerate(cut.capped):
            for y in np.flatnonzero(capped.labels).tolist():
                counted[y].append((g, as_number(capped.labels[y])))
            for unit, m in capped.categories:
                counted[K + number[m]].append((g, unit))
        self._parts = Parts(
            costs=cut.costs,
            weight=array_of([cut.categories.get(m, 0.0) for m in members]),
            starts=np.cumsum([0, *map(len, categories)]).astype(np.int64),
            of=np.array([c for cs in categories for c in cs], dtype=np.int64),
            sum_weight=array_of([capped.weight for capped in cut.capped]),
            cap=array_of([capped.cap for capped in cut.capped]),
            counts=np.cumsum([0, *map(len, counted)]).astype(np.int64),
            sums=np.array([g for cs in counted for g, _ in cs], dtype=np.int64),
            units=array_of([unit for cs in counted for _, unit in cs]),
        )

    @staticmethod
    def of(loss: Loss) -> Callable[[], CutPrices] | None:
        """A constructor of the prices; None if the loss is not recognised as a cut."""
        cut = Cut.of(loss)
        return None if cut is None else partial(CutPrices, cut)

    def scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        over_rows(_scores, *P.shape, plain(P), self._parts, out)
        return out


@jit
def _scores(start: int, stop: int, P: Probabilities, parts: Parts, out: Floats) -> None:
    K, C, G = P.shape[1], len(parts.weight), len(parts.cap)
    graph = graph_of(2 + K + C + G, 2 * K + C + G + len(parts.of) + len(parts.sums))
    state = State(
        paid=np.empty(C, np.bool_),
        held=np.empty(G),
        category_node=np.empty(C, np.int64),
        sum_node=np.empty(G, np.int64),
        seen=np.empty(C, np.bool_),
    )
    row = RowTrace(np.empty(K), np.empty(K), np.empty(K, np.int64), np.empty(K + 3, np.int64), parts, state, graph)
    slots = np.arange(K + 3)
    for n in range(start, stop):
        many = K - K  # not a literal, for whose type all callees would be compiled again
        for y in range(K):
            row.p[y], row.score[y] = P[n, y], np.inf
            # A label without mass may be bought only where it is a gain.
            if row.p[y] > 0.0 or parts.costs[y] < 0.0:
                row.order[many] = y
                many += 1
        state.paid[:] = False
        state.held[:] = 0.0
        low = _buy(row, 0.0, K - K, _divide(row, 0.0, True, K - K, many))
        row.ends[slots[-1]], row.ends[slots[0]] = low, _divide(row, np.inf, True, low, many)
        _trace(row, slots)
        for y in range(K):
            out[n, y] = row.score[y]


@jit
def _meeting(row: RowTrace, a: int, b: int) -> Slope:
    """The cost of the labels between two sets on top of what has been bought, and their mass."""
    p, parts, state = row.p, row.parts, row.state
    K = len(p)
    cost, cost_low, mass, mass_low = 0.0, 0.0, 0.0, 0.0
    more = np.zeros(len(parts.cap))
    state.seen[:] = False
    for i in range(row.ends[a], row.ends[b]):
        y = row.order[i]
        cost, cost_low = plus(cost, cost_low, parts.costs[y])
        mass, mass_low = plus(mass, mass_low, p[y])
        for j in range(parts.counts[y], parts.counts[y + 1]):
            more[parts.sums[j]] += parts.units[j]
        for j in range(parts.starts[y], parts.starts[y + 1]):
            c = parts.of[j]
            if not state.paid[c] and not state.seen[c]:
                state.seen[c] = True
                cost, cost_low = plus(cost, cost_low, parts.weight[c])
                for e in range(parts.counts[K + c], parts.counts[K + c + 1]):
                    more[parts.sums[e]] += parts.units[e]
    for g in range(len(parts.cap)):
        room = max(parts.cap[g] - state.held[g], 0.0)
        cost, cost_low = plus(cost, cost_low, parts.sum_weight[g] * min(more[g], room))
    return cost, cost_low, mass, mass_low


@jit
def _search(row: RowTrace, a: int, b: int, new: int, slope: Slope) -> int:
    row.ends[new] = _divide(row, price_of(slope), True, row.ends[a], row.ends[b])
    return BELOW if is_below(_meeting(row, a, new), slope) else NEIGHBOURS


@jit
def _enter(row: RowTrace, a: int, b: int, slope: Slope) -> None:
    row.ends[b] = _buy(row, price_of(slope), row.ends[a], row.ends[b])


_trace = jit(tracer(_meeting, _search, _enter))


@jit
def _divide(row: RowTrace, mu: float, largest: bool, low: int, high: int) -> int:
    """Move the labels of the run low .. high - 1 that are bought at price mu to its front; returns where they end.

    Of several best sets, the largest or the smallest.
    """
    p, order, parts, state, graph = row.p, row.order, row.parts, row.state, row.graph
    K, costs = len(p), parts.costs
    clear(graph)
    state.category_node[:] = -1
    state.sum_node[:] = -1
    for _ in range(low, high):
        add_node(graph)  # the label at place i is node 2 + i - low
    for i in range(low, high):
        y, node = order[i], 2 + i - low
        left = mu * p[y] if p[y] > 0.0 else 0.0
        add_arc(graph, 0, node, left + max(-costs[y], 0.0))
        if costs[y] > 0.0:
            add_arc(graph, node, 1, costs[y])
        _count(y, node, parts, state, graph)
        for j in range(parts.starts[y], parts.starts[y + 1]):
            c = parts.of[j]
            if state.paid[c]:
                continue
            if state.category_node[c] < 0:
                state.category_node[c] = add_node(graph)
                if parts.weight[c] > 0.0:
                    add_arc(graph, state.category_node[c], 1, parts.weight[c])
                _count(K + c, state.category_node[c], parts, state, graph)
            add_arc(graph, node, state.category_node[c], np.inf)
    saturate(graph)
    if not largest:
        mark_smallest(graph)
    front = low
    # Nodes are numbered by the places before any label is moved, so the run is partitioned, stably, in two passes.
    for i in range(low, high):
        if graph.level[2 + i - low] < 0:
            graph.queue[front - low] = order[i]
            front += 1
    back = front
    for i in range(low, high):
        if graph.level[2 + i - low] >= 0:
            graph.queue[back - low] = order[i]
            back += 1
    for i in range(low, high):
        order[i] = graph.queue[i - low]
    return front


@jit
def _count(element: int, node: int, parts: Parts, state: State, graph: Graph) -> None:
    """Add arcs to the capped sums that count a label or category and are still below their caps."""
    for j in range(parts.counts[element], parts.counts[element + 1]):
        g = parts.sums[j]
        room = parts.cap[g] - state.held[g]
        if room > 0.0:
            if state.sum_node[g] < 0:
                state.sum_node[g] = add_node(graph)
                add_arc(graph, state.sum_node[g], 1, parts.sum_weight[g] * room)
            add_arc(graph, node, state.sum_node[g], parts.sum_weight[g] * parts.units[j])


@jit
def _buy(row: RowTrace, price: float, low: int, high: int) -> int:
    """Buy the labels of a run; returns where the bought labels end. Labels without mass are moved to the end, and only
    those that are a gain are bought: at a tie, fewer labels."""
    order, middle = row.order, high
    for i in range(high - 1, low - 1, -1):
        if row.p[order[i]] == 0.0:
            middle -= 1
            order[i], order[middle] = order[middle], order[i]
    _pay(row, price, low, middle)
    if middle == high:
        return high
    end = _divide(row, price, False, middle, high)
    _pay(row, price, middle, end)
    return end


@jit
def _pay(row: RowTrace, price: float, low: int, high: int) -> None:
    score, parts, state = row.score, row.parts, row.state
    K = len(score)
    for i in range(low, high):
        y = row.order[i]
        score[y] = max(price, 0.0)
        for j in range(parts.counts[y], parts.counts[y + 1]):
            state.held[parts.sums[j]] += parts.units[j]
        for j in range(parts.starts[y], parts.starts[y + 1]):
            c = parts.of[j]
            if not state.paid[c]:
                state.paid[c] = True
                for e in range(parts.counts[K + c], parts.counts[K + c + 1]):
                    state.held[parts.sums[e]] += parts.units[e]
