"""nodes(h) = the fewest nodes of h, labels included, whose leaves together are exactly S: "all mammals, and trout".

They are the topmost of the nodes that lie wholly inside S. Each label of S counts 1, and an inner node wholly inside S
replaces its children: nodes(h) = |S| - the sum of (children - 1) over these inner nodes. The root counts as a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Floats, Hierarchy, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import CompletedCategories
from udcp_dsl.expression.linear import Affine, Lowering, Push, total

_PROBED = 6


class Nodes(Atom):
    name = "nodes"
    signatures = (("hierarchy",),)
    always_linear = True

    def __init__(self, K: int, hierarchy: Hierarchy) -> None:
        self.K = K
        self.hierarchy = hierarchy

    @property
    def key(self) -> tuple[object, ...]:
        return (self.name, id(self.hierarchy))

    def value(self, S: frozenset[int]) -> float:
        tree = self.hierarchy
        inside = {v for v in range(len(tree.names)) if S.issuperset(tree.members(v).tolist())}
        return float(sum(v == 0 or int(tree.parent[v]) not in inside for v in inside))

    @cached_property
    def _branching(self) -> Ints:
        """The nodes with several children; one with a single child saves nothing."""
        return np.flatnonzero(self.hierarchy.child_counts > 1)

    @property
    def _saved(self) -> Floats:
        """How many nodes each of them saves when it is wholly inside the set."""
        return (self.hierarchy.child_counts[self._branching] - 1).astype(np.float64)

    def batch(self, sets: Sets) -> Floats:
        return sets.size - self.hierarchy.complete_nodes(sets.mask)[:, self._branching] @ self._saved

    def start(self, held: Held) -> Increment:
        return NodesIncrement(held, self.hierarchy)

    def growth(self) -> None:
        return None

    @property
    def interval(self) -> Interval:
        """From the leaves up, the most that a set takes below a node that is not wholly inside it: each child takes 1
        if it is inside, else its own most; if no child can be inside in part, one child is left out."""
        tree = self.hierarchy
        most = np.zeros(len(tree.names), dtype=np.int64)
        parted = np.zeros(len(tree.names), dtype=bool)  # whether a child can be inside in part
        for v in range(len(tree.names) - 1, 0, -1):
            above = tree.parent[v]
            if tree.child_counts[v] and not parted[v]:
                most[v] -= 1
            parted[above] |= most[v] > 0
            most[above] += max(most[v], 1)
        return Interval(0.0, float(max(most[0] - (not parted[0]), 1)))

    def proves(self) -> Mapping[str, str]:
        facts = {"submodular": "it is the size, less what each node saves once the last of its labels is in"}
        if (self._branching == self._branching[:1]).all():
            facts["cardinality"] = "no node but the root has several labels"
        return facts

    def lacks(self) -> Mapping[str, str]:
        why = "the last label of a node makes one node of several"
        return {"monotone": why, "separable": why}

    def additive(self) -> Additive | None:
        if self.K > 2:
            return None
        return Additive.of_categories([Weighted(1.0, np.arange(self.K), self.hierarchy.name)], self.K)

    def probes(self) -> Sequence[int]:
        """Labels of the smallest node with several children, and one label outside it."""
        tree = self.hierarchy
        if not len(self._branching):
            return ()
        v = self._branching[(tree.high - tree.low)[self._branching].argmin()]
        inside = tree.order[tree.low[v] : tree.high[v]]
        beside = np.setdiff1d(np.arange(self.K), inside)
        return [*inside[:_PROBED].tolist(), *beside[:1].tolist()]

    def entries(self) -> CompletedCategories:
        members = tuple(self.hierarchy.members(int(v)) for v in self._branching)
        return CompletedCategories(np.ones(self.K), members, -self._saved)

    def lower(self, model: Lowering, push: Push) -> Affine:
        """A node is wholly inside if its children are, so rows are as short as the list of its children."""
        tree = self.hierarchy
        whole: dict[int, Affine] = {int(v): model.label(y) for y, v in enumerate(tree.leaf)}
        for v in range(len(tree.names) - 1, -1, -1):
            if v not in whole:
                whole[v] = model.all_of([whole[child] for child in tree.children[v]], push.reversed)
        saved = total(whole[int(v)] * float(s) for v, s in zip(self._branching, self._saved, strict=True))
        return model.labels(np.ones(self.K)) - saved

    def grid(self) -> Grid:
        return Grid.of(np.arange(self.interval.hi + 1))


class NodesIncrement(Increment):
    """`missing` is the number of labels that each node still lacks."""

    def __init__(self, held: Held, tree: Hierarchy) -> None:
        self.held = held
        self.tree = tree
        many = np.append(tree.high - tree.low, 0)  # the last is for -1 in `path`: it is never completed
        self.missing: Ints = np.tile(many, (len(held.rows), 1))
        self.saved: Floats = np.append(np.maximum(tree.child_counts - 1, 0), 0).astype(np.float64)
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        saved = np.where(self.missing == 1, self.saved, 0.0)
        added = np.ones(self.held.mask.shape)
        for above in self.tree.path.T:
            added -= saved[:, above]
        return self.value[:, None] + np.where(self.held.mask, 0.0, added)

    def push(self, y: Ints) -> None:
        rows = self.held.rows
        self.value = self.value + 1.0
        for above in self.tree.path[y].T:
            self.value = self.value - np.where(self.missing[rows, above] == 1, self.saved[above], 0.0)
            self.missing[rows, above] -= above >= 0
