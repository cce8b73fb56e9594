"""Sets by price, for one instance of `ilp`: the points (p(S), L(S)) on the lower convex hull.

The hull is traced as by the kernels of `price` (`prices.hull.tracer`), but a solver finds the set at a price. Prices
are quotients of differences of the sets' own costs and masses, and a difference of masses is an exact sum, rounded
once; so no error of the solver enters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from udcp_dsl.expression.facts import TOLERANCE
from udcp_solvers.numeric.arrays import Floats
from udcp_solvers.prices.hull import BELOW, ENTERED, NEIGHBOURS, Slope, tracer
from udcp_solvers.programs.exact import Exact, Found, Tally
from udcp_solvers.programs.mass import mass_below

# The most sets that are held to the right of the last corner.
_MAX_HELD = 64


@dataclass(frozen=True)
class RowTrace:
    """The trace of one row: the sets held, by slot, and the points found to be on the hull, by rising mass."""

    exact: Exact
    tally: Tally
    p: Floats
    sets: dict[int, Found]
    points: list[Found]


def price_scores(exact: Exact, tally: Tally, p: Floats, canonical: bool) -> Floats:
    """The lowest price at which each label is in the best set; infinite if it never is."""
    points = _hull(exact, tally, p)
    # Sets of equal cost and mass are rare, unless labels have no mass or equal masses.
    if canonical or p.min() == 0 or len(np.unique(p)) < len(p):
        nothing = np.zeros(len(p), dtype=bool)
        # Two points may become one set, if their masses differ by less than a solver resolves.
        points = _corners(p, [exact.canonical(tally, p, mass_below(p, x.mask), nothing, x) for x in points])
    scores = np.full(len(p), np.inf)
    for before, point in reversed(list(pairwise(points))):
        scores[point.mask] = _price(p, before, point)
    scores[points[0].mask] = 0.0
    return scores


def _hull(exact: Exact, tally: Tally, p: Floats) -> list[Found]:
    """The corners of the lower hull by rising mass, from the heaviest of the cheapest sets to the cheapest set of all
    mass."""
    nothing = np.zeros(len(p), dtype=bool)
    left = exact.cheapest(tally, p, 0.0, nothing)
    left = exact.heaviest(tally, p, nothing, left)
    right = exact.cheapest(tally, p, 0.0, p > 0)
    row = RowTrace(exact, tally, p, {_MAX_HELD: left, 0: right}, [left])
    _trace(row, list(range(_MAX_HELD + 1)))
    return _corners(p, row.points)


def _meeting(row: RowTrace, a: int, b: int) -> Slope:
    left, right = row.sets[a], row.sets[b]
    return right.cost - left.cost, 0.0, _gained(row.p, left, right), 0.0


def _search(row: RowTrace, a: int, b: int, new: int, slope: Slope) -> int:
    p, left, right = row.p, row.sets[a], row.sets[b]
    if right.cost <= left.cost:
        row.points.append(right)
        return ENTERED
    price = _price(p, left, right)
    found = row.exact.at_price(row.tally, p, price, np.zeros(len(p), dtype=bool))
    row.sets[new] = found
    better = price * _gained(p, left, found) - (found.cost - left.cost)
    inner = _gained(p, left, found) > 0 and _gained(p, found, right) > 0
    return BELOW if inner and better > TOLERANCE * max(1.0, abs(found.cost), abs(left.cost)) else NEIGHBOURS


def _enter(row: RowTrace, a: int, b: int, slope: Slope) -> None:
    row.points.append(row.sets[b])


_trace = tracer(_meeting, _search, _enter)


def _gained(p: Floats, before: Found, after: Found) -> float:
    """The mass of `after` minus that of `before`, summed exactly and rounded once."""
    return math.fsum([*p[after.mask & ~before.mask].tolist(), *(-p[before.mask & ~after.mask]).tolist()])


def _price(p: Floats, before: Found, after: Found) -> float:
    return (after.cost - before.cost) / _gained(p, before, after)


def _corners(p: Floats, points: list[Found]) -> list[Found]:
    """The points without those that add no mass or lie, up to rounding, on the line between their neighbours.

    The same as `prices.hull.lower_hull`, but to the solver's tolerance, and masses are compared label by label.
    """
    corners = [points[0]]
    for point in points[1:]:
        if _gained(p, corners[-1], point) <= 0:
            continue
        while len(corners) > 1:
            steep, flat = _price(p, corners[-2], corners[-1]), _price(p, corners[-1], point)
            if flat > steep + TOLERANCE * max(1.0, abs(steep)):
                break
            corners.pop()
        corners.append(point)
    return corners
