"""Prices under a laminar loss: L = sum of w_C any(C) over a forest of categories, w_C >= 0, + label costs l(y).

Category C is entered at the least mu >= 0 at which some set inside C has cost <= mu * mass with mass > 0 (or cost < 0),
the cost of C and of the categories within it included. This entry price is the least ratio of cost to mass. Newton's
(Dinkelbach's) steps find it: take all that pays at the ratio of some set, then go on with the ratio of what was taken,
until it no longer falls. A label is bought at the largest price on its path: its own l / p and the entry prices of the
categories around it.

Nothing is subtracted, so small probabilities keep their digits. `scores`, `score_of` and `sets` call the same code, so
they agree to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.expression.forms import Additive, Weighted, nesting
from udcp_dsl.per_row import array_of, as_rows
from udcp_solvers.numeric.arrays import Floats, Indices, Ints, Masks, Probabilities, Row
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.compiled import over_rows

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@dataclass(frozen=True)
class Forest:
    """Categories in preorder; the labels of category c are consecutive in `labels`: `labels[low[c]:high[c]]`.

    The categories below c are c + 1 .. last[c] - 1; `top` is the outermost category of each label, -1 for none.
    """

    labels: Ints
    costs: Floats
    weight: Floats
    low: Ints
    high: Ints
    last: Ints
    top: Ints

    @staticmethod
    def of(form: Additive) -> Forest | None:
        """The forest of a laminar form; None if two categories cross or one has a negative weight."""
        nested = nesting(form)
        if isinstance(nested[0], Weighted) or any(part.weight < 0 for part in form.categories.values()):
            return None
        parts, parents = nested
        assert isinstance(parts, list)
        assert isinstance(parents, list)
        K = form.K
        children: list[list[int]] = [[] for _ in parts]
        innermost = np.full(K, -1, dtype=np.int64)
        for index, (part, parent) in enumerate(zip(parts, parents, strict=True)):
            if parent >= 0:
                children[parent].append(index)
            innermost[part.members] = index
        own: list[list[int]] = [[] for _ in parts]
        for y in range(K):
            if innermost[y] >= 0:
                own[innermost[y]].append(y)
        labels: list[int] = []
        low, high, last = ([0] * len(parts) for _ in range(3))
        weights: list[float] = [0.0] * len(parts)
        top = np.full(K, -1, dtype=np.int64)
        number = 0
        # A category is visited twice: on the way in it gets its number, on the way out its end.
        stack = [(index, False) for index in reversed(range(len(parts))) if parents[index] < 0]
        numbers: dict[int, int] = {}
        while stack:
            index, done = stack.pop()
            if done:
                c = numbers[index]
                high[c], last[c] = len(labels), number
                continue
            numbers[index] = c = number
            number += 1
            low[c], weights[c] = len(labels), parts[index].weight
            labels.extend(own[index])
            if parents[index] < 0:
                top[parts[index].members] = c
            stack.append((index, True))
            stack.extend((child, False) for child in reversed(children[index]))
        labels.extend(np.flatnonzero(innermost < 0).tolist())
        order = np.array(labels, dtype=np.int64)
        lows, highs, lasts = (np.array(x, dtype=np.int64) for x in (low, high, last))
        return Forest(
            labels=order,
            costs=form.label_costs[order],
            weight=array_of(weights),
            low=lows,
            high=highs,
            last=lasts,
            top=top,
        )


class ForestArrays(NamedTuple):
    """The arrays of a forest; costs (r, K) and weights (r, C) have one row if all rows share them."""

    labels: Ints
    costs: Floats
    weight: Floats
    low: Ints
    high: Ints
    last: Ints


class PricedForest(NamedTuple):
    """A forest for one row: costs, p and prices of labels, by place; weights and entry prices of categories."""

    costs: Floats
    weight: Floats
    low: Ints
    high: Ints
    last: Ints
    p: Floats
    price: Floats
    entry_price: Floats


# p, prices and entry prices of a row.
RowArrays = tuple[Floats, Floats, Floats]


class LaminarPrices:
    """Computes the prices of the labels of each row under one loss."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest

    @staticmethod
    def of(loss: Loss) -> Callable[[], LaminarPrices] | None:
        """A constructor of the prices; None if the loss is not laminar."""
        form = loss.form
        if form is None or form.diameters or form.of_size is not None:
            return None
        forest = Forest.of(form)
        return None if forest is None else partial(LaminarPrices, forest)

    def scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        self._over(_scores, P, out)
        return out

    def score_of(self, P: Probabilities, y: Indices) -> Floats:
        """The prices of the labels y; only the tree of categories around y is looked at."""
        out = np.empty(len(P))
        position = np.empty(P.shape[1], dtype=np.int64)
        position[self._forest.labels] = np.arange(P.shape[1])
        self._over(_score_of, P, position[y], self._forest.top[y], out)
        return out

    def sets(self, P: Probabilities, tau: Floats) -> Masks:
        out = np.empty(P.shape, dtype=np.bool_)
        self._over(_sets, P, np.array(tau), out)
        return out

    def _over(self, kernel: Callable[..., None], P: Probabilities, *rest: NDArray[Any]) -> None:
        (n, K), C = P.shape, len(self._forest.low)
        arrays = _arrays(self._forest)

        def block(start: int, stop: int) -> None:
            """Call the kernel on a block of rows, with its own arrays."""
            kernel(start, stop, P, arrays, (np.empty(K), np.empty(K), np.empty(C)), *rest)

        over_rows(block, n, K)


def _arrays(forest: Forest) -> ForestArrays:
    costs, weight = (np.ascontiguousarray(as_rows(x)) for x in (forest.costs, forest.weight))
    return ForestArrays(forest.labels, costs, weight, forest.low, forest.high, forest.last)


@jit
def own_price(cost: float, p: float) -> float:
    """The price at which a label pays for itself: 0 if it is a gain, or free with p > 0; else l / p, infinite if p =
    0."""
    if cost < 0.0 or (cost == 0.0 and p > 0.0):
        return 0.0
    return cost / p if p > 0.0 else np.inf


@jit
def _forest_of_row(n: int, of: ForestArrays, arrays: RowArrays) -> PricedForest:
    costs, weight = of.costs[n % len(of.costs)], of.weight[n % len(of.weight)]
    return PricedForest(costs, weight, of.low, of.high, of.last, arrays[0], arrays[1], arrays[2])


@jit
def _load_row(row: Row, labels: Ints, start: int, stop: int, at: PricedForest) -> None:
    for i in range(start, stop):
        at.p[i] = row[labels[i]]
        at.price[i] = own_price(at.costs[i], at.p[i])


@jit
def _entry_price(c: int, at: PricedForest) -> float:
    """The entry price of category c, given the prices of its labels and of entering the categories within it."""
    mu = np.inf
    weight, entry_price, low, high = at.weight, at.entry_price, at.low[c], at.high[c]
    costs, p, price = at.costs[low:high], at.p[low:high], at.price[low:high]
    while True:
        # What pays at less than mu, and what pays at mu itself.
        cost, mass = weight[c], 0.0
        more, more_mass = 0.0, 0.0
        for i in range(len(p)):
            # Without branches, many of which would be mispredicted.
            below, equal = price[i] < mu, price[i] == mu
            cost += costs[i] if below else 0.0
            mass += p[i] if below else 0.0
            more += costs[i] if equal else 0.0
            more_mass += p[i] if equal else 0.0
        for d in range(c + 1, at.last[c]):
            if entry_price[d] < mu:
                cost += weight[d]
            elif entry_price[d] == mu:
                more += weight[d]
        if cost < 0.0:
            return 0.0
        best = mu
        if mass > 0.0:
            best = cost / mass
        if mu < np.inf and mass + more_mass > 0.0:
            best = min(best, (cost + more) / (mass + more_mass))
        if not best < mu:
            return mu
        mu = best


@jit
def tree_prices(first: int, stop: int, at: PricedForest) -> None:
    """Raise the prices of the labels in categories first .. stop - 1 (whole trees) to the entry prices around them."""
    price, entry_price = at.price, at.entry_price
    for c in range(stop - 1, first - 1, -1):
        mu = _entry_price(c, at)
        entry_price[c] = mu
        for i in range(at.low[c], at.high[c]):
            price[i] = max(price[i], mu)
        for d in range(c + 1, at.last[c]):
            entry_price[d] = max(entry_price[d], mu)


@jit
def _scores(start: int, stop: int, P: Probabilities, of: ForestArrays, arrays: RowArrays, out: Floats) -> None:
    K, C = P.shape[1], of.weight.shape[1]
    for n in range(start, stop):
        at = _forest_of_row(n, of, arrays)
        _load_row(P[n], of.labels, 0, K, at)
        tree_prices(0, C, at)
        for i in range(K):
            out[n, of.labels[i]] = at.price[i]


@jit
def _score_of(
    start: int, stop: int, P: Probabilities, of: ForestArrays, arrays: RowArrays, position: Ints, top: Ints, out: Floats
) -> None:
    for n in range(start, stop):
        at = _forest_of_row(n, of, arrays)
        i, c = position[n], top[n]
        if c < 0:
            _load_row(P[n], of.labels, i, i + 1, at)
        else:
            _load_row(P[n], of.labels, of.low[c], of.high[c], at)
            tree_prices(c, of.last[c], at)
        out[n] = at.price[i]


@jit
def _sets(
    start: int, stop: int, P: Probabilities, of: ForestArrays, arrays: RowArrays, tau: Floats, out: Masks
) -> None:
    """The sets at tau; if it is in doubt whether a category is entered, all prices of the row are computed."""
    K, C = P.shape[1], of.weight.shape[1]
    for n in range(start, stop):
        at, mu = _forest_of_row(n, of, arrays), tau[n]
        _load_row(P[n], of.labels, 0, K, at)
        sure = True
        for c in range(C - 1, -1, -1):
            if not _decide_category(c, mu, at):
                sure = False
                break
        if not sure:
            _load_row(P[n], of.labels, 0, K, at)
            tree_prices(0, C, at)
        for i in range(K):
            out[n, of.labels[i]] = at.price[i] <= mu


@jit
def _decide_category(c: int, mu: float, at: PricedForest) -> bool:
    """Decide whether category c is entered at mu: if what pays inside it is worth more than it costs. If not, nothing
    in it is bought. False if this is too close to call."""
    costs, p, price, weight, entry_price = at.costs, at.p, at.price, at.weight, at.entry_price
    cost, gain = weight[c], 0.0
    size = abs(cost)
    for i in range(at.low[c], at.high[c]):
        if price[i] <= mu and price[i] < np.inf:
            cost += costs[i]
            size += abs(costs[i])
            gain += mu * p[i]
    for d in range(c + 1, at.last[c]):
        if entry_price[d] <= mu:
            cost += weight[d]
            size += weight[d]
    if not abs(cost - gain) > 1e-12 * (size + gain):
        return False
    inside = cost <= gain
    if not inside:
        for i in range(at.low[c], at.high[c]):
            price[i] = np.inf
        for d in range(c + 1, at.last[c]):
            entry_price[d] = np.inf
    entry_price[c] = 0.0 if inside else np.inf
    return True
