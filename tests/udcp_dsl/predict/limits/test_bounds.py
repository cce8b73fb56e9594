"""Upper bounds of means: too low no more often than they may be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import udcp_dsl as udcp
from udcp_dsl.predict.stages.limits import clopper_pearson_above, hoeffding_bentkus_above, upper_bound


@pytest.mark.parametrize(("n", "p", "error"), [(30, 0.1, 0.1), (200, 0.5, 0.05), (50, 0.98, 0.2)])
def test_the_exact_bound_is_too_low_by_its_chance_and_hardly_less(n: int, p: float, error: float) -> None:
    law = binom(n, p).pmf(np.arange(n + 1))
    missed = sum(chance for k, chance in enumerate(law) if clopper_pearson_above(k, n, error) < p)
    assert missed <= error
    assert missed > error / 3


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_the_bound_for_values_between_ends_holds_for_coins_too(p: float) -> None:
    n, error = 40, 0.1
    law = binom(n, p).pmf(np.arange(n + 1))
    missed = sum(chance for k, chance in enumerate(law) if hoeffding_bentkus_above(k / n, n, error) < p)
    assert missed <= error


def test_more_rows_bring_it_nearer() -> None:
    far, near = (hoeffding_bentkus_above(0.2, n, 0.1) for n in (50, 5000))
    assert 0.2 < near < 0.22 < far < 0.35
    assert hoeffding_bentkus_above(0.0, 10, 0.1) < 1
    assert hoeffding_bentkus_above(1.0, 10, 0.1) == 1


def test_of_a_limit_by_its_kind_and_its_ends() -> None:
    head = "labels {a, b, c, d}  category C {b}  limit x: %s <= 0.5  loss l = size"
    (indicator,), (number,) = (udcp.loads(head % text).limits for text in ("any(C)", "2 * size"))
    values = np.repeat([0.0, 1.0], [90, 10])
    assert upper_bound(indicator, values, 0.1) == clopper_pearson_above(10, 100, 0.1)
    assert upper_bound(number, 8 * values, 0.1) == pytest.approx(8 * hoeffding_bentkus_above(0.1, 100, 0.1))
