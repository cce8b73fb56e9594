"""max(c) = the largest c(y) in S, 0 on the empty set.

For c >= 0 it is a sum of nested categories: with the distinct costs 0 < c1 < c2 < ..., the sum of
(c_i - c_(i-1)) any({y : c(y) >= c_i}).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from udcp_dsl.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.domain import Costs, Floats, Ints
from udcp_dsl.facts import Interval
from udcp_dsl.forms import Additive, Weighted


class Max(Atom):
    name = "max"
    signatures = (("costs",),)

    def __init__(self, K: int, costs: Costs) -> None:
        self.K = K
        self.costs = costs.values

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, self.costs.tobytes())

    def value(self, S: frozenset[int]) -> float:
        return float(max((self.costs[y] for y in S), default=0.0))

    def batch(self, sets: Sets) -> Floats:
        largest = np.where(sets.mask, self.costs, -np.inf).max(axis=1)
        return np.where(sets.size > 0, largest, 0.0)

    def start(self, held: Held) -> Increment:
        return MaxIncrement(held, self.costs)

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
        if (self.costs < 0).any():
            return None
        levels = np.unique(np.append(self.costs, 0.0))
        parts = [
            Weighted(float(high - low), np.flatnonzero(self.costs >= high), f"{{cost >= {high:g}}}")
            for low, high in pairwise(levels)
        ]
        return Additive.of_categories(parts, self.K)

    def probes(self) -> Sequence[int]:
        return (
            int(self.costs.argmax()),
            int(self.costs.argmin()),
            *np.argsort(self.costs, kind="stable")[1:3].tolist(),
        )


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
