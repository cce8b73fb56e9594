"""`base`: the score of y is minus the mass of y and of all after it, by falling p (APS: the mass before y, less 1).

For any loss. The option `mass` says what of y itself counts (`shares`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.prediction.declaration import Declaration, Way
from udcp_dsl.prediction.oracle import Floats, Indices, Masks, Probabilities
from udcp_solvers.mass_rule import ByMass, checked_mass
from udcp_solvers.numeric.mass import mass_score_of, mass_scores, mass_sets

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


class MassOracle(ByMass):
    """Labels by falling p, scored by the mass that remains and lam for each rank beyond `free`."""

    _lam: float = 0.0
    _free: int = 0

    def __init__(self, loss: Loss, mass: str, seed: int | None, **options: object) -> None:
        self._mass_rule = checked_mass(self.name, mass, seed)
        super().__init__(loss, **options, **self._mass_rule.options)

    def _scores(self, P: Probabilities) -> Floats:
        return mass_scores(P, self._mass_rule.shares(P), self._lam, self._free)

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        return mass_score_of(P, self._mass_rule.shares(P), y, self._lam, self._free)

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        if tau.shape[1] > 1:  # by class: sets are not prefixes of the order
            return super()._sets(P, tau)
        return mass_sets(P, self._mass_rule.shares(P), tau[:, 0], self._lam, self._free)

    def _first(self, P: Probabilities) -> Indices:
        return np.asarray(np.argmax(P, axis=1), dtype=np.int64)


def by_sorting(loss: Loss) -> Way:
    """Falling p and exact sums from the small end: nothing of the loss enters but its number of labels."""
    return Way("one sort of each row, stopped early", exact=False, seconds=1e-8 * loss.K * max(1.0, math.log2(loss.K)))


class Base(MassOracle):
    """The baseline that knows no cost. mass: before, through or random; seed: for the draws of random."""

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
