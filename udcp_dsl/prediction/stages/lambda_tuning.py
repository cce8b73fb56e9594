"""The lambda of an oracle that is tuned: thresholds on one fold, mean costs at these thresholds on a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from udcp_dsl.diagnostics import InputError, keeping_warnings
from udcp_dsl.prediction.calibrate import CalibrationWarning, Tuning, make_cell, three_folds, tune
from udcp_dsl.prediction.containers import apply_by_rows
from udcp_dsl.prediction.promises.option import as_whole_number
from udcp_dsl.prediction.stages.stage import Stage, ThresholdRows

if TYPE_CHECKING:
    from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray
    from udcp_dsl.prediction.oracle import Indices, Oracle, Probabilities
    from udcp_dsl.prediction.stages.oracle_input import OracleInput
    from udcp_dsl.prediction.stages.setting import Cells, Setting


@dataclass(frozen=True)
class Lambda(Stage):
    """The lambda with the lowest mean cost, found on two thirds of the rows with a single threshold for all rows."""

    tuning: Tuning
    rows: int

    name: ClassVar[str] = "lambda"

    @classmethod
    def takes_part(cls, setting: Setting) -> bool:
        return setting.candidates is not None

    @classmethod
    def deal(cls, setting: Setting, cells: Cells) -> tuple[Indices, ...] | None:
        return three_folds(len(cells), np.random.default_rng(setting.promise.seed))[:2]

    @classmethod
    def split_of(cls, halves: tuple[Indices, Indices]) -> tuple[Indices, ...]:
        return halves

    @classmethod
    def fit(cls, setting: Setting, folds: Sequence[OracleInput], left: ThresholdRows) -> Lambda:
        first, second = folds
        candidates, nonempty = setting.candidates or {}, setting.promise.nonempty
        rule, harms = setting.rule(left.groups), setting.harms(first)

        def threshold(lam: float) -> float:
            scores = true_scores(candidates[lam].with_inputs(first.inputs), first, nonempty=nonempty)
            return make_cell(scores, setting.promise.alphas[:1], rule, weights=first.weights, harms=harms).thresholds[0]

        def mean_cost(lam: float, tau: float) -> float:
            oracle = candidates[lam].with_inputs(second.inputs)
            return float(apply_by_rows(second.P, partial(_costs, oracle, tau, nonempty), *oracle.own_columns).mean())

        with keeping_warnings(CalibrationWarning):  # issued before fitting
            lo, hi = setting.oracle.loss.facts.interval
            tuning = tune(list(candidates), threshold, mean_cost, n=len(second), cost_range=(lo, hi))
        return cls(tuning, len(first) + len(second))

    def settled(self, setting: Setting) -> Oracle:
        return (setting.candidates or {})[self.tuning.best]

    @property
    def rows_used(self) -> int:
        return self.rows

    def as_dict(self) -> dict[str, Any]:
        return {"tuning": self.tuning.as_dict(), "rows": self.rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], setting: Setting) -> Lambda:
        tuning = Tuning.from_dict(data["tuning"])
        if tuning.best != setting.oracle.options.get("lam"):
            raise InputError("its lambda is not the one that was tuned; save it again")
        return cls(tuning, as_whole_number(data["rows"], "rows"))


def _costs(oracle: Oracle, tau: float, nonempty: bool, P: Probabilities, *own: FloatArray) -> FloatArray:
    oracle = oracle.of_rows(*own)
    mask = oracle.sets(P, tau)
    if nonempty:
        mask[np.arange(len(P)), oracle.first(P)] = True
    return oracle.costs(mask)


def true_scores(oracle: Oracle, given: OracleInput, *, nonempty: bool) -> FloatArray:
    """The scores of the true labels for calibration; with `nonempty`, -inf if the true label is first in the order."""
    scores = oracle.score_of(given.P, given.truth)
    return np.where(oracle.first(given.P) == given.truth, -np.inf, scores) if nonempty else scores
