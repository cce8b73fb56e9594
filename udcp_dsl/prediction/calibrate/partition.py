"""A partition of the rows: each row is in exactly one cell, whichever threshold applies to it.

The cells of a calibration by difficulty overlap, and with pooling a small cell uses the threshold of all points. Here
a row belongs to one cell: that of all rows, of its group, of its class, between two edges of bins, or on an edge.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from udcp_dsl.prediction.calibrate.calibration import Calibration
from udcp_dsl.prediction.calibrate.calibration_scores import CalibrationScores, RankTable
from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray, Groups, IntArray, group_names
from udcp_dsl.prediction.calibrate.difficulty import bin_cells, bin_names


def cell_of_row(
    calibration: Calibration, n: int, *, groups: Groups | None, y: IntArray, difficulty: FloatArray | None
) -> IntArray:
    """The index of the cell of each of n rows; the number of cells for a group that was not calibrated."""
    if calibration.by_class:
        return y.astype(np.intp)
    if calibration.by_difficulty:
        assert difficulty is not None
        return bin_cells(difficulty, calibration.edges)
    if calibration.is_marginal:
        return np.zeros(n, dtype=np.intp)
    index = {name: i for i, name in enumerate(calibration.groups)}
    return np.array([index.get(name, len(index)) for name in group_names(groups, n)], dtype=np.intp)


def cell_names(calibration: Calibration) -> list[str | int]:
    """What each cell belongs to: a group or a bin by its name, a class by its position, all rows by ""."""
    many = len(calibration.cells)
    if calibration.by_class:
        return list(range(many))
    if calibration.by_difficulty:
        names = bin_names(calibration.edges)
        return [names[cell // 2] for cell in range(many)]  # an edge belongs to the bin below it
    return list(calibration.groups) if calibration.by_name else [""]


def thinned(kept: CalibrationScores, calibration: Calibration) -> CalibrationScores:
    """The scores to keep in a file: thinned if there are many, with those at the thresholds kept."""
    rule, names = calibration.rule, cell_names(calibration)
    return kept.thinned(
        [
            [rule.rank(counts.n, _level(calibration, name, alpha)) for alpha in calibration.alphas if rule.most is None]
            for name, counts in zip(names, kept.cells[0], strict=True)
        ]
    )


def _level(calibration: Calibration, name: str | int, alpha: Fraction) -> Fraction:
    """The alpha of a cell."""
    return calibration.own_level(name if isinstance(name, str) else None, alpha)


def threshold_rank(calibration: Calibration, cell: int, alpha: Fraction, scores: RankTable) -> int | None:
    """The rank of the threshold among the scores of a cell, or None if no rank was fixed in advance.

    It is None if harm is bounded, if the cell has too few points for a threshold of its own, and, by difficulty, if
    the threshold comes from points inside and on the edge together.
    """
    own, rule, at_alpha = calibration.cells[cell], calibration.rule, alpha
    alpha = _level(calibration, cell_names(calibration)[cell], alpha)
    if rule.most is not None or own.n != scores.n or own.n < rule.needed(alpha):
        return None
    k = rule.rank(scores.n, alpha)
    tau = own.thresholds[calibration.alphas.index(at_alpha)]
    at = int(np.searchsorted(scores.upto, k))
    return k if k <= scores.n and at < scores.values.size and scores.values[at] == tau else None
