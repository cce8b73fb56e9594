"""The lines of a minorant, moved one after another to where its minimum is highest.

The minimum of m over the sets of a node is concave in each line, and the set S that attains it gives the slope:

    line of table(k)        k(S) minus the count where the line touches the table
    line of a bound h       A(S) - h
    lean of a mixture       f (A(S) - B(S))

Tangents on both sides of the summit meet above it; that is where the line goes next, if enough could be gained there.
Until both are known, the interval is halved. Line j < Q is the factor with which the bound of quantity j is added; line
Q + i is the slope of table i, or the lean of mixture i from one half.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.arrays import Record, Records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.search.layout import (
    CODE,
    TABLE,
    TABLES,
    WHOLE,
    Floats,
    Ints,
    numbers,
    operation,
    part,
)
from udcp_solvers.search.minorant import mixes
from udcp_solvers.search.workspace import NEAR, Node, Workspace

# Relative to what the bound lacks for the node to end: a smaller gain is not worth another bound.
_MIN_GAIN = 0.03


@jit
def start_lines(moves: int, move: Record) -> None:
    """Start anew: no line has been moved, and each may be moved `moves` times."""
    move.line, move.moves_each = -1, moves


@jit
def next_line(ints: Ints, floats: Floats, node: Node, bound: float, cutoff: float, T: Workspace) -> bool:
    """Move a line, given the bound at the present lines; a bound of `cutoff` ends the node. False if all lines have
    been moved: then they are left at their best."""
    move, lines = T.move, node.lines
    s = move.line
    if s >= len(lines):
        return False
    if s < 0 or bound > move.highest:
        move.highest = bound
        move.best_line = lines[s] if s >= 0 else 0.0
    if s >= 0:
        if _move_line(_slope(ints, floats, s, lines[s], T), bound, cutoff, node, T):
            return True
        lines[s] = move.best_line
    for s in range(move.line + 1, len(lines)):
        reach = _line_range(ints, floats, s, node, T)
        slope = _slope(ints, floats, s, lines[s], T) if reach > 0.0 else 0.0
        if slope != 0.0:
            _begin_line(s, slope, reach, bound, node, T)
            return True
    move.line = len(lines)
    return False


@jit
def _move_line(slope: float, bound: float, cutoff: float, node: Node, T: Workspace) -> bool:
    """Move the present line to where the bound may be highest; False if that is not worth another bound."""
    move = T.move
    if slope == 0.0 or move.moves_left <= 0:
        return False
    _narrow(node.lines[move.line], bound, slope, move)
    node.lines[move.line], hope = _summit(move)
    move.moves_left -= 1
    return bool(hope - move.highest > _MIN_GAIN * (cutoff - move.highest))


@jit
def _begin_line(s: int, slope: float, reach: float, bound: float, node: Node, T: Workspace) -> None:
    """Begin to move a line, within `reach` of 0."""
    move, line = T.move, node.lines[s]
    # A line that was set in the node around this one stays near its value there.
    width = 2.0 * reach if line == 0.0 else 0.25 * reach
    move.line, move.best_line, move.moves_left = s, line, move.moves_each
    move.low, move.high = max(line - width, -reach), min(line + width, reach)
    move.low_slope, move.high_slope = 0.0, 0.0
    if slope > 0.0:
        move.low = line
    else:
        move.high = line
    # If the bound was found at lines that were then given up, its slope is not known here.
    if bound == move.highest:
        _narrow(line, bound, slope, move)
    node.lines[s] = 0.5 * (move.low + move.high)


@jit
def _narrow(line: float, bound: float, slope: float, move: Record) -> None:
    """Narrow the interval: a line at which the bound rises becomes its low end, one at which it falls its high end."""
    if slope > 0.0:
        move.low, move.low_bound, move.low_slope = line, bound, slope
    else:
        move.high, move.high_bound, move.high_slope = line, bound, slope


@jit
def _line_range(ints: Ints, floats: Floats, s: int, node: Node, T: Workspace) -> float:
    """How far from 0 a line may be; 0 if it is not to be moved."""
    Q = len(T.quantities)
    if s < Q:
        return 0.0 if node.low[s] == -np.inf and node.high[s] == np.inf else T.search.steepest
    i, tables = s - Q, numbers(ints, floats, TABLES)
    kind, _, start, length = operation(part(ints, CODE), i)
    here = T.operations[i]
    if here.factor == 0.0 or here.low >= here.high or i == T.left_over.counted:
        return 0.0
    if kind != TABLE:
        return 0.5 if mixes(kind, here.factor) else 0.0
    steepest = T.search.steepest
    for k in range(start + 1, start + length):
        steepest = max(steepest, abs(here.factor * (tables[k] - tables[k - 1])))
    return float(steepest)


@jit
def _summit(move: Record) -> tuple[float, float]:
    """Where the bound may be highest, and how high at most: where two tangents meet, or the middle and infinity."""
    width = move.high - move.low
    if move.low_slope <= 0.0 or move.high_slope >= 0.0 or move.high <= move.low:
        return 0.5 * (move.low + move.high), np.inf
    way = (move.high_bound - move.low_bound - move.high_slope * width) / (move.low_slope - move.high_slope)
    way = min(max(way, 0.0), width)
    return move.low + way, move.low_bound + move.low_slope * way


@jit
def _slope(ints: Ints, floats: Floats, s: int, line: float, T: Workspace) -> float:
    """The slope of the minorant's minimum in a line; 0 where it is highest."""
    Q = len(T.quantities)
    if s < Q:
        quantity = T.quantities[s]
        if line > 0.0 or (line == 0.0 and quantity.point > quantity.high + WHOLE):
            slope = quantity.point - quantity.high
        elif line < 0.0 or quantity.point < quantity.low - WHOLE:
            slope = quantity.point - quantity.low
        else:
            slope = 0.0
        return slope if abs(slope) > WHOLE else 0.0
    kind, a, b, _ = operation(part(ints, CODE), s - Q)
    f = T.operations[s - Q].factor
    if kind == TABLE:
        return _slope_of_table(numbers(ints, floats, TABLES), b, a, f, line, T.quantities)
    slope = f * (T.operations[a].point - T.operations[b].point)
    return float(slope) if abs(slope) > NEAR else 0.0


@jit
def _slope_of_table(tables: Floats, start: int, j: int, f: float, line: float, quantities: Records) -> float:
    """How far the count of the present set, quantity j, is from where the line touches the table."""
    quantity = quantities[j]
    first, last = math.ceil(quantity.low - WHOLE), math.floor(quantity.high + WHOLE)
    least, low, high = np.inf, first, first
    for k in range(first, last + 1):
        v = f * tables[start + k] - line * k
        slack = NEAR * (abs(v) + abs(line) * k)
        if v < least - slack:
            least, low, high = v, k, k
        elif v <= least + slack:
            high = k
    if quantity.point > high + 0.5:
        return float(quantity.point - high)
    return float(quantity.point - low) if quantity.point < low - 0.5 else 0.0
