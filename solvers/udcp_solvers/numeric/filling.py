"""Copies and orders of arrays inside kernels.

numba's own slices and sorts mean the same, but each that is written is compiled anew, and their checks of shapes, with
the texts of their messages, take seconds. These kernels are compiled once for all that call them.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from udcp_solvers.numeric.arrays import Floats, Ints
from udcp_solvers.numeric.compiled import jit

# Runs of this length are put in order one by one, before they are merged.
_RUN = 8


@jit
def fill(into: NDArray[Any], value: float) -> None:
    """Every entry becomes the value."""
    for k in range(len(into)):
        into[k] = value


@jit
def put(into: NDArray[Any], of: NDArray[Any]) -> None:
    """Every entry becomes that of another array, which is at least as long."""
    for k in range(len(into)):
        into[k] = of[k]


@jit
def order_by(values: Floats, places: Ints, spare: Ints) -> None:
    """Order `places` by the rising values there; equal ones stay as they are. `spare` is room for as many."""
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
            # The first run is all that there is, or ends before the second begins: in order already.
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
