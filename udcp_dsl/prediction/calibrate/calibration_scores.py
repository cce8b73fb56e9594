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
from udcp_dsl.prediction.calibrate.checked_arrays import FloatArray, IntArray
from udcp_dsl.prediction.calibrate.plain import RESAVE, decode, encode, fields

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
