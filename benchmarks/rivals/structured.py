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

from rivals import Family, Floats, Ints, Masks, as_rows

_ROWS = 40  # at once


class Structured(Family):
    def __init__(self, P: Floats, hierarchy: Any, most: int = 2) -> None:
        self.P, self.tree, self.most = as_rows(P), hierarchy, most
        tree = hierarchy
        nodes = len(tree.names)
        # The nodes below v are those after it in preorder whose leaves begin before its leaves end.
        self.after = [v + 1 + int(np.sum(tree.low[v + 1 :] < tree.high[v])) for v in range(nodes)]
        self.leaves = (tree.high - tree.low).tolist()

    def _tables(self, P: Floats) -> list[Floats]:
        n, K = P.shape
        tree, nodes = self.tree, len(self.leaves)
        before = np.append(np.zeros((n, 1)), np.cumsum(P[:, tree.order], axis=1), axis=1)
        empty = np.full((n, self.most + 1, K + 1), -1.0)
        empty[:, :, 0] = 0.0
        tables: list[Floats] = [empty] * (nodes + 1)
        for v in range(nodes - 1, -1, -1):
            many = self.leaves[v]
            mass = before[:, tree.high[v]] - before[:, tree.low[v]]
            table = tables[v + 1].copy()
            skipped = tables[self.after[v]][:, :-1, : K + 1 - many]
            taken = np.where(skipped >= 0, skipped + mass[:, None, None], -1.0)
            np.maximum(table[:, 1:, many:], taken, out=table[:, 1:, many:])
            tables[v] = table
        return tables

    def at(self, level: float) -> Masks:
        """At tau = `level`; where no set of so few nodes has the mass, all labels (the root)."""
        out = np.ones(self.P.shape, dtype=bool)
        for start in range(0, len(self.P), _ROWS):
            P = self.P[start : start + _ROWS]
            tables = self._tables(P)
            enough = tables[0][:, -1] >= level - 1e-12
            for i in range(len(P)):
                if enough[i].any():
                    out[start + i] = self._traced(tables, P[i], i, int(enough[i].argmax()))
        return out

    def _traced(self, tables: list[Floats], p: Floats, i: int, s: int) -> Masks:
        tree, v, j = self.tree, 0, self.most
        mask = np.zeros(len(p), dtype=bool)
        while s > 0:
            if tables[v][i, j, s] == tables[v + 1][i, j, s]:
                v += 1
                continue
            mask[tree.order[tree.low[v] : tree.high[v]]] = True
            s, j, v = s - self.leaves[v], j - 1, self.after[v]
        return mask

    def levels(self, y: Ints) -> Floats:
        return np.append(0.0, np.append(np.linspace(0.02, 0.98, 25), 1 - np.geomspace(0.01, 1e-6, 8)))
