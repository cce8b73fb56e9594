"""`ratio`: the score of y is l(y) / p(y), for separable losses: L(S) = L(empty) + sum of l(y) over S.

Optimal if p is the true probability (Neyman and Pearson): no other sets of the same coverage cost less on average. A
label that costs nothing is in every set unless p = 0; a label with p = 0 is only in the set of all labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.per_row import PerRow
from udcp_dsl.predict.oracle import Declaration, Floats, Indices, Masks, Oracle, Probabilities, Way
from udcp_solvers.numeric.compiled import jit, over_rows

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


class Ratio(Oracle):
    """For separable losses whose labels have no negative cost."""

    name = "ratio"
    priced = True
    takes_rows = True
    declaration = Declaration(
        does="cost per probability: optimal",
        choose_for="separable losses (sums of label costs)",
        chooses=lambda loss: Way("one division per label", exact=True, seconds=2e-9 * loss.K),
        needs=("separable", "monotone"),
        normalized=False,
        in_threads=True,
    )

    def __init__(self, loss: Loss) -> None:
        separable = loss.fact("separable")
        if not separable:
            raise OracleError(
                f"oracle 'ratio' needs a separable loss, and separable is {separable} for {loss.name!r}: "
                f"{separable.reason}; use 'price', which equals 'ratio' for separable losses and takes any other"
            )
        super().__init__(loss)
        costs = _label_costs(loss)
        if costs.min() < 0:
            y = int(costs.argmin())
            raise OracleError(
                f"oracle 'ratio' needs costs of at least 0, but label {loss.labels[y]!r} costs {costs[y]:g}: "
                "raise its cost, or use 'greedy' instead"
            )
        # (1, K), or (n, K) if costs differ by row.
        self._costs = costs.values if isinstance(costs, PerRow) else costs[None, :]

    def _scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        over_rows(_scores, *P.shape, P, self._costs, out)
        return out

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        p = P[np.arange(len(P)), y].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(p > 0, self._costs[np.arange(len(P)) % len(self._costs), y] / p, np.inf)

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        out = np.empty(P.shape, dtype=np.bool_)
        over_rows(_sets, *P.shape, P, self._costs, np.broadcast_to(tau, P.shape), out)
        return out


def _label_costs(loss: Loss) -> Floats:
    """l(y) = L({y}) - L(empty)."""
    form = loss.form
    if form is not None and form.separable:
        return form.label_costs + 0.0
    growth = loss.increments(1)
    return np.asarray(growth.after()[0] - growth.value[0])


@jit
def _ratio(cost: float, p: float) -> float:
    return cost / p if p > 0.0 else np.inf


@jit
def _scores(start: int, stop: int, P: Probabilities, costs: Floats, out: Floats) -> None:
    for i in range(start, stop):
        for j in range(P.shape[1]):
            out[i, j] = _ratio(costs[i % len(costs), j], np.float64(P[i, j]))


@jit
def _sets(start: int, stop: int, P: Probabilities, costs: Floats, tau: Floats, out: Masks) -> None:
    for i in range(start, stop):
        for j in range(P.shape[1]):
            out[i, j] = _ratio(costs[i % len(costs), j], np.float64(P[i, j])) <= tau[i, j]
