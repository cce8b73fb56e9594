"""Scores by the mass that remains, along falling p: the kernels of `base` and `raps`.

The k-th label of a row (order: falling p, ties by lower index) leaves rest_k, the exact sum of the probabilities after
it and of its row's share of its own (see `remaining`), rounded once to float64, and has the score

    s_k = lam * max(k - free, 0) - rest_k,      with k * 1e-300 in place of -rest_k where nothing remains,

and -1 in place of -rest_1 where the share is 1.

The exact sum stands in for the float64 sum from the small end, of which it is the ideal: it has the same resolution
down to 2^-1074, and since it does not depend on the order of summation, `score_of` sorts nothing, and `sets` may find
the last label of a set by bisection. One thread, K = 1,000, float32, microseconds a row: `score_of` 4 to 5 and `sets`
3 to 4; sorting the values and summing in order takes 5 for each where numpy sorts with AVX-512, and np.argsort 11.

Scores rise strictly along the order, so that none of it is lost (s_k >= nextafter(s_{k-1}) never has to be enforced):
- lam = 0: with a share w, rest_{k-1} - rest_k = w p_{k-1} + (1 - w) p_k >= p_k, and rest_k <= (K - k + 1) p_k since no
  label after k has more than p_k; so rest falls by a factor of 1 + 1/K at least, far more than the 2^-53 of each of two
  roundings. Ranks times 1e-300 are distinct. Only a row that sums to more than 1 may have a second label, and more,
  that leave 1 or above: by `mass_score` these follow the first in steps of 2^-53, until the rest is below.
- lam >= 1e-9: two neighbours beyond `free` differ by at least lam / 2 before the last rounding, and that moves neither
  by more than 2^-52 max(K, lam K).
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import Floats, Indices, Masks, Probabilities, Row
from udcp_solvers.numeric.compiled import jit, jit_any_order, over_rows
from udcp_solvers.numeric.exact_sum import LIMBS, Limbs, add, limb_of, rounded
from udcp_solvers.numeric.falling import bits_of, falling_order, order_scratch, value_of
from udcp_solvers.numeric.filling import put
from udcp_solvers.numeric.remaining import mass_score, with_label


def mass_scores(P: Probabilities, shares: Floats, lam: float, free: int) -> Floats:
    """Every label's score."""
    out = np.empty(P.shape)
    over_rows(_scores, *P.shape, P, shares, lam, free, out)
    return out


def mass_score_of(P: Probabilities, shares: Floats, y: Indices, lam: float, free: int) -> Floats:
    """The scores of the labels y."""
    out = np.empty(len(P))
    over_rows(_score_of, *P.shape, P, shares, y, lam, free, out)
    return out


def mass_sets(P: Probabilities, shares: Floats, tau: Floats, lam: float, free: int) -> Masks:
    """The sets at thresholds tau, one a row."""
    out = np.empty(P.shape, dtype=np.bool_)
    over_rows(_sets, *P.shape, P, shares, np.ascontiguousarray(tau), lam, free, out)
    return out


@jit
def _score(rest: float, rank: int, share: float, lam: float, free: int) -> float:
    return lam * max(rank - free, 0) + mass_score(rest, rank, share)


@jit
def _scores(start: int, stop: int, P: Probabilities, shares: Floats, lam: float, free: int, out: Floats) -> None:
    K = P.shape[1]
    scratch = order_scratch(K)
    total = np.zeros(LIMBS, np.int64)
    for i in range(start, stop):
        row, share = P[i], shares[i]
        order = falling_order(row, scratch)
        total[:] = 0
        low, high = LIMBS, 2
        for rank in range(K, 0, -1):
            y = order[rank - 1]
            x = np.float64(row[y])
            rest = 0.0
            if x > 0.0:
                # The order rises from here, so the first value touches the lowest limb and the last the highest.
                low = min(low, limb_of(share * x if share > 0.0 else x))
                high = limb_of(x) + 3
                rest = with_label(total, x, share, low, high)
            out[i, y] = _score(rest, rank, share, lam, free)


@jit
def _score_of(
    start: int, stop: int, P: Probabilities, shares: Floats, y: Indices, lam: float, free: int, out: Floats
) -> None:
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
        add(total, shares[i] * p, 1)
        out[i] = _score(rounded(total, 2, LIMBS - 1), rank, shares[i], lam, free)


@jit
def _sets(
    start: int, stop: int, P: Probabilities, shares: Floats, tau: Floats, lam: float, free: int, out: Masks
) -> None:
    K = P.shape[1]
    total = np.zeros(LIMBS, np.int64)
    for i in range(start, stop):
        row = P[i]
        value, ties = _cut(row, shares[i], tau[i], lam, free, total)
        for j in range(K):
            out[i, j] = row[j] > value
        if ties > 0:
            for j in range(K):
                if row[j] == value and ties > 0:
                    out[i, j] = True
                    ties -= 1


@jit
def _cut(row: Row, share: float, tau: float, lam: float, free: int, total: Limbs) -> tuple[float, int]:
    """The set at tau: the labels with p above the first number, and as many of those at it as the second says.

    Bisection over values v: the last label with p >= v is in iff its score is at most tau. The scores that steer it
    come from sums in no fixed order; where one of the last two is too near tau to be sure, or labels tie, `_exact_cut`
    decides.
    """
    K = len(row)
    if _score(share * np.float64(row.min()), K, share, lam, free) <= tau:
        return -1.0, 0
    # The last label with p >= low is out, all labels with p >= high are in; both are certain at the start.
    low, high = 0, bits_of(row, row.max()) + 1
    below_low, below_high = 0, K
    sure_low, sure_high = True, True
    while high - low > 1 and below_high - below_low > 1:
        middle = (low + high) >> 1
        value = value_of(row, middle)
        rem, below = _remaining_below(row, value)
        rank = K - below
        rest = rem + share * _least_from(row, value) if share > 0.0 else rem
        score = _score(rest, rank, share, lam, free)
        # K terms in any order: an error of at most K 2^-53 rest; and that of the last additions.
        sure = abs(score - tau) > (K + 8) * 2.0**-52 * (rest + lam * max(rank - free, 0))
        if score <= tau:
            high, below_high, sure_high = middle, below, sure
        else:
            low, below_low, sure_low = middle, below, sure
    if sure_low and sure_high and below_high - below_low == 1:
        return value_of(row, high - 1), 0
    return _exact_cut(row, share, value_of(row, high), tau, lam, free, total)


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


@jit_any_order
def _least_from(row: Row, value: float) -> float:
    """The p of the last label with p >= value; there is one."""
    least = 2.0
    for j in range(len(row)):
        x = np.float64(row[j])
        least = min(least, x if x >= value else 2.0)
    return least


@jit
def _exact_cut(
    row: Row, share: float, above: float, tau: float, lam: float, free: int, total: Limbs
) -> tuple[float, int]:
    """`_cut` by exact sums, class after class of equal p, starting at the highest class below `above`."""
    K = len(row)
    trial = np.empty_like(total)
    value = _nearest_class(row, above, False)
    while True:
        total[:] = 0
        rank = K
        above = _nearest_class(row, value, True)
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
            put(trial, total)
            add(trial, value, middle)
            if rank > middle:  # the last label of the set
                add(trial, share * (value if middle < ties else above), 1)
            if rank == middle or _score(rounded(trial, 2, LIMBS - 1), rank - middle, share, lam, free) <= tau:
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
