"""Coverage in simulation against its exact law; a calibrator whose k is off by one is caught by the same statistic."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from udcp_dsl.check.coverage import Trials, covered_with_random_ties, significant_trials
from udcp_dsl.predict.calibrate import (
    Strata,
    calibrate,
    coverage_law,
    randomized_sets,
    rank,
    threshold,
)

if TYPE_CHECKING:
    from tests.conftest import Sizes

Floats = NDArray[np.float64]
ThresholdOf = Callable[[Floats, Fraction], float]
rank_of = cache(rank)


@dataclass(frozen=True)
class Problem:
    """n_cal and n_test points of one score distribution, drawn afresh `repeats` times; `ties` rounds the scores."""

    n_cal: int
    alpha: Fraction
    ties: bool
    seed: int
    n_test: int = 10
    repeats: int = 400


def problems(count: int) -> list[Problem]:
    rng = np.random.default_rng(2410)
    alphas = [Fraction(a) for a in ("0.05", "0.1", "0.2", "1/3", "0.5", "0.7")]
    return [Problem(int(rng.integers(5, 41)), alphas[i % len(alphas)], ties=i % 4 == 3, seed=i) for i in range(count)]


def trials(threshold_of: ThresholdOf, case: Problem) -> Trials:
    """How many scores of the test points are within the thresholds."""
    rng = np.random.default_rng(case.seed)
    draws = rng.gumbel(size=(case.repeats, case.n_cal + case.n_test))
    covered = fair = 0
    for row in np.round(draws) if case.ties else draws:
        tau = threshold_of(row[: case.n_cal], case.alpha)
        inside = row[case.n_cal :] <= tau
        covered += int(inside.sum())
        fair += int(covered_with_random_ties(inside, row[: case.n_cal], row[case.n_cal :], tau, case.alpha, rng).sum())
    return Trials(case.n_cal, case.n_test, case.alpha, case.repeats, covered, fair)


def shifted(by: int) -> ThresholdOf:
    """A broken calibrator: its k is off by `by`."""

    def threshold_of(scores: Floats, alpha: Fraction) -> float:
        k = rank_of(scores.size, alpha) + by
        padded = np.concatenate(([-math.inf], np.sort(scores), [math.inf, math.inf]))
        return float(padded[k])

    return threshold_of


def test_coverage_follows_its_law_and_an_off_by_one_is_caught(sizes: Sizes) -> None:
    cases = problems(sizes.problems)
    warnings.simplefilter("ignore")
    assert significant_trials(trials(threshold, case) for case in cases) == []
    # The broken one is broken by its shift alone.
    assert significant_trials(trials(shifted(0), case) for case in cases[:8]) == []
    assert len(significant_trials(trials(shifted(-1), case) for case in cases)) > 0.37 * len(cases)
    assert len(significant_trials(trials(shifted(+1), case) for case in cases)) > 0.37 * len(cases)


def test_randomized_coverage_in_simulation(sizes: Sizes) -> None:
    """One test point for each calibration set: the number covered is binomial, with ties as without.

    Each calibration set is a group of its own, so this tries the groups as well.
    """
    from scipy.stats import binom

    repeats = sizes.draws
    cases = [(n, Fraction(a), ties) for n in (1, 5, 19) for a in ("0.1", "1/3") for ties in (False, True)]
    rng = np.random.default_rng(0)
    warnings.simplefilter("ignore")
    for n, alpha, ties in cases:
        scores = rng.gumbel(size=(repeats, n + 1))
        scores = np.round(scores) if ties else scores
        owner = np.repeat(np.arange(repeats), n)
        strata = Strata.of_groups(owner)
        codes = strata.codes_of_groups(owner, unseen=False)
        c = calibrate(scores[:, :n].ravel(), alpha=alpha, strata=strata, codes=codes, randomize=True)
        new = strata.codes_of_groups(np.arange(repeats), unseen=False)
        covered = int(randomized_sets(scores[:, n:], c, rng, new).sum())
        low, high = binom.cdf(covered, repeats, float(1 - alpha)), binom.sf(covered - 1, repeats, float(1 - alpha))
        assert 2 * min(low, high) > 1e-4 / len(cases), (n, alpha, ties, covered)


@pytest.mark.parametrize(("n", "alpha"), [(3, "1/2"), (4, "1/5"), (5, "0.3"), (6, "0.7")])
def test_the_coverage_law_by_enumeration(n: int, alpha: str) -> None:
    """Every arrangement of calibration and test points among n + 2 ranks is as likely as any other."""
    k, counts = rank(n, alpha), [0, 0, 0]
    for test in itertools.combinations(range(n + 2), 2):
        calibration = [r for r in range(n + 2) if r not in test]
        counts[sum(r <= calibration[k - 1] for r in test)] += 1
    law = coverage_law(n, alpha, 2)
    assert law.pmf([0, 1, 2]) == pytest.approx(np.array(counts) / sum(counts), rel=1e-12, abs=1e-15)


def test_the_coverage_law_of_full_sets() -> None:
    law = coverage_law(8, 0.1, 50)
    assert (law.pmf(50), law.cdf(49), law.mean()) == (1.0, 0.0, 50.0)
