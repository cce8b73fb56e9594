"""Scores along a given order of the labels: minus the mass that remains. For `greedy`, and any oracle with an order.

The k-th label of an order has rem_k, the exact sum of the probabilities of all labels after it, rounded once to float64
(as in `mass`: it does not depend on how those labels would be ordered, so an order may end early), and the score

    s_k = max(-rem_k, nextafter(s_(k-1), +inf)),      with k * 1e-300 in place of -rem_k where nothing remains.

Unlike by falling p, a label may be so small against what remains that rem_k = rem_(k-1); then the step up keeps the
order. Where a label takes more than K steps' worth of mass its score is -rem_k whatever came before: so the score of
one label needs the sums of a few labels before it, not of all.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Indices, Masks, Probabilities, Row
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.exact_sum import LIMBS, Limbs, add, limb_of, rounded


def row_blocks(P: Probabilities, cells: int) -> list[slice]:
    """The rows of P in blocks of about so many cells."""
    n, K = P.shape
    step = max(1, cells // K)
    return [slice(start, start + step) for start in range(0, n, step)]


def remaining_scores(P: Probabilities, orders: Indices) -> Floats:
    """Every label's score along complete orders (n, K)."""
    out = np.empty(P.shape)
    over_rows(_scores, *P.shape, P, orders, out)
    return out


def remaining_score_of(P: Probabilities, orders: Indices, counts: Indices, y: Indices) -> Floats:
    """The scores of the labels y, each among the first `counts` of its row's order."""
    out = np.empty(len(P))
    over_rows(_score_of, *P.shape, P, orders, counts, y, out)
    return out


def remaining_sets(P: Probabilities, orders: Indices, counts: Indices, tau: Floats) -> Masks:
    """The sets at thresholds tau, one a row; the last of the first `counts` labels is out, or counts is K."""
    out = np.empty(P.shape, dtype=np.bool_)
    over_rows(_sets, *P.shape, P, orders, counts, np.ascontiguousarray(tau), out)
    return out


@jit
def mass_score(rem: float, k: int) -> float:
    """The score of the k-th label before the step up."""
    return -rem if rem > 0.0 else k * 1e-300


@jit
def not_below(score: float, before: float) -> float:
    """max(score, nextafter(before, +inf))."""
    return score if score > before else float(np.nextafter(before, np.inf))


@jit
def _scores(start: int, stop: int, P: Probabilities, orders: Indices, out: Floats) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    rems = np.empty(K)
    for i in range(start, stop):
        row, order = P[i], orders[i]
        low, high = limbs_of(row)
        total[:] = 0
        for k in range(K - 1, -1, -1):
            rems[k] = rounded(total, low, high)
            add(total, np.float64(row[order[k]]), 1)
        score = -np.inf
        for k in range(K):
            score = not_below(mass_score(rems[k], k + 1), score)
            out[i, order[k]] = score


@jit
def _score_of(
    start: int, stop: int, P: Probabilities, orders: Indices, counts: Indices, y: Indices, out: Floats
) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    rems = np.empty(K)
    placed = np.zeros(K, np.bool_)
    for i in range(start, stop):
        row, order = P[i], orders[i]
        last = counts[i] - 1
        while order[last] != y[i]:
            last -= 1
        low, high = limbs_of(row)
        _sum_after(row, order, last, placed, total)
        first = _restart(row, order, last, np.inf, total, low, high, rems)
        score = -np.inf
        for k in range(first, last + 1):
            score = not_below(mass_score(rems[k], k + 1), score)
        out[i] = score


@jit
def _sets(start: int, stop: int, P: Probabilities, orders: Indices, counts: Indices, tau: Floats, out: Masks) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    rems = np.empty(K)
    placed = np.zeros(K, np.bool_)
    for i in range(start, stop):
        row, order = P[i], orders[i]
        out[i] = tau[i] >= K * 1e-300
        if out[i, 0]:
            continue
        last = counts[i] - 1
        low, high = limbs_of(row)
        _sum_after(row, order, last, placed, total)
        first = _restart(row, order, last, tau[i], total, low, high, rems)
        for k in range(first):
            out[i, order[k]] = True
        score = -np.inf
        for k in range(first, last + 1):
            score = not_below(mass_score(rems[k], k + 1), score)
            if score > tau[i]:
                break
            out[i, order[k]] = True


@jit
def limbs_of(row: Row) -> tuple[int, int]:
    """The lowest and the highest limb that sums over the row touch."""
    least, most = np.inf, 0.0
    for x in row:
        if x > 0.0:
            least = min(least, np.float64(x))
        most = max(most, np.float64(x))
    return (limb_of(least), limb_of(most) + 3) if most > 0.0 else (2, 2)


@jit
def _sum_after(row: Row, order: Indices, last: int, placed: Masks, total: Limbs) -> None:
    """The exact mass of the labels that are not among order[: last + 1]."""
    total[:] = 0
    if last == len(row) - 1:
        return
    for k in range(last + 1):
        placed[order[k]] = True
    for j in range(len(row)):
        if placed[j]:
            placed[j] = False
        else:
            add(total, np.float64(row[j]), 1)


@jit
def _restart(row: Row, order: Indices, last: int, tau: float, total: Limbs, low: int, high: int, rems: Floats) -> int:
    """A place at or before `last` whose score is minus its remaining mass for certain and at most tau, or 0.

    Fills `rems` from there to `last`; `total` holds the mass after `last`. All scores before place k are at most -rem
    of the place before it and k steps up, each of at most 2^-52 rem.
    """
    K = len(row)
    k = last
    while True:
        rem = rounded(total, low, high)
        rems[k] = rem
        if k == 0:
            return 0
        x = np.float64(row[order[k]])
        add(total, x, 1)
        alone = rem == 0.0 or x > (K + 4) * (2.0**-52 * (rem + x) + 5e-324)
        if alone and mass_score(rem, k + 1) <= tau:
            return k
        k -= 1
