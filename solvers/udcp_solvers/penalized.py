"""`penalized`: the score of `base` + lam * (L(prefix up to y) - L(empty)), prefixes by falling p. For any loss.

Sets are prefixes of the order, since s_k = max(formula, nextafter(s_(k-1), +inf)). For monotone L, this changes a score
only where rounding would merge two neighbours. The predictor tunes lam on rows that are not used for calibration.
`Increments` defines L(prefix), adding one label at a time; the compiled path makes the same additions
(`incremental_cost`). The option `mass` is that of `base` (`mass_rule`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.per_row import first_way
from udcp_dsl.predict.oracle import Declaration, Floats, Indices, Masks, Probabilities, Way, is_number
from udcp_solvers.greedy_orders.incremental_cost import Growing, grow
from udcp_solvers.greedy_orders.prefix_costs import Prefix, clear_prefix, extend, new_prefix
from udcp_solvers.mass_rule import ByMass, checked_mass
from udcp_solvers.numeric.compiled import jit, jit_uncounted, over_rows
from udcp_solvers.numeric.exact_sum import LIMBS, Limbs, add
from udcp_solvers.numeric.falling import falling_orders
from udcp_solvers.numeric.filling import fill
from udcp_solvers.numeric.mass import mass_scores
from udcp_solvers.numeric.remaining import limbs_of, mass_score, not_below, row_blocks, without_label

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Cells (rows times labels) per block of scores, 32 MiB; and per block of `Increments`, which needs several arrays.
_BLOCK, _GENERIC_BLOCK = 1 << 22, 1 << 18

# (P, shares, wanted, tau) -> labels by falling p, their scores (n, K), and how many scores are filled in. A row may
# stop once label `wanted` (-1 for none) is reached, or once a score is above tau.
PrefixScorer = Callable[[Probabilities, Floats, Indices, Floats], tuple[Indices, Floats, Indices]]


def _way(loss: Loss) -> Way:
    """The algorithm that the constructor will use (the first of `paths`) and its time per row."""
    K, growing = loss.K, grow(loss)
    if growing is None:
        return Way("the cost of each prefix, many rows at a time", exact=False, seconds=2.5e-5 * K + 5e-7 * K**2)
    seconds = 3e-8 * K * max(1.0, math.log2(K)) + 3e-9 * len(growing.dense) * growing.dense.shape[1] * K
    return Way("the cost of each prefix", exact=False, seconds=seconds)


class Penalized(ByMass):
    """lam: the weight of the cost, at least 0; None if it is still to be tuned. mass, seed: as for `base`."""

    name = "penalized"
    takes_rows = True
    declaration = Declaration(
        does="`base` plus lambda times the cost; lambda tuned on its own folds",
        choose_for="any loss",
        chooses=_way,
        tuned=True,
        in_threads=True,
    )

    def __init__(self, loss: Loss, *, lam: float | None = None, mass: str = "before", seed: int | None = None) -> None:
        if lam is not None and not (is_number(lam) and lam >= 0):
            raise OracleError(f"oracle 'penalized': lam must be a finite number of at least 0, or None, not {lam!r}")
        self._mass_rule = checked_mass(self.name, mass, seed)
        super().__init__(loss, lam=None if lam is None else float(lam), **self._mass_rule.options)
        self._path = None if lam is None else first_way(paths(loss, float(lam)))

    def _prefix_scores(
        self, P: Probabilities, wanted: Indices | int, tau: Floats | float
    ) -> tuple[Indices, Floats, Indices]:
        if self._path is None:
            raise OracleError(
                "oracle 'penalized' has no lam yet: SetPredictor tunes it when it is calibrated; or give one, lam=0.1"
            )
        return self._path(
            P, self._mass_rule.own_shares(P), np.broadcast_to(wanted, len(P)), np.broadcast_to(tau, len(P))
        )

    def _scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        for rows in row_blocks(P, _BLOCK):
            orders, scores, _ = self._prefix_scores(P[rows], -1, np.inf)
            over_rows(_scatter, *P[rows].shape, orders, scores, out[rows])
        return out

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        out = np.empty(len(P))
        for rows in row_blocks(P, _BLOCK):
            _, scores, counts = self._prefix_scores(P[rows], y[rows], np.inf)
            out[rows] = scores[np.arange(len(counts)), counts - 1]
        return out

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        if tau.shape[1] > 1:  # one threshold per class: sets are not prefixes of the order
            return super()._sets(P, tau)
        out = np.zeros(P.shape, dtype=np.bool_)
        for rows in row_blocks(P, _BLOCK):
            orders, scores, counts = self._prefix_scores(P[rows], -1, tau[rows, 0])
            over_rows(_mark, *P[rows].shape, orders, scores, counts, np.ascontiguousarray(tau[rows, 0]), out[rows])
        return out

    def _first(self, P: Probabilities) -> Indices:
        return np.asarray(np.argmax(P, axis=1), dtype=np.int64)


def paths(loss: Loss, lam: float) -> dict[str, PrefixScorer]:
    """The algorithms that apply to a loss, fastest first; all give the same scores to the bit. If numbers of the loss
    differ by row, only those that support this."""
    growing = grow(loss)
    if loss.of_rows:
        empty_cost = loss.batch(np.zeros((1, loss.K), dtype=np.bool_))[0]
    else:
        empty_cost = float(loss.increments(1).value[0])
    found: dict[str, PrefixScorer] = {} if growing is None else {"compiled": _compiled(growing, lam, empty_cost)}
    return found if loss.of_rows else {**found, "generic": _by_increments(loss, lam, empty_cost)}


def _compiled(growing: Growing, lam: float, empty_cost: float) -> PrefixScorer:
    def prefix_scores(
        P: Probabilities, shares: Floats, wanted: Indices, tau: Floats
    ) -> tuple[Indices, Floats, Indices]:
        orders, scores, counts = np.empty(P.shape, np.int64), np.empty(P.shape), np.empty(len(P), np.int64)
        rows = _Rows(P, shares, np.array(wanted), np.array(tau), orders, scores, counts)
        over_rows(_score_block, *P.shape, rows, _Penalty(growing, lam, empty_cost))
        return orders, scores, counts

    return prefix_scores


def _by_increments(loss: Loss, lam: float, empty_cost: float) -> PrefixScorer:
    """Costs by `Increments`, one block of rows at a time, for any loss; this defines the cost of a prefix."""

    def prefix_scores(
        P: Probabilities, shares: Floats, wanted: Indices, tau: Floats
    ) -> tuple[Indices, Floats, Indices]:
        orders, scores, counts = np.empty(P.shape, np.int64), np.empty(P.shape), np.empty(len(P), np.int64)
        falling_orders(P, orders)
        for rows in row_blocks(P, _GENERIC_BLOCK):
            base = np.take_along_axis(mass_scores(P[rows], shares[rows], 0.0, 0), orders[rows], axis=1)
            last = np.full(len(base), -np.inf)
            growth = loss.increments(len(base))
            ended = np.zeros(len(base), np.bool_)
            for k in range(P.shape[1]):
                y = orders[rows, k]
                growth.push(y)
                formula = base[:, k] + lam * (growth.value - empty_cost)
                last = np.where(formula > last, formula, np.nextafter(last, np.inf))
                scores[rows, k] = last
                counts[rows] = np.where(ended, counts[rows], k + 1)
                ended |= (y == wanted[rows]) | (last > tau[rows])
                if ended.all():
                    break
        return orders, scores, counts

    return prefix_scores


class _Rows(NamedTuple):
    """Rows P (n, K), their shares, and where they may stop: at label `wanted` (-1 for none), or once a score is above
    tau. `orders` and `scores` (n, K): labels by falling p and their scores, of which the first `counts` are filled
    in."""

    P: Probabilities
    shares: Floats
    wanted: Indices
    tau: Floats
    orders: Indices
    scores: Floats
    counts: Indices


class _Penalty(NamedTuple):
    """lam * (L - L(empty)), with L as arrays."""

    growing: Growing
    lam: float
    empty_cost: float


def _score_block(start: int, stop: int, rows: _Rows, penalty: _Penalty) -> None:
    """Score the prefixes of rows start .. stop - 1, with their own scratch arrays."""
    falling_orders(rows.P[start:stop], rows.orders[start:stop])
    _score_rows(start, stop, rows, penalty, new_prefix(penalty.growing), np.empty(LIMBS, np.int64))


@jit_uncounted
def _score_rows(start: int, stop: int, rows: _Rows, penalty: _Penalty, prefix: Prefix, rest: Limbs) -> None:
    for i in range(start, stop):
        rows.counts[i] = _score_prefixes(i, rows, penalty, prefix, rest)


@jit_uncounted
def _score_prefixes(i: int, rows: _Rows, penalty: _Penalty, prefix: Prefix, rest: Limbs) -> int:
    """Score the labels of row i along its order; returns how many have a score. `rest` is the mass after a label."""
    p, order, share = rows.P[i], rows.orders[i], rows.shares[i]
    low, high = limbs_of(p, share)
    fill(rest, 0)
    for y in range(len(p)):
        add(rest, np.float64(p[y]), 1)
    clear_prefix(penalty.growing, prefix)
    last = -np.inf
    for k in range(len(order)):
        y = order[k]
        base = mass_score(without_label(rest, np.float64(p[y]), share, low, high), k + 1, share)
        cost = extend(penalty.growing, prefix, y)
        last = not_below(base + penalty.lam * (cost - penalty.empty_cost), last)
        rows.scores[i, k] = last
        if y == rows.wanted[i] or last > rows.tau[i]:
            return k + 1
    return len(order)


@jit
def _scatter(start: int, stop: int, orders: Indices, scores: Floats, out: Floats) -> None:
    for i in range(start, stop):
        for k in range(orders.shape[1]):
            out[i, orders[i, k]] = scores[i, k]


@jit
def _mark(start: int, stop: int, orders: Indices, scores: Floats, counts: Indices, tau: Floats, out: Masks) -> None:
    for i in range(start, stop):
        for k in range(counts[i]):
            if scores[i, k] <= tau[i]:
                out[i, orders[i, k]] = True
