"""Work in threads: in order, bounded, errors in their place; udcp_solvers/numeric/test_compiled.py tries kernels."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.rows import highest
from udcp_dsl.threads import available_cores, in_order, over_blocks, prefetch, thread_count


def test_cores_are_those_that_kernels_are_told_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    assert thread_count() == 3
    for other in ("", "0", "many"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", other)
        assert thread_count() == available_cores()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_a_process_that_may_use_one_core_uses_one() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_highest_probability_of_many_rows_is_that_of_each(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    P = np.random.default_rng(0).dirichlet(np.ones(7), 20_001).astype(dtype)
    assert (highest(P) == P.max(axis=1).astype(np.float64)).all()
    assert (highest(P[:3]) == P[:3].max(axis=1)).all()


def test_items_are_made_ahead_of_their_use_and_not_far() -> None:
    made = list[int]()

    def items() -> Iterator[int]:
        for item in range(10**9):
            made.append(item)
            yield item

    with closing(prefetch(items())) as ahead:
        assert [next(ahead) for _ in range(3)] == [0, 1, 2]
    until = len(made)
    assert 3 <= until <= 6
    time.sleep(0.02)
    assert len(made) == until  # the thread has ended


def test_what_goes_wrong_in_making_an_item_is_raised_in_its_place() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise InputError("no more")

    items = prefetch(failing())
    assert next(items) == 1
    with pytest.raises(InputError, match="no more"):
        next(items)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_are_in_order_however_long_each_takes(workers: int) -> None:
    pauses, lock = np.random.default_rng(0).uniform(0, 0.01, 30), threading.Lock()
    made = used = working = most_working = most_under_way = 0

    def items() -> Iterator[int]:
        nonlocal made, most_under_way
        for item in range(len(pauses)):
            made += 1
            most_under_way = max(most_under_way, made - used)
            yield item

    def work(item: int) -> int:
        nonlocal working, most_working
        with lock:
            working += 1
            most_working = max(most_working, working)
        time.sleep(pauses[item])
        with lock:
            working -= 1
        return item

    for result in in_order(items(), work, workers):
        assert result == used
        used += 1
    assert used == len(pauses)
    assert most_working == workers
    assert most_under_way <= workers + 2  # so much is in memory


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("where", ["made", "worked on", "used"])
def test_those_before_a_fault_are_used_and_none_after_it(where: str, workers: int) -> None:
    used = list[int]()

    def fail(here: str, item: int) -> int:
        if here == where and item == 7:
            raise InputError(f"{here}: no")
        return item

    def use_all() -> None:
        items = (fail("made", item) for item in range(50))
        for item in in_order(items, lambda item: fail("worked on", item), workers):
            used.append(fail("used", item))

    with pytest.raises(InputError, match=f"{where}: no"):
        use_all()
    assert used == list(range(7))


def test_once_interrupted_nothing_more_is_begun() -> None:
    begun = list[int]()

    def work(item: int) -> None:
        begun.append(item)
        time.sleep(0.01)

    def interrupted() -> None:
        with closing(in_order(range(100), work, 2)) as results:
            for number, _ in enumerate(results):
                if number == 3:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    until = len(begun)
    assert until <= 3 + 2 + 2
    time.sleep(0.03)
    assert len(begun) == until
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("udcp")]


@pytest.mark.parametrize("cores", [1, 3])
def test_blocks_know_what_their_caller_says_of_divisions(cores: int) -> None:
    """What numpy does on a division by zero is a variable of the context."""
    out = np.zeros(1000)

    def divide(start: int, stop: int) -> None:
        out[start:stop] = np.ones(stop - start) / np.zeros(stop - start)

    with np.errstate(divide="ignore"):
        over_blocks(divide, 1000, 1 << 20, cores)
    assert np.isinf(out).all()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        over_blocks(divide, 1000, 1 << 20, cores)


@pytest.mark.parametrize("by_caller", [True, False])
def test_after_an_error_no_block_is_begun(by_caller: bool) -> None:
    begun, caller = list[int](), threading.get_ident()

    def work(start: int, stop: int) -> None:
        begun.append(start)
        if (threading.get_ident() == caller) == by_caller:
            raise InputError("no")
        time.sleep(0.02)

    with pytest.raises(InputError, match="no"):
        over_blocks(work, 1000, 1 << 20, 4)
    assert len(begun) < 16


@pytest.mark.parametrize(("n", "cores"), [(1, 2), (3, 4), (1000, 1), (1001, 3)])
def test_blocks_cover_every_row_once(n: int, cores: int) -> None:
    counts = np.zeros(n, int)

    def count(start: int, stop: int) -> None:
        assert 0 <= start < stop <= n
        counts[start:stop] += 1

    over_blocks(count, n, 1 << 20, cores)
    assert (counts == 1).all()
