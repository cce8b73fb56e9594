"""`price`: the score of y is the lowest price mu of probability at which y is bought. For any loss.

S_mu minimises L(S) - mu p(S); of several minimisers it is the one of largest mass, then of fewest labels, then with
the lexicographically first list of indices. The score of y is the least mu >= 0 with y in S_mu.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.oracle import Floats, Indices, Masks, Oracle, Probabilities
from udcp_solvers.enumeration import MOST, Enumeration
from udcp_solvers.laminar_price import LaminarPrices
from udcp_solvers.tree_price import TreePrices

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


class Prices(Protocol):
    """The three faces, for one class of losses; tau is (n,)."""

    def scores(self, P: Probabilities, /) -> Floats: ...
    def score_of(self, P: Probabilities, y: Indices, /) -> Floats: ...
    def sets(self, P: Probabilities, tau: Floats, /) -> Masks: ...


class Price(Oracle):
    """One price for all instances: the lowest mean cost at the same coverage, where the S_mu are nested."""

    name = "price"

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss)
        self._prices = _prices(loss)

    def _scores(self, P: Probabilities) -> Floats:
        return self._prices.scores(P)

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        return self._prices.score_of(P, y)

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        if tau.shape[1] > 1:  # by class
            return super()._sets(P, tau)
        return self._prices.sets(P, tau[:, 0])


def _prices(loss: Loss) -> Prices:
    for way in WAYS:
        if (prices := way(loss)) is not None:
            return prices
    raise OracleError("no way")


def _enumerated(loss: Loss) -> Prices | None:
    return Enumeration(loss) if loss.K <= MOST else None


# Fastest first; each gives None where it does not apply.
WAYS: tuple[Callable[[Loss], Prices | None], ...] = (LaminarPrices.of, TreePrices.of, _enumerated)
