"""sum(c) = sum of c(y) over y in S."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from udcp_dsl.expression.atoms.atom import Atom, Held, LinearIncrement, Sets
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Costs, Floats
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Adds
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Sum(Atom):
    name = "sum"
    signatures = (("costs",),)
    always_linear = True

    def __init__(self, K: int, costs: Costs) -> None:
        self.K = K
        self.costs = costs.values

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, self.costs.tobytes())

    def value(self, S: frozenset[int]) -> float:
        return float(sum(self.costs[y] for y in S))

    def batch(self, sets: Sets) -> Floats:
        return sets.as_float @ self.costs

    def start(self, held: Held) -> LinearIncrement:
        return LinearIncrement(held, self.costs)

    def growth(self) -> Adds:
        return Adds(self.costs)

    @property
    def interval(self) -> Interval:
        return Interval(float(self.costs[self.costs < 0].sum()), float(self.costs[self.costs > 0].sum()))

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
