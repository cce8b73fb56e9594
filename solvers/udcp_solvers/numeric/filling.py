"""Filling, copying and sorting arrays inside kernels.

numba's slice assignments and sorts do the same, but each use is compiled separately, and their shape checks, with the
error messages, take seconds to compile. These kernels are compiled once for all callers.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from udcp_solvers.numeric.arrays import Floats, Ints
from udcp_solvers.numeric.compiled import jit

# Runs of this length are sorted by insertion, and then merged.
_RUN = 8


@jit
def fill(into: NDArray[Any], value: float) -> None:
    """Set every entry to the value."""
    for k in range(len(into)):
        into[k] = value


@jit
def put(into: NDArray[Any], of: NDArray[Any]) -> None:
    """Set every entry of `into` to that of `of`, which is at least as long."""
    for k in range(len(into)):
        into[k] = of[k]


@jit
def order_by(values: Floats, places: Ints, spare: Ints) -> None:
    """Sort `places` by rising values[place], stably. `spare` is a scratch array of at least the same length."""
    n = len(places)
    for start in range(0, n, _RUN):
        for last in range(start + 1, min(start + _RUN, n)):
            place, k = places[last], last
            while k > start and values[places[k - 1]] > values[place]:
                places[k] = places[k - 1]
                k -= 1
            places[k] = place
    width = _RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            # There is no second run, or all of it comes after the first: already in order.
            a, b = start, end if middle == end or values[places[middle - 1]] <= values[places[middle]] else middle
            for k in range(start, end):
                if b >= end or (a < middle and values[places[a]] <= values[places[b]]):
                    spare[k] = places[a]
                    a += 1
                else:
                    spare[k] = places[b]
                    b += 1
        put(places, spare[:n])
        width *= 2
