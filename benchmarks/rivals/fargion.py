"""Class similarity in the score (Fargion et al., arXiv 2511.19359): labels unlike the likeliest one pay a fee.

MA: s(x, y) + lam 1{group(y) != group(yhat)}, yhat = argmax p. MS: s(x, y) + lam (1 - M[y, yhat]), M a similarity; MA
is MS with M of `same_group`. MA-mass: s(x, y) + lam (mass of the labels ranked above y and outside its group). Here s
is LAC's, 1 - p, and lam is chosen on rows of its own, by the cost that the sets are judged by (the paper: by size).
"""

from __future__ import annotations

import numpy as np

from rivals import ByScore, Floats, Ints, as_rows

GRID = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)


def scores(P: Floats, similarity: Floats, lam: float) -> Floats:
    P = as_rows(P)
    return np.asarray((1 - P) + lam * (1 - similarity[P.argmax(axis=1)]))


def mass_scores(P: Floats, groups: Ints, lam: float) -> Floats:
    P = as_rows(P)
    outside = 1 - (groups[:, None] == groups)
    out = np.empty(P.shape)
    for row, scored in zip(P, out, strict=True):
        order = np.argsort(-row, kind="stable")
        # [i, j]: the mass outside the group of the i-th label among the j + 1 best.
        outside_mass = np.cumsum(outside[np.ix_(order, order)] * row[order], axis=1)
        scored[order] = (1 - row[order]) + lam * np.append(0.0, np.diag(outside_mass[1:]))
    return out


def family(P: Floats, similarity: Floats, lam: float) -> ByScore:
    return ByScore(scores(P, similarity, lam))
