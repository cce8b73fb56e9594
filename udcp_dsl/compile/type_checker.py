"""From expressions to checked expressions: resolve names, check types, fold functions of one count into tables.

The types are number, indicator, count function and set function, and row number and row indicator; see
specs/reference/types.md. An operand with an error is None, and expressions that use it report nothing further, so each
error is reported once.

Arithmetic of numbers and row numbers gives a row number. Combined with a function of the set, it gives a function of
the set, but not a function of a count. A row indicator switches a term on or selects a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from udcp_dsl.compile.declare.declared import Declared
from udcp_dsl.compile.declare.families import categories_named
from udcp_dsl.compile.resolve import argument, described, is_costs, write_one_of
from udcp_dsl.compile.room import Room
from udcp_dsl.diagnostics import Fix, Related, Span
from udcp_dsl.expression import ir
from udcp_dsl.expression.atoms import ATOMS, Atom
from udcp_dsl.expression.domain import Floats
from udcp_dsl.expression.facts import TOLERANCE, Interval
from udcp_dsl.expression.forms import Range, ends
from udcp_dsl.expression.inputs import (
    InputNode,
    RowArithmetic,
    RowChoice,
    RowComparison,
    RowCosts,
    RowInput,
    RowLeaf,
    RowNumber,
    RowScale,
)
from udcp_dsl.language import ast
from udcp_dsl.language.words import FUNCTION_NAMES
from udcp_dsl.per_row import PerRow, as_number, of_rows, smaller

# How the range of a result is found: by interval arithmetic, from the ends (if monotone), or as an indicator.
SUMS, ENDS, INDICATOR = "sums", "ends", "indicator"


def row_arithmetic(span: Span, K: int, nodes: Sequence[ir.Node], f: Callable[..., Floats], how: str) -> RowArithmetic:
    """A function of row numbers and numbers."""
    ranges = [Range(*x.interval) if isinstance(x, RowNumber) else _number(x) for x in nodes]
    with np.errstate(all="ignore"):
        if how == SUMS:
            low, high = ends(f(*ranges))
        elif how == ENDS:
            low, high = sorted(float(f(*map(np.float64, side))) for side in zip(*map(ends, ranges), strict=True))
        else:
            low, high = 0.0, 1.0
    return RowArithmetic(span, K, Interval(float(low), float(high)), f, tuple(nodes))


def _number(node: ir.Node) -> float:
    assert isinstance(node, ir.Constant), "an operand is a number or a row number"
    return node.number


def row_chosen(span: Span, K: int, nodes: Sequence[ir.Node], f: Callable[..., Floats]) -> RowArithmetic:
    """`if i then e else f` of row numbers: its range contains those of e and f."""
    made = row_arithmetic(span, K, nodes, f, INDICATOR)
    sides = [x.interval if isinstance(x, RowNumber) else Interval(_number(x), _number(x)) for x in nodes[1:]]
    low, high = min(side.lo for side in sides), max(side.hi for side in sides)
    return RowArithmetic(span, K, Interval(low, high), f, made.operands)


def row_scaled(span: Span, K: int, rows: Sequence[ir.Node], node: ir.Node) -> ir.Node:
    """Row numbers times a function of the set."""
    number = rows[0]
    if len(rows) > 1:
        number = row_arithmetic(span, K, rows, lambda *x: _product(x), SUMS)
    return RowScale(span, K, number, node)


def _product(factors: Sequence[Floats]) -> Floats:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def row_compared(span: Span, K: int, operator: str, left: ir.Node, right: ir.Node) -> ir.Node:
    """Compare a function of the set with a row number."""
    k = right if isinstance(right, RowNumber) else left
    assert isinstance(k, RowNumber), "one side is a row number"
    if operator == "==":
        return RowComparison(span, K, left, right, "==", k)
    # a <= b is b >= a;  a > b and a < b are the complements of a <= b and a >= b.
    up = operator in (">=", "<")
    node = RowComparison(span, K, left if up else right, right if up else left, ">=", k)
    return node if operator in (">=", "<=") else ir.Not(span, K, node)


def row_junction(span: Span, K: int, both: bool, nodes: Sequence[ir.Node]) -> ir.Node:
    """`and` or `or` of indicators, some of the row: if these do not decide the result, the others do."""
    rows = [x for x in nodes if isinstance(x, RowNumber)]
    others = [x for x in nodes if not isinstance(x, RowNumber)]
    rest = others[0] if len(others) == 1 else ir.Junction(span, K, both, tuple(others))
    fold = np.minimum if both else np.maximum
    of_row = rows[0] if len(rows) == 1 else row_arithmetic(span, K, rows, lambda *x: fold.reduce(x), ENDS)
    return RowScale(span, K, of_row, rest) if both else RowChoice(span, K, of_row, ir.Constant(span, K, 1.0), rest)


def row_leaf(span: Span, K: int, kind: type[Atom], things: Sequence[object]) -> RowLeaf | None:
    """The atom of costs that come with each row; None if all its numbers are known."""
    costs = next((thing for thing in things if isinstance(thing, RowCosts)), None)
    if costs is None:
        return None
    low, high, alternating = (
        kind(K, *(variant if thing is costs else thing for thing in things))  # type: ignore[call-arg]
        for variant in costs.extreme_costs()
    )
    return RowLeaf(span, K, low, high, alternating, costs.name)


def is_extremum(call: ast.Call) -> bool:
    """Whether a call is an operator: max or min of two or more arguments. With one, they are atoms of costs."""
    return call.name in ("max", "min") and call.arguments is not None and len(call.arguments) > 1


def operands_of(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    """The parts that are checked as expressions: all but the arguments of atoms, which name declarations."""
    if isinstance(expr, ast.Call):
        return ast.children(expr) if is_extremum(expr) or expr.name in FUNCTION_NAMES else ()
    return ast.children(expr)


def walk(body: ast.Expr) -> list[ast.Expr]:
    """All subexpressions, operands first."""
    order: list[ast.Expr] = []
    stack: list[ast.Expr] = [body]
    while stack:
        expr = stack.pop()
        order.append(expr)
        stack.extend(operands_of(expr))
    return order[::-1]


def tables_of(count: ir.Leaf) -> range:
    assert count.atom.most is not None
    return range(count.atom.most + 1)


def signature(name: str, kinds: Sequence[str]) -> str:
    """How an atom is written: `count(F, w)`."""
    shown = {"category": "C", "costs": "c", "family": "F", "costs of family": "w", "actions": "u"}
    shown |= {"distance": "d", "any distance": "d", "hierarchy": "h"}
    return name if not kinds else f"{name}({', '.join(shown[k] for k in kinds)})"


def arity(signatures: Sequence[tuple[str, ...]]) -> str:
    counts = sorted({len(s) for s in signatures})
    words = ["no argument" if c == 0 else "one argument" if c == 1 else "two arguments" for c in counts]
    return " or ".join(words)


def short(e: ast.Expr) -> str:
    text = e.span.line
    return repr(text if len(text) <= 40 else text[:37] + "...")


@dataclass(frozen=True)
class Value:
    """A checked expression and whether it is an indicator."""

    node: ir.Node
    indicator: bool = False

    @property
    def number(self) -> float | None:
        return self.node.number if isinstance(self.node, ir.Constant) else None

    @property
    def by_row(self) -> bool:
        """Whether it is a per-row number, or an indicator of the row."""
        return isinstance(self.node, RowNumber)

    @property
    def table(self) -> tuple[ir.Leaf, Floats] | None:
        """The count and the table, for a function of a count."""
        match self.node:
            case ir.Table():
                return self.node.count, self.node.table
            case ir.Leaf() if self.node.atom.most is not None:
                return self.node, np.arange(self.node.atom.most + 1, dtype=np.float64)
            case _:
                return None


class Checker:
    """Checks the lets and losses of one spec.

    `atoms` has the atom of each call, `checked` the value of each expression, by `id`; None for one with an error.
    """

    def __init__(self, declared: Declared, *, one_row: bool = False) -> None:
        self.declared = declared
        self._one_row = one_row  # with the numbers of one row; the spec itself has been checked
        self.atoms: dict[int, Atom] = {}
        self.checked: dict[int, Value | None] = {}
        self.values: dict[str, Value | None] = {}
        self._room = Room(declared)
        for name in self._order():
            self.values[name] = self.check(declared.definitions[name].body)

    def _order(self) -> list[str]:
        """Lets and losses, each after those it uses; a cycle is an error, and its members have no value."""
        definitions = self.declared.definitions
        uses = {
            name: [e for e in walk(x.body) if isinstance(e, ast.Ref) and e.head.text in definitions]
            for name, x in definitions.items()
        }
        order: list[str] = []
        state: dict[str, str] = {}
        for root in definitions:
            stack = [(root, iter(uses[root]))] if root not in state else []
            state.setdefault(root, "open")
            while stack:
                name, rest = stack[-1]
                used = next(rest, None)
                if used is None:
                    stack.pop()
                    if state[name] == "open":
                        state[name] = "done"
                        order.append(name)
                    continue
                target = used.head.text
                if target not in state:
                    state[target] = "open"
                    stack.append((target, iter(uses[target])))
                elif state[target] == "open":
                    path = [n for n, _ in stack]
                    cycle = path[path.index(target) :]
                    self._error(
                        "E260", used.span, f"{target!r} is defined by itself: {' -> '.join([*cycle, target])}",
                        "remove one of these references",
                        related=[Related(definitions[n].name.span, "part of the cycle") for n in cycle],
                    )  # fmt: skip
                    for member in cycle:
                        state[member] = "cyclic"
                        self.values[member] = None
        return order

    def _error(
        self, code: str, span: Span, message: str, help: str = "", fixes: Iterable[Fix] = (), **more: Any
    ) -> Value | None:
        """Report an error; returns None, the value of an expression that cannot be checked."""
        self.declared.error(code, span, message, help, fixes=fixes, **more)
        return None

    def check(self, body: ast.Expr) -> Value | None:
        """The checked form of an expression, or None with its errors reported. No recursion: nesting may be deep."""
        values = self.checked
        order = walk(body)
        misplaced = {id(e): call for call in order if isinstance(call, ast.Call) for e in self._misplaced(call)}
        for expr in order:
            if id(expr) in misplaced:
                values[id(expr)] = None
                continue
            operands = [v for e in operands_of(expr) if (v := values[id(e)]) is not None]
            whole = len(operands) == len(operands_of(expr))
            value = self._step(expr, operands) if whole and self._room.take(expr) else None
            fits = value is not None and (self._one_row or self._room.take_node(expr, value.node))
            values[id(expr)] = value if fits else None
        return values[id(body)]

    def _misplaced(self, call: ast.Call) -> list[ast.Expr]:
        """Report costs among the arguments of max(e, f), with the fix, and return them."""
        if not is_extremum(call):
            return []
        costs = [e for e in ast.children(call) if isinstance(e, ast.Ref) and is_costs(self.declared, e)]
        if costs:
            wrapped = {id(e) for e in costs}
            corrected = [
                f"{call.name}({e.span.text})" if id(e) in wrapped else e.span.text for e in call.arguments or ()
            ]
            whole = f"{call.name}({', '.join(corrected)})"
            self._error(
                "E408", costs[0].span,
                f"{call.name} of several arguments takes expressions, and {costs[0].span.text!r} is a list of costs",
                f"write {whole}", [Fix.write(call.span, whole)],
            )  # fmt: skip
        return list(costs)

    def _step(self, expr: ast.Expr, v: list[Value]) -> Value | None:
        match expr:
            case ast.Number():
                return self._constant(expr.value, expr.span)
            case ast.Ref():
                return self._reference(expr)
            case ast.Call():
                return self._call(expr, v)
            case ast.Sum():
                signs = [sign for sign, _ in expr.terms]
                return self._sum(expr.span, signs, v)
            case ast.Product():
                return self._product(expr, v)
            case ast.Negative():
                return self._sum(expr.span, [-1], v)
            case ast.Power():
                return self._apply_to_count(expr.span, v, np.power, "^")
            case ast.Comparison():
                return self._comparison(expr, v[0], v[1])
            case ast.Not():
                return self._logic(expr.span, [expr.operand], v, lambda x: 1 - x, lambda n: ir.Not(*self._at(expr), n))
            case ast.And() | ast.Or():
                both = isinstance(expr, ast.And)
                fold = np.minimum if both else np.maximum
                return self._logic(
                    expr.span,
                    expr.operands,
                    v,
                    lambda *x: fold.reduce(np.broadcast_arrays(*x)),
                    lambda *nodes: self._junction(expr, both, nodes),
                )
            case ast.If():
                return self._if(expr, v)

    def _junction(self, expr: ast.Expr, both: bool, nodes: Sequence[ir.Node]) -> ir.Node:
        if any(isinstance(node, RowNumber) for node in nodes):
            return row_junction(*self._at(expr), both, nodes)
        return ir.Junction(*self._at(expr), both, tuple(nodes))

    def _at(self, expr: ast.Expr) -> tuple[Span, int]:
        return expr.span, self.declared.K

    def _constant(self, value: float, span: Span, indicator: bool = False) -> Value | None:
        if not np.isfinite(value):
            self._error("E405", span, "this number is not finite", "use smaller numbers")
            return None
        return Value(ir.Constant(span, self.declared.K, as_number(value)), indicator)

    # Names and calls

    def _reference(self, ref: ast.Ref) -> Value | None:
        d, name = self.declared, ref.head.text
        thing = d.things.get(name)
        if name in d.definitions and not ref.parts:
            return self.values[name]
        if isinstance(thing, float | PerRow) and not ref.parts:
            return self._constant(thing, ref.span)
        if isinstance(thing, RowInput) and not ref.parts:
            return Value(InputNode(*self._at(ref), Interval(thing.low, thing.high), name))
        if name in d.broken or (thing is None and not ref.parts and name.lower() in ("true", "false")):
            return None  # it was reported already
        if thing is None and name not in d.definitions:
            return self._unknown(ref)
        what, ways = described(d, ref)
        help, fixes = write_one_of(ways), [Fix.write(ref.span, way) for way in ways]
        if name in d.definitions or isinstance(thing, float | RowInput):
            return self._error("E409", ref.span, f"{name!r} is {what} and has no parts", help, fixes)
        return self._error("E409", ref.span, f"{ref.span.text!r} is {what}, not an expression", help, fixes)

    def _unknown(self, ref: ast.Ref) -> Value | None:
        """Report an unknown name; a fix is a complete expression, which does not cause this error again."""
        d, name, span = self.declared, ref.head.text, ref.head.span
        if name in d.index:
            anyone = f"any({{ {span.text} }})"
            help, fixes = f"{name!r} is a label: write {anyone}", [Fix.write(ref.span, anyone)]
        elif not ref.parts and (found := categories_named(d, name)):
            help = f"write {' or '.join(f'any({category})' for category in found)}"
            fixes = [Fix.write(span, f"any({category})") for category in found]
        else:
            numbers = (n for n, t in d.things.items() if isinstance(t, float | RowInput))
            suggestion = d.suggest_name(name, chain(d.definitions, numbers, ATOMS, d.things))
            help = suggestion.help
            fixes = list(suggestion.fixes(span, only=lambda n: not ref.parts and self._by_itself(n)))
        return self._error("E211", span, f"there is no {name!r}", help, fixes)

    def _by_itself(self, name: str) -> bool:
        atom = ATOMS.get(name)
        by_itself = name in self.values or isinstance(self.declared.things.get(name), float | RowInput)
        return by_itself or (atom is not None and () in atom.signatures)

    def _call(self, call: ast.Call, v: list[Value]) -> Value | None:
        arguments = call.arguments
        if call.name in FUNCTION_NAMES:
            if arguments is None or len(arguments) != 1:
                return self._error("E407", call.span, f"{call.name} takes one expression", f"write {call.name}(size)")
            if isinstance(arguments[0], ast.SetLiteral):
                span = arguments[0].span
                fixes = [Fix.write(span, f"size({span.text})")]
                return self._error(
                    "E406", span, f"{call.name} takes an expression, not a set", "write size(...)", fixes
                )
            return self._apply_to_count(call.span, v, getattr(np, call.name), call.name)
        if is_extremum(call):
            return self._extremum(call, v)
        atom_class = ATOMS[call.name]
        given = arguments or ()
        fitting = [s for s in atom_class.signatures if len(s) == len(given)]
        if call.name in self.declared.broken:  # `let max = ...` was reported already
            return None
        if not fitting or (arguments is not None and not arguments):
            forms = " or ".join(signature(call.name, s) for s in atom_class.signatures)
            fixes = [Fix.write(call.span, call.name)] if () in atom_class.signatures else []
            message = f"{call.name} takes {arity(atom_class.signatures)}"
            return self._error("E407", call.span, message, f"write {forms}", fixes)
        things: list[object] = []
        for kind, argument_expr in zip(fitting[0], given, strict=True):
            things.append(argument(self.declared, call, kind, argument_expr, things))
        if any(thing is None for thing in things) or not self.declared.K:
            return None
        by_row = row_leaf(*self._at(call), atom_class, things)
        atom = by_row.alternating if by_row is not None else atom_class(self.declared.K, *things)  # type: ignore[call-arg]
        self.atoms[id(call)] = atom
        return Value(ir.Leaf(*self._at(call), atom), atom.indicator) if by_row is None else Value(by_row)

    def _extremum(self, call: ast.Call, v: list[Value]) -> Value | None:
        assert call.arguments is not None
        for e in call.arguments:
            if isinstance(e, ast.SetLiteral):
                message = f"{call.name} takes expressions, not a set"
                fixes = [Fix.write(e.span, f"{atom}({e.span.text})") for atom in ("size", "any")]
                return self._error("E406", e.span, message, "write size(...) or any(...)", fixes)
        largest = call.name == "max"
        fold = np.maximum if largest else np.minimum
        folded = self._try_fold(call.span, v, lambda *x: fold.reduce(np.broadcast_arrays(*x)))
        indicator = all(x.indicator for x in v)
        if folded is not None:
            numbers = [x.number for x in v if x.number is not None]
            if isinstance(folded, ir.Table) and numbers and not largest:
                folded = replace(folded, cap=smaller(*numbers))
            return Value(folded, indicator)
        nodes = tuple(x.node for x in v)
        if indicator:
            return Value(ir.Junction(*self._at(call), not largest, nodes), True)
        return Value(ir.Extremum(*self._at(call), largest, nodes))

    # Operators

    def _try_fold(self, span: Span, v: Sequence[Value], f: Callable[..., Floats], how: str = ENDS) -> ir.Node | None:
        """Apply f to numbers, functions of the same count (and numbers), or row numbers (and numbers); None for other
        operands. `how` says how the range of a row number is found."""
        if any(x.by_row for x in v):
            alone = all(x.by_row or x.number is not None for x in v)
            return row_arithmetic(span, self.declared.K, [x.node for x in v], f, how) if alone else None
        tables, numbers = [x.table for x in v], [x.number for x in v]
        counts = [t[0] for t in tables if t is not None]
        alone = all(t is not None or x is not None for t, x in zip(tables, numbers, strict=True))
        if not alone or any(c.atom.key != counts[0].atom.key for c in counts):
            return None
        with np.errstate(all="ignore"):
            result = of_rows(f, *(x if t is None else t[1] for t, x in zip(tables, numbers, strict=True)))
        if not counts:
            return ir.Constant(span, self.declared.K, as_number(result))
        values = np.broadcast_to(result, len(tables_of(counts[0]))).astype(np.float64)
        return ir.Table(span, self.declared.K, counts[0], values)

    def _finite(self, node: ir.Node, what: str) -> Value | None:
        """Refuse a number or an entry of a table that is not finite."""
        if isinstance(node, RowNumber) and not np.isfinite([*node.interval]).all():
            return self._error("E405", node.span, f"{what} may be too large for a number", "use smaller ranges")
        if isinstance(node, ir.Constant) and not np.isfinite(node.number):
            return self._error("E405", node.span, f"{what} gives no finite number here", "change the numbers")
        if isinstance(node, ir.Table) and not np.isfinite(node.table).all():
            k = int(np.flatnonzero(~np.isfinite(node.table))[0])
            return self._error(
                "E405", node.span, f"{what} gives no finite number where {node.count.text} is {k}",
                "keep it finite there, for instance with max(..., 0), or change the numbers",
            )  # fmt: skip
        return Value(node)

    def _sum(self, span: Span, signs: Sequence[int], v: Sequence[Value]) -> Value | None:
        folded = self._try_fold(span, v, lambda *x: sum(s * e for s, e in zip(signs, x, strict=True)), SUMS)
        if folded is not None:
            return self._finite(folded, "this")
        K = self.declared.K
        terms = [
            x.node if sign > 0 else ir.Scale(x.node.span, K, -1.0, x.node) for sign, x in zip(signs, v, strict=True)
        ]
        return Value(terms[0] if len(terms) == 1 else ir.Add(span, K, tuple(terms)))

    def _product(self, expr: ast.Product, v: list[Value]) -> Value | None:
        operators = [operator for operator, _ in expr.factors]
        for (operator, e), x in zip(expr.factors, v, strict=True):
            if operator == "/" and x.number == 0:
                return self._error("E403", e.span, "division by zero", "divide by a number other than 0")
            if operator == "/" and x.by_row:
                message = f"division by a per-row number: {short(e)}"
                return self._error("E403", e.span, message, "multiply by an input that is its inverse")

        def multiply(*x: Floats) -> Floats:
            product = np.asarray(1.0)
            for operator, factor in zip(operators, x, strict=True):
                product = product * factor if operator == "*" else product / factor
            return product

        folded = self._try_fold(expr.span, v, multiply, SUMS)
        if folded is not None:
            value = self._finite(folded, "the division" if "/" in operators else "the product")
            only_indicators = all(x.indicator for x in v) and "/" not in operators
            return value if value is None else Value(value.node, only_indicators)
        factor = 1.0
        indicators: list[Value] = []
        rows: list[ir.Node] = []
        counts: list[Value] = []
        others: list[tuple[Value, ast.Expr]] = []
        for (operator, e), x in zip(expr.factors, v, strict=True):
            if operator == "/":
                if x.number is None:
                    message = f"division by an expression that depends on the set: {short(e)}"
                    return self._error("E403", e.span, message, "divide by a number other than 0")
                factor /= x.number
            elif x.number is not None:
                factor *= x.number
            elif x.by_row:
                rows.append(x.node)
            elif x.indicator:
                indicators.append(x)
            else:
                counts.append(x)
                others.append((x, e))
        if not np.isfinite(factor):
            return self._error("E405", expr.span, "the product gives no finite number here", "change the numbers")
        inner = counts[0] if len(counts) == 1 else None
        if len(counts) > 1:
            # A product of functions of one count is a function of that count.
            combined = self._try_fold(expr.span, counts, lambda *x: np.multiply.reduce(np.broadcast_arrays(*x)))
            if combined is None:
                a, b = others[0][1], others[1][1]
                return self._error(
                    "E402", expr.span, f"a product of two functions of the set: {short(a)} and {short(b)}",
                    "one of them must be a number or an indicator, such as any(C) or size >= 2",
                )  # fmt: skip
            inner = self._finite(combined, "the product")
            if inner is None:
                return None
        only_indicators = all(x.indicator for x in v) and "/" not in operators
        node = self._scaled(expr, factor, indicators, inner)
        return Value(row_scaled(*self._at(expr), rows, node) if rows else node, only_indicators)

    def _scaled(self, expr: ast.Product, factor: float, indicators: list[Value], inner: Value | None) -> ir.Node:
        at = self._at(expr)
        nodes = tuple(x.node for x in indicators)
        gate = None if not nodes else nodes[0] if len(nodes) == 1 else ir.Junction(*at, True, nodes)
        if inner is None:
            assert gate is not None
            node = gate
        else:
            node = inner.node if gate is None else ir.Gate(*at, gate, inner.node)
        return node if factor == 1.0 else ir.Scale(*at, factor, node)

    def _apply_to_count(self, span: Span, v: Sequence[Value], f: Callable[..., Floats], what: str) -> Value | None:
        if any(x.by_row for x in v):
            message = f"{what} takes no per-row number"
            return self._error("E404", span, message, "compute it outside and give it as an input")
        folded = self._try_fold(span, v, f)
        if folded is None:
            return self._error(
                "E404", span, f"{what} needs a function of one count, such as size, size(C) or count(F)",
                "other functions of the set can be scaled, added, compared, and put into max and min",
            )  # fmt: skip
        return self._finite(folded, what)

    def _comparison(self, expr: ast.Comparison, left: Value, right: Value) -> Value:
        k = right.number if right.number is not None else left.number if left.number is not None else 0.0
        fixed = [x.by_row or x.number is not None for x in (left, right)]

        def compare(a: Floats, b: Floats) -> Floats:
            gap = a - b
            number = b if fixed[1] else a if fixed[0] else np.zeros(())
            same = np.abs(gap) <= TOLERANCE * np.maximum(1.0, np.abs(number))
            above, below = ~same & (gap > 0), ~same & (gap < 0)
            holds = {"==": same, ">=": ~below, "<=": ~above, ">": above, "<": below}[expr.operator]
            return holds.astype(np.float64)

        folded = self._try_fold(expr.span, [left, right], compare, INDICATOR)
        if folded is not None:
            return Value(folded, True)
        at = self._at(expr)
        if left.by_row or right.by_row:
            return Value(row_compared(*at, expr.operator, left.node, right.node), True)
        operator, operand = expr.operator, left.node
        if left.number is not None:
            operator = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "=="}[operator]
            operand = right.node
        elif right.number is None:
            operand = ir.Add(*at, (left.node, ir.Scale(*at, -1.0, right.node)))
        if operator == "==":
            return Value(ir.Equal(*at, operand, k), True)
        # a <= k is -a >= -k;  a > k and a < k are the complements of a <= k and a >= k.
        up = operator in (">=", "<")
        node: ir.Node = ir.AtLeast(*at, operand if up else ir.Scale(*at, -1.0, operand), k if up else -k)
        return Value(node if operator in (">=", "<=") else ir.Not(*at, node), True)

    def _indicators(self, expressions: Sequence[ast.Expr], v: Sequence[Value]) -> bool:
        good = True
        for e, x in zip(expressions, v, strict=True):
            if not x.indicator:
                text = f"({e.span.line})" if isinstance(e, ast.If) else e.span.line
                fixes = []
                if x.number is not None:
                    help = "an indicator is a comparison, any(C), all(C), within(C) or empty"
                else:
                    way = f"{text} >= 1" if x.table is not None else f"{text} > 0"
                    help = f"write {way}" if x.table is not None else f"compare it: {way}"
                    fixes = [Fix.write(e.span, way)]
                self._error("E401", e.span, f"{short(e)} is a number, not an indicator", help, fixes)
                good = False
        return good

    def _logic(
        self,
        span: Span,
        expressions: Sequence[ast.Expr],
        v: Sequence[Value],
        f: Callable[..., Floats],
        build: Callable[..., ir.Node],
    ) -> Value | None:
        if not self._indicators(expressions, v):
            return None
        folded = self._try_fold(span, v, f)
        return Value(folded if folded is not None else build(*(x.node for x in v)), True)

    def _if(self, expr: ast.If, v: list[Value]) -> Value | None:
        if not self._indicators([expr.condition], v[:1]):
            return None
        indicator = v[1].indicator and v[2].indicator
        at, nodes = self._at(expr), [x.node for x in v]
        folded = self._try_fold(expr.span, v, _where, INDICATOR)
        if isinstance(folded, RowNumber):
            folded = row_chosen(*at, nodes, _where)
        made = RowChoice if v[0].by_row else ir.If
        return Value(folded if folded is not None else made(*at, *nodes), indicator)


def _where(i: Floats, e: Floats, f: Floats) -> Floats:
    return np.asarray(np.where(i > 0.5, e, f))
