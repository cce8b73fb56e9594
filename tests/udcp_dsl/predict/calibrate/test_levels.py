"""Levels as they are written, and ranks by counting, where floats are one off."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import exact_level, levels_of, points_needed, rank, show_level


@pytest.mark.parametrize(
    "alpha",
    [0.1, "0.1", " 0.10 ", "1/10", "1e-1", ".1", Decimal("0.1"), Fraction(1, 10)]
    + [kind(0.1) for kind in (np.float64, np.float32, np.float16)],
)
def test_a_level_is_the_decimal_as_written(alpha: Any) -> None:
    assert exact_level(alpha) == Fraction(1, 10)


NO_LEVELS: list[object] = [
    0,
    1,
    0.0,
    1.0,
    -0.1,
    1.5,
    10,
    math.nan,
    math.inf,
    Decimal("NaN"),
    Fraction(0),
    Fraction(3, 2),
]
NO_LEVELS += [True, False, np.True_, None, [0.1], 0.1j, b"0.1", "", "ten", "nan", "1/0", "0.1.2", "10%"]
NO_LEVELS += ["1e-999999999", Decimal("1e-999999999"), "0." + "1" * 10_000, "\u0661/\u0662"]  # too long; other digits


@pytest.mark.parametrize("alpha", NO_LEVELS, ids=lambda alpha: repr(alpha)[:20])
def test_a_level_outside_0_1_or_no_number_is_refused(alpha: Any) -> None:
    with pytest.raises(InputError, match=r"alpha is .*: give a number strictly between 0 and 1, such as 0\.1"):
        exact_level(alpha)


def test_alpha_or_confidence_level() -> None:
    assert levels_of() == (Fraction(1, 10),)
    assert levels_of(0.05) == levels_of(confidence_level=0.95) == (Fraction(1, 20),)
    assert levels_of(confidence_level=np.float32(0.9)) == (Fraction(1, 10),)
    for alpha in (0.1, [0.1]):
        with pytest.raises(InputError, match="both given: give one"):
            levels_of(alpha, 0.9)
    with pytest.raises(InputError, match="confidence_level is 90: give a number strictly between 0 and 1"):
        levels_of(confidence_level=90)


@pytest.mark.parametrize("alpha", [x for x in NO_LEVELS if x not in (None, [0.1])], ids=lambda alpha: repr(alpha)[:20])
def test_one_that_is_no_level_is_refused_alone_and_among_others(alpha: Any) -> None:
    for alphas in (alpha, [0.1, alpha], np.array([alpha], dtype=object)):
        with pytest.raises(InputError, match=r"alpha is .*: give a number strictly between 0 and 1, such as 0\.1"):
            levels_of(alphas)


def test_several_levels_stay_in_order() -> None:
    expected = (Fraction(1, 5), Fraction(1, 10))
    for several in ([0.2, "0.1"], ("1/5", 0.1), np.array([0.2, 0.1], np.float32), iter([0.2, 0.1])):
        assert levels_of(several) == expected
    with pytest.raises(InputError, match=r"alpha is 0\.1, 0\.1: give at least one level, each once"):
        levels_of([0.1, "0.10"])
    with pytest.raises(InputError, match="alpha is an empty list: give at least one level"):
        levels_of([])


def test_levels_in_messages() -> None:
    shown = [show_level(exact_level(a)) for a in ("0.10", "1/3", "0.1000000000000000000001", "1e-5")]
    assert shown == ["0.1", "1/3", "1000000000000000000001/10000000000000000000000", "1e-05"]


def brute_rank(n: int, p: int, q: int) -> int:
    """The least k with k / (n + 1) >= 1 - p/q, found by counting."""
    return next(k for k in itertools.count() if k * q >= (n + 1) * (q - p))


def test_rank_and_points_needed_against_counting() -> None:
    for p in range(1, 40):
        alpha = Fraction(p, 40)
        ranks = [brute_rank(n, p, 40) for n in range(130)]
        assert [rank(n, alpha) for n in range(130)] == [rank(n, float(alpha)) for n in range(130)] == ranks
        assert points_needed(alpha) == next(n for n in range(130) if ranks[n] <= n)


@pytest.mark.parametrize(
    ("n", "alpha", "k", "in_floats"),
    [(9, 0.7, 3, 4), (249, 0.172, 207, 208), (999, 0.059, 941, 942), (9, 0.09999999999999999, 10, 9)],
)
def test_rank_where_floats_are_one_off(n: int, alpha: float, k: int, in_floats: int) -> None:
    assert math.ceil((n + 1) * (1 - alpha)) == in_floats
    assert rank(n, alpha) == k


THIRD = (10**18, "1/3", (2 * 10**18 + 4) // 3)


@pytest.mark.parametrize(
    ("n", "alpha", "k"), [(9, 0.1, 9), (99, 0.05, 95), (99, 0.1, 90), (8, 0.1, 9), (0, 0.1, 1), THIRD]
)
def test_known_ranks(n: int, alpha: Any, k: int) -> None:
    assert rank(n, alpha) == k


@pytest.mark.parametrize("n", [-1, 1.5, True, "9"])
def test_rank_refuses_what_is_no_count(n: Any) -> None:
    with pytest.raises(InputError, match="whole number of rows"):
        rank(n, 0.1)
