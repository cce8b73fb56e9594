"""Randomized sets, held against their definition in exact rational arithmetic, at the draws where they change."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import (
    Calibration,
    Strata,
    calibrate,
    points_needed,
    randomized_sets,
    randomized_tau,
)
from udcp_dsl.predict.calibrate.randomized import row_draws

pytestmark = pytest.mark.filterwarnings("error::udcp_dsl.predict.calibrate.CalibrationWarning")

LEVELS = st.fractions(min_value=Fraction(1, 200), max_value=Fraction(199, 200), max_denominator=400)
# Few distinct values, so that ties are common; neighbours, signed zeros and infinity among them.
SCORES = st.sampled_from([-2.0, -0.0, 0.0, 5e-324, 0.1, 0.1 + 2**-56, 1.0, 3.0, math.inf])


class Draws(np.random.Generator):
    """A generator whose whole numbers are those given: U = draw / 2^53."""

    def __init__(self, draws: Sequence[int]) -> None:
        super().__init__(np.random.PCG64(0))
        self.draws = np.array(draws, dtype=np.int64).reshape(-1, 1)

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int, endpoint: bool = False) -> Any:
        assert (low, high, endpoint) == (1, 2**53, True)
        assert size == self.draws.shape
        return self.draws


def critical(s: float, scores: Sequence[float], alpha: Fraction) -> Fraction:
    """The r with "s is in if and only if U > r", from the definition, within [0, 1]."""
    above, ties = sum(x > s for x in scores), sum(x == s for x in scores)
    return min(max((alpha * (len(scores) + 1) - above) / (1 + ties), Fraction(0)), Fraction(1))


def check_draws(
    c: Calibration, column: int, s: float, scores: list[float], alpha: Fraction, code: int | None = None
) -> None:
    """The label is out at the last draw with U <= r and in at the next one: its chance is 1 - r to within 2^-53."""
    last_out = math.floor(2**53 * critical(s, scores, alpha))
    draws = [j for j in (1, last_out, last_out + 1, 2**53) if 1 <= j <= 2**53]
    matrix = np.full((len(draws), 4), math.inf)
    matrix[:, column] = s
    codes = None if code is None else np.full(len(draws), code)
    sets = randomized_sets(matrix, c, Draws(draws), codes)
    assert sets[:, column].tolist() == [j > last_out for j in draws]


@given(st.lists(SCORES, min_size=1, max_size=12), SCORES, LEVELS)
def test_randomized_sets_are_the_definition_exactly(scores: list[float], s: float, alpha: Fraction) -> None:
    warnings.simplefilter("ignore")
    check_draws(calibrate(scores, alpha=alpha, randomize=True), 0, s, scores, alpha)


@given(st.lists(st.tuples(SCORES, st.integers(0, 2)), min_size=1, max_size=14), SCORES, LEVELS, st.booleans())
def test_randomized_by_group_and_class(rows: list[tuple[float, int]], s: float, alpha: Fraction, pool: bool) -> None:
    warnings.simplefilter("ignore")
    everything, y = [x for x, _ in rows], [k for _, k in rows]
    by_class = calibrate(
        everything, alpha=alpha, strata=Strata("class", n_classes=4), codes=y, pool=pool, randomize=True
    )
    strata = Strata.of_groups(y)
    codes = strata.codes_of_groups(y, unseen=False)
    by_group = calibrate(everything, alpha=alpha, strata=strata, codes=codes, pool=pool, randomize=True)
    for k in range(4):
        scores = [x for x, c in rows if c == k]
        decides = everything if pool and len(scores) < points_needed(alpha) else scores
        check_draws(by_class, k, s, decides, alpha)
        if k in y or pool:
            check_draws(by_group, 0, s, decides, alpha, int(strata.codes_of_groups([k], unseen=pool)[0]))


@given(st.lists(SCORES, min_size=1, max_size=10), LEVELS)
def test_randomized_coverage_is_1_minus_alpha_exactly(scores: list[float], alpha: Fraction) -> None:
    """Every point of n + 1 is as likely the test point; the chance over U is exact, so the mean must be exact."""
    chances = [1 - critical(s, scores[:i] + scores[i + 1 :], alpha) for i, s in enumerate(scores)]
    assert sum(chances) / len(chances) == 1 - alpha


def test_one_draw_a_row_in_blocks_or_at_once() -> None:
    rng = np.random.default_rng(5)
    scores = rng.random((40, 3))
    c = calibrate(rng.random(30), alpha=0.3, randomize=True)
    whole = randomized_sets(scores, c, np.random.default_rng(7))
    blocks = np.random.default_rng(7)
    assert np.array_equal(whole, np.concatenate([randomized_sets(b, c, blocks) for b in np.split(scores, 4)]))
    tau = randomized_tau(c, np.random.default_rng(7), 40)
    assert tau.shape == (40, 1)
    assert np.array_equal(whole, scores <= tau)
    assert randomized_sets(np.empty((0, 3)), c, rng).shape == (0, 3)
    single = scores.astype(np.float32)
    again = randomized_sets(single, c, np.random.default_rng(7))
    assert np.array_equal(again, single.astype(np.float64) <= tau)


def test_randomized_refusals() -> None:
    rng = np.random.default_rng(0)
    plain = calibrate(np.arange(9), alpha=0.1)
    with pytest.raises(InputError, match="calibrate with randomize=True"):
        randomized_sets([[0.0]], plain, rng)
    c = calibrate(np.arange(9), alpha=0.1, randomize=True)
    for value in (math.nan, -math.inf):
        with pytest.raises(InputError, match="row 1: a score is NaN or -inf"):
            randomized_sets([[0.0, 0.0], [value, 0.0]], c, rng)
    with pytest.raises(InputError, match="one row of numbers per instance"):
        randomized_sets([0.0], c, rng)
    with pytest.raises(InputError, match=r"give a numpy\.random\.Generator"):
        randomized_sets([[0.0]], c, 7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="row 1: the score is -inf"):
        calibrate([0.0, -math.inf], alpha=0.5, randomize=True)
    by_class = calibrate([0.0, 1.0], alpha="1/2", strata=Strata("class", n_classes=2), codes=[0, 1], randomize=True)
    with pytest.raises(InputError, match="3 columns, but 2 classes"):
        randomized_sets([[0.0, 0.0, 0.0]], by_class, rng)
    by_group = calibrate([0.0, 1.0], alpha="1/2", strata=Strata("group", ("a", "b")), codes=[0, 1], randomize=True)
    with pytest.raises(InputError, match="needs the stratum of each row"):
        randomized_sets([[0.0], [0.0]], by_group, rng)
    for codes in ([0], [0, 1, 0]):
        with pytest.raises(InputError, match=f"codes= has {len(codes)} entries for 2 rows"):
            randomized_sets([[0.0], [0.0]], by_group, rng, np.array(codes))
    assert c.all_cells[0].scores is not None
    with pytest.raises(ValueError, match="read-only"):
        c.all_cells[0].scores[0] = 1.0


def test_rows_that_differ_have_draws_that_differ() -> None:
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=1000)
    draws = row_draws(rows, seed=0)[:, 0]
    assert len(np.unique(draws)) == len(rows)
    below_half = int((draws <= 2**52).sum())
    assert 400 < below_half < 600  # six standard deviations
