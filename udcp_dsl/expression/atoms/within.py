"""within(C) = 1 if S lies inside C, else 0; 1 on the empty set. It is 1 - any(labels outside C)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udcp_dsl.expression.atoms.atom import CategoryAtom, Held, Increment, Sets
from udcp_dsl.expression.domain import Bools, Category, Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import Touches
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Within(CategoryAtom):
    name = "within"

    def __init__(self, K: int, category: Category) -> None:
        super().__init__(K, category)
        self.outside: Ints = np.flatnonzero(~category.mask)

    def value(self, S: frozenset[int]) -> float:
        return float(S.issubset(self.category.members.tolist()))

    def batch(self, sets: Sets) -> Floats:
        return np.asarray(~sets.mask[:, self.outside].any(axis=1), dtype=np.float64)

    def start(self, held: Held) -> Increment:
        return WithinIncrement(held, self.category.mask)

    def growth(self) -> Touches:
        return Touches(1.0, np.array([0, len(self.outside)]), self.outside, -np.ones(1))

    @property
    def interval(self) -> Interval:
        return Interval(0.0 if len(self.outside) else 1.0, 1.0)

    def proves(self) -> Mapping[str, str]:
        return {
            "antitone": "a larger set may leave the category",
            "supermodular": "it is 1 minus whether the set touches a label outside",
        }

    def additive(self) -> Additive:
        outside = Additive.of_categories([Weighted(-1.0, self.outside, f"outside {self.category.name}")], self.K)
        return outside.plus(Additive.of_constant(1.0, self.K))

    def lower(self, model: Lowering, push: Push) -> Affine:
        return Affine(1.0, {}) - model.any_of(self.outside, push.reversed)


class WithinIncrement(Increment):
    def __init__(self, held: Held, mask: Bools) -> None:
        self.mask = mask
        self.value = np.ones(len(held.rows))

    def after(self) -> Floats:
        return self.value[:, None] * self.mask

    def push(self, y: Ints) -> None:
        self.value = self.value * self.mask[y]
