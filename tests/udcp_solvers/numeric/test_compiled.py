"""Rows in threads: every row once, errors passed on, and alive after a fork."""

from __future__ import annotations

import multiprocessing
import os
import threading

import numpy as np
import pytest

from udcp_solvers.numeric.compiled import over_rows
from udcp_solvers.numeric.mass import mass_scores


@pytest.mark.parametrize("n", [0, 1, 3, 1000, 100_001])
def test_every_row_once(n: int) -> None:
    seen = np.zeros(n, dtype=int)

    def kernel(start: int, stop: int) -> None:
        seen[start:stop] += 1

    over_rows(kernel, n, 1000)
    assert (seen == 1).all()


def test_an_error_in_a_thread_is_raised() -> None:
    def kernel(start: int, stop: int) -> None:
        if stop == 100_000:
            raise RuntimeError("the last block")

    with pytest.raises(RuntimeError, match="the last block"):
        over_rows(kernel, 100_000, 1000)


def _large() -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(100), 2000)


def _score() -> float:
    P = _large()
    return float(mass_scores(P, np.zeros(len(P)), 0.0, 0).sum())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_scoring_works_after_a_fork() -> None:
    expected = _score()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_score) == expected


def test_scoring_works_in_two_threads_at_once() -> None:
    expected = _score()
    answers: list[float] = []
    threads = [threading.Thread(target=lambda: answers.append(_score())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4
