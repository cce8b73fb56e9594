"""Rows in threads: every row once, whatever the number of threads, and no fault is lost."""

from __future__ import annotations

import numpy as np
import pytest

from udcp_dsl.prediction.rows.value import highest
from udcp_dsl.threads import cores_here, over_blocks


@pytest.mark.parametrize("n", [1, 7, 8, 9, 1000])
@pytest.mark.parametrize("cores", [1, 2, 5])
def test_every_row_is_worked_on_once(n: int, cores: int) -> None:
    seen = np.zeros(n, dtype=int)

    def work(start: int, stop: int) -> None:
        assert 0 <= start < stop <= n
        seen[start:stop] += 1

    over_blocks(work, n, 1 << 20, cores)
    assert (seen == 1).all()


@pytest.mark.parametrize("bad", [0, 99])
def test_what_a_thread_raises_is_raised(bad: int) -> None:
    def work(start: int, stop: int) -> None:
        if start <= bad < stop:
            raise OSError("no more room")

    with pytest.raises(OSError, match="no more room"):
        over_blocks(work, 100, 1 << 20, 3)


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
