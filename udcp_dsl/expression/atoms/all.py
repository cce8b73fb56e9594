"""all(C) = 1 if C lies inside S, else 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from udcp_dsl.expression.atoms.atom import CategoryAtom, Held, Increment, LinearIncrement, Sets
from udcp_dsl.expression.domain import Category, Floats, Ints
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import CompletedCategories, Completes
from udcp_dsl.expression.linear import Affine, Lowering, Push


class All(CategoryAtom):
    name = "all"

    def value(self, S: frozenset[int]) -> float:
        return float(S.issuperset(self.category.members.tolist()))

    def batch(self, sets: Sets) -> Floats:
        return np.asarray(sets.mask[:, self.category.members].all(axis=1), dtype=np.float64)

    def start(self, held: Held) -> Increment:
        return AllIncrement(held, self.category)

    def growth(self) -> Completes:
        return Completes(self.category.members)

    def proves(self) -> Mapping[str, str]:
        facts = {
            "monotone": "once a set contains the category, larger sets do",
            "supermodular": "the last label of the category makes it 1",
        }
        if len(self.category.members) == 1:
            facts["separable"] = "the category is one label"
        if len(self.category.members) == self.K:
            facts["cardinality"] = "the category is all labels"
        return facts

    def lacks(self) -> Mapping[str, str]:
        why = "it takes the last of several labels to make it 1"
        return {"separable": why, "submodular": why}

    def additive(self) -> Additive | None:
        if len(self.category.members) > 1:
            return None
        return Additive.of_labels(self.category.mask.astype(np.float64))

    def probes(self) -> Sequence[int]:
        return [int(y) for y in self.category.members[:6]]

    def entries(self) -> CompletedCategories:
        return CompletedCategories(np.zeros(self.K), [self.category.members], np.ones(1))

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.all_of([model.label(y) for y in self.category.members], push)


class AllIncrement(Increment):
    def __init__(self, held: Held, category: Category) -> None:
        self.whole = len(category.members)
        self.inside = LinearIncrement(held, category.mask.astype(np.float64))
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        return np.asarray(self.inside.after() == self.whole, dtype=np.float64)

    def push(self, y: Ints) -> None:
        self.inside.push(y)
        self.value = (self.inside.value == self.whole).astype(np.float64)
