"""The anchor of an oracle that needs one: the price at which its best sets have the required coverage, on separate
rows.

At the anchor, the set of an anchored oracle is exactly the best set, so the nearer the anchor is to the threshold that
calibration will find, the cheaper the sets. Coverage does not depend on the anchor, because the rows on which it is
found are used for nothing else.

These rows are a sample, so the price b at which sets will cover is known only up to an error. Let the anchor be a. If
b > a, sets are grown from S_a: they are S_a | S_b or better, and what that loses to S_b at the price b is the *regret*.
If b < a, sets are cut, to S_a & S_b or better. Where labels leave the best sets as the price rises, one of the two may
be far more expensive than the other; the anchor is then moved to the side where its error costs least.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.stages.stage import FitContext, Stage, StratumBudget
from udcp_dsl.rows.columns import to_array

if TYPE_CHECKING:
    from udcp_dsl.predict.oracle import Floats, Indices, Masks, Oracle
    from udcp_dsl.rows.rows import Rows

# The share of the calibration rows that is used for the anchor, and their maximum number.
SHARE, MAX_ROWS = Fraction(1, 4), 1000
# With fewer rows, no anchor is better than one found on them.
MIN_ROWS = 10
# Relative precision of prices, and the factor between first guesses.
_PRICE_PRECISION, _GUESS_FACTOR = 1e-3, 4.0
# After this many guesses, the level is taken to be out of reach at any price.
_MAX_GUESSES = 40
# Candidate anchors, as offsets in standard errors of the coverage, and the relative precision of their prices.
_CANDIDATE_OFFSETS, _CANDIDATE_PRECISION = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0), 1e-2
# Regret below this share of the cost of the sets is ignored; with fewer rows than this, it cannot be estimated.
_IGNORED_SHARE, _MIN_REGRET_ROWS = 0.02, 250


@dataclass(frozen=True)
class Anchor(Stage):
    """The anchor at one alpha, found on n rows: for all rows and, if thresholds are by stratum, for each stratum with
    enough of the n rows. None means that there is no anchor: scores are then plain."""

    n: int
    overall: float | None
    by_stratum: Mapping[str, float | None]

    name: ClassVar[str] = "anchor"
    article: ClassVar[str] = "the "
    max_rows: ClassVar[int | None] = MAX_ROWS
    by_alpha: ClassVar[bool] = True

    @classmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        """A quarter of the rows of each stratum; None if that would be too few to find an anchor."""
        fold = budget.draw(SHARE, MAX_ROWS, np.random.default_rng(context.promise.seed))
        return (fold,) if len(fold) >= MIN_ROWS else None

    @classmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> Anchor:
        (own,) = folds
        own = own.with_columns(P=to_array(own.P))
        by_stratum = {
            name: _found(context, own.take(places), context.strata.alphas.get(name), left)
            for name, places, left in context.cells(own, MIN_ROWS)
            if name is not None
        }
        return cls(len(own), _found(context, own, None, context.left), by_stratum)

    @property
    def rows_used(self) -> int:
        return self.n

    def add_columns(self, context: FitContext, rows: Rows) -> Rows:
        """The rows with the anchor of their stratum, NaN for none."""
        overall = math.nan if self.overall is None else self.overall
        if rows.stratum is None or not context.strata.names:
            return rows.with_columns(anchor=np.full(len(rows), overall))
        found = [self.by_stratum.get(name, self.overall) for name in context.strata.names]
        by_code = np.array([*(math.nan if x is None else x for x in found), overall])  # -1: a group without a stratum
        return rows.with_columns(anchor=by_code[rows.stratum])

    def as_dict(self) -> dict[str, Any]:
        return {"n": self.n, "overall": self.overall, "by_stratum": dict(self.by_stratum)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> Anchor:
        n, overall, by_stratum = data["n"], data["overall"], data["by_stratum"]
        if isinstance(n, bool) or not isinstance(n, int) or n < 1 or not isinstance(by_stratum, Mapping):
            raise InputError("its anchors are damaged: calibrate and save again")
        for anchor in (overall, *by_stratum.values()):
            number = isinstance(anchor, int | float) and not isinstance(anchor, bool)
            if anchor is not None and not (number and 0 <= anchor <= sys.float_info.max):
                raise InputError(f"an anchor is {anchor!r}, not a price: calibrate and save again")
        if not context.oracle.wants_anchor:
            raise InputError("its anchors do not match its oracle; save it again")
        return cls(n, overall, by_stratum)


def _found(context: FitContext, rows: Rows, alpha: Fraction | None, left: int) -> float | None:
    """The anchor for these rows, if `left` rows are left for their threshold."""
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    row_weights = context.row_weights(rows)
    total = float(weights.sum())
    mean = float((weights if row_weights is None else row_weights).sum()) / total if total > 0 else 0.0
    level = context.rule.covered(left, alpha or context.promise.alphas[0], mean)
    return find_anchor(context.oracle, rows, level, row_weights)


def find_anchor(oracle: Oracle, rows: Rows, level: float, row_weights: Floats | None = None) -> float | None:
    """The highest price, to a thousandth, at which the best sets cover at most a share `level` of the true labels, each
    weighted by its `row_weights`; or a price nearby, if its expected regret is clearly less.

    0 if the sets at price 0 already cover more; None if no price is high enough, so that there is no anchor.
    """
    priced = PricedRows(oracle, rows, row_weights)
    anchor = priced.price(level, _PRICE_PRECISION)
    return anchor if anchor is None or len(rows) < _MIN_REGRET_ROWS else priced.least_regret(level, anchor)


class PricedRows:
    """The best sets of rows at all prices asked for so far. A row with the same set at two prices has it at every price
    between them, and is not solved again."""

    def __init__(self, oracle: Oracle, rows: Rows, row_weights: Floats | None) -> None:
        self._oracle, self._rows = oracle, rows
        self._row_weights = np.ones(len(rows)) if row_weights is None else row_weights
        self._known: dict[float, NDArray[np.uint8]] = {}  # the sets, eight labels per byte
        self._covers: dict[float, float] = {}

    def cover(self, mu: float) -> float:
        """The share of the true labels, weighted, that the best sets at a price contain."""
        if mu not in self._covers:
            masks, total = self._sets(mu), float(self._row_weights.sum())
            covered = masks[np.arange(len(masks)), self._rows.truth]
            self._known[mu] = np.packbits(masks, axis=1)
            self._covers[mu] = float(self._row_weights[covered].sum()) / total if total > 0 else 1.0
        return self._covers[mu]

    @property
    def highest(self) -> float:
        """The highest price asked for so far."""
        return max(self._known)

    def sets(self, mu: float) -> Masks:
        """The best sets of all rows at a price."""
        self.cover(mu)
        return self._best_sets(mu, np.arange(len(self._rows)))

    def price(self, level: float, near: float, guess: float | None = None) -> float | None:
        """The highest price at which the best sets cover at most the level, to a relative precision `near`; None if
        all prices do. `guess` is a price that may be close."""
        if guess:  # if the result lies between these two prices, the search is narrow at once
            self.cover(guess * (1 - _CANDIDATE_PRECISION * 4)), self.cover(guess * (1 + _CANDIDATE_PRECISION * 4))
        if self.cover(0.0) > level:
            return 0.0
        beyond = min((mu for mu in self._known if self.cover(mu) > level), default=None)
        below = max(mu for mu in self._known if beyond is None or mu < beyond)
        low, high = self._oracle.loss.facts.interval
        for _ in range(_MAX_GUESSES):
            if beyond is not None and below > 0:
                break
            mu = beyond / _GUESS_FACTOR if beyond is not None else below * _GUESS_FACTOR or max(high - low, 1e-9)
            if self.cover(mu) > level:
                beyond = mu
            else:
                below = mu
        if beyond is None:
            return None
        while below > 0 and beyond > below * (1 + near):
            middle = float(np.sqrt(below * beyond))
            if self.cover(middle) > level:
                beyond = middle
            else:
                below = middle
        return below

    def least_regret(self, level: float, anchor: float) -> float:
        """The anchor within two standard errors that has the least expected regret."""
        total = float(self._row_weights.sum())
        error = math.sqrt(level * (1 - level) * float((self._row_weights**2).sum())) / total if total > 0 else 0.0
        prices = {0.0: anchor}
        for off in sorted(
            _CANDIDATE_OFFSETS, key=abs, reverse=True
        ):  # farthest first: if they do not matter, none does
            if (
                off
                and level + off * error < 1
                and (mu := self.price(level + off * error, _CANDIDATE_PRECISION)) is not None
            ):
                prices[off] = mu
            if off == _CANDIDATE_OFFSETS[-1] and max(
                self._regret(anchor, mu) for mu in prices.values()
            ) <= self._ignored_regret(anchor):
                return anchor
        likely = {off: math.exp(-(off**2) / 2) for off in prices}
        regrets = {
            off: sum(likely[other] * self._regret(mu, prices[other]) for other in prices) / sum(likely.values())
            for off, mu in prices.items()
        }
        if regrets[0.0] <= self._ignored_regret(anchor):
            return anchor
        return prices[min(prices, key=lambda off: (regrets[off], abs(off)))]

    def _regret(self, anchor: float, mu: float) -> float:
        """The mean loss per row, at price mu, of sets grown or cut from those at the anchor against the best at mu."""
        start, end = self._known[anchor], self._known[mu]
        rows = np.flatnonzero(((start & ~end) if anchor < mu else (end & ~start)).any(axis=1))
        if not len(rows):
            return 0.0
        first, best = self._best_sets(anchor, rows), self._best_sets(mu, rows)
        near = first | best if anchor < mu else first & best
        mass = (self._rows.P[rows] * (near.astype(np.int8) - best.astype(np.int8))).sum(axis=1)
        lost = self.costs(near, rows) - self.costs(best, rows) - mu * mass
        return max(0.0, float(lost.sum())) / len(self._rows)

    def costs(self, masks: Masks, rows: Indices) -> Floats:
        """The cost of a set for each of these rows."""
        own = self._rows.inputs
        return self._oracle.loss.batch(masks, inputs=None if own is None else own[rows])

    def _ignored_regret(self, anchor: float) -> float:
        """The regret to ignore: a small share of what sets at the anchor cost more than those at price 0."""
        every = np.arange(len(self._rows))
        costs = [float(self.costs(self._best_sets(mu, every), every).mean()) for mu in (anchor, 0.0)]
        return _IGNORED_SHARE * (costs[0] - costs[1])

    def _best_sets(self, mu: float, rows: Indices) -> Masks:
        """The best sets of some rows at a price that was already asked for."""
        return np.unpackbits(self._known[mu][rows], axis=1, count=self._rows.P.shape[1]).view(np.bool_)

    def _sets(self, mu: float) -> Masks:
        masks = np.zeros(self._rows.P.shape, dtype=bool)
        open_rows = np.ones(len(self._rows), dtype=bool)
        below = max((price for price in self._known if price < mu), default=None)
        beyond = min((price for price in self._known if price > mu), default=None)
        if below is not None and beyond is not None:
            open_rows = (self._known[below] != self._known[beyond]).any(axis=1)
            masks[~open_rows] = self._best_sets(below, np.flatnonzero(~open_rows))
        asked = np.flatnonzero(open_rows)
        prices: Floats = np.full(len(asked), mu)
        masks[asked] = self._oracle.best(self._rows.take(asked), prices)
        return masks
