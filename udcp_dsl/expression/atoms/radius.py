"""radius(d) = the smallest r such that some label (of all K) is within r of every member of S; 0 if S is empty.

In a hierarchy, let a and b be the ends of a longest path of D edges between members, and m its middle. The member
farthest from a leaf y is D / 2 + d(m, y) away, so the radius is D / 2 plus the distance from m to the nearest leaf.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udcp_dsl.expression.atoms.atom import DistanceAtom, Held, Increment, Sets
from udcp_dsl.expression.atoms.balls import least_ball
from udcp_dsl.expression.atoms.diameter import farthest
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import DenseMetric, Floats, Ints, TreeMetric
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.growth import MinMaxTable
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Radius(DistanceAtom):
    name = "radius"

    def value(self, S: frozenset[int]) -> float:
        return min(max((self.metric.between(centre, y) for y in S), default=0.0) for centre in range(self.K))

    def batch(self, sets: Sets) -> Floats:
        if isinstance(self.metric, TreeMetric):
            return self.metric.radius_of(*self.metric.endpoints(sets.mask))
        return np.asarray(farthest(self.metric, sets).min(axis=1))

    def start(self, held: Held) -> Increment:
        if isinstance(self.metric, TreeMetric):
            return TreeRadiusIncrement(held, self.metric)
        assert isinstance(self.metric, DenseMetric)
        return DenseRadiusIncrement(held, self.metric)

    def growth(self) -> None:
        return None

    @property
    def interval(self) -> Interval:
        return Interval(0.0, float(self.batch(Sets(np.ones((1, self.K), dtype=bool)))[0]))

    def proves(self) -> Mapping[str, str]:
        return {"monotone": "what reaches a larger set reaches the smaller"}

    def entries(self) -> MinMaxTable:
        return MinMaxTable(self.K**2, lambda: self.metric.row(np.arange(self.K)))

    def lower(self, model: Lowering, push: Push) -> Affine:
        """In a hierarchy, by the balls that contain the set; else the centre is an action, the distance its loss."""
        if isinstance(self.metric, TreeMetric):
            balls = self.metric.balls
            return least_ball(balls, model, self.metric.edge * balls.radii, push)
        assert isinstance(self.metric, DenseMetric)
        return model.best_of_worst(self.metric.matrix, push)

    def grid(self) -> Grid | None:
        if isinstance(self.metric, TreeMetric):
            return Grid.multiples(self.metric.edge, 2 * self.metric.hierarchy.height)
        assert isinstance(self.metric, DenseMetric)
        return Grid.of(self.metric.matrix.ravel())


class DenseRadiusIncrement(Increment):
    """`reach` is the radius that each centre needs; O(K^2) per step, as every label may become the centre."""

    def __init__(self, held: Held, metric: DenseMetric) -> None:
        self.metric = metric
        self.reach = np.zeros(held.mask.shape)
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        grown = np.empty_like(self.reach)
        for y, row in enumerate(self.metric.matrix):
            grown[:, y] = np.maximum(self.reach, row).min(axis=1)
        return grown

    def push(self, y: Ints) -> None:
        np.maximum(self.reach, self.metric.row(y), out=self.reach)
        self.value = self.reach.min(axis=1)


class TreeRadiusIncrement(Increment):
    """Holds the ends of a longest path within each set, and every label's distance to them."""

    def __init__(self, held: Held, metric: TreeMetric) -> None:
        self.held = held
        self.metric = metric
        n, K = held.mask.shape
        self.ends = np.zeros((2, n), dtype=np.int64)
        self.away = np.zeros((2, n, K), dtype=np.int64)
        self.long = np.zeros(n, dtype=np.int64)
        self.value = np.zeros(n)

    def after(self) -> Floats:
        n, K = self.held.mask.shape
        if self.held.size == 0:
            return np.zeros((n, K))
        near = self.away.argmin(axis=0)
        grows = self.away.max(axis=0) > self.long[:, None]
        long = np.maximum(self.away.max(axis=0), self.long[:, None])
        kept = np.where(near == 0, self.ends[1][:, None], self.ends[0][:, None])
        a = np.where(grows, kept, self.ends[0][:, None])
        b = np.where(grows, np.arange(K), self.ends[1][:, None])
        return self.metric.radius_of(a, b, long)

    def push(self, y: Ints) -> None:
        rows = self.held.rows
        row = self.metric.edges(y)
        if self.held.size == 0:
            self.ends[:] = y
            self.away[:] = row
        else:
            to_y = self.away[:, rows, y]
            grows = to_y.max(axis=0) > self.long
            replaced = np.where(to_y[0] <= to_y[1], 0, 1)
            for end in (0, 1):
                turn = grows & (replaced == end)
                self.ends[end, turn] = y[turn]
                self.away[end, turn] = row[turn]
            self.long = np.maximum(self.long, to_y.max(axis=0))
        self.value = self.metric.radius_of(self.ends[0], self.ends[1], self.long)
