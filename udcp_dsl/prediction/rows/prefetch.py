"""Reading and writing beside the work, a thread each: what is between them is bounded, and so is memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, Full, Queue
from typing import Any, TypeVar

T = TypeVar("T")

_DEPTH = 2  # items that wait on either side of the work
_LOOK = 0.1  # seconds between looks at whether the other side has gone


class _End:
    """The last item of a queue, with what went wrong, if anything did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def prefetch(items: Iterable[T]) -> Iterator[T]:
    """The items, each made in a thread while the one before is worked on; what making them raises is raised here.

    >>> list(prefetch(range(5)))
    [0, 1, 2, 3, 4]
    """
    queue: Queue[Any] = Queue(_DEPTH)
    over = threading.Event()

    def put(item: object) -> bool:
        while not over.is_set():
            try:
                queue.put(item, timeout=_LOOK)
                return True
            except Full:
                continue
        return False

    def make() -> None:
        try:
            for item in items:
                if not put(item):
                    return
        except BaseException as error:
            put(_End(error))
        else:
            put(_End())

    maker = threading.Thread(target=make, name="udcp reading", daemon=True)
    maker.start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        over.set()
        maker.join()


@contextmanager
def write_behind(use: Callable[[T], None]) -> Iterator[Callable[[T], None]]:
    """A function that hands an item to `use`, in a thread and in order; what that raises is raised at the next item.

    At the end of the block all items were used.

    >>> used = []
    >>> with write_behind(used.append) as put:
    ...     for item in range(3):
    ...         put(item)
    >>> used
    [0, 1, 2]
    """
    queue: Queue[Any] = Queue(_DEPTH)
    failed: list[BaseException] = []

    def take() -> None:
        while not isinstance(item := queue.get(), _End):
            try:
                use(item)
            except BaseException as error:
                failed.append(error)
                return

    taker = threading.Thread(target=take, name="udcp writing", daemon=True)

    def put(item: object) -> None:
        while taker.is_alive():
            try:
                queue.put(item, timeout=_LOOK)
                return
            except Full:
                continue
        if failed:
            raise failed[0]

    taker.start()
    try:
        yield put
        put(_End())
        taker.join()
        if failed:
            raise failed[0]
    except BaseException:
        while taker.is_alive():  # what waits is dropped, as all that was written will be
            try:
                queue.get_nowait()
            except Empty:
                queue.put(_End())
                taker.join()
        raise
