"""The types of numbers that come with each row: row number and row indicator, and what they make of other operands.

Arithmetic of numbers and row numbers gives a row number. Combined with a function of the set, it gives a function of
the set, but not a function of a count. A row indicator switches a term on or selects a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from udcp_dsl.diagnostics import Span
from udcp_dsl.expression import ir
from udcp_dsl.expression.atoms import Atom
from udcp_dsl.expression.domain import Floats
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.forms import Range, ends
from udcp_dsl.expression.rows.declared import RowCosts
from udcp_dsl.expression.rows.nodes import RowArithmetic, RowChoice, RowComparison, RowLeaf, RowNumber, RowScale

# How the range of a result is found: by interval arithmetic, from the ends (if monotone), or as an indicator.
SUMS, ENDS, INDICATOR = "sums", "ends", "indicator"


def arithmetic(span: Span, K: int, nodes: Sequence[ir.Node], f: Callable[..., Floats], how: str) -> RowArithmetic:
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


def chosen(span: Span, K: int, nodes: Sequence[ir.Node], f: Callable[..., Floats]) -> RowArithmetic:
    """`if i then e else f` of row numbers: its range contains those of e and f."""
    made = arithmetic(span, K, nodes, f, INDICATOR)
    sides = [x.interval if isinstance(x, RowNumber) else Interval(_number(x), _number(x)) for x in nodes[1:]]
    low, high = min(side.lo for side in sides), max(side.hi for side in sides)
    return RowArithmetic(span, K, Interval(low, high), f, made.operands)


def scaled(span: Span, K: int, rows: Sequence[ir.Node], node: ir.Node) -> ir.Node:
    """Row numbers times a function of the set."""
    number = rows[0]
    if len(rows) > 1:
        number = arithmetic(span, K, rows, lambda *x: _product(x), SUMS)
    return RowScale(span, K, number, node)


def _product(factors: Sequence[Floats]) -> Floats:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def compared(span: Span, K: int, operator: str, left: ir.Node, right: ir.Node) -> ir.Node:
    """Compare a function of the set with a row number."""
    k = right if isinstance(right, RowNumber) else left
    assert isinstance(k, RowNumber), "one side is a row number"
    if operator == "==":
        return RowComparison(span, K, left, right, "==", k)
    # a <= b is b >= a;  a > b and a < b are the complements of a <= b and a >= b.
    up = operator in (">=", "<")
    node = RowComparison(span, K, left if up else right, right if up else left, ">=", k)
    return node if operator in (">=", "<=") else ir.Not(span, K, node)


def junction(span: Span, K: int, both: bool, nodes: Sequence[ir.Node]) -> ir.Node:
    """`and` or `or` of indicators, some of the row: if these do not decide the result, the others do."""
    rows = [x for x in nodes if isinstance(x, RowNumber)]
    others = [x for x in nodes if not isinstance(x, RowNumber)]
    rest = others[0] if len(others) == 1 else ir.Junction(span, K, both, tuple(others))
    fold = np.minimum if both else np.maximum
    of_row = rows[0] if len(rows) == 1 else arithmetic(span, K, rows, lambda *x: fold.reduce(x), ENDS)
    return RowScale(span, K, of_row, rest) if both else RowChoice(span, K, of_row, ir.Constant(span, K, 1.0), rest)


def leaf(span: Span, K: int, kind: type[Atom], things: Sequence[object]) -> RowLeaf | None:
    """The atom of costs that come with each row; None if all its numbers are known."""
    costs = next((thing for thing in things if isinstance(thing, RowCosts)), None)
    if costs is None:
        return None
    low, high, alternating = (
        kind(K, *(variant if thing is costs else thing for thing in things))  # type: ignore[call-arg]
        for variant in costs.extreme_costs()
    )
    return RowLeaf(span, K, low, high, alternating, costs.name)
