"""max(c) = the largest c(y) in S, 0 on the empty set.

It is a sum of nested categories: with the distinct costs c1 < c2 < ... and c0 = 0, the sum of
(c_i - c_(i-1)) any({y : c(y) >= c_i}). Where c1 < 0, the weight of all labels is negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Costs, Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import Larger
from udcp_dsl.expression.linear import Affine, Lowering, Push

# Some 70 MB: up to 2,900 labels of as many different costs.
_MOST_MEMBERS = 1 << 23


class Max(Atom):
    name = "max"
    signatures = (("costs",),)
    always_linear = True

    def __init__(self, K: int, costs: Costs) -> None:
        self.K = K
        self.costs = costs.values

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, self.costs.tobytes())

    def value(self, S: frozenset[int]) -> float:
        return float(max((self.costs[y] for y in S), default=0.0))

    def batch(self, sets: Sets) -> Floats:
        return self.batch_by_row(sets, self.costs)

    def batch_by_row(self, sets: Sets, costs: Floats) -> Floats:
        largest = np.where(sets.mask, costs, -np.inf).max(axis=1)
        return np.where(sets.size > 0, largest, 0.0)

    def start(self, held: Held) -> Increment:
        return MaxIncrement(held, self.costs)

    def growth(self) -> Larger:
        return Larger(self.costs)

    @property
    def interval(self) -> Interval:
        return Interval(min(0.0, float(self.costs.min())), max(0.0, float(self.costs.max())))

    def proves(self) -> Mapping[str, str]:
        if (self.costs >= 0).all():
            return {
                "monotone": "no cost is negative, so the empty set's 0 is the least",
                "submodular": "the largest of nonnegative costs is a sum of nested categories",
            }
        return {}

    def lacks(self) -> Mapping[str, str]:
        if (self.costs >= 0).all():
            return {}
        why = "some costs are negative, below the empty set's 0"
        return {"monotone": why, "submodular": why}

    def additive(self) -> Additive | None:
        return nested(self.costs)

    def probes(self) -> Sequence[int]:
        return (
            int(self.costs.argmax()),
            int(self.costs.argmin()),
            *np.argsort(self.costs, kind="stable")[1:3].tolist(),
        )

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.largest(self.costs, push)

    def grid(self) -> Grid:
        return Grid.of(np.append(self.costs, 0.0))


def nested(costs: Floats) -> Additive | None:
    """max(c) as weights on nested categories; None where they would take too much memory."""
    levels = np.unique(costs)
    if len(levels) * len(costs) > _MOST_MEMBERS:
        return None
    steps = pairwise([0.0, *levels])
    parts = [Weighted(float(b - a), np.flatnonzero(costs >= b), f"{{cost >= {b:g}}}") for a, b in steps]
    return Additive.of_categories(parts, len(costs))


class MaxIncrement(Increment):
    def __init__(self, held: Held, costs: Floats) -> None:
        self.held = held
        self.costs = costs
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        if self.held.size == 0:
            return np.broadcast_to(self.costs, self.held.mask.shape)
        return np.maximum(self.value[:, None], self.costs)

    def push(self, y: Ints) -> None:
        self.value = self.costs[y] if self.held.size == 0 else np.maximum(self.value, self.costs[y])
