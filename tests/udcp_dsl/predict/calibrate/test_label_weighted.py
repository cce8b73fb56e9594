"""Thresholds by label under label shift: the law of coverage and of harm in whole numbers, p-values, saved data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import factorial, prod

import numpy as np
import pytest

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import Calibration, Rule, Strata, calibrate, label_weighted
from udcp_dsl.predict.calibrate.ranks import p_values

# Two labels and ten scores: the shares of labels before and now, and of scores given the label.
OLD, NEW = (Fraction(3, 4), Fraction(1, 4)), (Fraction(3, 8), Fraction(5, 8))
SCORES = tuple(tuple(Fraction(share, 55) for share in shares) for shares in (range(10, 0, -1), range(1, 11)))
RATIOS = np.array([0.5, 2.5])
HARMS = np.array([1.0, 0.5])
POINTS = list(product(range(2), range(10)))  # a label and a score

Fit = Callable[[np.ndarray, np.ndarray], Calibration]


def draws(n: int) -> Iterator[tuple[Fraction, np.ndarray, np.ndarray]]:
    """Every bag of n points of the old mix, with its probability, scores and labels."""
    for bag in combinations_with_replacement(POINTS, n):
        ways = factorial(n) // prod(map(factorial, Counter(bag).values()))
        chance = ways * prod((OLD[y] * SCORES[y][s] for y, s in bag), start=Fraction(1))
        yield chance, np.array([s for _, s in bag], dtype=np.float64), np.array([y for y, _ in bag])


def mean_harm(n: int, fit: Fit, harms: np.ndarray) -> Fraction:
    """The exact mean harm of a miss for one new point of the new mix."""
    total = Fraction(0)
    for chance, scores, y in draws(n):
        taus = np.broadcast_to(fit(scores, y).tau(), (1, 2))[0]
        missed = [NEW[y] * SCORES[y][s] * Fraction(harms[y]) for y, s in POINTS if s > taus[y]]
        total += chance * sum(missed, start=Fraction(0))
    return total


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)])
def test_coverage_holds_exactly_for_the_true_ratios(n: int, alpha: Fraction) -> None:
    assert mean_harm(n, lambda s, y: label_weighted(s, y, RATIOS, alpha=alpha), np.ones(2)) <= alpha


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(1, 4)])
def test_harm_is_bounded_exactly_for_the_true_ratios(alpha: Fraction) -> None:
    def fit(scores: np.ndarray, y: np.ndarray) -> Calibration:
        return label_weighted(scores, y, RATIOS, alpha=alpha, harms=HARMS[y], most=Fraction(1))

    assert mean_harm(3, fit, HARMS) <= alpha


def test_rows_of_the_old_mix_and_the_weight_of_the_new_point_both_count() -> None:
    """Without weights, or with those of calibration points alone, the law is broken."""
    alpha = Fraction(1, 4)

    class WithoutTheNewPoint:
        def __init__(self, scores: np.ndarray, y: np.ndarray) -> None:
            found = calibrate(scores, alpha=alpha, weights=RATIOS[y]).cells[0].steps
            assert found is not None
            self.steps = found

        def tau(self) -> float:
            return float(self.steps.tau(np.zeros(1))[0])

    weighted = mean_harm(3, lambda s, y: label_weighted(s, y, RATIOS, alpha=alpha), np.ones(2))
    assert weighted <= alpha
    assert mean_harm(3, lambda s, y: calibrate(s, alpha=alpha), np.ones(2)) > alpha
    assert mean_harm(3, WithoutTheNewPoint, np.ones(2)) > alpha  # type: ignore[arg-type]  # it has a tau


def test_equal_ratios_are_no_weights() -> None:
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=200), rng.integers(0, 3, 200)
    for alpha in (0.1, 0.3):
        found = label_weighted(scores, y, np.ones(3), alpha=alpha)
        assert np.asarray(found.tau()).tolist() == [[calibrate(scores, alpha=alpha).tau()] * 3]
        assert not found.weighted


def test_p_values_give_the_same_sets() -> None:
    rng = np.random.default_rng(0)
    found = label_weighted(rng.normal(size=99), rng.integers(0, 2, 99), RATIOS, alpha=0.2)
    scores = rng.normal(size=(500, 2))
    values = p_values(scores, found, None, found.cells_of(None))
    np.testing.assert_array_equal(values > 0.2, scores <= found.tau())


def test_saved_data_gives_the_same_thresholds() -> None:
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=50), rng.integers(0, 2, 50)
    for alpha in (Fraction(1, 10), Fraction(1, 5)):
        found = label_weighted(scores, y, RATIOS, alpha=alpha)
        data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        read = Calibration.from_dict(data, alpha, Strata(), found.rule, randomize=False)
        assert read.as_dict() == found.as_dict()
        np.testing.assert_array_equal(read.tau(), found.tau())
        with pytest.raises(InputError, match="weights of labels"):
            Calibration.from_dict({**data, "label_weights": [1.0, -1.0]}, alpha, Strata(), Rule(), randomize=False)
    data = {**calibrate([1.0, 2.0], alpha=0.5).as_dict(), "label_weights": [1.0]}
    with pytest.raises(InputError, match="weights of labels"):
        Calibration.from_dict(data, Fraction(1, 2), Strata(), Rule(), randomize=False)


def test_weights_of_rows_are_refused() -> None:
    found = label_weighted(np.arange(9.0), np.zeros(9, dtype=int), RATIOS, alpha=0.2)
    with pytest.raises(InputError, match="calibration had none"):
        found.tau(weights=[1.0])
