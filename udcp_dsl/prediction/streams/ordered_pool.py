"""Items in lanes: each is made, worked on and its result used by one thread, several side by side.

One thread for each kind of work would hand every batch from one core's memory to another's, and the slowest of them
would set the pace. Here items are made one at a time and in order, and so are results used; between the two as many are
under way as there are lanes, which bounds memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import Any, TypeVar

from udcp_dsl.threads import Busy, sharing

T = TypeVar("T")
U = TypeVar("U")

_MOST = 4  # lanes, as a batch is in memory for each; kernels take what cores are left
_MANY = 8  # batches for each lane


def lanes_here(batches: float) -> int:
    """One a core; of many batches one more, which reads or writes where the others compute or wait for their turn. Of
    few it would only be in the way of the last of them."""
    cores = os.cpu_count() or 1
    return min(_MOST, cores + (batches >= _MANY * (cores + 1)))


def in_lanes(items: Iterable[T], work: Callable[[T], U], use: Callable[[U], None], lanes: int) -> None:
    """Call use(work(item)) for each item: `work` in several threads, `use` in the order of the items.

    What making an item, working on it or using its result raises is raised here, after the results of those before it
    were used; no later one is.

    >>> used = []
    >>> in_lanes(range(5), lambda item: item**2, used.append, 2)
    >>> used
    [0, 1, 4, 9, 16]
    """
    lane = _Lanes(iter(items), work, use)
    helpers = [threading.Thread(target=copy_context().run, args=(lane.help,), daemon=True) for _ in range(lanes - 1)]
    for helper in helpers:
        helper.start()
    try:
        lane.run()
        for helper in helpers:
            helper.join()
    except BaseException as error:  # Ctrl-C: nobody waits for what the others are at, and nothing of it is used
        lane.stop(error)
        raise
    if lane.failed is not None:
        raise lane.failed


class _Lanes:
    """What the lanes share: whose turn it is, and what went wrong."""

    def __init__(self, items: Any, work: Callable[[Any], Any], use: Callable[[Any], None]) -> None:
        self._items, self._work, self._use = items, work, use
        self._making, self._turns = threading.Lock(), threading.Condition()
        self._made, self._turn = 0, 0
        self._busy = Busy()
        self.failed: BaseException | None = None

    def run(self) -> None:
        """Take one item after the other, until there is none or something went wrong."""
        self._count(1)
        try:
            with sharing(self._busy):
                while self.failed is None:
                    with self._making:
                        number, self._made = self._made, self._made + 1
                        try:
                            item = next(self._items)
                        except StopIteration:
                            return
                        except Exception as error:
                            self._take_turn(number, error=error)
                            return
                    try:
                        result = self._work(item)
                    except Exception as error:
                        self._take_turn(number, error=error)
                        return
                    del item
                    self._take_turn(number, result)
        finally:
            self._count(-1)

    def help(self) -> None:
        """The same in a thread of its own, where nobody hears what is raised."""
        try:
            self.run()
        except BaseException as error:
            self.stop(error)

    def stop(self, error: BaseException) -> None:
        with self._turns:
            if self.failed is None:
                self.failed = error
            self._turns.notify_all()

    def _take_turn(self, number: int, result: Any = None, error: BaseException | None = None) -> None:
        """Use a result when those before it were used; nothing, once one of them failed."""
        with self._turns:
            while self._turn != number and self.failed is None:
                self._turns.wait()
            if self.failed is not None:
                return
            try:
                if error is not None:
                    raise error
                self._use(result)
            except Exception as raised:
                self.failed = raised
            self._turn += 1
            self._turns.notify_all()

    def _count(self, more: int) -> None:
        with self._turns:
            self._busy.many += more
