"""count(F) = number of categories of F that S touches;  count(F, w) = sum of w(C) over those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from udcp_dsl.expression.atoms.atom import Atom, Held, Increment, Sets, fingerprint
from udcp_dsl.expression.attainable import Grid
from udcp_dsl.expression.domain import Bools, Costs, Family, Floats, Ints
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Additive, Weighted
from udcp_dsl.expression.growth import Touches
from udcp_dsl.expression.linear import Affine, Lowering, Push, total
from udcp_dsl.per_row import as_number, sum_where, weighted_sums


class Count(Atom):
    name = "count"
    signatures = (("family",), ("family", "costs of family"))
    always_linear = True

    def __init__(self, K: int, family: Family, costs: Costs | None = None) -> None:
        self.K = K
        self.family = family
        self.weighted = costs is not None
        self.weights: Floats = np.ones(len(family)) if costs is None else costs.values

    @cached_property
    def key(self) -> tuple[object, ...]:
        return (
            self.name,
            fingerprint(self.family.starts),
            fingerprint(self.family.members),
            fingerprint(self.weights),
        )

    @property
    def most(self) -> int | None:
        return None if self.weighted else len(self.family)

    def value(self, S: frozenset[int]) -> float:
        touched = (not S.isdisjoint(self.family.category(i).members.tolist()) for i in range(len(self.family)))
        return float(sum(w for w, there in zip(self.weights, touched, strict=True) if there))

    def _touched(self, sets: Sets) -> Bools:
        return self._touched_by_members(sets) if sets.has_member_list else self._touched_by_mask(sets)

    def batch_by_row(self, sets: Sets, costs: Floats) -> Floats:
        return np.asarray(np.einsum("nc,nc->n", self._touched(sets).astype(np.float64), costs))

    def batch(self, sets: Sets) -> Floats:
        touched = self._touched(sets)
        if self.weighted:
            return weighted_sums(touched, self.weights)  # type: ignore[no-any-return]
        return np.asarray(np.count_nonzero(touched, axis=1), dtype=np.float64)

    def _touched_by_mask(self, sets: Sets) -> Bools:
        # Categories are never empty, so `reduceat` sees one run per category.
        return np.logical_or.reduceat(sets.mask[:, self.family.members], self.family.starts[:-1], axis=1)

    def _touched_by_members(self, sets: Sets) -> Bools:
        n, many = len(sets.mask), len(self.family)
        touched = np.zeros((n, many), dtype=bool)
        rows = np.repeat(np.arange(n) * many, np.diff(sets.offsets))
        for slot in self.slots:
            category = slot[sets.members]
            touched.reshape(-1)[(rows + category)[category < many]] = True
        return touched

    def start(self, held: Held) -> Increment:
        return CountIncrement(held, self.slots, self.weights)

    @cached_property
    def slots(self) -> Ints:
        """The categories of each label, (most categories of a label, K), padded with one that costs nothing."""
        starts, category = self.family.by_label
        many = np.diff(starts)
        slots = np.full((int(many.max(initial=1)), self.K), len(self.family), dtype=np.int64)
        slots[np.arange(len(category)) - np.repeat(starts[:-1], many), np.repeat(np.arange(self.K), many)] = category
        return slots

    def growth(self) -> Touches:
        return Touches(0.0, self.family.starts, self.family.members, self.weights)

    @property
    def interval(self) -> Interval:
        return Interval(sum_where(self.weights, self.weights < 0), sum_where(self.weights, self.weights > 0))

    def proves(self) -> Mapping[str, str]:
        facts: dict[str, str] = {}
        if (self.weights >= 0).all():
            facts["monotone"] = "a larger set touches no fewer categories"
            facts["submodular"] = "a category is paid for once"
        if (self.weights <= 0).all():
            facts["antitone"] = "a larger set touches no fewer categories, and none costs anything"
            facts["supermodular"] = "a category is gained once"
        if self.family.singletons:
            facts["separable"] = "every category is one label"
        return facts

    def lacks(self) -> Mapping[str, str]:
        facts = {"separable": "labels of one category share its cost"}
        if (self.weights < 0).any() and (self.weights > 0).any():
            why = "some categories have a negative cost"
            facts |= {"monotone": why, "submodular": why}
        return facts

    def additive(self) -> Additive:
        categories = [self.family.category(i) for i in range(len(self.family))]
        parts = [Weighted(as_number(w), c.members, c.name) for w, c in zip(self.weights, categories, strict=True)]
        return Additive.of_categories(parts, self.K)

    def probes(self) -> Sequence[int]:
        largest = int(np.diff(self.family.starts).argmax())
        other = 0 if largest else len(self.family) - 1
        return (*self.family.category(largest).members[:2].tolist(), *self.family.category(other).members[:2].tolist())

    def lower(self, model: Lowering, push: Push) -> Affine:
        categories = (self.family.category(i).members for i in range(len(self.family)))
        return total(
            model.any_of(members, push.through_factor(w)) * float(w)
            for members, w in zip(categories, self.weights, strict=True)
            if w != 0
        )

    def grid(self) -> Grid | None:
        return Grid.sums(self.weights) if self.weighted else super().grid()

    def counted(self) -> Ints:
        return np.unique(self.family.members)


class CountIncrement(Increment):
    """`left` is the weight of each category that is not touched yet, and 0 for the others."""

    def __init__(self, held: Held, slots: Ints, weights: Floats) -> None:
        self.held = held
        self.slots = slots
        self.left = np.tile(np.append(weights, 0.0), (len(held.rows), 1))
        self.value = np.zeros(len(held.rows))

    def after(self) -> Floats:
        total: Floats = self.value[:, None] + self.left[:, self.slots[0]]
        for slot in self.slots[1:]:
            total += self.left[:, slot]
        return total

    def push(self, y: Ints) -> None:
        for slot in self.slots:
            category = slot[y]
            self.value = self.value + self.left[self.held.rows, category]
            self.left[self.held.rows, category] = 0.0
