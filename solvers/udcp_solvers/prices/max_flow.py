"""Maximum flow by Dinic's algorithm, in a graph held in flat arrays; node 0 is the source, node 1 the sink.

Arc e and its reverse e ^ 1 are neighbours; the arcs out of a node form a linked list. Each augmentation reduces the
capacity of some arc to exactly 0, so it terminates despite rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Ints
from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.filling import put


class Graph(NamedTuple):
    """`counts`: the numbers of nodes and of arcs, both directions; `first` to `queue` are by node, the rest by arc."""

    counts: Ints
    first: Ints
    level: Ints
    at: Ints
    queue: Ints
    next: Ints
    to: Ints
    capacity: Floats


@jit
def graph_of(nodes: int, arcs: int) -> Graph:
    """Arrays for a graph of at most this size; an arc and its reverse count as one of `arcs`."""
    return Graph(
        counts=np.zeros(2, np.int64),
        first=np.empty(nodes, np.int64),
        level=np.empty(nodes, np.int64),
        at=np.empty(nodes, np.int64),
        queue=np.empty(nodes, np.int64),
        next=np.empty(2 * arcs, np.int64),
        to=np.empty(2 * arcs, np.int64),
        capacity=np.empty(2 * arcs),
    )


@jit
def clear(graph: Graph) -> None:
    """Remove all nodes but the source and the sink, and all arcs."""
    graph.counts[0] = 2
    graph.counts[1] = 0
    graph.first[0] = -1
    graph.first[1] = -1


@jit
def add_node(graph: Graph) -> int:
    node = graph.counts[0]
    graph.first[node] = -1
    graph.counts[0] = node + 1
    return int(node)


@jit
def add_arc(graph: Graph, a: int, b: int, capacity: float) -> None:
    e = graph.counts[1]
    graph.to[e], graph.capacity[e] = b, capacity
    graph.next[e], graph.first[a] = graph.first[a], e
    graph.to[e + 1], graph.capacity[e + 1] = a, 0.0
    graph.next[e + 1], graph.first[b] = graph.first[b], e + 1
    graph.counts[1] = e + 2


@jit
def saturate(graph: Graph) -> None:
    """Send as much flow as possible; afterwards `level` is -1 exactly on the largest source side of a minimum cut."""
    while _levels(graph):
        put(graph.at[: graph.counts[0]], graph.first)
        while _augment(graph):
            pass


@jit
def mark_smallest(graph: Graph) -> None:
    """After `saturate`: set `level` to -1 on the smallest source side of a minimum cut, else to 0."""
    level, queue = graph.level, graph.queue
    level[: graph.counts[0]] = 0
    level[0] = -1
    queue[0] = 0
    head, tail = 0, 1
    while head < tail:
        e = graph.first[queue[head]]
        head += 1
        while e >= 0:
            other = graph.to[e]
            if level[other] == 0 and graph.capacity[e] > 0.0:
                level[other] = -1
                queue[tail] = other
                tail += 1
            e = graph.next[e]


@jit
def _levels(graph: Graph) -> bool:
    """Compute distances to the sink over arcs with capacity, -1 if it cannot be reached; returns whether the source
    can."""
    level, queue = graph.level, graph.queue
    level[: graph.counts[0]] = -1
    level[1] = 0
    queue[0] = 1
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        e = graph.first[node]
        while e >= 0:
            other = graph.to[e]
            if level[other] < 0 and graph.capacity[e ^ 1] > 0.0:
                level[other] = level[node] + 1
                queue[tail] = other
                tail += 1
            e = graph.next[e]
    return bool(level[0] >= 0)


@jit
def _augment(graph: Graph) -> bool:
    """Send flow along one shortest path; False if there is none left. `queue` holds the arcs of the path."""
    level, at, path = graph.level, graph.at, graph.queue
    node = 0
    depth = 0
    while node != 1:
        e = at[node]
        while e >= 0 and not (graph.capacity[e] > 0.0 and level[graph.to[e]] == level[node] - 1):
            e = graph.next[e]
        at[node] = e
        if e >= 0:
            path[depth] = e
            depth += 1
            node = graph.to[e]
        elif depth == 0:
            return False
        else:
            depth -= 1
            node = graph.to[path[depth] ^ 1]
            at[node] = graph.next[at[node]]
    flow = np.inf
    for i in range(depth):
        flow = min(flow, graph.capacity[path[i]])
    for i in range(depth):
        graph.capacity[path[i]] -= flow
        graph.capacity[path[i] ^ 1] += flow
    return True
