"""The additive form of a loss, where it has one, and what follows from it.

L(S) = constant + sum of l(y) over S + sum of w_C any(C) + sum of w_h diameter(h) + f(|S|).
The separable, laminar and tree-diameter oracles read their numbers from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from udcp_dsl.diagnostics import Span
from udcp_dsl.expression.domain import Floats, Ints, TreeMetric
from udcp_dsl.expression.facts import Fact, Interval, proved, unknown, when


@dataclass(frozen=True, eq=False)
class Weighted:
    """`weight` paid once if the set touches any of `members`."""

    weight: float
    members: Ints
    name: str


@dataclass(frozen=True, eq=False)
class Additive:
    """The parts of the form; categories are merged by members, those of one label are label costs."""

    constant: float
    label_costs: Floats
    categories: Mapping[bytes, Weighted] = field(default_factory=dict)
    diameters: Mapping[int, tuple[float, TreeMetric]] = field(default_factory=dict)  # by hierarchy, weight per edge
    of_size: Floats | None = None  # (K + 1,), zero at 0

    @property
    def K(self) -> int:
        return len(self.label_costs)

    @staticmethod
    def of_constant(value: float, K: int) -> Additive:
        return Additive(value, np.zeros(K))

    @staticmethod
    def of_labels(costs: Floats) -> Additive:
        return Additive(0.0, costs.astype(np.float64))

    @staticmethod
    def of_categories(parts: list[Weighted], K: int) -> Additive:
        labels = np.zeros(K)
        categories: dict[bytes, Weighted] = {}
        for part in parts:
            if len(part.members) == 1:
                labels[part.members[0]] += part.weight
            elif len(part.members) and part.weight != 0:
                _merge(categories, part)
        return Additive(0.0, labels, categories)

    def plus(self, other: Additive) -> Additive:
        categories = dict(self.categories)
        for part in other.categories.values():
            _merge(categories, part)
        diameters = dict(self.diameters)
        for key, (weight, metric) in other.diameters.items():
            diameters[key] = (diameters.get(key, (0.0, metric))[0] + weight, metric)
        sizes = [f for f in (self.of_size, other.of_size) if f is not None]
        return Additive(
            self.constant + other.constant,
            self.label_costs + other.label_costs,
            {key: part for key, part in categories.items() if part.weight != 0},
            {key: part for key, part in diameters.items() if part[0] != 0},
            np.sum(sizes, axis=0) if sizes else None,
        )

    def times(self, factor: float) -> Additive:
        if factor == 0:
            return Additive.of_constant(0.0, self.K)
        return Additive(
            factor * self.constant,
            factor * self.label_costs,
            {k: Weighted(factor * c.weight, c.members, c.name) for k, c in self.categories.items()},
            {k: (factor * weight, metric) for k, (weight, metric) in self.diameters.items()},
            None if self.of_size is None else factor * self.of_size,
        )

    @property
    def separable(self) -> bool:
        return not self.categories and not self.diameters and self.of_size is None

    def __call__(self, S: set[int] | frozenset[int]) -> float:
        """The value on a set, term by term: for tests and explanations."""
        total = self.constant + sum(float(self.label_costs[y]) for y in S)
        total += sum(c.weight for c in self.categories.values() if not S.isdisjoint(c.members.tolist()))
        for weight, metric in self.diameters.values():
            total += weight * max((metric.between(a, b) / metric.edge for a in S for b in S), default=0.0)
        return total + (0.0 if self.of_size is None else float(self.of_size[len(S)]))


def touched(form: Additive | None) -> Ints | None:
    """The labels C of a form that is any(C) and nothing else."""
    if form is None or form.constant != 0 or form.diameters or form.of_size is not None:
        return None
    labels = np.flatnonzero(form.label_costs)
    parts = [Weighted(float(form.label_costs[y]), labels, "") for y in labels] + list(form.categories.values())
    if not parts:
        return labels
    return parts[0].members if len(parts) == 1 and parts[0].weight == 1 else None


def _merge(categories: dict[bytes, Weighted], part: Weighted) -> None:
    key = part.members.tobytes()
    old = categories.get(key)
    categories[key] = part if old is None else Weighted(old.weight + part.weight, part.members, old.name)


def nesting(form: Additive) -> tuple[list[Weighted], list[int]] | tuple[Weighted, Weighted]:
    """The categories from large to small with the index of each one's parent (-1: none), or two that cross.

    Taking the large ones first, a category fits if all its members lie in one and the same innermost category so far.
    """
    ranked = sorted(form.categories.values(), key=lambda part: -len(part.members))
    innermost = np.full(form.K, -1, dtype=np.int64)
    parents: list[int] = []
    for index, part in enumerate(ranked):
        around = innermost[part.members]
        if (around != around[0]).any():
            return ranked[int(around.max())], part
        parents.append(int(around[0]))
        innermost[part.members] = index
    return ranked, parents


def structure(
    form: Additive | None, facts: Mapping[str, Fact], blame: Span | None
) -> tuple[dict[str, Fact], Interval | None]:
    """What the additive form proves beyond the rules of the operators, and a tighter interval where it has one."""
    if form is None:
        missing = unknown("a part is not a sum of label costs, weighted categories and tree diameters", blame)
        return {"laminar": missing, "tree_diameter": missing}, None
    more: dict[str, Fact] = {}
    weights = np.array([part.weight for part in form.categories.values()])
    labels = form.label_costs
    crossing = nesting(form)
    nested = _nested(form, weights, crossing, blame)
    if form.diameters or form.of_size is not None:
        what = "a diameter" if form.diameters else "a function of size"
        more["laminar"] = unknown(f"beside label costs and categories there is {what}", blame)
    else:
        more["laminar"] = nested
    more["tree_diameter"] = _one_diameter(form, nested, blame)
    least, most = _gains(form)
    if (least >= 0).all():
        more["monotone"] = facts["monotone"] or proved("no label can lower it, whatever the set")
    if (most <= 0).all():
        more["antitone"] = facts["antitone"] or proved("no label can raise it, whatever the set")
    if form.diameters:
        return more, None
    if (labels == labels[0]).all() and all(len(part.members) == form.K for part in form.categories.values()):
        more["cardinality"] = facts["cardinality"] or proved("every label adds the same")
    sizes = np.zeros(1) if form.of_size is None else form.of_size
    parts = np.concatenate([labels, weights])
    interval = Interval(
        form.constant + float(parts[parts < 0].sum() + sizes.min()),
        form.constant + float(parts[parts > 0].sum() + sizes.max()),
    )
    if form.separable:
        more["separable"] = facts["separable"] or proved("label costs and a constant are all that is left of it")
    if form.of_size is None and (weights >= 0).all():
        more["submodular"] = facts["submodular"] or proved("label costs and nonnegative weights on categories")
    if form.of_size is None and (weights <= 0).all():
        more["supermodular"] = facts["supermodular"] or proved("label costs and nonpositive weights on categories")
    return more, interval


def _gains(form: Additive) -> tuple[Floats, Floats]:
    """The least and the most that each label can add to a set: a category is paid with its first label, or was."""
    least, most = form.label_costs.copy(), form.label_costs.copy()
    for part in form.categories.values():
        (least if part.weight < 0 else most)[part.members] += part.weight
    if form.of_size is not None:
        steps = np.diff(form.of_size)
        least, most = least + steps.min(), most + steps.max()
    for weight, _ in form.diameters.values():
        least, most = (least, most + np.inf) if weight > 0 else (least - np.inf, most)
    return least, most


def _nested(
    form: Additive,
    weights: Floats,
    crossing: tuple[list[Weighted], list[int]] | tuple[Weighted, Weighted],
    blame: Span | None,
) -> Fact:
    if (weights < 0).any():
        return unknown("a category has a negative weight", blame)
    if isinstance(crossing[0], Weighted) and isinstance(crossing[1], Weighted):
        return unknown(f"categories {crossing[0].name} and {crossing[1].name} overlap, neither inside the other", blame)
    many = len(form.categories)
    return proved(f"label costs and {many} nested or disjoint categories" if many else "label costs alone")


def _one_diameter(form: Additive, nested: Fact, blame: Span | None) -> Fact:
    if not form.diameters:
        return unknown("there is no diameter of a hierarchy in it", None)
    if len(form.diameters) > 1:
        return unknown("there are diameters of two hierarchies in it", blame)
    ((weight, metric),) = form.diameters.values()
    if weight < 0:
        return unknown("the diameter has a negative weight", blame)
    if form.of_size is not None:
        return unknown("beside the diameter there is a function of size", blame)
    return when(f"{weight:g} x the diameter of {metric.hierarchy.name} + a laminar part", nested)
