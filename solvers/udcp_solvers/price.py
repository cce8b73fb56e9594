"""`price`: the score of y is the lowest price mu of probability at which y is bought. For any loss.

S_mu minimises L(S) - mu p(S); of several minimisers it is the one of largest mass, then of fewest labels, then with
the lexicographically first list of indices. The score of y is the least mu >= 0 with y in S_mu; docs/price-oracle.md
derives it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from udcp_dsl.diagnostics import OracleError
from udcp_dsl.expression.lower import LoweringError
from udcp_dsl.prediction.declaration import Declaration, Refusal, Way
from udcp_dsl.prediction.oracle import Floats, Indices, Masks, Oracle, Probabilities, make_oracle
from udcp_solvers.prices.cuts import CutPrices
from udcp_solvers.prices.enumeration import Enumeration
from udcp_solvers.prices.laminar import LaminarPrices
from udcp_solvers.prices.sizes import SizePrices
from udcp_solvers.prices.trees import TreePrices
from udcp_solvers.programs.best_set import BestSets

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Costs that are sums of rounded numbers may be off by this, relatively.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Step:
    """The set at threshold `price`: labels that entered there, all its labels, its mass and its cost.

    Where the S_mu are nested, as for submodular losses, this is S_mu; else it is the union of those up to the price,
    and `left` are the labels of it that S_mu no longer holds.
    """

    price: float
    entered: tuple[str, ...]
    labels: tuple[str, ...]
    mass: float
    cost: float
    left: tuple[str, ...] = ()


class Prices(Protocol):
    """The prices under one class of losses."""

    def scores(self, P: Probabilities, /) -> Floats: ...


@runtime_checkable
class Quick(Prices, Protocol):
    """With faces of their own that stop early; tau is (n,)."""

    def score_of(self, P: Probabilities, y: Indices, /) -> Floats: ...
    def sets(self, P: Probabilities, tau: Floats, /) -> Masks: ...


def _way(loss: Loss) -> Way | Refusal:
    """The first of `WAYS`, as the constructor takes it; the last of them needs a linear model."""
    found, _ = chosen(loss)
    if found.solves:
        try:
            _ = loss.linear_model
        except LoweringError as error:
            return Refusal(str(error), blame=error.span)
    return Way(found.algorithm, found.exact, found.seconds(loss))


class Price(Oracle):
    """One price of probability for all instances: the lowest mean cost at the same coverage.

    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {cat, dog, wolf}  category wild {dog, wolf}  loss l = size + any(wild)")
    >>> udcp.make_oracle("price", loss).scores([[0.5, 0.3, 0.2]])
    array([[2., 6., 6.]])
    """

    name = "price"
    declaration = Declaration(
        does="the price of probability at which a label is bought, one price for all instances",
        choose_for="lowest mean cost; the default",
        chooses=_way,
        quick_with=("laminar", "tree_diameter"),
    )

    def __init__(self, loss: Loss) -> None:
        super().__init__(loss)
        _, make = chosen(loss)
        self._prices = make()

    def explain(self, p: ArrayLike, scores: Floats | None = None) -> list[Step]:
        """The sets of one instance by rising price, from price 0 on; labels that are never bought are in none.

        `scores` are those of the instance, where they are known already.
        """
        if scores is None:
            (scores,) = self.scores(np.asarray(p)[None, :])
        exact = np.asarray(p, dtype=np.float64)
        prices = np.unique(np.append(scores[scores < np.inf], 0.0))
        entered = scores == prices[:, None]
        masks = scores <= prices[:, None]
        costs = self.loss.batch(masks)
        gains = [sum(map(Fraction, exact[new].tolist()), Fraction(0)) for new in entered]
        lefts = self._left(exact, prices, np.array(gains, dtype=np.float64), entered, masks, costs)
        names = np.array(self.loss.labels, dtype=object)
        return [
            Step(float(price), tuple(names[new]), tuple(names[mask]), float(mass), float(cost), tuple(names[left]))
            for price, new, mask, mass, cost, left in zip(
                prices, entered, masks, accumulate(gains), costs, lefts, strict=True
            )
        ]

    def _left(self, p: Floats, prices: Floats, gains: Floats, entered: Masks, masks: Masks, costs: Floats) -> Masks:
        """Which labels of the unions the S_mu at these prices do not hold.

        Two neighbouring S_mu are equally good at the price of the step, so nested ones pay no more for a step than its
        mass is worth; and as long as no more is paid the unions are as good as the S_mu, for they start as S_0.
        """
        left = np.zeros_like(masks)
        worth = prices * gains
        dear = np.diff(costs, prepend=costs[0]) > worth + _ROUNDING * (np.abs(costs) + worth)
        if dear.any():
            best = BestSets(self.loss)
            for i in range(int(dear.argmax()), len(prices)):
                left[i] = masks[i] & ~best.at(p, float(prices[i]), entered[i])
        return left

    def _scores(self, P: Probabilities) -> Floats:
        return self._prices.scores(P)

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        if isinstance(self._prices, Quick):
            return self._prices.score_of(P, y)
        return super()._score_of(P, y)

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        if isinstance(self._prices, Quick) and tau.shape[1] == 1:  # else by class
            return self._prices.sets(P, tau[:, 0])
        return super()._sets(P, tau)


class Solved:
    """By integer programs, for what has no better way."""

    def __init__(self, oracle: Oracle) -> None:
        self.scores = oracle.scores
        self.score_of = oracle.score_of
        self._sets = oracle.sets

    def sets(self, P: Probabilities, tau: Floats) -> Masks:
        return self._sets(P, tau[:, None])

    @staticmethod
    def of(loss: Loss) -> Callable[[], Solved]:
        """What makes them; OracleError, when it does, where the loss has no linear form."""
        return partial(Solved._made, loss)

    @staticmethod
    def _made(loss: Loss) -> Solved:
        about = (
            f"oracle 'price': {loss.name!r} has {loss.K} labels and is not seen to be separable, laminar, a tree "
            "diameter with a laminar part, a function of size with label costs, or a cut"
        )
        try:
            oracle = make_oracle("ilp", loss, program="price")
        except OracleError as error:
            raise OracleError(
                f"{about}, and integer programs do not apply: {error}; use 'greedy' or 'penalized'"
            ) from error
        warnings.warn(
            f"{about}: each instance takes some integer programs, from milliseconds to minutes in all; try a few rows "
            "first, or use 'greedy' or 'penalized'",
            stacklevel=4,
        )
        return Solved(oracle)


@dataclass(frozen=True)
class PriceWay:
    """A class of losses: `of` gives what makes its prices, or None where the loss is not seen to be of the class.

    `seconds` is what a row takes, roughly, and is measured by the tests; `exact`: the set at every price is the best.
    """

    algorithm: str
    seconds: Callable[[Loss], float]
    of: Callable[[Loss], Callable[[], Prices] | None]
    exact: bool = True
    solves: bool = False


def _seconds_by_size(loss: Loss) -> float:
    """Label costs that differ make the order depend on the price, and prices are then traced one after the other."""
    form, K = loss.form, loss.K
    differ = form is not None and bool((form.label_costs != form.label_costs[0]).any())
    return 3e-7 * K**2 if differ else 3e-8 * K * max(1.0, math.log2(K))


# Quickest first: the first that takes a loss is the way of `price` for it.
WAYS: tuple[PriceWay, ...] = (
    PriceWay("entry prices of nested categories", lambda loss: 2e-8 * loss.K, LaminarPrices.of),
    PriceWay("the best set in every ball of the tree", lambda loss: 5e-8 * loss.K, TreePrices.of),
    PriceWay("the best set of every size", _seconds_by_size, SizePrices.of),
    PriceWay("minimum cuts", lambda loss: 8e-7 * loss.K**2, CutPrices.of),
    PriceWay("all sets of these few labels", lambda loss: 1e-7 * 2.0**loss.K, Enumeration.of),
    PriceWay("integer programs at rising prices", lambda loss: math.inf, Solved.of, solves=True),
)


def chosen(loss: Loss) -> tuple[PriceWay, Callable[[], Prices]]:
    """The way for a loss, and what makes its prices."""
    return next((way, make) for way in WAYS if (make := way.of(loss)) is not None)
