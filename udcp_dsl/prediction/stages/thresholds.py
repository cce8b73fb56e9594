"""The last stage: thresholds, and so sets and p-values, from the scores of the rows that no other stage has used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate import (
    Calibration,
    calibrate,
    label_weighted,
    merged,
    randomized_sets,
    randomized_tau,
)
from udcp_dsl.prediction.calibrate.calibration_scores import CalibrationScores
from udcp_dsl.prediction.calibrate.p_values import p_values
from udcp_dsl.prediction.calibrate.partition import cell_of_row, thinned
from udcp_dsl.prediction.calibrate.randomized import DRAWS

if TYPE_CHECKING:
    from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray
    from udcp_dsl.prediction.oracle import Masks, Oracle
    from udcp_dsl.prediction.stages.oracle_input import OracleInput
    from udcp_dsl.prediction.stages.setting import Setting

Draws = npt.NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The calibration, and the scores that it was made from; None with weights, since the calibration then has them."""

    calibration: Calibration
    scores: CalibrationScores | None

    @classmethod
    def fit(cls, setting: Setting, given: OracleInput, scores: Sequence[FloatArray], *, by_alpha: bool) -> Thresholds:
        """From the scores of the true labels: one array for all alphas or, with by_alpha=True, one per alpha."""
        promise, parts, harms = setting.promise, setting.parts(given), setting.harms(given)
        levels = [(alpha,) for alpha in promise.alphas] if by_alpha else [promise.alphas]
        calibration = merged(
            calibrate(
                own,
                alphas=alphas,
                parts=parts,
                rule=setting.rule(given.groups),
                harms=harms,
                weights=given.weights,
                pool=promise.pool,
                randomize=promise.randomize,
                already_warned=not promise.by_decision,  # only now is the number of rows per decision known
            )
            for own, alphas in zip(scores, levels, strict=True)
        )
        if calibration.weighted:
            return cls(calibration, None)
        cells = cell_of_row(calibration, len(given), groups=given.groups, y=given.truth, difficulty=given.difficulty)
        kept = CalibrationScores.of(scores, cells, len(calibration.cells), promise.alphas if by_alpha else (), harms)
        return cls(calibration, kept)

    @classmethod
    def for_mix(
        cls, setting: Setting, given: OracleInput, scores: Sequence[FloatArray], ratios: FloatArray, *, by_alpha: bool
    ) -> Thresholds:
        """Like `fit`, for a new mix of labels: one threshold per label, from rows that are weighted by the ratios."""
        harm, harms, alphas = setting.harm, setting.harms(given), setting.promise.alphas
        levels = [(alpha,) for alpha in alphas] if by_alpha else [alphas]
        most = None if harm is None else harm.max_harm
        found = merged(
            label_weighted(own, given.truth, ratios, alphas=level, harms=harms, most=most)
            for own, level in zip(scores, levels, strict=True)
        )
        return cls(found, None)

    def tau(self, given: OracleInput, level: Fraction) -> float | FloatArray:
        """The thresholds of these rows, as an oracle's `sets` takes them."""
        weights = given.weights if self.calibration.weighted else None
        cells = {"groups": given.groups, "difficulty": given.difficulty}
        return self.calibration.tau(level, **cells, weights=weights, n=len(given))

    def sets(self, setting: Setting, oracle: Oracle, given: OracleInput, level: Fraction, draws: Draws) -> Masks:
        """The sets of rows, (n, K); randomised if there are `draws`, one per row."""
        by_class = setting.promise.by_class
        if draws is not None and by_class:
            return randomized_sets(oracle.scores(given.P), self.calibration, level, draws)
        if draws is not None:
            own = given.groups, given.difficulty
            return oracle.sets(given.P, randomized_tau(self.calibration, level, draws, len(given), *own))
        at = self.tau(given, level)
        by_both = self.calibration.weighted and by_class  # a threshold for each row and class
        mask = oracle.scores(given.P) <= at if by_both else oracle.sets(given.P, at)
        if setting.promise.nonempty:
            mask[np.arange(len(given)), oracle.first(given.P)] = True
        return mask

    def full(self, given: OracleInput, level: Fraction) -> int:
        """The number of sets that are full because the row's weight is too large for a finite threshold."""
        if not self.calibration.weighted:
            return 0
        return int(np.isinf(np.asarray(self.tau(given, level)).max(axis=1)).sum())

    def p_values(
        self, setting: Setting, oracle: Oracle, given: OracleInput, level: Fraction, draws: Draws
    ) -> FloatArray:
        """The smallest alpha at which each label is left out, (n, K)."""
        scores = oracle.scores(given.P)
        if setting.promise.nonempty:
            scores[np.arange(len(given)), oracle.first(given.P)] = -np.inf
        codes = self.calibration.cells_of(level, given.groups, len(given), given.difficulty)
        shares = None if draws is None else draws / DRAWS
        kept = None if self.scores is None else self.scores.at(level)
        return p_values(scores, self.calibration, kept, codes, draws=shares, weights=given.weights)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which `from_dict` restores the same thresholds, bit for bit."""
        scores = None if self.scores is None else thinned(self.scores, self.calibration).as_dict()
        return {"calibration": self.calibration.as_dict(), "scores": scores}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], setting: Setting, *, by_alpha: bool) -> Thresholds:
        """Inverse of `as_dict`; refuses data that do not belong to the setting."""
        calibration, promise = Calibration.from_dict(data["calibration"]), setting.promise
        own = promise.alphas, promise.asked, promise.randomize
        if (calibration.alphas, calibration.asked, calibration.randomize) != own:
            raise InputError("its thresholds do not match its options; save it again")
        if calibration.by_class and len(calibration.cells) != setting.oracle.loss.K:
            raise InputError("its thresholds do not match its labels; save it again")
        if calibration.own_alphas != setting.own_alphas or (
            setting.decisions and calibration.groups != setting.decisions
        ):
            raise InputError("its thresholds do not match its groups or decisions; save it again")
        cells = len(calibration.named_cells)
        bins_differ = calibration.edges and cells != promise.bin_count
        if calibration.rule != promise.rule(cells, setting.harm) or bins_differ:
            raise InputError("its thresholds do not match its promise; save it again")
        if calibration.weighted or calibration.label_weights is not None:
            promise.refuse_weights()
        return cls(calibration, _read_scores(data["scores"], calibration, by_alpha))


def worth_of(oracle: Oracle, thresholds: Thresholds, level: Fraction) -> float | dict[str, float] | None:
    """What a missed truth is worth by the thresholds of an oracle with prices; a dict by group, bin or decision. None
    if thresholds are not prices of coverage: for other oracles, and with harm, classes or weights.

    A label is bought if its price is at most the threshold: so that is what a miss is worth, in the unit of the loss.
    """
    calibration = thresholds.calibration
    unlike = calibration.by_class or calibration.weighted or calibration.label_weights is not None
    if not oracle.priced or unlike or calibration.rule.most is not None:
        return None
    found = calibration.thresholds(level)
    return found if isinstance(found, dict) else float(found)


def _read_scores(data: object, calibration: Calibration, by_alpha: bool) -> CalibrationScores | None:
    """Read the calibration scores; None for files of 0.1.0 and for weighted calibrations, which have none here."""
    if data is None:
        return None
    scores = CalibrationScores.from_dict(data, calibration.alphas)
    numbers = {sum(table.n for table in level) for level in scores.cells}
    cells = len(scores.cells[0]) == len(calibration.cells)
    fits = numbers == {calibration.n} and bool(scores.alphas) == by_alpha and cells
    harmed = any((table.harm is None) != (calibration.rule.most is None) for level in scores.cells for table in level)
    if not fits or harmed or calibration.weighted:
        raise InputError("its calibration scores do not match its thresholds; save it again")
    return scores
