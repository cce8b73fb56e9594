"""The costs of the prefixes of an order: a set grows by one given label after another.

`incremental_cost` computes L(S + y) from the distances of y to S, which are kept here. With a matrix, the largest
distance from each of its points to S grows with each label. In a tree, the member farthest from y is one end of a
longest path between members; so two ends are all that is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.greedy_orders.incremental_cost import (
    DENSE,
    TREE,
    Growing,
    State,
    clear,
    cost_with,
    new_state,
    push,
)
from udcp_solvers.numeric.arrays import Floats, Indices
from udcp_solvers.numeric.compiled import jit_inlined
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill


class Prefix(NamedTuple):
    """A growing set S, by D matrices and T trees."""

    state: State  # of `incremental_cost`
    far: Floats  # (D, M) the largest distance from each point to S and to itself
    ends: Indices  # (T, 2) the ends of a longest path between members of S
    longest: Indices  # (T,) the edges of that path, -1 if S is empty


def new_prefix(growing: Growing) -> Prefix:
    """A set to grow; call `clear_prefix` before use."""
    D, M, _ = growing.dense.shape
    T = len(growing.edge)
    return Prefix(new_state(growing), np.empty((D, M)), np.empty((T, 2), np.int64), np.empty(T, np.int64))


@jit
def clear_prefix(growing: Growing, prefix: Prefix) -> None:
    """Make the set empty."""
    clear(growing, prefix.state)
    for m in range(len(growing.dense)):
        for j in range(growing.dense.shape[1]):
            prefix.far[m, j] = growing.dense[m, j, j]
    fill(prefix.longest, -1)


@jit_inlined
def extend(growing: Growing, prefix: Prefix, y: int) -> float:
    """Add label y to the set; returns L of it."""
    for a in range(len(growing.atoms)):
        kind, m = growing.atoms[a].kind, growing.atoms[a].metric
        if kind == DENSE:
            prefix.state.atoms[a].far = prefix.far[m, growing.point[m, y]]
        elif kind == TREE:
            prefix.state.atoms[a].far = growing.edge[m] * _lengthen(growing, prefix, m, y)
    cost = cost_with(growing, prefix.state, y)
    push(growing, prefix.state, y)
    for m in range(len(growing.dense)):
        far, row = prefix.far[m], growing.dense[m, growing.point[m, y]]
        for j in range(len(far)):
            far[j] = max(far[j], row[j])
    return cost


@jit
def _lengthen(growing: Growing, prefix: Prefix, m: int, y: int) -> int:
    """The distance in edges from y to the farthest member of the set in tree m; y then joins the ends of the longest
    path."""
    ends, longest = prefix.ends[m], prefix.longest
    if longest[m] < 0:
        fill(ends, y)
        longest[m] = 0
        return 0
    away, other = 0, 0
    for e in range(2):
        edges = _edges_between(growing, m, ends[e], y)
        if edges > away:
            away, other = edges, 1 - e
    if away > longest[m]:
        longest[m] = away
        ends[other] = y
    return away


@jit
def _edges_between(growing: Growing, m: int, y: int, z: int) -> int:
    """The edges of the path between two labels in tree m."""
    paths, depth, common = growing.paths[m], growing.depth[m], 0
    while paths[common, y] == paths[common, z] and paths[common, z] >= 0:
        common += 1
    return int(depth[y] + depth[z] - 2 * (common - 1))
