"""The walk along the lower hull, and its tracing, against rationals: corners are the points that a price makes best."""

from __future__ import annotations

from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_solvers.price import Price
from udcp_solvers.prices import sizes, trees
from udcp_solvers.prices.hull import BELOW, NEIGHBOURS, lower_hull, price_of, slope_of_points, tracer

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


# Points on a parabola, of which all are corners, and some above it, which mostly are not.
ABOVE = st.sampled_from((0, 0, 0, 1, 30))
CURVED = st.lists(st.tuples(st.integers(0, 40), ABOVE), min_size=1, max_size=30, unique=True)


@given(CURVED, st.integers(4, 8))
@example([(x, 0) for x in range(30)], 4)
def test_tracing_finds_the_corners_from_best_points_alone(drawn: list[tuple[int, int]], room: int) -> None:
    """With room for few of them, too: those that were forgotten are found again."""
    points = [(float(x * x + above), float(40 - x)) for x, above in drawn]
    exact = [(Fraction(cost), Fraction(rem)) for cost, rem in points]
    held: dict[int, int] = {}
    bought: list[tuple[int, Fraction]] = []

    def meeting(row: None, a: int, b: int) -> tuple[Fraction, int, Fraction, int]:
        (cost, rem), (cost_b, rem_b) = exact[held[a]], exact[held[b]]
        return cost_b - cost, 0, rem - rem_b, 0

    def best(step: Fraction | int, gain: Fraction | int) -> int:
        """At a tie the least mass left out, then the least cost, then the first."""
        worth = [(gain * cost + step * rem, rem, cost, k) for k, (cost, rem) in enumerate(exact)]
        return min(worth)[-1]

    def search(row: None, a: int, b: int, new: int, slope: tuple[Fraction, int, Fraction, int]) -> int:
        held[new] = best(slope[0], slope[2])
        rise, _, fall, _ = meeting(row, a, new)
        return BELOW if rise * slope[2] < slope[0] * fall else NEIGHBOURS

    def enter(row: None, a: int, b: int, slope: tuple[Fraction, int, Fraction, int]) -> None:
        bought.append((held[b], slope[0] / slope[2]))

    slots = list(range(room))
    held[slots[-1]], held[slots[0]] = best(0, 1), best(1, 0)
    first = held[slots[-1]]
    tracer(meeting, search, enter)(None, slots)
    order = sorted(range(len(exact)), key=lambda k: (-exact[k][1], exact[k][0], k))
    corners, prices = exactly([points[k] for k in order], order.index(first))
    assert bought == list(zip([order[k] for k in corners[1:]], prices, strict=True))


WIDE = """
labels 0..59
hierarchy h {
    a { 0..9, b { 10..14, c { 15..19 } } }, d { 20..29 }, e { f { 30..34 }, g { 35..44, i { 45..52 } } }, 53..59
}
costs k { 0..19: 0.3, 20..39: 0.7, 40..44: 0.05, default: 1.1 }
loss l = """


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (trees, "diameter(h) + sum(k) + 0.1 * count(h.level(2))"),
        (sizes, "0.02 * size ^ 2 + sum(k)"),
    ],
)
def test_kernels_find_what_they_forgot(room: ModuleType, text: str, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = np.random.default_rng(seed)
    P = np.concatenate([rng.dirichlet(np.full(60, a), 20) for a in (0.1, 1.0, 5.0)])
    oracle = Price(udcp.loads(WIDE + text))
    assert type(oracle._prices).__module__ == room.__name__
    scores = oracle.scores(P)
    monkeypatch.setattr(room, "_MAX_HELD", 4)
    np.testing.assert_array_equal(oracle.scores(P), scores)
    assert len(np.unique(scores[0])) > 4
