"""The walk along the lower hull against rationals: its corners are the points that some price makes best."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udcp_solvers.prices.hull import lower_hull, price_of, slope_of_points

# Few numbers, so that many points lie on one line or on one another; tenths, so that floats alone would not see it.
NUMBERS = st.integers(0, 6).map(lambda x: x / 10)


def exactly(points: list[tuple[float, float]], first: int) -> tuple[list[int], list[Fraction]]:
    """Corners and prices by the definition: from each, the least slope to a point that leaves out less; ties go far."""
    at, corners, prices = first, [first], []
    exact = [(Fraction(str(cost)), Fraction(str(rem))) for cost, rem in points]
    while True:
        cost, rem = exact[at]
        ahead = [k for k in range(at + 1, len(exact)) if exact[k][1] < rem]
        if not ahead:
            return corners, prices
        slopes = {k: (exact[k][0] - cost) / (rem - exact[k][1]) for k in ahead}
        least = min(slopes.values())
        at = min((k for k in ahead if slopes[k] == least), key=lambda k: (exact[k][1], k))
        corners.append(at)
        prices.append(least)


def assert_hull(points: list[tuple[float, float]], first: int) -> None:
    cost, rem = (np.array(column) for column in zip(*points, strict=True))
    # What a float of tenths misses, so that high + low is the number of tenths to 106 bits.
    low = np.array([float(Fraction(str(x)) - Fraction(x)) for x in rem.tolist()])
    corner = np.empty(len(points), np.int64)
    many = lower_hull(first, np.round(10 * cost), rem, low, corner)
    corners, prices = exactly([(round(10 * c), r) for c, r in points], first)
    assert corner[:many].tolist() == corners
    for a, b, price in zip(corners[:-1], corners[1:], prices, strict=True):
        assert price_of(slope_of_points(a, b, np.round(10 * cost), rem, low)) == float(price)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12))
def test_points_of_falling_mass_left_out_and_any_cost(points: list[tuple[float, float]]) -> None:
    points = sorted(points, key=lambda point: -point[1])
    first = min(range(len(points)), key=lambda k: (points[k][0], points[k][1], k))
    assert_hull(points, first)


@given(st.lists(NUMBERS, min_size=1, max_size=12))
def test_points_of_rising_cost_and_any_mass_left_out(masses: list[float]) -> None:
    assert_hull([(k / 10, mass) for k, mass in enumerate(masses)], 0)
