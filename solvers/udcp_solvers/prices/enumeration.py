"""Prices under any loss of few labels: all 2^K sets are points (mass left out, cost), and the lower hull is walked.

A set is a number whose bit y says whether label y is in it. A quick look at all sets, a matrix of one row per instance
and one column per set, keeps the few that may matter: its *cells*. Their masses left out are held to 106 bits, and
values that are too close for floats are compared to 106 bits too, so that ties are ties as in rationals and the rules
decide them: more mass, fewer labels, the lexicographically first list of indices. Beside a large mass 106 bits do not
see a label of tiny p, so that masses of labels below 1e-30, below 1e-60 and so on are held by themselves, for ties.

All of it is numpy on blocks of rows: up to `MOST` labels nothing has to be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.expression.domain import numbered_sets
from udcp_dsl.per_row import with_rows
from udcp_dsl.threads import cores_here, over_blocks
from udcp_solvers.numeric.arrays import Floats, Ints, Masks, Probabilities
from udcp_solvers.numeric.double_double_arrays import LARGE, Doubles, minus, plus, quotient, times, two_sum

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# The most labels for which all sets are looked at.
MOST = 12
# Values farther apart than the first, relatively, are told apart by a quick look at all sets; than the second, by
# floats; below the third they are equal to 106 bits.
_ROUGH, _NEAR, _EQUAL = 1e-12, 1e-14, 2.0**-96
# Numbers in one matrix of a block of rows: a handful of such matrices takes some megabytes.
_BLOCK = 1 << 17
# Labels below this, below its square and so on have masses of their own.
_TINY = 1e-30


@dataclass(frozen=True, eq=False)
class Cells:
    """Sets of rows, sorted by row: at each place a row, a set, what it costs, its rank by the rules, and the mass that
    it leaves out in that row."""

    rows: Ints
    sets: Ints
    costs: Floats
    rank: Ints
    left_out: Doubles
    tiny: tuple[Floats, ...] = ()  # of what is left out the masses of tiny labels, the larger first

    def take(self, which: Ints | Masks) -> Cells:
        high, low = self.left_out
        tiny = tuple(x[which] for x in self.tiny)
        return Cells(
            self.rows[which], self.sets[which], self.costs[which], self.rank[which], (high[which], low[which]), tiny
        )

    @property
    def masses(self) -> tuple[Floats, ...]:
        """What is left out, to the last tiny label."""
        return (*self.left_out, *self.tiny)

    def first_by(self, *keys: Floats | Ints) -> Ints:
        """For each row the place that comes first by the keys, the first key counting most."""
        places, rows = np.arange(len(self.rows)), self.rows
        for key in keys:
            if len(rows) == len(_starts(rows)):  # one in each row
                break
            kept = key[places] == _min_by_row(rows, key[places])
            rows, places = rows[kept], places[kept]
        return places[_starts(rows)]

    def first_by_value(self, values: Doubles, scale: Floats) -> Ints:
        """For each row the place of least value to 106 bits; of equal ones the first by the rules."""
        least = np.repeat(self.first_by(*values), np.diff(_starts(self.rows), append=len(self.rows)))
        same = values[0] == values[0][least]  # which may be infinite
        more = np.where(same, 0.0, values[0] - np.where(same, 0.0, values[0][least])) + (values[1] - values[1][least])
        (equal,) = np.nonzero(more <= _EQUAL * scale)
        some = self.take(equal)
        return equal[some.first_by(*some.masses, some.rank)]


class Enumeration:
    """The prices of one loss, by row."""

    def __init__(self, loss: Loss) -> None:
        sets = np.arange(1 << loss.K, dtype=np.int64)
        self.members = numbered_sets(sets, loss.K)
        # (1, sets), or (n, sets) where rows have costs of their own.
        self.costs: Floats = with_rows(loss.batch(self.members)).astype(np.float64)
        # Sets by size, then by their lists of indices: of two of one size, the one that holds the first label in which
        # they differ. So its bits, read from label 0 on, make the larger number.
        as_read = self.members @ (1 << np.arange(loss.K)[::-1])
        self._rank = np.empty(len(sets), dtype=np.int64)
        self._rank[np.lexsort((-as_read, self.members.sum(axis=1)))] = sets

    @staticmethod
    def of(loss: Loss) -> Callable[[], Enumeration] | None:
        """What makes them; None where there are too many sets."""
        return partial(Enumeration, loss) if loss.K <= MOST else None

    def take(self, rows: Ints) -> Enumeration:
        """The prices of some of the rows, where they differ by row."""
        other = copy(self)
        other.costs = self.costs if len(self.costs) == 1 else self.costs[rows]
        return other

    def scores(self, P: Probabilities, anchor: Floats | None = None, gaps: Floats | None = None) -> Floats:
        """Every label's price; `anchor` (n,), below 0 for none. `gaps` stays as it is: all prices are exact."""
        out = np.empty(P.shape)

        def block(rows: slice) -> None:
            p, costs = self._of(P, rows)
            out[rows] = self._walk(p, costs)
            if anchor is not None:
                self._anchor(p, costs, anchor[rows], out[rows])

        self._over(block, len(P))
        return out

    def best(self, P: Probabilities, mu: Floats, gaps: Floats | None = None) -> Masks:
        """The set of least L - mu p of each row, mu (n,)."""
        out = np.empty(P.shape, dtype=np.bool_)

        def block(rows: slice) -> None:
            out[rows] = self.members[self._best(*self._of(P, rows), mu[rows])]

        self._over(block, len(P))
        return out

    def _of(self, P: Probabilities, rows: slice) -> tuple[Floats, Floats]:
        """The probabilities of some rows, and what all sets cost in each of them."""
        costs = self.costs if len(self.costs) == 1 else self.costs[rows]
        p = np.asarray(P[rows], dtype=np.float64)
        return p, np.broadcast_to(costs, (len(p), costs.shape[1]))

    def _over(self, block: Callable[[slice], None], n: int) -> None:
        """Blocks of rows, in threads: numpy releases the interpreter lock."""
        if len(self.costs) not in (1, n):
            raise ValueError(f"costs of {len(self.costs)} rows for {n} rows")
        step = max(1, _BLOCK // len(self._rank))

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, step):
                block(slice(first, min(first + step, stop)))

        over_blocks(work, n, n * len(self._rank), cores_here())

    def _cells(self, p: Floats, costs: Floats, where: Masks) -> Cells:
        """The sets of a matrix (n, sets), with the masses that they leave out."""
        rows, sets = np.nonzero(where)
        left_out, tiny, most = self._left_out(p, rows, sets), list[Floats](), _TINY
        while ((p > 0.0) & (p < most)).any():
            tiny += self._left_out(np.where(p < most, p, 0.0), rows, sets)
            most *= _TINY
        return Cells(rows, sets, costs[rows, sets], self._rank[sets], left_out, tuple(tiny))

    def _left_out(self, p: Floats, rows: Ints, sets: Ints) -> Doubles:
        high, low = np.zeros(len(rows)), np.zeros(len(rows))
        for y in range(p.shape[1]):
            s, e = two_sum(high, np.where(self.members[sets, y], 0.0, p[rows, y]))
            high, low = two_sum(s, e + low)
        return high, low

    def _best(self, p: Floats, costs: Floats, mu: Floats) -> Ints:
        """The best set of each row at its price: the least cost + mu * mass left out."""
        worth = costs + mu[:, None] * _rough_masses(p)
        scale = _largest(costs) + mu
        cells = self._cells(p, costs, worth <= worth.min(axis=1, keepdims=True) + _ROUGH * scale[:, None])
        price, zeros = mu[cells.rows], np.zeros(len(cells.rows))
        with np.errstate(over="ignore", invalid="ignore"):
            high, low = plus(times((price, zeros), cells.left_out), (cells.costs, zeros))
        exact = np.isfinite(high) & np.isfinite(low)  # not at prices near the largest number
        values = np.where(exact, high, worth[cells.rows, cells.sets]), np.where(exact, low, 0.0)
        return cells.sets[cells.first_by_value(values, scale[cells.rows])]

    def _walk(self, p: Floats, costs: Floats, allowed: Masks | None = None, start: Ints | None = None) -> Floats:
        """The price of every label along the hull of the sets that are allowed, (n, sets), infinite where it is never
        bought: from the cheapest of them, or from the set where it starts, whose labels have price 0.
        """
        rough, sets = _rough_masses(p), np.arange(costs.shape[1])
        every = np.broadcast_to(np.True_, costs.shape) if allowed is None else allowed
        at = self._cheapest(p, costs, every) if start is None else self._cells(p, costs, sets == start[:, None])
        last = self._heaviest(p, costs, rough, every)
        prices = np.where(self.members[at.sets], 0.0, np.inf)
        chord = _chord(at, last)
        with np.errstate(over="ignore", invalid="ignore"):
            line = at.costs + chord * rough[np.arange(len(p)), at.sets] + _ROUGH * (_largest(costs) + np.abs(chord))
            below = (costs + chord[:, None] * rough <= line[:, None]) | (chord > LARGE)[:, None]
        cells = self._cells(p, costs, every & below)
        while True:
            cells = cells.take(_below_chord(cells, at, last))
            if not len(cells.rows):
                return prices
            following, price = _next(cells, at)
            on = following.rows
            at = _replaced(at, following)
            prices[on] = np.minimum(prices[on], np.where(self.members[following.sets], price[:, None], np.inf))

    def _cheapest(self, p: Floats, costs: Floats, allowed: Masks) -> Cells:
        """The set at price 0 of each row: of the cheapest sets that are allowed, the heaviest."""
        paid = np.where(allowed, costs, np.inf)
        cells = self._cells(p, costs, paid == paid.min(axis=1, keepdims=True))
        return cells.take(cells.first_by(*cells.masses, cells.rank))

    def _heaviest(self, p: Floats, costs: Floats, rough: Floats, allowed: Masks) -> Cells:
        """The set at prices without end: of those that leave out the least, the cheapest."""
        rough = np.where(allowed, rough, np.inf)
        cells = self._cells(p, costs, rough <= rough.min(axis=1, keepdims=True) + _ROUGH)
        return cells.take(cells.first_by(*cells.masses, cells.costs, cells.rank))

    def _anchor(self, p: Floats, costs: Floats, anchor: Floats, scores: Floats) -> None:
        """Put the prices with an anchor in the place of the plain ones, in the rows where they differ.

        With S* the best set at the anchor m: labels of S* are priced among its subsets, at most m, the others among its
        supersets, above m. Where the plain set at m is S*, the plain prices are those already.
        """
        rows = np.flatnonzero(anchor > 0)
        star = self._best(p[rows], costs[rows], anchor[rows])
        differ = (self.members[star] != (scores[rows] <= anchor[rows, None])).any(axis=1)
        rows, star = rows[differ], star[differ, None]
        if not len(rows):
            return
        m, sets = anchor[rows, None], np.arange(costs.shape[1])
        inside = self._walk(p[rows], costs[rows], allowed=(sets & ~star) == 0)
        beyond = self._walk(p[rows], costs[rows], allowed=(sets & star) == star, start=star[:, 0])
        above = np.where(beyond < np.inf, np.maximum(beyond, np.nextafter(m, np.inf)), np.inf)
        scores[rows] = np.where(self.members[star[:, 0]], np.minimum(inside, m), above)


def _largest(costs: Floats) -> Floats:
    """The largest size of a cost, of each row."""
    return np.asarray(np.abs(costs).max(axis=1))


def _rough_masses(p: Floats) -> Floats:
    """The mass that each set leaves out, (n, sets), as floats: label by label, without it and with it."""
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
    """How much more the sets of `of` leave out than those of `less`, place by place."""
    return np.asarray((of.left_out[0] - less.left_out[0]) + (of.left_out[1] - less.left_out[1]))


def _chord(at: Cells, last: Cells) -> Floats:
    """The slope from where each row is to its last set; 0 where it has arrived."""
    fall = _fall(at, last)
    with np.errstate(over="ignore"):
        return np.divide(last.costs - at.costs, fall, out=np.zeros(len(fall)), where=fall > 0.0)


def _below_chord(cells: Cells, at: Cells, last: Cells) -> Masks:
    """Which sets leave out less than where their row is, and do not lie above the line from there to its last set."""
    here = at.take(cells.rows)
    fall, chord = _fall(here, cells), _chord(at, last)[cells.rows]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray((fall > 0.0) & (cells.costs - here.costs <= fall * chord * (1.0 + _NEAR)))


def _next(cells: Cells, at: Cells) -> tuple[Cells, Floats]:
    """The set that follows on the hull, in each row that has cells, and the price of the step."""
    here = at.take(cells.rows)
    with np.errstate(over="ignore"):
        slopes = (cells.costs - here.costs) / _fall(here, cells)
    best = _min_by_row(cells.rows, slopes)
    close = slopes <= best + np.abs(best) * _NEAR
    cells, here = cells.take(close), here.take(close)
    exact = quotient(two_sum(cells.costs, -here.costs), minus(here.left_out, cells.left_out))
    found = cells.first_by_value(exact, np.abs(exact[0]))
    return cells.take(found), exact[0][found]


def _replaced(at: Cells, by: Cells) -> Cells:
    """One set of every row, with those of some rows replaced."""
    sets, costs, rank = at.sets.copy(), at.costs.copy(), at.rank.copy()
    high, low = at.left_out[0].copy(), at.left_out[1].copy()
    on = by.rows
    sets[on], costs[on], rank[on], high[on], low[on] = by.sets, by.costs, by.rank, *by.left_out
    return Cells(at.rows, sets, costs, rank, (high, low))  # nothing asks for the tiny masses of where a row is
