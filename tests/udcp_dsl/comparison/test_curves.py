"""The cost at one coverage, with its error: judged by drawing the rows again and again."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binom

from udcp_dsl.comparison import CostCurve

if TYPE_CHECKING:
    from tests.conftest import Sizes

LEVELS = [Fraction(k, 20) for k in (6, 4, 3, 2, 1)]


def drawn(rng: np.random.Generator, n: int) -> tuple[CostCurve, CostCurve]:
    """Two oracles on the same rows: a set covers where the row's luck is below 1 - alpha, and costs more the higher its
    threshold is and the harder the row; the second pays a fifth more."""
    luck, hard = rng.random(n), rng.exponential(size=n)
    covered = [luck <= 1 - float(level) for level in LEVELS]
    costs = [(1 - float(level)) ** 2 * 10 * hard for level in LEVELS]
    other = [1.25 * cost + 0.1 * rng.standard_normal(n) for cost in costs]
    none = [None] * len(LEVELS)
    return CostCurve.of(LEVELS, costs, covered, none), CostCurve.of(LEVELS, other, covered, none)


def found(curve: CostCurve, coverage: float) -> Any:
    matched = curve.at(coverage)
    assert matched is not None
    return matched


def test_intervals_hold_what_they_should(sizes: Sizes) -> None:
    """The truth lies within in 94 to 96 percent of the draws, with room for the line that is drawn through a curve: but
    for a chance of 1e-5 on each side."""
    rng = np.random.default_rng(1)
    inside = np.zeros(2, dtype=int)
    for _ in range(sizes.draws):
        one, other = drawn(rng, 400)
        low, high = found(one, 0.87).interval
        _, least, most = found(one, 0.87).saving(found(other, 0.87))
        inside += [low <= 0.87**2 * 10 <= high, least <= 0.2 <= most]
    assert (inside >= binom(sizes.draws, 0.94).ppf(1e-5)).all(), inside
    assert (inside <= binom(sizes.draws, 0.96).isf(1e-5)).all(), inside


def test_the_error_counts_that_of_coverage() -> None:
    """Where all rows cost the same at a threshold, the cost at a coverage is uncertain by what is covered alone."""
    rng = np.random.default_rng(0)
    luck = rng.random(20_000)
    covered = [luck <= 1 - float(level) for level in LEVELS]
    flat = CostCurve.of(LEVELS, [np.full(20_000, 10 - 20 * float(x)) for x in LEVELS], covered, [None] * 5)
    low, high = found(flat, 0.87).interval
    assert high - low == pytest.approx(2 * 1.96 * 20 * np.sqrt(0.87 * 0.13 / 20_000), rel=0.1)


def test_rows_in_common_make_a_difference_sharper() -> None:
    one, other = drawn(np.random.default_rng(2), 2000)
    share, low, high = found(one, 0.87).saving(found(other, 0.87))
    assert 0.19 < low < share < high < 0.21
    width = np.diff(found(one, 0.87).interval)[0]
    assert (high - low) * found(other, 0.87).mean < width / 5


def test_beyond_its_ends_a_curve_says_nothing() -> None:
    one, _ = drawn(np.random.default_rng(3), 300)
    assert one.at(0.5) is None
    assert one.at(0.999) is None
    assert CostCurve().at(0.9) is None


def test_of_many_rows_some_are_kept_and_errors_stay() -> None:
    one, _ = drawn(np.random.default_rng(4), 50_000)
    assert one.costs.shape == (5, 20_000)
    low, high = found(one, 0.87).interval
    assert high - low == pytest.approx(2 * 1.96 * np.std(found(one, 0.87).rows) / np.sqrt(50_000))


def test_points_with_the_same_coverage_are_no_trouble() -> None:
    hits = np.array([True, True, True, False])
    curve = CostCurve.of(LEVELS[:2], [np.ones(4), np.full(4, 2.0)], [hits, hits], [None, 3.0])
    assert found(curve, 0.75).mean == 1.0
    assert found(curve, 0.75).interval == (1.0, 1.0)
    free = CostCurve.of(LEVELS[:2], [np.zeros(4), np.zeros(4)], [hits, hits], [None, None])
    assert found(curve, 0.75).saving(found(free, 0.75)) is None


@pytest.mark.parametrize(("worth", "kept"), [(2.5, 2.5), (np.inf, None), (None, None), ({"a": 1.0, "b": 2.0}, None)])
def test_the_worth_of_a_miss_is_one_finite_number_or_none(worth: Any, kept: float | None) -> None:
    curve = CostCurve.of([Fraction(1, 10)], [np.ones(4)], [np.ones(4, dtype=bool)], [worth])
    assert curve.points[0].worth == kept
