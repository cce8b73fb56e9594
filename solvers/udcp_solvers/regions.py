"""The regions of a hierarchy: the largest sets of labels of each diameter.

A set of diameter <= D in a tree lies in a ball around a node (D even) or around the middle of an edge (D odd). With all
leaves at one depth the balls are the subtrees. Regions with the same labels are one, with their true diameter.
"""

from __future__ import annotations

import hashlib
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


def one_depth(hierarchy: Hierarchy) -> bool:
    """Whether all leaves are equally deep, so that the regions are the subtrees."""
    depths = hierarchy.depth[hierarchy.leaf]
    return bool((depths == depths[0]).all())


def subtrees(hierarchy: Hierarchy) -> tuple[Ints, Ints]:
    """For leaves at one depth: the nodes that are regions, by rising diameter, and the diameters in edges.

    A node with one child has the labels of that child, so the child stands for both.
    """
    nodes = np.arange(len(hierarchy.names))
    many = np.bincount(hierarchy.parent[1:], minlength=len(nodes))
    nodes = nodes[many != 1]
    edges = 2 * (hierarchy.height - hierarchy.depth[nodes])
    order = np.argsort(edges, kind="stable")
    return nodes[order], edges[order]


def regions_of(hierarchy: Hierarchy) -> Regions:
    """All regions, by rising diameter."""
    if one_depth(hierarchy):
        nodes, edges = subtrees(hierarchy)
        lists = [hierarchy.members(int(v)) for v in nodes]
    else:
        metric = TreeMetric(hierarchy.name, hierarchy)
        balls = _balls(hierarchy, metric)
        lists = [members for _, members in balls]
        edges = np.array([edge for edge, _ in balls], dtype=np.int64)
    starts = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return Regions(starts, np.concatenate(lists), edges)


def _balls(hierarchy: Hierarchy, metric: TreeMetric) -> list[tuple[int, Ints]]:
    """The label sets of all balls around nodes and edges, with their diameters."""
    found: dict[bytes, tuple[int, Ints]] = {}
    for v in range(len(hierarchy.names)):
        near = _distances(hierarchy, metric, v)
        centres = [near]
        if v:
            centres.append(np.minimum(near, _distances(hierarchy, metric, int(hierarchy.parent[v]))))
        for centre in centres:
            for radius in np.unique(centre):
                ball = np.flatnonzero(centre <= radius)
                key = hashlib.sha256(ball.tobytes()).digest()
                if key not in found:
                    # In a tree the member farthest from any point is an end of a longest path.
                    end = ball[centre[ball].argmax()]
                    away = _distances(hierarchy, metric, int(hierarchy.leaf[end]))
                    found[key] = int(away[ball].max()), ball
    return sorted(found.values(), key=lambda ball: (ball[0], ball[1].tolist()))


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
