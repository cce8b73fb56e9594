"""Threads for work that releases the interpreter lock: kernels, Arrow, and numpy on large arrays.

Three patterns on `concurrent.futures`, each of which starts and ends its own threads: blocks of rows of one array
(`over_blocks`), items read ahead of their use (`prefetch`), and items worked on side by side, in order (`in_order`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_MIN_THREADED_CELLS = 1 << 16  # cells below which starting threads costs more than it saves
_AHEAD = 2  # items that wait to be used
_END: Any = object()


def available_cores() -> int:
    """The number of cores that this process may use, which a container or `taskset` can restrict."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count() -> int:
    """The number of threads to work in: as many as `NUMBA_NUM_THREADS` allows for kernels, else one per core."""
    allowed = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(allowed) if allowed.isdecimal() and int(allowed) else available_cores()


def over_blocks(work: Callable[[int, int], None], n: int, cells: int, cores: int) -> None:
    """Call work(start, stop) on blocks that cover n rows (of `cells` entries together), in as many threads as cores."""
    if cores == 1 or cells < _MIN_THREADED_CELLS:
        work(0, n)
        return
    step = max(1, -(-n // (4 * cores)))
    starts = iter(range(0, n, step))

    def take() -> None:
        try:
            for start in starts:  # each goes to whichever thread is free
                work(start, min(start + step, n))
        finally:
            deque(starts, 0)  # after an error, no further block is begun

    with _pool(cores - 1) as pool:  # this thread works, too
        others = [_submitted(pool, take) for _ in range(cores - 1)]
        take()
        for other in others:
            other.result()


def prefetch(items: Iterable[T]) -> Generator[T, None, None]:
    """The items, made in a thread while earlier ones are used; an error in making an item is raised in its place.

    >>> list(prefetch(range(5)))
    [0, 1, 2, 3, 4]
    """
    iterator = iter(items)
    with _pool(1) as pool:
        waiting = deque(_submitted(pool, next, iterator, _END) for _ in range(_AHEAD))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(_submitted(pool, next, iterator, _END))
            yield item


def in_order(items: Iterable[T], work: Callable[[T], U], workers: int) -> Generator[U, None, None]:
    """The results of work(item), in the order of the items; items are made in this thread.

    There are `workers` threads. At most workers + 2 items are in progress or finished but not yet used, which bounds
    memory. An error in making an item or working on it is raised in its place, after the results before it. With one
    worker, there is no other thread.

    >>> list(in_order(range(5), lambda item: item**2, workers=2))
    [0, 1, 4, 9, 16]
    """
    if workers == 1:
        yield from map(work, items)
        return
    with _pool(workers) as pool:
        waiting = deque[Future[U]]()
        for future in _begun(pool, items, work):
            waiting.append(future)
            if len(waiting) >= workers + _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _begun(pool: Executor, items: Iterable[T], work: Callable[[T], U]) -> Iterator[Future[U]]:
    """The futures of the items; if an item cannot be made, a failed future in its place is the last."""
    try:
        for item in items:
            yield _submitted(pool, work, item)
    except Exception as error:
        failed: Future[U] = Future()
        failed.set_exception(error)
        yield failed


def _submitted(pool: Executor, work: Callable[..., U], *arguments: Any) -> Future[U]:
    """Submit work with the context variables of the caller, such as numpy's handling of a division by zero."""
    return pool.submit(copy_context().run, work, *arguments)


@contextmanager
def _pool(threads: int) -> Iterator[Executor]:
    """Threads for the block; if it is left early, work that has not begun is dropped."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="udcp")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
