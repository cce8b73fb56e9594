"""SOCOP, singleton-optimised conformal prediction (arXiv 2509.24095).

Target: the least P(|C| > 1) + lam E|C| at coverage 1 - alpha. With p sorted down, G_j the mass of the j best labels
and g_j = 1{j > 1} + lam j, the labels ranked u + 1 .. v between two vertices of the lower convex hull of (G_j, g_j)
all have the score (g_v - g_u) / (G_v - G_u). It is the loss `(size >= 2) + lam * size` under `price`, to rounding.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rivals import ByScore, Floats, as_rows


def scores(P: Floats, lam: float) -> Floats:
    """Slopes of the hull; infinite where p = 0, which no price buys."""
    P = as_rows(P)
    out = np.full(P.shape, np.inf)
    K = P.shape[1]
    g = (np.arange(K + 1) > 1) + lam * np.arange(K + 1)
    for row, scored in zip(P, out, strict=True):
        order = np.argsort(-row, kind="stable")
        order = order[row[order] > 0]
        # Minus the mass left out, summed from the small end: small masses keep their digits.
        G = -np.append(np.cumsum(row[order][::-1])[::-1], 0.0)
        hull = [0]
        for j in range(1, len(G)):
            # Drop the last vertex while it lies on or above the line from the one before it to j.
            while len(hull) > 1:
                u, v = hull[-2], hull[-1]
                if (g[v] - g[u]) * (G[j] - G[u]) < (g[j] - g[u]) * (G[v] - G[u]):
                    break
                hull.pop()
            hull.append(j)
        for u, v in pairwise(hull):
            scored[order[u:v]] = (g[v] - g[u]) / (G[v] - G[u])
    return out


def family(P: Floats, lam: float) -> ByScore:
    return ByScore(scores(P, lam))
