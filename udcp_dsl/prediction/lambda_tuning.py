"""The lambda of an oracle that is tuned: thresholds on one fold, mean costs on a second, by a loss and an oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.diagnostics import keeping_warnings
from udcp_dsl.prediction.calibrate import CalibrationWarning, Tuning, tune
from udcp_dsl.prediction.containers import by_rows

if TYPE_CHECKING:
    from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray, IntArray
    from udcp_dsl.prediction.oracle import Indices, Oracle, Probabilities


def tuned(
    oracles: Mapping[float, Oracle],
    P: Probabilities,
    y: Indices,
    folds: tuple[IntArray, IntArray, IntArray],
    *,
    threshold: Callable[[FloatArray, IntArray], float],
    nonempty: bool,
) -> Tuning:
    """Choose among oracles, one for each lambda, of the same loss; the rows of the third fold are left alone.

    `threshold` makes one of the scores of true labels and the rows that they belong to.
    """
    loss = next(iter(oracles.values())).loss

    def threshold_of(lam: float, rows: IntArray) -> float:
        return threshold(true_scores(oracles[lam], P[rows], y[rows], nonempty=nonempty), rows)

    def mean_cost_of(lam: float, tau: float, rows: IntArray) -> float:
        return float(by_rows(P[rows], partial(_costs, oracles[lam], tau, nonempty)).mean())

    lo, hi = loss.facts.interval
    with keeping_warnings(CalibrationWarning):  # said before the work
        return tune(list(oracles), threshold_of, mean_cost_of, folds=folds, cost_range=(lo, hi))


def _costs(oracle: Oracle, tau: float, nonempty: bool, P: Probabilities) -> FloatArray:
    mask = oracle.sets(P, tau)
    if nonempty:
        mask[np.arange(len(P)), oracle.first(P)] = True
    return oracle.loss.batch(mask)


def true_scores(oracle: Oracle, P: Probabilities, y: Indices, *, nonempty: bool) -> FloatArray:
    """The scores of true labels, as calibration takes them: with `nonempty`, -inf for the first of the order."""
    scores = oracle.score_of(P, y)
    return np.where(oracle.first(P) == y, -np.inf, scores) if nonempty else scores
