"""any(C) = 1 if S touches C, else 0."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udcp_dsl.expression.atoms.atom import CategoryAtom, Held, Increment, Sets
from udcp_dsl.expression.domain import Bools, Floats, Ints
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import Touches
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Any(CategoryAtom):
    name = "any"

    def value(self, S: frozenset[int]) -> float:
        return float(not S.isdisjoint(self.category.members.tolist()))

    def batch(self, sets: Sets) -> Floats:
        return np.asarray(sets.mask[:, self.category.members].any(axis=1), dtype=np.float64)

    def start(self, held: Held) -> Increment:
        return AnyIncrement(held, self.category.mask)

    def growth(self) -> Touches:
        members = self.category.members
        return Touches(0.0, np.array([0, len(members)]), members, np.ones(1))

    def proves(self) -> Mapping[str, str]:
        facts = {
            "monotone": "once a set touches the category, larger sets do",
            "submodular": "the category is paid for once",
        }
        if len(self.category.members) == 1:
            facts["separable"] = "the category is one label"
        if len(self.category.members) == self.K:
            facts["cardinality"] = "the category is all labels"
        return facts

    def lacks(self) -> Mapping[str, str]:
        return {"separable": "labels of the category share its cost"}

    def additive(self) -> Additive:
        return Additive.of_categories([Weighted(1.0, self.category.members, self.category.name)], self.K)

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.any_of(self.category.members, push)


class AnyIncrement(Increment):
    def __init__(self, held: Held, mask: Bools) -> None:
        self.mask = mask
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        return np.maximum(self.value[:, None], self.mask)

    def push(self, y: Ints) -> None:
        self.value = np.maximum(self.value, self.mask[y])
