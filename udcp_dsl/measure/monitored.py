"""A monitored sequence of rows (all rows, or a group, class or bin): its bets, its alarm, and its course for plots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.measure.betting import MISS_BETS, RANK_BETS, BetState, Bools, Floats, Ints, miss_bets, rank_bets
from udcp_dsl.predict.calibrate.checked import decode, encode, fields
from udcp_dsl.predict.calibrate.ranks import MONITOR_PARTS, RankTable, fixed_ranks
from udcp_dsl.rows.columns import some_rows_of

Watch: TypeAlias = Literal["both", "misses", "ranks"]

_BLOCK = 1 << 14  # rows per block of bets
_MAX_POINTS = 1000  # the maximum number of points of a course

NOT_OURS = "the file is not a saved monitor, or was changed: begin a new one"


@dataclass(frozen=True)
class WatchedRows:
    """What the bets need of each row: its number among all rows watched, its p-value, whether its score is
    `above_threshold` (ties in random order), the probability of that given the past (`chance`, NaN if unknown), and
    whether its set `missed` the truth."""

    rows: Ints
    p: Floats
    above_threshold: Bools
    chance: Floats
    missed: Bools

    def take(self, which: Ints) -> WatchedRows:
        """The rows at these positions."""
        return some_rows_of(self, which)


@dataclass(frozen=True)
class Alarm:
    """An alarm of a `Monitor`: which rows, when, and what was seen by then.

    Attributes
    ----------
    where : str or None
        The group, class or bin; None for all rows.
    row : int
        Number of rows watched when it was raised.
    evidence : float
        Evidence so far, as a multiple of the initial stake; an alarm is raised at 1 / level of the stream.
    of_misses, of_ranks : float
        The two halves of the evidence: too many missed truths, and scores that rank differently.
    seen, missed : int
        Number of rows of this stream, and of missed truths among them.
    expected : float or None
        Number of misses expected for rows like those of calibration.
    id : str or None
        Id of the row, if rows have ids.
    """

    where: str | None
    row: int
    evidence: float
    of_misses: float
    of_ranks: float
    seen: int
    missed: int
    expected: float | None
    id: str | None = None

    @property
    def why(self) -> str:
        """The larger half of the evidence, "misses" or "ranks"."""
        return "misses" if self.of_misses >= self.of_ranks else "ranks"

    def __str__(self) -> str:
        named = "" if self.id is None else f" (id {self.id})"
        rows = "all rows" if self.where is None else self.where
        found = {
            "misses": "more true labels are missed than among rows like the calibration rows",
            "ranks": "scores do not rank among the calibration scores as they should",
        }[self.why]
        return (
            f"row {self.row:,}{named}, {rows}: {found} ({self.missed:,} of {self.seen:,} missed"
            f"{'' if self.expected is None else f', {self.expected:.1f} expected'}; "
            f"evidence {self.evidence:.3g} to 1)"
        )

    def as_dict(self) -> dict[str, Any]:
        """The alarm as plain data for JSON.

        Returns
        -------
        dict
            One entry per attribute.
        """
        return {**vars(self), "why": self.why}


@dataclass(frozen=True)
class Course:
    """The evidence over time, at every `every`-th row of the stream; at most 1,000 points."""

    every: int = 1
    rows: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # rows watched so far, of all streams
    seen: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # rows of this stream so far
    missed: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    log_evidence: Floats = field(default_factory=lambda: np.empty(0))

    def after(self, rows: Ints, seen: Ints, missed: Ints, log_evidence: Floats) -> Course:
        """The course with more rows; while there are too many points, every second one is dropped."""
        every = self.every
        before, new = (self.rows, self.seen, self.missed, self.log_evidence), (rows, seen, missed, log_evidence)
        columns = [np.concatenate([old, more[seen % every == 0]]) for old, more in zip(before, new, strict=True)]
        while len(columns[1]) > _MAX_POINTS:
            every *= 2
            kept = columns[1] % every == 0
            columns = [column[kept] for column in columns]
        return Course(every, *columns)


@dataclass(frozen=True)
class Stream:
    """The state of one stream; `name` is None for all rows, and `level` is its share of the monitor's level."""

    name: str | None
    level: float
    watch: Watch
    misses: BetState = field(default_factory=lambda: BetState.empty(MISS_BETS))
    ranks: BetState = field(default_factory=lambda: BetState.empty(RANK_BETS))
    seen: int = 0
    missed: int = 0
    expected: float = 0.0
    log_evidence: float = 0.0
    log_most: float = 0.0
    alarm: Alarm | None = None
    course: Course = field(default_factory=Course)

    @property
    def evidence(self) -> float:
        """The current wealth of the bets as a multiple of the initial stake; at 1 / level there is an alarm."""
        return _exp(self.log_evidence)

    @property
    def most(self) -> float:
        """The maximum of `evidence` so far."""
        return _exp(self.log_most)

    @property
    def coverage(self) -> float | None:
        """The share of the sets that contained the truth; None before the first row."""
        return None if self.seen == 0 else 1 - self.missed / self.seen

    def after(self, watched: WatchedRows) -> Stream:
        """The stream after more rows."""
        stream = self
        for start in range(0, len(watched.rows), _BLOCK):
            stream = stream._after(watched.take(np.arange(start, min(start + _BLOCK, len(watched.rows)))))
        return stream

    def _after(self, watched: WatchedRows) -> Stream:
        misses, of_misses = self.misses.after(miss_bets(watched.above_threshold, np.nan_to_num(watched.chance)))
        ranks, of_ranks = self.ranks.after(rank_bets(watched.p))
        both = np.logaddexp(of_misses, of_ranks) - math.log(2)
        log_evidence = {"both": both, "misses": of_misses, "ranks": of_ranks}[self.watch]
        seen = self.seen + np.arange(1, len(watched.rows) + 1)
        missed = self.missed + np.cumsum(watched.missed)
        expected = self.expected + np.cumsum(watched.chance)
        alarm = self.alarm
        high = log_evidence >= -math.log(self.level)
        if alarm is None and bool(high.any()):
            at = int(np.argmax(high))
            alarm = Alarm(
                where=self.name,
                row=int(watched.rows[at]),
                evidence=_exp(log_evidence[at]),
                of_misses=_exp(of_misses[at]),
                of_ranks=_exp(of_ranks[at]),
                seen=int(seen[at]),
                missed=int(missed[at]),
                expected=known(expected[at]),
            )
        return replace(
            self,
            misses=misses,
            ranks=ranks,
            seen=int(seen[-1]),
            missed=int(missed[-1]),
            expected=float(expected[-1]),
            log_evidence=float(log_evidence[-1]),
            log_most=max(self.log_most, float(log_evidence.max())),
            alarm=alarm,
            course=self.course.after(watched.rows, seen, missed, log_evidence),
        )

    def as_dict(self) -> dict[str, Any]:
        """A summary as plain data for JSON."""
        return {
            "where": self.name,
            "level": self.level,
            "seen": self.seen,
            "missed": self.missed,
            "expected": known(self.expected),
            "coverage": self.coverage,
            "evidence": self.evidence,
            "most_evidence": self.most,
            "alarm": None if self.alarm is None else self.alarm.as_dict(),
        }

    def state(self) -> dict[str, Any]:
        """The whole state, as plain data from which `restored` continues."""
        course = self.course
        return {
            "misses": encode(self.misses.log_v.tolist()),
            "ranks": encode(self.ranks.log_v.tolist()),
            "seen": self.seen,
            "missed": self.missed,
            "expected": known(self.expected),
            "log_evidence": self.log_evidence,
            "log_most": self.log_most,
            "alarm": None if self.alarm is None else vars(self.alarm),
            "every": course.every,
            "course": [
                course.rows.tolist(),
                course.seen.tolist(),
                course.missed.tolist(),
                encode(course.log_evidence.tolist()),
            ],
        }

    def restored(self, state: object) -> Stream:
        """A copy of this new stream in the saved `state`."""
        d = fields(state, tuple(self.state()), "monitor")
        log_vs = [np.array(decode(d[name], "monitor"), dtype=np.float64) for name in ("misses", "ranks")]
        whole = [d[name] for name in ("seen", "missed", "every")]
        columns = d["course"]
        if (
            [len(log_v) for log_v in log_vs] != [MISS_BETS, RANK_BETS]
            or not all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in whole)
            or not isinstance(columns, list)
            or len({len(column) for column in columns}) != 1
        ):
            raise InputError(NOT_OURS)
        seen, missed, every = (int(str(x)) for x in whole)
        unknown = d["expected"] is None
        numbers = [d["log_evidence"], d["log_most"], 0.0 if unknown else d["expected"]]
        log_evidence, log_most, expected = decode(numbers, "monitor")
        rows, of_rows, misses = (np.array(column, dtype=np.int64) for column in columns[:3])
        course = Course(every, rows, of_rows, misses, np.array(decode(columns[3], "monitor")))
        return replace(
            self,
            misses=BetState(seen, log_vs[0]),
            ranks=BetState(seen, log_vs[1]),
            seen=seen,
            missed=missed,
            expected=math.nan if unknown else expected,
            log_evidence=log_evidence,
            log_most=log_most,
            alarm=Alarm(**d["alarm"]) if isinstance(d["alarm"], Mapping) else None,
            course=course,
        )


def _exp(log: float) -> float:
    return math.exp(min(log, 700.0))


def known(expected: float) -> float | None:
    """None for NaN: the expected number of misses is not known for every predictor."""
    return None if math.isnan(expected) else float(expected)


# Ranks among all rows so far, as p-values that are independent and uniform if the rows are exchangeable.
#
# Scores are compared as pairs (s, V) with V random, so that no two are equal. Some of the n calibration scores, at
# ranks fixed in advance, are *edges*; the gaps between them hold c_0, c_1, ... other scores. If all rows are
# exchangeable, the N + 1 places among N earlier rows are equally likely for the next one: it falls into gap j with
# probability (c_j + 1) / (N + 1), whatever came before. With U uniform, and J the gap of the next row,
#
#     p = (sum over j > J of (c_j + 1) + U (c_J + 1)) / (N + 1)
#
# is uniform and independent of all p before it. Then c_J grows by one. A miss is a score above the threshold, which
# is an edge: given the past, its probability is the share of the places above that edge, (n + 1 - k + misses so far)
# / (n + 1 + rows so far) for the k-th smallest of n. A test against the fixed calibration scores, or of "misses <=
# alpha", would reject half of all good predictors: those whose coverage is below 1 - alpha by the chance of the
# calibration draw.


_ROWS_AT_ONCE = 256  # rows per block; all pairs within a block are compared
_EARLIER = np.tri(_ROWS_AT_ONCE, k=-1, dtype=bool)  # [i, j]: j came before i
_BELOW_ONE = 1 - 2.0**-53


@dataclass(frozen=True)
class Ranks:
    """The scores of one cell so far. `keys` are the edges, rising; `counts[j]` scores lie in the gap below key j.

    `first_miss_gap` is the number of edges up to that of the threshold: gaps from this index on are misses. None
    means that there is no threshold to miss.
    """

    values: Floats  # distinct values of the edges, rising
    keys: Floats  # position among `values`, plus V
    counts: Ints
    first_miss_gap: int | None

    @classmethod
    def among(cls, scores: RankTable, k: int | None, rng: np.random.Generator) -> Ranks:
        """The state before any new row. New rows above the k-th smallest score are misses; `rng` draws the V."""
        n = scores.n
        ranks = fixed_ranks(n, MONITOR_PARTS if scores.rank_parts is None else min(MONITOR_PARTS, scores.rank_parts))
        if k is not None and k <= n:
            ranks = np.union1d(ranks, [k])
        at = scores.at_ranks(ranks)
        values, of = np.unique(scores.values[at], return_inverse=True)
        v = np.empty(len(ranks))
        for first, end in pairwise([*np.searchsorted(of, np.arange(len(values))).tolist(), len(of)]):
            below, upto = int(scores.below[at[first]]), int(scores.upto[at[first]])
            every = np.sort(rng.random(upto - below))  # the V of all equal scores, edges or not
            v[first:end] = every[ranks[first:end] - below - 1]
        ends = np.concatenate([[0], ranks, [n + 1]])
        first_miss_gap = int(np.searchsorted(ranks, k)) + 1 if k is not None and k <= n else None
        return cls(values, of + v, np.diff(ends) - 1, first_miss_gap)

    def places(self, scores: Floats, draws: Floats) -> Ints:
        """The index of the gap of each score; `draws` in (0, 1) are the V of the scores."""
        at = np.searchsorted(self.values, scores)
        tied = self.values[np.minimum(at, len(self.values) - 1)] == scores if len(self.values) else at < 0
        return np.searchsorted(self.keys, at + np.where(tied, draws, 0.0)).astype(np.int64)

    def after(self, gaps: Ints, draws: Floats) -> tuple[Ranks, Floats, Bools, Floats]:
        """The ranks after more rows with these gaps; and for each row p, whether it is a miss, and the probability of a
        miss given the past (NaN if there is no threshold to miss)."""
        counts, m = self.counts.copy(), len(self.counts)
        p, chance = np.empty(len(gaps)), np.full(len(gaps), np.nan)
        for start in range(0, len(gaps), _ROWS_AT_ONCE):
            part = gaps[start : start + _ROWS_AT_ONCE]
            size = len(part)
            upto = np.concatenate([[0], np.cumsum(counts + 1)])  # the number of places below each gap
            before = _EARLIER[:size, :size]
            places = upto[-1] + np.arange(size)
            above = upto[-1] - upto[part + 1] + (before & (part[None, :] > part[:, None])).sum(axis=1)
            own = counts[part] + 1 + (before & (part[None, :] == part[:, None])).sum(axis=1)
            own_places = np.maximum(draws[start : start + size], 2.0**-54) * own
            p[start : start + size] = np.minimum((above + own_places) / places, _BELOW_ONE)
            if self.first_miss_gap is not None:
                missed = part >= self.first_miss_gap
                missing_places = upto[-1] - upto[self.first_miss_gap] + np.cumsum(missed) - missed
                chance[start : start + size] = missing_places / places
            counts += np.bincount(part, minlength=m)
        missed = gaps >= self.first_miss_gap if self.first_miss_gap is not None else np.zeros(len(gaps), dtype=bool)
        return replace(self, counts=counts), p, missed, chance
