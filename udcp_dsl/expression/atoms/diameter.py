"""diameter(d) = the largest d(a, b) over pairs of labels in S; 0 for fewer than two.

A set grown by y has the larger of the diameter so far and the distance from y to its farthest member. In a hierarchy
two sweeps find the diameter of a set: the member farthest from any one is an end of a longest path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.expression.atoms.balls import Balls
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import DenseMetric, Floats, Ints, Metric, TreeMetric
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Farthest
from udcp_dsl.expression.linear import Affine, Lowering, Push, total


class Diameter(Atom):
    name = "diameter"
    signatures = (("distance",),)

    def __init__(self, K: int, metric: Metric) -> None:
        self.K = K
        self.metric = metric

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, *self.metric.key)

    def value(self, S: frozenset[int]) -> float:
        return max((self.metric.between(a, b) for a in S for b in S), default=0.0)

    def batch(self, sets: Sets) -> Floats:
        if isinstance(self.metric, TreeMetric):
            return self.metric.diameter_of(sets.mask)
        return np.asarray(np.where(sets.mask, farthest(self.metric, sets), 0.0).max(axis=1))

    def start(self, held: Held) -> Increment:
        return DiameterIncrement(held, self.metric)

    def growth(self) -> Farthest:
        return Farthest(self.metric)

    @property
    def interval(self) -> Interval:
        return Interval(0.0, self.metric.largest)

    def proves(self) -> Mapping[str, str]:
        return {"monotone": "a larger set has no fewer pairs"}

    def lacks(self) -> Mapping[str, str]:
        return {"submodular": "a label adds nothing to the empty set, but its distance to a larger one"}

    def additive(self) -> Additive | None:
        if isinstance(self.metric, TreeMetric):
            part = {id(self.metric.hierarchy): (self.metric.edge, self.metric)}
            return Additive(0.0, np.zeros(self.K), diameters=part)
        return None

    def probes(self) -> Sequence[int]:
        return self.metric.probes()

    def lower(self, model: Lowering, push: Push) -> Affine:
        """In a hierarchy by the balls that hold the set; else from below by t >= d(a, b) (x_a + x_b - 1) for each pair,
        and from above by the distance of two members that binaries pick, one row a label."""
        if isinstance(self.metric, TreeMetric):
            balls = Balls.of(self.metric)
            return balls.least(model, self.metric.edge * balls.diameters, push)
        assert isinstance(self.metric, DenseMetric)
        d, K = self.metric.matrix, self.K
        t = model.continuous(0.0, self.metric.largest)
        if Push.DOWN in push:
            for a, b in zip(*np.nonzero(np.triu(d)), strict=True):
                model.at_most((model.label(a) + model.label(b) - 1.0) * float(d[a, b]), t)
        if Push.UP in push:
            one, other = ([model.binary() for _ in range(K)] for _ in range(2))
            model.equal(total(one), total(other))
            model.at_most(total(one), 1.0)
            model.at_most(t, total(one) * self.metric.largest)
            for a in range(K):
                model.at_most(one[a], model.label(a))
                model.at_most(other[a], model.label(a))
                far = total(other[b] * float(d[a, b]) for b in np.flatnonzero(d[a]))
                model.at_most(t, far + (Affine(1.0, {}) - one[a]) * self.metric.largest)
        return t

    def grid(self) -> Grid | None:
        if isinstance(self.metric, TreeMetric):
            return Grid.multiples(self.metric.edge, 2 * self.metric.hierarchy.height)
        assert isinstance(self.metric, DenseMetric)
        return Grid.of(self.metric.matrix.ravel())


def farthest(metric: Metric, sets: Sets) -> Floats:
    """The distance of every label to its farthest member of each set, (n, K); 0 for the empty set."""
    far = np.zeros(sets.mask.shape)
    for s in np.flatnonzero(sets.mask.any(axis=0)):
        rows = np.flatnonzero(sets.mask[:, s])
        far[rows] = np.maximum(far[rows], metric.row(np.array([s])))
    return far


class DiameterIncrement(Increment):
    """`far` holds each label's farthest distance to S."""

    def __init__(self, held: Held, metric: Metric) -> None:
        self.held = held
        self.metric = metric
        self.far = np.zeros(held.mask.shape)
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        return np.maximum(self.value[:, None], self.far)

    def push(self, y: Ints) -> None:
        self.value = np.maximum(self.value, self.far[self.held.rows, y])
        np.maximum(self.far, self.metric.row(y), out=self.far)
