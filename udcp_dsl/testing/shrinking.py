"""Shrink a failing case: leave out parts as long as the rest still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fewest(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """A minimal selection of the items, in order, for which `fails` still holds: none of them can be left out.

    Large parts are left out first, so that few calls are needed if few items matter.

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
