"""Losses for which the cheapest set of a mass needs no solver.

Count of disjoint categories of one weight: open those of largest mass, as few as it takes. Diameter of a tree: a set of
diameter D lies in a ball around a node (D even) or an edge (D odd), so look for the smallest ball with the mass. With
down(v, r) the mass of the leaves below v within r edges, full(v, r) that of all leaves within r is
down(v, r) + full(parent, r - 1) - down(v, r - 2), and a ball around the edge above v has
down(v, r) + full(parent, r) - down(v, r - 1). Few labels, any loss: all sets by rising cost, and the first that has the
mass. Whether a mass is reached is always decided in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from udcp_dsl.expression.domain import TreeMetric, numbered_sets
from udcp_dsl.expression.forms import Additive, Weighted, nesting
from udcp_solvers.numeric.arrays import Floats, Indices, Masks
from udcp_solvers.programs.mass import has_mass, units

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Sums and differences of masses in floats are off by far less than this.
_ROUNDING = 1e-9
# The most labels for which all sets are looked at: quicker than any solver, and 4,096 costs to hold.
MOST = 12


class Shortcut(Protocol):
    """`cheapest` is a set of least cost among those that hold `inside` and have mass t; `words` say how it is found."""

    words: str

    def cheapest(self, p: Floats, t: float, inside: Masks) -> Masks: ...


def shortcut(loss: Loss) -> Shortcut | None:
    """The way around a solver for this loss, where there is one."""
    return _by_form(loss) or (Few(loss) if loss.K <= MOST else None)


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
    alone = np.flatnonzero(form.label_costs)
    if (category[alone] >= 0).any():  # such a label costs more than its category
        return None
    category[alone] = len(form.categories) + np.arange(len(alone))
    return Disjoint(category)


class Disjoint:
    """Every category costs the same, once; `category` is that of each label, -1 for a label that costs nothing."""

    words = "the heaviest categories, as few as it takes"

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
    """The balls of a tree, from small to large: all of them, also those that are not as wide as they may be (unlike
    `prices.regions`), as their masses come from those of the next smaller ones."""

    words = "the smallest ball of the tree that has the mass"

    def __init__(self, metric: TreeMetric) -> None:
        tree = metric.hierarchy
        self._leaf = tree.leaf
        self._parent = np.maximum(tree.parent, 0)
        self._nodes = len(tree.parent)
        self._is_root = tree.parent < 0

    def cheapest(self, p: Floats, t: float, inside: Masks) -> Masks:
        """A ball that holds `inside` has as many of its labels as there are."""
        wanted = float(inside.sum())
        counts = self._sizes(inside.astype(np.float64))
        for D, mass in enumerate(self._sizes(p)):
            fits = mass >= t - _ROUNDING
            if wanted:
                fits &= next(counts) == wanted
            near = np.flatnonzero(fits)
            for v in near[np.argsort(-mass[near], kind="stable")]:
                ball = self._ball(int(v), D)
                if has_mass(p, ball, t):
                    return _heaviest(p, t, inside, ball)
        raise AssertionError("the largest ball holds all labels")

    def _sizes(self, weights: Floats) -> Iterator[Floats]:
        """For D = 0, 1, 2, ...: the weight of the ball of that diameter around each node, or the edge above it."""
        none = np.zeros(self._nodes)
        leaves = none.copy()
        leaves[self._leaf] = weights
        # down(v, r) and full(v, r), for the r at hand and the one or two before.
        down, before, full = leaves, none, leaves
        earlier = none
        for _ in range(self._nodes):
            yield full
            yield np.where(self._is_root, full, down + full[self._parent] - before)
            below = np.bincount(self._parent[~self._is_root], down[~self._is_root], self._nodes)
            earlier, before, down = before, down, leaves + below
            full = np.where(self._is_root, down, down + full[self._parent] - earlier)

    def _ball(self, v: int, D: int) -> Masks:
        """The labels within D // 2 edges of node v, or if D is odd of v or its parent."""
        reached = np.zeros(self._nodes, dtype=bool)
        reached[v] = True
        if D % 2:
            reached[self._parent[v]] = True
        for _ in range(D // 2):
            grown = reached | reached[self._parent]
            grown[self._parent[reached]] = True
            reached = grown
        return np.asarray(reached[self._leaf])


class Few:
    """All sets by rising cost, then size; a set is a number whose bit y says whether label y is in it."""

    words = "all sets by rising cost"

    def __init__(self, loss: Loss) -> None:
        numbers = np.arange(1 << loss.K)
        masks = numbered_sets(numbers, loss.K)
        order = np.lexsort((masks.sum(axis=1), loss.batch(masks)))
        self._numbers, self._masks, self._members = numbers[order], masks[order], masks[order].astype(np.float64)

    def cheapest(self, p: Floats, t: float, inside: Masks) -> Masks:
        held = (1 << np.flatnonzero(inside)).sum()
        fits = (self._members @ p >= t - _ROUNDING) & (self._numbers & held == held)
        return next(self._masks[i].copy() for i in np.flatnonzero(fits) if has_mass(p, self._masks[i], t))


def _heaviest(p: Floats, t: float, inside: Masks, allowed: Masks) -> Masks:
    """`inside` and the heaviest of the labels that are allowed, as few as it takes: none of them costs more."""
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
