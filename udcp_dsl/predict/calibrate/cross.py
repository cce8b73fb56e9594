"""Cross-conformal prediction: every row calibrates once, with a score that was learnt without it.

Fold j of k has m_j rows and a score learnt on the other folds. In fold j, the candidate label y of a new point has the
p-value p_j(y) = (1 + number of the m_j scores at or above its own) / (m_j + 1), and y is in the set if the *mean* of
the k p-values is above alpha. Twice the mean of p-values is a p-value, however they depend on each other: so coverage
is at least 1 - 2 alpha, exactly; in practice it is near 1 - alpha. For equal folds, the mean is (sum of the counts + k)
/ (n + k), so no label is ever left out if k / (n + k) is above alpha. The usual formula, with + 1 instead of + k, is
not a mean of p-values: with one row per fold and dependent scores, it may cover one half although it claims 1 - 2 / (k
+ 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import ceil, floor, lcm

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.predict.calibrate.checked import FloatArray, IntArray, as_scores
from udcp_dsl.predict.calibrate.levels import show_level
from udcp_dsl.predict.calibrate.ranks import RankTable
from udcp_dsl.predict.calibrate.thresholds import CalibrationWarning


def equal_folds(n: int, k: int, rng: np.random.Generator) -> list[IntArray]:
    """Split the rows 0 .. n-1 into k random folds whose sizes differ by at most one; each fold is in rising order.

    >>> [fold.size for fold in equal_folds(11, 3, np.random.default_rng(0))]
    [4, 4, 3]
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 2:
        raise InputError(f"cv is {k!r}: give a number of folds, 2 or more")
    if n < k:
        raise InputError(f"{n} rows cannot be split into {k} folds: give more rows or fewer folds")
    return [np.sort(fold) for fold in np.array_split(rng.permutation(n), int(k))]


def warn_of_many_folds(n: int, k: int, levels: Sequence[Fraction]) -> None:
    """Warn if k folds of n rows have so few rows each that no label is ever left out; say which k would do."""
    for level in levels:
        if _least_p_value(n, k) <= level:
            continue
        # The least p-value is at least k / (n + k), rises with k and falls with n.
        most = floor(n * level / (1 - level))
        fewer = next((j for j in range(min(most, k - 1), 1, -1) if _least_p_value(n, j) <= level), None)
        need = next(rows for rows in count(ceil(k * (1 - level) / level)) if _least_p_value(rows, k) <= level)
        offer = "give more rows" if fewer is None else f"give cv={fewer} or fewer folds, more rows"
        warn(
            f"too few rows for cv={k}: alpha {show_level(level)} needs {need} rows, and there are {n}. So every "
            f"prediction set contains all labels; {offer} or a larger alpha",
            CalibrationWarning,
        )


def _least_p_value(n: int, k: int) -> Fraction:
    """The mean p-value over k equal folds of n rows of a label whose score is above all others."""
    m, larger = divmod(n, k)
    return (Fraction(k - larger, m + 1) + Fraction(larger, m + 2)) / k


@dataclass(frozen=True, eq=False)
class CrossCalibration:
    """The scores of the true labels in each fold, from a score that was learnt on the other folds."""

    folds: tuple[RankTable, ...]

    @classmethod
    def of(cls, scores: Sequence[FloatArray]) -> CrossCalibration:
        """From the scores of the true labels, fold by fold.

        >>> cross = CrossCalibration.of([np.array([1.0, 2.0]), np.array([1.0, 3.0])])
        >>> cross.p_values([np.array([[0.0, 2.0, 4.0]])] * 2).round(4).tolist()
        [[1.0, 0.6667, 0.3333]]
        """
        if any(len(own) == 0 for own in scores) or len(scores) < 2:
            raise InputError("cross-conformal prediction needs at least two folds, each with a row")
        return cls(tuple(RankTable.of(as_scores(own)) for own in scores))

    @property
    def n(self) -> int:
        """The number of calibration rows, over all folds."""
        return sum(fold.n for fold in self.folds)

    def _sums(self, scores: Sequence[FloatArray]) -> tuple[IntArray, int]:
        """The sum of the folds' p-values as integer multiples of 1 / unit, and the unit."""
        unit = lcm(*(fold.n + 1 for fold in self.folds))
        total = np.zeros(scores[0].shape, dtype=np.intp)
        for fold, own in zip(self.folds, scores, strict=True):
            total += (fold.at_least(own) + 1) * (unit // (fold.n + 1))
        return total, unit

    def p_values(self, scores: Sequence[FloatArray]) -> FloatArray:
        """The mean p-value of every label; `scores` has one (n, K) array of new points per fold, by its score."""
        total, unit = self._sums(scores)
        return np.asarray(total / (unit * len(self.folds)), dtype=np.float64)

    def sets(self, scores: Sequence[FloatArray], alpha: Fraction) -> NDArray[np.bool_]:
        """The labels whose mean p-value is above alpha, compared in whole numbers."""
        total, unit = self._sums(scores)
        return np.asarray(total > alpha * unit * len(self.folds) // 1)
