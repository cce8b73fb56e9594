"""Ranks among all rows so far, as p-values that are independent and uniform if the rows are exchangeable.

Scores are compared as pairs (s, V) with V random, so that no two are equal. Some of the n calibration scores, at ranks
fixed in advance, are *edges*; the gaps between them hold c_0, c_1, ... other scores. If all rows are exchangeable, the
N + 1 places among N earlier rows are equally likely for the next one: it falls into gap j with probability
(c_j + 1) / (N + 1), whatever came before. With U uniform, and J the gap of the next row,

    p = (sum over j > J of (c_j + 1) + U (c_J + 1)) / (N + 1)

is uniform and independent of all p before it. Then c_J grows by one. A miss is a score above the threshold, which is an
edge: given the past, its probability is the share of the places above that edge,
(n + 1 - k + misses so far) / (n + 1 + rows so far) for the k-th smallest of n. A test against the fixed calibration
scores, or of "misses <= alpha", would reject half of all good predictors: those whose coverage is below 1 - alpha by
the chance of the calibration draw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from udcp_dsl.prediction.calibrate.calibration_scores import MONITOR_PARTS, RankTable, fixed_ranks
from udcp_dsl.prediction.monitor.betting import Bools, Floats, Ints

_BLOCK = 256  # rows per block; all pairs within a block are compared
_EARLIER = np.tri(_BLOCK, k=-1, dtype=bool)  # [i, j]: j came before i
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
        for start in range(0, len(gaps), _BLOCK):
            part = gaps[start : start + _BLOCK]
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
