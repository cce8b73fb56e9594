"""Clustered conformal prediction (arXiv 2306.09335): classes whose scores look alike share a threshold.

With n_a the least n such that (n + 1)(1 - a) <= n, n_min = max(rarest class, n_a), N the classes with at least n_min
rows, n_cl = int(n_min N / (75 + N)): each row goes to clustering with probability n_cl / n_min. A class is embedded by
the quantiles .5, .6, .7, .8, .9 of its true-label scores there, and k-means, weighted by sqrt(rows), makes floor(n_cl
/ 2) clusters; classes with fewer than n_a rows are in none and take the pooled threshold. Thresholds are those of the
remaining rows, by cluster. It aims at coverage of every class; cost is not in it. The score is LAC's, 1 - p.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from rivals import Family, Floats, Ints, Masks, as_rows

_QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.9)


class Clustered(Family):
    def __init__(self, P: Floats, tuning: Floats, tuning_y: Ints, alpha: float, rng: np.random.Generator) -> None:
        self.scores = 1 - as_rows(P)
        scores = 1 - as_rows(tuning)[np.arange(len(tuning_y)), tuning_y]
        first, self.cluster = clusters(scores, tuning_y, self.scores.shape[1], alpha, rng)
        rest = ~first
        self.pooled = np.sort(scores[rest])
        of_row = self.cluster[tuning_y]
        self.held = [np.sort(scores[rest & (of_row == c)]) for c in range(self.cluster.max() + 1)]

    def at(self, level: float) -> Masks:
        """At coverage `level` of every cluster: y is in iff its score is at most its cluster's quantile."""
        limits = np.full(self.scores.shape[1], quantile(self.pooled, level))
        for c, held in enumerate(self.held):
            limits[self.cluster == c] = quantile(held, level)
        return self.scores <= limits

    def levels(self, y: Ints) -> Floats:
        return np.append(0.0, np.append(np.linspace(0.3, 0.98, 120), 1 - np.geomspace(0.018, 1e-4, 12)))


def quantile(rising: Floats, level: float) -> float:
    """The k-th smallest, k = ceil((n + 1) level); infinite where there is none."""
    k = ceil((len(rising) + 1) * Fraction(level).limit_denominator(10**9))
    return float(rising[k - 1]) if 0 < k <= len(rising) else (-np.inf if k <= 0 else np.inf)


def clusters(scores: Floats, y: Ints, K: int, alpha: float, rng: np.random.Generator) -> tuple[Masks, Ints]:
    """Which rows were used for clustering, and the cluster of each class, -1 for none."""
    counts = np.bincount(y, minlength=K)
    least = ceil(Fraction(str(1 - alpha)) / Fraction(str(alpha)))
    n_min = max(int(counts.min()), least)
    many = int((counts >= n_min).sum())
    n_cl = int(n_min * many / (75 + many))
    number = n_cl // 2
    first = rng.random(len(y)) < n_cl / n_min
    cluster = np.full(K, -1, dtype=np.int64)
    seen = np.bincount(y[first], minlength=K)
    enough = np.flatnonzero(seen >= least)
    if number <= 1 or len(enough) <= number:
        return first, cluster
    points = np.array([np.quantile(scores[first & (y == c)], _QUANTILES) for c in enough])
    cluster[enough] = k_means(points, np.sqrt(seen[enough]), number, rng)
    return first, cluster


def k_means(points: Floats, weights: Floats, number: int, rng: np.random.Generator, starts: int = 10) -> Ints:
    """Lloyd's, from several random starts; the one of least weighted squared distance."""
    best, found = np.inf, np.zeros(len(points), dtype=np.int64)
    for _ in range(starts):
        centres = points[rng.choice(len(points), number, replace=False, p=weights / weights.sum())]
        for _ in range(100):
            away = ((points[:, None] - centres) ** 2).sum(axis=2)
            near = away.argmin(axis=1)
            moved = np.array([
                np.average(points[near == c], axis=0, weights=weights[near == c]) if (near == c).any() else centres[c]
                for c in range(number)
            ])  # fmt: skip
            if (moved == centres).all():
                break
            centres = moved
        total = float((weights * away.min(axis=1)).sum())
        if total < best:
            best, found = total, near
    return found
