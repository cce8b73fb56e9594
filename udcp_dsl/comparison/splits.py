"""One oracle on one split: thresholds on a fold, lambda on the halves of a second, measures on a third.

What a row scores depends on that row alone, so all rows are scored once, and splits only choose among the scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.comparison.results import Run
from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.anchors import MOST, find_anchor
from udcp_dsl.prediction.calibrate import CalibrationWarning, Rule, Tuning, calibrate, points_needed, show_level
from udcp_dsl.prediction.calibrate.kept import Counts
from udcp_dsl.prediction.evaluation import Floats, measure
from udcp_dsl.prediction.oracle import AnchoredOracle, Masks, Oracle
from udcp_dsl.prediction.rows import Rows
from udcp_dsl.prediction.rows.probabilities import Matrix
from udcp_dsl.prediction.sets import PredictionSets

Places: TypeAlias = npt.NDArray[np.intp]  # of rows

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


def warn_of_too_few(folds: Folds, alpha: Fraction, *, tuned: bool) -> None:
    """Say where a fold has too few rows for a finite threshold."""
    need = points_needed(alpha)
    faults = []
    if len(folds.calibration) < need:
        faults.append((f"the fold for thresholds has {len(folds.calibration)} rows", "all sets hold every label"))
    if tuned and len(folds.halves[0]) < need:
        faults.append((f"half the fold for tuning has {len(folds.halves[0])} rows", "lambda cannot be tuned"))
    for fold, effect in faults:
        warn(
            f"{fold}, and alpha {show_level(alpha)} needs {need}, so {effect}: give more rows or a larger alpha",
            CalibrationWarning,
        )


@dataclass(frozen=True, eq=False)
class Contender:
    """An oracle made for a loss; with every lambda of the grid where it is to be tuned."""

    loss_name: str
    oracle_name: str
    loss: Loss
    oracles: Mapping[float | None, Oracle]

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
        return {lam: Scored(oracle, data, held=held) for lam, oracle in self.oracles.items()}


class Scored:
    """All rows scored by an oracle; where that would take too much room, only the true labels' scores are held."""

    def __init__(self, oracle: Oracle, data: Rows, *, held: bool) -> None:
        self._oracle, self._P = oracle, data.P
        self._scored(data.P[:2], data.truth[:2], held)  # compiles the kernels, which no run should be charged for
        began = time.perf_counter()
        self._scores, self._true = self._scored(data.P, data.truth, held)
        self.seconds_a_row = (time.perf_counter() - began) / len(data)

    def _scored(self, P: Matrix, y: npt.NDArray[np.int64], held: bool) -> tuple[Floats | None, Floats]:
        if not held:
            return None, self._oracle.score_of(P, y)
        scores = self._oracle.scores(P)
        return scores, scores[np.arange(len(y)), y]

    def thresholds(self, rows: Places, levels: Sequence[Fraction]) -> dict[Fraction, float]:
        """The threshold at each level, from the true labels of some rows."""
        calibration = calibrate(self._true[rows], alphas=levels)
        return {level: float(calibration.tau(level)) for level in levels}

    def p_values(self, folds: Folds, places: Places) -> Floats:
        """Those of all labels at places of the test fold, by the fold for thresholds."""
        rows = folds.test[places]
        scores = self._oracle.scores(self._P[rows]) if self._scores is None else self._scores[rows]
        return _p_values(scores, self._true[folds.calibration])

    def sets(self, rows: Places) -> Callable[[float], Masks]:
        """The sets of some rows, as a function of the threshold."""
        if self._scores is None:
            P = self._P[rows]
            return lambda tau: self._oracle.sets(P, tau)
        scores = self._scores[rows]
        return lambda tau: scores <= tau


@dataclass(frozen=True, eq=False)
class Result:
    """Of a contender on a split: its run at each alpha; of the first split also the curve, the first sets, and the
    p-values of all labels there, as a function of places in the test fold."""

    runs: tuple[Run, ...]
    curve: tuple[tuple[float, float, float], ...]
    mask: Masks | None
    p_values: Callable[[Places], Floats] | None


def run_split(
    contender: Contender,
    scored: Mapping[float | None, Scored],
    data: Rows,
    folds: Folds,
    alphas: tuple[Fraction, ...],
) -> Result:
    """Calibrate, tune and measure a contender on a split, at every alpha and, on the first split, along the curve."""
    test, first = folds.test, folds.split == 0
    smallest = min(len(folds.calibration), len(folds.halves[0]))
    grid = [level for level in CURVE if points_needed(level) <= smallest] if first else []
    levels = tuple(dict.fromkeys((*alphas, *grid)))
    tested = data.take(test)
    runs, points = dict[Fraction, Run](), dict[Fraction, tuple[float, float, float]]()
    first_mask, first_p = None, None
    at_levels = _anchored if contender.anchored is not None else _scored
    for level, lam, mask, seconds, p_of in at_levels(contender, scored, data, folds, levels):
        sets = PredictionSets(contender.loss, mask)
        if level in grid:
            covered = mask[np.arange(len(test)), tested.truth]
            points[level] = (float(level), float(covered.mean()), float(sets.costs.mean()))
        if level in alphas:
            measures = measure(sets, tested, alpha=level, oracle=contender.oracle_name)
            key = contender.loss_name, contender.oracle_name
            runs[level] = Run(*key, level, folds.split, measures, lam, seconds)
        if first and level == alphas[0]:
            first_mask, first_p = mask, p_of
    found = tuple(runs[level] for level in alphas), tuple(points[level] for level in grid)
    return Result(*found, first_mask, first_p)


# At each level: lambda, the sets of the test fold, the seconds that they took, and p-values of rows of that fold.
_Levels: TypeAlias = Iterator[tuple[Fraction, float | None, Masks, float, Callable[[Places], Floats]]]


def _scored(
    contender: Contender,
    scored: Mapping[float | None, Scored],
    data: Rows,
    folds: Folds,
    levels: Sequence[Fraction],
) -> _Levels:
    """From the scores of all rows, with the lambda that is best at each level."""
    chosen = _tuned(contender.loss, scored, folds.halves, levels) if contender.tuned else dict.fromkeys(levels)
    tuning_rows = sum(map(len, folds.halves)) if contender.tuned else 0
    tuning_seconds = tuning_rows * sum(x.seconds_a_row for x in scored.values())
    for lam in dict.fromkeys(chosen.values()):
        sets_at = scored[lam].sets(folds.test)
        own = [level for level in levels if chosen[level] == lam]
        seconds = tuning_seconds + scored[lam].seconds_a_row * (len(folds.calibration) + len(folds.test))
        for level, tau in scored[lam].thresholds(folds.calibration, own).items():
            yield level, lam, sets_at(tau), seconds, partial(scored[lam].p_values, folds)


def _anchored(
    contender: Contender,
    scored: Mapping[float | None, Scored],
    data: Rows,
    folds: Folds,
    levels: Sequence[Fraction],
) -> _Levels:
    """With an anchor for each level, which is found on the fold for tuning."""
    oracle = contender.anchored
    assert oracle is not None
    own, calibrated, tested = (
        data.take(rows) for rows in (np.concatenate(folds.halves)[:MOST], folds.calibration, folds.test)
    )
    oracle.best(own.P[:2], np.zeros(2))  # compiles the kernels, which no run should be charged for
    for level in levels:
        began = time.perf_counter()
        m = find_anchor(oracle, own.P, own.truth, Rule().covered(len(calibrated), level))

        def at(rows: Rows, m: float | None = m) -> Oracle:
            return oracle if m is None else oracle.anchored(np.full(len(rows), m))

        scores = at(calibrated).score_of(calibrated.P, calibrated.truth)
        tau = float(calibrate(scores, alphas=level).tau(level))
        mask, seconds = at(tested).sets(tested.P, tau), time.perf_counter() - began

        def p_of(places: Places, at: Callable[[Rows], Oracle] = at, scores: Floats = scores) -> Floats:
            some = tested.take(places)
            return _p_values(at(some).scores(some.P), scores)

        yield level, None, mask, seconds, p_of


def _p_values(scores: Floats, calibrated: Floats) -> Floats:
    return np.asarray((Counts.of(calibrated).at_least(scores) + 1) / (len(calibrated) + 1), dtype=np.float64)


def _tuned(
    loss: Loss, scored: Mapping[float | None, Scored], halves: tuple[Places, Places], levels: Sequence[Fraction]
) -> dict[Fraction, float | None]:
    """The best lambda at each level: thresholds on the first half, mean costs on the second."""
    grid = {lam: scores for lam, scores in scored.items() if lam is not None}
    thresholds = {lam: scores.thresholds(halves[0], levels) for lam, scores in grid.items()}
    sets = {lam: scores.sets(halves[1]) for lam, scores in grid.items()}
    best: dict[Fraction, float | None] = {}
    for level in levels:
        taus = tuple(thresholds[lam][level] for lam in grid)
        costs = tuple(float(loss.batch(sets[lam](tau)).mean()) for lam, tau in zip(grid, taus, strict=True))
        best[level] = Tuning(tuple(grid), taus, costs, len(halves[1]), *loss.facts.interval).best
    return best
