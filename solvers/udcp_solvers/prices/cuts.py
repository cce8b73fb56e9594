"""Prices under losses that are cuts (see `cuts`): the S_mu are nested, and each is a minimum cut.

Labels are nodes behind the source: leaving y out cuts mu p(y), taking it cuts its cost; a category is a node behind its
labels, and cuts its weight; a capped sum is a node behind what it counts, and cuts either each of them or its cap. The
labels between two known sets, a run of the order in which they are bought, are divided where the lines of the two sets
meet, by a cut of the graph of these labels alone, until no set is better; what is before the run has been paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_dsl.per_row import array_of, as_number
from udcp_solvers.numeric.arrays import Floats, Ints, Masks, Probabilities, plain
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.double_double import plus, ratio, sign_of_cross
from udcp_solvers.prices.cut_form import Cut
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
    """What has been bought: whether a category is paid for, what each capped sum holds.

    And for the run at hand: nodes of the graph, and whether a category has been seen.
    """

    paid: Masks
    held: Floats
    category_node: Ints
    sum_node: Ints
    seen: Masks


class CutPrices:
    """The prices of one loss, by row."""

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
        """What makes them; None where the loss is not seen to be a cut."""
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
    p = np.empty(K)
    order, ends = np.empty(K, np.int64), np.empty(K + 2, np.int64)
    for n in range(start, stop):
        out[n] = np.inf
        many = len(p) - K  # none yet: a literal 0 would have `_row`, and all that it calls, compiled once more
        for y in range(K):
            p[y] = P[n, y]
            # A label without mass may be bought only where it is a gain.
            if p[y] > 0.0 or parts.costs[y] < 0.0:
                order[many] = y
                many += 1
        _row(p, order, many, ends, parts, state, graph, out[n])


@jit
def _row(
    p: Floats,
    order: Ints,
    many: int,
    ends: Ints,
    parts: Parts,
    state: State,
    graph: Graph,
    score: Floats,
) -> None:
    """The first `many` labels of the order are divided into runs; those bought together are a run."""
    state.paid[:] = False
    state.held[:] = 0.0
    low = many - many  # not a literal, as above
    low = _buy(
        0.0, order, low, _divide(0.0, True, order, low, many, p, parts, state, graph), p, parts, state, graph, score
    )
    ends[0] = _divide(np.inf, True, order, low, many, p, parts, state, graph)
    top = 0
    while top >= 0:
        high = ends[top]
        step, step_low, gain, gain_low = _slope(order, low, high, p, parts, state)
        if gain == 0.0:
            top -= 1
            continue
        price = ratio(step, step_low, gain, gain_low)
        middle = _divide(price, True, order, low, high, p, parts, state, graph)
        if low < middle < high:
            rise, rise_low, fall, fall_low = _slope(order, low, middle, p, parts, state)
            if fall > 0.0 and sign_of_cross(rise, rise_low, gain, gain_low, step, step_low, fall, fall_low) < 0:
                top += 1
                ends[top] = middle
                continue
        low = _buy(price, order, low, high, p, parts, state, graph, score)
        top -= 1


@jit
def _divide(
    mu: float,
    largest: bool,
    order: Ints,
    low: int,
    high: int,
    p: Floats,
    parts: Parts,
    state: State,
    graph: Graph,
) -> int:
    """Bring the labels of the run low .. high that are bought at price mu to its front; where they end.

    Of several sets the largest or the smallest.
    """
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
    # Node numbers go with the places before anything is moved: a stable partition by two passes over the run.
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
    """Arcs to the capped sums that count a label or category, as far as there is room below their caps."""
    for j in range(parts.counts[element], parts.counts[element + 1]):
        g = parts.sums[j]
        room = parts.cap[g] - state.held[g]
        if room > 0.0:
            if state.sum_node[g] < 0:
                state.sum_node[g] = add_node(graph)
                add_arc(graph, state.sum_node[g], 1, parts.sum_weight[g] * room)
            add_arc(graph, node, state.sum_node[g], parts.sum_weight[g] * parts.units[j])


@jit
def _slope(
    order: Ints, low: int, high: int, p: Floats, parts: Parts, state: State
) -> tuple[float, float, float, float]:
    """What the labels of a run cost together on top of what has been bought, and their mass."""
    K = len(p)
    cost, cost_low, mass, mass_low = 0.0, 0.0, 0.0, 0.0
    more = np.zeros(len(parts.cap))
    state.seen[:] = False
    for i in range(low, high):
        y = order[i]
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
def _buy(
    price: float,
    order: Ints,
    low: int,
    high: int,
    p: Floats,
    parts: Parts,
    state: State,
    graph: Graph,
    score: Floats,
) -> int:
    """Buy the labels of a run; where those end that are bought. At a tie fewer labels: of those without mass, at its
    end, only the ones that are a gain."""
    middle = high
    for i in range(high - 1, low - 1, -1):
        if p[order[i]] == 0.0:
            middle -= 1
            order[i], order[middle] = order[middle], order[i]
    _pay(price, order, low, middle, parts, state, score)
    if middle == high:
        return high
    end = _divide(price, False, order, middle, high, p, parts, state, graph)
    _pay(price, order, middle, end, parts, state, score)
    return end


@jit
def _pay(price: float, order: Ints, low: int, high: int, parts: Parts, state: State, score: Floats) -> None:
    K = len(score)
    for i in range(low, high):
        y = order[i]
        score[y] = max(price, 0.0)
        for j in range(parts.counts[y], parts.counts[y + 1]):
            state.held[parts.sums[j]] += parts.units[j]
        for j in range(parts.starts[y], parts.starts[y + 1]):
            c = parts.of[j]
            if not state.paid[c]:
                state.paid[c] = True
                for e in range(parts.counts[K + c], parts.counts[K + c + 1]):
                    state.held[parts.sums[e]] += parts.units[e]
