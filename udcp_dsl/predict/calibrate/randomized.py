"""Randomized sets, which cover with probability exactly 1 - alpha, with or without ties.

With n calibration scores s_i and U uniform on (0, 1], one per row, a label with score s is in the set if and only if
(#{s_i > s} + U (1 + #{s_i = s})) / (n + 1) > alpha. The left side never rises with s, so each U gives a threshold.

Draws are U = j / 2^53, j = 1 .. 2^53, and U > r is tested as j > floor(2^53 r) in whole numbers, without rounding. The
probability of U > r is then at least 1 - r, and above it by less than 2^-53.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from udcp_dsl.diagnostics import InputError, worded
from udcp_dsl.predict.calibrate.checked import FloatArray, IntArray
from udcp_dsl.predict.calibrate.thresholds import Calibration

Draws: TypeAlias = NDArray[np.int64]

DRAWS = 2**53  # the number of possible draws
_HASHED = 1024  # rows per block of the hash
_STEPS = 3  # U decides at most a value, the gap above it and the next value (see `_steps`)


def randomized_tau(
    calibration: Calibration, rng: np.random.Generator | Draws, n: int, codes: IntArray | None = None
) -> FloatArray:
    """The random thresholds of n rows: (n, 1), or (n, K) by class; {y : s(x, y) <= tau} are the randomized sets.

    There is one draw per row, whatever the labels, so rows may be processed in blocks. `rng` is a generator, or the
    draws themselves (see `row_draws`); `codes` has the stratum of each row. Refuses a calibration without
    randomize=True. Scores of -inf (from `nonempty`) are not allowed, since a threshold of -inf means the empty set.

    >>> from udcp_dsl.predict.calibrate import calibrate
    >>> c = calibrate([1.0, 2.0, 3.0], alpha=0.5, randomize=True)
    >>> randomized_tau(c, np.random.default_rng(0), 2).tolist()
    [[2.0], [1.9999999999999998]]
    """
    if not calibration.randomize:
        way_out = f"calibrate with {worded('randomize=True', '--randomize')}"
        raise InputError(f"randomized sets need the calibration scores: {way_out}")
    if not isinstance(rng, np.random.Generator | np.ndarray):
        raise InputError(f"rng is {rng!r}: give a numpy.random.Generator, such as numpy.random.default_rng(seed)")
    if codes is not None and len(codes) != n:
        raise InputError(f"codes= has {len(codes)} entries for {n} rows: give the stratum of each row")
    deciding, cells = calibration.cells_of(codes), calibration.all_cells
    cuts = np.full((len(cells), _STEPS), DRAWS, dtype=np.int64)
    taus = np.full((len(cells), _STEPS + 1), np.inf)
    for i, cell in enumerate(cells):
        assert cell.scores is not None
        steps, at = _steps(cell.scores, calibration.alpha)
        cuts[i, : steps.size] = steps
        taus[i, : at.size] = at
    one_a_row = (n, 1)
    draws = rng if isinstance(rng, np.ndarray) else rng.integers(1, DRAWS, size=one_a_row, endpoint=True)
    step = np.zeros(np.broadcast_shapes(deciding.shape, one_a_row), dtype=np.intp)
    for cut in cuts.T:
        step += draws.reshape(one_a_row) > cut[deciding]
    return taus[deciding, step]


def row_draws(rows: NDArray[np.floating[Any]], seed: int | tuple[int, ...], ids: Iterable[str] | None = None) -> Draws:
    """A draw for each row of probabilities that depends only on the seed, the row's values and, if given, its id.

    So a row has the same set in any batch, alone, and after a restart, and different rows have independent draws: their
    float64 bytes, as whole numbers w_j, are hashed to the sum of a_j w_j mod 2^64 with random odd a_j (a universal
    family), and the hash is mixed. A generator that is seeded anew at each call would give every row of a stream of
    single rows the same U, and so no coverage for that seed. Ids enter by the first 64 bits of their SHA-256.

    >>> row_draws(np.array([[0.5, 0.5], [0.9, 0.1]]), seed=0).tolist() == [
    ...     row_draws(np.array([row]), seed=0)[0].tolist() for row in ([0.5, 0.5], [0.9, 0.1])
    ... ]
    True
    """
    odd, offset, odd_of_ids = _hash_of(seed, 2 * rows.shape[1])
    mixed = np.empty(len(rows), dtype=np.uint64)
    for start in range(0, len(rows), _HASHED):
        block = np.ascontiguousarray(rows[start : start + _HASHED], np.float64).view(np.uint32).astype(np.uint64)
        mixed[start : start + _HASHED] = (block * odd).sum(axis=1, dtype=np.uint64) + offset
    if ids is not None:
        digests = b"".join(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8] for name in ids)
        words = np.frombuffer(digests, dtype="<u4").reshape(-1, 2).astype(np.uint64)
        mixed += (words * odd_of_ids).sum(axis=1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.int64)[:, None] + 1


@functools.lru_cache(maxsize=64)
def _hash_of(seed: int | tuple[int, ...], words: int) -> tuple[NDArray[np.uint64], np.uint64, NDArray[np.uint64]]:
    """Random odd factors for the given number of words per row, the offset, and factors for the two words of an id."""
    rng = np.random.default_rng(seed)

    def odd(size: int) -> NDArray[np.uint64]:
        return rng.integers(0, 2**63, size=size, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    return odd(words), rng.integers(0, 2**63, dtype=np.uint64), odd(2)


def randomized_sets(
    scores_matrix: ArrayLike,
    calibration: Calibration,
    rng: np.random.Generator | Draws,
    codes: IntArray | None = None,
) -> NDArray[np.bool_]:
    """The randomized prediction sets of rows of scores, (n, K) bool; `codes` has the stratum of each row.

    Coverage is exactly 1 - alpha (by group or class: within each, however few points it has, unless pooled).

    >>> from udcp_dsl.predict.calibrate import calibrate
    >>> c = calibrate([1.0, 2.0, 3.0], alpha=0.5, randomize=True)
    >>> randomized_sets([[0.5, 1.5, 3.5]], c, np.random.default_rng(0)).tolist()
    [[True, True, False]]
    """
    scores = np.asarray(scores_matrix)
    if scores.dtype.kind not in "iuf" or scores.ndim != 2:
        raise InputError(
            f"scores are an array of {scores.dtype}, shape {scores.shape}: give one row of numbers per instance"
        )
    if calibration.strata.by_class and scores.shape[1] != len(calibration.cells):
        raise InputError(f"scores have {scores.shape[1]} columns, but {len(calibration.cells)} classes were calibrated")
    scores = scores.astype(np.float64, copy=False)  # compared in float64, as the calibration scores were
    bad = ~(scores.min(axis=1, initial=np.inf) > -np.inf)  # NaN or -inf
    if bool(bad.any()):
        row = int(np.argmax(bad))
        raise InputError(f"row {row}: a score is NaN or -inf; fix the oracle, or leave out nonempty, which gives -inf")
    return scores <= randomized_tau(calibration, rng, scores.shape[0], codes)


def _steps(scores: FloatArray, alpha: Fraction) -> tuple[Draws, FloatArray]:
    """The threshold as a step function of the draw, from sorted scores: taus[number of cuts below the draw].

    The score of a label is at one of the distinct calibration values or in a gap around them. In rising order of these
    places, the number of calibration scores above, G, and G + 1 + ties never rise. With t = alpha (n + 1), a label is
    always in if G >= t and never if G + 1 + ties <= t; at the places between, at most three, it is in if and only if
    U > (t - G) / (1 + ties).
    """
    n, t = scores.size, alpha * (scores.size + 1)
    values, counts = np.unique(scores, return_counts=True)
    # Places alternate: the gap below values[0], values[0], the gap below values[1], ..., the gap above all.
    ties = np.zeros(2 * values.size + 1, dtype=np.int64)
    ties[1::2] = counts
    above = n - np.cumsum(ties)
    taus = np.full(ties.size, np.inf)
    taus[1::2] = values
    taus[:-1:2] = np.nextafter(values, -np.inf)
    always = int(np.count_nonzero(above >= math.ceil(t)))
    possible = int(np.count_nonzero(above + 1 + ties > math.floor(t)))
    cuts = [
        math.floor(DRAWS * (t - g) / (1 + e))
        for g, e in zip(above[always:possible].tolist(), ties[always:possible].tolist(), strict=True)
    ]
    first = taus[always - 1] if always else -np.inf
    return np.array(cuts, dtype=np.int64), np.array([first, *taus[always:possible]])
