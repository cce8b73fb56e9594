"""Bounds of every node of an expression on one set, over all values of the inputs, by interval arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from udcp_dsl.expression.atoms import Sets
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.ir import Add, AtLeast, Equal, Expression, Extremum, Gate, If, Junction, Leaf, Node, Not, Scale
from udcp_dsl.expression.rows.nodes import RowChoice, RowComparison, RowLeaf, RowNumber, RowScale


def has_row_numbers(expression: Expression) -> bool:
    """Whether some numbers of the expression come with each row."""
    return any(isinstance(node, RowNumber | RowLeaf) for node in expression.nodes)


def ends_on(expression: Expression, members: np.typing.NDArray[np.bool_]) -> dict[int, Interval]:
    """The interval of every node, by `id`, on the set of a mask (K,)."""
    one = Sets(members[None, :])
    found: dict[int, Interval] = {}
    for node in expression.nodes:
        if isinstance(node, RowNumber):
            found[id(node)] = node.interval
        elif isinstance(node, RowLeaf):
            found[id(node)] = _spanned([float(atom.batch(one)[0]) for atom in (node.low, node.high)])
        elif isinstance(node, Leaf):
            found[id(node)] = _exactly(float(node.atom.batch(one)[0]))
        else:
            found[id(node)] = _ends(node, [found[id(part)] for part in node.children])
    return found


def _ends(node: Node, parts: Sequence[Interval]) -> Interval:
    lows, highs = [part.lo for part in parts], [part.hi for part in parts]
    if all(part.constant for part in parts):
        return _exactly(float(np.asarray(node.value(*(np.array([low]) for low in lows))).reshape(-1)[0]))
    match node:
        case Add():
            return Interval(sum(lows), sum(highs))
        case Scale():
            return _spanned([node.factor * lows[0], node.factor * highs[0]])
        case Gate() | RowScale():
            return _spanned([a * b for a in parts[0] for b in parts[1]])
        case Extremum() | Junction() | AtLeast():  # these never fall when an operand rises
            return Interval(*(float(np.asarray(node.value(*map(np.asarray, side)))) for side in (lows, highs)))
        case Not():
            return Interval(1 - highs[0], 1 - lows[0])
        case If() | RowChoice():
            return parts[1 if lows[0] else 2] if parts[0].constant else _spanned([*parts[1], *parts[2]])
        case Equal() | RowComparison():
            return Interval(0.0, 1.0)
        case _:
            raise TypeError(f"{type(node).__name__} has no interval on one set")


def _exactly(value: float) -> Interval:
    return Interval(value, value)


def _spanned(values: Sequence[float]) -> Interval:
    return Interval(min(values), max(values))
