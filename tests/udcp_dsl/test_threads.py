"""What numpy does with many rows in threads; tests/udcp_solvers/numeric/test_compiled.py has those of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from udcp_dsl.prediction.rows.value import highest
from udcp_dsl.threads import cores_here


def test_cores_are_those_that_kernels_are_told_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    assert cores_here() == 3
    for other in ("", "0", "many"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", other)
        assert cores_here() >= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_highest_probability_of_many_rows_is_that_of_each(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    P = np.random.default_rng(0).dirichlet(np.ones(7), 20_001).astype(dtype)
    assert (highest(P) == P.max(axis=1).astype(np.float64)).all()
    assert (highest(P[:3]) == P[:3].max(axis=1)).all()
