"""The regions of a hierarchy: the largest sets of labels of each diameter.

A set of diameter <= D in a tree lies in a ball around a node (D even) or around the middle of an edge (D odd). With all
leaves at one depth the balls are the subtrees. Regions with the same labels are one, with their true diameter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.domain import Hierarchy, TreeMetric

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Regions:
    """Region r holds the labels `members[starts[r]:starts[r + 1]]`, rising; its diameter is `edges[r]`."""

    starts: Ints
    members: Ints
    edges: Ints


def regions_of(hierarchy: Hierarchy) -> Regions:
    """All regions, by rising diameter."""
    metric = TreeMetric(hierarchy.name, hierarchy)
    if len(set(metric.leaf_depth.tolist())) == 1:
        sets = {hierarchy.members(v).tobytes() for v in range(len(hierarchy.names))}
    else:
        sets = _balls(hierarchy, metric)
    found = []
    for key in sets:
        members = np.frombuffer(key, dtype=np.int64)
        mask = np.zeros((1, hierarchy.K), dtype=bool)
        mask[0, members] = True
        found.append((int(metric.endpoints(mask)[2][0]), members.tolist()))
    found.sort()
    starts = np.cumsum([0, *(len(members) for _, members in found)])
    flat = np.array([y for _, members in found for y in members], dtype=np.int64)
    return Regions(starts.astype(np.int64), flat, np.array([d for d, _ in found], dtype=np.int64))


def _balls(hierarchy: Hierarchy, metric: TreeMetric) -> set[bytes]:
    """The label sets of all balls around nodes and edges."""
    away = [_distances(hierarchy, metric, v) for v in range(len(hierarchy.names))]
    balls: set[bytes] = set()
    for v, near in enumerate(away):
        for radius in np.unique(near):
            balls.add(np.flatnonzero(near <= radius).tobytes())
        if v:
            either = np.minimum(near, away[hierarchy.parent[v]])
            for radius in np.unique(either):
                balls.add(np.flatnonzero(either <= radius).tobytes())
    return balls


def _distances(hierarchy: Hierarchy, metric: TreeMetric, v: int) -> Ints:
    """Path lengths from a node to every label."""
    common = np.zeros(hierarchy.K, dtype=np.int64)
    node, depth = v, int(hierarchy.depth[v])
    above = [node]
    while node > 0:
        node = int(hierarchy.parent[node])
        above.append(node)
    for d, ancestor in enumerate(reversed(above)):
        if d:
            common += hierarchy.path[:, d] == ancestor
    distances: Ints = depth + metric.leaf_depth - 2 * common
    return distances
