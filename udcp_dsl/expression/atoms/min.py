"""min(c) = the smallest c(y) in S, 0 on the empty set.

It is minus the max of -c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.expression.atoms.max import nested
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Costs, Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive
from udcp_dsl.expression.growth import Smaller
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Min(Atom):
    name = "min"
    signatures = (("costs",),)
    always_linear = True

    def __init__(self, K: int, costs: Costs) -> None:
        self.K = K
        self.costs = costs.values

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, self.costs.tobytes())

    def value(self, S: frozenset[int]) -> float:
        return float(min((self.costs[y] for y in S), default=0.0))

    def batch(self, sets: Sets) -> Floats:
        return self.batch_by_row(sets, self.costs)

    def batch_by_row(self, sets: Sets, costs: Floats) -> Floats:
        smallest = np.where(sets.mask, costs, np.inf).min(axis=1)
        return np.where(sets.size > 0, smallest, 0.0)

    def start(self, held: Held) -> Increment:
        return MinIncrement(held, self.costs)

    def growth(self) -> Smaller:
        return Smaller(self.costs)

    @property
    def interval(self) -> Interval:
        return Interval(min(0.0, float(self.costs.min())), max(0.0, float(self.costs.max())))

    def proves(self) -> Mapping[str, str]:
        if (self.costs <= 0).all():
            return {
                "antitone": "no cost is positive, so the empty set's 0 is the largest",
                "supermodular": "the smallest of nonpositive costs is minus a sum of nested categories",
            }
        return {}

    def additive(self) -> Additive | None:
        turned = nested(-self.costs)
        return None if turned is None else turned.times(-1.0)

    def probes(self) -> Sequence[int]:
        return (
            int(self.costs.argmax()),
            int(self.costs.argmin()),
            *np.argsort(self.costs, kind="stable")[1:3].tolist(),
        )

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.largest(-self.costs, push.turned) * -1.0

    def grid(self) -> Grid:
        return Grid.of(np.append(self.costs, 0.0))


class MinIncrement(Increment):
    def __init__(self, held: Held, costs: Floats) -> None:
        self.held = held
        self.costs = costs
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        if self.held.size == 0:
            return np.broadcast_to(self.costs, self.held.mask.shape)
        return np.minimum(self.value[:, None], self.costs)

    def push(self, y: Ints) -> None:
        self.value = self.costs[y] if self.held.size == 0 else np.minimum(self.value, self.costs[y])
