"""max(c) = the largest c(y) in S, 0 on the empty set.

It is a sum of nested categories: with the distinct costs c1 < c2 < ... and c0 = 0, the sum of
(c_i - c_(i-1)) any({y : c(y) >= c_i}). Where c1 < 0, the weight of all labels is negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from udcp_dsl.expression.atoms.atom import CostAtom, Held, Increment, Sets
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import Larger
from udcp_dsl.expression.linear import Affine, Lowering, Push

# About 70 MB: 2,900 labels with as many distinct costs.
MOST_MEMBERS = 1 << 23


class CostExtreme(CostAtom):
    """The largest or the smallest cost of a set."""

    def batch(self, sets: Sets) -> Floats:
        return self.batch_by_row(sets, self.costs)

    @property
    def interval(self) -> Interval:
        return Interval(min(0.0, float(self.costs.min())), max(0.0, float(self.costs.max())))

    def probes(self) -> Sequence[int]:
        return (
            int(self.costs.argmax()),
            int(self.costs.argmin()),
            *np.argsort(self.costs, kind="stable")[1:3].tolist(),
        )

    def grid(self) -> Grid:
        return Grid.of(np.append(self.costs, 0.0))


class Max(CostExtreme):
    name = "max"

    def value(self, S: frozenset[int]) -> float:
        return float(max((self.costs[y] for y in S), default=0.0))

    def batch_by_row(self, sets: Sets, costs: Floats) -> Floats:
        largest = np.where(sets.mask, costs, -np.inf).max(axis=1)
        return np.where(sets.size > 0, largest, 0.0)

    def start(self, held: Held) -> Increment:
        return ExtremeIncrement(held, self.costs, np.maximum)

    def growth(self) -> Larger:
        return Larger(self.costs)

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

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.largest(self.costs, push)


def nested(costs: Floats) -> Additive | None:
    """max(c) as weights on nested categories; None if they would take too much memory."""
    levels = np.unique(costs)
    if len(levels) * len(costs) > MOST_MEMBERS:
        return None
    steps = pairwise([0.0, *levels])
    parts = [Weighted(float(b - a), np.flatnonzero(costs >= b), f"{{cost >= {b:g}}}") for a, b in steps]
    return Additive.of_categories(parts, len(costs))


class ExtremeIncrement(Increment):
    """`further` is np.maximum or np.minimum."""

    def __init__(self, held: Held, costs: Floats, further: np.ufunc) -> None:
        self.held = held
        self.costs = costs
        self.further = further
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        if self.held.size == 0:
            return np.broadcast_to(self.costs, self.held.mask.shape)
        return np.asarray(self.further(self.value[:, None], self.costs))

    def push(self, y: Ints) -> None:
        self.value = self.costs[y] if self.held.size == 0 else self.further(self.value, self.costs[y])
