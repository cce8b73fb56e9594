"""What oracles must give on few labels: `price` by all 2^K sets in exact rationals, `greedy` by its rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from udcp_dsl.loss import Loss

Vertex = tuple[Fraction, Fraction, int, tuple[int, ...]]  # mass, cost, size, members


def vertices(loss: Loss, p: Sequence[float]) -> list[Vertex]:
    """All 2^K sets."""
    exact = [Fraction(float(x)) for x in p]
    masses = [Fraction(0)]
    for y in range(loss.K):
        masses += [mass + exact[y] for mass in masses]
    return [(mass, cost, len(S), S) for mass, (cost, S) in zip(masses, _costs(loss), strict=True)]


@lru_cache(maxsize=1)  # what is tried of one loss is tried on several rows, one after the other
def _costs(loss: Loss) -> list[tuple[Fraction, tuple[int, ...]]]:
    """What the interpreter says that each of the 2^K sets costs, and its members."""
    sets = [tuple(y for y in range(loss.K) if bits >> y & 1) for bits in range(1 << loss.K)]
    return [(Fraction(loss.interpret_positions(S)), S) for S in sets]


def hull(loss: Loss, p: Sequence[float]) -> list[tuple[Fraction, frozenset[int]]]:
    """The sets S_mu and the least price of each, by rising price: the minimisers of L(S) - mu p(S), mu >= 0.

    Of several minimisers the one of largest mass, then of fewest labels, then with the first list of indices.
    """
    return _hull(vertices(loss, p))


def anchored_scores(loss: Loss, p: Sequence[float], anchor: float) -> tuple[list[float], frozenset[int]]:
    """The scores at an anchor m, and S* = S_m: inside S* the price among its subsets, at most m; outside that among
    its supersets, above m, or among all sets where the S_mu up to m hold nothing beyond S*."""
    m, sets = Fraction(float(anchor)), vertices(loss, p)
    star = frozenset(min(sets, key=lambda s: (s[1] - m * s[0], -s[0], s[2], s[3]))[3])
    plain = _hull(sets)
    nested = all(star >= S for price, S in plain if price <= m)
    scores = [float("inf")] * loss.K
    for price, S in reversed(_hull([s for s in sets if star.issuperset(s[3])])):
        for y in S:
            scores[y] = float(min(price, m))
    for price, S in reversed(plain if nested else _hull([s for s in sets if star.issubset(s[3])])):
        for y in S - star if price > m else ():
            scores[y] = max(float(price), float(np.nextafter(float(m), np.inf)))
    return scores, star


def _hull(sets: Sequence[Vertex]) -> list[tuple[Fraction, frozenset[int]]]:
    # Over common denominators masses and costs are whole numbers, which are compared many times as quickly.
    unit = math.lcm(*(mass.denominator for mass, *_ in sets))
    money = math.lcm(*(cost.denominator for _, cost, *_ in sets))
    best: dict[int, tuple[int, int, int, tuple[int, ...]]] = {}
    for vertex in sets:
        mass, cost, size, members = vertex
        heavy = mass.numerator * (unit // mass.denominator)
        whole = heavy, cost.numerator * (money // cost.denominator), size, members
        old = best.get(whole[0])
        if old is None or whole[1:] < old[1:]:
            best[whole[0]] = whole
    points = sorted(best.values())
    cheapest = min(point[1] for point in points)
    at = max(i for i, point in enumerate(points) if point[1] == cheapest)
    found = [(Fraction(0), frozenset(points[at][3]))]
    while at + 1 < len(points):
        here, paid = points[at][:2]
        least, gained = points[-1][1] - paid, points[-1][0] - here
        last = len(points) - 1
        for i in range(last - 1, at, -1):  # from the largest mass: of equal slopes that is taken
            dearer, heavier = points[i][1] - paid, points[i][0] - here
            if dearer * gained < least * heavier:
                least, gained, last = dearer, heavier, i
        at = last
        found.append((Fraction(least * unit, gained * money), frozenset(points[at][3])))
    return found


def price_scores(loss: Loss, p: Sequence[float]) -> list[float]:
    """The least price mu >= 0 at which each label is in S_mu; infinity if it never is."""
    scores = [float("inf")] * loss.K
    for price, S in reversed(hull(loss, p)):
        for y in S:
            scores[y] = float(price)
    return scores


def greedy_order(loss: Loss, p: Sequence[float], M: float, eps: float) -> list[int]:
    """The paper's greedy rule: the label with the largest (M - L(S + y)) / (1 - p(y) + eps) comes next."""
    order: list[int] = []
    while len(order) < len(p):
        best, best_ratio = -1, -math.inf
        for y in range(len(p)):
            if y in order:
                continue
            gain = max(M - loss.interpret_positions([*order, y]), 0) / (max(1 - p[y], 0) + eps)
            if gain > best_ratio or (gain == best_ratio and p[y] > p[best]):
                best, best_ratio = y, gain
        order.append(best)
    return order
