"""The two programs of `ilp`, one instance at a time: a chain of sets over rising masses, and the hull over prices.

Mass: S_1, S_2, ... where S_j has least cost among the sets that hold S_(j-1) and a fraction t_j of the row's mass. A
set that has the next mass already is its own successor: what costs less and holds it would have been chosen before.

Price: the points (p(S), L(S)) on the lower convex hull, by the recursion of Eisner and Severance. Between two known
points, the price at which their lines cross is asked for; a set that is better there is a new point and halves the
question, and if none is, the two are neighbours. Masses are differences of exact sums, and the prices are quotients of
differences of the sets' own costs and masses, so that they carry one rounding each and nothing of the solver's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from udcp_dsl.expression.facts import TOLERANCE
from udcp_solvers.numeric.arrays import Floats, Indices, Masks
from udcp_solvers.programs.exact import Exact, Found, Tally
from udcp_solvers.programs.mass import has_mass, mass_below, units


def targets(p: Floats, levels: Sequence[Fraction]) -> list[float]:
    """The masses to reach: fractions of the exact total of the row, rounded down."""
    whole = Fraction(units(p.tolist()), 2**1074)
    found = []
    for level in levels:
        exact = whole * level
        near = float(exact)
        found.append(near if Fraction(near) <= exact else math.nextafter(near, 0.0))
    return found


def chain(exact: Exact, tally: Tally, p: Floats, levels: Sequence[Fraction]) -> Iterator[Masks]:
    """The sets of the chain, each only when it is asked for; a set that equals the one before is left out."""
    mask = np.zeros(len(p), dtype=bool)
    first = True
    for t in targets(p, levels):
        if not first and has_mass(p, mask, t):
            continue
        quick = exact.by_shortcut(p, t, mask)
        if quick is not None:
            mask = quick
        else:
            found = exact.cheapest(tally, p, t, mask)
            # Where the solver has no answer, the heaviest labels give a set that has the mass.
            mask = _by_mass(p, t, mask) if found is None else found.mask
        first = False
        yield mask


def _by_mass(p: Floats, t: float, inside: Masks) -> Masks:
    mask = inside.copy()
    for y in np.argsort(-p, kind="stable"):
        if has_mass(p, mask, t):
            break
        mask[y] = True
    return mask


def order_of(p: Floats, blocks: Sequence[Masks]) -> Indices:
    """Labels block after block, within a block by falling p, ties by lower index; those in no block last."""
    block = np.full(len(p), len(blocks))
    for i in range(len(blocks) - 1, -1, -1):
        block[blocks[i]] = i
    return np.lexsort((np.arange(len(p)), -p, block))


def price_scores(exact: Exact, tally: Tally, p: Floats, canonical: bool) -> Floats:
    """The least price at which each label is in the set of that price; infinite where it never is."""
    points = _hull(exact, tally, p)
    # Sets of the same cost and mass: rare, unless labels weigh nothing or the same.
    if canonical or p.min() == 0 or len(np.unique(p)) < len(p):
        nothing = np.zeros(len(p), dtype=bool)
        # Two of them may come to one set, where what tells their masses apart is below what a solver sees.
        points = _corners(p, [exact.canonical(tally, p, mass_below(p, x.mask), nothing, x) for x in points])
    scores = np.full(len(p), np.inf)
    for before, point in reversed(list(pairwise(points))):
        scores[point.mask] = _price(p, before, point)
    scores[points[0].mask] = 0.0
    return scores


def _hull(exact: Exact, tally: Tally, p: Floats) -> list[Found]:
    """The corners of the lower hull by rising mass, from the heaviest set of least cost to the cheapest of all mass."""
    nothing = np.zeros(len(p), dtype=bool)
    left = exact.cheapest(tally, p, 0.0, nothing) or _costed(exact, nothing)
    left = exact.heaviest(tally, p, nothing, left)
    right = exact.cheapest(tally, p, 0.0, p > 0) or _costed(exact, p > 0)
    points = [left]
    waiting = [right]
    while waiting:
        here, there = points[-1], waiting[-1]
        between = _between(exact, tally, p, here, there)
        if between is None:
            points.append(waiting.pop())
        else:
            waiting.append(between)
    return _corners(p, points)


def _costed(exact: Exact, mask: Masks) -> Found:
    return Found(mask, float(exact.loss.batch(mask[None, :])[0]), False)


def _between(exact: Exact, tally: Tally, p: Floats, left: Found, right: Found) -> Found | None:
    """A set that lies below the line through two others, or None."""
    if _gained(p, left, right) <= 0 or right.cost <= left.cost:
        return None
    price = _price(p, left, right)
    # A label whose mass at this price is worth more than the loss can ever cost is in; so large terms leave the sum.
    interval = exact.loss.facts.interval
    inside = price * p > (1 + 1e-9) * (interval.hi - interval.lo)
    found = exact.at_price(tally, p, price, inside)
    if found is None:
        return None
    better = price * _gained(p, left, found) - (found.cost - left.cost)
    inner = _gained(p, left, found) > 0 and _gained(p, found, right) > 0
    return found if inner and better > TOLERANCE * max(1.0, abs(found.cost), abs(left.cost)) else None


def _gained(p: Floats, before: Found, after: Found) -> float:
    """The difference of two masses, exact and rounded once."""
    return math.fsum([*p[after.mask & ~before.mask].tolist(), *(-p[before.mask & ~after.mask]).tolist()])


def _price(p: Floats, before: Found, after: Found) -> float:
    return (after.cost - before.cost) / _gained(p, before, after)


def _corners(p: Floats, points: list[Found]) -> list[Found]:
    """Without what adds no mass, or lies on the line between its neighbours, but for rounding."""
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
