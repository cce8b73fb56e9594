"""Label shift: how the mix of labels among new rows, whose truth is unknown, differs from that of calibration.

If p' is right for the old mix q and only the mix has moved, new rows have p''(y) proportional to p'(y) r_y with r = new
mix / q. The new mix m maximises (Saerens et al., 2002, by EM, here with c pseudo-observations per label at the old mix)

    sum over new rows of log (sum over y of p'(y) m_y / q_y) + c K * sum over y of q_y log m_y,

which is concave in m. q is the mean of p' over the calibration rows, not their label counts: where the two differ, EM
would run off to the labels whose p' is too high. Calibration rows are weighted by r of their true labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.probability_repair.penalized import Floats
from udcp_dsl.prediction.probability_repair.value import MAX_OFFSET, Repair

PSEUDO_COUNT = 5.0
CLIP = 20.0
_MAX_STEPS, _ENOUGH = 1000, 1e-9
_MAX_CELLS = 1 << 24  # of more, rows at equal distances are taken


@dataclass(frozen=True, eq=False)
class LabelShift:
    """The old and the new mix of labels, each (K,) and summing to 1, and the number of new rows."""

    old: Floats
    new: Floats
    n_rows: int

    @cached_property
    def ratios(self) -> Floats:
        """How much more frequent each label is among the new rows, from 1/20 to 20."""
        return np.clip(self.new / self.old, 1 / CLIP, CLIP)

    @property
    def distance(self) -> float:
        """Total variation between the mixes: the share of rows whose label would have to change."""
        return float(np.abs(self.new - self.old).sum() / 2)

    def weights(self, y: npt.NDArray[np.integer]) -> Floats:
        """The weights of calibration rows, by their true labels. Coverage is exact only for the true ratios."""
        return np.asarray(self.ratios[y])

    def adapted(self, repair: Repair) -> Repair:
        """The repair for the new mix: the ratios are further offsets."""
        before = 0.0 if repair.offsets is None else repair.offsets
        offsets = np.clip(before + np.log(self.ratios), -MAX_OFFSET, MAX_OFFSET)
        return replace(repair, offsets=offsets, losses=None)

    def describe(self, labels: Sequence[str], most: int = 3) -> str:
        """One sentence: how far the mix has moved, and the labels that have moved the most."""
        change = self.new - self.old
        order = np.argsort(-np.abs(change), kind="stable")[:most]
        moved = ", ".join(f"{labels[i]} {self.old[i]:.1%} -> {self.new[i]:.1%}" for i in order)
        return f"the mix of labels has moved by {self.distance:.1%} on {self.n_rows:,} new rows: {moved}"


def estimate_label_shift(
    old: npt.NDArray[np.floating], new: npt.NDArray[np.floating], *, pseudo_count: float = PSEUDO_COUNT
) -> LabelShift:
    """Estimate the mix of labels among new rows from their repaired probabilities alone.

    Parameters
    ----------
    old : array (n, K)
        Repaired probabilities of calibration rows.
    new : array (m, K)
        Repaired probabilities of new rows, by the same repair.
    pseudo_count : float
        Observations per label, on average, that speak for the old mix. With few new rows the mix stays near it.

    Returns
    -------
    LabelShift

    Raises
    ------
    InputError
        If there are no rows, or they have different numbers of labels.

    Examples
    --------
    >>> old = np.repeat([[0.9, 0.1], [0.1, 0.9]], 500, axis=0)
    >>> new = np.repeat([[0.9, 0.1], [0.1, 0.9]], [740, 260], axis=0)
    >>> estimate_label_shift(old, new, pseudo_count=0.0).new.round(3).tolist()
    [0.8, 0.2]
    """
    if old.ndim != 2 or new.ndim != 2 or old.shape[1] != new.shape[1] or 0 in old.shape or 0 in new.shape:
        raise InputError(f"the rows have shapes {old.shape} and {new.shape}: give probabilities (n, K) of both")
    if not 0 <= pseudo_count < np.inf:
        raise InputError(f"pseudo_count is {pseudo_count!r}: give a number from 0")
    K = old.shape[1]
    mix = (old.sum(axis=0, dtype=np.float64) + 1 / K) / (len(old) + 1)  # one row spread over all: no label has 0
    mix /= mix.sum()
    P = new[:: max(1, -(-new.size // _MAX_CELLS))].astype(np.float64)
    prior = pseudo_count * K * mix
    found = mix
    for _ in range(_MAX_STEPS):
        ratios = found / mix
        counts = ratios * ((1 / np.maximum(P @ ratios, np.finfo(float).tiny)) @ P) + prior
        before, found = found, counts / counts.sum()
        if float(np.abs(found - before).sum()) <= _ENOUGH:
            break
    return LabelShift(mix, found, len(new))
