"""The lists of one row: labels ranked by falling p, the head of each list, and the class that each list is in now.

Shared by the compiled ways to a greedy order. Among labels that cost the same, the ratio
max(M - L(S + y), 0) / (max(1 - p, 0) + eps) never falls as p rises (in floats too), and ties go to the higher p, then
the lower index: so the head of a list, its label of lowest rank, comes before the rest of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_dsl.oracle import Floats, Indices, Masks
from udcp_solvers.compiled import jit
from udcp_solvers.falling import Row
from udcp_solvers.growing import Growing, Held, cost_with
from udcp_solvers.lists import Lists


class Heads(NamedTuple):
    """K stands for "no rank"."""

    ranked: Indices  # (K,) the label at each rank
    p: Floats  # (K,) by rank
    room: Floats  # (K,) by rank: max(1 - p, 0) + eps
    inverse: Floats  # (K,) 1 / room
    following: Indices  # (K,) the next rank of the same list
    head: Indices  # (G,) the lowest rank of each list that is not placed yet
    state: Indices  # (G,) which categories are touched, as bits
    now: Indices  # (G,) class
    changed: Indices  # (G,) lists whose categories were touched by the last label
    marked: Masks  # (G,) whether a list is among them


@jit
def room_for_heads(K: int, G: int) -> Heads:
    return Heads(
        np.empty(K, np.int64),
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.empty(K, np.int64),
        np.empty(G, np.int64),
        np.empty(G, np.int64),
        np.empty(G, np.int64),
        np.empty(G, np.int64),
        np.zeros(G, np.bool_),
    )


@jit
def rank(row: Row, order: Indices, eps: float, heads: Heads) -> None:
    """Take in a row by its falling order."""
    for r in range(len(row)):
        heads.ranked[r] = order[r]
        heads.p[r] = np.float64(row[order[r]])
    for r in range(len(row)):
        heads.room[r] = max(1.0 - heads.p[r], 0.0) + eps
        heads.inverse[r] = 1.0 / heads.room[r]


@jit
def deal(lists: Lists, heads: Heads) -> None:
    """Deal the ranked labels into their lists, with no category touched."""
    K = len(heads.ranked)
    for g in range(len(heads.head)):
        heads.head[g] = K
        heads.state[g] = 0
        heads.now[g] = lists.class_of[g, 0]
    for r in range(K - 1, -1, -1):
        g = lists.list_of[heads.ranked[r]]
        heads.following[r] = heads.head[g]
        heads.head[g] = r


@jit
def touch(growing: Growing, held: Held, lists: Lists, heads: Heads, y: int) -> int:
    """Note in `state` the categories that y, not in S yet, touches first; returns how many lists are in `changed`."""
    K = len(heads.ranked)
    many = 0
    for e in range(growing.entries[y], growing.entries[y + 1]):
        category = growing.entry_category[e]
        if held.left[category] == 0.0:
            continue
        for i in range(lists.category_start[category], lists.category_start[category + 1]):
            g = lists.category_list[i]
            if heads.head[g] < K:
                heads.state[g] |= 1 << lists.category_bit[i]
                if not heads.marked[g]:
                    heads.marked[g] = True
                    heads.changed[many] = g
                    many += 1
    for i in range(many):
        heads.marked[heads.changed[i]] = False
    return many


@jit
def ratio(growing: Growing, held: Held, heads: Heads, r: int, M: float) -> float:
    """The greedy ratio of the label at rank r, as every path computes it."""
    return max(M - cost_with(growing, held, heads.ranked[r]), 0.0) / heads.room[r]


@jit
def done(heads: Heads, placed: float, total: float, floor: float) -> bool:
    """Whether the mass that remains is below `floor` for certain, as sums of K terms go."""
    return total - placed + (len(heads.p) + 4) * 2.0**-51 * total < floor
