"""`greedy`: the score of y is minus the mass of y and of all labels after it in the greedy order. For any loss.

The order starts from the empty set S and adds the y not in S with the largest max(M - L(S + y), 0) / (max(1 - p(y), 0)
+ eps); ties go to the higher p, then to the lower index. M is an upper bound of L. `Increments` defines L(S + y) as a
float, adding one label at a time along the order; the compiled path makes the same additions (`incremental_cost`), so
both paths give the same order:

- steps: compiled; labels that cost the same form lists, and each step looks at every list once;
- generic: `Increments` on many rows at a time, for all other losses.

Neither path uses an old ratio as a bound on a new one, so L need not be monotone. The option `mass` decides how much of
p(y) counts (`mass_rule`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.diagnostics import OracleError, warn
from udcp_dsl.per_row import first_way
from udcp_dsl.predict.oracle import Declaration, Floats, Indices, Masks, Probabilities, Way, is_number
from udcp_solvers.greedy_orders.incremental_cost import grow
from udcp_solvers.greedy_orders.lists import list_labels, no_sum_model, sum_model
from udcp_solvers.greedy_orders.steps import Problem, orders_by_steps
from udcp_solvers.mass_rule import ByMass, checked_mass
from udcp_solvers.numeric.compiled import over_rows
from udcp_solvers.numeric.remaining import remaining_score_of, remaining_scores, remaining_sets, row_blocks

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Cells (rows times labels) per block of orders, 32 MiB; and per block of `Increments`, which needs several arrays.
_BLOCK, _GENERIC_BLOCK = 1 << 22, 1 << 18
# If lists have this many labels on average, compiled code on every list is faster than numpy on every label.
_LONG_LIST = 8

# (P, wanted, floor) -> labels in order (n, K), and how many of them are filled in. A row may stop once label `wanted`
# (-1 for none) is placed, or once the remaining mass is certainly less than `floor`.
Orders = Callable[[Probabilities, Indices, Floats], tuple[Indices, Indices]]


_DEFAULT_EPS = 1e-6


def _way(loss: Loss) -> Way:
    """The algorithm that the constructor will use (the first of `paths`) and its time per row."""
    K = loss.K
    algorithm, seconds = {
        "steps": ("a bound per group of equal labels at each step", 1e-7 * K + 4e-9 * K**2),
        "steps, no sum": ("the cost per group of equal labels at each step", 1e-7 * K**2),
        "generic": ("the cost of every label at each step, many rows at a time", 2.5e-5 * K + 5e-7 * K**2),
    }[next(iter(paths(loss, loss.facts.interval.hi, _DEFAULT_EPS)))]
    return Way(algorithm, exact=False, seconds=seconds)


class Greedy(ByMass):
    """M: an upper bound of the loss (default: the proved one); eps: keeps the ratio finite where p = 1.

    mass, seed: as for `base`. The paper uses mass="through".
    """

    name = "greedy"
    takes_rows = True
    settled_by_row = frozenset(("M",))
    declaration = Declaration(
        does="what keeps the set cheap, one label at a time (the paper's heuristic)",
        choose_for="any loss",
        chooses=_way,
        in_threads=True,
    )

    def __init__(
        self,
        loss: Loss,
        *,
        M: float | None = None,
        eps: float = _DEFAULT_EPS,
        mass: str = "before",
        seed: int | None = None,
    ) -> None:
        hi = loss.facts.interval.hi
        bound = hi if M is None else _number("M", M)
        if not _number("eps", eps) > 0:
            raise OracleError(f"oracle 'greedy': eps must be above 0, not {eps!r}")
        if not loss.of_rows and bound < hi:
            warn(
                f"oracle 'greedy': M = {bound:g} is below {hi:g}, the proved bound of loss {loss.name!r}; "
                "sets that cost more than M count as equal, and their labels are ordered by decreasing p"
            )
        self._mass_rule = checked_mass(self.name, mass, seed)
        super().__init__(loss, M=bound, eps=float(eps), **self._mass_rule.options)
        self._orders = first_way(paths(loss, bound, float(eps)))

    def _scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        for rows in row_blocks(P, _BLOCK):
            part = P[rows]
            orders, _ = self._orders(part, np.full(len(part), -1), np.full(len(part), -np.inf))
            out[rows] = remaining_scores(part, self._mass_rule.own_shares(part), orders)
        return out

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        out = np.empty(len(P))
        for rows in row_blocks(P, _BLOCK):
            part = P[rows]
            orders, counts = self._orders(part, y[rows], np.full(len(part), -np.inf))
            out[rows] = remaining_score_of(part, self._mass_rule.own_shares(part), orders, counts, y[rows])
        return out

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        if tau.shape[1] > 1:  # one threshold per class: sets are not prefixes of the order
            return super()._sets(P, tau)
        out = np.empty(P.shape, dtype=np.bool_)
        for rows in row_blocks(P, _BLOCK):
            part, at = P[rows], tau[rows, 0]
            full = at >= P.shape[1] * 1e-300
            orders, counts = self._orders(part, np.full(len(part), -1), np.where(full, np.inf, -at))
            out[rows] = remaining_sets(part, self._mass_rule.own_shares(part), orders, counts, at)
        return out

    def _first(self, P: Probabilities) -> Indices:
        out = np.empty(len(P), np.int64)
        for rows in row_blocks(P, _BLOCK):
            part = P[rows]
            out[rows] = self._orders(part, np.full(len(part), -1), np.full(len(part), np.inf))[0][:, 0]
        return out


def paths(loss: Loss, M: float, eps: float) -> dict[str, Orders]:
    """The algorithms that apply to a loss, fastest first; all give the same greedy orders. If numbers of the loss
    differ by row, only those that support this."""
    generic = {} if loss.of_rows else {"generic": _by_increments(loss, M, eps)}
    growing = grow(loss)
    lists = None if growing is None else list_labels(growing)
    if growing is None or lists is None:
        return generic
    model = sum_model(loss, growing, lists, M)
    if model is not None:
        return {"steps": _by_steps(Problem(growing, lists, model, M, eps))} | generic
    every_list = {"steps, no sum": _by_steps(Problem(growing, lists, no_sum_model(loss, growing, lists), M, eps))}
    quick = loss.of_rows or len(lists.member) * _LONG_LIST <= loss.K
    return every_list | generic if quick else generic | every_list


def _by_steps(problem: Problem) -> Orders:
    def orders_of(P: Probabilities, wanted: Indices, floor: Floats) -> tuple[Indices, Indices]:
        orders = np.empty(P.shape, np.int64)
        counts = np.empty(len(P), np.int64)
        over_rows(orders_by_steps, *P.shape, P, wanted, floor, problem, orders, counts)
        return orders, counts

    return orders_of


def _by_increments(loss: Loss, M: float, eps: float) -> Orders:
    """Greedy orders by `Increments`, one block of rows at a time, for any loss; this defines the order."""

    def orders_of(P: Probabilities, wanted: Indices, floor: Floats) -> tuple[Indices, Indices]:
        orders = np.empty(P.shape, np.int64)
        counts = np.empty(len(P), np.int64)
        for rows in row_blocks(P, _GENERIC_BLOCK):
            p = P[rows].astype(np.float64)
            counts[rows] = _fill(loss, M, eps, p, wanted[rows], floor[rows], orders[rows])
        return orders, counts

    return orders_of


def _fill(loss: Loss, M: float, eps: float, p: Floats, wanted: Indices, floor: Floats, orders: Indices) -> int:
    """Fill the orders of a block of rows until every row may stop; returns how many labels are filled in."""
    n, K = p.shape
    all_rows = np.arange(n)
    growth = loss.increments(n)
    denominator = np.maximum(1.0 - p, 0.0) + eps
    total = p.sum(axis=1)
    certain = floor - (K + 4) * 2.0**-51 * total
    placed = np.zeros(n)
    ended = np.zeros(n, np.bool_)
    for k in range(K):
        ratio = np.maximum(M - growth.after(), 0.0) / denominator
        ratio[growth.mask] = -1.0
        best = ratio == ratio.max(axis=1, keepdims=True)
        y = np.where(best, p, -1.0).argmax(axis=1)
        orders[:, k] = y
        placed += p[all_rows, y]
        ended |= (y == wanted) | (total - placed < certain)
        if ended.all():
            return k + 1
        growth.push(y)
    return int(K)


def _number(name: str, value: object) -> float:
    if not is_number(value):
        raise OracleError(f"oracle 'greedy': {name} must be a finite number, not {value!r}")
    return float(value)
