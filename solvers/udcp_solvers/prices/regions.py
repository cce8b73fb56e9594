"""The regions of a hierarchy: the largest sets of labels of each diameter.

A set of diameter D in a tree lies in the ball of diameter D around its own middle: a node (D even) or the middle of an
edge (D odd). So only balls matter that are as wide as they may be: two of their leaves, on different sides of the
centre, are as far from it as the ball reaches. No two of these hold the same labels. With all leaves at one depth they
are the subtrees. Balls are held as centre and radius, and their labels are listed when they are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_dsl.expression.domain import Hierarchy
from udcp_solvers.numeric.arrays import Ints, Records, records
from udcp_solvers.numeric.compiled import jit

NODE = np.dtype([("parent", "i8"), ("depth", "i8"), ("below", "i8"), ("near", "i8"), ("leaves", "i8")], align=True)
BALL = np.dtype([
    ("centre", "i8"), ("radius", "i8"), ("middle", "i8"),
    ("climbs", "i8"), ("many", "i8"), ("diameter", "i8"), ("whole", "?"),
], align=True)  # fmt: skip


class Tree(NamedTuple):
    """The inner nodes of a hierarchy, children before parents, so the root is last; and its balls, smallest first.

    Node i: `parent` (-1 for the root's), `depth`; the nodes below it start at node `below`; the nearest leaf is `near`
    away. Its own labels are `labels[nodes[i].leaves : nodes[i + 1].leaves]`; so all those below it are neighbours.
    Elsewhere labels are known by their place in this order.

    A ball reaches `radius` from node `centre`, if `middle` is 0; if it is 1, from the nearer end of the edge above the
    centre. Labels that are not below the centre lie below one of its first `climbs` ancestors. If there are none, and
    all below the centre are in, it is `whole`. `diameter` is in edges, `many` its labels. Single labels are not listed.
    """

    nodes: Records
    labels: Ints
    balls: Records


def tree_of(hierarchy: Hierarchy) -> Tree:
    leaf, above = hierarchy.leaf, hierarchy.parent
    is_leaf = np.zeros(len(above), dtype=np.bool_)
    is_leaf[leaf] = True
    inner = np.flatnonzero(~is_leaf)[::-1]
    number = np.full(len(above), -1)
    number[inner] = np.arange(len(inner))
    home = number[above[leaf]]
    # at[v, r]: how many labels below node v are just r away from it.
    at = np.zeros((len(inner), hierarchy.height + 2), dtype=np.int64)
    np.add.at(at[:, 1], home, 1)
    nodes = records(len(inner) + 1, NODE)
    nodes.parent[:-1] = np.where(above[inner] < 0, -1, number[above[inner]])
    nodes.depth[:-1] = hierarchy.depth[inner]
    nodes.leaves[1:] = np.cumsum(at[:, 1])
    below = np.arange(len(inner))
    for v, u in enumerate(nodes.parent[:-2]):
        below[u] = min(below[u], below[v])
        at[u, 1:] += at[v, :-1]
    nodes.below[:-1] = below
    nodes.near[:-1] = (at > 0).argmax(axis=1)
    return Tree(nodes, np.argsort(home, kind="stable"), _balls(nodes[:-1], at))


def _balls(nodes: Records, at: Ints) -> Records:
    """All balls of more than one label that are as wide as they may be, by rising diameter.

    The same as those of `udcp_dsl.expression.atoms.balls` (a test holds them equal). Listed here by numpy, a few times
    as quick on 10,000 labels; there in an order that programs, and with it the sets that solvers find, depend on.
    `sides[v, r]`: below how many of its children, or as how many of its own, there are labels just r away from v;
    `beyond[v, r]`: how many that are not below v.
    """
    own = np.diff(nodes.leaves, append=at[-1].sum())
    sides, beyond = np.zeros_like(at), np.zeros_like(at)
    sides[:, 1] = own
    for v, u in enumerate(nodes.parent[:-1]):
        sides[u, 1:] += at[v, :-1] > 0
    for v in range(len(nodes) - 2, -1, -1):
        u = nodes.parent[v]
        beyond[v, 1:] = beyond[u, :-1] + at[u, :-1]
        beyond[v, 2:] -= at[v, :-2]
    around, across = np.nonzero(sides + (beyond > 0) >= 2), np.nonzero((at[:, :-1] > 0) & (beyond[:, 1:] > 0))
    centre, radius = (np.concatenate(pair) for pair in zip(around, across, strict=True))
    middle = np.repeat(np.array([0, 1]), [len(around[0]), len(across[0])])
    order = np.lexsort((-centre, 2 * radius + middle))
    balls = records(len(order), BALL)
    balls.centre, balls.radius, balls.middle = centre[order], radius[order], middle[order]
    balls.diameter = 2 * balls.radius + balls.middle
    within = np.cumsum(at, axis=1)
    balls.many = within[balls.centre, balls.radius]
    v, left = balls.centre.copy(), balls.radius - 1 + balls.middle
    for step in range(int(nodes.depth.max())):
        climbing = (left > 0) & (v < len(nodes) - 1)
        child = v[climbing]
        v[climbing] = nodes.parent[child]
        more = within[v[climbing], left[climbing]] - within[child, left[climbing] - 1]
        balls.many[climbing] += more
        balls.climbs[np.flatnonzero(climbing)[more > 0]] = step + 1
        left = left - 1
    balls.whole = (balls.climbs == 0) & (balls.many == within[balls.centre, -1])
    return balls


@jit
def runs_of(b: int, tree: Tree, runs: Ints) -> int:
    """List the places of ball b as runs, from runs[:, 0] to before runs[:, 1]; how many there are."""
    ball = tree.balls[b]
    v = ball.centre
    node = tree.nodes[v]
    if ball.whole:
        runs[0, 0], runs[0, 1] = tree.nodes[node.below].leaves, tree.nodes[v + 1].leaves
        return 1
    many = _within(v, node.below, node.depth + ball.radius, tree, runs, 0)
    left = ball.radius - 1 + ball.middle
    for step in range(ball.climbs):
        many = _beside(v, left - step, tree, runs, many)
        v = tree.nodes[v].parent
    return many


@jit
def _beside(v: int, radius: int, tree: Tree, runs: Ints, many: int) -> int:
    """Append the labels below the parent of v, but not below v, that are at most so far from the parent."""
    above = tree.nodes[v].parent
    deepest = tree.nodes[above].depth + radius
    many = _within(above, v + 1, deepest, tree, runs, many)
    return _within(tree.nodes[v].below - 1, tree.nodes[above].below, deepest, tree, runs, many)


@jit
def _within(start: int, stop: int, deepest: int, tree: Tree, runs: Ints, many: int) -> int:
    """Append the labels of the nodes start, start - 1 .. stop down to a depth."""
    v = start
    while v >= stop:
        node = tree.nodes[v]
        if node.depth + node.near > deepest:
            v = node.below - 1
            continue
        low, high = node.leaves, tree.nodes[v + 1].leaves
        if many > 0 and runs[many - 1, 0] == high:
            runs[many - 1, 0] = low
        elif low < high:
            runs[many, 0], runs[many, 1] = low, high
            many += 1
        v -= 1
    return many
