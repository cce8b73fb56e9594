"""S_mu itself, at one price: what the set at a threshold, the union of the S_mu up to it, does not show.

For explaining one instance whose S_mu are not nested: all sets where there are few labels, else one integer program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.expression.domain import numbered_sets
from udcp_dsl.expression.lower import lower
from udcp_solvers.numeric.arrays import Floats, Masks
from udcp_solvers.prices.enumeration import MOST

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Values closer than this, relatively, are equal but for rounding.
_NEAR = 1e-12


class BestSets:
    """Sets of least L(S) - price * p(S) under one loss."""

    def __init__(self, loss: Loss) -> None:
        self._few = loss.K <= MOST
        if self._few:
            self._masks = numbered_sets(np.arange(1 << loss.K), loss.K)
            self._costs = loss.batch(self._masks)
        else:
            from udcp_solvers.programs.exact import Exact  # slow to import

            self._exact = Exact(loss, lower(loss), "auto", False)

    def at(self, p: Floats, price: float, entered: Masks) -> Masks:
        """The best set among those that hold `entered`, which is known to be in it."""
        return self._of_all(p, price, entered) if self._few else self._solved(p, price, entered)

    def _of_all(self, p: Floats, price: float, entered: Masks) -> Masks:
        holding = np.flatnonzero(self._masks[:, entered].all(axis=1))
        masks = self._masks[holding]
        left_out = np.where(masks, 0.0, p).sum(axis=1)
        paid = price * left_out
        values = self._costs[holding] + paid
        scale = np.abs(self._costs[holding]) + paid
        least = int(values.argmin())
        equal = np.flatnonzero(values <= values[least] + _NEAR * scale[least])
        first = np.lexsort((masks[equal].sum(axis=1), left_out[equal]))[0]
        chosen: Masks = masks[equal[first]]
        return chosen

    def _solved(self, p: Floats, price: float, entered: Masks) -> Masks:
        from udcp_solvers.programs.exact import Tally

        found = self._exact.at_price(Tally(), p, price, entered)
        if found is None:
            raise OracleError(
                f"the solver has no answer for the set at price {price:g}: which labels left is not known"
            )
        return found.mask
