"""The lower hull of points (mass left out, cost): as the price rises, the best set goes from corner to corner.

Between two corners the price is the slope. Costs and masses left out are held to 106 bits, and slopes are compared by
cross-multiplication: of points on one line only the ends are corners, as in rationals.

Points that are known and in order are walked by `lower_hull` (`sizes`). Where sets are found by their price alone, the
hull is traced by `tracer`. Between two sets a and b, best at a low and a high price, the best set is asked for at the
price at which their lines meet,

    mu = (cost(b) - cost(a)) / (rem(a) - rem(b)).

If it lies below the two lines it is on the hull between a and b, and both intervals are traced; if not, a and b are
neighbours, and what is in b is bought at mu (Eisner and Severance). At most two sets are asked for per corner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from udcp_solvers.numeric.arrays import Floats, Ints, Records
from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.double_double import minus, ratio, sign_of_cross, two_sum

R = TypeVar("R")

# A rise in cost and a fall in mass left out, high and low each: the price is their quotient.
Slope = tuple[float, float, float, float]
AT_ZERO: Slope = (0.0, 0.0, 1.0, 0.0)
AT_INFINITY: Slope = (1.0, 0.0, 0.0, 0.0)

# What a search between two sets says: they are neighbours; a set lies below their lines; what is bought between them
# has been entered already; nothing at higher prices is wanted.
NEIGHBOURS, BELOW, ENTERED, ENOUGH = range(4)


def tracer(
    meeting: Callable[[R, int, int], Slope],
    search: Callable[[R, int, int, int, Slope], int],
    enter: Callable[[R, int, int, Slope], None],
) -> Callable[[R, Any], None]:
    """What traces the hull of a row from its first set to its last.

    A row has room for sets in numbered slots, and `slots` lists the numbers in any order: the set at the left end is in
    the last one listed, the set at the right end in the first. `meeting(row, a, b)` is the slope between two sets,
    `search(row, a, b, new, slope)` puts the best set at a slope into slot `new` and says what it is to a and b, and
    `enter(row, a, b, slope)` buys what is in b, at rising prices. If there are more sets than slots, some are forgotten
    and found again.

    The three are kernels of the caller, and so is what is made of them, `jit(tracer(...))`: a part of the kernel that
    calls it, so that the cache on disk holds it (handed over as arguments, they would be compiled in each process).
    `programs.by_price`, whose sets come from a solver, which no kernel can call, runs the same function in Python.
    """

    def trace(row: R, slots: Any) -> None:
        left = len(slots) - 1
        top = 0  # sets 0 .. top wait, the nearest last
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
    """List the corners from point `first` on; how many there are.

    No point costs less than the first, and from there on either no cost falls or no mass left out (`rem + low`) rises.
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
    """From point a to b."""
    rise, rise_low = two_sum(cost[b], -cost[a])
    fall, fall_low = minus(rem[a], low[a], rem[b], low[b])
    return rise, rise_low, fall, fall_low


@jit
def price_of(slope: Slope) -> float:
    """At which the one set follows the other."""
    return ratio(slope[0], slope[1], slope[2], slope[3])


@jit
def compare(one: Slope, other: Slope) -> int:
    """-1, 0 or 1: the sign of the difference of two prices, whatever the fall of the first."""
    return sign_of_cross(one[0], one[1], other[2], other[3], other[0], other[1], one[2], one[3])


@jit
def _turns_down(a: int, b: int, c: int, cost: Floats, rem: Floats, low: Floats) -> bool:
    """Whether the step from b to c is no dearer than that from a to b."""
    return compare(slope_of_points(b, c, cost, rem, low), slope_of_points(a, b, cost, rem, low)) <= 0


@jit
def slope_of_sets(a: Records, b: Records) -> Slope:
    """From set a to b."""
    step, step_low = minus(b.cost, b.cost_low, a.cost, a.cost_low)
    gain, gain_low = minus(a.rem, a.rem_low, b.rem, b.rem_low)
    return step, step_low, gain, gain_low


@jit
def is_below(found: Slope, slope: Slope) -> bool:
    """Whether a set at slope `found` from a is better than a at the price `slope`: more mass for less."""
    return found[2] > 0.0 and compare(found, slope) < 0
