"""The effect of the thresholds on their own rows: the least covered rows, and the share of empty sets.

The coverage of all these rows is as requested, by construction. That of a class or of the hardest rows is not, so it
shows without test rows which of them are covered too rarely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.prediction.containers import BlockedMatrix
from udcp_dsl.prediction.empty_sets import share_text
from udcp_dsl.prediction.least_covered import LeastCovered
from udcp_dsl.prediction.limits.measured import LimitMeasure, LimitPoints, limit_lines, measure_limits
from udcp_dsl.prediction.oracle import SolvingOracle
from udcp_dsl.prediction.rows.value import highest
from udcp_dsl.prediction.stages.multipliers import Multipliers

if TYPE_CHECKING:
    from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray
    from udcp_dsl.prediction.rows import Rows
    from udcp_dsl.prediction.stages.chain import Chain
    from udcp_dsl.prediction.stages.oracle_input import OracleInput
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


def in_sample(
    chain: Chain, rows: Rows, given: OracleInput, scores: Sequence[FloatArray]
) -> Mapping[Fraction, InSample]:
    """The results by alpha, from the scores of the true labels; empty with row weights or a bound on harm.

    Thresholds are not randomised here, even if the sets will be.
    """
    setting, calibration = chain.setting, chain.thresholds.calibration
    if calibration.weighted or setting.harm is not None:
        return {}
    alphas, labels = setting.promise.alphas, setting.oracle.loss.labels
    top = rows.highest_probabilities if given.P is rows.P else highest(given.P)
    found = {}
    for alpha, own in zip(alphas, scores if len(scores) > 1 else list(scores) * len(alphas), strict=True):
        covered = own <= _own_threshold(chain.thresholds.tau(given, alpha), given)
        least = LeastCovered.of_rows(alpha, labels, given.truth, covered, top, setting.promise, ROWS)
        limits = _limits(chain, given, alpha)
        empty = _empty_share(chain, given, np.flatnonzero(~covered), alpha)
        found[alpha] = InSample(least, empty, limits, setting.oracle.loss.unit)
    return found


def _own_threshold(tau: float | FloatArray, given: OracleInput) -> FloatArray:
    """The threshold of each row's true label."""
    at = np.atleast_2d(tau)
    every = np.broadcast_to(at, (len(given), at.shape[1]))
    return np.asarray(every[np.arange(len(given)), given.truth if at.shape[1] > 1 else 0])


def _limits(chain: Chain, given: OracleInput, alpha: Fraction) -> tuple[LimitMeasure, ...]:
    """The limits measured on the first of the threshold rows, on which their multipliers were not found."""
    limits = chain.setting.oracle.loss.limits
    if not limits or isinstance(given.P, BlockedMatrix) or isinstance(chain.setting.oracle, SolvingOracle):
        return ()
    some = given.take(slice(0, max(1, min(_MAX_LIMIT_ROWS, _MAX_CELLS // given.P.shape[1]))))
    sets, stage = chain.sets(some, alpha), chain.find(Multipliers)
    covered = sets[np.arange(len(sets)), some.truth]
    points = LimitPoints.of(limits, sets, some.truth, some.inputs)
    return measure_limits(limits, points, covered, None if stage is None else stage.found[alpha].multipliers)


def _empty_share(chain: Chain, given: OracleInput, missed: Any, alpha: Fraction) -> float | None:
    """The share of empty sets. An empty set misses its truth, so only the sets of missed rows are computed, and only
    for a sample if there are many."""
    if chain.setting.promise.nonempty or not len(missed):
        return 0.0
    if isinstance(given.P, BlockedMatrix) or isinstance(chain.setting.oracle, SolvingOracle):
        return None
    many = min(len(missed), max(1, _MAX_CELLS // given.P.shape[1]))
    sampled = missed[np.linspace(0, len(missed) - 1, many).astype(np.intp)]
    sets = chain.sets(given.take(sampled), alpha)
    return float((~sets.any(axis=1)).mean()) * len(missed) / len(given)
