"""Reliability of p on held-out rows: how often the likeliest label is right, compared with its probability.

Rows are binned by their highest probability q into ten bins of equal size, or fewer if a bin would have less than 20
rows. So all bins are about equally informative, whatever the values of q. Rows with equal q share a bin. The expected
calibration error is |share right - mean q| of a row's bin, averaged over rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate.checked import RESAVE, decode, fields
from udcp_dsl.predict.repair.log_loss import Floats

MAX_BINS, _ROWS_PER_BIN = 10, 20


class Bin(NamedTuple):
    """Mean highest probability, share of rows whose likeliest label is right, and number of rows, by weight."""

    probability: float
    right: float
    n: float


@dataclass(frozen=True)
class ReliabilityCurve:
    """The bins, by rising probability."""

    bins: tuple[Bin, ...]

    def __post_init__(self) -> None:
        valid = all(0 <= b.probability <= 1 and 0 <= b.right <= 1 and 0 < b.n < math.inf for b in self.bins)
        probabilities = [b.probability for b in self.bins]
        rising = all(low < high for low, high in pairwise(probabilities))
        if not (valid and rising and 1 <= len(self.bins) <= MAX_BINS):
            raise InputError(f"reliability: expected 1 to {MAX_BINS} bins by rising probability; {RESAVE}")

    @classmethod
    def of(cls, highest: Floats, right: npt.NDArray[np.bool_], weights: Floats) -> ReliabilityCurve:
        """From the highest probability of each row, whether its likeliest label is right, and positive weights that
        sum to the effective number of rows."""
        # Rounded, so that values that differ only in their last bits are equal.
        values, place = np.unique(np.minimum(highest.round(9), 1.0), return_inverse=True)
        mass = np.bincount(place, weights=weights)
        total = float(mass.sum())
        n_bins = max(1, min(MAX_BINS, int(total // _ROWS_PER_BIN)))
        middle = (np.cumsum(mass) - mass / 2) / total  # equal values go to the bin of their middle
        bin_of = np.minimum((n_bins * middle).astype(np.intp), n_bins - 1)
        counts = np.bincount(bin_of, weights=mass)
        probability = np.bincount(bin_of, weights=mass * values)
        correct = np.bincount(bin_of[place], weights=weights * right)
        there = np.flatnonzero(counts)
        found = np.minimum(np.stack([probability[there], correct[there]]) / counts[there], 1.0)
        return cls(tuple(map(Bin, *found.tolist(), counts[there].tolist())))

    @property
    def n(self) -> float:
        """Number of rows, by weight."""
        return sum(b.n for b in self.bins)

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return sum(b.n * abs(b.right - b.probability) for b in self.bins) / self.n

    @property
    def chance(self) -> float:
        """The approximate error from chance alone, if the likeliest label were right as often as p says."""
        deviations = (math.sqrt(b.n * b.probability * (1 - b.probability)) for b in self.bins)
        return math.sqrt(2 / math.pi) * sum(deviations) / self.n

    @property
    def verdict(self) -> str:
        """The finding, as the end of a sentence that begins "probabilities are". p is off if the share right differs
        from it by two standard errors over all rows, or if the error is twice what chance explains."""
        excess = sum(b.n * (b.right - b.probability) for b in self.bins)
        deviation = math.sqrt(sum(b.n * b.probability * (1 - b.probability) for b in self.bins))
        if abs(excess) > 2 * deviation:
            return "underconfident" if excess > 0 else "overconfident"
        if self.error > 2 * self.chance:
            return "overconfident for some rows and underconfident for others"
        return "right as often as they say"

    def as_list(self) -> list[list[float]]:
        """Plain data for JSON, from which `from_list` restores an equal value."""
        return [list(b) for b in self.bins]

    @classmethod
    def from_list(cls, data: object) -> ReliabilityCurve:
        """Inverse of `as_list`; refuses anything else."""
        bins = [decode(b, "reliability") for b in data] if isinstance(data, list) else []
        if not all(len(b) == len(Bin._fields) for b in bins):
            raise InputError(f"reliability: expected {len(Bin._fields)} numbers for each bin; {RESAVE}")
        return cls(tuple(Bin(*b) for b in bins))


@dataclass(frozen=True)
class Reliability:
    """The reliability of p before and after repair by fits that did not see the row; `after` is None if p is kept."""

    before: ReliabilityCurve
    after: ReliabilityCurve | None = None

    @property
    def finding(self) -> str:
        """The result in words.

        >>> flat, sharp = (ReliabilityCurve((Bin(q, 0.8, 400.0),)) for q in (0.5, 0.79))
        >>> Reliability(flat, sharp).finding
        'probabilities were underconfident; after repair they are right as often as they say'
        """
        if self.after is None:
            return f"probabilities are {self.before.verdict}, and unchanged"
        if self.before.verdict == self.after.verdict:
            return f"probabilities are {self.before.verdict}, before and after repair"
        return f"probabilities were {self.before.verdict}; after repair they are {self.after.verdict}"

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, from which `from_dict` restores an equal value."""
        return {"before": self.before.as_list(), "after": None if self.after is None else self.after.as_list()}

    @classmethod
    def from_dict(cls, data: object) -> Reliability:
        """Inverse of `as_dict`; refuses anything else."""
        d = fields(data, ("before", "after"), "reliability")
        after = None if d["after"] is None else ReliabilityCurve.from_list(d["after"])
        return cls(ReliabilityCurve.from_list(d["before"]), after)
