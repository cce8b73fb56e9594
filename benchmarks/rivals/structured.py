"""Conformal structured prediction (arXiv 2410.06296): the fewest labels of mass >= tau that at most m nodes say.

Per instance, over a tree: choose at most m nodes; their leaves are the set; minimise the number of leaves subject to
their mass being at least tau. (The paper: an integer program.) tau goes down a fixed grid until too many calibration
rows are missed. The sets need not be nested in tau. Solved here exactly by a pass over the nodes in preorder, for all
tau at once: F[v][j][s] is the largest mass of j nodes with s leaves among v and all after it; v is taken, and what is
below it skipped, or left. In our language: `size + c * (nodes(h) >= m + 1)` with a large c, or the softer `nodes(h) +
e * size`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from rivals import Family, Floats, Ints, Masks, as_rows

GRID = np.append(0.0, np.append(np.linspace(0.02, 0.98, 25), 1 - np.geomspace(0.01, 1e-6, 8)))


class Structured(Family):
    def __init__(self, P: Floats, hierarchy: Any, most: int = 2) -> None:
        self.P, self.most = as_rows(P), most
        low, high = (np.asarray(a, dtype=np.int64) for a in (hierarchy.low, hierarchy.high))
        # The nodes below v are those after it in preorder whose leaves begin before its leaves end.
        after = [v + 1 + int(np.sum(low[v + 1 :] < high[v])) for v in range(len(low))]
        self.tree = low, high, np.array(after), np.asarray(hierarchy.order, dtype=np.int64)
        self._held: Masks | None = None

    def at(self, level: float) -> Masks:
        """At tau = `level`; where no set of so few nodes has the mass, all labels (the root)."""
        (known,) = np.nonzero(np.equal(GRID, level))
        if not len(known):
            return np.asarray(_sets(self.P, np.array([level]), *self.tree, self.most)[0])
        if self._held is None:
            self._held = np.packbits(_sets(self.P, GRID, *self.tree, self.most), axis=2)
        return np.unpackbits(self._held[known[0]], axis=1, count=self.P.shape[1]).astype(bool)

    def levels(self, y: Ints) -> Floats:
        return GRID


@njit(parallel=True)
def _sets(P: Floats, taus: Floats, low: Ints, high: Ints, after: Ints, order: Ints, most: int) -> Masks:
    """(levels, n, K)."""
    n, K = P.shape
    nodes = len(low)
    out = np.ones((len(taus), n, K), dtype=np.bool_)
    for i in prange(n):
        before = np.zeros(K + 1)
        for k in range(K):
            before[k + 1] = before[k] + P[i, order[k]]
        table = np.full((nodes + 1, most + 1, K + 1), -1.0)
        table[nodes, :, 0] = 0.0
        for v in range(nodes - 1, -1, -1):
            many, mass = high[v] - low[v], before[high[v]] - before[low[v]]
            table[v] = table[v + 1]
            for j in range(1, most + 1):
                for s in range(many, K + 1):
                    skipped = table[after[v], j - 1, s - many]
                    if skipped >= 0 and skipped + mass > table[v, j, s]:
                        table[v, j, s] = skipped + mass
        for t in range(len(taus)):
            least = -1
            for s in range(K + 1):
                if table[0, most, s] >= taus[t] - 1e-12:
                    least = s
                    break
            if least < 0:
                continue
            out[t, i] = False
            v, j, s = 0, most, least
            while s > 0:
                if table[v, j, s] == table[v + 1, j, s]:
                    v += 1
                else:
                    for k in range(low[v], high[v]):
                        out[t, i, order[k]] = True
                    s, j, v = s - (high[v] - low[v]), j - 1, after[v]
    return out
