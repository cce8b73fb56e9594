"""`price`: the score of y is the lowest price mu of probability at which y is bought. For any loss.

S_mu minimises L(S) - mu p(S); of several minimisers it is the one of largest mass, then of fewest labels, then with the
lexicographically first list of indices. The plain score of y is the least mu >= 0 with y in S_mu.

An anchor m is a price that was found on other rows; let S* = S_m. The score of y in S* is the lowest price at which y
is in the best subset of S*; it is at most m. The score of y outside S* is the lowest price at which y is in the best
superset of S*; it is above m. A row whose plain set at m is already S* keeps its plain scores. So the set at threshold
m is S_m, for any loss. If the S_mu are nested (submodular losses, functions of size), scores do not depend on m.
docs/price-oracle.md has the derivation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from udcp_dsl.diagnostics import OracleError, warn
from udcp_dsl.expression.lower import LoweringError, check_linear
from udcp_dsl.per_row import NotVectorised, as_rows
from udcp_dsl.predict.oracle import (
    Columns,
    Declaration,
    Floats,
    Indices,
    Masks,
    Oracle,
    Probabilities,
    Refusal,
    Way,
    is_number,
    make_oracle,
)
from udcp_solvers.prices.cuts import CutPrices
from udcp_solvers.prices.enumeration import Enumeration
from udcp_solvers.prices.laminar import LaminarPrices
from udcp_solvers.prices.sizes import SizePrices
from udcp_solvers.prices.trees import TreePrices
from udcp_solvers.prices.wholes import WholePrices
from udcp_solvers.search.prices import SearchPrices

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.rows.columns import BlockedMatrix

# Relative rounding error of costs, which are sums.
_ROUNDING = 1e-9
# Costs above this are refused: products of two numbers of 106 bits overflow, and comparisons would never end.
_LARGEST_COST = 1e250
# How many oracles with multipliers are cached: enough for a few alphas.
_MAX_CACHED = 8

S = TypeVar("S", bound=np.generic)


@dataclass(frozen=True)
class SearchReport:
    """Of the last call: how many rows were searched, how many of them are proved best, and the largest gap of the
    others."""

    rows: int
    proved: int
    gap: float


_EMPTY_REPORT = SearchReport(0, 0, 0.0)


@dataclass(frozen=True)
class Step:
    """The set at threshold `price`: labels that entered there, all its labels, its mass and its cost.

    If the S_mu are nested, as for submodular losses, this is S_mu. Otherwise it is the union of the S_mu up to the
    price, and `left` are its labels that are no longer in S_mu.
    """

    price: float
    entered: tuple[str, ...]
    labels: tuple[str, ...]
    mass: float
    cost: float
    left: tuple[str, ...] = ()


class Prices(Protocol):
    """Computes the prices for one class of losses."""

    def scores(self, P: Probabilities, /) -> Floats: ...


@runtime_checkable
class EarlyStoppingPrices(Prices, Protocol):
    """Prices with their own `score_of` and `sets`, which stop early; tau is (n,)."""

    def score_of(self, P: Probabilities, y: Indices, /) -> Floats: ...
    def sets(self, P: Probabilities, tau: Floats, /) -> Masks: ...


def takes_anchor(loss: Loss) -> bool:
    """Whether an anchor can make the sets of a loss cheaper. Not if the S_mu are nested; nor for a tree diameter plus
    equal label costs, where they are nested in about 99 % of rows."""
    loss = loss.of_spec
    form, limits, alike = loss.form, loss.limits, False
    parts = [loss.facts, *(limit.facts for limit in limits)]  # sums keep the facts that all parts have
    if form is not None and not limits:
        alike = bool((form.label_costs == form.label_costs[0]).all())
    nested = all(x.submodular for x in parts) or all(x.cardinality for x in parts)
    nested = nested or bool(loss.facts.tree_diameter and alike)
    return not nested and SearchPrices.of(loss) is not None


def _way(loss: Loss) -> Way | Refusal:
    """The algorithm that the constructor will use; a refusal if that is integer programs and the loss has no linear
    form."""
    found, _ = choose_algorithm(loss)
    if found.solves:
        try:
            check_linear(loss)
        except LoweringError as error:
            return Refusal(str(error), blame=error.span)
    return Way(found.description, found.exact, found.seconds(loss))


class Price(Oracle):
    """One price of probability for all instances: the lowest mean cost at the same coverage.

    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {cat, dog, wolf}  category wild {dog, wolf}  loss l = size + any(wild)")
    >>> udcp.make_oracle("price", loss).scores([[0.5, 0.3, 0.2]])
    array([[2., 6., 6.]])
    """

    name = "price"
    priced = True
    reads = ("anchor",)
    has_best = True
    takes_rows = True
    declaration = Declaration(
        does="the price of probability at which a label is bought, one price for all rows",
        choose_for="lowest mean cost; the default",
        chooses=_way,
        quick_with=("laminar", "tree_diameter"),
        anchored=takes_anchor,
        normalized=False,
        in_threads=True,
    )

    def __init__(self, loss: Loss, *, anchor: float | None = None, exact: bool = False) -> None:
        if anchor is not None and not (is_number(anchor) and anchor >= 0):
            raise OracleError(f"oracle 'price': anchor must be a price of at least 0, not {anchor!r}")
        if not isinstance(exact, bool):
            raise OracleError(f"oracle 'price': exact must be True or False, not {exact!r}")
        super().__init__(loss, anchor=None if anchor is None else float(anchor), exact=exact)
        algorithm, make = choose_algorithm(loss)
        if loss.of_rows and not algorithm.by_row:
            raise NotVectorised(algorithm.description)
        self._prices = make()
        if not isinstance(self._prices, LaminarPrices):
            _refuse_huge_costs(loss)
        self._limited_cache: dict[tuple[float, ...], Price] = {}  # a cache of the last few
        self._reports: dict[int, SearchReport] = {}  # by thread; shared with the oracles in that cache

    @property
    def report(self) -> SearchReport:
        """The search report on this thread's last call to this oracle, with or without multipliers."""
        return self._reports.get(get_ident(), _EMPTY_REPORT)

    @property
    def unproved(self) -> int | None:
        if isinstance(self._prices, ProgramPrices):
            return self._prices.unproved
        return self.report.rows - self.report.proved

    def _in_steps(
        self,
        P: Probabilities | BlockedMatrix,
        columns: Columns,
        answer: Callable[[Probabilities, Columns, slice], NDArray[S]],
    ) -> NDArray[S]:
        return self._with_report(super()._in_steps, P, columns, answer)

    @cached_property
    def _search(self) -> SearchPrices | Enumeration:
        """Finds best sets at a price, and prices with an anchor, for any loss."""
        if isinstance(self._prices, SearchPrices | Enumeration):
            return self._prices
        few = Enumeration.of(self.loss)
        return SearchPrices(self.loss) if few is None else few()

    def with_multipliers(self, multipliers: tuple[float, ...]) -> Price:
        """The oracle for the loss L + sum of nu_j E_j over the limits of the spec; itself if all nu_j are 0."""
        if not any(multipliers):
            return self
        known = self._limited_cache
        made = known.get(multipliers)  # read once: other threads may change the cache
        if made is None:
            made = Price(self.loss.with_multipliers(multipliers), **self.options)  # type: ignore[arg-type]  # as checked
            made._listeners, made._reports = self._listeners, self._reports
            for old in list(known)[: max(0, len(known) + 1 - _MAX_CACHED)]:
                known.pop(old, None)
            known[multipliers] = made
        return made

    def _best(self, P: Probabilities, mu: Floats, anchor: Floats | None = None) -> Masks:
        return self._with_report(self._best_at, P, mu)

    def _best_at(self, P: Probabilities, mu: Floats) -> Masks:
        if self.loss.limits and not takes_anchor(self.loss):  # the S_mu are nested: no search is needed
            return self._sets(P, mu[:, None])
        gaps = np.zeros(len(P))
        return self._record_gaps(self._search.best(P, mu, gaps), gaps)

    def explain(self, p: ArrayLike, scores: Floats | None = None) -> list[Step]:
        """The sets of one row by rising price, from price 0; labels that are never bought are in none.

        `scores` are the scores of the row, if they are already known.
        """
        if scores is None:
            (scores,) = self.scores(np.asarray(p)[None, :])
        exact = np.asarray(p, dtype=np.float64)
        prices = np.unique(np.append(scores[scores < np.inf], 0.0))
        entered = scores == prices[:, None]
        masks = scores <= prices[:, None]
        costs = self.loss.batch(masks)
        gains = [sum(map(Fraction, exact[new].tolist()), Fraction(0)) for new in entered]
        lefts = self._left(exact, prices, np.array(gains, dtype=np.float64), masks, costs)
        names = np.array(self.loss.labels, dtype=object)
        return [
            Step(float(price), tuple(names[new]), tuple(names[mask]), float(mass), float(cost), tuple(names[left]))
            for price, new, mask, mass, cost, left in zip(
                prices, entered, masks, accumulate(gains), self.loss.of_spec.batch(masks), lefts, strict=True
            )
        ]

    def _left(self, p: Floats, prices: Floats, gains: Floats, masks: Masks, costs: Floats) -> Masks:
        """At each price, the labels of the union that are not in S_mu.

        Two neighbouring S_mu are equally good at the price of the step between them. So if they are nested, a step
        costs no more than its mass is worth. As long as no step costs more, the unions are as good as the S_mu, since
        they start as S_0; the S_mu are searched for only from the first step on that costs more.
        """
        left = np.zeros_like(masks)
        worth = prices * gains
        dear = np.diff(costs, prepend=costs[0]) > worth + _ROUNDING * (np.abs(costs) + worth)
        if dear.any() and SearchPrices.of(self.loss) is not None:
            rest = slice(int(dear.argmax()), None)
            # Just above the price of a step, the set after the step is the only best one.
            above = prices[rest] * (1 + _ROUNDING)
            left[rest] = masks[rest] & ~self._search.best(np.broadcast_to(p, (len(above), len(p))).copy(), above)
        return left

    def _scores(self, P: Probabilities, anchor: Floats | None = None) -> Floats:
        anchors, gaps = self._row_anchors(len(P), anchor), np.zeros(len(P))
        if isinstance(self._prices, SearchPrices):
            return self._record_gaps(self._prices.scores(P, anchors, gaps), gaps)
        scores = self._prices.scores(P)
        if anchors is not None:
            rows = self._not_nested(P, scores, anchors)
            gaps = gaps[: len(rows)]
            scores[rows] = self._record_gaps(self._search.take(rows).scores(P[rows], anchors[rows], gaps), gaps)
        return scores

    def _score_of(self, P: Probabilities, y: Indices, anchor: Floats | None = None) -> Floats:
        anchors, gaps = self._row_anchors(len(P), anchor), np.zeros(len(P))
        if isinstance(self._prices, SearchPrices):
            return self._record_gaps(self._prices.score_of(P, y, anchors, gaps), gaps)
        if anchors is None and isinstance(self._prices, EarlyStoppingPrices):
            return self._prices.score_of(P, y)
        return super()._score_of(P, y, **({} if anchor is None else {"anchor": anchor}))

    def _sets(self, P: Probabilities, tau: Floats, anchor: Floats | None = None) -> Masks:
        anchors, gaps = self._row_anchors(len(P), anchor), np.zeros(len(P))
        if tau.shape[1] == 1:  # else one threshold per class
            if isinstance(self._prices, SearchPrices):
                return self._record_gaps(self._prices.sets(P, tau[:, 0], anchors, gaps), gaps)
            if anchors is None and isinstance(self._prices, EarlyStoppingPrices):
                return self._prices.sets(P, tau[:, 0])
        return super()._sets(P, tau, **({} if anchor is None else {"anchor": anchor}))

    def _row_anchors(self, n: int, anchors: Floats | None) -> Floats | None:
        """The anchor of each row, below 0 for none; None if no row has an anchor."""
        one = self.options["anchor"]
        if anchors is None and isinstance(one, float):
            anchors = np.full(n, one)
        if anchors is None or not takes_anchor(self.loss) or np.isnan(anchors).all():
            return None
        return np.where(np.isnan(anchors), -1.0, anchors)

    def _not_nested(self, P: Probabilities, scores: Floats, anchors: Floats) -> Indices:
        """The rows whose plain set at the anchor is not the best set at that price."""
        rows = np.flatnonzero(anchors >= 0)
        best = self._search.take(rows).best(P[rows], anchors[rows])
        other: Indices = rows[(best != (scores[rows] <= anchors[rows, None])).any(axis=1)]
        return other

    def _with_report(self, call: Callable[..., NDArray[S]], *arguments: Any) -> NDArray[S]:
        """Make a call, which may search several times; warns if some rows are not proved."""
        self._reports[get_ident()] = _EMPTY_REPORT
        answer = call(*arguments)
        if self.report.proved < self.report.rows:
            warn(f"{self._unproved()}; coverage does not depend on it")
        return answer

    def _record_gaps(self, answer: NDArray[S], gaps: Floats) -> NDArray[S]:
        """Add the gaps of a search to the report and return its answer; with exact=True, a gap raises OracleError."""
        proved, gap, before = int((gaps == 0).sum()), float(gaps.max(initial=0.0)), self.report
        self._reports[get_ident()] = SearchReport(before.rows + len(gaps), before.proved + proved, max(before.gap, gap))
        if self.options["exact"] and proved < len(gaps):
            raise OracleError(f"{self._unproved()}: leave out exact=True to accept them, or simplify the loss")
        return answer

    def _unproved(self) -> str:
        rows, gap = self.report.rows, self.report.gap
        return (
            f"oracle 'price': {rows - self.report.proved} of {rows} rows used up their search budget; their sets "
            f"may cost more than the best ones by up to {gap:.3g}"
        )


def _refuse_huge_costs(loss: Loss) -> None:
    """Refuse a loss of which some part may be larger than can be compared exactly."""
    for node in loss.expression.nodes:
        largest = max(float(np.abs(as_rows(end)).max()) for end in loss.facts_of(node).interval)
        if largest > _LARGEST_COST:
            raise OracleError(
                f"oracle 'price': {node.text!r} may reach {largest:.3g}; costs of at most {_LARGEST_COST:g} can be "
                "compared exactly: write costs in a larger unit"
            )


class ProgramPrices:
    """Prices by integer programs, for losses that no other algorithm supports."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.scores = oracle.scores
        self.score_of = oracle.score_of
        self._sets = oracle.sets

    @property
    def unproved(self) -> int | None:
        return self._oracle.unproved

    def sets(self, P: Probabilities, tau: Floats) -> Masks:
        return self._sets(P, tau[:, None])

    @staticmethod
    def of(loss: Loss) -> Callable[[], ProgramPrices]:
        """A constructor of the prices; it raises OracleError if the loss has no linear form."""
        return partial(ProgramPrices._build, loss)

    @staticmethod
    def _build(loss: Loss) -> ProgramPrices:
        about = (
            f"oracle 'price': {loss.name!r} has {loss.K} labels and is not recognised as separable, laminar, a tree "
            "diameter with a laminar part, a function of size with label costs, or a cut"
        )
        try:
            oracle = make_oracle("ilp", loss, program="price")
        except OracleError as error:
            raise OracleError(
                f"{about}, and integer programs do not apply: {error}; use 'greedy' or 'penalized'"
            ) from error
        warn(
            f"{about}: each row needs several integer programs, milliseconds to minutes in all; try a few rows "
            "first, or use 'greedy' or 'penalized'"
        )
        return ProgramPrices(oracle)


@dataclass(frozen=True)
class PriceAlgorithm:
    """An algorithm for a class of losses. `of` returns a constructor of the prices, or None if the loss is not known to
    be in the class.

    `seconds`: rough time per row, measured by the tests; `exact`: the set at every price is the best one.
    """

    description: str
    seconds: Callable[[Loss], float]
    of: Callable[[Loss], Callable[[], Prices] | None]
    exact: bool = True
    solves: bool = False
    by_row: bool = False  # whether it supports numbers that differ by row


def _seconds_by_size(loss: Loss) -> float:
    """The time per row: if label costs differ, the order depends on the price, and the hull has to be traced."""
    form, K = loss.form, loss.K
    differ = form is not None and bool((form.label_costs != form.label_costs[0]).any())
    return 3e-7 * K**2 if differ else 3e-8 * K * max(1.0, math.log2(K))


# Fastest first: `price` uses the first algorithm that supports the loss.
ALGORITHMS: tuple[PriceAlgorithm, ...] = (
    PriceAlgorithm("entry prices of nested categories", lambda loss: 2e-8 * loss.K, LaminarPrices.of, by_row=True),
    PriceAlgorithm("the best set in every ball of the tree", lambda loss: 5e-8 * loss.K, TreePrices.of),
    PriceAlgorithm("closing prices of nodes, from the labels up", lambda loss: 2e-7 * loss.K, WholePrices.of),
    PriceAlgorithm("the best set of every size", _seconds_by_size, SizePrices.of, by_row=True),
    PriceAlgorithm("minimum cuts", lambda loss: 8e-7 * loss.K**2, CutPrices.of, by_row=True),
    PriceAlgorithm("all sets of these few labels", lambda loss: 3e-7 * 2.0**loss.K, Enumeration.of, by_row=True),
    PriceAlgorithm(
        "branch and bound, with a search budget per row", lambda loss: 1e-4 * loss.K, SearchPrices.of, by_row=True
    ),
    PriceAlgorithm("integer programs at rising prices", lambda loss: math.inf, ProgramPrices.of, solves=True),
)


def choose_algorithm(loss: Loss) -> tuple[PriceAlgorithm, Callable[[], Prices]]:
    """The algorithm for a loss, and the constructor of its prices."""
    return next((algorithm, make) for algorithm in ALGORITHMS if (make := algorithm.of(loss)) is not None)
