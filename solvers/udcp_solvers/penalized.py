"""`penalized`: the score of `base` + lam * (L(prefix up to y) - L(empty)), prefixes by falling p. For any loss.

Sets are prefixes of the order, since s_k = max(formula, nextafter(s_(k-1), +inf)). For monotone L, this changes a score
only where rounding would merge two neighbours. The predictor tunes lam on rows that are not used for calibration.
`Increments` defines L(prefix), adding one label at a time; the compiled path makes the same additions
(`incremental_cost`). The option `mass` is that of `base` (`mass_rule`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.per_row import first_way
from udcp_dsl.prediction.declaration import Declaration, Way
from udcp_dsl.prediction.oracle import Floats, Indices, Masks, Probabilities, is_number
from udcp_solvers.greedy_orders.incremental_cost import (
    DENSE,
    TREE,
    Growing,
    clear,
    cost_with,
    distance_offset,
    grow,
    new_state,
    push,
)
from udcp_solvers.mass_rule import ByMass, checked_mass
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.numeric.exact_sum import LIMBS, add
from udcp_solvers.numeric.falling import falling_order, order_scratch
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
        ends = np.ascontiguousarray(wanted), np.ascontiguousarray(tau)
        over_rows(_penalize, *P.shape, P, shares, *ends, growing, lam, empty_cost, orders, scores, counts)
        return orders, scores, counts

    return prefix_scores


def _by_increments(loss: Loss, lam: float, empty_cost: float) -> PrefixScorer:
    """Costs by `Increments`, one block of rows at a time, for any loss; this defines the cost of a prefix."""

    def prefix_scores(
        P: Probabilities, shares: Floats, wanted: Indices, tau: Floats
    ) -> tuple[Indices, Floats, Indices]:
        orders, scores, counts = np.empty(P.shape, np.int64), np.empty(P.shape), np.empty(len(P), np.int64)
        over_rows(_fill_falling_orders, *P.shape, P, orders)
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


@jit
def _fill_falling_orders(start: int, stop: int, P: Probabilities, orders: Indices) -> None:
    scratch = order_scratch(P.shape[1])
    for i in range(start, stop):
        orders[i] = falling_order(P[i], scratch)


@jit
def _penalize(
    start: int,
    stop: int,
    P: Probabilities,
    shares: Floats,
    wanted: Indices,
    tau: Floats,
    growing: Growing,
    lam: float,
    empty_cost: float,
    orders: Indices,
    scores: Floats,
    counts: Indices,
) -> None:
    K, A = P.shape[1], len(growing.kind)
    scratch = order_scratch(K)
    total = np.zeros(LIMBS, np.int64)
    # Unpacked once: compiled code counts references to every array that it reads from the tuple.
    code, data, state = growing.code, growing.data, new_state(growing.code)
    kind, metric, point, dense, paths, depth, edge = (
        growing.kind, growing.metric, growing.point, growing.dense, growing.paths, growing.depth, growing.edge,
    )  # fmt: skip
    offset = distance_offset(code)
    far = np.zeros((len(dense), dense.shape[1]))
    ends, longest = np.empty((len(edge), 2), np.int64), np.empty(len(edge), np.int64)
    for i in range(start, stop):
        order = falling_order(P[i], scratch)
        low, high = limbs_of(P[i], shares[i])
        total[:] = 0
        for j in range(K):
            add(total, np.float64(P[i, j]), 1)
        clear(code, data, state)
        for m in range(len(dense)):
            for j in range(dense.shape[1]):
                far[m, j] = dense[m, j, j]
        last = -np.inf
        count = 0
        while count < K:
            y = order[count]
            for a in range(A):
                m = metric[a]
                if kind[a] == DENSE:
                    state[offset + a] = far[m, point[m, y]]
                elif kind[a] == TREE:
                    state[offset + a] = edge[m] * _lengthen(paths[m], depth[m], ends[m], longest, m, y, count == 0)
            cost = cost_with(code, data, state, y)
            push(code, data, state, y)
            for m in range(len(dense)):
                for j in range(dense.shape[1]):
                    far[m, j] = max(far[m, j], dense[m, point[m, y], j])
            rest = without_label(total, np.float64(P[i, y]), shares[i], low, high)
            count += 1
            formula = mass_score(rest, count, shares[i]) + lam * (cost - empty_cost)
            last = not_below(formula, last)
            orders[i, count - 1] = y
            scores[i, count - 1] = last
            if y == wanted[i] or last > tau[i]:
                break
        counts[i] = count


@jit
def _lengthen(
    paths: NDArray[np.int32],
    depth: NDArray[np.int32],
    ends: Indices,
    longest: Indices,
    m: int,
    y: int,
    empty: bool,
) -> int:
    """The distance in edges from y to the farthest member of the set; y then joins the set.

    In a tree, that member is one end of a longest path between members: `ends`, which are longest[m] edges apart.
    """
    if empty:
        fill(ends, y)
        longest[m] = 0
        return 0
    away = 0
    other = 0
    for e in range(2):
        common = 0
        while paths[common, ends[e]] == paths[common, y] and paths[common, y] >= 0:
            common += 1
        edges = depth[ends[e]] + depth[y] - 2 * (common - 1)
        if edges > away:
            away, other = edges, 1 - e
    if away > longest[m]:
        longest[m] = away
        ends[other] = y
    return away


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
