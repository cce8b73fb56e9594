"""The calibration scores that are kept, for p-values and to test later whether new rows are still exchangeable.

The scores of a stratum are stored as distinct values, each with the number of scores below it and up to it. If there
are many, a file keeps only the scores at fixed ranks, ceil(j (n + 1) / parts) for 0 < j < parts, and at the thresholds.
The ranks are fixed so that the choice says nothing about the other scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate.checked import RESAVE, FloatArray, IntArray, decode, encode, fields
from udcp_dsl.predict.calibrate.rule import Rule
from udcp_dsl.predict.calibrate.thresholds import Calibration, Cell

# A file keeps all scores if the cells have at most this many together; else each is thinned to `_MAX_RANK_PARTS`.
_MAX_WHOLE_SCORES = 20_000
_MAX_RANK_PARTS, _MIN_RANK_PARTS = 10_010, 110

# The number of parts by which a monitor ranks new rows. If a file has more parts, their number is a multiple of it.
MONITOR_PARTS = 1_001


@dataclass(frozen=True, eq=False)
class RankTable:
    """n sorted scores: their distinct `values`, and the numbers of scores `below` and up to (`upto`) each value.

    `rank_parts` is None if all scores are kept; otherwise they are kept at `fixed_ranks(n, rank_parts)` and at `ranks`,
    those of the thresholds. `harm`, if harm is bounded, is the total harm of the scores at or above each value.
    """

    n: int
    values: FloatArray
    below: IntArray
    upto: IntArray
    rank_parts: int | None = None
    ranks: tuple[int, ...] = ()
    harm: FloatArray | None = None

    @classmethod
    def of(cls, scores: FloatArray, harms: FloatArray | None = None) -> RankTable:
        """The table of all `scores`, none left out.

        >>> c = RankTable.of(np.array([3.0, 1.0, 3.0]))
        >>> c.values.tolist(), c.below.tolist(), c.upto.tolist(), c.at_least(np.array([0, 3, 4.0])).tolist()
        ([1.0, 3.0], [0, 1], [1, 3], [3, 2, 0])
        """
        values, counts = np.unique(scores, return_counts=True)
        upto = np.cumsum(counts).astype(np.intp)
        harm = None
        if harms is not None:
            own = np.bincount(np.searchsorted(values, scores), weights=harms, minlength=values.size)
            harm = np.cumsum(own[::-1])[::-1].astype(np.float64)
        return cls(scores.size, values, upto - counts.astype(np.intp), upto, harm=harm)

    def at_least(self, scores: FloatArray) -> IntArray:
        """How many of the n scores are at or above each of `scores`; an upper bound if the table is thinned."""
        at = np.searchsorted(self.values, scores, side="left")
        below = np.append(self.below, self.n)
        upto = np.concatenate([[0], self.upto])
        equal = np.append(self.values, np.nan)[at] == scores
        return np.asarray(self.n - np.where(equal, below[at], upto[at]), dtype=np.intp)

    def harm_at_least(self, scores: FloatArray) -> FloatArray:
        """The total harm of the scores at or above each of `scores`; an upper bound if the table is thinned."""
        assert self.harm is not None
        total = np.append(self.harm, 0.0)
        at = np.searchsorted(self.values, scores, side="left")
        if self.rank_parts is None:
            return np.asarray(total[at])
        equal = np.append(self.values, np.nan)[at] == scores
        return np.asarray(total[np.where(equal, at, np.maximum(at - 1, 0))])

    def at_ranks(self, ranks: IntArray) -> IntArray:
        """The positions in `values` of the scores at these ranks (counted from 1), which must be kept."""
        at = np.searchsorted(self.upto, ranks, side="left")
        assert bool((self.below[at] < ranks).all()), "a rank that was not kept"
        return at

    def thinned(self, parts: int, ranks: Iterable[int]) -> RankTable:
        """The table with only the scores at `fixed_ranks` and at `ranks`; unchanged if it has fewer than `parts`."""
        if self.n < parts:
            return self
        kept = tuple(sorted({k for k in ranks if k <= self.n}))
        at = np.unique(self.at_ranks(np.union1d(fixed_ranks(self.n, parts), kept).astype(np.intp)))
        if self.harm is not None:
            at = np.union1d(at, [0])  # the smallest score: all harm is at or above it
        harm = None if self.harm is None else self.harm[at]
        return RankTable(self.n, self.values[at], self.below[at], self.upto[at], parts, kept, harm)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, from which `from_dict` restores an equal table."""
        return {
            "n": self.n,
            "values": encode(self.values.tolist()),
            "below": self.below.tolist(),
            "upto": self.upto.tolist(),
            "parts": self.rank_parts,
            "ranks": list(self.ranks),
            "harm": None if self.harm is None else encode(self.harm.tolist()),
        }

    @classmethod
    def from_dict(cls, data: object) -> RankTable:
        """Inverse of `as_dict`; refuses data that no scores could have given."""
        d = fields(data, ("n", "values", "below", "upto", "parts", "ranks", "harm"), "calibration scores")
        values = np.array(decode(d["values"], "calibration scores"), dtype=np.float64)
        below, upto, ranks = (_whole_numbers(d[name]) for name in ("below", "upto", "ranks"))
        n, parts = d["n"], d["parts"]
        numbers = all(
            not isinstance(x, bool) and isinstance(x, int) and x >= 0 for x in (n, 0 if parts is None else parts)
        )
        too_many = isinstance(parts, int) and parts > max(_MAX_RANK_PARTS, _MIN_RANK_PARTS)  # work grows with `parts`
        if not numbers or too_many or not below.size == upto.size == values.size:
            raise InputError(f"calibration scores: their counts are damaged; {RESAVE}")
        assert isinstance(n, int)
        assert parts is None or isinstance(parts, int)
        harm = None if d["harm"] is None else np.array(decode(d["harm"], "calibration scores"), dtype=np.float64)
        if harm is not None and (harm.size != values.size or bool((harm[1:] > harm[:-1]).any())):
            raise InputError(f"calibration scores: their harm is damaged; {RESAVE}")
        found = cls(n, values, below, upto, parts, tuple(ranks.tolist()), harm)
        rising = bool((values[1:] > values[:-1]).all()) and bool((below < upto).all())
        ends = bool((below[1:] >= upto[:-1]).all()) and (values.size == 0 or (below[0] >= 0 and upto[-1] <= n))
        whole = parts is not None or int((upto - below).sum()) == n
        if not (rising and ends and whole and found._holds_its_ranks()):
            raise InputError(f"calibration scores: their counts are damaged; {RESAVE}")
        return found

    def _holds_its_ranks(self) -> bool:
        if self.rank_parts is None:
            return True
        ranks = np.union1d(fixed_ranks(self.n, self.rank_parts), np.array(self.ranks, dtype=np.intp)).astype(np.intp)
        at = np.searchsorted(self.upto, ranks, side="left")
        return bool((at < self.upto.size).all()) and bool((self.below[at] < ranks).all())


def fixed_ranks(n: int, parts: int) -> IntArray:
    """ceil(j (n + 1) / parts) for 0 < j < parts, without duplicates: all of 1 .. n if parts is n + 1 or more.

    >>> fixed_ranks(9, 5).tolist(), fixed_ranks(3, 100).tolist()
    ([2, 4, 6, 8], [1, 2, 3])
    """
    if parts > n:
        return np.arange(1, n + 1, dtype=np.intp)
    return np.unique(-(-np.arange(1, parts, dtype=np.intp) * (n + 1) // parts))


def tables_of(scores: FloatArray, parts: Sequence[IntArray | slice], harms: FloatArray | None) -> tuple[RankTable, ...]:
    """The table of each stratum, from the scores of the true labels and the points of each stratum."""
    return tuple(RankTable.of(scores[at], None if harms is None else harms[at]) for at in parts)


def thinned(tables: Sequence[RankTable], ranks: Sequence[Iterable[int]]) -> tuple[RankTable, ...]:
    """The tables to keep in a file: thinned if they are large, but for `ranks`, those of the thresholds of each."""
    if sum(table.n for table in tables) <= _MAX_WHOLE_SCORES:
        return tuple(tables)
    parts = max(_MIN_RANK_PARTS, _MAX_RANK_PARTS // len(tables))
    parts = parts // MONITOR_PARTS * MONITOR_PARTS or parts
    return tuple(table.thinned(parts, own) for table, own in zip(tables, ranks, strict=True))


def _whole_numbers(data: object) -> IntArray:
    if not isinstance(data, list) or not all(isinstance(x, int) and not isinstance(x, bool) for x in data):
        raise InputError(f"calibration scores: expected whole numbers; {RESAVE}")
    return np.array(data, dtype=np.intp)


# p-values: the smallest alpha at which each label is left out.
#
# A label with score s is left out at alpha if and only if s is above the threshold, the k-th smallest of n scores: that
# is, if fewer than n + 1 - k of the scores are at or above s. With c = number of scores at or above s,
#
#     p = (c + 1) / (n + 1)        and the set at any alpha is {y : p(y) > alpha}, exactly, ties included.
#
# With `confidence` g, p is the g-quantile of Beta(c + 1, n - c). If harm is bounded, p is (the sum of the harms at or
# above s + the largest harm of any label) / (n + 1), in units of harm. With weighted points, sums of weights replace
# the counts, and the weight of the new point replaces the 1.


def p_values(
    scores: FloatArray,
    calibration: Calibration,
    kept: tuple[RankTable, ...] | None,
    codes: IntArray,
    *,
    draws: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """The p-values of all labels, (n, K), from their `scores`; `codes` (see `Calibration.cells_of`) name the cells.

    `kept` are the calibration scores of each stratum. `draws` in (0, 1], (n, 1), break ties if sets are randomized.
    `weights` (n,) are those of the rows, if the points had weights. Raises an error if neither calibration scores nor
    weights were kept.

    >>> from udcp_dsl.predict.calibrate import calibrate
    >>> c = calibrate([1.0, 2.0, 2.0], alpha=0.5)
    >>> found = p_values(np.array([[0.0, 2.0, 3.0]]), c, (RankTable.of(np.array([1.0, 2.0, 2.0])),), np.array([[0]]))
    >>> found.tolist()
    [[1.0, 0.75, 0.25]]
    """
    by_label = calibration.label_weights
    if not calibration.weighted and by_label is None and kept is None:
        raise InputError(
            "the predictor was saved by a version before 0.2.0, which kept no calibration scores: calibrate and save "
            "it again to have p-values"
        )
    if calibration.weighted and weights is None:
        raise InputError("calibrated with weights, so new rows need weights, too: give weights=")
    out = np.empty(scores.shape)
    every = np.broadcast_to(codes, scores.shape)
    for code in np.unique(codes).tolist():
        place = every == code
        u, own = (
            None if x is None else np.broadcast_to(x.reshape(-1, 1), scores.shape)[place] for x in (draws, weights)
        )
        if by_label is not None:
            own = np.broadcast_to(by_label, scores.shape)[place]
        if own is not None and (calibration.weighted or by_label is not None):
            out[place] = _of_weighted(scores[place], calibration.all_cells[code], calibration.rule, own)
        elif kept is not None:
            parts = list(kept) if code == len(kept) else [kept[code]]  # the last cell is that of all points
            out[place] = _of_cell(scores[place], parts, calibration.rule, u)
    return out


def _of_cell(scores: FloatArray, parts: list[RankTable], rule: Rule, draws: FloatArray | None) -> FloatArray:
    n = sum(part.n for part in parts)
    if rule.most is not None:
        harm = np.sum([part.harm_at_least(scores) for part in parts], axis=0)
        return np.asarray((harm + float(rule.most)) / (n + 1), dtype=np.float64)
    count = np.sum([part.at_least(scores) for part in parts], axis=0)
    if rule.confidence is not None:
        from scipy.stats import beta  # slow to import

        table = np.append(beta.ppf(float(rule.confidence), np.arange(1, n + 1), np.arange(n, 0, -1)), 1.0)
        return np.asarray(table[count], dtype=np.float64)
    if draws is None:
        return np.asarray((count + 1) / (n + 1), dtype=np.float64)
    above = np.sum([part.at_least(np.nextafter(scores, np.inf)) for part in parts], axis=0)
    above[np.isposinf(scores)] = 0  # the float after infinity is infinity
    return np.asarray((above + draws * (1 + count - above)) / (n + 1), dtype=np.float64)


def _of_weighted(scores: FloatArray, cell: Cell, rule: Rule, weights: FloatArray) -> FloatArray:
    assert cell.scores is not None
    assert cell.weights is not None
    mass = cell.weights if cell.harms is None else cell.weights * cell.harms
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)[np.searchsorted(cell.scores, scores, side="left")]
    most = 1.0 if rule.most is None else float(rule.most)
    return np.asarray((above + weights * most) / (cell.weights.sum() + weights), dtype=np.float64)
