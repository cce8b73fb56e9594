"""The spec as it was written: declarations and expressions, each with its span.

Nothing is resolved here: a name is a name. Spans do not take part in equality, so that two trees are
equal when they say the same thing, wherever they stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from udcp_dsl.diagnostics import Span


def _span() -> Any:
    """A field by keyword (it may follow defaults) without part in equality; typed as the `field` of dataclasses."""
    return field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Name:
    """A label, category, node, level, column or declared name: `eczema`, `7`, `"basal cell"`."""

    text: str
    span: Span = _span()


@dataclass(frozen=True)
class Range:
    """`a..b` in a list of labels; both ends are included."""

    first: int
    last: int
    span: Span = _span()


@dataclass(frozen=True)
class Signed:
    """A number as written in costs, params and ranges, with its sign."""

    value: float
    span: Span = _span()


@dataclass(frozen=True)
class File:
    """`from "path"`, with the clauses that say which part of it is meant."""

    path: str
    column: Name | None = None
    by: Name | None = None
    levels: tuple[Name, ...] = ()
    path_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    span: Span = _span()


Item = Name | Range


# Expressions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    value: float
    span: Span = _span()


@dataclass(frozen=True)
class Indexed:
    """The part `node(n)` or `level(d)` of a reference."""

    kind: str
    argument: Name
    span: Span = _span()


@dataclass(frozen=True)
class Ref:
    """`name`, `F.c`, `h.level`, `h.level.node`, `h.node(n)`, `h.level(2)`."""

    head: Name
    parts: tuple[Name | Indexed, ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class SetLiteral:
    """`{ a, b, 3..5 }` in place of a category."""

    items: tuple[Item, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Call:
    """An atom or function by name: `size`, `sum(c)`, `max(e, f)`, `sqrt(e)`; no parentheses, no `arguments`."""

    name: str
    arguments: tuple[Expr | SetLiteral, ...] | None
    span: Span = _span()


@dataclass(frozen=True)
class Sum:
    """`a + b - c`: terms with their signs (+1 or -1); the first sign is +1."""

    terms: tuple[tuple[int, Expr], ...]
    span: Span = _span()


@dataclass(frozen=True)
class Product:
    """`a * b / c`: factors with "*" or "/" before each; the first is "*"."""

    factors: tuple[tuple[str, Expr], ...]
    span: Span = _span()


@dataclass(frozen=True)
class Negative:
    operand: Expr
    span: Span = _span()


@dataclass(frozen=True)
class Power:
    base: Expr
    exponent: Expr
    span: Span = _span()


@dataclass(frozen=True)
class Comparison:
    """`left OP right` with OP one of `>= > <= < ==`."""

    operator: str
    left: Expr
    right: Expr
    span: Span = _span()


@dataclass(frozen=True)
class And:
    operands: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Or:
    operands: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Not:
    operand: Expr
    span: Span = _span()


@dataclass(frozen=True)
class If:
    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span = _span()


Expr = Number | Ref | Call | Sum | Product | Negative | Power | Comparison | And | Or | Not | If


# Declarations --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """`labels { ... }`, `labels 0..99` (one Range), or `labels from "file" column c`."""

    body: tuple[Item, ...] | File
    span: Span = _span()


@dataclass(frozen=True)
class Branch:
    """An inner node of a hierarchy written in place: `benign { nevus, wart }`."""

    name: Name
    children: tuple[Branch | Item, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Hierarchy:
    name: Name
    body: tuple[Branch | Item, ...] | File
    span: Span = _span()


@dataclass(frozen=True)
class CostEntry:
    key: Item
    value: Signed
    span: Span = _span()


@dataclass(frozen=True)
class PerRow:
    """`per row in [0, 500]`: numbers that are given with each row."""

    low: Signed
    high: Signed
    span: Span = _span()


@dataclass(frozen=True)
class Costs:
    """`costs c { a: 1, default: 0 }`, `costs c from "f" column k`, `costs w of F { ... }`, or `costs c per row ...`."""

    name: Name
    of: Ref | None
    body: tuple[CostEntry, ...] | File | PerRow
    default: Signed | None = None
    span: Span = _span()


@dataclass(frozen=True)
class Path:
    """`path(h, edge: 1)`: the length of the path between two leaves."""

    hierarchy: Name
    edge: Signed | None
    span: Span = _span()


@dataclass(frozen=True)
class Distance:
    """`distance d from "f"`, `distance d = path(h)`, `distance g of F from "f"`: between the categories of F."""

    name: Name
    of: Ref | None
    body: File | Path
    span: Span = _span()


@dataclass(frozen=True)
class Category:
    name: Name
    body: tuple[Item, ...] | File
    span: Span = _span()


@dataclass(frozen=True)
class Member:
    """One category of a family written in place: `derm: { nevus, wart }`."""

    name: Name
    items: tuple[Item, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Categories:
    name: Name
    body: tuple[Member, ...] | File
    span: Span = _span()


@dataclass(frozen=True)
class Actions:
    name: Name
    body: File
    span: Span = _span()


@dataclass(frozen=True)
class Param:
    """`param p = 2 in [0, 10]`."""

    name: Name
    value: Signed
    low: Signed | None = None
    high: Signed | None = None
    span: Span = _span()


@dataclass(frozen=True)
class Input:
    """`input km in [0, 200]`: a number that is given with each row."""

    name: Name
    low: Signed
    high: Signed
    span: Span = _span()


@dataclass(frozen=True)
class Limit:
    """`limit slots: any(surgical) <= 0.10`; the body is all that follows the colon, whatever its form."""

    name: Name
    body: Expr
    span: Span = _span()


@dataclass(frozen=True)
class Let:
    name: Name
    body: Expr
    span: Span = _span()


@dataclass(frozen=True)
class LossDecl:
    """`loss l = ...`, or with the unit in which its costs are shown: `loss l in hours = ...`."""

    name: Name
    body: Expr
    unit: Name | None = None
    span: Span = _span()


Declaration = (
    Labels | Hierarchy | Costs | Distance | Category | Categories | Actions | Param | Input | Limit | Let | LossDecl
)


@dataclass(frozen=True)
class Spec:
    """The statements that parse, and the names that the others would have declared (`labels` for the labels)."""

    declarations: tuple[Declaration, ...]
    unread: frozenset[str] = frozenset()
    span: Span = _span()


def children(expr: Expr) -> tuple[Expr, ...]:
    """The operands of an operator, or the arguments of a call that are expressions by their form."""
    match expr:
        case Call():
            return tuple(e for e in expr.arguments or () if not isinstance(e, SetLiteral))
        case Sum():
            return tuple(e for _, e in expr.terms)
        case Product():
            return tuple(e for _, e in expr.factors)
        case Negative() | Not():
            return (expr.operand,)
        case Power():
            return (expr.base, expr.exponent)
        case Comparison():
            return (expr.left, expr.right)
        case And() | Or():
            return expr.operands
        case If():
            return (expr.condition, expr.then, expr.otherwise)
        case _:
            return ()
