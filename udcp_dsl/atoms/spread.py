"""spread(d) = sum of d(a, b) over the pairs of labels in S.

In a hierarchy an edge with m of the n members below it lies on m (n - m) of the paths between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from udcp_dsl.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.domain import DenseMetric, Floats, Ints, Metric, TreeMetric
from udcp_dsl.facts import Interval


class Spread(Atom):
    name = "spread"
    signatures = (("distance",),)

    def __init__(self, K: int, metric: Metric) -> None:
        self.K = K
        self.metric = metric

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, *self.metric.key)

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

    @property
    def interval(self) -> Interval:
        return Interval(0.0, float(self.batch(Sets(np.ones((1, self.K), dtype=bool)))[0]))

    def proves(self) -> Mapping[str, str]:
        return {
            "monotone": "a larger set has no fewer pairs",
            "supermodular": "a label adds its distance to every member, so more to a larger set",
        }

    def probes(self) -> Sequence[int]:
        return self.metric.probes()


class SpreadIncrement(Increment):
    """`total` holds the sum of each label's distances to S."""

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
