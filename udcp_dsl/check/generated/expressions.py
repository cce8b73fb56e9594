"""Random well-typed expressions: numbers, indicators, functions of one count, functions of the set.

A function of a count carries a table of its values, so that none is ever infinite or undefined. Every value has a
bound, so that sums in another order agree far within the tolerance of a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from udcp_dsl.check.generated.declarations import MAGNITUDES, NOWHERE, DeclarationGenerator, named
from udcp_dsl.compile.declare import declare
from udcp_dsl.compile.sources import Files
from udcp_dsl.compile.type_checker import Checker
from udcp_dsl.expression.atoms import ATOMS, Atom
from udcp_dsl.expression.domain import Floats
from udcp_dsl.expression.facts import TOLERANCE
from udcp_dsl.language import ast
from udcp_dsl.language.words import FUNCTION_NAMES

T = TypeVar("T")

_LARGEST = 1000.0
_OF_SETS = ("atom", "sum", "scale", "gate", "count", "indicator", "max", "min", "if", "negative", "known", "sum")
_COMPARISONS = (">=", ">", "<=", "<", "==")
Argument = ast.Ref | ast.SetLiteral


@dataclass(frozen=True)
class Form:
    """One signature of an atom."""

    name: str
    kinds: tuple[str, ...]


class CallGenerator:
    """Draws calls of atoms over the declarations of a spec.

    The atom that the compiler makes of a call tells whether it is an indicator or a count and how large it can be, so a
    new atom needs no change here.
    """

    def __init__(self, declaring: DeclarationGenerator) -> None:
        self._declaring = declaring
        self._vocabulary = declaring.vocabulary
        spec = ast.Spec(tuple(declaring.declarations), span=NOWHERE)
        self._checker = Checker(declare(spec, Files(contents=declaring.files), declaring.given, {}))
        every = [Form(name, kinds) for name, atom in ATOMS.items() for kinds in atom.signatures]
        self.forms = [form for form in every if all(map(self._known, form.kinds))]
        self.indicators = [form for form in self.forms if ATOMS[form.name].indicator]
        self.counts = [form for form in self.forms if self.atom(self._first(form)).most is not None]

    def pick(self, options: Sequence[T]) -> T:
        return self._declaring.pick(options)

    def call(self, form: Form) -> ast.Call:
        """A call of that form."""
        paired = dict[str, Argument]()
        if "costs of family" in form.kinds:
            paired["family"], paired["costs of family"] = self.pick(self._vocabulary.family_costs)
        return _formed(form, [paired.get(kind) or self._argument(kind) for kind in form.kinds])

    def _first(self, form: Form) -> ast.Call:
        """A call of that form without a draw: whether it is a count does not depend on its arguments."""
        v = self._vocabulary
        one = ast.SetLiteral((named(v.labels[0]),), span=NOWHERE)
        paired = dict(zip(("family", "costs of family"), v.family_costs[0], strict=True)) if v.family_costs else {}
        return _formed(form, [paired.get(k) or (one if k == "category" else self._named(k)[0]) for k in form.kinds])

    def atom(self, call: ast.Call) -> Atom:
        """The atom that the compiler makes of a call."""
        self._checker.check(call)
        return self._checker.atoms[id(call)]

    def _argument(self, kind: str) -> Argument:
        if kind != "category":
            return self.pick(self._named(kind))
        known = self._vocabulary.categories
        return self.pick(known) if known and self._declaring.coin() else self._declaring.members()

    def _known(self, kind: str) -> bool:
        return kind == "category" or bool(self._named(kind))

    def _named(self, kind: str) -> Sequence[ast.Ref]:
        v = self._vocabulary
        return {
            "family": [family for family, _ in v.families],
            "costs": v.costs,
            "costs of family": [costs for _, costs in v.family_costs],
            "distance": v.metrics,
            "any distance": [*v.metrics, *v.family_metrics],
            "hierarchy": v.hierarchies,
            "actions": v.actions,
        }[kind]


def _formed(form: Form, arguments: Sequence[Argument]) -> ast.Call:
    return ast.Call(form.name, tuple(arguments) or None, span=NOWHERE)


@dataclass(frozen=True, eq=False)
class Typed:
    """An expression with its type; `table` holds the value of a number, or the values of a function of `count`."""

    expr: ast.Expr
    bound: float
    indicator: bool = False
    count: ast.Call | None = None
    table: Floats | None = None

    @property
    def number(self) -> bool:
        return self.table is not None and self.count is None


class ExpressionGenerator:
    """Draws expressions over the declarations of a spec; `define` adds lets and losses to these."""

    def __init__(self, declaring: DeclarationGenerator) -> None:
        self.declaring = declaring
        self.vocabulary = declaring.vocabulary
        self.calling = CallGenerator(declaring)
        self.defined: list[Typed] = []

    def pick(self, options: Sequence[T]) -> T:
        return self.declaring.pick(options)

    def coin(self) -> bool:
        return self.declaring.coin()

    def define(self, name: ast.Ref, body: Typed) -> None:
        self.defined.append(replace(body, expr=name))

    # The four types

    def number(self, depth: int = 0) -> Typed:
        plain = ("literal", "param")
        how = self.pick((*plain, "sum", "product", "power", "negative") if depth > 0 else plain)
        if how == "param" and self.vocabulary.params:
            name, value = self.pick(self.vocabulary.params)
            return _number(name, value)
        if how in ("literal", "param"):
            value = self.declaring.draw(MAGNITUDES)
            return _number(ast.Number(value, span=NOWHERE), value)
        if how == "sum":
            return self._sum([self.number(depth - 1), self.number(depth - 1)])
        if how == "product":
            return self._ratio([self.number(depth - 1), self.number(depth - 1)])
        if how == "power":
            return self._power(self.number(depth - 1), self.number(depth - 1))
        return self._negative(self.number(depth - 1))

    def indicator(self, depth: int, count: ast.Call | None = None) -> Typed:
        """An indicator; with `count`, one that depends on that count alone."""
        if depth <= 0:
            known = self._known(lambda x: x.indicator and (count is None or x.count is count))
            if known and self.coin():
                return self.pick(known)
            if count is None:
                return self._atom(self.calling.indicators)
            return self._comparison(self._called(count), self.number())
        how = self.pick(
            ("atom", "comparison", "and", "or", "not", "product", "max", "min", "if", "count", *self._by_row(count))
        )
        if how == "row":
            return self.row_indicator(depth - 1)
        if how == "atom":
            return self.indicator(0, count)
        if how == "comparison" and count is None:
            return self._comparison(self.anything(depth - 1), self.anything(depth - 1))
        if how == "count" and count is None:
            return self.indicator(depth, self._count_call())
        if how in ("comparison", "count"):
            assert count is not None
            return self._comparison(self.of_count(depth - 1, count), self.of_count(depth - 1, count))
        if how == "not":
            operand = self.indicator(depth - 1, count)
            return _fold(ast.Not(operand.expr, span=NOWHERE), [operand], lambda x: 1 - x, 1.0, indicator=True)
        if how == "if":
            return self._choice(*(self.indicator(depth - 1, count) for _ in range(3)))
        parts = [self.indicator(depth - 1, count) for _ in range(self.pick((2, 2, 3)))]
        exprs = tuple(x.expr for x in parts)
        if how == "product":
            product = ast.Product(tuple(("*", e) for e in exprs), span=NOWHERE)
            return _fold(product, parts, _lowest, 1.0, indicator=True)
        build: dict[str, ast.Expr] = {
            "and": ast.And(exprs, span=NOWHERE),
            "or": ast.Or(exprs, span=NOWHERE),
            "max": ast.Call("max", exprs, span=NOWHERE),
            "min": ast.Call("min", exprs, span=NOWHERE),
        }
        return _fold(build[how], parts, _lowest if how in ("and", "min") else _highest, 1.0, indicator=True)

    def of_count(self, depth: int, count: ast.Call | None = None) -> Typed:
        """A function of one count, closed under every operator."""
        count = count or self._count_call()
        known = self._known(lambda x: x.count is count)
        if depth <= 0:
            return self.pick(known) if known and self.coin() else self._called(count)
        simple = ("count", "number", "known", "comparison")
        how = self.pick((*simple, "sum", "product", "power", "root", "max", "min", "if", "negative"))
        if how == "count" or (how == "known" and not known):
            return self._called(count)
        if how == "known":
            return self.pick(known)
        if how == "number":
            return self.number(depth - 1)
        if how == "comparison":
            return self.indicator(depth, count)
        first = self.of_count(depth - 1, count)
        if how == "negative":
            return self._negative(first)
        if how == "root":
            return self._root(first)
        second = self.pick((self.number, lambda d: self.of_count(d, count)))(depth - 1)
        if how == "sum":
            return self._sum([first, second])
        if how == "product":
            return self._ratio([first, second])
        if how == "power":
            return self._power(*self.pick(((first, second), (second, first))))
        if how == "if":
            return self._choice(self.indicator(depth - 1, count), first, second)
        return self._extremum(how, [first, second])

    def anything(self, depth: int) -> Typed:
        """A function of the set."""
        known = self._known(lambda x: not x.number)
        if depth <= 0:
            return self.pick(known) if known and self.coin() else self._atom(self.calling.forms)
        how = self.pick(_OF_SETS + self._by_row())
        if how == "atom" or (how == "known" and not known):
            return self._atom(self.calling.forms)
        if how == "known":
            return self.pick(known)
        if how == "count":
            return self.of_count(depth)
        if how == "indicator":
            return self.indicator(depth)
        first = self.anything(depth - 1)
        if how == "row":
            return self.with_row_number(first)
        if how == "negative":
            return self._negative(first)
        if how == "scale":
            return self._ratio([self.number(1), first] if self.coin() else [first, self.number(1)])
        if how == "gate":
            return self._gate(first, [self.indicator(depth - 1) for _ in range(self.pick((1, 1, 2)))])
        if how == "if":
            return self._choice(self.indicator(depth - 1), first, self._operand(depth - 1))
        rest = [self._operand(depth - 1) for _ in range(self.pick((1, 1, 2)))]
        operands = self.declaring.shuffled([first, *rest])
        return self._sum(operands) if how == "sum" else self._extremum(how, operands)

    # Inputs of rows, and expressions that read them

    def _by_row(self, count: ast.Call | None = None) -> tuple[str, ...]:
        """Further choices, if the spec has inputs and the expression need not be a function of one count."""
        return ("row", "row") if self.vocabulary.inputs and count is None else ()

    def row_number(self, depth: int) -> Typed:
        how = self.pick(("input", "sum", "product", "negative", "max", "min", "if") if depth > 0 else ("input",))
        if how == "input":
            return Typed(*self.pick(self.vocabulary.inputs))
        first, second = self.row_number(depth - 1), self.pick((self.number, self.row_number))(depth - 1)
        if how == "sum":
            return self._sum([first, second])
        if how == "negative":
            return self._negative(first)
        if how == "product":
            return self._times([first, second])
        if how == "if":
            return self._choice(self.row_indicator(depth - 1), first, second)
        return self._extremum(how, [first, second])

    def row_indicator(self, depth: int) -> Typed:
        other = self.pick((self.number, self.row_number, self.number))
        return self._comparison(*self.declaring.shuffled([self.row_number(depth), other(depth)]))

    def with_row_number(self, operand: Typed) -> Typed:
        """The operand made to read inputs: scaled, gated, compared, chosen, or with a further operand."""
        how = self.pick(("scale", "scale", "gate", "if", "compare", "sum", "max", "min"))
        if how == "gate":
            return self._gate(operand, [self.row_indicator(1)])
        if how == "if":
            return self._choice(self.row_indicator(1), operand, self.anything(1))
        if how == "compare":
            return self._comparison(*self.declaring.shuffled([operand, self.row_number(1)]))
        both = self.declaring.shuffled([operand, self.row_number(1)])
        return self._times(both) if how == "scale" else self._sum(both) if how == "sum" else self._extremum(how, both)

    def _times(self, operands: Sequence[Typed]) -> Typed:
        bound = operands[0].bound * operands[1].bound
        if bound > _LARGEST:
            return operands[0]
        return Typed(ast.Product(tuple(("*", x.expr) for x in operands), span=NOWHERE), bound)

    def _operand(self, depth: int) -> Typed:
        return self.number(depth) if self.pick((False, False, True)) else self.anything(depth)

    def _known(self, fits: Callable[[Typed], bool]) -> list[Typed]:
        return [x for x in self.defined if fits(x)]

    # Atoms

    def _called(self, call: ast.Call) -> Typed:
        atom = self.calling.atom(call)
        if atom.most is not None:
            return Typed(call, float(atom.most), count=call, table=np.arange(atom.most + 1.0))
        return Typed(call, max(map(abs, atom.interval)), atom.indicator)

    def _count_call(self) -> ast.Call:
        """A count; half of the time one of which an earlier definition is a function, if there is any."""
        known = [x.count for x in self.defined if x.count is not None]
        if known and self.coin():
            return self.pick(known)
        return self.calling.call(self.pick(self.calling.counts))

    def _atom(self, forms: Sequence[Form]) -> Typed:
        return self._called(self.calling.call(self.pick(forms)))

    # Operators; if the result would not be finite and bounded, they return an operand instead

    def _sum(self, operands: Sequence[Typed]) -> Typed:
        signs = [1, *(self.pick((1, -1)) for _ in operands[1:])]
        terms = tuple((sign, x.expr) for sign, x in zip(signs, operands, strict=True))
        bound = sum(x.bound for x in operands)
        if bound > _LARGEST:
            return operands[0]
        return _fold(
            ast.Sum(terms, span=NOWHERE),
            operands,
            lambda *x: sum(s * e for s, e in zip(signs, x, strict=True)),
            bound,
        )

    def _negative(self, operand: Typed) -> Typed:
        return _fold(ast.Negative(operand.expr, span=NOWHERE), [operand], lambda x: -x, operand.bound)

    def _ratio(self, operands: Sequence[Typed]) -> Typed:
        """A product or a quotient of two, at most one of which is neither a number nor a function of one count."""
        first, second = operands
        divide = second.table is not None and bool(np.all(second.table != 0)) and self.coin()
        operator = "/" if divide else "*"
        f: Callable[..., Floats] = np.divide if divide else np.multiply
        scale = 1.0 / float(np.abs(second.table).min()) if divide and second.table is not None else second.bound
        bound = first.bound * scale
        expr = ast.Product((("*", first.expr), (operator, second.expr)), span=NOWHERE)
        if bound > _LARGEST:
            return max(operands, key=lambda x: x.bound)
        both = not divide and first.indicator and second.indicator
        return _fold(expr, operands, f, bound, indicator=both)

    def _gate(self, operand: Typed, indicators: Sequence[Typed]) -> Typed:
        factors = self.declaring.shuffled([operand, *indicators])
        expr = ast.Product(tuple(("*", x.expr) for x in factors), span=NOWHERE)
        return _fold(expr, factors, _times, operand.bound, indicator=operand.indicator)

    def _power(self, base: Typed, exponent: Typed) -> Typed:
        with np.errstate(all="ignore"):
            return self._apply_to_count(ast.Power(base.expr, exponent.expr, span=NOWHERE), [base, exponent], np.power)

    def _root(self, operand: Typed) -> Typed:
        assert operand.table is not None
        if operand.table.min() < 0:
            operand = self._extremum("max", [operand, _number(ast.Number(0.0, span=NOWHERE), 0.0)])
        name = self.pick(FUNCTION_NAMES)
        return self._apply_to_count(_call(name, operand.expr), [operand], getattr(np, name))

    def _apply_to_count(self, expr: ast.Expr, operands: Sequence[Typed], f: Callable[..., Floats]) -> Typed:
        result = _fold(expr, operands, f, 0.0)
        assert result.table is not None
        good = bool(np.isfinite(result.table).all()) and np.abs(result.table).max() <= _LARGEST
        return replace(result, bound=float(np.abs(result.table).max())) if good else operands[0]

    def _extremum(self, name: str, operands: Sequence[Typed]) -> Typed:
        expr = _call(name, *(x.expr for x in operands))
        indicator = all(x.indicator for x in operands)
        bound = max(x.bound for x in operands)
        return _fold(expr, operands, _highest if name == "max" else _lowest, bound, indicator=indicator)

    def _choice(self, condition: Typed, then: Typed, otherwise: Typed) -> Typed:
        expr = ast.If(condition.expr, then.expr, otherwise.expr, span=NOWHERE)
        indicator = then.indicator and otherwise.indicator
        bound = max(then.bound, otherwise.bound)
        return _fold(expr, [condition, then, otherwise], _choose, bound, indicator=indicator)

    def _comparison(self, left: Typed, right: Typed) -> Typed:
        operator = self.pick(_COMPARISONS)
        scale = right if right.number else left
        slack = TOLERANCE * max(1.0, scale.bound if scale.number else 1.0)

        def holds(a: Floats, b: Floats) -> Floats:
            gap = a - b
            same = np.abs(gap) <= slack
            truth = {"==": same, ">=": same | (gap > 0), "<=": same | (gap < 0), ">": ~same & (gap > 0)}
            return np.asarray(truth.get(operator, ~same & (gap < 0)), dtype=np.float64)

        expr = ast.Comparison(operator, left.expr, right.expr, span=NOWHERE)
        return _fold(expr, [left, right], holds, 1.0, indicator=True)


def _call(name: str, *arguments: ast.Expr | ast.SetLiteral) -> ast.Call:
    return ast.Call(name, arguments or None, span=NOWHERE)


def _number(expr: ast.Expr, value: float) -> Typed:
    return Typed(expr, abs(value), table=np.asarray(value))


def _fold(
    expr: ast.Expr, operands: Sequence[Typed], f: Callable[..., Any], bound: float, *, indicator: bool = False
) -> Typed:
    """An operator's result and its type: numbers give a number, functions of one count (and numbers) one of it."""
    counts = {id(x.count): x.count for x in operands if x.count is not None}
    if any(x.table is None for x in operands) or len(counts) > 1:
        return Typed(expr, bound, indicator)
    table = np.asarray(f(*(x.table for x in operands)), dtype=np.float64)
    if not counts:
        return Typed(expr, float(np.abs(table)), indicator, None, table)
    (count,) = counts.values()
    length = max(x.table.size for x in operands if x.count is not None and x.table is not None)
    return Typed(expr, bound, indicator, count, np.array(np.broadcast_to(table, length)))


def _lowest(*x: Floats) -> Floats:
    return np.asarray(np.minimum.reduce(np.broadcast_arrays(*x)))


def _highest(*x: Floats) -> Floats:
    return np.asarray(np.maximum.reduce(np.broadcast_arrays(*x)))


def _times(*x: Floats) -> Floats:
    return np.asarray(np.multiply.reduce(np.broadcast_arrays(*x)))


def _choose(condition: Floats, then: Floats, otherwise: Floats) -> Floats:
    return np.where(condition > 0.5, then, otherwise)
