"""The user's own probabilities and labels: coverage over repeated splits, and whether the file drifts along its order.

A random split makes calibration and test rows exchangeable, whatever the file is, so the distribution of coverage is
known exactly. In use the split is not random: new rows come after old ones. If the scores of true labels change along
the file, a threshold set on its rows may not hold for those that follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate import points_needed
from udcp_dsl.prediction.rows import Rows, rows_of
from udcp_dsl.testing.coverage import Trials, coverage_trials
from udcp_dsl.validation.coverage_trials import judged, predictor_of
from udcp_dsl.validation.verdicts import COVERAGE, DRIFT, ON_YOUR_ROWS, CounterExample, Verdict

if TYPE_CHECKING:
    from udcp_dsl.expression.domain import Floats
    from udcp_dsl.loss import Loss
    from udcp_dsl.validation.oracles import Chosen
    from udcp_dsl.validation.plan import Plan

_SPLITS = 12
_MOST_ROWS = 2000  # rows of a split and of the drift test: more would only take longer
_PERMUTATIONS = 9999
_ENOUGH = 50  # permutations as extreme as the file: more only refine a large p (Besag and Clifford, 1991)
_SLOW = "it is slow: each row is solved separately"
DRIFT_ERROR = 1e-3  # the probability that a file without drift fails


@dataclass(frozen=True, eq=False)
class OwnRows:
    """The user's rows as a source that draws some of them without replacement."""

    rows: Rows

    @classmethod
    def of(cls, loss: Loss, probs: Any, y: Any, alphas: Sequence[Fraction], inputs: Any = None) -> OwnRows:
        """Raises InputError for invalid probabilities, labels or inputs, and for too few rows for these levels."""
        rows = rows_of(probs, loss.labels, y=y, loss=loss, inputs=inputs)
        need = 6 * max(points_needed(alpha) for alpha in alphas)  # two halves, each for three folds
        if len(rows.truth) < need:
            raise InputError(f"{len(rows)} rows are too few to split: give {need} or more, or a larger alpha")
        return cls(rows)

    @property
    def half(self) -> int:
        """The number of rows in one half of a split; at most `_MOST_ROWS` rows are split."""
        return min(len(self.rows), _MOST_ROWS) // 2

    def draw(self, n: int, rng: np.random.Generator) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        drawn = self.draw_rows(n, rng)
        return drawn.P, drawn.truth

    def draw_rows(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw rows with their inputs."""
        return self.rows.take(rng.choice(len(self.rows), n, replace=False))


def splits(
    loss: Loss, chosen: Sequence[Chosen], alphas: Sequence[Fraction], own: OwnRows, plan: Plan, family_wise: float
) -> list[Verdict]:
    """Coverage of each oracle over repeated splits: calibrated on one half of the rows, tested on the other.

    If time is short there are fewer splits, at least one. Slow oracles are reported as not tried.
    """
    half = own.half
    rng = np.random.default_rng([plan.seed, len(own.rows)])
    pairs = [(item, alpha) for item in chosen if not item.slow for alpha in alphas]
    predictors = {(item.name, alpha): predictor_of(loss, item, alpha) for item, alpha in pairs}
    found: dict[tuple[str, Fraction], list[Trials]] = {key: [] for key in predictors}
    seconds = dict.fromkeys(predictors, 0.0)
    for _ in range(_SPLITS):
        for key, predictor in predictors.items():
            if found[key] and plan.late("own rows", seconds[key]):
                continue
            began = plan.now()
            trial = coverage_trials(predictor, own, n_cal=half, n_test=half, repeats=1, rng=rng)
            if trial.repeats:
                found[key].append(trial)
            seconds[key] = plan.now() - began
    trials: dict[str, list[Trials]] = {}
    for (name, _), each in found.items():
        about = f"{name} {ON_YOUR_ROWS}"
        covered, fair = sum(t.covered for t in each), sum(t.fair for t in each)
        whole = replace(each[0], repeats=len(each), covered=covered, fair=fair, name=about)
        trials.setdefault(about, []).append(whole)
    slow = [f"{item.name} {ON_YOUR_ROWS}: {COVERAGE}" for item in chosen if item.slow]
    return [*judged(trials, family_wise), *(Verdict(claim, None, 0, _SLOW) for claim in slow)]


def drift(loss: Loss, chosen: Sequence[Chosen], own: OwnRows, seed: int) -> Verdict:
    """Permutation test of whether the true labels' scores, under any oracle, depend on the place in the file.

    Two statistics, each the largest over the oracles: the rank correlation with the place, and the largest partial sum
    of centred ranks (CUSUM), which a sudden change makes large.
    """
    from scipy.stats import rankdata

    claim = DRIFT
    if all(item.slow for item in chosen):
        return Verdict(claim, None, 0, _SLOW)
    n = len(own.rows)
    rows = own.rows.take(np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.int64))
    asked = [item.oracle for item in chosen if not item.slow]
    ranks = np.array([rankdata(oracle.score_of(rows, rows.truth)) for oracle in asked])
    ranks -= ranks.mean(axis=1, keepdims=True)
    ranks /= np.maximum(ranks.std(axis=1, keepdims=True), 1e-12)  # all equal: there is nothing to drift
    seen = _statistics(ranks)
    rng = np.random.default_rng([seed, len(rows), 1])
    at_least, p = np.zeros(2), np.full(2, np.nan)
    for drawn in range(1, _PERMUTATIONS + 1):
        at_least += _statistics(ranks[:, rng.permutation(len(rows))]) >= seen - 1e-9
        p = np.where(np.isnan(p) & (at_least == _ENOUGH), _ENOUGH / drawn, p)
        if not np.isnan(p).any():
            break
    p = np.where(np.isnan(p), (at_least + 1) / (_PERMUTATIONS + 1), p)
    names = ("rank correlation with the position in the file", "CUSUM")
    values = ", ".join(f"{name}: p = {value:.4f}" for name, value in zip(names, p, strict=True))
    note = f"{values}; probability of a false alarm: at most {DRIFT_ERROR:g}"
    found = float(p.min()) <= DRIFT_ERROR / 2
    example = None
    if found:
        which = int(p.argmin())
        text = f"the scores of the true labels change along the file ({names[which]}, p = {p[which]:.4f})"
        example = CounterExample(f"{text}: later rows will not be covered like the calibration rows")
    return Verdict(claim, not found, len(rows), note, example)


def _statistics(ranks: Floats) -> Floats:
    """The largest |correlation with the place| and |partial sum| over the rows of `ranks`, one row per oracle."""
    n = ranks.shape[1]
    place = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
    return np.array([np.abs(ranks @ place).max(), np.abs(np.cumsum(ranks, axis=1)).max()])
