"""The lists of one row: labels ranked by falling p, the head of each list, and the next label of the same list.

Among labels that cost the same, the ratio max(M - L(S + y), 0) / (max(1 - p, 0) + eps) never falls as p rises (in
floats too), and ties go to the higher p, then the lower index: so the head of a list, its label of lowest rank, comes
before the rest of it. K stands for "no rank".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.greedy_orders.incremental_cost import Growing, State, cost_with
from udcp_solvers.numeric.arrays import Floats, Indices, Row
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill


class Ranked(NamedTuple):
    """The labels of a row by rank."""

    label: Indices
    p: Floats
    denominator: Floats  # of the ratio: max(1 - p, 0) + eps
    inverse: Floats  # (K + 1,) 1 / denominator, and 0 for no rank


def ranks_for(K: int) -> Ranked:
    """Arrays for the ranks of a row, which are reused for every row."""
    return Ranked(np.empty(K, np.int64), np.empty(K), np.empty(K), np.zeros(K + 1))


@jit
def rank(row: Row, order: Indices, eps: float, ranked: Ranked) -> None:
    """Fill `ranked` with a row, given its labels by falling p."""
    label, p, denominator, inverse = ranked.label, ranked.p, ranked.denominator, ranked.inverse
    K = len(row)
    for r in range(K):
        label[r] = order[r]
        p[r] = np.float64(row[order[r]])
    for r in range(K):
        denominator[r] = max(1.0 - p[r], 0.0) + eps
        inverse[r] = 1.0 / denominator[r]


@jit
def assign_lists(list_of: Indices, ranked: Indices, head: Indices, following: Indices) -> None:
    """Assign the ranked labels to their lists: the first rank of each list, and for each rank the next one in its
    list."""
    K = len(ranked)
    fill(head, K)
    for r in range(K - 1, -1, -1):
        g = list_of[ranked[r]]
        following[r] = head[g]
        head[g] = r


@jit
def ratio(growing: Growing, state: State, ranked: Indices, denominator: Floats, r: int, M: float) -> float:
    """The greedy ratio of the label at rank r, as every path computes it."""
    return float(max(M - cost_with(growing, state, ranked[r]), 0.0) / denominator[r])


@jit
def placed_limit(p: Floats, floor: float) -> float:
    """A limit: once the sum of placed probabilities is above it, the remaining mass is certainly below `floor`."""
    total = 0.0
    for x in p:
        total += x
    if floor > 2.0 * total:
        return -1.0
    return total - floor + (len(p) + 4) * 2.0**-50 * (total + abs(floor))
