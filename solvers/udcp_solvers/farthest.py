"""Greedy orders of sums with a diameter (of a matrix or a hierarchy) or a largest cost, in O(lists) a step.

A list, for a matrix a single label, keeps its farthest distance to the set, so that L(S + y) is
common + added so far + extra of its class + sum of w max(value, far). One pass over the lists gives a lower bound of
the best ratio, a second finds those that may reach it; the floats of `growing`, which every path shares, decide among
these. The passes are approximate and vectorised; with a matrix they read one row of it a step, near memory speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_dsl.oracle import Floats, Indices, Probabilities
from udcp_solvers.compiled import jit, jit_any_order
from udcp_solvers.falling import falling_order, order_scratch
from udcp_solvers.growing import DENSE, LARGER, TREE, Growing, Held, clear, hold, push
from udcp_solvers.heads import Heads, deal, done, rank, ratio, room_for_heads, touch
from udcp_solvers.lists import Lists, Model

_ROUNDING = 2.0**-50


class Passes(NamedTuple):
    """Arrays over the lists, for the passes."""

    far: Floats  # (A, G) the number that is compared with the atom's value
    common: Indices  # (G,) depth of the deepest common ancestor with the last label
    extra: Floats  # (G,) of the list's class; infinite for a list that is used up
    inverse: Floats  # (G,) of the head
    gain: Floats  # (G,) M - L(S + y), nearly


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
    K, G, A = P.shape[1], len(lists.some), len(growing.kind)
    scratch = order_scratch(K)
    heads = room_for_heads(K, G)
    held = hold(growing)
    passes = Passes(np.empty((A, G)), np.empty(G, np.int64), np.empty(G), np.empty(G), np.empty(G))
    for i in range(start, stop):
        rank(P[i], falling_order(P[i], scratch), eps, heads)
        counts[i] = _order(growing, lists, model, held, heads, passes, M, wanted[i], floor[i], orders[i])


@jit
def _order(
    growing: Growing,
    lists: Lists,
    model: Model,
    held: Held,
    heads: Heads,
    passes: Passes,
    M: float,
    wanted: int,
    floor: float,
    order: Indices,
) -> int:
    K, G = len(heads.ranked), len(heads.head)
    clear(growing, held)
    deal(lists, heads)
    for a in range(len(growing.kind)):
        for g in range(G):
            passes.far[a, g] = growing.number[a, lists.some[g]] if growing.kind[a] == LARGER else 0.0
    for g in range(G):
        passes.extra[g] = model.extra[heads.now[g]]
        passes.inverse[g] = heads.inverse[heads.head[g]]
    total = heads.p.sum()
    spent = 0.0
    placed = 0.0
    count = 0
    while count < K:
        _gains(model, held, passes, M - model.common[count + 1] - spent)
        r = _best(growing, lists, model, held, heads, passes, M)
        y = heads.ranked[r]
        g = lists.list_of[y]
        order[count] = y
        count += 1
        placed += heads.p[r]
        if y == wanted or done(heads, placed, total, floor):
            break
        spent += passes.extra[g]
        heads.head[g] = heads.following[r]
        if heads.head[g] == K:
            passes.extra[g] = np.inf
        else:
            passes.inverse[g] = heads.inverse[heads.head[g]]
        for i in range(touch(growing, held, lists, heads, y)):
            moved = heads.changed[i]
            heads.now[moved] = lists.class_of[moved, heads.state[moved]]
            passes.extra[moved] = model.extra[heads.now[moved]]
        held.far[:] = passes.far[:, g]
        push(growing, held, y)
        _reach(growing, lists, passes, y)
    return count


@jit
def _gains(model: Model, held: Held, passes: Passes, A: float) -> None:
    gain, extra = passes.gain, passes.extra
    for g in range(len(gain)):
        gain[g] = A - extra[g]
    for a in range(len(model.far_weight)):
        w = model.far_weight[a]
        if w != 0.0:
            value, far = held.value[a], passes.far[a]
            for g in range(len(gain)):
                gain[g] -= w * max(value, far[g])


@jit_any_order
def _lower(gain: Floats, inverse: Floats, slack: float) -> float:
    """The best ratio is at least this, nearly; only steers."""
    best = -np.inf
    for g in range(len(gain)):
        best = max(best, (gain[g] - slack) * inverse[g])
    return best


@jit
def _best(
    growing: Growing, lists: Lists, model: Model, held: Held, heads: Heads, passes: Passes, M: float
) -> int:
    """The rank that comes next."""
    K = len(heads.ranked)
    slack = model.slack
    lower = _lower(passes.gain, passes.inverse, slack)
    # Where no ratio is certain to be above 0, all may be 0, and p decides.
    lower = lower * (1.0 - _ROUNDING) if lower > 0.0 else -np.inf
    best, best_list, best_ratio, known = K, -1, 0.0, False
    for g in range(len(passes.gain)):
        if (passes.gain[g] + slack) * passes.inverse[g] * (1.0 + _ROUNDING) < lower or heads.head[g] == K:
            continue
        r = heads.head[g]
        if best == K:
            best, best_list = r, g
        elif _same(growing, held, heads, passes, g, best_list):
            if r < best:
                # The ratio must be that of the new head, whose p is higher.
                best, best_list, known = r, g, False
        else:
            if not known:
                held.far[:] = passes.far[:, best_list]
                best_ratio = ratio(growing, held, heads, best, M)
                known = True
            held.far[:] = passes.far[:, g]
            found = ratio(growing, held, heads, r, M)
            if found > best_ratio or (found == best_ratio and r < best):
                best, best_list, best_ratio = r, g, found
    return best


@jit
def _same(growing: Growing, held: Held, heads: Heads, passes: Passes, g: int, h: int) -> bool:
    """Whether two lists cost the same for certain."""
    if heads.now[g] != heads.now[h]:
        return False
    for a in range(len(growing.kind)):
        if growing.metric[a] >= 0:
            value = held.value[a]
            if max(value, passes.far[a, g]) != max(value, passes.far[a, h]):
                return False
    return True


@jit
def _reach(growing: Growing, lists: Lists, passes: Passes, y: int) -> None:
    """Take y into the farthest distances."""
    for a in range(len(growing.kind)):
        metric = growing.metric[a]
        far = passes.far[a]
        if growing.kind[a] == DENSE:
            # With a matrix each label is a list of its own, in the order of the labels.
            row = growing.dense[metric, y]
            for g in range(len(far)):
                far[g] = max(far[g], row[g])
        elif growing.kind[a] == TREE:
            _common_depth(growing.paths[metric], lists, y, passes.common)
            depth, edge = growing.depth[metric], growing.edge[metric]
            for g in range(len(far)):
                edges = depth[lists.some[g]] + depth[y] - 2 * passes.common[g]
                far[g] = max(far[g], edge * edges)


@jit
def _common_depth(paths: Indices, lists: Lists, y: int, common: Indices) -> None:
    common[:] = -1
    for d in range(len(paths)):
        level = paths[d]
        node = level[y]
        for g in range(len(common)):
            common[g] += 1 if level[lists.some[g]] == node else 0
