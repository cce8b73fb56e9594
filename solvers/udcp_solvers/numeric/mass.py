"""Scores by the mass that remains, along falling p: the kernels of `base` and `raps`.

The k-th label of a row (order: falling p, ties by lower index) has rem_k, the exact sum of the probabilities after it,
rounded once to float64, and the score

    s_k = lam * max(k - free, 0) - rem_k,      with k * 1e-300 in place of -rem_k where nothing remains.

The exact sum stands in for the float64 sum from the small end, of which it is the ideal: it has the same resolution
down to 2^-1074, and since it does not depend on the order of summation, `score_of` sorts nothing, and `sets` may find
the last label of a set by bisection. One thread, K = 1,000, float32, microseconds a row: `score_of` 4 to 5 and `sets`
3 to 4; sorting the values and summing in order takes 5 for each where numpy sorts with AVX-512, and np.argsort 11.

Scores rise strictly along the order, so that none of it is lost (s_k >= nextafter(s_{k-1}) never has to be enforced):
- lam = 0: every one of the K - k labels after k has at most p_k, so rem_k <= (K - k) p_k, and rem_{k-1} = rem_k + p_k
  is larger by a factor of 1 + 1/K, far more than the 2^-53 of one rounding. Ranks times 1e-300 are distinct.
- lam >= 1e-9: two neighbours beyond `free` differ by at least lam / 2 before the last rounding, and that moves neither
  by more than 2^-52 max(K, lam K).
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Indices, Masks, Probabilities, Row
from udcp_solvers.numeric.compiled import jit, jit_any_order, over_rows
from udcp_solvers.numeric.exact_sum import LIMBS, Limbs, add, limb_of, rounded
from udcp_solvers.numeric.falling import bits_of, falling_order, order_scratch, value_of


def mass_scores(P: Probabilities, lam: float, free: int) -> Floats:
    """Every label's score."""
    out = np.empty(P.shape)
    over_rows(_scores, *P.shape, P, lam, free, out)
    return out


def mass_score_of(P: Probabilities, y: Indices, lam: float, free: int) -> Floats:
    """The scores of the labels y."""
    out = np.empty(len(P))
    over_rows(_score_of, *P.shape, P, y, lam, free, out)
    return out


def mass_sets(P: Probabilities, tau: Floats, lam: float, free: int) -> Masks:
    """The sets at thresholds tau, one a row."""
    out = np.empty(P.shape, dtype=np.bool_)
    over_rows(_sets, *P.shape, P, np.ascontiguousarray(tau), lam, free, out)
    return out


@jit
def _score(rem: float, rank: int, lam: float, free: int) -> float:
    penalty = lam * max(rank - free, 0)
    return penalty - rem if rem > 0.0 else penalty + rank * 1e-300


@jit
def _scores(start: int, stop: int, P: Probabilities, lam: float, free: int, out: Floats) -> None:
    K = P.shape[1]
    scratch = order_scratch(K)
    total = np.zeros(LIMBS, np.int64)
    for i in range(start, stop):
        row = P[i]
        order = falling_order(row, scratch)
        total[:] = 0
        low = LIMBS
        rem = 0.0
        for rank in range(K, 0, -1):
            y = order[rank - 1]
            out[i, y] = _score(rem, rank, lam, free)
            x = np.float64(row[y])
            if x > 0.0:
                # The order rises from here, so the first value touches the lowest limb and the last the highest.
                low = min(low, limb_of(x))
                add(total, x, 1)
                rem = rounded(total, low, limb_of(x) + 3)


@jit
def _score_of(start: int, stop: int, P: Probabilities, y: Indices, lam: float, free: int, out: Floats) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    for i in range(start, stop):
        row = P[i]
        label = y[i]
        p = np.float64(row[label])
        total[:] = 0
        rank = K
        for j in range(K):
            x = np.float64(row[j])
            if x < p or (x == p and j > label):
                add(total, x, 1)
                rank -= 1
        out[i] = _score(rounded(total, 2, LIMBS - 1), rank, lam, free)


@jit
def _sets(start: int, stop: int, P: Probabilities, tau: Floats, lam: float, free: int, out: Masks) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    for i in range(start, stop):
        row = P[i]
        value, ties = _cut(row, tau[i], lam, free, total)
        for j in range(K):
            out[i, j] = row[j] > value
        if ties > 0:
            for j in range(K):
                if row[j] == value and ties > 0:
                    out[i, j] = True
                    ties -= 1


@jit
def _cut(row: Row, tau: float, lam: float, free: int, total: Limbs) -> tuple[float, int]:
    """The set at tau: the labels with p above the first number, and as many of those at it as the second says.

    Bisection over values v: the last label with p >= v is in iff its score is at most tau. The scores that steer it
    come from sums in no fixed order; where one of the last two is too near tau to be sure, or labels tie, `_exact_cut`
    decides.
    """
    K = len(row)
    if _score(0.0, K, lam, free) <= tau:
        return -1.0, 0
    # The last label with p >= low is out, all labels with p >= high are in; both are certain at the start.
    low, high = 0, bits_of(row, row.max()) + 1
    below_low, below_high = 0, K
    sure_low, sure_high = True, True
    while high - low > 1 and below_high - below_low > 1:
        middle = (low + high) >> 1
        rem, below = _remaining_below(row, value_of(row, middle))
        rank = K - below
        score = _score(rem, rank, lam, free)
        # K terms in any order: an error of at most K 2^-53 rem; and that of the last addition.
        sure = abs(score - tau) > (K + 8) * 2.0**-52 * (rem + lam * max(rank - free, 0))
        if score <= tau:
            high, below_high, sure_high = middle, below, sure
        else:
            low, below_low, sure_low = middle, below, sure
    if sure_low and sure_high and below_high - below_low == 1:
        return value_of(row, high - 1), 0
    return _exact_cut(row, value_of(row, high), tau, lam, free, total)


@jit_any_order
def _remaining_below(row: Row, value: float) -> tuple[float, int]:
    """The mass and the number of the labels with p < value; the mass nearly."""
    mass = 0.0
    below = 0
    for j in range(len(row)):
        x = np.float64(row[j])
        mass += x if x < value else 0.0
        below += 1 if x < value else 0
    return mass, below


@jit
def _exact_cut(row: Row, above: float, tau: float, lam: float, free: int, total: Limbs) -> tuple[float, int]:
    """`_cut` by exact sums, class after class of equal p, starting at the highest class below `above`."""
    K = len(row)
    trial = np.empty_like(total)
    value = _nearest_class(row, above, False)
    while True:
        total[:] = 0
        rank = K
        ties = 0
        for j in range(K):
            x = np.float64(row[j])
            if x < value:
                add(total, x, 1)
                rank -= 1
            elif x == value:
                ties += 1
        # Leave out the last `few` labels of this class: the set fits with `many`, and not with `few`.
        few, many = -1, ties + 1
        while many - few > 1:
            middle = (few + many) >> 1
            trial[:] = total
            add(trial, value, middle)
            if rank == middle or _score(rounded(trial, 2, LIMBS - 1), rank - middle, lam, free) <= tau:
                many = middle
            else:
                few = middle
        if 0 < many <= ties:
            return value, ties - many
        value = _nearest_class(row, value, many > ties)


@jit
def _nearest_class(row: Row, value: float, upwards: bool) -> float:
    """The least p above the value, or the greatest below it."""
    best = np.inf if upwards else -np.inf
    for j in range(len(row)):
        x = np.float64(row[j])
        if (value < x < best) if upwards else (best < x < value):
            best = x
    return best
