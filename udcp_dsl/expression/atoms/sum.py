"""sum(c) = sum of c(y) over y in S."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from udcp_dsl.expression.atoms.atom import (
    CompensatedIncrement,
    CostAtom,
    Held,
    Increment,
    LinearIncrement,
    Sets,
    two_sum,
)
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Costs, Floats
from udcp_dsl.expression.facts import TOLERANCE, Interval
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Adds
from udcp_dsl.expression.linear import Affine, Lowering, Push
from udcp_dsl.per_row import smaller, sum_where, weighted_sums


class Sum(CostAtom):
    name = "sum"

    def __init__(self, K: int, costs: Costs) -> None:
        super().__init__(K, costs)
        # Whether costs have both signs and are so large, absolutely or relative to the smallest, that the order of
        # adding them could decide a comparison.
        self._cancels = bool(self.costs.min() < 0) and bool(self.costs.max() > 0)
        if self._cancels:
            sizes = np.abs(self.costs)
            little = smaller(TOLERANCE / 100, 1e-7 * smaller(np.where(sizes > 0, sizes, 1.0).min(), 1.0))
            self._cancels = bool(np.finfo(np.float64).eps * K * sizes.sum() > little)

    def value(self, S: frozenset[int]) -> float:
        return math.fsum(self.costs[y] for y in S) if self._cancels else float(sum(self.costs[y] for y in S))

    def batch(self, sets: Sets) -> Floats:
        if not self._cancels:
            return weighted_sums(sets.as_float, self.costs)  # type: ignore[no-any-return]
        total = rest = np.zeros(len(sets.mask))
        for y in np.flatnonzero(self.costs):
            total, lost = two_sum(total, sets.as_float[:, y] * self.costs[y])
            rest = rest + lost
        return total + rest

    def batch_by_row(self, sets: Sets, costs: Floats) -> Floats:
        if not self._cancels:
            return np.asarray(np.einsum("nk,nk->n", sets.as_float, costs))
        return np.array([math.fsum(c[mask]) for c, mask in zip(costs, sets.mask, strict=True)])

    def start(self, held: Held) -> Increment:
        return CompensatedIncrement(held, self.costs) if self._cancels else LinearIncrement(held, self.costs)

    def growth(self) -> Adds:
        return Adds(self.costs)

    @property
    def interval(self) -> Interval:
        return Interval(sum_where(self.costs, self.costs < 0), sum_where(self.costs, self.costs > 0))

    def proves(self) -> Mapping[str, str]:
        facts = {"separable": "a sum over labels"}
        if (self.costs >= 0).all():
            facts["monotone"] = "no cost is negative"
        if (self.costs <= 0).all():
            facts["antitone"] = "no cost is positive"
        if (self.costs == self.costs[0]).all():
            facts["cardinality"] = "all costs are equal"
        return facts

    def lacks(self) -> Mapping[str, str]:
        return {
            "monotone": "some costs are negative",
            "antitone": "some costs are positive",
            "cardinality": "costs differ",
        }

    def additive(self) -> Additive:
        return Additive.of_labels(self.costs)

    def probes(self) -> Sequence[int]:
        return (int(self.costs.argmax()), int(self.costs.argmin()))

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.labels(self.costs)

    def grid(self) -> Grid | None:
        return Grid.sums(self.costs)
