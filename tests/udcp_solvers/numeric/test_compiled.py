"""Rows in threads: every row once, errors passed on, alive after a fork; and nothing is held for good."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numba.core.runtime import _nrt_python as counts
from numba.core.runtime import rtsys

import udcp_dsl as udcp
from udcp_solvers.numeric.compiled import Kernel, over_rows
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


MODULE = "def add(x):\n    return x + 1\n"


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Kernel]:
    """Makes the same kernel as a process that starts would, with its cache in this folder."""
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Kernel, "_all_kernels", [])
    monkeypatch.setattr(Kernel, "_plain", False)
    (tmp_path / "adding.py").write_text(MODULE)

    def make() -> Kernel:
        names = {"__name__": "adding"}
        exec(compile(MODULE, tmp_path / "adding.py", "exec"), names)
        return Kernel(names["add"])

    return make


def cached(tmp_path: Path, ending: str) -> Path:
    (found,) = tmp_path.rglob(f"*{ending}")
    return found


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "of another kind"])
def test_a_damaged_cache_is_compiled_again_once(
    ending: str, damage: str, fresh: Callable[[], Kernel], tmp_path: Path
) -> None:
    assert fresh()(1) == 2
    file = cached(tmp_path, ending)
    data = file.read_bytes()
    file.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "of another kind": data[:11] + b"N."}[damage])
    for hits in (0, 1):
        kernel = fresh()
        assert kernel(1) == 2
        assert sum(kernel.dispatcher.stats.cache_hits.values()) == hits
    assert not Kernel._plain


def test_a_cache_that_cannot_be_written_is_done_without(
    fresh: Callable[[], Kernel], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert fresh()(1) == 2
    index = cached(tmp_path, ".nbi")
    index.unlink()
    index.mkdir()
    assert fresh()(1) == 2
    (told,) = {record.getMessage() for record in caplog.records if record.name == "udcp_dsl.compiling"}
    assert f"compiled code cannot be kept in {index.parent}" in told
    assert "each start compiles again" in told


@pytest.mark.parametrize("oracle", ["base", "lac", "greedy", "price"])
def test_kernels_free_the_arrays_that_they_make(oracle: str) -> None:
    """What a kernel refers to is let go of again: numba makes that a pass of its own, which ours must not lack."""
    loss = udcp.loads("labels 0..99  categories f { a: { 0..49 }, b: { 50..99 } }  loss l = count(f) + 0.1 * size")
    asked = udcp.make_oracle(oracle, loss)
    P = np.random.default_rng(0).dirichlet(np.ones(100), 50)

    def ask() -> None:
        asked.scores(P)
        asked.sets(P, 0.0)
        asked.score_of(P, np.zeros(50, dtype=np.int64))

    ask()
    gc.collect()  # of what was compiled just now frames are left
    counts.memsys_enable_stats()
    try:
        before, held = rtsys.get_allocation_stats(), sys.getrefcount(P)
        ask()
        after = rtsys.get_allocation_stats()
    finally:
        counts.memsys_disable_stats()
    assert after.alloc > before.alloc or oracle in ("lac", "price")  # whose kernels make no array here
    assert after.alloc - after.free == before.alloc - before.free
    assert sys.getrefcount(P) == held


def test_a_vector_that_cannot_be_written_to_is_of_the_type_of_others() -> None:
    """Else numba compiles a kernel once more for one threshold of all rows. Rows themselves are not copied for it."""
    tau, P = np.broadcast_to(0.5, 3), np.broadcast_to(0.5, (3, 2))
    seen: list[tuple[bool, bool, float]] = []

    def kernel(start: int, stop: int, tau: np.ndarray, given: np.ndarray) -> None:
        seen.append((tau.flags.writeable, given is P, tau.sum()))

    over_rows(kernel, 3, 2, tau, P)
    assert seen == [(True, True, 1.5)]
