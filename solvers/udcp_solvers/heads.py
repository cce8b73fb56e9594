"""The lists of one row: labels ranked by falling p, the head of each list, and the class that each list is in now.

Shared by the compiled ways to a greedy order. Among labels that cost the same, the ratio
max(M - L(S + y), 0) / (max(1 - p, 0) + eps) never falls as p rises (in floats too), and ties go to the higher p, then
the lower index: so the head of a list, its label of lowest rank, comes before the rest of it. K stands for "no rank".
"""

from __future__ import annotations

import numpy as np

from udcp_dsl.oracle import Floats, Indices, Masks
from udcp_solvers.compiled import jit
from udcp_solvers.falling import Row
from udcp_solvers.growing import cost_with


@jit
def rank(row: Row, order: Indices, eps: float, ranked: Indices, p: Floats, room: Floats, inverse: Floats) -> None:
    """Take in a row by its falling order: labels, probabilities, max(1 - p, 0) + eps and its inverse, by rank."""
    K = len(row)
    for r in range(K):
        ranked[r] = order[r]
        p[r] = np.float64(row[order[r]])
    for r in range(K):
        room[r] = max(1.0 - p[r], 0.0) + eps
        inverse[r] = 1.0 / room[r]


@jit
def deal(list_of: Indices, ranked: Indices, head: Indices, following: Indices) -> None:
    """Deal the ranked labels into their lists: the first rank of each, and for each rank the next of the same list."""
    K = len(ranked)
    head[:] = K
    for r in range(K - 1, -1, -1):
        g = list_of[ranked[r]]
        following[r] = head[g]
        head[g] = r


@jit
def touch(
    touched: Indices,
    category_start: Indices,
    category_list: Indices,
    category_bit: Indices,
    states: Indices,
    marked: Masks,
    changed: Indices,
) -> int:
    """Note that the categories are touched in the states of their lists; returns how many lists are in `changed`."""
    many = 0
    for category in touched:
        for i in range(category_start[category], category_start[category + 1]):
            g = category_list[i]
            states[g] |= 1 << category_bit[i]
            if not marked[g]:
                marked[g] = True
                changed[many] = g
                many += 1
    for i in range(many):
        marked[changed[i]] = False
    return many


@jit
def ratio(
    code: Indices, data: Floats, state: Floats, ranked: Indices, room: Floats, r: int, M: float
) -> float:
    """The greedy ratio of the label at rank r, as every path computes it."""
    return max(M - cost_with(code, data, state, ranked[r]), 0.0) / room[r]


@jit
def most_to_place(p: Floats, floor: float) -> float:
    """Once a sum of placed probabilities is above this, what remains is certainly below `floor`."""
    total = p.sum()
    if floor > 2.0 * total:
        return -1.0
    return total - floor + (len(p) + 4) * 2.0**-50 * (total + abs(floor))
