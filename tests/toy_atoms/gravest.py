"""gravest(c) = the largest |c(y)| in S, 0 on the empty set. It is max(c) with the signs left out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.expression.atoms.max import ExtremeIncrement, nested
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Costs, Floats
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Larger
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Gravest(Atom):
    name = "gravest"
    signatures = (("costs",),)

    def __init__(self, K: int, costs: Costs) -> None:
        self.K = K
        self.weights: Floats = np.abs(costs.values)

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, self.weights.tobytes())

    def value(self, S: frozenset[int]) -> float:
        return float(max((self.weights[y] for y in S), default=0.0))

    def batch(self, sets: Sets) -> Floats:
        return np.asarray(np.where(sets.mask, self.weights, 0.0).max(axis=1))

    def start(self, held: Held) -> Increment:
        return ExtremeIncrement(held, self.weights, np.maximum)

    def growth(self) -> Larger:
        return Larger(self.weights)

    @property
    def interval(self) -> Interval:
        return Interval(0.0, float(self.weights.max()))

    def proves(self) -> Mapping[str, str]:
        return {"monotone": "a larger set has no lighter gravest", "submodular": "it is a sum of nested categories"}

    def additive(self) -> Additive | None:
        return nested(self.weights)

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.largest(self.weights, push)

    def grid(self) -> Grid:
        return Grid.of(np.append(self.weights, 0.0))
