"""`limit NAME: EXPR <= NUMBER`: checked like an expression, and against the facts of EXPR."""

from __future__ import annotations

from udcp_dsl.compile.declare import Declared
from udcp_dsl.compile.type_checker import Checker
from udcp_dsl.diagnostics import Fix
from udcp_dsl.expression.ir import Expression
from udcp_dsl.expression.limit import Limit
from udcp_dsl.language import ast
from udcp_dsl.language.unparse import expression


def check_limits(declared: Declared, checker: Checker, *, one_row: bool = False) -> tuple[Limit, ...]:
    """The limits of a spec without errors; errors of the others are reported.

    With `one_row`, the inputs are numbers of one row, and a limit is not judged: it is on the mean over all rows.
    """
    found = (_checked(declared, checker, x, one_row=one_row) for x in declared.limits.values())
    return tuple(limit for limit in found if limit is not None)


def _checked(d: Declared, checker: Checker, x: ast.Limit, *, one_row: bool) -> Limit | None:
    name, body = x.name.text, x.body
    if not isinstance(body, ast.Comparison) or body.operator != "<=":
        fixes = []
        match body:
            case ast.And(operands) | ast.Or(operands) if _bound(operands[-1]) is not None:
                last = _bound(operands[-1])
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


def _bound(expr: ast.Expr) -> ast.Comparison | None:
    return expr if isinstance(expr, ast.Comparison) and expr.operator == "<=" else None
