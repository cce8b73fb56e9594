"""Nodes of an expression whose numbers come with each row.

A spec with inputs is checked with these nodes: from them, facts are proved for all values in the ranges, and many rows
are evaluated at once. Oracles never see them: they get the expression of a row, in which all numbers are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from udcp_dsl.expression import facts as rules
from udcp_dsl.expression.atoms import Atom, Sets
from udcp_dsl.expression.domain import Floats
from udcp_dsl.expression.facts import TOLERANCE, Facts, Interval, Rules
from udcp_dsl.expression.forms import Additive, Range, Weighted
from udcp_dsl.expression.ir import Node
from udcp_dsl.expression.rows.rules import row_choice, row_comparison, row_multiple, row_number

Given = Mapping[str, Floats]  # the inputs of n rows, by name: (n,) or (n, entries)


@dataclass(frozen=True, eq=False)
class RowNumber(Node):
    """A number that comes with each row, within its interval; an input, or arithmetic of inputs and numbers."""

    interval: Interval

    def rules(self, *operands: Facts) -> Rules:
        return row_number(self.interval)

    def additive(self, *operands: Additive | None) -> Additive:
        return Additive(Range(*self.interval), np.zeros(self.K))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class InputNode(RowNumber):
    """An input itself."""

    name: str

    @property
    def given(self) -> tuple[object, ...]:  # type: ignore[override]
        return ("input", self.name)

    def value(self, *operands: Floats) -> Floats:
        raise AssertionError("the values of inputs are handed in")

    def read(self, sets: Sets, inputs: Given) -> Floats:
        return inputs[self.name]


@dataclass(frozen=True, eq=False)
class RowArithmetic(RowNumber):
    """A function of row numbers and numbers; it may be an indicator, which depends on the row alone."""

    function: Callable[..., Floats]
    operands: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.operands

    def value(self, *operands: Floats) -> Floats:
        return np.asarray(self.function(*operands), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class RowLeaf(Node):
    """An atom of costs that come with each row; `low`, `high` and `alternating` are of `RowCosts.extreme_costs`."""

    low: Atom
    high: Atom
    alternating: Atom
    name: str
    _FORMS: ClassVar[frozenset[str]] = frozenset(("sum", "count"))  # whose form always has the same parts

    @property
    def given(self) -> tuple[object, ...]:  # type: ignore[override]
        return ("costs", self.name, *self.high.key[:-1])

    def value(self, *operands: Floats) -> Floats:
        raise AssertionError("the values of atoms are handed in")

    def read(self, sets: Sets, inputs: Given) -> Floats:
        return self.alternating.batch_by_row(sets, inputs[self.name])

    @property
    def interval(self) -> Interval:
        ends = [*self.low.interval, *self.high.interval]
        return Interval(min(ends), max(ends))

    def rules(self, *operands: Facts) -> Rules:
        variants = (self.low, self.high, self.alternating)
        proves = {
            name: reason
            for name, reason in self.alternating.proves().items()
            if all(name in variant.proves() for variant in variants)
        }
        lacks = {name: f"for some rows {why}" for name, why in self.alternating.lacks().items()}
        return rules.atom(self.span, self.text, self.interval, proves, lacks)

    def additive(self, *operands: Additive | None) -> Additive | None:
        if self.alternating.name not in self._FORMS:
            return None
        low, high, names = self.low.additive(), self.high.additive(), self.alternating.additive()
        assert low is not None
        assert high is not None
        assert names is not None
        parts = {**low.categories, **high.categories, **names.categories}
        weights = [
            [form.categories[key].weight if key in form.categories else 0.0 for form in (low, high)] for key in parts
        ]
        return Additive(
            0.0,
            Range(low.label_costs, high.label_costs),  # type: ignore[arg-type]
            {
                key: Weighted(Range(*weight), part.members, part.name)  # type: ignore[arg-type]
                for (key, part), weight in zip(parts.items(), weights, strict=True)
            },
        )


@dataclass(frozen=True, eq=False)
class RowScale(Node):
    """A row number, or an indicator of the row, times an expression."""

    number: Node
    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.number, self.operand)

    def value(self, *operands: Floats) -> Floats:
        return operands[0] * operands[1]

    def rules(self, *operands: Facts) -> Rules:
        return row_multiple(operands[0].interval, operands[1])

    def additive(self, *operands: Additive | None) -> Additive | None:
        number, form = operands
        assert number is not None, "a number has a form"
        return None if form is None else form.times(number.constant)


@dataclass(frozen=True, eq=False)
class RowChoice(Node):
    """`if i then e else f` by an indicator of the row."""

    condition: Node
    then: Node
    otherwise: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.condition, self.then, self.otherwise)

    def value(self, *operands: Floats) -> Floats:
        return np.where(operands[0] > 0.5, operands[1], operands[2])

    def rules(self, *operands: Facts) -> Rules:
        return row_choice(operands[1:])

    def additive(self, *operands: Additive | None) -> Additive | None:
        """i * e + (1 - i) * f, with ranges for i and 1 - i: the form does not know that only one of them is 1."""
        _, e, f = operands
        some: Any = Range(0.0, 1.0)
        return None if e is None or f is None else e.times(some).plus(f.times(some))


@dataclass(frozen=True, eq=False)
class RowComparison(Node):
    """left >= right, or left == right, where one side is a row number k; values within the tolerance are equal."""

    left: Node
    right: Node
    operator: str
    k: RowNumber

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def value(self, *operands: Floats) -> Floats:
        left, right = operands
        slack = TOLERANCE * np.maximum(1.0, np.abs(right if self.k is self.right else left))
        holds = np.abs(left - right) <= slack if self.operator == "==" else left - right >= -slack
        return np.asarray(holds, dtype=np.float64)

    def rules(self, *operands: Facts) -> Rules:
        left, right = operands
        gap = rules.add([left, rules.negate(right)])
        facts = rules.with_facts(left, gap.facts, gap.interval)
        return row_comparison(facts, self.k.interval, self.operator, self.span)
