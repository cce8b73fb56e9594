"""size = |S|;  size(C) = |S & C|."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, LinearIncrement, Sets, fingerprint
from udcp_dsl.expression.domain import Category, Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Adds
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Size(Atom):
    name = "size"
    signatures = ((), ("category",))
    always_linear = True

    def __init__(self, K: int, category: Category | None = None) -> None:
        self.K = K
        self.category = category if category is not None and len(category.members) < K else None
        self.weights: Floats = np.ones(K) if self.category is None else self.category.mask.astype(np.float64)

    @cached_property
    def key(self) -> tuple[object, ...]:
        return (self.name, None if self.category is None else fingerprint(self.category.members))

    @property
    def most(self) -> int:
        return self.K if self.category is None else len(self.category.members)

    def value(self, S: frozenset[int]) -> float:
        return float(len(S if self.category is None else S & set(self.category.members.tolist())))

    def batch(self, sets: Sets) -> Floats:
        return sets.size if self.category is None else sets.as_float @ self.weights

    def start(self, held: Held) -> LinearIncrement:
        return LinearIncrement(held, self.weights)

    def growth(self) -> Adds:
        return Adds(self.weights)

    @property
    def interval(self) -> Interval:
        return Interval(0.0, float(self.most))

    def proves(self) -> Mapping[str, str]:
        facts = {"separable": "each label counts for itself", "monotone": "a larger set has no fewer labels"}
        return facts | ({"cardinality": "it is the size"} if self.category is None else {})

    def additive(self) -> Additive:
        return Additive.of_labels(self.weights)

    def probes(self) -> Sequence[int]:
        return () if self.category is None else self.category.probes()

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.labels(self.weights)

    def counted(self) -> Ints:
        return np.flatnonzero(self.weights)
