"""The lambda of an oracle that is tuned: thresholds on one fold, mean costs at these thresholds on a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udcp_dsl.diagnostics import InputError, keeping_warnings
from udcp_dsl.predict.calibrate import CalibrationWarning, Tuning, make_cell, three_folds, tune
from udcp_dsl.predict.promise import as_whole_number
from udcp_dsl.predict.stages.stage import FitContext, Stage, StratumBudget, true_scores
from udcp_dsl.rows.rows import Rows

if TYPE_CHECKING:
    from udcp_dsl.predict.calibrate.checked import FloatArray
    from udcp_dsl.predict.oracle import Indices, Oracle, Probabilities


@dataclass(frozen=True)
class Lambda(Stage):
    """The lambda with the lowest mean cost, found on two thirds of the rows with a single threshold for all rows."""

    tuning: Tuning
    rows: int

    name: ClassVar[str] = "lambda"

    @classmethod
    def draw_folds(cls, context: FitContext, budget: StratumBudget) -> tuple[Indices, ...] | None:
        return three_folds(len(budget), np.random.default_rng(context.promise.seed))[:2]

    @classmethod
    def folds_from_halves(cls, halves: tuple[Indices, Indices]) -> tuple[Indices, ...]:
        return halves

    @classmethod
    def fit(cls, context: FitContext, folds: Sequence[Rows]) -> Lambda:
        first, second = folds
        candidates, nonempty = context.candidates or {}, context.promise.nonempty
        rule, harms = context.rule, context.harms(first)

        def threshold(lam: float) -> float:
            scores = true_scores(candidates[lam], first, nonempty=nonempty)
            return make_cell(scores, context.promise.alphas[0], rule, weights=first.weights, harms=harms).threshold

        def mean_cost(lam: float, tau: float) -> float:
            oracle = candidates[lam]
            costs = partial(_costs, oracle, tau, nonempty)
            return float(second.apply(costs, *dict.fromkeys(("inputs", *oracle.reads))).mean())

        with keeping_warnings(CalibrationWarning):  # issued before fitting
            lo, hi = context.oracle.loss.facts.interval
            tuning = tune(list(candidates), threshold, mean_cost, n=len(second), cost_range=(lo, hi))
        return cls(tuning, len(first) + len(second))

    def update(self, context: FitContext) -> FitContext:
        candidates = context.candidates
        return context if candidates is None else replace(context, oracle=candidates[self.tuning.best], candidates=None)

    @property
    def rows_used(self) -> int:
        return self.rows

    def as_dict(self) -> dict[str, Any]:
        return {"tuning": self.tuning.as_dict(), "rows": self.rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], context: FitContext) -> Lambda:
        tuning = Tuning.from_dict(data["tuning"])
        if tuning.best != context.oracle.options.get("lam"):
            raise InputError("its lambda is not the one that was tuned; save it again")
        return cls(tuning, as_whole_number(data["rows"], "rows"))


def _costs(oracle: Oracle, tau: float, nonempty: bool, P: Probabilities, **columns: Any) -> FloatArray:
    rows = Rows(oracle.loss.labels, P, **columns)
    mask = oracle.sets(rows, tau)
    if nonempty:
        mask[np.arange(len(P)), oracle.first(rows)] = True
    return oracle.loss.batch(mask, inputs=rows.inputs)
