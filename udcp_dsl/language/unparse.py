"""Write a syntax tree as canonical text; parsing the text gives the same tree.

Quotes and parentheses are written only where they are needed, numbers in the shortest form that reads back as the same
float, and lists are wrapped at 100 columns. The tree has no comments, so the text has none: `layout` adds them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import pairwise

from udcp_dsl.language import ast
from udcp_dsl.language.words import RESERVED, is_bare, is_name

WIDTH = 100
INDENT = "    "

# Precedence: an operand whose precedence is below that of its place gets parentheses.
_IF, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _NEGATIVE, _POWER, _OPERAND = range(10)

# A piece of text, or an expression with the precedence of its place.
_Piece = str | tuple[ast.Expr | ast.SetLiteral, int]


def unparse(spec: ast.Spec) -> str:
    """The canonical text of a spec, with a blank line where the kind of declaration changes."""
    lines: list[str] = []
    for before, declaration in pairwise((None, *spec.declarations)):
        assert declaration is not None
        if before is not None and type(before) is not type(declaration):
            lines.append("")
        lines.append(declaration_text(declaration))
    return "".join(f"{line}\n" for line in lines)


def expression(expr: ast.Expr | ast.SetLiteral) -> str:
    """The canonical text of one expression, on one line."""
    return _operand(expr, _IF)


def _operand(expr: ast.Expr | ast.SetLiteral, tightness: int) -> str:
    # A stack instead of recursion, so that any depth of nesting works.
    text: list[str] = []
    stack: list[_Piece] = [(expr, tightness)]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            text.append(piece)
        else:
            own, pieces = _pieces(piece[0])
            stack.extend(reversed(pieces if own >= piece[1] else ["(", *pieces, ")"]))
    return "".join(text)


def _pieces(expr: ast.Expr | ast.SetLiteral) -> tuple[int, list[_Piece]]:
    """The precedence of an expression, and the pieces that it is written as."""
    match expr:
        case ast.Number(value):
            return _OPERAND, [_number(value)]
        case ast.Ref():
            return _OPERAND, [_ref(expr)]
        case ast.SetLiteral(items):
            return _OPERAND, ["{ ", ", ".join(map(_item, items)), " }"]
        case ast.Call(name, None):
            return _OPERAND, [name]
        case ast.Call(name, arguments):
            return _OPERAND, [f"{name}(", *_chained(((", ", a) for a in arguments or ()), _IF), ")"]
        case ast.Power(base, exponent):
            return _POWER, [(base, _OPERAND), " ^ ", (exponent, _NEGATIVE)]
        case ast.Negative(operand):
            return _NEGATIVE, ["-", (operand, _NEGATIVE)]
        case ast.Product(factors):
            return _PRODUCT, _chained(((f" {operator} ", factor) for operator, factor in factors), _NEGATIVE)
        case ast.Sum(terms):
            return _SUM, _chained(((" + " if sign > 0 else " - ", term) for sign, term in terms), _PRODUCT)
        case ast.Comparison(operator, left, right):
            return _COMPARISON, [(left, _SUM), f" {operator} ", (right, _SUM)]
        case ast.Not(operand):
            return _NOT, ["not ", (operand, _NOT)]
        case ast.And(operands):
            return _AND, _chained(((" and ", operand) for operand in operands), _NOT)
        case ast.Or(operands):
            return _OR, _chained(((" or ", operand) for operand in operands), _AND)
        case ast.If(condition, then, otherwise):
            return _IF, ["if ", (condition, _IF), " then ", (then, _IF), " else ", (otherwise, _IF)]


def _chained(operands: Iterable[tuple[str, ast.Expr | ast.SetLiteral]], tightness: int) -> list[_Piece]:
    """Operands, each after its separator; the first separator is dropped."""
    pieces: list[_Piece] = [piece for sign, operand in operands for piece in (sign, (operand, tightness))]
    return pieces[1:]


def _number(value: float) -> str:
    """The shortest decimal that reads back as the value: `2`, `0.5`, `1e-9`."""
    if not (math.isfinite(value) and math.copysign(1, value) > 0):
        raise ValueError(f"{value} cannot be written as a number of the language")
    mantissa, _, exponent = repr(float(value)).partition("e")
    return mantissa.removesuffix(".0") + (f"e{int(exponent)}" if exponent else "")


def signed_text(number: ast.Signed) -> str:
    """The text of a number with its sign, as in costs, params and ranges."""
    return f"-{_number(-number.value)}" if number.value < 0 else _number(abs(number.value))


def _string(text: str) -> str:
    """A JSON string, with invisible characters escaped."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else json.dumps(c)[1:-1] for c in text) + '"'


def name_text(text: str) -> str:
    """A label, category, node, level or column as it is written in a spec: quoted only if it must be."""
    return text if is_bare(text) else _string(text)


def _name(name: ast.Name) -> str:
    return name_text(name.text)


def _declared(name: ast.Name) -> str:
    if not is_name(name.text) or name.text in RESERVED:
        raise ValueError(f"{name.text!r} cannot name a declaration")
    return name.text


def _item(item: ast.Item) -> str:
    return f"{item.first}..{item.last}" if isinstance(item, ast.Range) else _name(item)


def _ref(ref: ast.Ref) -> str:
    parts = (
        f"{part.kind}({_name(part.argument)})" if isinstance(part, ast.Indexed) else _name(part) for part in ref.parts
    )
    return ".".join((_declared(ref.head), *parts))


# Declarations --------------------------------------------------------------------------------------------------------


def declaration_text(declaration: ast.Declaration) -> str:
    """The canonical text of one declaration."""
    match declaration:
        case ast.Labels((ast.Range() as only,)):
            return f"labels {_item(only)}"
        case ast.Labels() | ast.Hierarchy() | ast.Costs() | ast.Category() | ast.Categories():
            if isinstance(declaration.body, ast.PerRow):
                low, high = declaration.body.low, declaration.body.high
                return f"{head(declaration)} per row in [{signed_text(low)}, {signed_text(high)}]"
            if not isinstance(declaration.body, ast.File):
                return braced(head(declaration), [entry_text(entry, INDENT) for entry in entries(declaration)], "")
            return f"{head(declaration)} {_file(declaration.body)}"
        case ast.Distance(_, None, ast.Path(hierarchy, edge)):
            length = f", edge: {signed_text(edge)}" if edge is not None else ""
            return f"{head(declaration)} = path({_declared(hierarchy)}{length})"
        case ast.Distance(_, _, ast.File() as file) | ast.Actions(_, file):
            return f"{head(declaration)} {_file(file)}"
        case ast.Param(_, value, low, high):
            limits = f" in [{signed_text(low)}, {signed_text(high)}]" if low is not None and high is not None else ""
            return f"{head(declaration)} = {signed_text(value)}{limits}"
        case ast.Input(_, low, high):
            return f"{head(declaration)} in [{signed_text(low)}, {signed_text(high)}]"
        case ast.Limit(_, body):
            return f"{head(declaration)}: {expression(body)}"
        case ast.Let(_, body) | ast.LossDecl(_, body):
            return _defined(f"{head(declaration)} =", body)
    raise TypeError(f"{type(declaration).__name__} is not a declaration")


def head(declaration: ast.Declaration) -> str:
    """The text before the body: `costs w of F`."""
    if isinstance(declaration, ast.Labels):
        return "labels"
    after = _of(declaration.of) if isinstance(declaration, ast.Costs | ast.Distance) else ""
    word = type(declaration).__name__.lower()
    if isinstance(declaration, ast.LossDecl):
        word, after = "loss", "" if declaration.unit is None else f" in {_unit(declaration.unit.text)}"
    return f"{word} {_declared(declaration.name)}{after}"


# An entry between braces; a number by itself is the default of costs.
Entry = ast.Item | ast.Branch | ast.Member | ast.CostEntry | ast.Signed


def entries(x: ast.Declaration | ast.Branch | ast.Member) -> tuple[Entry, ...]:
    """The entries between the braces of a declaration, a branch or a member, in canonical order."""
    match x:
        case ast.Branch():
            return x.children
        case ast.Member():
            return x.items
        case ast.Costs(_, _, tuple() as body, default):
            return (*body, *(() if default is None else (default,)))
        case ast.Labels(tuple() as body) | ast.Hierarchy(_, tuple() as body):
            return body
        case ast.Category(_, tuple() as body) | ast.Categories(_, tuple() as body):
            return body
        case _:
            return ()


def _unit(text: str) -> str:
    return text if is_name(text) and text not in RESERVED else _string(text)


def _of(family: ast.Ref | None) -> str:
    return f" of {_ref(family)}" if family is not None else ""


def _file(file: ast.File) -> str:
    clauses = [f"from {_string(file.path)}"]
    if file.column is not None:
        clauses.append(f"column {_name(file.column)}")
    if file.levels:
        clauses.append(f"levels {', '.join(map(_name, file.levels))}")
    if file.by is not None:
        clauses.append(f"by {_name(file.by)}")
    return " ".join(clauses)


def _cost_key(key: ast.Item) -> str:
    return '"default"' if isinstance(key, ast.Name) and key.text == "default" else _item(key)


def entry_text(entry: Entry, margin: str) -> tuple[str, bool]:
    """The text of an entry, and whether it has braces of its own."""
    if isinstance(entry, ast.Branch | ast.Member):
        inner = [entry_text(e, margin + INDENT) for e in entries(entry)]
        return braced(entry_head(entry), inner, margin), True
    if isinstance(entry, ast.CostEntry):
        return f"{_cost_key(entry.key)}: {signed_text(entry.value)}", False
    if isinstance(entry, ast.Signed):
        return f"default: {signed_text(entry)}", False
    return _item(entry), False


def entry_head(entry: ast.Branch | ast.Member) -> str:
    """The text before the brace of a nested entry."""
    return f"{_name(entry.name)}:" if isinstance(entry, ast.Member) else _name(entry.name)


def braced(head: str, entries: list[tuple[str, bool]], margin: str) -> str:
    """`head { a, b }` on one line if it fits, else wrapped; an entry with braces of its own gets its own lines."""
    line = f"{head} {{ {', '.join(text for text, _ in entries)} }}"
    if len(margin) + len(line) <= WIDTH and "\n" not in line:
        return line
    rows: list[str] = []
    after_nested = True
    for text, nested in entries:
        if nested or after_nested or len(rows[-1]) + len(f" {text},") > WIDTH:
            rows.append(f"{margin}{INDENT}{text},")
        else:
            rows[-1] += f" {text},"
        after_nested = nested
    return "\n".join([f"{head} {{", *rows, f"{margin}}}"])


def _defined(head: str, expr: ast.Expr) -> str:
    """`loss l = ...` on one line if it fits, else with one line per part, if there are several."""
    line = f"{head} {expression(expr)}"
    parts = broken(expr)
    return line if len(line) <= WIDTH or len(parts) == 1 else "\n".join([head, *(text for _, text in parts)])


def broken(expr: ast.Expr) -> list[tuple[ast.Expr, str]]:
    """The terms, operands or branches of an expression, each with its text for a line of its own."""
    match expr:
        case ast.Sum(terms):
            signs = ["    ", *(f"  {'+' if sign > 0 else '-'} " for sign, _ in terms[1:])]
            return [(term, sign + _operand(term, _PRODUCT)) for sign, (_, term) in zip(signs, terms, strict=True)]
        case ast.And(operands) | ast.Or(operands):
            word, tightness = ("and ", _NOT) if isinstance(expr, ast.And) else ("or ", _AND)
            return [(e, f"{INDENT}{word * (i > 0)}{_operand(e, tightness)}") for i, e in enumerate(operands)]
        case ast.If():
            parts = zip(("if", "then", "else"), ast.children(expr), strict=True)
            return [(e, f"{INDENT}{word} {expression(e)}") for word, e in parts]
        case _:
            return [(expr, INDENT + expression(expr))]
