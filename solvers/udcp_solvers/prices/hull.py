"""The lower hull of points (mass left out, cost): as the price rises, the best set goes from corner to corner.

Between two corners the price is the slope. Costs and masses left out have 106 bits, and slopes are compared by
cross-multiplication: of points on one line only the ends are corners, as in rationals.

`lower_hull` walks points that are known and in order (`sizes`). If sets can only be found by their price, `tracer`
traces the hull: between two sets a and b, best at a low and a high price, it asks for the best set at the price at
which their lines meet,

    mu = (cost(b) - cost(a)) / (rem(a) - rem(b)).

If this set lies below the two lines, it is on the hull between a and b, and both intervals are traced; if not, a and b
are neighbours, and the labels of b are bought at mu (Eisner and Severance). At most two sets are asked for per corner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from udcp_solvers.numeric.arrays import Floats, Ints, Records
from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.double_double import minus, ratio, sign_of_cross, two_sum

R = TypeVar("R")

# A rise in cost and a fall in mass left out, each as high and low: the price is their quotient.
Slope = tuple[float, float, float, float]
AT_ZERO: Slope = (0.0, 0.0, 1.0, 0.0)
AT_INFINITY: Slope = (1.0, 0.0, 0.0, 0.0)

# Results of a search between two sets: they are neighbours; a set lies below their lines; what is bought between them
# has already been entered; no higher prices are wanted.
NEIGHBOURS, BELOW, ENTERED, ENOUGH = range(4)


def tracer(
    meeting: Callable[[R, int, int], Slope],
    search: Callable[[R, int, int, int, Slope], int],
    enter: Callable[[R, int, int, Slope], None],
) -> Callable[[R, Any], None]:
    """A function that traces the hull of a row from its first set to its last.

    Sets are kept in numbered slots, which `slots` lists in any order: the left end is in the last slot listed, the
    right end in the first. `meeting(row, a, b)` is the slope between two sets, `search(row, a, b, new, slope)` puts the
    best set at a slope into slot `new` and returns how it lies to a and b, and `enter(row, a, b, slope)` buys the
    labels of b; prices rise from call to call. If there are more sets than slots, some are dropped and found again.

    The three functions are kernels of the caller, and so is `jit(tracer(...))`: a part of the kernel that calls it, so
    that the cache on disk holds it. (As arguments, they would be compiled in each process.) `programs.by_price` runs
    the function in Python, since its sets come from a solver, which no kernel can call.
    """

    def trace(row: R, slots: Any) -> None:
        left = len(slots) - 1
        top = 0  # the sets in slots[: top + 1] wait, the nearest last
        while top >= 0:
            a, b, new = slots[left], slots[top], slots[top + 1]
            slope = meeting(row, a, b)
            if slope[2] > 0.0:
                found = search(row, a, b, new, slope)
                if found == ENOUGH:
                    return
                if found == BELOW:
                    if top + 2 < left:
                        top += 1
                    else:
                        slots[top], slots[top + 1] = new, b
                    continue
                if found == NEIGHBOURS:
                    enter(row, a, b, slope)
            slots[left], slots[top] = b, a
            top -= 1

    return trace


@jit
def lower_hull(first: int, cost: Floats, rem: Floats, low: Floats, corner: Ints) -> int:
    """List the corners from point `first` on; returns how many there are.

    No point costs less than the first, and from there on either costs never fall or masses left out (`rem + low`) never
    rise.
    """
    corner[0] = first
    many = 1
    for k in range(first + 1, len(cost)):
        last = corner[many - 1]
        if not (rem[k] < rem[last] or (rem[k] == rem[last] and low[k] < low[last])):
            if cost[k] >= cost[last]:
                continue
            many -= 1
        while many > 1 and _turns_down(corner[many - 2], corner[many - 1], k, cost, rem, low):
            many -= 1
        corner[many] = k
        many += 1
    return many


@jit
def slope_of_points(a: int, b: int, cost: Floats, rem: Floats, low: Floats) -> Slope:
    """The slope from point a to point b."""
    rise, rise_low = two_sum(cost[b], -cost[a])
    fall, fall_low = minus(rem[a], low[a], rem[b], low[b])
    return rise, rise_low, fall, fall_low


@jit
def price_of(slope: Slope) -> float:
    """The price at which one set follows the other."""
    return ratio(slope[0], slope[1], slope[2], slope[3])


@jit
def compare(one: Slope, other: Slope) -> int:
    """-1, 0 or 1: the sign of the rise of `one` minus its fall (of any sign) times the price `other`."""
    return sign_of_cross(one[0], one[1], other[2], other[3], other[0], other[1], one[2], one[3])


@jit
def _turns_down(a: int, b: int, c: int, cost: Floats, rem: Floats, low: Floats) -> bool:
    """Whether the price from b to c is at most that from a to b."""
    return compare(slope_of_points(b, c, cost, rem, low), slope_of_points(a, b, cost, rem, low)) <= 0


@jit
def slope_of_sets(a: Records, b: Records) -> Slope:
    """The slope from set a to set b."""
    step, step_low = minus(b.cost, b.cost_low, a.cost, a.cost_low)
    gain, gain_low = minus(a.rem, a.rem_low, b.rem, b.rem_low)
    return step, step_low, gain, gain_low


@jit
def is_below(found: Slope, slope: Slope) -> bool:
    """Whether a set at slope `found` from a has more mass than a and is better at the price `slope`."""
    return found[2] > 0.0 and compare(found, slope) < 0
