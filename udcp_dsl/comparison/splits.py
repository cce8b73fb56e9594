"""One oracle on one split: thresholds on a fold, lambda on the halves of a second, measures on a third.

What a row scores depends on that row alone, so all rows are scored once, and splits only choose among the scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.comparison.results import Run
from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.anchors import MOST, Anchors
from udcp_dsl.prediction.calibrate import Calibration, CalibrationWarning, Rule, Tuning, calibrate, show_level
from udcp_dsl.prediction.calibrate.calibration_scores import CalibrationScores
from udcp_dsl.prediction.calibrate.difficulty import bins_needed
from udcp_dsl.prediction.calibrate.p_values import p_values
from udcp_dsl.prediction.calibrate.partition import own_cells
from udcp_dsl.prediction.evaluation import Floats, measure
from udcp_dsl.prediction.fitting import Fitting, anchored
from udcp_dsl.prediction.oracle import AnchoredOracle, Masks, Oracle
from udcp_dsl.prediction.promises.harm import Harm
from udcp_dsl.prediction.promises.options import Promises
from udcp_dsl.prediction.rows import Rows
from udcp_dsl.prediction.rows.probability_matrix import Matrix
from udcp_dsl.prediction.rows.value import highest
from udcp_dsl.prediction.sets import PredictionSets

Places: TypeAlias = npt.NDArray[np.intp]  # of rows
Threshold: TypeAlias = float | Floats  # one, or that of each row, (n, 1)

FRACTIONS = (0.5, 0.25, 0.25)  # of the folds for thresholds, for tuning and for the test
# The alphas of the curves of cost against coverage; those that need more points than a fold has are left out.
CURVE = tuple(Fraction(k, 200) for k in (2, 4, 6, 10, 15, 20, 30, 40, 50, 60, 70, 80))

_HELD = 1 << 26  # scores that are kept at once: 512 MiB


@dataclass(frozen=True, eq=False)
class Folds:
    """Positions of rows, disjoint, each rising; `halves` are those of the fold for tuning."""

    split: int
    calibration: Places
    halves: tuple[Places, Places]
    test: Places


def deal(n: int, fractions: Sequence[float], seed: int, splits: int) -> list[Folds]:
    """The folds of every split of n rows; those of a split do not depend on how many there are."""
    if len(fractions) != 3 or not all(0 < f < 1 for f in fractions) or abs(sum(fractions) - 1) > 1e-9:
        raise InputError(f"fractions are {fractions}: give three above 0 that sum to 1 (thresholds, tuning, test)")
    calibrated, tuned = round(n * fractions[0]), round(n * (fractions[0] + fractions[1]))
    half = (calibrated + tuned + 1) // 2
    if not 0 < calibrated < half < tuned < n:
        raise InputError(f"{n} rows are too few to be split {fractions}, with two halves to tune on: give more")
    folds = []
    for split in range(splits):
        order = np.random.default_rng([seed, split]).permutation(n)
        calibration, first, second, test = (np.sort(part) for part in np.split(order, (calibrated, half, tuned)))
        folds.append(Folds(split, calibration, (first, second), test))
    return folds


def warn_of_too_few(folds: Folds, promises: Promises, *, tuned: bool) -> None:
    """Say where a fold has too few rows for a finite threshold."""
    alpha = min(promises.alphas)
    need = _rule(promises).needed(alpha)
    needed = f"alpha {show_level(alpha)} needs {need}"
    faults = []
    if promises.conditional is None and tuned and len(folds.halves[0]) < need:
        faults.append((f"half the fold for tuning has {len(folds.halves[0])} rows", "lambda cannot be tuned"))
    if promises.conditional is not None:
        need = bins_needed(promises.bins, need)
        needed += f" in each of {promises.bins} bins by difficulty, {need} in all"
    if len(folds.calibration) < need:
        effect = "all sets hold every label" if promises.conditional is None else "sets of some bins hold every label"
        faults.insert(0, (f"the fold for thresholds has {len(folds.calibration)} rows", effect))
    remedy = "give more rows or a larger alpha" + ("" if promises.conditional is None else ", or fewer bins")
    for fold, effect in faults:
        warn(f"{fold}, and {needed}, so {effect}: {remedy}", CalibrationWarning)


def _rule(promises: Promises) -> Rule:
    return promises.rule(1 if promises.conditional is None else promises.bins)


@dataclass(frozen=True, eq=False)
class Contender:
    """An oracle made for a loss; with every lambda of the grid where it is to be tuned."""

    loss_name: str
    oracle_name: str
    loss: Loss
    oracles: Mapping[float | None, Oracle]
    harm: Harm | None = None  # that is bounded, where it is not misses

    @property
    def tuned(self) -> bool:
        """Whether there is a lambda to choose."""
        return None not in self.oracles

    @property
    def about(self) -> str | None:
        """Which of several scores of its name it gives."""
        return next(iter(self.oracles.values())).about

    @property
    def anchored(self) -> AnchoredOracle | None:
        """The oracle, if it is one whose scores depend on an anchor, and so on the split."""
        oracle = self.oracles.get(None)
        return oracle if isinstance(oracle, AnchoredOracle) and oracle.wants_anchor else None

    def scored(self, data: Rows) -> Mapping[float | None, Scored]:
        """All rows scored by each of the oracles; by none that is anchored."""
        if self.anchored is not None:
            return {}
        held = data.P.size * len(self.oracles) <= _HELD
        P = data.P if self.harm is None else self.harm.bought(data.P, next(iter(self.oracles.values())))
        return {lam: Scored(oracle, P, data.truth, held=held) for lam, oracle in self.oracles.items()}


class Scored:
    """All rows scored by an oracle; where that would take too much room, only the true labels' scores are held."""

    def __init__(self, oracle: Oracle, P: Matrix, y: npt.NDArray[np.int64], *, held: bool) -> None:
        self._oracle, self._P = oracle, P
        self._scored(P[:2], y[:2], held)  # compiles the kernels, which no run should be charged for
        began = time.perf_counter()
        self._scores, self.true = self._scored(P, y, held)
        self.seconds_a_row = (time.perf_counter() - began) / len(P)

    def _scored(self, P: Matrix, y: npt.NDArray[np.int64], held: bool) -> tuple[Floats | None, Floats]:
        if not held:
            return None, self._oracle.score_of(P, y)
        scores = self._oracle.scores(P)
        return scores, scores[np.arange(len(y)), y]

    def scores(self, rows: Places) -> Floats:
        """Those of all labels of some rows."""
        return self._oracle.scores(self._P[rows]) if self._scores is None else self._scores[rows]

    def sets(self, rows: Places) -> Callable[[Threshold], Masks]:
        """The sets of some rows, as a function of the threshold."""
        if self._scores is None:
            P = self._P[rows]
            return lambda tau: self._oracle.sets(P, tau)
        scores = self._scores[rows]
        return lambda tau: scores <= tau


class Keeping:
    """What a split makes of the scores of true labels, by what is promised: thresholds and p-values."""

    def __init__(self, promises: Promises, data: Rows, folds: Folds) -> None:
        self.promises, self.folds = promises, folds
        self._harms = None if promises.harm is None else promises.harm.values[data.truth]
        self._truth = data.truth
        self._own, self._tested = (
            highest(data.P[rows]) if promises.conditional == "difficulty" else None
            for rows in (folds.calibration, folds.test)
        )

    def calibrated(self, scores: Floats, levels: Sequence[Fraction]) -> Calibration:
        """Thresholds from the true labels' scores of the fold for them."""
        by = self.promises.conditional
        return self._calibrated(scores, self.folds.calibration, levels, conditional=by, difficulty=self._own)

    def for_all(self, scores: Floats, rows: Places, levels: Sequence[Fraction]) -> dict[Fraction, float]:
        """One threshold at each level for all rows, whatever else is promised: what lambda is tuned at."""
        calibration = self._calibrated(scores, rows, levels)
        return {level: float(calibration.tau(level)) for level in levels}

    def tau(self, calibration: Calibration, level: Fraction) -> Threshold:
        """The threshold, or that of each row of the test fold."""
        return calibration.tau(level, difficulty=self._tested, n=len(self.folds.test))

    def p_values(
        self, calibration: Calibration, level: Fraction, true: Floats, scores: Floats, places: Places
    ) -> Floats:
        """Those of all labels, of these scores, at places of the test fold; `true` set the thresholds."""
        rows = self.folds.calibration
        cells = own_cells(calibration, len(rows), groups=None, y=self._truth[rows], difficulty=self._own)
        kept = CalibrationScores.of(
            [true], cells, len(calibration.cells), (), None if self._harms is None else self._harms[rows]
        )
        tested = None if self._tested is None else self._tested[places]
        codes = calibration.cells_of(level, None, len(places), tested)
        return p_values(scores, calibration, kept.at(level), codes)

    def _calibrated(self, scores: Floats, rows: Places, levels: Sequence[Fraction], **by: Any) -> Calibration:
        harm = self.promises.harm
        return calibrate(
            scores,
            alphas=levels,
            bins=self.promises.bins,
            confidence=self.promises.confidence,
            harms=None if self._harms is None else self._harms[rows],
            most=None if harm is None else harm.most,
            warned=True,
            **by,
        )


@dataclass(frozen=True, eq=False)
class Result:
    """Of a contender on a split: its run at each alpha. Of the first split, where nothing is promised within parts of
    the rows, also the curve, the first sets, and the p-values of all labels, as a function of places in the test fold.
    """

    runs: tuple[Run, ...]
    curve: tuple[tuple[float, float, float], ...]
    mask: Masks | None
    p_values: Callable[[Places], Floats] | None


def run_split(
    contender: Contender,
    scored: Mapping[float | None, Scored],
    data: Rows,
    folds: Folds,
    promises: Promises,
) -> Result:
    """Calibrate, tune and measure a contender on a split, at every alpha and, on the first split, along the curve."""
    test, alphas = folds.test, promises.alphas
    first = folds.split == 0 and promises.conditional is None
    grid = _grid(promises, folds) if first else []
    levels = tuple(dict.fromkeys((*alphas, *grid)))
    tested = data.take(test)
    runs, points = dict[Fraction, Run](), dict[Fraction, tuple[float, float, float]]()
    first_mask, first_p = None, None
    at_levels = _anchored if contender.anchored is not None else _scored
    for level, lam, mask, seconds, p_of in at_levels(contender, scored, data, Keeping(promises, data, folds), levels):
        sets = PredictionSets(contender.loss, mask)
        if level in grid:
            covered = mask[np.arange(len(test)), tested.truth]
            points[level] = (float(level), float(covered.mean()), float(sets.costs.mean()))
        if level in alphas:
            measures = measure(sets, tested, alpha=level, oracle=contender.oracle_name, harm=promises.harm)
            key = contender.loss_name, contender.oracle_name
            runs[level] = Run(*key, level, folds.split, measures, lam, seconds)
        if first and level == alphas[0]:
            first_mask, first_p = mask, p_of
    found = tuple(runs[level] for level in alphas), tuple(points[level] for level in grid)
    return Result(*found, first_mask, first_p)


def _grid(promises: Promises, folds: Folds) -> list[Fraction]:
    """The levels of the curve; where harm is bounded, as shares of the largest."""
    rule, smallest = _rule(promises), min(len(folds.calibration), len(folds.halves[0]))
    return [level for level in (share * rule.below for share in CURVE) if rule.needed(level) <= smallest]


# At each level: lambda, the sets of the test fold, the seconds that they took, and p-values of rows of that fold.
_Levels: TypeAlias = Iterator[tuple[Fraction, float | None, Masks, float, Callable[[Places], Floats]]]


def _scored(
    contender: Contender,
    scored: Mapping[float | None, Scored],
    data: Rows,
    keeping: Keeping,
    levels: Sequence[Fraction],
) -> _Levels:
    """From the scores of all rows, with the lambda that is best at each level."""
    folds = keeping.folds
    chosen = _tuned(contender.loss, scored, keeping, levels) if contender.tuned else dict.fromkeys(levels)
    tuning_rows = sum(map(len, folds.halves)) if contender.tuned else 0
    tuning_seconds = tuning_rows * sum(x.seconds_a_row for x in scored.values())
    for lam in dict.fromkeys(chosen.values()):
        held = scored[lam]
        sets_at = held.sets(folds.test)
        own = [level for level in levels if chosen[level] == lam]
        seconds = tuning_seconds + held.seconds_a_row * (len(folds.calibration) + len(folds.test))
        true = held.true[folds.calibration]
        calibration = keeping.calibrated(true, own)
        for level in own:

            def p_of(
                places: Places,
                held: Scored = held,
                calibration: Calibration = calibration,
                level: Fraction = level,
                true: Floats = true,
            ) -> Floats:
                return keeping.p_values(calibration, level, true, held.scores(folds.test[places]), places)

            yield level, lam, sets_at(keeping.tau(calibration, level)), seconds, p_of


def _anchored(
    contender: Contender,
    scored: Mapping[float | None, Scored],
    data: Rows,
    keeping: Keeping,
    levels: Sequence[Fraction],
) -> _Levels:
    """With anchors for each level, which are found on the fold for tuning."""
    oracle, folds = contender.anchored, keeping.folds
    assert oracle is not None
    own, calibrated, tested = (
        data.take(rows) for rows in (np.concatenate(folds.halves)[:MOST], folds.calibration, folds.test)
    )
    oracle.best(own.P[:2], np.zeros(2))  # compiles the kernels, which no run should be charged for
    fitting = Fitting(keeping.promises, oracle, seed=0)
    known, new = (fitting.seen(rows, None) for rows in (calibrated, tested))
    rule = fitting.rule(known)
    for level in levels:
        began = time.perf_counter()
        at_level = replace(fitting, promises=replace(keeping.promises, alphas=(level,)))
        anchors = at_level.anchors(own, None, len(calibrated), known, rule)
        true = anchored(oracle, anchors, level, known).score_of(known.P, calibrated.truth)
        calibration = keeping.calibrated(true, (level,))
        mask = anchored(oracle, anchors, level, new).sets(new.P, keeping.tau(calibration, level))
        seconds = time.perf_counter() - began

        def p_of(
            places: Places,
            level: Fraction = level,
            anchors: Anchors = anchors,
            calibration: Calibration = calibration,
            true: Floats = true,
        ) -> Floats:
            some = fitting.seen(tested.take(places), None)
            scores = anchored(oracle, anchors, level, some).scores(some.P)
            return keeping.p_values(calibration, level, true, scores, places)

        yield level, None, mask, seconds, p_of


def _tuned(
    loss: Loss, scored: Mapping[float | None, Scored], keeping: Keeping, levels: Sequence[Fraction]
) -> dict[Fraction, float | None]:
    """The best lambda at each level: thresholds on the first half, mean costs on the second."""
    first, second = keeping.folds.halves
    grid = {lam: held for lam, held in scored.items() if lam is not None}
    thresholds = {lam: keeping.for_all(held.true[first], first, levels) for lam, held in grid.items()}
    sets = {lam: held.sets(second) for lam, held in grid.items()}
    best: dict[Fraction, float | None] = {}
    for level in levels:
        taus = tuple(thresholds[lam][level] for lam in grid)
        costs = tuple(float(loss.batch(sets[lam](tau)).mean()) for lam, tau in zip(grid, taus, strict=True))
        best[level] = Tuning(tuple(grid), taus, costs, len(second), *loss.facts.interval).best
    return best
