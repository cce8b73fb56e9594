"""The decision about a row, made by its best set S_m(x) at a price m: keep it or hand it over, or which action to take.

The decision is a function of the row alone, because m is found on separate rows. So the rows of one decision are
exchangeable, and each decision has its own threshold and is covered exactly. It is never made by the final set, and is
not revised by what that set costs: the final set depends on the threshold, so the decision would depend on what is
covered.

For min(L, c), a row is kept if L(S_m) < c, and m is the least price at which the kept rows are covered 1 - alpha. For
`worst`, the action is the best one for S_m, and m is the price at which the S_m cover 1 - alpha. A decision for which
too few rows are expected to set a threshold is merged with the next larger one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.expression.decisions import HANDED_OVER, KEPT, Decided, best_actions
from udcp_dsl.predict.calibrate import CalibrationWarning, Strata
from udcp_dsl.predict.calibrate.strata import SPARE_FACTOR, asked
from udcp_dsl.predict.stages.anchor import PricedRows
from udcp_dsl.predict.stages.stage import FitContext, Stage, StratumBudget
from udcp_dsl.rows.columns import to_array
from udcp_dsl.rows.rows import Rows

if TYPE_CHECKING:
    from udcp_dsl.expression.given import RowInputs
    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.oracle import Indices, Masks, Oracle, Probabilities

SHARE, MAX_ROWS, MIN_ROWS = Fraction(1, 4), 1000, 20
# Relative precision of prices, the factor between first guesses, and their numbers below and above the range of costs.
_PRICE_PRECISION, _GUESS_FACTOR, _GUESSES_BELOW, _GUESSES_ABOVE = 1e-3, 4.0, 8, 10
_STREAM = 8  # the random stream for the folds, different for each stage


@dataclass(frozen=True)
class Decision(Stage):
    """The price m, found on n rows, and the `counts` of these rows by decision.

    `parts` maps each decision to the name of its part of the rows, which shares a threshold. A decision that it lacks
    belongs to the smallest part.
    """

    n: int
    price: float
    counts: Mapping[str, int]
    parts: Mapping[str, str]

    name: ClassVar[str] = "decision"
    article: ClassVar[str] = "the "
    max_rows: ClassVar[int | None] = MAX_ROWS

    @classmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        fold = budget.draw(SHARE, MAX_ROWS, np.random.default_rng([context.promise.seed, _STREAM]))
        if len(fold) < MIN_ROWS:
            raise InputError(
                f"{context.promise.asked} finds its price on a quarter of the rows, and a quarter of "
                f"{len(budget)} is too few: give {int(MIN_ROWS / SHARE)} rows or more"
            )
        return (fold,)

    @classmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> Decision:
        (own,) = folds
        own = own.with_columns(P=to_array(own.P))
        loss, alpha, oracle = context.oracle.loss.of_spec, context.promise.alphas[0], context.decider
        check_decides(loss)
        best = PricedRows(oracle, own, own.weights)
        if loss.ceiling is None:
            found = best.price(context.rule.covered(context.left, alpha), _PRICE_PRECISION)
            price = best.highest if found is None else found
        else:
            price = _KeptRows(best, own, loss.ceiling, loss.facts.interval.lo).least_price(float(1 - alpha))
        names = _decided(oracle, best.sets(price), own.inputs).names(loss.actions).tolist()
        counts = dict(Counter(names).most_common())
        needed = context.promise.rule(len(counts), None).needed(alpha)
        parts = merged(_all_known(loss, counts), SPARE_FACTOR * needed * len(own) / max(1, context.left))
        _warn_of_merged(parts, counts)
        return cls(len(own), price, counts, parts)

    @property
    def rows_used(self) -> int:
        return self.n

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts of the rows, each with its own threshold."""
        return tuple(sorted(set(self.parts.values())))

    def update(self, context: FitContext) -> FitContext:
        return replace(context, strata=Strata("decision", self.names))

    def add_columns(self, context: FitContext, rows: Rows) -> Rows:
        """The rows with the decision about each, and the stratum that it belongs to."""
        loss, decider = context.oracle.loss.of_spec, context.decider
        codes = rows.apply(partial(_decision_codes, decider, self.price), *decider.reads)
        decided = _from_codes(loss, codes)
        rest = min(set(self.parts.values()), key=lambda part: (self._rows_of(part), part))
        code = {name: i for i, name in enumerate(self.names)}
        found = [code[self.parts.get(name, rest)] for name in decided.names(loss.actions).tolist()]
        return rows.with_columns(stratum=np.array(found, dtype=np.intp), decided=decided)

    def _rows_of(self, part: str) -> int:
        return sum(self.counts.get(name, 0) for name, own in self.parts.items() if own == part)

    def sentence(self, unit: str) -> str:
        """The price and the share of each decision, in one sentence; `unit` follows the price."""
        shares = ", ".join(f"{name} {count / self.n:.0%}" for name, count in self.counts.items())
        joined = [part for part in self.names if part not in self.parts]
        more = f"; covered together: {'; '.join(joined)}" if joined else ""
        return f"by the best set at the price {self.price:.4g}{unit}, found on {self.n:,} other rows: {shares}{more}"

    def as_dict(self) -> dict[str, Any]:
        return {"n": self.n, "price": self.price, "counts": dict(self.counts), "parts": dict(self.parts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> Decision:
        n, price, counts, parts = (data[name] for name in ("n", "price", "counts", "parts"))
        whole = [n, *counts.values()]
        right = all(isinstance(x, int) and not isinstance(x, bool) and x >= 1 for x in whole) and sum(whole[1:]) == n
        number = isinstance(price, int | float) and not isinstance(price, bool) and 0 <= price < math.inf
        texts = all(isinstance(x, str) for x in (*parts, *parts.values()))
        if not right or not number or not texts or not set(counts) <= set(parts) or not context.promise.by_decision:
            raise InputError("its decision is damaged: calibrate and save again")
        check_decides(context.oracle.loss.of_spec)
        return cls(n, float(price), counts, parts)


def check_decides(loss: Loss) -> None:
    """Raise an error for a loss without a decision."""
    if loss.ceiling is None and not loss.actions:
        raise InputError(
            f"{asked('decision')} needs a loss with a decision, and {loss.name!r} has none: min(L, c), which hands "
            "rows over at cost c, or worst(u), which takes an action"
        )


def merged(counts: Mapping[str, int], least: float) -> dict[str, str]:
    """A map from each decision to its part: the smallest part joins the next one while it has fewer than `least` rows.

    >>> merged({"wait": 90, "scan": 6, "cut": 5}, 10)
    {'wait': 'wait', 'scan': 'scan or cut', 'cut': 'scan or cut'}
    """
    parts = [([name], count) for name, count in counts.items()]
    while len(parts) > 1:
        parts.sort(key=lambda part: (-part[1], part[0]))
        last, before = parts[-1], parts[-2]
        if last[1] >= least:
            break
        parts[-2:] = [(before[0] + last[0], before[1] + last[1])]
    order = list(counts)
    named = [(sorted(names, key=order.index), count) for names, count in parts]
    found = {name: " or ".join(names) for names, _ in named for name in names}
    return {name: found[name] for name in order}


def _all_known(loss: Loss, counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of the decisions that were made, and 0 for others that are possible: kept and handed over, or the
    actions if there is one table."""
    possible = [] if loss.ceiling is None else [HANDED_OVER]
    if not loss.actions:
        possible.append(KEPT)
    elif len(loss.actions) == 1:
        possible += next(iter(loss.actions.values())).actions
    return {**counts, **{name: 0 for name in possible if name not in counts}}


def _warn_of_merged(parts: Mapping[str, str], counts: Mapping[str, int]) -> None:
    joined = sorted({part for name, part in parts.items() if part != name and name in counts})
    if joined:
        warn(
            f"too few rows to cover each decision separately: {'; '.join(joined)} share a threshold, and are covered "
            "together; give more rows, or a larger alpha",
            CalibrationWarning,
        )


def _decided(oracle: Oracle, masks: Masks, inputs: RowInputs | None) -> Decided:
    loss = oracle.loss.of_spec
    handed = None if loss.ceiling is None else oracle.loss.batch(masks, inputs=inputs) >= loss.ceiling
    return Decided(handed, {name: best_actions(actions, masks)[0] for name, actions in loss.actions.items()})


def _decision_codes(oracle: Oracle, price: float, P: Probabilities, **columns: Any) -> Indices:
    """The decisions as numbers, (n, 1 + tables of actions): whether each row is handed over, and its actions."""
    rows = Rows(oracle.loss.labels, P, **columns)
    found = _decided(oracle, oracle.best(rows, np.full(len(P), price)), rows.inputs)
    handed = np.zeros(len(P), dtype=np.int64) if found.handed_over is None else found.handed_over.astype(np.int64)
    return np.stack([handed, *found.actions.values()], axis=1)


def _from_codes(loss: Loss, codes: Indices) -> Decided:
    handed = None if loss.ceiling is None else codes[:, 0] == 1
    return Decided(handed, {name: codes[:, 1 + at] for at, name in enumerate(loss.actions)})


@dataclass(frozen=True, eq=False)
class _KeptRows:
    """The rows that are kept at a price, and how often they are covered."""

    best: PricedRows
    own: Rows
    ceiling: float
    least: float  # the least cost of a set

    def covers(self, price: float, level: float) -> bool:
        """Whether at least a share `level` of the kept rows is covered; True if no row is kept."""
        masks = self.best.sets(price)
        kept = self.best.costs(masks, np.arange(len(masks))) < self.ceiling
        weights = np.ones(len(masks)) if self.own.weights is None else self.own.weights
        held = masks[np.arange(len(masks)), self.own.truth] & kept
        return float(weights[held].sum()) >= level * float(weights[kept].sum())

    def least_price(self, level: float) -> float:
        """The least price at which they are covered that often, to a thousandth; if there is none, one at which all
        rows are handed over."""
        unit = max(self.ceiling - self.least, 1e-9)
        prices = [unit * _GUESS_FACTOR**power for power in range(-_GUESSES_BELOW, _GUESSES_ABOVE + 1)]
        self.best.cover(prices[-1])  # rows with equal sets at both ends are not solved again
        below = None
        for price in prices:
            if self.covers(price, level):
                break
            below = price
        else:
            return prices[-1]
        while below is not None and price > below * (1 + _PRICE_PRECISION):
            middle = math.sqrt(below * price)
            if self.covers(middle, level):
                price = middle
            else:
                below = middle
        return price
