"""Label shift: how the mix of labels among new rows, whose truth is unknown, differs from that of calibration.

If p' is right for the old mix q and only the mix has changed, new rows have p''(y) proportional to p'(y) r_y, with
r = new mix / q. The new mix m maximises (by EM, Saerens et al., 2002, here with c pseudo-observations per label from
the old mix)

    sum over new rows of log (sum over y of p'(y) m_y / q_y) + c K * sum over y of q_y log m_y,

which is concave in m. q is the mean of p' over the calibration rows, not their label counts: if the two differ, EM
would drift to the labels whose p' is too high. Calibration rows are weighted by r of their true labels.
Estimated ratios are clipped to between 1/20 and 20; ratios of known mixes are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.repair.log_loss import Floats
from udcp_dsl.predict.repair.value import MAX_OFFSET, Repair
from udcp_dsl.rows.columns import first_repeated, label_names, positions_of_labels

PSEUDO_COUNT = 5.0
CLIP = 20.0
_MAX_STEPS, _STEP_TOLERANCE = 1000, 1e-9
_MAX_CELLS = 1 << 24  # of a larger matrix, only every n-th row is used


@dataclass(frozen=True, eq=False)
class LabelShift:
    """How the frequencies of labels have changed.

    Parameters
    ----------
    old, new : array, shape (K,)
        Share of each label, before and now. Each sums to 1; a label may be absent now, but not before.
    n_rows : int, default 0
        Number of unlabelled rows from which the new shares were estimated; 0 if both are known.
    labels : sequence of str, optional
        Names of the labels, in the order of the shares. `adapt` matches them with the labels of the loss; without
        names, shares are in the order of the loss.

    Examples
    --------
    >>> old, new = np.array([0.5, 0.5]), np.array([0.8, 0.2])
    >>> print(LabelShift(old, new, labels=("flu", "cold")))
    the mix of labels has moved by 30.0%, as given: flu 50.0% -> 80.0%, cold 50.0% -> 20.0%
    """

    old: Floats
    new: Floats
    n_rows: int = 0
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("old", "new"):
            object.__setattr__(self, name, _checked_mix(getattr(self, name), name))
        object.__setattr__(self, "labels", label_names(self.labels, "labels"))
        if len(set(self.labels)) < len(self.labels):
            raise InputError(f"labels: {first_repeated(self.labels)!r} appears twice")
        if self.old.shape != self.new.shape or len(self.labels) not in (0, len(self.old)):
            raise InputError("the mixes and the label names differ in length: give one entry per label")
        if not bool((self.old > 0).all()):
            raise InputError("a label has a share of 0 in the old mix: the scores of its rows are unknown")
        if isinstance(self.n_rows, bool) or not isinstance(self.n_rows, int) or self.n_rows < 0:
            raise InputError(f"n_rows is {self.n_rows!r}: give a whole number, 0 or more")

    def for_labels(self, labels: Sequence[str]) -> LabelShift:
        """The shift with its shares in the order of these labels.

        Parameters
        ----------
        labels : sequence of str
            Names of the labels of a loss.

        Returns
        -------
        LabelShift
            Shares are matched by name; if this shift has no names, by position.

        Raises
        ------
        InputError
            The names are not those of the labels, or there is another number of them.

        Examples
        --------
        >>> shift = LabelShift([0.9, 0.1], [0.6, 0.4], labels=["cold", "flu"])
        >>> shift.for_labels(["flu", "cold"]).new.tolist()
        [0.4, 0.6]
        """
        if len(self.old) != len(labels):
            raise InputError(f"the mixes are of {len(self.old)} labels, and the loss has {len(labels)}")
        order = positions_of_labels(self.labels or labels, labels, "labels of the LabelShift")
        return replace(self, old=self.old[order], new=self.new[order], labels=tuple(labels))

    @cached_property
    def ratios(self) -> Floats:
        """How much more frequent each label is among the new rows; between 1/20 and 20 if estimated."""
        found = self.new / self.old
        return np.clip(found, 1 / CLIP, CLIP) if self.n_rows else found

    @property
    def distance(self) -> float:
        """Total variation distance, the share of rows whose label would have to change."""
        return float(np.abs(self.new - self.old).sum() / 2)

    def weights(self, y: npt.NDArray[np.integer]) -> Floats:
        """Weights of calibration rows, by their true labels.

        Coverage is exact only for the true ratios.

        Parameters
        ----------
        y : array of int
            True labels, as positions.

        Returns
        -------
        array of float
            One weight per row.
        """
        return np.asarray(self.ratios[y])

    def adapted(self, repair: Repair) -> Repair:
        """A repair for the new frequencies.

        Parameters
        ----------
        repair : Repair
            The repair for the old frequencies.

        Returns
        -------
        Repair
            The same repair, with the ratios as additional offsets.
        """
        before = 0.0 if repair.offsets is None else repair.offsets
        logs = np.log(np.maximum(self.ratios, np.finfo(float).tiny))  # a known ratio may be 0
        offsets = np.clip(before + logs, -MAX_OFFSET, MAX_OFFSET)
        return replace(repair, offsets=offsets, losses=None)

    def describe(self, labels: Sequence[str] = (), most: int = 3) -> str:
        """One sentence on how far the frequencies have moved, and for which labels most.

        Parameters
        ----------
        labels : sequence of str, optional
            Names of the labels.
        most : int, default 3
            Number of labels to name.

        Returns
        -------
        str
            The sentence.
        """
        where = f" on {self.n_rows:,} new rows" if self.n_rows else ", as given"
        return f"the mix of labels has moved by {self.distance:.1%}{where}: {self.moved(labels, most)}"

    def moved(self, labels: Sequence[str] = (), most: int = 3) -> str:
        """The labels whose frequency has changed most.

        Parameters
        ----------
        labels : sequence of str, optional
            Names of the labels.
        most : int, default 3
            Number of labels to name.

        Returns
        -------
        str
            Old and new frequencies of each.
        """
        labels = labels or self.labels or [f"label {i}" for i in range(len(self.old))]
        order = np.argsort(-np.abs(self.new - self.old), kind="stable")[:most]
        return ", ".join(f"{labels[i]} {self.old[i]:.1%} -> {self.new[i]:.1%}" for i in order)

    def __str__(self) -> str:
        return self.describe()


def mean_mix(P: npt.NDArray[np.floating]) -> Floats:
    """The mix of labels among rows by their repaired probabilities (n, K); no label has 0."""
    mix = (P.sum(axis=0, dtype=np.float64) + 1 / P.shape[1]) / (len(P) + 1)  # plus one row, spread over all labels
    return np.asarray(mix / mix.sum())


def estimate_label_shift(
    old: npt.NDArray[np.floating], new: npt.NDArray[np.floating], *, pseudo_count: float = PSEUDO_COUNT
) -> LabelShift:
    """Estimate the mix of labels among new rows from their repaired probabilities alone.

    Parameters
    ----------
    old : array (n, K) or (K,)
        Repaired probabilities of calibration rows, or their mix (`mean_mix`).
    new : array (m, K)
        Repaired probabilities of new rows, by the same repair.
    pseudo_count : float
        Observations per label, on average, from the old mix. With few new rows, the new mix stays near it.

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
    if old.ndim not in (1, 2) or new.ndim != 2 or old.shape[-1] != new.shape[1] or 0 in old.shape or 0 in new.shape:
        raise InputError(f"the rows have shapes {old.shape} and {new.shape}: give probabilities (n, K) of both")
    if not 0 <= pseudo_count < np.inf:
        raise InputError(f"pseudo_count is {pseudo_count!r}: give a number, 0 or more")
    mix = old.astype(np.float64) if old.ndim == 1 else mean_mix(old)
    P = new[:: max(1, -(-new.size // _MAX_CELLS))].astype(np.float64)
    prior = pseudo_count * len(mix) * mix
    found = mix
    for _ in range(_MAX_STEPS):
        ratios = found / mix
        counts = ratios * ((1 / np.maximum(P @ ratios, np.finfo(float).tiny)) @ P) + prior
        before, found = found, counts / counts.sum()
        if float(np.abs(found - before).sum()) <= _STEP_TOLERANCE:
            break
    return LabelShift(mix, found, len(new))


def _checked_mix(mix: object, name: str) -> Floats:
    try:
        found = np.array(mix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the {name} mix is not one number per label: {error}") from error
    if found.ndim != 1 or not len(found) or not bool((found >= 0).all()) or not abs(float(found.sum()) - 1) < 1e-6:
        raise InputError(f"the {name} mix must have one share per label, each 0 or more, with sum 1")
    found.flags.writeable = False
    return found
