"""Cross-conformal p-values: their formula, 1 - 2 alpha where the usual + 1 fails, and their law for equal folds."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import CalibrationWarning
from udcp_dsl.predict.calibrate.cross import CrossCalibration, equal_folds, warn_of_many_folds

if TYPE_CHECKING:
    from tests.conftest import Sizes

SCORES = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=6)


@given(st.lists(SCORES, min_size=2, max_size=4), st.lists(st.integers(0, 6), min_size=4, max_size=4))
def test_the_mean_of_the_p_values_of_the_folds_exactly(folds: list[list[float]], new: list[int]) -> None:
    cross = CrossCalibration.of([np.array(fold) for fold in folds])
    own = [float(s) for s in new[: len(folds)]]
    found = cross.p_values([np.array([[s]]) for s in own])[0, 0]
    parts = [Fraction(1 + sum(x >= s for x in fold), len(fold) + 1) for fold, s in zip(folds, own, strict=True)]
    mean = sum(parts) / len(parts)
    assert found == pytest.approx(float(mean))
    for alpha in (mean, mean - Fraction(1, 10**6), Fraction(1, 10), Fraction(1, 2)):
        if 0 < alpha < 1:
            assert cross.sets([np.array([[s]]) for s in own], alpha)[0, 0] == (mean > alpha)
    if len({len(fold) for fold in folds}) == 1:
        k, n = len(folds), sum(map(len, folds))
        counts = sum(x >= s for fold, s in zip(folds, own, strict=True) for x in fold)
        assert mean == Fraction(counts + k, n + k)


def test_one_row_a_fold_with_scores_that_go_together() -> None:
    """Folds whose scores are all above the new one or all below, each half of the time: at alpha 1 / (k + 1) the usual
    (counts + 1) / (n + 1) leaves the truth out every second time, where 2 / (k + 1) is promised."""
    k = 9
    cross = CrossCalibration.of([np.array([0.5])] * k)
    low, high = ([np.array([[s]])] * k for s in (0.0, 1.0))
    alpha = Fraction(1, k + 1)
    assert cross.sets(low, alpha).all()
    assert cross.sets(high, alpha).all()
    assert cross.p_values(high)[0, 0] == 0.5  # the usual: 1 / (k + 1)


def test_their_law_where_folds_are_independent(sizes: Sizes) -> None:
    """Scores drawn anew for each fold: counts are independent and uniform on 0 .. m, so the law is a convolution. Each
    of 3 shares is off by 4.5 standard errors with a chance of 1e-5."""
    rng = np.random.default_rng(0)
    k, m, runs = 3, 4, sizes.draws
    law = np.ones(1)
    for _ in range(k):
        law = np.convolve(law, np.full(m + 1, 1 / (m + 1)))
    found = np.array(
        [
            CrossCalibration.of([rng.random(m) for _ in range(k)]).p_values([rng.random((1, 1)) for _ in range(k)])[
                0, 0
            ]
            for _ in range(runs)
        ]
    )
    for total in (1, 4, 7):
        chance = law[: total + 1].sum()
        share = (found <= (total + k) / (k * m + k) + 1e-12).mean()
        assert abs(share - chance) < 4.5 * np.sqrt(chance * (1 - chance) / runs)
        assert chance <= 2 * (total + k) / (k * m + k)


@given(st.integers(2, 60), st.data(), st.fractions(Fraction(1, 40), Fraction(1, 2), max_denominator=60))
def test_a_warning_comes_exactly_where_every_set_is_full_and_names_folds_that_do(
    n: int, data: st.DataObject, alpha: Fraction
) -> None:
    def is_full(rows: int, k: int) -> bool:
        folds = equal_folds(rows, k, np.random.default_rng(0))
        above_all = [np.array([[1.0]])] * k
        return bool(CrossCalibration.of([np.zeros(len(fold)) for fold in folds]).sets(above_all, alpha)[0, 0])

    k = data.draw(st.integers(2, n))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_many_folds(n, k, (alpha,))
    assert bool(caught) == is_full(n, k)
    for each in caught:
        assert each.category is CalibrationWarning
        text = str(each.message)
        need = re.search(r"needs (\d+) rows.*there are (\d+)", text)
        assert need is not None
        assert int(need[2]) == n
        assert is_full(int(need[1]) - 1, k)
        assert not is_full(int(need[1]), k)
        offered = re.search(r"cv=(\d+) or fewer", text)
        if offered is None:
            assert all(is_full(n, fewer) for fewer in range(2, k))
        else:
            assert not is_full(n, int(offered[1]))
            assert is_full(n, int(offered[1]) + 1)


def test_refusals() -> None:
    rng = np.random.default_rng(0)
    for k in (1, True, "5"):
        with pytest.raises(InputError, match="number of folds, 2 or more"):
            equal_folds(10, k, rng)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="3 rows cannot be split into 5 folds"):
        equal_folds(3, 5, rng)
    with pytest.raises(InputError, match="at least two folds"):
        CrossCalibration.of([np.array([1.0])])
    folds = equal_folds(11, 3, rng)
    assert sorted(np.concatenate(folds).tolist()) == list(range(11))
