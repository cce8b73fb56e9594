"""The regions of a hierarchy: the largest sets of labels of each diameter.

A set of diameter D in a tree lies in the ball of diameter D around its own middle: a node (D even) or the middle of an
edge (D odd). So only balls matter that have this diameter themselves: two of their leaves, on different sides of the
centre, are `radius` away from it. No two such balls hold the same labels. If all leaves have the same depth, the balls
are the subtrees. `TreeMetric.balls` lists them. A ball is stored as centre and radius; its labels are listed on demand.

Let below(u, r) be the weight of the labels below node u that are at most r edges away from it. The weight of a ball
around v is below(v, r) plus, for each ancestor, that of the ball's labels below the ancestor but not below its child on
the path to v (`weights_of`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_dsl.expression.domain import Balls, TreeMetric
from udcp_solvers.numeric.arrays import Floats, Ints, Records, records
from udcp_solvers.numeric.compiled import jit

NODE = np.dtype([("parent", "i8"), ("depth", "i8"), ("below", "i8"), ("near", "i8"), ("leaves", "i8")], align=True)
BALL = np.dtype([
    ("centre", "i8"), ("radius", "i8"), ("on_edge", "i8"),
    ("climb_count", "i8"), ("label_count", "i8"), ("diameter", "i8"), ("whole", "?"),
], align=True)  # fmt: skip


class Tree(NamedTuple):
    """The inner nodes of a hierarchy, children before parents, so the root is last; and its balls, smallest first.

    Node i has a `parent` (-1 for the root) and a `depth`; it and the nodes below it are `below` .. i; its nearest leaf
    is `near` edges away. Its own labels are `labels[nodes[i].leaves : nodes[i + 1].leaves]`, so the labels of a subtree
    are consecutive. Elsewhere, labels are known by their place in this order.

    If `on_edge` is 0, a ball reaches `radius` edges from node `centre`; if it is 1, from the nearer end of the edge
    above the centre. Labels that are not below the centre lie below one of its first `climb_count` ancestors. A ball is
    `whole` if it has all labels below the centre, and no others; it has `label_count` labels. `diameter` is in edges.
    Balls of a single label are not listed.
    """

    nodes: Records
    labels: Ints
    balls: Records


def tree_of(metric: TreeMetric) -> Tree:
    hierarchy = metric.hierarchy
    leaf, above = hierarchy.leaf, hierarchy.parent
    is_leaf = np.zeros(len(above), dtype=np.bool_)
    is_leaf[leaf] = True
    inner = np.flatnonzero(~is_leaf)[::-1]
    number = np.full(len(above), -1)
    number[inner] = np.arange(len(inner))
    home = number[above[leaf]]
    nodes = records(len(inner) + 1, NODE)
    nodes.parent[:-1] = np.where(above[inner] < 0, -1, number[above[inner]])
    nodes.depth[:-1] = hierarchy.depth[inner]
    nodes.leaves[1:] = np.cumsum(np.bincount(home, minlength=len(inner)))
    below = np.arange(len(inner))
    for v, u in enumerate(nodes.parent[:-2]):
        below[u] = min(below[u], below[v])
    nodes.below[:-1] = below
    tree = Tree(nodes, np.argsort(home, kind="stable"), _balls(number, metric.balls))
    within = _within_reach(tree, np.ones(len(leaf)))
    nodes.near[:-1] = (within > 0).argmax(axis=1)
    balls = tree.balls
    balls.label_count, balls.climb_count = _climb(tree, within)
    balls.whole = (balls.climb_count == 0) & (balls.label_count == within[balls.centre, -1])
    return tree


def _balls(number: Ints, listed: Balls) -> Records:
    """All balls of more than one label, by rising diameter."""
    centre, radius, on_edge, diameter = (
        x[listed.diameters > 0] for x in (number[listed.node], listed.reach, listed.on_edge, listed.diameters)
    )
    order = np.lexsort((-centre, diameter))
    balls = records(len(order), BALL)
    balls.centre, balls.radius = centre[order], radius[order]
    balls.on_edge, balls.diameter = on_edge[order], diameter[order]
    return balls


def weights_of(tree: Tree, weight: Floats) -> Floats:
    """The total weight of the labels of each ball."""
    return _climb(tree, _within_reach(tree, weight))[0]


def _within_reach(tree: Tree, weight: Floats) -> Floats:
    """below(u, r) for all nodes u and r = 0, 1, ..., given the weights of labels."""
    nodes = tree.nodes[:-1]
    reach = np.zeros((len(nodes), int(nodes.depth.max()) + 3))
    np.add.at(reach[:, 1], np.repeat(np.arange(len(nodes)), np.diff(tree.nodes.leaves)), weight[tree.labels])
    for v, u in enumerate(nodes.parent[:-1]):
        reach[u, 1:] += reach[v, :-1]
    return np.cumsum(reach, axis=1)


def _climb(tree: Tree, within: Floats) -> tuple[Floats, Ints]:
    """The weight of each ball, and how many ancestors to climb from its centre to reach all its labels."""
    nodes, balls = tree.nodes[:-1], tree.balls
    total, climb_count = within[balls.centre, balls.radius], np.zeros(len(balls), dtype=np.int64)
    v, left = balls.centre.copy(), balls.radius - 1 + balls.on_edge
    for step in range(int(nodes.depth.max())):
        climbing = (left > 0) & (v < len(nodes) - 1)
        child = v[climbing]
        v[climbing] = nodes.parent[child]
        more = within[v[climbing], left[climbing]] - within[child, left[climbing] - 1]
        total[climbing] += more
        climb_count[np.flatnonzero(climbing)[more > 0]] = step + 1
        left = left - 1
    return total, climb_count


@jit
def runs_of(b: int, tree: Tree, runs: Ints) -> int:
    """List the places of ball b as runs, from runs[j, 0] to runs[j, 1] - 1; returns the number of runs."""
    ball = tree.balls[b]
    v = ball.centre
    node = tree.nodes[v]
    if ball.whole:
        runs[0, 0], runs[0, 1] = tree.nodes[node.below].leaves, tree.nodes[v + 1].leaves
        return 1
    count = _append_within(v, node.below, node.depth + ball.radius, tree, runs, 0)
    left = ball.radius - 1 + ball.on_edge
    for step in range(ball.climb_count):
        count = _append_beside(v, left - step, tree, runs, count)
        v = tree.nodes[v].parent
    return count


@jit
def _append_beside(v: int, radius: int, tree: Tree, runs: Ints, count: int) -> int:
    """Append the labels below the parent of v, but not below v, that are at most `radius` edges from the parent."""
    above = tree.nodes[v].parent
    deepest = tree.nodes[above].depth + radius
    count = _append_within(above, v + 1, deepest, tree, runs, count)
    return _append_within(tree.nodes[v].below - 1, tree.nodes[above].below, deepest, tree, runs, count)


@jit
def _append_within(start: int, stop: int, deepest: int, tree: Tree, runs: Ints, count: int) -> int:
    """Append the labels of the nodes start, start - 1, ..., stop whose depth is at most `deepest`."""
    v = start
    while v >= stop:
        node = tree.nodes[v]
        if node.depth + node.near > deepest:
            v = node.below - 1
            continue
        low, high = node.leaves, tree.nodes[v + 1].leaves
        if count > 0 and runs[count - 1, 0] == high:
            runs[count - 1, 0] = low
        elif low < high:
            runs[count, 0], runs[count, 1] = low, high
            count += 1
        v -= 1
    return count
