"""`base`: labels by falling p; the score of y is minus the mass of y and of all labels after it. For any loss.

This is the score of APS, the mass before y, less 1. The option `mass` decides how much of p(y) counts (`mass_rule`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.predict.oracle import Declaration, Floats, Indices, Masks, Probabilities, Way
from udcp_solvers.mass_rule import ByMass, checked_mass
from udcp_solvers.numeric.mass import mass_score_of, mass_scores, mass_sets

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


class MassOracle(ByMass):
    """Labels by falling p; the score is minus the remaining mass, plus `lam` for each rank beyond `free`."""

    _lam: float = 0.0
    _free: int = 0

    def __init__(self, loss: Loss, mass: str, seed: int | None, **options: object) -> None:
        self._mass_rule = checked_mass(self.name, mass, seed)
        super().__init__(loss, **options, **self._mass_rule.options)

    def _scores(self, P: Probabilities) -> Floats:
        return mass_scores(P, self._mass_rule.own_shares(P), self._lam, self._free)

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        return mass_score_of(P, self._mass_rule.own_shares(P), y, self._lam, self._free)

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        if tau.shape[1] > 1:  # one threshold per class: sets are not prefixes of the order
            return super()._sets(P, tau)
        return mass_sets(P, self._mass_rule.own_shares(P), tau[:, 0], self._lam, self._free)

    def _first(self, P: Probabilities) -> Indices:
        return np.asarray(np.argmax(P, axis=1), dtype=np.int64)


def by_sorting(loss: Loss) -> Way:
    """The algorithm of `base` and `raps`; its time depends only on the number of labels."""
    return Way("one sort of each row, stopped early", exact=False, seconds=1e-8 * loss.K * max(1.0, math.log2(loss.K)))


class Base(MassOracle):
    """The baseline that ignores the cost. mass: before, through or random; seed: random seed for mass="random"."""

    name = "base"
    declaration = Declaration(
        does="falling probability, until the mass is met (APS)",
        choose_for="a baseline",
        chooses=by_sorting,
        by_cost=False,
        in_threads=True,
    )

    def __init__(self, loss: Loss, *, mass: str = "before", seed: int | None = None) -> None:
        super().__init__(loss, mass, seed)
