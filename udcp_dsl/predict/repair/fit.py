"""Which repair to adopt: candidates by cross-validation, or p as it is.

Candidates are the exponent alone, and exponent and offsets with a penalty of c pseudo-observations per label, each on
p_w for several w. Five folds judge them by log loss; a candidate is adopted only if it beats p as it is by two standard
errors of the paired difference over rows. w is chosen by the exponent alone, which is quick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.predict.calibrate.checked import as_classes
from udcp_dsl.predict.repair.log_loss import (
    LOG_ZERO,
    MAX_EXPONENT,
    Floats,
    Indices,
    PenalizedLogLoss,
    Point,
    minimum,
)
from udcp_dsl.predict.repair.reliability import Reliability, ReliabilityCurve
from udcp_dsl.predict.repair.value import HeldOutLoss, Repair
from udcp_dsl.rows.columns import as_weights

PSEUDO_COUNTS = (20.0, 5.0, 2.0, 1.0, 0.5)  # strong to weak: each fit starts at the result of the previous one
SMOOTHINGS = (0.0, 0.001, 0.01, 0.1, 0.3)
FOLDS = 5
_FLOOR = 1e-6  # divided by K: the least probability in a log loss, so that a single p of 0 does not dominate
_MIN_ROWS = 2 * FOLDS
_MAX_CELLS = 1 << 24  # entries of the matrix that is fitted on; if there are more, rows are sampled
# Tolerances in nats over all rows: _ROUGH is enough to compare candidates; the final fit is as exact as float64 allows.
_ROUGH, _FINE = 1e-2, 1e-12


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows with positive weights that sum to the effective number of rows, (sum of w)^2 / sum of w^2."""

    P: Floats
    y: Indices
    weights: Floats

    @property
    def K(self) -> int:
        return int(self.P.shape[1])

    def __len__(self) -> int:
        return len(self.y)

    def logs(self, smoothing: float) -> Floats:
        p_w = self.P if smoothing == 0 else (1 - smoothing) * self.P + smoothing / self.K
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(p_w), LOG_ZERO)

    @property
    def absent(self) -> tuple[int, ...]:
        return tuple(np.flatnonzero(np.bincount(self.y, minlength=self.K) == 0).tolist())

    def compare(self, before: Floats, after: Floats) -> HeldOutLoss:
        """The mean losses before and after, and the standard error of their paired difference."""
        share = self.weights / self.weights.sum()
        difference = after - before
        effective = 1 / float(share @ share)
        spread = difference - share @ difference
        error = math.sqrt(float(share**2 @ spread**2) * effective / max(effective - 1, 1e-9))
        return HeldOutLoss(float(share @ before), float(share @ after), error)


@dataclass(frozen=True)
class Candidate:
    """A repair to try on p smoothed by w: the exponent alone (`c` is None), or exponent and offsets with penalty c."""

    smoothing: float
    c: float | None


@dataclass(frozen=True, eq=False)
class HeldOut:
    """For each row, from a fit without its fold: the log loss, the highest p', and whether its label is the truth."""

    log_losses: Floats
    highest: Floats
    right: npt.NDArray[np.bool_]

    @classmethod
    def empty(cls, n: int) -> HeldOut:
        return cls(np.empty(n), np.empty(n), np.empty(n, dtype=bool))

    def put(self, rows: Indices, y: Indices, p: Floats, log_losses: Floats) -> None:
        likeliest = p.argmax(axis=1)
        self.highest[rows] = p[np.arange(len(p)), likeliest]
        self.right[rows] = likeliest == y
        self.log_losses[rows] = log_losses


def fit_repair(
    P: Any,
    y: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    kind: Literal["auto", "temperature"] = "auto",
    rng: np.random.Generator,
) -> Repair:
    """Fit a repair of p on rows that are used for nothing else.

    Parameters
    ----------
    P : array (n, K)
        Probabilities.
    y : array (n,)
        Positions of the true labels.
    weights : array (n,), optional
        Nonnegative row weights; rows of weight 0 are left out.
    kind : {"auto", "temperature"}
        "auto" chooses by cross-validation, and leaves p as it is unless that is worse by two standard errors.
        "temperature" fits the exponent alone by maximum likelihood and always adopts it.
    rng : numpy.random.Generator
        Draws the folds.

    Returns
    -------
    Repair

    Raises
    ------
    InputError
        If rows, labels or weights are invalid, or a temperature cannot be fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(3)
    >>> sharp = rng.dirichlet([1, 1, 1], 500)
    >>> y = [rng.choice(3, p=p) for p in sharp]
    >>> flat = np.sqrt(sharp) / np.sqrt(sharp).sum(axis=1, keepdims=True)
    >>> print(fit_repair(flat, y, rng=rng))
    probabilities repaired: sharpened (exponent 1.7); log loss 0.911 -> 0.881 on held-out folds, fitted on 500 rows
    """
    sample = _sample(P, y, weights, rng)
    if kind == "temperature":
        return _temperature(sample, rng)
    if kind != "auto":
        raise InputError(f"kind is {kind!r}: give 'auto' or 'temperature'")
    n, absent = len(sample), sample.absent
    if n < _MIN_ROWS:
        return Repair(kind="auto", n_rows=n, absent=absent)
    floor = -math.log(_FLOOR / sample.K)
    before = np.minimum(-_of_truth(sample.logs(0.0), sample.y), floor)
    folds = rng.permutation(n) % FOLDS
    alone = {Candidate(w, None): found for w in SMOOTHINGS for found in _held_out(sample, w, (None,), folds)}
    smoothing = _best(sample, alone).smoothing
    paths = _held_out(sample, smoothing, PSEUDO_COUNTS, folds)
    tried = alone | {Candidate(smoothing, c): found for c, found in zip(PSEUDO_COUNTS, paths, strict=True)}
    best = _best(sample, tried)
    losses = sample.compare(before, tried[best].log_losses)
    if not losses.is_better:
        return Repair(kind="auto", n_rows=n, losses=losses, absent=absent, reliability=_reliability(sample, None))
    at = fitted(sample, best)
    offsets = None if best.c is None else at.offsets
    return Repair(at.exponent, offsets, best.smoothing, "auto", n, losses, absent, _reliability(sample, tried[best]))


def _sample(P: Any, y: ArrayLike, weights: ArrayLike | None, rng: np.random.Generator) -> Sample:
    P = np.asarray(P)
    if P.ndim != 2 or P.dtype.kind != "f" or P.shape[1] < 1:
        raise InputError(f"P is an array of {P.dtype}, shape {P.shape}: give probabilities (n, K)")
    _, truth = as_classes(y, P.shape[1], len(P))
    w = np.ones(len(P)) if weights is None else as_weights(weights, len(P))
    rows = np.flatnonzero(w)
    if len(rows) * P.shape[1] > _MAX_CELLS:
        rows = np.sort(rng.permutation(rows)[: max(_MAX_CELLS // P.shape[1], _MIN_ROWS)])
    own = w[rows] / w[rows].max(initial=0.0)  # scaled so that no square overflows
    own = own * (own.sum() / (own @ own)) if len(own) else own
    return Sample(np.array(P[rows], dtype=np.float64, order="C"), truth[rows], own)


def _of_truth(logs: Floats, y: Indices) -> Floats:
    return logs[np.arange(len(y)), y]


def _held_out(
    sample: Sample, smoothing: float, penalties: tuple[float | None, ...], folds: Indices, *, prior: bool = True
) -> tuple[HeldOut, ...]:
    """The held-out results of all rows, for each penalty."""
    logs = sample.logs(smoothing)
    floor = -math.log(_FLOOR / sample.K)
    known = _of_truth(logs, sample.y) > LOG_ZERO  # rows whose truth has p = 0 are not fitted on
    found = tuple(HeldOut.empty(len(sample)) for _ in penalties)
    start = Point(0.0, np.zeros(sample.K))
    for fold in range(FOLDS):
        training, rest = np.flatnonzero((folds != fold) & known), np.flatnonzero(folds == fold)
        fitted, judged = (PenalizedLogLoss(logs[r], sample.y[r], sample.weights[r]) for r in (training, rest))
        at = start
        for held_out, c in zip(found, penalties, strict=True):
            at = minimum(replace(fitted, c=c, prior=prior), at, _ROUGH)
            if c == penalties[0]:
                start = at  # for the next fold
            here = replace(judged, c=c).evaluate(at)
            held_out.put(rest, judged.y, here.p, np.minimum(here.log_losses, floor))
    return found


def _best(sample: Sample, tried: dict[Candidate, HeldOut]) -> Candidate:
    """The candidate with the lowest mean loss; the first of several."""
    return min(tried, key=lambda candidate: float(sample.weights @ tried[candidate].log_losses))


def _reliability(sample: Sample, after: HeldOut | None) -> Reliability:
    """The reliability of p as it is and, if a repair was adopted, of its held-out results `after`."""
    highest, right = sample.P.max(axis=1), sample.P.argmax(axis=1) == sample.y
    before = ReliabilityCurve.of(highest, right, sample.weights)
    if after is None:
        return Reliability(before)
    return Reliability(before, ReliabilityCurve.of(after.highest, after.right, sample.weights))


def fitted(sample: Sample, candidate: Candidate) -> Point:
    logs = sample.logs(candidate.smoothing)
    rows = np.flatnonzero(_of_truth(logs, sample.y) > LOG_ZERO)
    objective = PenalizedLogLoss(logs[rows], sample.y[rows], sample.weights[rows], candidate.c)
    return minimum(objective, Point(0.0, np.zeros(sample.K)), _FINE)


def _temperature(sample: Sample, rng: np.random.Generator) -> Repair:
    logs = sample.logs(0.0)
    rows = np.flatnonzero(_of_truth(logs, sample.y) > LOG_ZERO)
    if not len(rows):
        raise InputError("no temperature can be fitted: every true label of its rows has probability 0")
    objective = PenalizedLogLoss(logs[rows], sample.y[rows], sample.weights[rows], prior=False)
    low, high = (_slope(objective, sign * math.log(MAX_EXPONENT)) for sign in (-1, 1))  # convex in a: one sign change
    reliability = None
    if low < 0 < high:
        exponent = minimum(objective, Point(0.0, np.zeros(sample.K)), _FINE).exponent
        if len(sample) >= _MIN_ROWS:
            folds = rng.permutation(len(sample)) % FOLDS
            (found,) = _held_out(sample, 0.0, (None,), folds, prior=False)
            reliability = _reliability(sample, found if exponent != 1.0 else None)
    else:
        flat, where = low == high == 0, f"on the {len(sample)} rows used to fit it"
        exponent = 1.0 if flat else 1 / MAX_EXPONENT if low >= 0 else MAX_EXPONENT
        warn(
            f"the exponent stays 1: {where}, the log loss is the same for every exponent"
            if flat
            else f"the exponent is at its limit, {exponent:g}: {where}, the likeliest label is always right, or the "
            "probabilities carry no information"
        )
    return Repair(exponent, kind="temperature", n_rows=len(sample), absent=sample.absent, reliability=reliability)


def _slope(objective: PenalizedLogLoss, log_exponent: float) -> float:
    at = Point(log_exponent, np.zeros(objective.logs.shape[1]))
    return float(objective.quadratic(objective.evaluate(at)).gradient[0])
