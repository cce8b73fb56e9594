"""Greedy orders of sums with a diameter (of a matrix or a hierarchy) or a largest cost, in O(lists) a step.

A list, for a matrix of labels a single label, keeps its farthest distance to the set, so that L(S + y) is
common + added so far + extra of its class + sum of w max(value, far). One pass over the lists gives a lower bound of
the best ratio, a second finds those that may reach it; the floats of `growing`, which every path shares, decide among
these. The passes are approximate and vectorised; with a matrix they read one row of it a step, near memory speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.growth.growing import DENSE, LARGER, TREE, Growing, clear, far_at, new_state, push
from udcp_solvers.growth.heads import Ranked, deal, most_to_place, rank, ranks_for, ratio
from udcp_solvers.growth.lists import Lists, Model
from udcp_solvers.numeric.arrays import Floats, Indices, Ints32, Probabilities
from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.falling import falling_order, order_scratch

_ROUNDING = 2.0**-50
# The best of many numbers is found lane by lane, which vectorises; arrays over the lists are filled up to whole lanes.
_LANES = 32


class Scratch(NamedTuple):
    """Arrays to work in, for one row after another."""

    state: Floats  # of `growing`
    head: Indices  # (G,)
    following: Indices  # (K,)
    states: Indices  # (G,) which categories of a list are touched
    now: Indices  # (G,) the class of a list
    above: Ints32  # (T, height, G) the nodes above a list
    common: Ints32  # (G,) depth of the deepest common ancestor with the last label
    far: Floats  # (A, G and more) the number that is compared with the atom's value
    extra: Floats  # (G and more) what a list costs beside what all cost, infinite once it is used up
    inverse: Floats  # (G and more) of its head
    gain: Floats  # (G and more) M - L(S + y), nearly
    lanes: Floats  # (_LANES,)


@jit
def farthest_orders(
    start: int,
    stop: int,
    P: Probabilities,
    wanted: Indices,
    floor: Floats,
    growing: Growing,
    lists: Lists,
    model: Model,
    M: float,
    eps: float,
    orders: Indices,
    counts: Indices,
) -> None:
    """The labels of each row in greedy order, until label `wanted` is placed or less mass than `floor` remains."""
    K, A, G = P.shape[1], len(growing.kind), len(lists.some)
    T, height = len(growing.edge), growing.paths.shape[1]
    sorting = order_scratch(K)
    ranks = ranks_for(K)
    above = np.empty((T, height, G), np.int32)
    for t in range(T):
        for d in range(height):
            for g in range(G):
                above[t, d, g] = growing.paths[t, d, lists.some[g]]
    filled = -(-G // _LANES) * _LANES
    scratch = Scratch(
        state=new_state(growing.code),
        head=np.empty(G, np.int64),
        following=np.empty(K, np.int64),
        states=np.empty(G, np.int64),
        now=np.empty(G, np.int64),
        above=above,
        common=np.empty(G, np.int32),
        far=np.zeros((A, filled)),
        extra=np.full(filled, np.inf),
        inverse=np.ones(filled),
        gain=np.empty(filled),
        lanes=np.empty(_LANES),
    )
    for i in range(start, stop):
        rank(P[i], falling_order(P[i], sorting), eps, ranks)
        counts[i] = _order(growing, lists, model, ranks, scratch, M, wanted[i], floor[i], orders[i])


@jit
def _order(
    growing: Growing,
    lists: Lists,
    model: Model,
    ranks: Ranked,
    scratch: Scratch,
    M: float,
    wanted: int,
    floor: float,
    order: Indices,
) -> int:
    """One row: fills the order, and says how far."""
    # Taken out of the tuples once: a compiled function counts references to what it takes out.
    code, data, state = growing.code, growing.data, scratch.state
    entries, entry_category, kind, metric = growing.entries, growing.entry_category, growing.kind, growing.metric
    number, point, depth, edge = growing.number, growing.point, growing.depth, growing.edge
    away = lists.away
    list_of, some, class_of, unpaid = lists.list_of, lists.some, lists.class_of, lists.unpaid
    category_start, category_list, category_bit = lists.category_start, lists.category_list, lists.category_bit
    cost_common, cost_extra, weight, slack = model.common, model.extra, model.far_weight, model.slack
    ranked, p, denominator, inverse = ranks.label, ranks.p, ranks.denominator, ranks.inverse
    head, following, states, now = scratch.head, scratch.following, scratch.states, scratch.now
    above, common = scratch.above, scratch.common
    far, extra, best_inverse, gain, lanes = scratch.far, scratch.extra, scratch.inverse, scratch.gain, scratch.lanes
    gain_lanes, inverse_lanes = gain.reshape(-1, _LANES), best_inverse.reshape(-1, _LANES)
    K, A, G = len(ranked), len(kind), len(some)
    far_0 = far_at(code)
    clear(code, data, state)
    deal(list_of, ranked, head, following)
    for a in range(A):
        for g in range(G):
            far[a, g] = number[a, some[g]] if kind[a] == LARGER else 0.0
            if kind[a] == DENSE:
                far[a, g] = away[metric[a], point[metric[a], some[g]], g]
    for g in range(G):
        states[g] = 0
        now[g] = class_of[g, 0]
        extra[g] = cost_extra[now[g]]
        best_inverse[g] = inverse[head[g]]
    most = most_to_place(p, floor)
    spent, placed = 0.0, 0.0
    count = 0
    while count < K:
        _gains(gain, extra, M - cost_common[count + 1] - spent)
        for a in range(A):
            if weight[a] != 0.0:
                _pay_far(gain, far[a], state[a], weight[a])
        lower = _lower(gain_lanes, inverse_lanes, lanes, slack)
        r = _best(
            code, data, state, ranked, denominator, head, now, far, gain, best_inverse, metric, far_0, slack, lower, M
        )
        y = ranked[r]
        g = list_of[y]
        order[count] = y
        count += 1
        placed += p[r]
        if y == wanted or placed > most:
            break
        spent += extra[g]
        head[g] = following[r]
        if unpaid[now[g]]:
            touched = states[g]
            for e in range(entries[y + 1] - entries[y]):
                if (touched >> e) & 1 == 0:
                    _touch(entry_category[entries[y] + e], category_start, category_list, category_bit, states)
            for e in range(entries[y + 1] - entries[y]):
                if (touched >> e) & 1 == 0:
                    category = entry_category[entries[y] + e]
                    for j in range(category_start[category], category_start[category + 1]):
                        moved = category_list[j]
                        now[moved] = class_of[moved, states[moved]]
                        if head[moved] < K:
                            extra[moved] = cost_extra[now[moved]]
        if head[g] == K:
            extra[g] = np.inf
        else:
            best_inverse[g] = inverse[head[g]]
        for a in range(A):
            state[far_0 + a] = far[a, g]
        push(code, data, state, y)
        for a in range(A):
            if kind[a] == DENSE:
                _reach(far[a], away[metric[a], point[metric[a], y]])
            elif kind[a] == TREE:
                _reach_in_tree(far[a], common, above[metric[a]], depth[metric[a]], some, edge[metric[a]], g)
    return count


@jit
def _gains(gain: Floats, extra: Floats, A: float) -> None:
    for g in range(len(gain)):
        gain[g] = A - extra[g]


@jit
def _pay_far(gain: Floats, far: Floats, value: float, weight: float) -> None:
    for g in range(len(gain)):
        gain[g] -= weight * max(value, far[g])


@jit
def _lower(gain: Floats, inverse: Floats, lanes: Floats, slack: float) -> float:
    """The best ratio is at least this, nearly."""
    lanes[:] = -np.inf
    for b in range(len(gain)):
        for j in range(_LANES):
            lanes[j] = max(lanes[j], (gain[b, j] - slack) * inverse[b, j])
    best = -np.inf
    for x in lanes:
        best = max(best, x)
    return best


@jit
def _best(
    code: Indices,
    data: Floats,
    state: Floats,
    ranked: Indices,
    denominator: Floats,
    head: Indices,
    now: Indices,
    far: Floats,
    gain: Floats,
    inverse: Floats,
    metric: Indices,
    far_0: int,
    slack: float,
    lower: float,
    M: float,
) -> int:
    """The rank that comes next."""
    K, A = len(ranked), len(metric)
    # Where no ratio is certain to be above 0, all may be 0, and p decides.
    lower = lower * (1.0 - _ROUNDING) if lower > 0.0 else -np.inf
    best, best_list, best_ratio, known = K, 0, 0.0, False
    for g in range(len(head)):
        if (gain[g] + slack) * inverse[g] * (1.0 + _ROUNDING) < lower or head[g] == K:
            continue
        r = head[g]
        same = now[g] == now[best_list]
        for a in range(A):
            if metric[a] >= 0:
                same &= max(state[a], far[a, g]) == max(state[a], far[a, best_list])
        if best == K or (same and r < best):
            best, best_list, known = r, g, False
        elif not same:
            if not known:
                for a in range(A):
                    state[far_0 + a] = far[a, best_list]
                best_ratio, known = ratio(code, data, state, ranked, denominator, best, M), True
            for a in range(A):
                state[far_0 + a] = far[a, g]
            found = ratio(code, data, state, ranked, denominator, r, M)
            if found > best_ratio or (found == best_ratio and r < best):
                best, best_list, best_ratio = r, g, found
    return best


@jit
def _reach(far: Floats, row: Floats) -> None:
    for g in range(len(row)):
        far[g] = max(far[g], row[g])


@jit
def _reach_in_tree(
    far: Floats,
    common: Ints32,
    above: Ints32,
    depth: Ints32,
    some: Indices,
    edge: float,
    list_y: int,
) -> None:
    """The deepest common ancestor of two labels is as deep as they share nodes above them, less the root."""
    common[:] = -1
    for level in above:
        node = level[list_y]
        if node < 0:
            break
        for g in range(len(common)):
            common[g] += 1 if level[g] == node else 0
    for g in range(len(common)):
        far[g] = max(far[g], edge * (depth[some[g]] + depth[some[list_y]] - 2 * common[g]))


@jit
def _touch(
    category: int, category_start: Indices, category_list: Indices, category_bit: Indices, states: Indices
) -> None:
    """Note that a category is touched in the states of its lists."""
    for j in range(category_start[category], category_start[category + 1]):
        states[category_list[j]] |= 1 << category_bit[j]
