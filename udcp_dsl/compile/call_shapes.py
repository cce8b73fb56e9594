"""The shapes of calls and expressions: what is an operand, in which order operands come, how an atom is written."""

from __future__ import annotations

from collections.abc import Sequence

from udcp_dsl.expression import ir
from udcp_dsl.language import ast
from udcp_dsl.language.words import FUNCTION_NAMES


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
