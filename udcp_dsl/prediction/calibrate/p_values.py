"""p-values: the smallest alpha at which each label is left out.

A label with score s is left out at alpha if and only if s is above the threshold, the k-th smallest of n scores: that
is, if fewer than n + 1 - k of the scores are at or above s. With c = number of scores at or above s,

    p = (c + 1) / (n + 1)        and the set at any alpha is {y : p(y) > alpha}, exactly, ties included.

With `confidence` g, p is the g-quantile of Beta(c + 1, n - c). If harm is bounded, p is (the sum of the harms at or
above s + the largest harm of any label) / (n + 1), in units of harm. With weighted points, sums of weights replace the
counts, and the weight of the new point replaces the 1.
"""

from __future__ import annotations

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate.calibration import Calibration
from udcp_dsl.prediction.calibrate.calibration_scores import RankTable
from udcp_dsl.prediction.calibrate.cells import Cell
from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray, IntArray
from udcp_dsl.prediction.calibrate.rule import Rule


def p_values(
    scores: FloatArray,
    calibration: Calibration,
    kept: tuple[RankTable, ...] | None,
    codes: IntArray,
    *,
    draws: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """The p-values of all labels, (n, K), from their `scores`; `codes` (see `Calibration.cells_of`) name the cells.

    `kept` are the calibration scores of each stratum. `draws` in (0, 1], (n, 1), break ties if sets are randomized.
    `weights` (n,) are those of the rows, if the points had weights. Raises an error if neither calibration scores nor
    weights were kept.

    >>> from udcp_dsl.prediction.calibrate import calibrate
    >>> c = calibrate([1.0, 2.0, 2.0], alpha=0.5)
    >>> found = p_values(np.array([[0.0, 2.0, 3.0]]), c, (RankTable.of(np.array([1.0, 2.0, 2.0])),), np.array([[0]]))
    >>> found.tolist()
    [[1.0, 0.75, 0.25]]
    """
    by_label = calibration.label_weights
    if not calibration.weighted and by_label is None and kept is None:
        raise InputError(
            "the predictor was saved by a version before 0.2.0, which kept no calibration scores: calibrate and save "
            "it again to have p-values"
        )
    if calibration.weighted and weights is None:
        raise InputError("calibrated with weights, so new rows need weights, too: give weights=")
    out = np.empty(scores.shape)
    every = np.broadcast_to(codes, scores.shape)
    for code in np.unique(codes).tolist():
        place = every == code
        u, own = (
            None if x is None else np.broadcast_to(x.reshape(-1, 1), scores.shape)[place] for x in (draws, weights)
        )
        if by_label is not None:
            own = np.broadcast_to(by_label, scores.shape)[place]
        if own is not None and (calibration.weighted or by_label is not None):
            out[place] = _of_weighted(scores[place], calibration.all_cells[code], calibration.rule, own)
        elif kept is not None:
            parts = list(kept) if code == len(kept) else [kept[code]]  # the last cell is that of all points
            out[place] = _of_cell(scores[place], parts, calibration.rule, u)
    return out


def _of_cell(scores: FloatArray, parts: list[RankTable], rule: Rule, draws: FloatArray | None) -> FloatArray:
    n = sum(part.n for part in parts)
    if rule.most is not None:
        harm = np.sum([part.harm_at_least(scores) for part in parts], axis=0)
        return np.asarray((harm + float(rule.most)) / (n + 1), dtype=np.float64)
    count = np.sum([part.at_least(scores) for part in parts], axis=0)
    if rule.confidence is not None:
        from scipy.stats import beta  # slow to import

        table = np.append(beta.ppf(float(rule.confidence), np.arange(1, n + 1), np.arange(n, 0, -1)), 1.0)
        return np.asarray(table[count], dtype=np.float64)
    if draws is None:
        return np.asarray((count + 1) / (n + 1), dtype=np.float64)
    above = np.sum([part.at_least(np.nextafter(scores, np.inf)) for part in parts], axis=0)
    above[np.isposinf(scores)] = 0  # the float after infinity is infinity
    return np.asarray((above + draws * (1 + count - above)) / (n + 1), dtype=np.float64)


def _of_weighted(scores: FloatArray, cell: Cell, rule: Rule, weights: FloatArray) -> FloatArray:
    assert cell.scores is not None
    assert cell.weights is not None
    mass = cell.weights if cell.harms is None else cell.weights * cell.harms
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)[np.searchsorted(cell.scores, scores, side="left")]
    most = 1.0 if rule.most is None else float(rule.most)
    return np.asarray((above + weights * most) / (cell.weights.sum() + weights), dtype=np.float64)
