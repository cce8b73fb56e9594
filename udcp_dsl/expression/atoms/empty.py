"""empty = 1 if S has no label, else 0. It is 1 - any(all labels)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.expression.domain import Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import Touches
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Empty(Atom):
    name = "empty"
    signatures = ((),)
    always_linear = True
    indicator = True

    def __init__(self, K: int) -> None:
        self.K = K

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name,)

    def value(self, S: frozenset[int]) -> float:
        return float(not S)

    def batch(self, sets: Sets) -> Floats:
        return np.asarray(sets.size == 0, dtype=np.float64)

    def start(self, held: Held) -> Increment:
        return EmptyIncrement(held)

    def growth(self) -> Touches:
        return Touches(1.0, np.array([0, self.K]), np.arange(self.K), -np.ones(1))

    @property
    def interval(self) -> Interval:
        return Interval(0.0, 1.0)

    def proves(self) -> Mapping[str, str]:
        return {
            "antitone": "a larger set is not empty",
            "supermodular": "it is 1 minus whether the set has any label",
            "cardinality": "it is size == 0",
        }

    def additive(self) -> Additive:
        labels = Additive.of_categories([Weighted(-1.0, np.arange(self.K), "all labels")], self.K)
        return labels.plus(Additive.of_constant(1.0, self.K))

    def lower(self, model: Lowering, push: Push) -> Affine:
        return Affine(1.0, {}) - model.any_of(np.arange(self.K), push.reversed)


class EmptyIncrement(Increment):
    def __init__(self, held: Held) -> None:
        self.shape = held.mask.shape
        self.value = np.ones(len(held.rows))

    def after(self) -> Floats:
        return np.zeros(self.shape)

    def push(self, y: Ints) -> None:
        self.value = np.zeros(len(y))
