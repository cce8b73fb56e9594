"""A syntax tree as canonical text, such that parsing the text gives the tree again.

Quotes and parentheses stand only where they are needed, numbers are the shortest that read back as the same float, and
lists are wrapped at 100 columns. Comments are not in the tree, so they are not in the text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from itertools import pairwise

from udcp_dsl.language import ast
from udcp_dsl.language.words import RESERVED, is_bare, is_name

_WIDTH = 100
_INDENT = "    "

# How tightly an expression binds: an operand that binds less tightly than its place asks stands in parentheses.
_IF, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _NEGATIVE, _POWER, _OPERAND = range(10)

# A piece of text, or an expression and how tightly it has to bind where it stands.
_Piece = str | tuple[ast.Expr | ast.SetLiteral, int]


def unparse(spec: ast.Spec) -> str:
    """The canonical text of a spec; a blank line where the kind of declaration changes."""
    lines: list[str] = []
    for before, declaration in pairwise((None, *spec.declarations)):
        assert declaration is not None
        if before is not None and type(before) is not type(declaration):
            lines.append("")
        lines.append(_declaration(declaration))
    return "".join(f"{line}\n" for line in lines)


def expression(expr: ast.Expr | ast.SetLiteral) -> str:
    """The canonical text of one expression, on one line."""
    return _operand(expr, _IF)


def _operand(expr: ast.Expr | ast.SetLiteral, tightness: int) -> str:
    # A stack instead of recursion, so that no depth of nesting is too much.
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
    """How tightly an expression binds, and what it is written as."""
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
    """Operands, each with what stands before it; before the first stands nothing."""
    pieces: list[_Piece] = [piece for sign, operand in operands for piece in (sign, (operand, tightness))]
    return pieces[1:]


def _number(value: float) -> str:
    """The shortest decimal that reads back as the value: `2`, `0.5`, `1e-9`."""
    if not (math.isfinite(value) and math.copysign(1, value) > 0):
        raise ValueError(f"{value} cannot be written as a number of the language")
    mantissa, _, exponent = repr(float(value)).partition("e")
    return mantissa.removesuffix(".0") + (f"e{int(exponent)}" if exponent else "")


def _signed(number: ast.Signed) -> str:
    return f"-{_number(-number.value)}" if number.value < 0 else _number(abs(number.value))


def _string(text: str) -> str:
    """A JSON string in which every character can be seen."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else json.dumps(c)[1:-1] for c in text) + '"'


def written(text: str) -> str:
    """A label, category, node, level or column: as it is where it may stand so, else a string."""
    return text if is_bare(text) else _string(text)


def _name(name: ast.Name) -> str:
    return written(name.text)


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


def _declaration(declaration: ast.Declaration) -> str:
    match declaration:
        case ast.Labels((ast.Range() as only,)):
            return f"labels {_item(only)}"
        case ast.Labels(body):
            return _with_body("labels", body)
        case ast.Hierarchy(name, body):
            return _with_body(f"hierarchy {_declared(name)}", body)
        case ast.Costs(name, of, body, default):
            head = f"costs {_declared(name)}{_of(of)}"
            if isinstance(body, ast.File):
                return f"{head} {_file(body)}"
            entries = [f"{_cost_key(entry.key)}: {_signed(entry.value)}" for entry in body]
            entries += [f"default: {_signed(default)}"] if default is not None else []
            return _braced(head, [(entry, False) for entry in entries], "")
        case ast.Distance(name, None, ast.Path(hierarchy, edge)):
            length = f", edge: {_signed(edge)}" if edge is not None else ""
            return f"distance {_declared(name)} = path({_declared(hierarchy)}{length})"
        case ast.Distance(name, of, ast.File() as file):
            return f"distance {_declared(name)}{_of(of)} {_file(file)}"
        case ast.Category(name, body):
            return _with_body(f"category {_declared(name)}", body)
        case ast.Categories(name, body):
            return _with_body(f"categories {_declared(name)}", body)
        case ast.Actions(name, file):
            return f"actions {_declared(name)} {_file(file)}"
        case ast.Param(name, value, low, high):
            limits = f" in [{_signed(low)}, {_signed(high)}]" if low is not None and high is not None else ""
            return f"param {_declared(name)} = {_signed(value)}{limits}"
        case ast.Let(name, body):
            return _defined(f"let {_declared(name)} =", body)
        case ast.LossDecl(name, body):
            return _defined(f"loss {_declared(name)} =", body)
    raise TypeError(f"{type(declaration).__name__} is not a declaration")


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


def _with_body(head: str, body: ast.File | tuple[ast.Item | ast.Branch | ast.Member, ...], margin: str = "") -> str:
    if isinstance(body, ast.File):
        return f"{head} {_file(body)}"
    return _braced(head, [_entry(entry, margin + _INDENT) for entry in body], margin)


def _entry(entry: ast.Item | ast.Branch | ast.Member, margin: str) -> tuple[str, bool]:
    """The text of an entry, and whether it has braces of its own."""
    if isinstance(entry, ast.Branch):
        return _with_body(_name(entry.name), entry.children, margin), True
    if isinstance(entry, ast.Member):
        return _with_body(f"{_name(entry.name)}:", entry.items, margin), True
    return _item(entry), False


def _braced(head: str, entries: list[tuple[str, bool]], margin: str) -> str:
    """`head { a, b }` on one line if it fits, else wrapped; an entry with braces of its own has lines to itself."""
    line = f"{head} {{ {', '.join(text for text, _ in entries)} }}"
    if len(margin) + len(line) <= _WIDTH and "\n" not in line:
        return line
    rows: list[str] = []
    after_nested = True
    for text, nested in entries:
        if nested or after_nested or len(rows[-1]) + len(f" {text},") > _WIDTH:
            rows.append(f"{margin}{_INDENT}{text},")
        else:
            rows[-1] += f" {text},"
        after_nested = nested
    return "\n".join([f"{head} {{", *rows, f"{margin}}}"])


def _defined(head: str, expr: ast.Expr) -> str:
    """`loss l = ...`; a sum that is too long for one line has one line a term."""
    line = f"{head} {expression(expr)}"
    if len(line) <= _WIDTH or not isinstance(expr, ast.Sum):
        return line
    terms = [f"  {'+' if sign > 0 else '-'} {_operand(term, _PRODUCT)}" for sign, term in expr.terms]
    return "\n".join([head, "    " + terms[0][4:], *terms[1:]])
