"""One oracle on one split: the chain of stages fitted on two folds, and its sets measured on a third.

The score of a row depends on that row alone, so all rows are scored once and splits select from the scores. Oracles
with an anchor are the exception: their scores depend on the split.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.comparison.curves import CostCurve, Worth
from udcp_dsl.comparison.remembered import RememberedScores
from udcp_dsl.comparison.results import Run
from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.calibrate import CalibrationWarning, show_level
from udcp_dsl.prediction.calibrate.strata import bins_needed
from udcp_dsl.prediction.evaluation import Floats, measure
from udcp_dsl.prediction.oracle import Masks, Oracle
from udcp_dsl.prediction.promises.promise import Promise
from udcp_dsl.prediction.rows import Rows
from udcp_dsl.prediction.sets import PredictionSets
from udcp_dsl.prediction.stages.chain import STAGES, Fitted, fit_folds, seen
from udcp_dsl.prediction.stages.lambda_tuning import Lambda
from udcp_dsl.prediction.stages.multipliers import LimitError, Multipliers
from udcp_dsl.prediction.stages.stage import FitContext, placed
from udcp_dsl.prediction.stages.thresholds import worth_of

Places: TypeAlias = npt.NDArray[np.intp]  # positions of rows

FRACTIONS = (0.5, 0.25, 0.25)  # shares of the folds for thresholds, tuning and test
# The alphas of the curves of cost against coverage; those that need more points than a fold has are left out.
CURVE = tuple(Fraction(k, 200) for k in (2, 4, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80))

_MAX_SCORES_IN_MEMORY = 1 << 26  # most scores that are kept in memory: 512 MiB


@dataclass(frozen=True, eq=False)
class Folds:
    """Positions of rows in disjoint folds, each in ascending order; `halves` are those of the fold for tuning."""

    split: int
    calibration: Places
    halves: tuple[Places, Places]
    test: Places


def deal(n: int, fractions: Sequence[float], seed: int, splits: int) -> list[Folds]:
    """The folds of every split of n rows; a split does not depend on the number of splits."""
    if len(fractions) != 3 or not all(0 < f < 1 for f in fractions) or abs(sum(fractions) - 1) > 1e-9:
        raise InputError(f"fractions are {fractions}: give three above 0 that sum to 1 (thresholds, tuning, test)")
    calibrated, tuned = round(n * fractions[0]), round(n * (fractions[0] + fractions[1]))
    half = (calibrated + tuned + 1) // 2
    if not 0 < calibrated < half < tuned < n:
        raise InputError(f"{n} rows are too few to split into {fractions}, with the tuning part halved: give more rows")
    folds = []
    for split in range(splits):
        order = np.random.default_rng([seed, split]).permutation(n)
        calibration, first, second, test = (np.sort(part) for part in np.split(order, (calibrated, half, tuned)))
        folds.append(Folds(split, calibration, (first, second), test))
    return folds


def warn_of_too_few(folds: Folds, promise: Promise, loss: Loss, *, tuned: bool) -> None:
    """Warn if a fold has too few rows for a finite threshold."""
    alpha, by_bin = min(promise.alphas), promise.by_difficulty
    need = promise.rule(promise.bin_count if by_bin else 1, promise.harm(loss)).needed(alpha)
    needed = f"alpha {show_level(alpha)} needs {need}"
    faults = []
    if not by_bin and tuned and len(folds.halves[0]) < need:
        half = len(folds.halves[0])
        faults.append((f"half the fold for tuning has {half} row{'' if half == 1 else 's'}", "lambda cannot be tuned"))
    if by_bin:
        need = bins_needed(promise.bin_count, need)
        needed += f" in each of {promise.bin_count} bins by difficulty, {need} in all to keep these apart"
    if len(folds.calibration) < need:
        effect = "bins are merged" if by_bin else "all sets contain all labels"
        faults.insert(0, (f"the fold for thresholds has {len(folds.calibration)} rows", effect))
    remedy = "give more rows or a larger alpha" + (", or fewer bins" if by_bin else "")
    for fold, effect in faults:
        warn(f"{fold}, and {needed}, so {effect}: {remedy}", CalibrationWarning)


@dataclass(frozen=True, eq=False)
class Contender:
    """An oracle made for a loss; if it is to be tuned, one for every lambda of the grid."""

    loss_name: str
    oracle_name: str
    loss: Loss
    oracles: Mapping[float | None, Oracle]

    @property
    def tuned(self) -> bool:
        """Whether there is a lambda to choose."""
        return None not in self.oracles

    @property
    def oracle(self) -> Oracle:
        """The oracle, or the first of the candidates."""
        return next(iter(self.oracles.values()))

    @property
    def score_variant(self) -> str | None:
        """The variant of its score, if there are several."""
        return self.oracle.about

    def context(self, promise: Promise, oracles: Mapping[float | None, Oracle] | None = None) -> FitContext:
        """What its stages are fitted for; `oracles` replace its own."""
        made = self.oracles if oracles is None else oracles
        candidates = {lam: oracle for lam, oracle in made.items() if lam is not None}
        return FitContext(promise, next(iter(made.values())), candidates or None)


@dataclass(frozen=True, eq=False)
class PreparedContender:
    """A contender with all rows as its oracles take them: already scored, or as probabilities."""

    contender: Contender
    data: Rows
    oracles: Mapping[float | None, Oracle]
    seen: Rows

    @classmethod
    def of(cls, contender: Contender, data: Rows, promise: Promise) -> PreparedContender:
        """Score all rows, unless scores depend on an anchor or on multipliers of limits, which differ by split."""
        context = contender.context(promise)
        rows = seen(context, (), data).with_columns(top=data.highest_probabilities, place=np.arange(len(data)))
        if context.oracle.wants_anchor or context.enforces_limits:
            context.oracle.best(rows.take(slice(0, 2)), np.zeros(2))  # compiles kernels, which no run should include
            return cls(contender, data, contender.oracles, rows)
        hold = rows.P.size * len(contender.oracles) <= _MAX_SCORES_IN_MEMORY
        scored = {lam: RememberedScores(oracle, rows, hold=hold) for lam, oracle in contender.oracles.items()}
        return cls(contender, data, scored, rows.with_columns(P=np.empty((len(rows), 0))))

    def context(self, promise: Promise) -> FitContext:
        """What stages on some of the rows are fitted for."""
        return self.contender.context(promise, self.oracles)

    def seconds(self, folds: Folds) -> float | None:
        """The seconds that scoring the rows of a split took; None if each split scores its own rows."""
        if not self._remembered:
            return None
        per_row = {lam: x.seconds_per_row for lam, x in self.oracles.items() if isinstance(x, RememberedScores)}
        tuning = sum(map(len, folds.halves)) * sum(per_row.values()) if self.contender.tuned else 0.0
        return tuning + next(iter(per_row.values())) * (len(folds.calibration) + len(folds.test))

    def unscored(self) -> PreparedContender:
        """The same with probabilities, which decisions need."""
        return replace(self, oracles=self.contender.oracles, seen=self.seen.with_columns(P=self.data.P))

    @property
    def _remembered(self) -> bool:
        return isinstance(next(iter(self.oracles.values())), RememberedScores)


@dataclass(frozen=True, eq=False)
class SplitResult:
    """A contender on one split: its run at each alpha.

    On the first split, if the promise is marginal, also the cost curve (with the worth of a miss, if the oracle has
    prices), the sets at the first alpha, and the p-values of all labels as a function of places in the test fold.
    """

    runs: tuple[Run, ...]
    curve: CostCurve
    mask: Masks | None
    p_values: Callable[[Places], Floats] | None


def run_split(prepared: PreparedContender, folds: Folds, promise: Promise) -> SplitResult:
    """Calibrate, tune and measure a contender on a split, at every alpha and, on the first split, along the curve."""
    test, alphas, contender = folds.test, promise.alphas, prepared.contender
    first = folds.split == 0 and promise.is_marginal
    grid = _grid(promise, contender.loss, folds) if first else []
    tested = prepared.data.take(test)
    runs, points = dict[Fraction, Run](), dict[Fraction, tuple[Fraction, Floats, Masks, Worth]]()
    fixed = promise if promise.miss is None else promise.at_alpha
    first_mask, first_p = None, None
    for level in dict.fromkeys((*alphas, *grid)):
        began = time.perf_counter()
        try:
            fitted = _fit(prepared, folds, promise if promise.miss and level in alphas else fixed.at(level))
        except LimitError:
            if level in alphas:
                raise
            continue  # the curve lacks this point
        shown = placed(fitted.context, fitted.stages, prepared.seen.take(test))
        mask = fitted.sets(shown)
        took, known = time.perf_counter() - began, prepared.seconds(folds)
        sets = PredictionSets(contender.loss, mask, inputs=tested.inputs, decided=shown.decided)
        if level in grid:
            covered = mask[np.arange(len(test)), tested.truth]
            worth = worth_of(fitted.context.oracle, fitted.thresholds)
            points[level] = (level, sets.costs, covered, worth)
        if level in alphas:
            key, tuned = (contender.loss_name, contender.oracle_name), fitted.find(Lambda)
            limited = fitted.find(Multipliers)
            nu = None if limited is None else limited.effects.multipliers
            measures = measure(sets, tested, alpha=fitted.alpha, oracle=key[1], promise=promise, multipliers=nu)
            lam = None if tuned is None else tuned.tuning.best
            runs[level] = Run(*key, level, folds.split, measures, lam, took if known is None else known)
        if first and level == alphas[0]:
            first_mask, first_p = mask, _p_values(prepared, fitted, folds)
    found = [points[level] for level in grid if level in points]
    curve = CostCurve.of(*zip(*found, strict=True)) if found else CostCurve()
    return SplitResult(tuple(runs[level] for level in alphas), curve, first_mask, first_p)


def _fit(prepared: PreparedContender, folds: Folds, promise: Promise) -> Fitted:
    """The fit at one alpha: tuned on the halves of the second fold, thresholds from the first."""
    rows = prepared.seen.take(folds.calibration)
    context = prepared.context(promise).with_rows(rows)
    tuned = [
        (stage, [prepared.seen.take(fold) for fold in stage.folds_from_halves(folds.halves)])
        for stage in STAGES
        if not stage.repairs and stage.applies(context)
    ]
    (fitted,) = fit_folds(context, (), tuned, rows).values()
    return fitted


def _p_values(prepared: PreparedContender, fitted: Fitted, folds: Folds) -> Callable[[Places], Floats]:
    return lambda places: fitted.p_values(placed(fitted.context, fitted.stages, prepared.seen.take(folds.test[places])))


def _grid(promise: Promise, loss: Loss, folds: Folds) -> list[Fraction]:
    """The levels of the curve; if harm is bounded, as shares of the largest harm."""
    rule, smallest = promise.rule(1, promise.harm(loss)), min(len(folds.calibration), len(folds.halves[0]))
    return [level for level in (share * rule.below for share in CURVE) if rule.needed(level) <= smallest]
