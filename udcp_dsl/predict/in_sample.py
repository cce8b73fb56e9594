"""The effect of the thresholds on their own rows: the least covered rows, and the share of empty sets.

The coverage of all these rows is as requested, by construction. That of a class or of the hardest rows is not, so it
shows without test rows which of them are covered too rarely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.measure.coverage import LeastCovered, share_text
from udcp_dsl.measure.limits import LimitMeasure, limit_lines, limit_points, measure_limits
from udcp_dsl.predict.oracle import SolvingOracle
from udcp_dsl.rows.columns import BlockedMatrix
from udcp_dsl.rows.rows import highest

if TYPE_CHECKING:
    from udcp_dsl.predict.calibrate.checked import FloatArray
    from udcp_dsl.predict.chain import Fitted
    from udcp_dsl.rows.rows import Rows
    from udcp_dsl.showing import Line

ROWS = "on the calibration rows"
_MAX_CELLS = 1 << 22  # the maximum number of entries (rows times labels) of the sets that are computed
_MAX_LIMIT_ROWS = 2000  # the maximum number of rows that limits are measured on


@dataclass(frozen=True)
class InSample:
    """Results on the calibration rows at one alpha. `empty` is the share of empty sets, None if it would take too long
    to find; `limits` are the limits of the spec, measured on some of the rows."""

    least_covered: LeastCovered
    empty: float | None
    limits: tuple[LimitMeasure, ...] = ()
    unit: str | None = None

    @property
    def lines(self) -> tuple[Line, ...]:
        """The results in words."""
        empty = () if not self.empty else (f"empty sets {ROWS}: {share_text(self.empty)}",)
        limits = limit_lines(self.limits, self.least_covered.overall.coverage, self.unit)
        about = (*empty, *(f"limit {line}" for line in limits))
        return (*self.least_covered.lines(), *about)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        limits = [vars(x) for x in self.limits]
        return {**self.least_covered.as_dict(), "empty": self.empty, "limits": limits}


def in_sample(fitted: Fitted, rows: Rows, prepared: Rows, scores: FloatArray) -> InSample | None:
    """The results from the scores of the true labels; None with row weights or a bound on harm.

    Thresholds are not randomised here, even if the sets will be.
    """
    context, thresholds = fitted.context, fitted.thresholds
    if thresholds.calibration.weighted or context.harm is not None:
        return None
    loss = context.oracle.loss
    top = rows.highest_probabilities if prepared.P is rows.P else highest(prepared.P)
    covered = scores <= _own_threshold(thresholds.tau(prepared), prepared)
    least = LeastCovered.of_rows(fitted.alpha, loss.labels, prepared.truth, covered, top, context.promise, ROWS)
    empty = _empty_share(fitted, prepared, np.flatnonzero(~covered))
    return InSample(least, empty, _limits(fitted, prepared), loss.unit)


def _own_threshold(tau: float | FloatArray, rows: Rows) -> FloatArray:
    """The threshold of each row's true label."""
    at = np.atleast_2d(tau)
    every = np.broadcast_to(at, (len(rows), at.shape[1]))
    return np.asarray(every[np.arange(len(rows)), rows.truth if at.shape[1] > 1 else 0])


def _limits(fitted: Fitted, rows: Rows) -> tuple[LimitMeasure, ...]:
    """The limits measured on the first of the threshold rows, on which their multipliers were not found."""
    limits = fitted.context.oracle.loss.limits
    if not limits or isinstance(rows.P, BlockedMatrix) or isinstance(fitted.context.oracle, SolvingOracle):
        return ()
    some = rows.take(slice(0, max(1, min(_MAX_LIMIT_ROWS, _MAX_CELLS // rows.P.shape[1]))))
    sets, stage = fitted.sets(some), fitted.find("multipliers")
    covered = sets[np.arange(len(sets)), some.truth]
    points = limit_points(limits, sets, some.truth, some.inputs)
    return measure_limits(limits, points, covered, None if stage is None else stage.effects.multipliers)


def _empty_share(fitted: Fitted, rows: Rows, missed: Any) -> float | None:
    """The share of empty sets. An empty set misses its truth, so only the sets of missed rows are computed, and only
    for a sample if there are many."""
    if fitted.context.promise.nonempty or not len(missed):
        return 0.0
    if isinstance(rows.P, BlockedMatrix) or isinstance(fitted.context.oracle, SolvingOracle):
        return None
    many = min(len(missed), max(1, _MAX_CELLS // rows.P.shape[1]))
    sampled = missed[np.linspace(0, len(missed) - 1, many).astype(np.intp)]
    sets = fitted.sets(rows.take(sampled))
    return float((~sets.any(axis=1)).mean()) * len(missed) / len(rows)
