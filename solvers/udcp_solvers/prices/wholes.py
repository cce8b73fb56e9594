"""Prices if wholes are cheaper: label costs + sum of t_C any(C) - sum of g_C all(C) over a forest, t_C and g_C >= 0.

`nodes(h)` is such a loss: a label costs 1, and a node with n children saves n - 1 if all its labels are in. The loss is
submodular, so the S_mu are nested. For every C of the forest, from inner to outer ones,

    best(C) = min(0, t_C + min(sum of the best inside, all of C - g_C)).

C is *closed*, bought whole, from the price on at which no set A inside it is better: the largest of (cost of C - cost
of A) / (mass of C - mass of A). Newton's steps from below find it; at each price, A is the best set of the parts. C is
*entered* from the least ratio of cost to mass on, found from above as in `laminar`. From inner to outer categories, a
label's price falls to the closing price and rises to the entry price of each. The mass of C minus that of A is summed
over the labels outside A, so that small probabilities keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import CompletedCategories
from udcp_dsl.expression.ir import Add, Leaf, Node, Scale
from udcp_dsl.expression.prove import additive_forms
from udcp_solvers.numeric.arrays import Floats, Ints, Probabilities
from udcp_solvers.numeric.compiled import jit, over_rows
from udcp_solvers.prices.laminar import Forest, own_price

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Costs that differ by less, relative to all that is paid inside a category, are equal.
_ROUNDING = 1e-12


class Closable(NamedTuple):
    """Categories in preorder, as in `Forest`: what touching one costs (`touch`), what having it whole saves (`gain`),
    and what all of it costs without its own touch (`full`). `size` is the sum of the absolute values of the terms of
    `full`."""

    labels: Ints
    costs: Floats
    touch: Floats
    gain: Floats
    full: Floats
    size: Floats
    low: Ints
    high: Ints
    last: Ints


class WholePrices:
    """Computes the prices of the labels of each row under one loss."""

    def __init__(self, form: Additive, gains: dict[bytes, Weighted], forest: Forest) -> None:
        many = len(forest.weight)
        gain, full, size = np.zeros(many), np.zeros(many), np.zeros(many)
        for c in range(many):
            members = np.sort(forest.labels[forest.low[c] : forest.high[c]])
            whole = gains.get(members.tobytes())
            gain[c] = 0.0 if whole is None else whole.weight
        for c in range(many):
            costs, inside = form.label_costs[forest.labels[forest.low[c] : forest.high[c]]], slice(c, forest.last[c])
            full[c] = costs.sum() + forest.weight[inside].sum() - forest.weight[c] - gain[inside].sum()
            size[c] = np.abs(costs).sum() + forest.weight[inside].sum() + gain[inside].sum()
        self._closable = Closable(
            labels=forest.labels, costs=forest.costs, touch=forest.weight, gain=gain, full=full, size=size,
            low=forest.low, high=forest.high, last=forest.last,
        )  # fmt: skip

    @staticmethod
    def of(loss: Loss) -> Callable[[], WholePrices] | None:
        """A constructor of the prices; None if the loss is not such a sum, or its categories cross."""
        found = _collected(loss)
        if found is None:
            return None
        form, gains = found
        every = {key: Weighted(0.0, part.members, part.name) for key, part in gains.items()} | dict(form.categories)
        forest = Forest.of(Additive(form.constant, form.label_costs, every))
        return None if forest is None else partial(WholePrices, form, gains, forest)

    def scores(self, P: Probabilities) -> Floats:
        out = np.empty(P.shape)
        over_rows(_scores, *P.shape, P, self._closable, out)
        return out


def _collected(loss: Loss) -> tuple[Additive, dict[bytes, Weighted]] | None:
    """Label costs and categories, and the gains of wholes, keyed by members; None if there is anything else."""
    forms = additive_forms(loss.expression)
    total, wholes = Additive.of_constant(0.0, loss.K), list[Weighted]()
    waiting: list[tuple[Node, float]] = [(loss.expression.root, 1.0)]
    while waiting:
        node, factor = waiting.pop()
        form = forms[id(node)]
        if form is not None and not form.diameters and form.of_size is None:
            total = total.plus(form.times(factor))
        elif isinstance(node, Add):
            waiting += [(term, factor) for term in node.terms]
        elif isinstance(node, Scale):
            waiting.append((node.operand, factor * node.factor))
        elif isinstance(node, Leaf) and isinstance(found := node.atom.entries(), CompletedCategories):
            total = total.plus(Additive.of_labels(factor * found.numbers))
            weights = (-factor * found.weights).tolist()
            wholes += [Weighted(w, m, node.text) for w, m in zip(weights, found.members, strict=True)]
        else:
            return None
    merged = Additive.of_categories(wholes, loss.K)
    if any(part.weight < 0 for part in (*merged.categories.values(), *total.categories.values())):
        return None
    labels = total.label_costs - merged.label_costs
    return Additive(total.constant, labels, total.categories), dict(merged.categories)


@jit
def _cost(
    c: int, mu: float, own: int, parts: Closable, price: Floats, touch_price: Floats, whole_price: Floats
) -> float:
    """The cost of the labels of c that are bought at mu, without its own touch; `own` = 1 leaves out its own gain,
    too."""
    cost = 0.0
    for i in range(parts.low[c], parts.high[c]):
        cost += parts.costs[i] if price[i] <= mu else 0.0
    for d in range(c + own, parts.last[c]):
        cost -= parts.gain[d] if whole_price[d] <= mu else 0.0
        cost += parts.touch[d] if touch_price[d] <= mu and d > c else 0.0
    return cost


@jit
def _closing_price(
    c: int, parts: Closable, p: Floats, price: Floats, touch_price: Floats, whole_price: Floats
) -> float:
    """The lowest price at which all of c is better than the best of its parts; infinite if it never is."""
    mu = 0.0
    while True:
        # Include what is bought within rounding of this price, which may be the very price at which c closes.
        at, left = mu * (1.0 + _ROUNDING), 0.0
        for i in range(parts.low[c], parts.high[c]):
            left += p[i] if price[i] > at else 0.0
        more = parts.full[c] - _cost(c, at, 1, parts, price, touch_price, whole_price)
        if not left > 0.0:
            # Labels without mass are bought with the whole only if that is cheaper.
            return mu if more < -_ROUNDING * parts.size[c] else np.inf
        if not more > mu * left:
            return mu
        risen = more / left
        if not risen > mu:
            return mu
        mu = risen


@jit
def _entry_price(c: int, parts: Closable, p: Floats, price: Floats, touch_price: Floats, whole_price: Floats) -> float:
    """The lowest price at which something inside c also pays for the touch of c."""
    mu = np.inf
    most = 0.0
    for i in range(parts.low[c], parts.high[c]):
        most = max(most, price[i] if price[i] < np.inf else 0.0)
    at = most
    while True:
        mass = 0.0
        for i in range(parts.low[c], parts.high[c]):
            mass += p[i] if price[i] <= at else 0.0
        cost = parts.touch[c] + _cost(c, at, 0, parts, price, touch_price, whole_price)
        if cost < 0.0:
            return 0.0
        fallen = cost / mass if mass > 0.0 else np.inf
        if not fallen < mu:
            return mu
        mu = at = fallen


@jit
def _scores(start: int, stop: int, P: Probabilities, parts: Closable, out: Floats) -> None:
    K, C = P.shape[1], len(parts.touch)
    p, price, touch_price, whole_price = np.empty(K), np.empty(K), np.empty(C), np.empty(C)
    for n in range(start, stop):
        for i in range(K):
            p[i] = P[n, parts.labels[i]]
            price[i] = own_price(parts.costs[i], p[i])
        for c in range(C - 1, -1, -1):
            closes = _closing_price(c, parts, p, price, touch_price, whole_price) if parts.gain[c] > 0.0 else np.inf
            for i in range(parts.low[c], parts.high[c]):
                price[i] = min(price[i], closes)
            for d in range(c + 1, parts.last[c]):
                touch_price[d] = min(touch_price[d], closes)
                whole_price[d] = min(whole_price[d], closes)
            touch_price[c], whole_price[c] = np.inf, 0.0
            for i in range(parts.low[c], parts.high[c]):
                touch_price[c] = min(touch_price[c], price[i])
                whole_price[c] = max(whole_price[c], price[i])
            if parts.touch[c] > 0.0:
                enters = _entry_price(c, parts, p, price, touch_price, whole_price)
                for i in range(parts.low[c], parts.high[c]):
                    price[i] = max(price[i], enters)
                for d in range(c, parts.last[c]):
                    touch_price[d] = max(touch_price[d], enters)
                    whole_price[d] = max(whole_price[d], enters)
        for i in range(K):
            out[n, parts.labels[i]] = price[i]
