"""The compiled exact sum is `math.fsum`, to the last bit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from udcp_solvers.numeric.exact_sum import LIMBS, add, limb_of, rounded

values = st.floats(min_value=0.0, max_value=1e306, allow_nan=False)


def exact_sum(terms: list[float]) -> float:
    total = np.zeros(LIMBS, np.int64)
    for x in terms:
        add(total, x, 1)
    return rounded(total, 2, LIMBS - 1)


@given(st.lists(values, max_size=12))
@example([1.0, 2.0**-53])  # half way: to even, down
@example([1.0, 2.0**-52, 2.0**-53])  # half way: to even, up
@example([1.0, 2.0**-53, 5e-324])  # just over half way, by the least float there is
@example([5e-324] * 3)
@example([2.0**-1022, 5e-324])
@example([1.0, 1e-30, 1e-300, 5e-324])
@example([1.7e308, 5e-324])
def test_is_fsum(terms: list[float]) -> None:
    assert exact_sum(terms) == math.fsum(terms)


@given(values.filter(lambda x: x < 1e290), st.integers(0, 2**31 - 1))
def test_times(x: float, times: int) -> None:
    total = np.zeros(LIMBS, np.int64)
    add(total, x, times)
    assert rounded(total, 2, LIMBS - 1) == float(Fraction(x) * times)


@given(st.lists(st.floats(min_value=5e-324, max_value=1.0), min_size=1, max_size=12))
def test_a_window_of_limbs_is_enough(terms: list[float]) -> None:
    total = np.zeros(LIMBS, np.int64)
    for x in terms:
        add(total, x, 1)
    assert rounded(total, limb_of(min(terms)), limb_of(max(terms)) + 3) == math.fsum(terms)


def test_many_terms_carry() -> None:
    terms = np.random.default_rng(0).random(200_000)
    assert exact_sum(terms.tolist()) == math.fsum(terms)
