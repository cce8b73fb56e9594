"""swing(c) = the largest c(y) in S minus the smallest, 0 on the empty set."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.expression.domain import Costs, Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.linear import Affine, Lowering, NoLinearForm, Push


class Swing(Atom):
    name = "swing"
    signatures = (("costs",),)

    def __init__(self, K: int, costs: Costs) -> None:
        self.K = K
        self.costs = costs.values

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, self.costs.tobytes())

    def value(self, S: frozenset[int]) -> float:
        return float(max(self.costs[y] for y in S) - min(self.costs[y] for y in S)) if S else 0.0

    def batch(self, sets: Sets) -> Floats:
        high = np.where(sets.mask, self.costs, -np.inf).max(axis=1)
        low = np.where(sets.mask, self.costs, np.inf).min(axis=1)
        return np.where(sets.size > 0, high - low, 0.0)

    def start(self, held: Held) -> Increment:
        return SwingIncrement(held, self.costs)

    def growth(self) -> None:
        return None

    @property
    def interval(self) -> Interval:
        return Interval(0.0, float(np.ptp(self.costs)))

    def proves(self) -> Mapping[str, str]:
        return {"monotone": "a larger set swings no less"}

    def lower(self, model: Lowering, push: Push) -> Affine:
        raise NoLinearForm("nobody has written the rows of swing")


class SwingIncrement(Increment):
    """`high` and `low` hold the largest and the smallest cost so far."""

    def __init__(self, held: Held, costs: Floats) -> None:
        self.costs = costs
        self.high = np.full(len(held.rows), -np.inf)
        self.low = np.full(len(held.rows), np.inf)
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        return np.maximum(self.high[:, None], self.costs) - np.minimum(self.low[:, None], self.costs)

    def push(self, y: Ints) -> None:
        self.high = np.maximum(self.high, self.costs[y])
        self.low = np.minimum(self.low, self.costs[y])
        self.value = self.high - self.low
