"""Losses for which the cheapest set of a mass needs no solver.

- A count of disjoint categories of equal weight: the heaviest categories, as few as possible.
- The diameter of a tree: every set lies in a ball of its diameter (`prices.regions`), so the smallest ball with the
  mass.
- Any loss of few labels: by rising cost, the first set that has the mass.

Whether a mass is reached is always decided in exact arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from udcp_dsl.expression.domain import TreeMetric
from udcp_dsl.expression.forms import Additive, Weighted, nesting
from udcp_solvers.numeric.arrays import Floats, Indices, Masks
from udcp_solvers.prices.enumeration import Enumeration
from udcp_solvers.prices.regions import tree_of, weights_of
from udcp_solvers.programs.mass import has_mass, units

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Sums and differences of masses in floats are off by far less than this.
_ROUNDING = 1e-9


class Shortcut(Protocol):
    """`cheapest` returns a cheapest set that holds `inside` and has mass t; `description` says how it is found."""

    description: str

    def cheapest(self, p: Floats, t: float, inside: Masks) -> Masks: ...


def shortcut(loss: Loss) -> Shortcut | None:
    """The shortcut for this loss; None if there is none."""
    few = Enumeration.of(loss)
    return _by_form(loss) or (None if few is None else Few(few()))


def _by_form(loss: Loss) -> Shortcut | None:
    form = loss.form
    if form is None or form.of_size is not None:
        return None
    if len(form.diameters) == 1 and not form.categories and not form.label_costs.any():
        ((weight, metric),) = form.diameters.values()
        return Balls(metric) if weight > 0 else None
    return _disjoint(form) if not form.diameters else None


def _disjoint(form: Additive) -> Shortcut | None:
    weights = {part.weight for part in form.categories.values()} | set(form.label_costs[form.label_costs != 0].tolist())
    nested = nesting(form)
    if len(weights) != 1 or min(weights) <= 0 or isinstance(nested[0], Weighted) or max(nested[1], default=-1) >= 0:
        return None
    category = np.full(form.K, -1, dtype=np.int64)
    for i, part in enumerate(form.categories.values()):
        category[part.members] = i
    single = np.flatnonzero(form.label_costs)
    if (category[single] >= 0).any():  # such a label costs more than its category
        return None
    category[single] = len(form.categories) + np.arange(len(single))
    return Disjoint(category)


class Disjoint:
    """Disjoint categories of equal weight; `category` is that of each label, -1 for a label that costs nothing."""

    description = "the heaviest categories, as few as it takes"

    def __init__(self, category: Indices) -> None:
        self._category = category
        self._count = int(category.max()) + 1

    def cheapest(self, p: Floats, t: float, inside: Masks) -> Masks:
        opened = np.zeros(self._count + 1, dtype=bool)  # the last is that of -1
        opened[self._category[inside]] = True
        opened[-1] = True
        missing = units([t]) - units(p[opened[self._category]].tolist())
        if missing > 0:
            masses = {int(c): units(p[self._category == c].tolist()) for c in np.flatnonzero(~opened)}
            for c in sorted(masses, key=lambda c: -masses[c]):
                opened[c] = True
                missing -= masses[c]
                if missing <= 0:
                    break
        return _heaviest(p, t, inside, opened[self._category])


class Balls:
    """Single labels, then the balls of a tree from small to large."""

    description = "the smallest ball of the tree that has the mass"

    def __init__(self, metric: TreeMetric) -> None:
        self._tree, self._metric = tree_of(metric), metric

    def cheapest(self, p: Floats, t: float, inside: Masks) -> Masks:
        """The heaviest labels of the smallest ball that has the mass and holds all of `inside`."""
        count = int(inside.sum())
        if count < 2:
            one = np.zeros(len(p), dtype=bool)
            one[np.where(inside, np.inf, p).argmax()] = True
            if has_mass(p, one, t):
                return one
        diameter, mass = self._tree.balls.diameter, weights_of(self._tree, p)
        fits = (mass >= t - _ROUNDING) & (weights_of(self._tree, inside.astype(np.float64)) == count)
        fitting = np.flatnonzero(fits)
        for b in fitting[np.lexsort((-mass[fitting], diameter[fitting]))]:
            ball = self._labels(int(b))
            if has_mass(p, ball, t):
                return _heaviest(p, t, inside, ball)
        raise AssertionError("the largest ball contains all labels")

    def _labels(self, b: int) -> Masks:
        """The labels that are near enough to the centre, or also to its parent if the middle is the edge above it."""
        nodes, ball, path = self._tree.nodes, self._tree.balls[b], self._metric.hierarchy.path
        depth = int(nodes[ball.centre].depth)
        above = path[self._tree.labels[nodes[nodes[ball.centre].below].leaves], : depth + 1]
        shared = (path[:, : depth + 1] == above).cumsum(axis=1)  # common nodes of both paths from the root
        away = depth + self._metric.leaf_depth + 2 - 2 * shared[:, depth]
        if ball.on_edge:
            away = np.minimum(away, depth + 1 + self._metric.leaf_depth - 2 * shared[:, depth - 1])
        return np.asarray(away <= ball.radius)


class Few:
    """All sets by rising cost, then size."""

    description = "all sets by rising cost"

    def __init__(self, sets: Enumeration) -> None:
        (costs,) = sets.costs
        self._masks = sets.members[np.lexsort((sets.members.sum(axis=1), costs))]
        self._members = self._masks.astype(np.float64)

    def cheapest(self, p: Floats, t: float, inside: Masks) -> Masks:
        fits = (self._members @ p >= t - _ROUNDING) & self._masks[:, inside].all(axis=1)
        return next(self._masks[i].copy() for i in np.flatnonzero(fits) if has_mass(p, self._masks[i], t))


def _heaviest(p: Floats, t: float, inside: Masks, allowed: Masks) -> Masks:
    """`inside` and the heaviest allowed labels, as few as reach mass t; none of them adds to the cost."""
    more = np.flatnonzero(allowed & ~inside)
    more = more[np.argsort(-p[more], kind="stable")]

    def taken(count: int) -> Masks:
        mask = inside.copy()
        mask[more[:count]] = True
        return mask

    low, high = 0, len(more)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if has_mass(p, taken(middle), t) else (middle + 1, high)
    return taken(low)
