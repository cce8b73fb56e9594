"""worst(u) = min over actions a of max over y in S of u(y, a); 0 on the empty set.

The loss of the best single action, if the true label is the worst one of the set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets, fingerprint
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Actions, Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.growth import MinMaxTable
from udcp_dsl.expression.linear import Affine, Lowering, Push


class Worst(Atom):
    name = "worst"
    signatures = (("actions",),)
    always_linear = True

    def __init__(self, K: int, actions: Actions) -> None:
        self.K = K
        self.losses = actions.values
        self._actions = actions

    @property
    def actions(self) -> Actions:
        return self._actions

    @cached_property
    def key(self) -> tuple[object, ...]:
        return (self.name, self.losses.shape, fingerprint(self.losses))

    def value(self, S: frozenset[int]) -> float:
        if not S:
            return 0.0
        return float(min(max(self.losses[y, a] for y in S) for a in range(self.losses.shape[1])))

    def batch(self, sets: Sets) -> Floats:
        best = np.full(len(sets.mask), np.inf)
        for column in self.losses.T:
            best = np.minimum(best, np.where(sets.mask, column, -np.inf).max(axis=1))
        return np.where(sets.size > 0, best, 0.0)

    def start(self, held: Held) -> Increment:
        return WorstIncrement(held, self.losses)

    def growth(self) -> None:
        return None

    @property
    def interval(self) -> Interval:
        lowest = min(0.0, float(self.losses.min()))
        return Interval(lowest, max(0.0, float(self.losses.max(axis=0).min())))

    def proves(self) -> Mapping[str, str]:
        if (self.losses < 0).any():
            return {}
        facts = {"monotone": "a larger set has no better worst case"}
        if self.losses.shape[1] == 1:
            facts["submodular"] = "one action: the largest of nonnegative costs"
        return facts

    def lacks(self) -> Mapping[str, str]:
        if (self.losses < 0).any():
            return {"monotone": "some losses are negative, below the empty set's 0"}
        return {"submodular": "the best action changes as the set grows"}

    def probes(self) -> Sequence[int]:
        best = self.losses.argmin(axis=1)
        return [*np.unique(best, return_index=True)[1][:3].tolist(), int(self.losses.max(axis=1).argmax())]

    def entries(self) -> MinMaxTable:
        return MinMaxTable(self.losses.size, lambda: np.ascontiguousarray(self.losses.T))

    def lower(self, model: Lowering, push: Push) -> Affine:
        return model.best_of_worst(self.losses, push)

    def grid(self) -> Grid:
        return Grid.of(np.append(self.losses, 0.0))


class WorstIncrement(Increment):
    """`worst` is the worst loss of each action so far."""

    def __init__(self, held: Held, losses: Floats) -> None:
        self.shape = held.mask.shape
        self.losses = losses
        self.worst = np.full((len(held.rows), losses.shape[1]), -np.inf)
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        best = np.full(self.shape, np.inf)
        for so_far, column in zip(self.worst.T, self.losses.T, strict=True):
            np.minimum(best, np.maximum(so_far[:, None], column), out=best)
        return best

    def push(self, y: Ints) -> None:
        self.worst = np.maximum(self.worst, self.losses[y])
        self.value = self.worst.min(axis=1)
