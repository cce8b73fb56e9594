"""spread(d) = sum of d(a, b) over the pairs of labels in S.

In a hierarchy an edge with m of the n members below it lies on m (n - m) of the paths between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from udcp_dsl.expression.atoms.atom import DistanceAtom, Held, Increment, Sets
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import DenseMetric, Floats, Ints, Metric, TreeMetric
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.growth import PairSum
from udcp_dsl.expression.linear import Affine, Lowering, Push, total


class Spread(DistanceAtom):
    name = "spread"

    def value(self, S: frozenset[int]) -> float:
        return float(sum(self.metric.between(a, b) for a, b in combinations(sorted(S), 2)))

    def batch(self, sets: Sets) -> Floats:
        if isinstance(self.metric, TreeMetric):
            tree = self.metric.hierarchy
            before = np.zeros((len(sets.mask), self.K + 1))
            np.cumsum(sets.mask[:, tree.order], axis=1, out=before[:, 1:])
            below = before[:, tree.high] - before[:, tree.low]
            pairs: Floats = (below * (sets.size[:, None] - below)).sum(axis=1)
            return self.metric.edge * pairs
        assert isinstance(self.metric, DenseMetric)
        both_ways: Floats = ((sets.as_float @ self.metric.matrix) * sets.as_float).sum(axis=1)
        return 0.5 * both_ways

    def start(self, held: Held) -> Increment:
        return SpreadIncrement(held, self.metric)

    def growth(self) -> None:
        return None

    @property
    def interval(self) -> Interval:
        return Interval(0.0, float(self.batch(Sets(np.ones((1, self.K), dtype=bool)))[0]))

    def proves(self) -> Mapping[str, str]:
        return {
            "monotone": "a larger set has no fewer pairs",
            "supermodular": "a label adds its distance to every member, so more to a larger set",
        }

    def entries(self) -> PairSum:
        return PairSum(self.K**2, lambda: self.metric.row(np.arange(self.K)))

    def lower(self, model: Lowering, push: Push) -> Affine:
        """Half the sum over members a of T_a, the sum of d(a, b) over the members b: one row per label. (One row per
        pair is tighter but, as measured with 100 labels, slower.)"""
        d = self.metric
        most = [float(d.row(np.array([a]))[0].sum()) for a in range(self.K)]
        parts = []
        for a, far in enumerate(self._sums(model)):
            member = model.label(a)
            w = model.continuous(0.0, most[a])
            if Push.DOWN in push:
                model.at_most(far - (Affine(1.0, {}) - member) * most[a], w)
            if Push.UP in push:
                model.at_most(w, far)
                model.at_most(w, member * most[a])
            parts.append(w * 0.5)
        return total(parts)

    def _sums(self, model: Lowering) -> list[Affine]:
        """T_a for every label. In a hierarchy, it is computed along the tree to keep rows short: a step down to a node
        comes nearer to the members below it, and farther from the others."""
        if isinstance(self.metric, DenseMetric):
            return [model.labels(row) for row in self.metric.matrix]
        assert isinstance(self.metric, TreeMetric)
        tree, edge = self.metric.hierarchy, self.metric.edge
        nodes, most = len(tree.names), 2.0 * edge * tree.height * self.K
        below = [Affine(0.0, {})] * nodes
        for y, v in enumerate(tree.leaf):
            below[v] = model.label(y)
        for v in range(nodes - 1, -1, -1):
            below[v] = model.named(below[v], 0.0, float(tree.high[v] - tree.low[v]))
            if v:
                below[tree.parent[v]] = below[tree.parent[v]] + below[v]
        far = [model.named(model.labels(edge * self.metric.leaf_depth), 0.0, most)]
        for v in range(1, nodes):
            step = (below[0] - below[v] * 2.0) * edge
            far.append(model.named(far[tree.parent[v]] + step, 0.0, most))
        return [far[v] for v in tree.leaf]

    def grid(self) -> Grid | None:
        if isinstance(self.metric, TreeMetric):
            return Grid.multiples(self.metric.edge, self.K**2 * self.metric.hierarchy.height)
        assert isinstance(self.metric, DenseMetric)
        return Grid.sums(self.metric.matrix[np.triu_indices(self.K, 1)])


class SpreadIncrement(Increment):
    """`total` is the sum of the distances from each label to S."""

    def __init__(self, held: Held, metric: Metric) -> None:
        self.held = held
        self.metric = metric
        self.total = np.zeros(held.mask.shape)
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        return self.value[:, None] + np.where(self.held.mask, 0.0, self.total)

    def push(self, y: Ints) -> None:
        self.value = self.value + self.total[self.held.rows, y]
        self.total += self.metric.row(y)
