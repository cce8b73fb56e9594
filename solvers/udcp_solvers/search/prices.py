"""Prices and cheapest sets under any loss of the language, by row: the interface of the search.

`SearchPrices` finds the best set at each price that matters, `MassSearch` the cheapest set that has a mass.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_dsl.expression.attainable import ROUNDING
from udcp_dsl.expression.lower import grids
from udcp_dsl.per_row import Patched, some_rows
from udcp_solvers.numeric.arrays import plain
from udcp_solvers.numeric.compiled import over_rows
from udcp_solvers.search.by_mass import MassRows, mass_block
from udcp_solvers.search.hull import price_block
from udcp_solvers.search.layout import CODE, FREE, IN, PAIRS, Floats, Ints, Marks
from udcp_solvers.search.model import Model, model_of, searchable
from udcp_solvers.search.trace import ALL, BEST, ONE, SET, PriceRows

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.oracle import Masks, Probabilities

# The most nodes for each part of a row: its best set at the anchor, prices within it, prices beyond it. With many
# labels a node takes longer, and there are fewer; far fewer if pairs of them are summed for sets of every size.
BUDGET = 20_000
_LABELS_TIMES_NODES = 2_500_000
_TRIPLES_TIMES_NODES = 400_000_000_000
# The most branches and nodes for a cheapest set: beyond that, a solver is faster.
MASS_BUDGET = 1_500
# The cells that a row counts for when it is decided whether threads pay off.
_CELLS_PER_ROW = 1 << 12


class SearchPrices:
    """The prices of one loss, by row. `gaps` (n,), if given, gets how much better another set may be, at most, in each
    row."""

    def __init__(self, loss: Loss, budget: int | None = None) -> None:
        self._model = model_of(loss)
        low, high = loss.facts.interval
        self.span = high - low
        # If no term is negative, the end of the interval is exactly 0; other ends are sums that may be rounded.
        self._low = 0.0 if low == 0 else -np.inf
        self._budget = self._node_budget(loss.K) if budget is None else budget

    def _node_budget(self, K: int) -> int:
        """The most nodes for each part of a row."""
        ints = self._model.ints.base if isinstance(self._model.ints, Patched) else self._model.ints
        pairs = PAIRS in ints[ints[CODE] : ints[CODE + 1] : 4]
        return min(BUDGET, _LABELS_TIMES_NODES // K, _TRIPLES_TIMES_NODES // K**3 if pairs else BUDGET)

    def take(self, rows: Ints) -> SearchPrices:
        """The prices of some of the rows, for a loss whose numbers differ by row."""
        other = copy(self)
        other._model = Model(*(some_rows(part, rows) for part in self._model))
        other.span = some_rows(self.span, rows)
        return other

    @staticmethod
    def of(loss: Loss) -> Callable[[], SearchPrices] | None:
        """A constructor of the prices; None if the search does not support an atom of the loss."""
        return partial(SearchPrices, loss) if searchable(loss) else None

    def scores(self, P: Probabilities, anchor: Floats | None = None, gaps: Floats | None = None) -> Floats:
        """Every label's price; `anchor` (n,)."""
        out = np.empty(P.shape)
        self._trace(self._rows(P, ALL, anchor, gaps)._replace(scores=out))
        return out

    def score_of(self, P: Probabilities, y: Ints, anchor: Floats | None = None, gaps: Floats | None = None) -> Floats:
        """The prices of the labels y (n,)."""
        out = np.empty((len(P), 1))
        self._trace(self._rows(P, ONE, anchor, gaps)._replace(y=np.array(y, dtype=np.int64), scores=out))
        return out[:, 0]

    def sets(self, P: Probabilities, tau: Floats, anchor: Floats | None = None, gaps: Floats | None = None) -> Masks:
        """The labels whose price is at most tau (n,)."""
        out = np.empty(P.shape, np.int8)
        self._trace(self._rows(P, SET, anchor, gaps)._replace(tau=np.array(tau, dtype=np.float64), masks=out))
        return out.view(np.bool_)

    def best(self, P: Probabilities, mu: Floats, gaps: Floats | None = None, fixed: Marks | None = None) -> Masks:
        """The set of least L - mu p of each row, mu (n,); `fixed` (n, K): which labels it has to hold or leave out."""
        out = np.empty(P.shape, np.int8)
        rows = self._rows(P, BEST, mu, gaps)._replace(masks=out)
        self._trace(rows if fixed is None else rows._replace(fixed=np.array(fixed, dtype=np.int8)))
        return out.view(np.bool_)

    def of_mass(self, P: Probabilities, t: Floats, fixed: Marks, branches: int, grid: Floats, gaps: Floats) -> Masks:
        """The cheapest set of mass t (n,) of each row, within `branches` branches; `grid`: offset and step of costs."""
        out = np.empty(P.shape, np.int8)
        rows = MassRows(
            P=plain(P),
            t=np.array(t, dtype=np.float64),
            fixed=np.array(fixed, dtype=np.int8),
            masks=out,
            gaps=gaps,
            branches=branches,
            budget=self._budget,
            span=self.span,
            grid=grid,
        )
        over_rows(mass_block, len(P), _CELLS_PER_ROW, *self._model, rows)
        return out.view(np.bool_)

    def _rows(self, P: Probabilities, wanted: int, anchor: Floats | None, gaps: Floats | None) -> PriceRows:
        """The rows and what is wanted of them, without arrays for the results: the caller adds its own."""
        n, nothing = len(P), np.empty((0, 1), np.int8)
        return PriceRows(
            P=plain(P),
            wanted=wanted,
            anchor=np.full(n, -1.0) if anchor is None else np.array(anchor, dtype=np.float64),
            y=np.zeros(n, np.int64),
            tau=np.zeros(n),
            fixed=nothing,
            scores=np.empty((0, 1)),
            masks=nothing,
            gaps=np.zeros(n) if gaps is None else gaps,
            budget=self._budget,
            span=self.span,
            low=self._low,
        )

    def _trace(self, rows: PriceRows) -> None:
        over_rows(price_block, len(rows.P), _CELLS_PER_ROW, *self._model, rows)


class Cheapest(NamedTuple):
    """The cheapest set found, its cost, and how much cheaper another may be, at most: 0 if it is proved."""

    mask: Masks
    cost: float
    gap: float


class MassSearch:
    """Finds the cheapest set that has a mass, for one loss and one row at a time."""

    def __init__(self, loss: Loss, prices: SearchPrices) -> None:
        self.loss = loss
        self.prices = prices
        self._grid = _grid_of(loss)

    @staticmethod
    def of(loss: Loss) -> MassSearch | None:
        """The search for a loss; None if it has an atom that the search does not support."""
        make = SearchPrices.of(loss)
        return None if make is None else MassSearch(loss, make())

    def cheapest(self, p: Floats, t: float, inside: Masks, budget: int = MASS_BUDGET) -> Cheapest:
        """The cheapest set that holds `inside` and has mass t; the set of all labels must have it."""
        gaps = np.zeros(1)
        fixed = np.where(inside, IN, FREE).astype(np.int8)
        mask = self.prices.of_mass(p[None, :], np.array([t]), fixed[None, :], budget, self._grid, gaps)[0]
        return Cheapest(mask, float(self.loss.batch(mask[None, :])[0]), float(gaps[0]))


def _grid_of(loss: Loss) -> Floats:
    """Offset and step of the values that the loss takes; a step of 0 if there is no grid, or rounding could blur it."""
    expression, interval = loss.expression, loss.facts.interval
    grid = grids(expression)[id(expression.root)]
    steps = None if grid is None else grid.steps()
    blur = ROUNDING * max(1.0, abs(interval.lo), abs(interval.hi))
    return (
        np.zeros(2) if steps is None or steps.step < 1e7 * blur else np.array([steps.offset, steps.step], dtype=float)
    )
