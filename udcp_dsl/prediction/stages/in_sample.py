"""The effect of the thresholds on their own rows: the least covered rows, and the number of empty sets.

Coverage of all these rows is as requested, by construction. That of a class or of the hardest rows is not, so it shows
without test rows which of them are covered too rarely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.prediction.containers import BlockedMatrix
from udcp_dsl.prediction.empty_sets import told
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
_LOOKED_AT = 1 << 22  # entries of sets that are made to count empty ones
_LIMITED = 2000  # rows that limits are looked at on


@dataclass(frozen=True)
class InSample:
    """Of the calibration rows at one alpha. `empty` is a share, None where it would take long to find; `limits` are
    those of the spec on some of the rows."""

    least_covered: LeastCovered
    empty: float | None
    limits: tuple[LimitMeasure, ...] = ()
    unit: str | None = None

    @property
    def lines(self) -> tuple[Line, ...]:
        """What there is to say of it."""
        empty = () if not self.empty else (f"empty sets {ROWS}: {told(self.empty)}",)
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
    """By alpha, from the true labels' scores; none where thresholds are for shifted rows, or bound harm.

    Thresholds are taken as they are, also where sets will be randomised.
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
        empty = _empty(chain, given, np.flatnonzero(~covered), alpha)
        found[alpha] = InSample(least, empty, limits, setting.oracle.loss.unit)
    return found


def _own_threshold(tau: float | FloatArray, given: OracleInput) -> FloatArray:
    """The threshold of each row's true label."""
    at = np.atleast_2d(tau)
    every = np.broadcast_to(at, (len(given), at.shape[1]))
    return np.asarray(every[np.arange(len(given)), given.truth if at.shape[1] > 1 else 0])


def _limits(chain: Chain, given: OracleInput, alpha: Fraction) -> tuple[LimitMeasure, ...]:
    """What the limits come to on the first rows of the thresholds, which their multipliers were not found on."""
    limits = chain.setting.oracle.loss.limits
    if not limits or isinstance(given.P, BlockedMatrix) or isinstance(chain.setting.oracle, SolvingOracle):
        return ()
    some = given.take(slice(0, max(1, min(_LIMITED, _LOOKED_AT // given.P.shape[1]))))
    sets, stage = chain.sets(some, alpha), chain.find(Multipliers)
    covered = sets[np.arange(len(sets)), some.truth]
    points = LimitPoints.of(limits, sets, some.truth, some.inputs)
    return measure_limits(limits, points, covered, None if stage is None else stage.found[alpha].multipliers)


def _empty(chain: Chain, given: OracleInput, missed: Any, alpha: Fraction) -> float | None:
    """The share of empty sets, which are among those that miss: so only these are made, of many a sample."""
    if chain.setting.promise.nonempty or not len(missed):
        return 0.0
    if isinstance(given.P, BlockedMatrix) or isinstance(chain.setting.oracle, SolvingOracle):
        return None
    many = min(len(missed), max(1, _LOOKED_AT // given.P.shape[1]))
    looked_at = missed[np.linspace(0, len(missed) - 1, many).astype(np.intp)]
    sets = chain.sets(given.take(looked_at), alpha)
    return float((~sets.any(axis=1)).mean()) * len(missed) / len(given)
