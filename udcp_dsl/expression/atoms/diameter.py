"""diameter(d) = the largest d(a, b) over pairs of labels in S, or of categories that S touches; 0 for fewer than two.

After adding y, it is the larger of the diameter so far and the distance from y to its farthest member. In a hierarchy,
two sweeps find the diameter of a set: the member farthest from any member is an end of a longest path. With a distance
between categories, a single label in two of them has a diameter already: d(y, y) is the distance between the two.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udcp_dsl.expression.atoms.atom import DistanceAtom, Held, Increment, Sets
from udcp_dsl.expression.atoms.balls import least_ball
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import CategoryMetric, DenseMetric, Floats, Ints, Metric, TreeMetric
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Farthest, FarthestPair, MinMaxTable
from udcp_dsl.expression.linear import Affine, Lowering, Push, total


class Diameter(DistanceAtom):
    name = "diameter"
    signatures = (("any distance",),)

    def value(self, S: frozenset[int]) -> float:
        if isinstance(self.metric, CategoryMetric):
            family, d = self.metric.family, self.metric.matrix
            touched = [g for g in range(len(family)) if not S.isdisjoint(family.category(g).members.tolist())]
            return max((float(d[g, h]) for g in touched for h in touched), default=0.0)
        return max((self.metric.between(a, b) for a in S for b in S), default=0.0)

    def batch(self, sets: Sets) -> Floats:
        if isinstance(self.metric, TreeMetric):
            return self.metric.diameter_of(sets.mask)
        if isinstance(self.metric, CategoryMetric):
            touched, largest = self.metric.touched(sets.mask), np.zeros(len(sets.mask))
            for g, row in enumerate(self.metric.matrix):
                far = np.where(touched, row, 0.0).max(axis=1)
                largest = np.maximum(largest, np.where(touched[:, g], far, 0.0))
            return largest
        return np.asarray(np.where(sets.mask, farthest(self.metric, sets), 0.0).max(axis=1))

    def start(self, held: Held) -> Increment:
        return DiameterIncrement(held, self.metric)

    def growth(self) -> Farthest:
        return Farthest(self.metric)

    @property
    def interval(self) -> Interval:
        return Interval(0.0, self.metric.largest)

    def proves(self) -> Mapping[str, str]:
        if isinstance(self.metric, CategoryMetric):
            return {"monotone": "a larger set touches no fewer categories"}
        return {"monotone": "a larger set has no fewer pairs"}

    def lacks(self) -> Mapping[str, str]:
        if isinstance(self.metric, CategoryMetric):
            return {"submodular": "a category adds nothing to the empty set, but its distance to others touched"}
        return {"submodular": "a label adds nothing to the empty set, but its distance to a larger one"}

    def additive(self) -> Additive | None:
        if isinstance(self.metric, TreeMetric):
            part = {id(self.metric.hierarchy): (self.metric.edge, self.metric)}
            return Additive(0.0, np.zeros(self.K), diameters=part)
        return None

    def entries(self) -> MinMaxTable | FarthestPair:
        """In a hierarchy, every member is within half the diameter of the middle of a longest path."""
        metric, K = self.metric, self.K
        if isinstance(metric, TreeMetric):
            return MinMaxTable(metric.middles * K, lambda: 2.0 * metric.edge * metric.from_middles())
        return FarthestPair(K * K, lambda: metric.row(np.arange(K)))

    def lower(self, model: Lowering, push: Push) -> Affine:
        """In a hierarchy, by the balls that contain the set. Else the lower bound is t >= d(a, b) (x_a + x_b - 1) for
        each pair of labels (or of categories, where x says which are touched), and the upper bound the distance of
        two of them that binaries pick, one row each."""
        if isinstance(self.metric, TreeMetric):
            balls = self.metric.balls
            return least_ball(balls, model, self.metric.edge * balls.diameters, push)
        if isinstance(self.metric, CategoryMetric):
            family = self.metric.family
            x = [model.any_of(family.category(g).members, push) for g in range(len(family))]
        else:
            assert isinstance(self.metric, DenseMetric)
            x = [model.label(y) for y in range(self.K)]
        d = self.metric.matrix
        t = model.continuous(0.0, self.metric.largest)
        if Push.DOWN in push:
            for a, b in zip(*np.nonzero(np.triu(d)), strict=True):
                model.at_most((x[a] + x[b] - 1.0) * float(d[a, b]), t)
        if Push.UP in push:
            one, other = ([model.binary() for _ in x] for _ in range(2))
            model.equal(total(one), total(other))
            model.at_most(total(one), 1.0)
            model.at_most(t, total(one) * self.metric.largest)
            for a, there in enumerate(x):
                model.at_most(one[a], there)
                model.at_most(other[a], there)
                far = total(other[b] * float(d[a, b]) for b in np.flatnonzero(d[a]))
                model.at_most(t, far + (Affine(1.0, {}) - one[a]) * self.metric.largest)
        return t

    def grid(self) -> Grid | None:
        if isinstance(self.metric, TreeMetric):
            return Grid.multiples(self.metric.edge, 2 * self.metric.hierarchy.height)
        assert isinstance(self.metric, DenseMetric | CategoryMetric)
        return Grid.of(self.metric.matrix.ravel())


def farthest(metric: Metric, sets: Sets) -> Floats:
    """The distance of every label to its farthest member of each set, (n, K); 0 for the empty set."""
    far = np.zeros(sets.mask.shape)
    for s in np.flatnonzero(sets.mask.any(axis=0)):
        rows = np.flatnonzero(sets.mask[:, s])
        far[rows] = np.maximum(far[rows], metric.row(np.array([s])))
    return far


class DiameterIncrement(Increment):
    """`far` is the largest distance from each label to S or itself."""

    def __init__(self, held: Held, metric: Metric) -> None:
        self.held = held
        self.metric = metric
        self.far = np.tile(metric.own, (len(held.rows), 1))
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        return np.maximum(self.value[:, None], self.far)

    def push(self, y: Ints) -> None:
        self.value = np.maximum(self.value, self.far[self.held.rows, y])
        np.maximum(self.far, self.metric.row(y), out=self.far)
