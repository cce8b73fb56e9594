"""The syntax tree of a spec: declarations and expressions, each with its span.

Names are not resolved here. Spans do not take part in equality, so two trees are equal if they say the same,
wherever they are in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import dataclass_transform

from udcp_dsl.diagnostics import Span


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Syntax:
    """A node of the tree; subclasses are frozen dataclasses. `span` is keyword-only, as it comes after their fields."""

    span: Span = field(compare=False, repr=False, kw_only=True)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Name(Syntax):
    """A label, category, node, level, column or declared name: `eczema`, `7`, `"basal cell"`."""

    text: str


class Range(Syntax):
    """`a..b` in a list of labels; both ends are included."""

    first: int
    last: int


class Signed(Syntax):
    """A number as written in costs, params and ranges, with its sign."""

    value: float


class File(Syntax):
    """`from "path"`, with the clauses that select a part of the file."""

    path: str
    column: Name | None = None
    by: Name | None = None
    levels: tuple[Name, ...] = ()
    path_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


Item = Name | Range


# Expressions ---------------------------------------------------------------------------------------------------------


class Number(Syntax):
    value: float


class Indexed(Syntax):
    """The part `node(n)` or `level(d)` of a reference."""

    kind: str
    argument: Name


class Ref(Syntax):
    """`name`, `F.c`, `h.level`, `h.level.node`, `h.node(n)`, `h.level(2)`."""

    head: Name
    parts: tuple[Name | Indexed, ...] = ()


class SetLiteral(Syntax):
    """`{ a, b, 3..5 }` in place of a category."""

    items: tuple[Item, ...]


class Call(Syntax):
    """An atom or function by name: `size`, `sum(c)`, `max(e, f)`, `sqrt(e)`; no parentheses: `arguments` is None."""

    name: str
    arguments: tuple[Expr | SetLiteral, ...] | None


class Sum(Syntax):
    """`a + b - c`: terms with their signs (+1 or -1); the first sign is +1."""

    terms: tuple[tuple[int, Expr], ...]


class Product(Syntax):
    """`a * b / c`: factors with "*" or "/" before each; the first is "*"."""

    factors: tuple[tuple[str, Expr], ...]


class Negative(Syntax):
    operand: Expr


class Power(Syntax):
    base: Expr
    exponent: Expr


class Comparison(Syntax):
    """`left OP right` with OP one of `>= > <= < ==`."""

    operator: str
    left: Expr
    right: Expr


class And(Syntax):
    operands: tuple[Expr, ...]


class Or(Syntax):
    operands: tuple[Expr, ...]


class Not(Syntax):
    operand: Expr


class If(Syntax):
    condition: Expr
    then: Expr
    otherwise: Expr


Expr = Number | Ref | Call | Sum | Product | Negative | Power | Comparison | And | Or | Not | If


# Declarations --------------------------------------------------------------------------------------------------------


class Labels(Syntax):
    """`labels { ... }`, `labels 0..99` (one Range), or `labels from "file" column c`."""

    body: tuple[Item, ...] | File


class Branch(Syntax):
    """An inner node of a hierarchy written in place: `benign { nevus, wart }`."""

    name: Name
    children: tuple[Branch | Item, ...]


class Hierarchy(Syntax):
    name: Name
    body: tuple[Branch | Item, ...] | File


class CostEntry(Syntax):
    key: Item
    value: Signed


class PerRow(Syntax):
    """`per row in [0, 500]`: numbers that are given with each row."""

    low: Signed
    high: Signed


class Costs(Syntax):
    """`costs c { a: 1, default: 0 }`, `costs c from "f" column k`, `costs w of F { ... }`, or `costs c per row ...`."""

    name: Name
    of: Ref | None
    body: tuple[CostEntry, ...] | File | PerRow
    default: Signed | None = None


class Path(Syntax):
    """`path(h, edge: 1)`: the length of the path between two leaves."""

    hierarchy: Name
    edge: Signed | None


class Distance(Syntax):
    """`distance d from "f"`, `distance d = path(h)`, `distance g of F from "f"`: between the categories of F."""

    name: Name
    of: Ref | None
    body: File | Path


class Category(Syntax):
    name: Name
    body: tuple[Item, ...] | File


class Member(Syntax):
    """One category of a family written in place: `derm: { nevus, wart }`."""

    name: Name
    items: tuple[Item, ...]


class Categories(Syntax):
    name: Name
    body: tuple[Member, ...] | File


class Actions(Syntax):
    name: Name
    body: File


class Param(Syntax):
    """`param p = 2 in [0, 10]`."""

    name: Name
    value: Signed
    low: Signed | None = None
    high: Signed | None = None


class Input(Syntax):
    """`input km in [0, 200]`: a number that is given with each row."""

    name: Name
    low: Signed
    high: Signed


class Limit(Syntax):
    """`limit slots: any(surgical) <= 0.10`; the body is the whole expression after the colon, of any form."""

    name: Name
    body: Expr


class Let(Syntax):
    name: Name
    body: Expr


class LossDecl(Syntax):
    """`loss l = ...`, or with the unit in which its costs are shown: `loss l in hours = ...`."""

    name: Name
    body: Expr
    unit: Name | None = None


Declaration = (
    Labels | Hierarchy | Costs | Distance | Category | Categories | Actions | Param | Input | Limit | Let | LossDecl
)


class Spec(Syntax):
    """The declarations that parse; `unread`: names that other statements may declare (`labels` for the labels)."""

    declarations: tuple[Declaration, ...]
    unread: frozenset[str] = frozenset()


def children(expr: Expr) -> tuple[Expr, ...]:
    """The operands of an operator, or the arguments of a call except set literals."""
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
