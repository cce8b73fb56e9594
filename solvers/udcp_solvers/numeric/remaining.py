"""Scores along a given order of the labels: minus the remaining mass. For `greedy` and any oracle with an order.

For the k-th label of an order, rest_k is the exact sum of the probabilities of all labels after it and of a share of
its own (share * p_k, rounded), rounded once to float64. A row has one share: 1 counts the mass before a label, 0 the
mass through it, 1 - U a mass between these. The sum does not depend on the order of the labels after k, so an order may
end early. The score is

    s_k = max(-rest_k, nextafter(s_(k-1), +inf)),      with k * 1e-300 in place of -rest_k where nothing remains.

With share 1, the first label of every row has the score -1, even if the rounded probabilities of the row do not sum to
1: so a threshold that admits the first label of one row admits the first labels of all rows.

Unlike in the order by falling p, a label may be so small against the rest that rest_k = rest_(k-1); then nextafter
keeps the order. Where the rest falls by more than K such steps, the score is -rest_k whatever the scores before. So the
score of one label needs the sums of a few labels before it, not of all.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Indices, Masks, Probabilities, Row
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.exact_sum import LIMBS, Limbs, add, limb_of, rounded


def row_blocks(P: Probabilities, cells: int) -> list[slice]:
    """Slices that divide the rows of P into blocks of about `cells` cells."""
    n, K = P.shape
    step = max(1, cells // K)
    return [slice(start, start + step) for start in range(0, n, step)]


def remaining_scores(P: Probabilities, shares: Floats, orders: Indices) -> Floats:
    """Every label's score along complete orders (n, K)."""
    out = np.empty(P.shape)
    over_rows(_scores, *P.shape, P, shares, orders, out)
    return out


def remaining_score_of(P: Probabilities, shares: Floats, orders: Indices, counts: Indices, y: Indices) -> Floats:
    """The scores of the labels y, each among the first `counts` of its row's order."""
    out = np.empty(len(P))
    over_rows(_score_of, *P.shape, P, shares, orders, counts, y, out)
    return out


def remaining_sets(P: Probabilities, shares: Floats, orders: Indices, counts: Indices, tau: Floats) -> Masks:
    """The sets at thresholds tau, one per row. Labels beyond the first `counts` are out, unless tau admits all
    labels."""
    out = np.empty(P.shape, dtype=np.bool_)
    over_rows(_sets, *P.shape, P, shares, orders, counts, np.ascontiguousarray(tau), out)
    return out


@jit
def mass_score(rest: float, k: int, share: float) -> float:
    """The score of the k-th label from its rest alone; with share 1, at least what nextafter makes of the first label's
    -1."""
    if share == 1.0 and (k == 1 or rest >= 0.5):
        return -1.0 if k == 1 else max(-rest, (k - 1) * 2.0**-53 - 1.0)
    return -rest if rest > 0.0 else k * 1e-300


@jit
def with_label(total: Limbs, x: float, share: float, low: int, high: int) -> float:
    """The rest of a label of mass x, given the total mass after it; adds x to the total."""
    if share == 1.0:
        add(total, x, 1)
        return rounded(total, low, high)
    part = share * x
    if part > 0.0:
        add(total, part, 1)
    rest = rounded(total, low, high)
    if part > 0.0:
        add(total, part, -1)
    add(total, x, 1)
    return rest


@jit
def without_label(total: Limbs, x: float, share: float, low: int, high: int) -> float:
    """The rest of a label of mass x, given the total of its mass and the mass after it; subtracts x from the total."""
    if share == 1.0:
        rest = rounded(total, low, high)
        add(total, x, -1)
        return rest
    part = share * x
    add(total, x, -1)
    if part > 0.0:
        add(total, part, 1)
    rest = rounded(total, low, high)
    if part > 0.0:
        add(total, part, -1)
    return rest


@jit
def not_below(score: float, before: float) -> float:
    """max(score, nextafter(before, +inf))."""
    return score if score > before else float(np.nextafter(before, np.inf))


@jit
def _scores(start: int, stop: int, P: Probabilities, shares: Floats, orders: Indices, out: Floats) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    rests = np.empty(K)
    for i in range(start, stop):
        row, order, share = P[i], orders[i], shares[i]
        low, high = limbs_of(row, share)
        total[:] = 0
        for k in range(K - 1, -1, -1):
            rests[k] = with_label(total, np.float64(row[order[k]]), share, low, high)
        score = -np.inf
        for k in range(K):
            score = not_below(mass_score(rests[k], k + 1, share), score)
            out[i, order[k]] = score


@jit
def _score_of(
    start: int, stop: int, P: Probabilities, shares: Floats, orders: Indices, counts: Indices, y: Indices, out: Floats
) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    rests = np.empty(K)
    placed = np.zeros(K, np.bool_)
    for i in range(start, stop):
        row, order = P[i], orders[i]
        last = counts[i] - 1
        while order[last] != y[i]:
            last -= 1
        _sum_after(row, order, last, placed, total)
        first = _restart(row, shares[i], order, last, np.inf, total, rests)
        score = -np.inf
        for k in range(first, last + 1):
            score = not_below(mass_score(rests[k], k + 1, shares[i]), score)
        out[i] = score


@jit
def _sets(
    start: int, stop: int, P: Probabilities, shares: Floats, orders: Indices, counts: Indices, tau: Floats, out: Masks
) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    rests = np.empty(K)
    placed = np.zeros(K, np.bool_)
    for i in range(start, stop):
        row, order = P[i], orders[i]
        out[i] = tau[i] >= K * 1e-300
        if out[i, 0]:
            continue
        last = counts[i] - 1
        _sum_after(row, order, last, placed, total)
        first = _restart(row, shares[i], order, last, tau[i], total, rests)
        for k in range(first):
            out[i, order[k]] = True
        score = -np.inf
        for k in range(first, last + 1):
            score = not_below(mass_score(rests[k], k + 1, shares[i]), score)
            if score > tau[i]:
                break
            out[i, order[k]] = True


@jit
def limbs_of(row: Row, share: float) -> tuple[int, int]:
    """The lowest and the highest limb that sums over the row touch, including a share of one label."""
    least, most = np.inf, 0.0
    for x in row:
        if x > 0.0:
            least = min(least, np.float64(x))
        most = max(most, np.float64(x))
    return (limb_of(share * least if share > 0.0 else least), limb_of(most) + 3) if most > 0.0 else (2, 2)


@jit
def _sum_after(row: Row, order: Indices, last: int, placed: Masks, total: Limbs) -> None:
    """Set `total` to the exact mass of the labels that are not in order[: last + 1]."""
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
def _restart(row: Row, share: float, order: Indices, last: int, tau: float, total: Limbs, rests: Floats) -> int:
    """A position at or before `last` whose score is certainly its own -rest and at most tau; 0 if there is none.

    Fills `rests` from there to `last`; `total` holds the mass after `last`. Each score before position k is at most
    -rest of position k - 1 (or the -1 of a first label) plus k steps of at most 2^-52 rest.
    """
    K = len(row)
    low, high = limbs_of(row, share)
    most = 1.0 if share == 1.0 else np.inf
    k = last
    rests[k] = with_label(total, np.float64(row[order[k]]), share, low, high)
    while k > 0:
        rest = rests[k]
        before = with_label(total, np.float64(row[order[k - 1]]), share, low, high)
        unaffected = rest == 0.0 or min(before, most) - rest > (K + 4) * (2.0**-52 * before + 5e-324)
        if unaffected and mass_score(rest, k + 1, share) <= tau:
            return k
        k -= 1
        rests[k] = before
    return 0
