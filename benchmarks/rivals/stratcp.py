"""StratCP's utility order: from the likeliest label to what is most like the chosen.

The order starts at argmax p; then, of the `most` likeliest labels left, it takes the one with the largest similarity
to a chosen one (ties: the likelier). The score is the mass up to and with y in that order; the first label's is 0, so
that no set is empty. (The published sets come after a selection of rows with a bound on false discoveries; only the
order is compared here.)
"""

from __future__ import annotations

import numpy as np

from rivals import ByScore, Floats, as_rows

MOST = 3


def order(p: Floats, similarity: Floats, most: int = MOST) -> list[int]:
    left = np.argsort(-p, kind="stable").tolist()
    chosen = [left.pop(0)]
    nearest = similarity[chosen[0]].copy()
    while left:
        y = max(left[:most], key=lambda z: nearest[z])  # the first of equals: the likelier
        left.remove(y)
        chosen.append(y)
        np.maximum(nearest, similarity[y], out=nearest)
    return chosen


def scores(P: Floats, similarity: Floats, most: int = MOST) -> Floats:
    P = as_rows(P)
    out = np.empty(P.shape)
    for p, scored in zip(P, out, strict=True):
        chosen = order(p, similarity, most)
        scored[chosen] = np.append(0.0, np.cumsum(p[chosen])[1:])
    return out


def family(P: Floats, similarity: Floats) -> ByScore:
    return ByScore(scores(P, similarity))
