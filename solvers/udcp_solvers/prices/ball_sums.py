"""Masses and values of all balls of a hierarchy at once, from sums over the labels below each node, down to each depth.

Let below(u, r) be the labels below node u that are at most r edges away from it. A ball around v consists of below(v,
r) and, for each ancestor, of its labels below the ancestor but not below the child on the path to v. So the sums over
below(u, r), which are sums over children, give the sums over all balls. The value of a set of labels at price mu is the
least of (cost + mu * mass left out) over its subsets. With a weight w on every node (the categories of the laminar part
are nodes of the hierarchy),

    value(u, r) = min(mu * mass(u, r), w(u) + sum of value(child, r - 1)).
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Ints, Records, records
from udcp_solvers.numeric.compiled import jit_any_order
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.double_double import Double, minus, two_sum
from udcp_solvers.prices.regions import Tree

# Relative tolerances: closer than this, it is uncertain whether a category or a label pays.
NEAR_CATEGORY = 1e-12
NEAR_LABEL = 1e-15

CORE = np.dtype([("pair", "i8"), ("step", "i8"), ("above", "f8")], align=True)
STEP = np.dtype([("more", "i8"), ("less", "i8"), ("weight", "f8")], align=True)
SUM = np.dtype([
    ("mass", "f8"), ("mass_low", "f8"),
    ("value", "f8"), ("pays", "i8"),
    ("children", "f8"), ("paying", "i8"),
], align=True)  # fmt: skip


class Pairs(NamedTuple):
    """The pairs (u, r): those of node i are first[i]:first[i + 1]; `inner[starts[s]:starts[s + 1]]` are the pairs
    (child, r - 1) of pair s.

    `weight` is that of each node's category; `costs`, by place, includes the weight of a label's own category. Ball b
    starts as pair `cores[b].pair` and goes up its steps, from `step` on: each adds pair `more` without pair `less` (-1
    for none), in a category of this `weight`. `above` is the weight of the categories around all of this.
    """

    first: Ints
    starts: Ints
    inner: Ints
    costs: Floats
    weight: Floats
    cores: Records
    steps: Records


def pairs_of(tree: Tree, costs: Floats, weight: Floats) -> Pairs:
    """The pairs of a tree, for label costs by place and the weights of the categories that are nodes."""
    nodes = tree.nodes[:-1]
    parent, near = nodes.parent.tolist(), nodes.near.tolist()
    far = [1 if high > low else 0 for low, high in zip(nodes.leaves, tree.nodes.leaves[1:], strict=True)]
    children: list[list[int]] = [[] for _ in parent]
    for v, u in enumerate(parent[:-1]):
        far[u] = max(far[u], far[v] + 1)
        children[u].append(v)
    above = np.zeros(len(parent))
    for v in range(len(parent) - 2, -1, -1):
        above[v] = above[parent[v]] + weight[parent[v]]
    first = list(accumulate((b - a + 1 for a, b in zip(near, far, strict=True)), initial=0))

    def pair(u: int, r: int) -> int:
        return first[u] + min(r, far[u]) - near[u] if r >= near[u] else -1

    below = [
        [s for child in children[u] if (s := pair(child, r - 1)) >= 0]
        for u in range(len(parent))
        for r in range(near[u], far[u] + 1)
    ]
    cores = records(len(tree.balls), CORE)
    steps: list[tuple[int, int, float]] = []
    for core, ball in zip(cores, tree.balls, strict=True):
        v, left = int(ball.centre), int(ball.radius) - 1 + int(ball.on_edge)
        core.pair, core.step = pair(v, int(ball.radius)), len(steps)
        for step in range(ball.climb_count):
            steps.append((pair(parent[v], left - step), pair(v, left - step - 1), weight[parent[v]]))
            v = parent[v]
        core.above = above[v]
    taken = records(len(steps), STEP)
    taken[:] = steps
    return Pairs(
        first=np.array(first),
        starts=np.array(list(accumulate(map(len, below), initial=0))),
        inner=np.array([s for part in below for s in part], dtype=np.int64),
        costs=costs,
        weight=weight,
        cores=cores,
        steps=taken,
    )


@jit
def load_masses(p: Floats, tree: Tree, pairs: Pairs, sums: Records) -> None:
    """Compute the masses of all pairs, for p by place. The last pair is the whole tree."""
    first, starts, inner = pairs.first, pairs.starts, pairs.inner
    for i in range(len(first) - 1):
        own, own_low = 0.0, 0.0
        for mass in p[tree.nodes[i].leaves : tree.nodes[i + 1].leaves]:
            own, error = two_sum(own, mass)
            own_low += error
        for s in range(first[i], first[i + 1]):
            high, low = own, own_low
            for j in range(starts[s], starts[s + 1]):
                part = sums[inner[j]]
                high, error = two_sum(high, part.mass)
                low += error + part.mass_low
            sums[s].mass, sums[s].mass_low = two_sum(high, low)


@jit
def mass_outside(b: int, tree: Tree, pairs: Pairs, sums: Records) -> Double:
    """The mass outside ball b, to 106 bits of the row's mass."""
    all_of, core = sums[-1], pairs.cores[b]
    inside = sums[core.pair]
    high, low = minus(all_of.mass, all_of.mass_low, inside.mass, inside.mass_low)
    for j in range(core.step, core.step + tree.balls[b].climb_count):
        step = pairs.steps[j]
        if step.more >= 0:
            more = sums[step.more]
            high, low = minus(high, low, more.mass, more.mass_low)
        if step.less >= 0:
            less = sums[step.less]
            high, low = minus(high, low, -less.mass, -less.mass_low)
    return high, low


@jit_any_order
def _best_of(mu: float, p: Floats, costs: Floats) -> tuple[float, int]:
    """The value of labels that share no category, and how many of them may pay."""
    value, paying = 0.0, 0
    for i in range(len(p)):
        left = mu * p[i]
        value += min(costs[i], left)
        paying += costs[i] <= left * (1.0 + NEAR_LABEL)
    return value, paying


@jit
def load_values(mu: float, gains: float, p: Floats, tree: Tree, pairs: Pairs, sums: Records) -> None:
    """Compute the values of all pairs at a finite price mu; `gains` is minus the sum of the negative costs."""
    first, starts, inner, costs = pairs.first, pairs.starts, pairs.inner, pairs.costs
    for i in range(len(first) - 1):
        low, high = tree.nodes[i].leaves, tree.nodes[i + 1].leaves
        own, own_paying = _best_of(mu, p[low:high], costs[low:high])
        for s in range(first[i], first[i + 1]):
            inside, many = own, own_paying
            for j in range(starts[s], starts[s + 1]):
                part = sums[inner[j]]
                inside += part.value
                many += part.pays
            total = sums[s]
            total.children, total.paying = inside, many
            total.value, total.pays = _entered(mu * total.mass, pairs.weight[i], inside, many, gains)


@jit
def _entered(skip: float, weight: float, inside: float, paying: int, gains: float) -> tuple[float, int]:
    """The value of a category, given the value of what is inside it; and whether something in it may pay."""
    enter = weight + inside
    near = NEAR_CATEGORY * (weight + skip + gains)
    return min(skip, enter), 1 if paying > 0 and enter <= skip + near else 0


@jit
def value_of(b: int, mu: float, gains: float, tree: Tree, pairs: Pairs, sums: Records) -> tuple[float, bool]:
    """The value of ball b without its diameter, at the price of `load_values`; and whether something in it may pay."""
    core = pairs.cores[b]
    part = sums[core.pair]
    mass, value, many = part.mass, part.value, part.pays
    for j in range(core.step, core.step + tree.balls[b].climb_count):
        step = pairs.steps[j]
        if step.more >= 0:
            more = sums[step.more]
            mass += more.mass
            value += more.children
            many += more.paying
        if step.less >= 0:
            less = sums[step.less]
            mass -= less.mass
            value -= less.value
            many -= less.pays
        value, many = _entered(mu * mass, step.weight, value, many, gains)
    value, many = _entered(mu * mass, core.above, value, many, gains)
    return value, many > 0
