"""How many threads a kernel may take: all cores, or its share of them where several threads ask kernels at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Busy:
    """How many threads are at work on the same rows."""

    def __init__(self) -> None:
        self.many = 0


_BUSY: ContextVar[Busy | None] = ContextVar("busy", default=None)


@contextmanager
def sharing(busy: Busy) -> Iterator[None]:
    """Kernels that are called in the block, by this thread, leave cores to the others that are busy."""
    before = _BUSY.set(busy)
    try:
        yield
    finally:
        _BUSY.reset(before)


def share_of(cores: int) -> int:
    """The threads that a kernel may take of as many cores.

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
