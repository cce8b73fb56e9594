"""The additive form of a loss, if it has one, and what follows from it.

L(S) = constant + sum of l(y) over S + sum of w_C any(C) + sum of w_h diameter(h) + f(|S|).
The separable, laminar and tree-diameter oracles read their numbers from it. Where numbers come with each row, a `Range`
stands in their place, and what follows holds for every number in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import Span
from udcp_dsl.expression.domain import Floats, Ints, TreeMetric
from udcp_dsl.expression.facts import Fact, Interval, proved, unknown, when
from udcp_dsl.per_row import add_at, array_of, as_number, larger, smaller, sum_where


@dataclass(frozen=True, eq=False)
class Range:
    """All numbers from `lo` to `hi`, floats or arrays of one shape; operations give the range of all results."""

    lo: Any
    hi: Any

    __array_ufunc__ = None  # arrays leave the arithmetic to this class

    def __add__(self, other: Any) -> Range:
        low, high = ends(other)
        return Range(self.lo + low, self.hi + high)

    __radd__ = __add__

    def __neg__(self) -> Range:
        return Range(-self.hi, -self.lo)

    def __mul__(self, other: Any) -> Range:
        low, high = ends(other)
        products = [self.lo * low, self.lo * high, self.hi * low, self.hi * high]
        return Range(reduce(np.minimum, products), reduce(np.maximum, products))

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Range:
        return self * (1.0 / other)

    def __len__(self) -> int:
        return len(self.lo)

    def __getitem__(self, index: Any) -> Range:
        return Range(self.lo[index], self.hi[index])

    def __eq__(self, other: object) -> bool:
        """Whether the range is the single number `other`."""
        return bool(np.all(self.lo == other) and np.all(self.hi == other))

    __hash__ = None  # type: ignore[assignment]

    def __format__(self, form: str) -> str:
        return f"[{self.lo:{form}}, {self.hi:{form}}]"


def ends(x: Any) -> tuple[Any, Any]:
    """The ends of a number or range, elementwise for arrays."""
    return (x.lo, x.hi) if isinstance(x, Range) else (x, x)


@dataclass(frozen=True, eq=False)
class Weighted:
    """`weight` paid once if the set touches any of `members`."""

    weight: float
    members: Ints
    name: str


@dataclass(frozen=True, eq=False)
class Additive:
    """The parts of the form; categories with equal members are merged, those of one label are label costs."""

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
        labels, highest = np.zeros(K), np.zeros(K)
        categories: dict[bytes, Weighted] = {}
        for part in parts:
            if len(part.members) == 1:
                low, high = ends(part.weight)
                labels = add_at(labels, part.members[0], low)
                highest = add_at(highest, part.members[0], high)
            elif len(part.members) and part.weight != 0:
                _merge(categories, part)
        ranged = any(isinstance(part.weight, Range) for part in parts)
        return Additive(0.0, Range(labels, highest) if ranged else labels, categories)  # type: ignore[arg-type]

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
            reduce(add, sizes) if sizes else None,
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
    def by_row(self) -> bool:
        """Whether some numbers come with each row, so that the form has ranges in their place."""
        weights = [part.weight for part in self.categories.values()] + [w for w, _ in self.diameters.values()]
        return any(isinstance(x, Range) for x in (self.constant, self.label_costs, self.of_size, *weights))

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
    """The labels C, if the form is exactly any(C); else None."""
    if form is None or form.by_row or form.constant != 0 or form.diameters or form.of_size is not None:
        return None
    labels = np.flatnonzero(form.label_costs)
    parts = [Weighted(as_number(form.label_costs[y]), labels, "") for y in labels] + list(form.categories.values())
    if not parts:
        return labels
    return parts[0].members if len(parts) == 1 and parts[0].weight == 1 else None


def _merge(categories: dict[bytes, Weighted], part: Weighted) -> None:
    key = part.members.tobytes()
    old = categories.get(key)
    categories[key] = part if old is None else Weighted(old.weight + part.weight, part.members, old.name)


def nesting(form: Additive) -> tuple[list[Weighted], list[int]] | tuple[Weighted, Weighted]:
    """The categories from large to small with the index of each one's parent (-1: none), or two that cross.

    Going from large to small, a category is nested if all its members have the same innermost category (or none).
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
    """What the additive form proves beyond the rules of the operators, and a tighter interval, if it has one."""
    if form is None:
        missing = unknown("a part is not a sum of label costs, weighted categories and tree diameters", blame)
        return {"laminar": missing, "tree_diameter": missing}, None
    more: dict[str, Fact] = {}
    weights, heaviest = (array_of(end) for end in _ends_of([part.weight for part in form.categories.values()]))
    labels, dearest = ends(form.label_costs)
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
    alike = labels is dearest and (labels == labels[0]).all()
    if alike and all(len(part.members) == form.K for part in form.categories.values()):
        more["cardinality"] = facts["cardinality"] or proved("every label adds the same")
    sizes, largest = ends(np.zeros(1) if form.of_size is None else form.of_size)
    (low, high), parts, most_of = (
        ends(form.constant),
        np.concatenate([labels, weights]),
        np.concatenate([dearest, heaviest]),
    )
    interval = Interval(
        low + as_number(sum_where(parts, parts < 0) + sizes.min()),
        high + as_number(sum_where(most_of, most_of > 0) + largest.max()),
    )
    if form.separable:
        more["separable"] = facts["separable"] or proved("label costs and a constant are all that is left of it")
    if form.of_size is None and (weights >= 0).all():
        more["submodular"] = facts["submodular"] or proved("label costs and nonnegative weights on categories")
    if form.of_size is None and (heaviest <= 0).all():
        more["supermodular"] = facts["supermodular"] or proved("label costs and nonpositive weights on categories")
    return more, interval


def _gains(form: Additive) -> tuple[Floats, Floats]:
    """The least and the most that each label can add to a set: each of its categories is paid now, or was before."""
    least, most = (end.copy() for end in ends(form.label_costs))
    for part in form.categories.values():
        low, high = ends(part.weight)
        least = add_at(least, part.members, smaller(low, 0.0))
        most = add_at(most, part.members, larger(high, 0.0))
    if form.of_size is not None:
        small, large = ends(form.of_size)
        least, most = least + (small[1:] - large[:-1]).min(), most + (large[1:] - small[:-1]).max()
    for weight, _ in form.diameters.values():
        low, high = ends(weight)
        least, most = (least - np.inf if low < 0 else least), (most + np.inf if high > 0 else most)
    return least, most


def _ends_of(weights: list[float]) -> tuple[list[float], list[float]]:
    return [ends(w)[0] for w in weights], [ends(w)[1] for w in weights]


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
    if ends(weight)[0] < 0:
        return unknown("the diameter has a negative weight", blame)
    if form.of_size is not None:
        return unknown("beside the diameter there is a function of size", blame)
    return when(f"{weight:g} x the diameter of {metric.hierarchy.name} + a laminar part", nested)
