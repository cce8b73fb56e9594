"""The temperature of a predictor that 0.2.0 saved: applied as it was then, which is what a repair does too."""

from __future__ import annotations

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.predict.stages.repair import tempered


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("T", [0.2, 1.0, 3.0, 1e6])
def test_tempered_rows_are_the_softmax_of_divided_logs(T: float, dtype: type) -> None:
    P = np.array([[0.7, 0.2, 0.1, 0.0], [1.0, 0.0, 0.0, 0.0], [1e-30, 1e-35, 0.5, 0.5]], dtype=dtype)
    with np.errstate(divide="ignore"):
        z = np.log(P.astype(np.float64)) / T
    meant = np.exp(z - z.max(axis=1, keepdims=True))
    meant /= meant.sum(axis=1, keepdims=True)
    out = tempered(P, T)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, meant, rtol=1e-6, atol=1e-37)
    assert tempered(P, None) is P
    assert tempered(P, 1.0) is P


@pytest.mark.parametrize("T", [0.2, 2.5, 3.0])
def test_a_repair_with_the_exponent_1_over_t_has_the_same_bits(T: float) -> None:
    P = np.random.default_rng(0).dirichlet(np.full(7, 0.3), 500)
    np.testing.assert_array_equal(udcp.Repair(1 / T).apply(P), tempered(P, T))
