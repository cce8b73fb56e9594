"""What the price oracle must give, by looking at all 2^K sets in exact rationals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from udcp_dsl.loss import Loss

Vertex = tuple[Fraction, Fraction, int, tuple[int, ...]]  # mass, cost, size, members


def hull(loss: Loss, p: Sequence[float]) -> list[tuple[Fraction, frozenset[int]]]:
    """The sets S_mu and the least price of each, by rising price: the minimisers of L(S) - mu p(S), mu >= 0.

    Of several minimisers the one of largest mass, then of fewest labels, then with the first list of indices.
    """
    exact = [Fraction(float(x)) for x in p]
    best: dict[Fraction, Vertex] = {}
    for bits in range(1 << loss.K):
        S = tuple(y for y in range(loss.K) if bits >> y & 1)
        vertex = (sum((exact[y] for y in S), Fraction(0)), Fraction(loss.interpret_positions(S)), len(S), S)
        old = best.get(vertex[0])
        if old is None or vertex[1:] < old[1:]:
            best[vertex[0]] = vertex
    points = sorted(best.values())
    cheapest = min(point[1] for point in points)
    at = max(i for i, point in enumerate(points) if point[1] == cheapest)
    found = [(Fraction(0), frozenset(points[at][3]))]
    while at + 1 < len(points):
        mass, cost = points[at][:2]
        slopes = [((q[1] - cost) / (q[0] - mass), i) for i, q in enumerate(points) if i > at]
        price = min(slope for slope, _ in slopes)
        at = max(i for slope, i in slopes if slope == price)
        found.append((price, frozenset(points[at][3])))
    return found


def price_scores(loss: Loss, p: Sequence[float]) -> list[float]:
    """The least price mu >= 0 at which each label is in S_mu; infinity if it never is."""
    scores = [float("inf")] * loss.K
    for price, S in reversed(hull(loss, p)):
        for y in S:
            scores[y] = float(price)
    return scores
