"""The passes of the compiler, from text to a compiled loss: parse, declare, warn of look-alikes, check, choose.

Two names look alike if they are equal once accents are composed (NFC), invisible characters are left out, letters of
full width and special spaces are made plain, and Greek and Cyrillic letters that are drawn as Latin ones are replaced.
Names in ASCII are not compared: l and 1, O and 0 are told apart by most fonts.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from udcp_dsl.compile.declare import DeclarationCache, Declared, declare, declared_input
from udcp_dsl.compile.declare import with_inputs as declare_inputs
from udcp_dsl.compile.declare import with_params as declare_params
from udcp_dsl.compile.sources import Files
from udcp_dsl.compile.type_checker import Checker, Value
from udcp_dsl.diagnostics import Diagnostic, Fix, InputError, Source, Span, SpecError, did_you_mean
from udcp_dsl.expression.inputs import InputNode, RowChoice, RowInput, RowLeaf, RowNumber, RowScale
from udcp_dsl.expression.interpret import Interpreter
from udcp_dsl.expression.ir import Add, Constant, Expression, Extremum, Gate, If, Leaf, Node, Scale, Table
from udcp_dsl.expression.limit import Limit
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse
from udcp_dsl.language.unparse import expression
from udcp_dsl.per_row import PerRow

_MOST = 20  # warnings of each kind
_MOST_CHARACTERS = 500_000  # of names that are not ASCII, compared at about a microsecond each

_DRAWN_ALIKE = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"  # Cyrillic, small
        "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408"  # and capital
        "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"  # Greek, capital
        "\u03bf\u03bd\u03c1\u0131\u0261"  # and small; Latin dotless i and script g
        "\u2010\u2011\u2012\u2013\u2014\u2212\u2018\u2019\u201c\u201d",
        "aeopcyxijshdqwABEKMHOPCTXSIJABEZHIKMNOPTYXovpig------''\"\"",
        strict=True,
    )
)
_DRAWN = str.maketrans(_DRAWN_ALIKE)
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def warn_of_look_alikes(d: Declared, spec: ast.Spec) -> None:
    """W131 for characters that change the order of a text, W208 for labels, or declared names, that look alike."""
    source = spec.span.source
    if not source.text.isascii():
        found = [at for at, character in enumerate(source.text) if character in _REORDERING]
        for at in found[:_MOST]:
            message = f"{_point(source.text[at])} changes the order in which this text is shown"
            d.warn("W131", Span(source, at, at + 1), message, "remove it, unless the text is read from right to left")
    in_place = {
        item.text: item.span
        for x in spec.declarations
        if isinstance(x, ast.Labels) and not isinstance(x.body, ast.File)
        for item in x.body
        if isinstance(item, ast.Name)
    }
    whole = next((x.span for x in spec.declarations if isinstance(x, ast.Labels)), Span(source, 0, 0))
    names = {x.name.text: x.name.span for x in spec.declarations if not isinstance(x, ast.Labels)}
    for what, places, known in (("labels", in_place, d.labels), ("names", names, tuple(names))):
        for first, second in _pairs(known):
            message = f"the {what} {_shown(first, second)} and {_shown(second, first)} look alike"
            d.warn(
                "W208", places.get(second, whole), message, "is one of them a slip? Write the same name in both places"
            )


def _pairs(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of different names that look alike, each name with the first that looks so."""
    others = [name for name in names if not name.isascii()]
    if not others:
        return
    first: dict[str, str] = {name: name for name in names if name.isascii()}
    found, room = 0, _MOST_CHARACTERS
    for name in others:
        room -= len(name)
        if room < 0:
            return
        like = first.setdefault(_drawn(name), name)
        if like != name and found < _MOST:
            found += 1
            yield like, name


def _drawn(name: str) -> str:
    """How a name is drawn, as a key."""
    kept = (c for c in unicodedata.normalize("NFC", name) if unicodedata.category(c) != "Cf")
    plain = (unicodedata.normalize("NFKC", c) if "\uff01" <= c <= "\uff5e" else c for c in kept)
    return "".join(" " if unicodedata.category(c) == "Zs" else c for c in plain).translate(_DRAWN)


def _shown(name: str, other: str) -> str:
    """A name, with the code points of the characters that the other lacks."""
    own = [c for c in dict.fromkeys(name) if c not in other]
    return repr(name) + (f" ({', '.join(map(_point, own[:3]))}{', ...' * (len(own) > 3)})" if own else "")


def _point(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()


def check_limits(declared: Declared, checker: Checker, *, one_row: bool = False) -> tuple[Limit, ...]:
    """The limits of a spec without errors; errors of the others are reported.

    With `one_row`, the inputs are numbers of one row, and a limit is not judged: it is on the mean over all rows.
    """
    found = (_checked_limit(declared, checker, x, one_row=one_row) for x in declared.limits.values())
    return tuple(limit for limit in found if limit is not None)


def _checked_limit(d: Declared, checker: Checker, x: ast.Limit, *, one_row: bool) -> Limit | None:
    name, body = x.name.text, x.body
    if not isinstance(body, ast.Comparison) or body.operator != "<=":
        fixes = []
        match body:
            case ast.And(operands) | ast.Or(operands) if _upper_bound(operands[-1]) is not None:
                last = _upper_bound(operands[-1])
                assert last is not None
                whole = type(body)((*operands[:-1], last.left), span=body.span)
                fixes = [Fix.write(body.span, f"({expression(whole)}) <= {expression(last.right)}")]
        way_out = fixes[0].title.removeprefix("Write ") if fixes else f"{name}: any(C) <= 0.1"
        message = f"limit {name!r} is not of the form EXPR <= NUMBER"
        d.error("E270", body.span, message, f"write {way_out}", fixes=fixes)
        return None
    left, right = checker.check(body.left), checker.check(body.right)
    if left is None or right is None or not d.K:
        return None
    if right.number is None:
        way_out = "put a number or parameter on the right of <=, and everything that depends on the set on the left"
        d.error("E271", body.right.span, f"the bound of limit {name!r} depends on the set", way_out)
        return None
    if (left.number is not None or left.by_row) and not one_row:
        number = body.left.span.line if left.number is None else f"{left.number:g}"
        message = f"limit {name!r} bounds the number {number}, which does not depend on the set"
        d.error("E271", body.left.span, message, "limit an expression that depends on the set, such as any(C)")
        return None
    text = body.left.span.line
    limit = Limit(name, text, right.number, left.indicator, Expression(left.node), d.labels)
    if one_row:
        return limit
    lo, hi = limit.facts.interval
    if right.number < lo - 1e-9 * max(1.0, abs(right.number)):
        always = f"is always {lo:g}" if lo == hi else f"is at least {lo:g} on every set"
        way_out = f"raise the limit above {lo:g}, or limit another expression"
        d.error("E272", body.span, f"limit {name!r} cannot be met: {text} {always}", way_out)
        return None
    if right.number >= hi:
        d.warn("W273", body.span, f"limit {name!r} always holds: {text} is at most {hi:g}", "lower it, or remove it")
    return limit


def _upper_bound(expr: ast.Expr) -> ast.Comparison | None:
    return expr if isinstance(expr, ast.Comparison) and expr.operator == "<=" else None


@dataclass(frozen=True)
class Checked:
    """A spec that was read and checked, with its errors and warnings in `diagnostics`."""

    source: Source
    spec: ast.Spec
    declared: Declared
    checker: Checker
    limits: tuple[Limit, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def losses(self) -> tuple[ast.LossDecl, ...]:
        return tuple(x for x in self.declared.definitions.values() if isinstance(x, ast.LossDecl))

    @property
    def sound(self) -> bool:
        return not any(x.severity == "error" for x in self.diagnostics)


@dataclass(frozen=True)
class Compiled:
    """Everything a `Loss` is made of."""

    name: str
    unit: str | None
    source: Source
    spec: ast.Spec
    params: Mapping[str, float]
    files: Mapping[str, bytes]
    warnings: tuple[Diagnostic, ...]
    inputs: Mapping[str, RowInput]  # that the spec declares
    read: frozenset[str]  # those of them that this loss reads
    expression: Expression
    terms: Mapping[str, Expression]
    limits: tuple[Limit, ...]
    body: ast.Expr
    interpreter: Interpreter
    declared: Declared
    multipliers: tuple[float, ...] = ()  # of the limits that are part of the expression


def compile_spec(
    source: Source,
    files: Files,
    params: Mapping[str, float] | None = None,
    labels: Sequence[str] | None = None,
    loss: str | None = None,
) -> Compiled:
    """Compile one loss of a spec; SpecError has every error of the whole spec."""
    return choose(check_spec(source, files, params, labels), loss)


def check_spec(
    source: Source,
    files: Files,
    params: Mapping[str, float] | None = None,
    labels: Sequence[str] | None = None,
    cache: DeclarationCache | None = None,
) -> Checked:
    """Parse and check a spec, which may have errors; with `cache`, unchanged declarations are not built again."""
    names = None if labels is None else _checked_labels(labels)
    spec, faults = parse(source)
    given = _checked_params(spec, params or {}, not faults)
    declared = declare(spec, files, names, given, cache)
    warn_of_look_alikes(declared, spec)
    return _checked(source, spec, declared, faults)


def with_params(compiled: Compiled, params: Mapping[str, float]) -> Compiled:
    """The same loss with other values of some parameters; nothing is read again."""
    spec = compiled.spec
    declared = declare_params(compiled.declared, spec, {**compiled.params, **_checked_params(spec, params, True)})
    again = choose(_checked(compiled.source, spec, declared, []), compiled.name)
    return replace(again, files=compiled.files, warnings=compiled.warnings)


def with_inputs(compiled: Compiled, row: Mapping[str, Any]) -> Compiled:
    """The loss of one row, or of many (`PerRow`): the same loss with numbers in place of its inputs."""
    declared = declare_inputs(compiled.declared, row)
    checked = _checked(compiled.source, compiled.spec, declared, [], one_row=True)
    limits = checked.limits if compiled.limits else ()  # a loss may be used without the limits of its spec
    if any(isinstance(value, PerRow) for value in row.values()):  # no single row is shown or interpreted
        found = checked.checker.values[compiled.name]
        assert found is not None, "the spec was checked for all values of the inputs"
        root = Expression(found.node)
        return replace(compiled, expression=root, limits=limits, terms={}, inputs={}, read=frozenset())
    one = choose(checked, compiled.name)
    return replace(one, files=compiled.files, warnings=compiled.warnings, params=compiled.params, limits=limits)


def _checked(
    source: Source, spec: ast.Spec, declared: Declared, faults: list[Diagnostic], *, one_row: bool = False
) -> Checked:
    checker = Checker(declared, one_row=one_row)
    limits = check_limits(declared, checker, one_row=one_row)
    if not faults and not any(isinstance(x, ast.LossDecl) for x in declared.definitions.values()):
        declared.error("E200", Span(source, 0, 0), "the spec has no loss", "write `loss name = size`")
    diagnostics = sorted([*faults, *declared.diagnostics], key=lambda x: x.span.start)
    return Checked(source, spec, declared, checker, limits, tuple(diagnostics))


def choose(checked: Checked, loss: str | None = None) -> Compiled:
    """One loss of a checked spec, by default the last; SpecError if the spec has errors."""
    if not checked.sound:
        raise SpecError(checked.diagnostics)
    declared, checker = checked.declared, checked.checker
    chosen = _chosen(checked.losses, loss)
    value = checker.values[chosen.name.text]
    assert value is not None, "an expression without a value has a diagnostic"
    expression = Expression(value.node)
    _refuse_overflow(expression)
    numbers = {name: thing for name, thing in declared.things.items() if isinstance(thing, float)}
    files = dict(declared.files.read_so_far)
    return Compiled(
        name=chosen.name.text,
        unit=None if chosen.unit is None else chosen.unit.text,
        source=checked.source,
        spec=checked.spec,
        params=numbers,
        files=files,
        warnings=checked.diagnostics,
        inputs={name: x for name, thing in declared.things.items() if (x := declared_input(declared, thing))},
        read=frozenset(
            node.name
            for one in (expression, *(limit.expression for limit in checked.limits))
            for node in one.nodes
            if isinstance(node, InputNode | RowLeaf)
        ),
        expression=expression,
        terms=_terms(checker, chosen.body, value),
        limits=checked.limits,
        body=chosen.body,
        interpreter=Interpreter({n: declared.definitions[n].body for n in checker.values}, numbers, checker.atoms),
        declared=replace(declared, files=Files(contents=files)),  # without the tables parsed from the files
    )


def _checked_labels(labels: object) -> list[str]:
    """Check labels from the caller: strings or whole numbers in an order (that of a set differs between processes)."""
    if isinstance(labels, str):
        raise InputError(f"labels is one string, {labels!r}: give a list of labels")
    if isinstance(labels, Set | Mapping | bytes) or not isinstance(labels, Iterable):
        raise InputError(
            f"labels is of type {type(labels).__name__}: give a list of labels in the order of the columns"
        )
    names = list(labels)
    for i, name in enumerate(names):
        if isinstance(name, bool) or not isinstance(name, str | Integral):
            raise InputError(f"label number {i + 1} is {name!r}: labels are strings or whole numbers")
        if isinstance(name, str) and not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
            raise InputError(f"label number {i + 1} is {name!r}, with half of a surrogate pair: it is no text")
    return [str(name) for name in names]


def _checked_params(spec: ast.Spec, params: Mapping[str, float], complete: bool) -> Mapping[str, float]:
    known = [x.name.text for x in spec.declarations if isinstance(x, ast.Param)]
    for name, value in params.items():
        if name not in known and complete:
            raise InputError(f"the spec has no parameter {name!r}; {did_you_mean(name, known) or 'it declares none'}")
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(f"parameter {name}: {value!r} is not a number")
        try:
            finite = math.isfinite(value)
        except OverflowError:  # of a whole number with hundreds of digits
            raise InputError(f"parameter {name} is too large: the largest number is about 1.8e308") from None
        if not finite:
            raise InputError(f"parameter {name}: {value!r} is not a finite number")
    return params


def _chosen(losses: Sequence[ast.LossDecl], name: str | None) -> ast.LossDecl:
    if name is None:
        return losses[-1]
    for candidate in losses:
        if candidate.name.text == name:
            return candidate
    raise InputError(f"the spec has no loss {name!r}; {did_you_mean(name, [x.name.text for x in losses])}")


def _refuse_overflow(expression: Expression) -> None:
    """Refuse a loss that may overflow: finite numbers may have an infinite sum or product on some set."""
    bounds: dict[int, float] = {}
    for node in expression.nodes:
        with np.errstate(over="ignore"):
            bounds[id(node)] = _bound(node, [bounds[id(part)] for part in node.children])
        if not math.isfinite(bounds[id(node)]):
            message = f"{node.text!r} may be too large for a number: the largest is about 1.8e308"
            raise SpecError([Diagnostic("E405", node.span, message, "use smaller numbers")])


def _bound(node: Node, parts: list[float]) -> float:
    """An upper bound on the size of the node's values, and of every sum on the way to them."""
    match node:
        case Constant():
            return abs(node.number)
        case Leaf():
            return max(map(abs, node.atom.interval))
        case RowNumber() | RowLeaf():
            return max(map(abs, node.interval))
        case RowScale():
            return parts[0] * parts[1]
        case Table():
            return float(np.abs(node.table).max())
        case Add():
            return sum(parts)
        case Scale():
            return abs(node.factor) * parts[0]
        case Gate():
            return parts[1]
        case Extremum():
            return max(parts)
        case If() | RowChoice():
            return max(parts[1:])
        case _:
            return 1.0  # an indicator


def _terms(checker: Checker, body: ast.Expr, whole: Value) -> dict[str, Expression]:
    """The summands of the loss as written, as they were checked; equal texts are one term."""
    if not isinstance(body, ast.Sum):
        return {body.span.line: Expression(whole.node)}
    nodes: dict[str, list[Node]] = {}
    for sign, e in body.terms:
        value = checker.checked[id(e)]
        assert value is not None, "the whole was checked, so its parts are good"
        node = value.node if sign > 0 else Scale(e.span, value.node.K, -1.0, value.node)
        nodes.setdefault(e.span.line if sign > 0 else f"-{e.span.line}", []).append(node)
    return {
        text: Expression(same[0] if len(same) == 1 else Add(body.span, same[0].K, tuple(same)))
        for text, same in nodes.items()
    }
