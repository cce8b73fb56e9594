"""Is the cost of every set affine in the parameters? Decided by rules over the syntax tree, never by trying values.

Sums and negatives of affine expressions are affine; so are products with at most one factor that depends on a
parameter, quotients by what depends on none, and `if` whose condition depends on none. Anything else that depends on a
parameter (min, max, powers, comparisons) counts as not affine.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum

from udcp_dsl.language import ast
from udcp_dsl.loss import Loss


class Dependence(IntEnum):
    """How the value of an expression on a set depends on the parameters."""

    NONE = 0
    AFFINE = 1
    OTHER = 2


def params_read(loss: Loss) -> frozenset[str]:
    """The parameters that the loss reads, directly or through lets and other losses."""
    definitions = {x.name.text: x.body for x in loss.spec.declarations if isinstance(x, ast.Let | ast.LossDecl)}
    seen, waiting = {loss.name}, [definitions[loss.name]]
    while waiting:
        expr = waiting.pop()
        waiting += ast.children(expr)
        if isinstance(expr, ast.Ref) and expr.head.text not in seen:
            seen.add(expr.head.text)
            waiting += [definitions[expr.head.text]] if expr.head.text in definitions else []
    return frozenset(seen & set(loss.params))


def not_affine(loss: Loss, params: Collection[str]) -> ast.Expr | None:
    """The smallest part of the loss that is not known to be affine in these parameters; None if the loss is affine.

    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {a, b}  param k = 1 in [0, 9]  loss l = k * size + min(size, k)")
    >>> not_affine(loss, ["k"]).span.text
    'min(size, k)'
    """
    definitions = {x.name.text: x.body for x in loss.spec.declarations if isinstance(x, ast.Let | ast.LossDecl)}
    known: dict[int, Dependence] = {}
    stack = [definitions[loss.name]]
    while stack:  # no recursion: a chain of lets can have any length
        expr = stack[-1]
        named = expr.head.text if isinstance(expr, ast.Ref) else None
        parts = [definitions[named]] if named in definitions else [*ast.children(expr)]
        waiting = [part for part in parts if id(part) not in known]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        found = [known[id(part)] for part in parts]
        composed = Dependence.AFFINE if named in params else _composed(expr, found)
        if composed is Dependence.OTHER:
            return expr
        known[id(expr)] = composed
    return None


def _composed(expr: ast.Expr, parts: list[Dependence]) -> Dependence:
    most = max(parts, default=Dependence.NONE)
    if most is not Dependence.AFFINE:
        return most
    match expr:
        case ast.Ref() | ast.Sum() | ast.Negative():
            return most
        case ast.Product(factors):
            dependent = [sign for (sign, _), part in zip(factors, parts, strict=True) if part is Dependence.AFFINE]
            return most if dependent == ["*"] else Dependence.OTHER
        case ast.If():
            return most if parts[0] is Dependence.NONE else Dependence.OTHER
        case _:
            return Dependence.OTHER
