"""The lower hull of points (mass left out, cost): as the price rises, the best set goes from corner to corner.

Between two corners the price is the slope. Costs and masses left out are held to 106 bits, and slopes are compared by
cross-multiplication: of points on one line only the ends are corners, as in rationals.

Points that are known and in order are walked by `lower_hull` (`sizes`). Where sets are found by their price
alone, the hull is traced between two of them: where their lines meet (`meeting`) a set is looked for, and if one is
below (`is_below`) the interval is cut there, else the two are neighbours (Eisner and Severance). That loop stands in
`sizes`, `trees`, `cuts` and, over integer programs, in `programs.by_price`: what each keeps of an interval differs (its
sets; also the regions that matter; a run of labels), and a kernel that were handed the search as an argument would not
be found on disk again, and be compiled in every process.
"""

from __future__ import annotations

from udcp_solvers.numeric.arrays import Floats, Ints, Records
from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.double_double import minus, ratio, sign_of_cross, two_sum

# A rise in cost and a fall in mass left out, high and low each.
Slope = tuple[float, float, float, float]


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
def slope(a: int, b: int, cost: Floats, rem: Floats, low: Floats) -> Slope:
    """From point a to b."""
    rise, rise_low = two_sum(cost[b], -cost[a])
    fall, fall_low = minus(rem[a], low[a], rem[b], low[b])
    return rise, rise_low, fall, fall_low


@jit
def price_between(a: int, b: int, cost: Floats, rem: Floats, low: Floats) -> float:
    """At which point b follows a."""
    rise, rise_low, fall, fall_low = slope(a, b, cost, rem, low)
    return ratio(rise, rise_low, fall, fall_low)


@jit
def _turns_down(a: int, b: int, c: int, cost: Floats, rem: Floats, low: Floats) -> bool:
    """Whether the step from b to c is no dearer than that from a to b."""
    rise, rise_low, fall, fall_low = slope(a, b, cost, rem, low)
    up, up_low, down, down_low = slope(b, c, cost, rem, low)
    return sign_of_cross(up, up_low, fall, fall_low, rise, rise_low, down, down_low) <= 0


@jit
def meeting(left: Records, right: Records) -> Slope:
    """The slope between two sets: their lines meet at the price step / gain."""
    step, step_low = minus(right.cost, right.cost_low, left.cost, left.cost_low)
    gain, gain_low = minus(left.rem, left.rem_low, right.rem, right.rem_low)
    return step, step_low, gain, gain_low


@jit
def is_below(found: Records, left: Records, step: float, step_low: float, gain: float, gain_low: float) -> bool:
    """Whether a set is better than `left` at the price step / gain."""
    rise, rise_low, fall, fall_low = meeting(left, found)
    return sign_of_cross(rise, rise_low, gain, gain_low, step, step_low, fall, fall_low) < 0
