"""Bins by difficulty: a row's highest probability, by its rank among the n calibration points *and the new point*.

With c_b = floor(b (n + 1) / B), a point of rank r (1 + the number of points strictly below it) is in bin b if
c_{b-1} < r <= c_b. This rule treats all n + 1 points alike, so the points that share the new point's bin are
exchangeable with it; ties stay together. A new point in bin b keeps the ranks of the points below it and raises those
above it by one. Its bin therefore holds the calibration points whose rank among the n is in c_{b-1} + 1 .. c_b - 1 and,
if the new point equals the c_b-th smallest of them (the *edge* above the bin), those of rank c_b too. So a bin has two
cells: inside and on the edge.
"""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
from numpy.typing import ArrayLike

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray, IntArray

LEAST_BINS = 2


def as_bins(bins: object) -> int:
    """Return the number of bins if it is a whole number from 2; raise an error otherwise."""
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < LEAST_BINS:
        raise InputError(f"bins is {bins!r}: give a whole number from {LEAST_BINS}, such as 4")
    return int(bins)


def as_difficulty(difficulty: ArrayLike | None, n: int | None) -> FloatArray:
    """The highest probability of each row, (n,)."""
    values = np.asarray(difficulty)
    if values.dtype.kind not in "iuf" or values.ndim != 1 or (n is not None and values.size != n):
        raise InputError(
            f"difficulty is an array of {values.dtype}, shape {values.shape}: give the highest probability of each row"
        )
    values = np.ascontiguousarray(values, dtype=np.float64)  # it is compared several times
    if bool(np.isnan(values).any()):
        raise InputError(f"row {int(np.argmax(np.isnan(values)))}: the difficulty is NaN")
    return values


def rank_bins(difficulty: FloatArray, bins: int) -> tuple[tuple[float, ...], list[IntArray]]:
    """The edges between the bins, and the points of each cell: inside the first bin, on its edge, inside the next ...

    >>> edges, cells = rank_bins(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), 2)
    >>> edges, [cell.tolist() for cell in cells]
    ((0.3,), [[0, 1], [0, 1, 2], [3, 4]])
    """
    bounds = _bounds(np.sort(difficulty), bins)
    above = {bound: difficulty > bound for bound in chain.from_iterable(bounds)}
    cells = [np.flatnonzero(above[low] > above[high]) for low, *highs in bounds for high in highs]
    return tuple(edge for _, _, edge in bounds[:-1]), cells[:-1]  # nothing is above the last bin


def _bounds(ordered: FloatArray, bins: int) -> list[tuple[float, float, float]]:
    """For each bin of the sorted points, (low, high, edge): points in (low, high] are inside; in (low, edge], inside or
    on the edge."""
    n = ordered.size
    ends = [b * (n + 1) // bins for b in range(bins + 1)]

    def smallest(k: int) -> float:
        """The k-th smallest point; a point has a rank above k if and only if it is larger."""
        return -np.inf if k < 1 else np.inf if k > n else float(ordered[k - 1])

    return [(smallest(low), smallest(high - 1), smallest(high)) for low, high in pairwise(ends)]


def bin_cells(difficulty: FloatArray, edges: tuple[float, ...]) -> IntArray:
    """The index of the cell of `rank_bins` that each new point belongs to."""
    # For few edges, comparisons are faster than a search per point; small integers make them much faster.
    cells = np.zeros(difficulty.shape, dtype=np.int8 if len(edges) < 64 else np.intp)
    for edge, before in zip(edges, (None, *edges), strict=False):
        above = difficulty > edge
        cells += above
        cells += above if edge == before else difficulty >= edge  # a repeated edge counts once
    return cells.astype(np.intp)


def bin_names(edges: tuple[float, ...]) -> tuple[str, ...]:
    """The names of the bins, the hardest first.

    >>> bin_names((0.5, 0.75))
    ('highest p up to 0.5', 'above 0.5 up to 0.75', 'above 0.75')
    >>> bin_names((0.5, 1.0, 1.0))
    ('highest p up to 0.5', 'above 0.5 up to 1', 'bin 3, empty: ties at 1', 'above 1')
    """
    words, names = _distinct_words(edges), list[str]()
    for b, (low, high) in enumerate(pairwise((-np.inf, *edges))):
        if low == high:
            names.append(f"bin {b + 1}, empty: " + (f"ties at {words[b]}" if np.isfinite(high) else "too few rows"))
        else:
            names.append(f"above {words[b - 1]} up to {words[b]}" if low > -np.inf else f"highest p up to {words[b]}")
    return *names, f"above {words[-1]}"


def _distinct_words(edges: tuple[float, ...]) -> list[str]:
    """The edges in four significant digits, or as many as distinguish those that differ."""
    written = ([f"{edge:.{digits}g}" for edge in edges] for digits in range(4, 18))
    return next(words for words in written if len(set(words)) == len(set(edges)))


def bins_needed(bins: int, points: int) -> int:
    """The fewest rows that leave at least `points` inside every bin, if there are no ties.

    >>> bins_needed(4, 9)
    39
    """
    return bins * (points + 1) - 1
