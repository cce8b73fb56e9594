"""Scores by the remaining mass, along falling p: the kernels of `base` and `raps`.

For the k-th label of a row (by falling p, ties by lower index), rest_k is the exact sum of the probabilities after it
and of a share of its own (see `remaining`), rounded once to float64. Its score is

    s_k = lam * max(k - free, 0) - rest_k,      with k * 1e-300 in place of -rest_k where nothing remains,

and -1 in place of -rest_1 where the share is 1.

The exact sum is at least as precise as a float64 sum from the smallest term up, and resolves down to 2^-1074. Since it
does not depend on the order of summation, `score_of` needs no sort, and `sets` finds the last label of a set by
bisection. Microseconds per row in one thread, for K = 1,000 and float32: `score_of` 4 to 5, `sets` 3 to 4; sorting the
values and summing in order takes 5 for each if numpy sorts with AVX-512, and np.argsort takes 11.

Scores rise strictly along the order, so s_k >= nextafter(s_{k-1}) never has to be enforced:
- lam = 0: with a share w, rest_{k-1} - rest_k = w p_{k-1} + (1 - w) p_k >= p_k, and rest_k <= (K - k + 1) p_k since no
  label after k has more than p_k; so rest falls by a factor of 1 + 1/K at least, far more than the 2^-53 of each of two
  roundings. Ranks times 1e-300 are distinct. With share 1, a row that sums to more than 1 may have further labels with
  a rest of 1 or more, although the first label scores -1: `mass_score` then makes scores rise from -1 in steps of
  2^-53, until -rest is higher.
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
    """The sets at thresholds tau, one per row."""
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
                # Values rise in this loop, so the first one touches the lowest limb and the latest one the highest.
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
    """The set at tau as (value, ties): all labels with p > value, and the first `ties` labels with p = value.

    Bisection over values v: the last label with p >= v is in if and only if its score is at most tau. These scores come
    from sums in any order; if one of the last two is too close to tau to be certain, or if labels tie, `_exact_cut`
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
        # A sum of K terms in any order has an error of at most K 2^-53 rest; 8 more cover the last additions.
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
    """The mass (up to rounding) and the number of the labels with p < value."""
    mass = 0.0
    below = 0
    for j in range(len(row)):
        x = np.float64(row[j])
        mass += x if x < value else 0.0
        below += 1 if x < value else 0
    return mass, below


@jit_any_order
def _least_from(row: Row, value: float) -> float:
    """The p of the last label with p >= value; there must be one."""
    least = 2.0
    for j in range(len(row)):
        x = np.float64(row[j])
        least = min(least, x if x >= value else 2.0)
    return least


@jit
def _exact_cut(
    row: Row, share: float, above: float, tau: float, lam: float, free: int, total: Limbs
) -> tuple[float, int]:
    """`_cut` by exact sums: one class of equal p after another, from the highest class below `above`."""
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
        # Bisect how many of the last labels of this class to leave out: the set fits without `many`, and not without
        # `few`.
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
