"""The cheapest sets by mass of one loss, by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_dsl.expression.attainable import ROUNDING
from udcp_dsl.expression.lower import grids
from udcp_solvers.numeric.arrays import Floats, Masks
from udcp_solvers.search.layout import FREE, IN
from udcp_solvers.search.prices import SearchPrices

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Branches that one set may take, those on the way to best sets included: a solver is quicker at what takes more.
BUDGET = 1_500


class Cheapest(NamedTuple):
    """The cheapest set found, what it costs, and by how much another may be cheaper at most: 0 where it is proved."""

    mask: Masks
    cost: float
    gap: float


class MassSearch:
    """The cheapest sets of one loss by mass; asked about one row after another."""

    def __init__(self, loss: Loss, prices: SearchPrices) -> None:
        self.loss = loss
        self.prices = prices
        self._grid = _steps_of(loss)

    @staticmethod
    def of(loss: Loss) -> MassSearch | None:
        """None where the loss has an atom that the search does not support."""
        make = SearchPrices.of(loss)
        return None if make is None else MassSearch(loss, make())

    def cheapest(self, p: Floats, t: float, inside: Masks, budget: int = BUDGET) -> Cheapest:
        """Among the sets that hold `inside` and have mass t; all labels together have it."""
        gaps = np.zeros(1)
        fixed = np.where(inside, IN, FREE).astype(np.int8)
        mask = self.prices.of_mass(p[None, :], np.array([t]), fixed[None, :], budget, self._grid, gaps)[0]
        return Cheapest(mask, float(self.loss.batch(mask[None, :])[0]), float(gaps[0]))


def _steps_of(loss: Loss) -> Floats:
    """Offset and step of the values that the loss takes; a step of 0 where rounding could blur it, or there is none."""
    expression, interval = loss.expression, loss.facts.interval
    grid = grids(expression)[id(expression.root)]
    steps = None if grid is None else grid.steps()
    blur = ROUNDING * max(1.0, abs(interval.lo), abs(interval.hi))
    return (
        np.zeros(2) if steps is None or steps.step < 1e7 * blur else np.array([steps.offset, steps.step], dtype=float)
    )
