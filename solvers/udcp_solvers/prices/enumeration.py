"""Prices under any loss of few labels: all 2^K sets are points (mass left out, cost), and their lower hull is walked.

A set is an integer whose bit y says whether label y is in it. A rough pass over all sets, in a matrix of one row per
instance and one column per set, keeps the few entries that may matter: the *cells*. Their costs and masses left out
have 106 bits, and values that are too close for floats are compared to 106 bits, so ties are ties as in rationals. The
rules break them: more mass, fewer labels, the lexicographically first list of indices. Beside a large mass, 106 bits do
not resolve a label of tiny p; so the masses of labels below 1e-30, below 1e-60 and so on are also kept separately, for
ties.

All of this is numpy on blocks of rows: up to `MOST` labels, nothing has to be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.domain import numbered_sets
from udcp_dsl.per_row import as_rows
from udcp_dsl.threads import over_blocks, thread_count
from udcp_solvers.numeric.arrays import Floats, Ints, Masks, Probabilities
from udcp_solvers.numeric.double_double_arrays import LARGE, Doubles, minus, plus, quotient, times, two_sum
from udcp_solvers.numeric.exact_costs import exact_costs

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# The most labels for which all sets are looked at.
MOST = 12
# Relative tolerances: values farther apart than the first are told apart in the rough pass, than the second by floats;
# values closer than the third are equal to 106 bits.
_ROUGH, _NEAR, _EQUAL = 1e-12, 1e-14, 2.0**-96
# Entries in one matrix of a block of rows: a handful of such matrices takes some megabytes.
_BLOCK = 1 << 17
# The masses of labels with p below this, below its square and so on are also kept separately.
_TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Cells:
    """Sets of several rows, sorted by row: each place has a row, a set, its cost (and what that lacks as a float), its
    rank by the rules, and the mass that it leaves out in that row."""

    rows: Ints
    sets: Ints
    costs: Floats
    costs_low: Floats
    rank: Ints
    left_out: Doubles
    tiny: tuple[Floats, ...] = ()  # the masses of tiny labels left out, the largest first

    def take(self, which: Ints | Masks) -> Cells:
        high, low = self.left_out
        tiny = tuple(x[which] for x in self.tiny)
        costs = self.costs[which], self.costs_low[which]
        return Cells(self.rows[which], self.sets[which], *costs, self.rank[which], (high[which], low[which]), tiny)

    @property
    def exact_costs(self) -> Doubles:
        return self.costs, self.costs_low

    @property
    def masses(self) -> tuple[Floats, ...]:
        """The mass left out, as keys to compare one after another, down to the tiniest label."""
        return (*self.left_out, *self.tiny)

    def first_by(self, *keys: Floats | Ints) -> Ints:
        """For each row, the place that is first by the keys, compared one after another."""
        places, rows = np.arange(len(self.rows)), self.rows
        for key in keys:
            if len(rows) == len(_starts(rows)):  # one place per row
                break
            kept = key[places] == _min_by_row(rows, key[places])
            rows, places = rows[kept], places[kept]
        return places[_starts(rows)]

    def first_by_value(self, values: Doubles, scale: Floats) -> Ints:
        """For each row, the place of least value to 106 bits; of equal values, the first by the rules."""
        least = np.repeat(self.first_by(*values), np.diff(_starts(self.rows), append=len(self.rows)))
        same = values[0] == values[0][least]  # both may be infinite
        more = np.where(same, 0.0, values[0] - np.where(same, 0.0, values[0][least])) + (values[1] - values[1][least])
        (equal,) = np.nonzero(more <= _EQUAL * scale)
        some = self.take(equal)
        return equal[some.first_by(*some.masses, some.rank)]


class Enumeration:
    """Computes the prices of the labels of each row under one loss."""

    def __init__(self, loss: Loss) -> None:
        sets = np.arange(1 << loss.K, dtype=np.int64)
        self.members = numbered_sets(sets, loss.K)
        # (1, sets), or (n, sets) if costs differ by row; and what they lack.
        high, low = (as_rows(x).astype(np.float64) for x in exact_costs(loss, self.members))
        self.costs: Floats = high
        self._costs_low: Floats = np.broadcast_to(low, high.shape)
        # Rank sets by size, then by their lists of indices: of two sets of one size, the first holds the first label in
        # which they differ. So its bits, read from label 0 on, make the larger number.
        as_read = self.members @ (1 << np.arange(loss.K)[::-1])
        self._rank = np.empty(len(sets), dtype=np.int64)
        self._rank[np.lexsort((-as_read, self.members.sum(axis=1)))] = sets

    @staticmethod
    def of(loss: Loss) -> Callable[[], Enumeration] | None:
        """A constructor of the prices; None if there are too many sets."""
        return partial(Enumeration, loss) if loss.K <= MOST else None

    def take(self, rows: Ints) -> Enumeration:
        """The prices of some of the rows, for costs that differ by row."""
        other = copy(self)
        if len(self.costs) > 1:
            other.costs, other._costs_low = self.costs[rows], self._costs_low[rows]
        return other

    def scores(self, P: Probabilities, anchor: Floats | None = None, gaps: Floats | None = None) -> Floats:
        """Every label's price; `anchor` (n,), below 0 for none. `gaps` is left unchanged: all prices are exact."""
        out = np.empty(P.shape)

        def block(rows: slice) -> None:
            p, costs = self._of(P, rows)
            out[rows] = self._walk(p, costs)
            if anchor is not None:
                self._anchor(p, costs, anchor[rows], out[rows])

        self._over(block, len(P))
        return out

    def best(self, P: Probabilities, mu: Floats, gaps: Floats | None = None) -> Masks:
        """The set of least L - mu p of each row; `mu` (n,)."""
        out = np.empty(P.shape, dtype=np.bool_)

        def block(rows: slice) -> None:
            out[rows] = self.members[self._best(*self._of(P, rows), mu[rows])]

        self._over(block, len(P))
        return out

    def _of(self, P: Probabilities, rows: slice) -> tuple[Floats, Doubles]:
        """The probabilities of some rows, and the costs of all sets in each of them."""
        p, taken = np.asarray(P[rows], dtype=np.float64), slice(None) if len(self.costs) == 1 else rows
        high, low = (np.broadcast_to(x[taken], (len(p), x.shape[1])) for x in (self.costs, self._costs_low))
        return p, (high, low)

    def _over(self, block: Callable[[slice], None], n: int) -> None:
        """Run `block` on blocks of rows, in threads: numpy releases the interpreter lock."""
        if len(self.costs) not in (1, n):
            raise ValueError(f"costs of {len(self.costs)} rows for {n} rows")
        step = max(1, _BLOCK // len(self._rank))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, step):
                block(slice(first, min(first + step, stop)))

        over_blocks(work, n, n * len(self._rank), thread_count())

    def _cells(self, p: Floats, costs: Doubles, where: Masks) -> Cells:
        """The cells where the matrix (n, sets) is true, with the masses that their sets leave out."""
        rows, sets = np.nonzero(where)
        left_out, tiny, most = self._left_out(p, rows, sets), list[Floats](), _TINY
        while ((p > 0.0) & (p < most)).any():
            tiny += self._left_out(np.where(p < most, p, 0.0), rows, sets)
            most *= _TINY
        high, low = costs
        return Cells(rows, sets, high[rows, sets], low[rows, sets], self._rank[sets], left_out, tuple(tiny))

    def _left_out(self, p: Floats, rows: Ints, sets: Ints) -> Doubles:
        high, low = np.zeros(len(rows)), np.zeros(len(rows))
        for y in range(p.shape[1]):
            s, e = two_sum(high, np.where(self.members[sets, y], 0.0, p[rows, y]))
            high, low = two_sum(s, e + low)
        return high, low

    def _best(self, p: Floats, costs: Doubles, mu: Floats) -> Ints:
        """The best set of each row at its price: the least cost + mu * mass left out."""
        worth = costs[0] + mu[:, None] * _rough_masses(p)
        scale = _largest(costs[0]) + mu
        cells = self._cells(p, costs, worth <= worth.min(axis=1, keepdims=True) + _ROUGH * scale[:, None])
        price, zeros = mu[cells.rows], np.zeros(len(cells.rows))
        with np.errstate(over="ignore", invalid="ignore"):
            high, low = plus(times((price, zeros), cells.left_out), cells.exact_costs)
        exact = np.isfinite(high) & np.isfinite(low)  # false at prices near the largest float
        values = np.where(exact, high, worth[cells.rows, cells.sets]), np.where(exact, low, 0.0)
        return cells.sets[cells.first_by_value(values, scale[cells.rows])]

    def _walk(self, p: Floats, costs: Doubles, allowed: Masks | None = None, start: Ints | None = None) -> Floats:
        """The price of every label along the hull of the allowed sets (n, sets); infinite if it is never bought.

        The walk begins at the cheapest set or at the set `start`, whose labels have price 0.
        """
        rough, sets = _rough_masses(p), np.arange(len(self._rank))
        every = np.broadcast_to(np.True_, costs[0].shape) if allowed is None else allowed
        at = self._cheapest(p, costs, every) if start is None else self._cells(p, costs, sets == start[:, None])
        last = self._heaviest(p, costs, rough, every)
        prices = np.where(self.members[at.sets], 0.0, np.inf)
        chord = _chord(at, last)
        with np.errstate(over="ignore", invalid="ignore"):
            line = at.costs + chord * rough[np.arange(len(p)), at.sets] + _ROUGH * (_largest(costs[0]) + np.abs(chord))
            below = (costs[0] + chord[:, None] * rough <= line[:, None]) | (chord > LARGE)[:, None]
        cells = self._cells(p, costs, every & below)
        while True:
            cells = cells.take(_below_chord(cells, at, last))
            if not len(cells.rows):
                return prices
            following, price = _next(cells, at)
            on = following.rows
            at = _replaced(at, following)
            prices[on] = np.minimum(prices[on], np.where(self.members[following.sets], price[:, None], np.inf))

    def _cheapest(self, p: Floats, costs: Doubles, allowed: Masks) -> Cells:
        """The best set of each row at price 0: the heaviest of the cheapest allowed sets."""
        paid, scale = np.where(allowed, costs[0], np.inf), _largest(costs[0])
        cells = self._cells(p, costs, paid <= paid.min(axis=1, keepdims=True) + _ROUGH * scale[:, None])
        return cells.take(cells.first_by_value(cells.exact_costs, scale[cells.rows]))

    def _heaviest(self, p: Floats, costs: Doubles, rough: Floats, allowed: Masks) -> Cells:
        """The best set of each row at an infinite price: the cheapest of the heaviest allowed sets."""
        rough = np.where(allowed, rough, np.inf)
        cells = self._cells(p, costs, rough <= rough.min(axis=1, keepdims=True) + _ROUGH)
        return cells.take(cells.first_by(*cells.masses, *cells.exact_costs, cells.rank))

    def _anchor(self, p: Floats, costs: Doubles, anchor: Floats, scores: Floats) -> None:
        """Replace plain prices by prices with an anchor, in the rows where they differ.

        S* is the best set at the anchor m. Labels of S* are priced among its subsets, at most at m, the others among
        its supersets, above m. If the plain set at m is S*, the plain prices are kept.
        """
        rows = np.flatnonzero(anchor > 0)
        high, low = costs
        star = self._best(p[rows], (high[rows], low[rows]), anchor[rows])
        differ = (self.members[star] != (scores[rows] <= anchor[rows, None])).any(axis=1)
        rows, star = rows[differ], star[differ, None]
        if not len(rows):
            return
        m, sets = anchor[rows, None], np.arange(len(self._rank))
        theirs = high[rows], low[rows]
        inside = self._walk(p[rows], theirs, allowed=(sets & ~star) == 0)
        beyond = self._walk(p[rows], theirs, allowed=(sets & star) == star, start=star[:, 0])
        above = np.where(beyond < np.inf, np.maximum(beyond, np.nextafter(m, np.inf)), np.inf)
        scores[rows] = np.where(self.members[star[:, 0]], np.minimum(inside, m), above)


def _largest(costs: Floats) -> Floats:
    """The largest absolute cost of each row."""
    return np.asarray(np.abs(costs).max(axis=1))


def _rough_masses(p: Floats) -> Floats:
    """The mass that each set leaves out, (n, sets), as floats: for each label, the sets without it, then those with
    it."""
    out = np.zeros((len(p), 1))
    for y in range(p.shape[1]):
        out = np.concatenate([out + p[:, y, None], out], axis=1)
    return out


def _starts(rows: Ints) -> Ints:
    """Where each row begins among places that are sorted by row."""
    return np.flatnonzero(np.diff(rows, prepend=-1))


def _min_by_row(rows: Ints, values: Floats | Ints) -> Floats | Ints:
    """At each place the least value of its row."""
    starts = _starts(rows)
    return np.repeat(np.minimum.reduceat(values, starts), np.diff(starts, append=len(rows)))


def _fall(of: Cells, less: Cells) -> Floats:
    """How much more mass the sets of `of` leave out than those of `less`, place by place."""
    return np.asarray((of.left_out[0] - less.left_out[0]) + (of.left_out[1] - less.left_out[1]))


def _chord(at: Cells, last: Cells) -> Floats:
    """The slope from the present set of each row to its last set; 0 if no mass is left between them."""
    fall = _fall(at, last)
    with np.errstate(over="ignore"):
        return np.divide(last.costs - at.costs, fall, out=np.zeros(len(fall)), where=fall > 0.0)


def _below_chord(cells: Cells, at: Cells, last: Cells) -> Masks:
    """Which sets leave out less than the present set of their row, and are not above the line from that to the last
    set."""
    here = at.take(cells.rows)
    fall, chord = _fall(here, cells), _chord(at, last)[cells.rows]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((fall > 0.0) & (cells.costs - here.costs <= fall * chord * (1.0 + _NEAR)))


def _next(cells: Cells, at: Cells) -> tuple[Cells, Floats]:
    """The next set on the hull, in each row that has cells, and the price of the step."""
    here = at.take(cells.rows)
    with np.errstate(over="ignore"):
        slopes = (cells.costs - here.costs) / _fall(here, cells)
    best = _min_by_row(cells.rows, slopes)
    close = slopes <= best + np.abs(best) * _NEAR
    cells, here = cells.take(close), here.take(close)
    exact = quotient(minus(cells.exact_costs, here.exact_costs), minus(here.left_out, cells.left_out))
    found = cells.first_by_value(exact, np.abs(exact[0]))
    return cells.take(found), exact[0][found]


def _replaced(at: Cells, by: Cells) -> Cells:
    """One set for every row: those of `by` where it has the row, else those of `at`."""
    sets, costs, costs_low, rank = at.sets.copy(), at.costs.copy(), at.costs_low.copy(), at.rank.copy()
    high, low = at.left_out[0].copy(), at.left_out[1].copy()
    on = by.rows
    sets[on], costs[on], costs_low[on], rank[on] = by.sets, by.costs, by.costs_low, by.rank
    high[on], low[on] = by.left_out
    # The tiny masses of present sets are never used.
    return Cells(at.rows, sets, costs, costs_low, rank, (high, low))
