"""Rows in threads, for work that releases the interpreter lock: kernels, and what numpy does with large arrays.

It may take all cores, or its share of them where several threads work on the same rows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Cells below which starting threads costs more than it saves.
_SMALL = 1 << 16


class Busy:
    """How many threads are at work on the same rows."""

    def __init__(self) -> None:
        self.many = 0


_BUSY: ContextVar[Busy | None] = ContextVar("busy", default=None)


@contextmanager
def sharing(busy: Busy) -> Iterator[None]:
    """What is done in threads in the block, by this one, leaves cores to the others that are busy."""
    before = _BUSY.set(busy)
    try:
        yield
    finally:
        _BUSY.reset(before)


def share_of(cores: int) -> int:
    """The threads that may be taken of as many cores.

    >>> busy = Busy()
    >>> busy.many = 2
    >>> with sharing(busy):
    ...     share_of(5)
    2
    >>> share_of(5)
    5
    """
    busy = _BUSY.get()
    return cores if busy is None else max(1, cores // max(1, busy.many))


def cores_here() -> int:
    """All of them, or as many as kernels are told to take."""
    told = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(told) if told.isdecimal() and int(told) else os.cpu_count() or 1


def over_blocks(work: Callable[[int, int], None], n: int, cells: int, cores: int) -> None:
    """Call work(start, stop) on blocks that cover n rows, of so many cells in all, in threads.

    The thread that calls works too: with two cores one more is started, which is soon done where rows are few.
    """
    threads = share_of(cores)
    if threads == 1 or cells < _SMALL:
        work(0, n)
        return
    step = max(1, -(-n // (4 * threads)))
    starts = iter(range(0, n, step))  # each is taken by one thread, whichever has nothing to do
    failed: list[BaseException] = []

    def take() -> None:
        try:
            for start in starts:
                work(start, min(start + step, n))
        except BaseException as error:
            failed.append(error)

    helpers = [threading.Thread(target=take, daemon=True) for _ in range(min(threads, len(range(0, n, step))) - 1)]
    for helper in helpers:
        helper.start()
    take()
    for helper in helpers:
        helper.join()
    if failed:
        raise failed[0]
