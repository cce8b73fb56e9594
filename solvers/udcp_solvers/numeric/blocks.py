"""Scores of labels that enter in blocks: minus the remaining mass. For `ilp`.

As in `remaining`, with blocks in place of labels: the rest of a block is the exact mass after it plus a share of its
own mass (which is rounded first). All labels of a block have the same score, so sets consist of whole blocks.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Indices, Probabilities
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.exact_sum import LIMBS, add, rounded
from udcp_solvers.numeric.remaining import limbs_of, mass_score, not_below


def block_scores(P: Probabilities, shares: Floats, orders: Indices, blocks: Indices) -> Floats:
    """Every label's score; blocks[i, k] is the block number of label orders[i, k], counted from 0 along the order."""
    out = np.empty(P.shape)
    over_rows(_scores, *P.shape, P, shares, orders, blocks, out)
    return out


@jit
def _scores(
    start: int, stop: int, P: Probabilities, shares: Floats, orders: Indices, blocks: Indices, out: Floats
) -> None:
    K = P.shape[1]
    after, own = np.zeros(LIMBS, np.int64), np.zeros(LIMBS, np.int64)
    rests = np.empty(K)
    for i in range(start, stop):
        row, order, block, share = P[i], orders[i], blocks[i], shares[i]
        low, high = limbs_of(row, share)
        after[:] = 0
        k = K - 1
        while k >= 0:
            b = block[k]
            own[:] = 0
            while k >= 0 and block[k] == b:
                add(own, np.float64(row[order[k]]), 1)
                k -= 1
            if share == 1.0:
                after += own
                rests[b] = rounded(after, low, high)
            else:
                part = share * rounded(own, low, high) if share > 0.0 else 0.0
                add(after, part, 1)
                rests[b] = rounded(after, low, high)
                add(after, part, -1)
                after += own
        score, b = -np.inf, -1
        for k in range(K):
            if block[k] != b:
                b = block[k]
                score = not_below(mass_score(rests[b], b + 1, share), score)
            out[i, order[k]] = score
