"""diameter(d) = the largest d(a, b) over pairs of labels in S; 0 for fewer than two.

A set grown by y has the larger of the diameter so far and the distance from y to its farthest member. In a hierarchy
two sweeps find the diameter of a set: the member farthest from any one is an end of a longest path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from udcp_dsl.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.domain import Floats, Ints, Metric, TreeMetric
from udcp_dsl.facts import Interval
from udcp_dsl.forms import Additive


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
