"""The smallest case that shows a fault: parts are left out as long as what is left still shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fewest(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Some of the items, in order, for which `fails` holds as it does for all, and of which none can be left out.

    Large parts are tried first, so that it takes few calls where few items matter.

    >>> fewest(range(100), lambda some: {3, 50} <= set(some))
    [3, 50]
    """
    held = list(items)
    step = len(held)
    while step:
        start, removed = 0, False
        while start < len(held):
            rest = held[:start] + held[start + step :]
            if fails(rest):
                held, removed = rest, True
            else:
                start += step
        if step > 1 or not removed:
            step //= 2
    return held
