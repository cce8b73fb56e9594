"""The lines of a minorant, moved one after another to where it is highest.

The optimum of a minorant is concave in its lines. Whether it rises with one is read off the set that attains it: a
table's line should rise while the set counts more than where the line touches the table, a bound's while the set is
beyond it, a mixture should lean to the operand that is larger there. Tangents on both sides of the highest place meet
above it: there it is looked for next, unless it could not be worth a look; before there are two, by halving.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.search.layout import (
    CODE,
    TABLE,
    TABLES,
    WHOLE,
    Floats,
    Ints,
    numbers,
    part,
)
from udcp_solvers.search.minorant import mixes

# What is kept of the search for a line: which, where it lies, the best so far, moves left for it and for each; the
# bound and its slope at both ends, a slope of 0 where they are not known, and the highest bound.
AT, LOW, HIGH, KEPT, MOVES, LEFT = range(6)
_LOW_BOUND, _LOW_SLOPE, _HIGH_BOUND, _HIGH_SLOPE, _HIGHEST = range(8, 13)
# The table that is optimised count by count, and has no line, or -1.
COUNTED = 13
KEPT_OF_LINES = 14
# Of what a branch lacks to its end: a smaller gain is not worth another bound.
_WORTHWHILE = 0.03


@jit
def next_line(
    ints: Ints,
    floats: Floats,
    lines: Floats,
    bounds: Floats,
    q: Floats,
    ends: Floats,
    point_q: Floats,
    point: Floats,
    steepest: float,
    bound: float,
    limit: float,
    factor_of: Floats,
    search: Floats,
) -> bool:
    """Move a line, after the bound at the present ones is known; the branch ends if one reaches the limit. False where
    all have been moved: then they are left at their best."""
    s = int(search[AT])
    if s < 0 or bound > search[_HIGHEST]:
        search[_HIGHEST] = bound
        search[KEPT] = lines[s] if s >= 0 else 0.0
    if s >= 0:
        slope = _slope(ints, floats, s, lines[s], q, point_q, point, factor_of)
        if slope != 0.0 and search[MOVES] > 0:
            at = LOW if slope > 0.0 else HIGH
            search[at], search[_LOW_BOUND + 2 * (at - LOW)], search[_LOW_SLOPE + 2 * (at - LOW)] = (
                lines[s],
                bound,
                slope,
            )
            lines[s], hope = _summit(search)
            search[MOVES] -= 1
            if hope - search[_HIGHEST] > _WORTHWHILE * (limit - search[_HIGHEST]):
                return True
        lines[s] = search[KEPT]
    code, tables = part(ints, CODE), numbers(ints, floats, TABLES)
    Q = len(point_q)
    for s in range(int(search[AT]) + 1, len(lines)):
        high = 0.5
        if s < Q:
            if bounds[s] == -np.inf and bounds[Q + s] == np.inf:
                continue
            high = steepest
        else:
            i = s - Q
            kind = code[4 * i]
            open_here = factor_of[i] != 0.0 and ends[0, i] < ends[1, i] and i != search[COUNTED]
            if not open_here or not (kind == TABLE or mixes(kind, factor_of[i])):
                continue
            if kind == TABLE:
                high = steepest
                for k in range(code[4 * i + 2] + 1, code[4 * i + 2] + code[4 * i + 3]):
                    high = max(high, abs(factor_of[i] * (tables[k] - tables[k - 1])))
        slope = _slope(ints, floats, s, lines[s], q, point_q, point, factor_of)
        if slope == 0.0 or high == 0.0:
            continue
        # Of a branch within another, near to where it was there.
        reach = 2.0 * high if lines[s] == 0.0 else 0.25 * high
        search[AT], search[KEPT], search[MOVES] = s, lines[s], search[LEFT]
        search[LOW], search[HIGH] = max(lines[s] - reach, -high), min(lines[s] + reach, high)
        search[_LOW_SLOPE], search[_HIGH_SLOPE] = 0.0, 0.0
        at = LOW if slope > 0.0 else HIGH
        search[at] = lines[s]
        # Where the bound was taken at lines that were then given up, its slope is not known here.
        if bound == search[_HIGHEST]:
            search[_LOW_BOUND + 2 * (at - LOW)], search[_LOW_SLOPE + 2 * (at - LOW)] = bound, slope
        lines[s] = 0.5 * (search[LOW] + search[HIGH])
        return True
    search[AT] = len(lines)
    return False


@jit
def _summit(search: Floats) -> tuple[float, float]:
    """Where the bound may be highest, and how high at most: where two tangents meet, or half-way and without end."""
    low, high = search[LOW], search[HIGH]
    rise, fall = search[_LOW_SLOPE], search[_HIGH_SLOPE]
    if rise <= 0.0 or fall >= 0.0 or high <= low:
        return 0.5 * (low + high), np.inf
    way = (search[_HIGH_BOUND] - search[_LOW_BOUND] - fall * (high - low)) / (rise - fall)
    way = min(max(way, 0.0), high - low)
    return low + way, search[_LOW_BOUND] + rise * way


@jit
def _slope(
    ints: Ints, floats: Floats, s: int, line: float, q: Floats, point_q: Floats, point: Floats, factor_of: Floats
) -> float:
    """How steeply the minorant rises with a line, or falls; 0 where it is highest."""
    Q = len(point_q)
    if s < Q:
        v = point_q[s]
        if line > 0.0 or (line == 0.0 and v > q[1, s] + WHOLE):
            slope = v - q[1, s]
        elif line < 0.0 or v < q[0, s] - WHOLE:
            slope = v - q[0, s]
        else:
            slope = 0.0
        return slope if abs(slope) > WHOLE else 0.0
    code, tables = part(ints, CODE), numbers(ints, floats, TABLES)
    i = s - Q
    kind, a, b = code[4 * i], code[4 * i + 1], code[4 * i + 2]
    f = factor_of[i]
    if kind == TABLE:
        first, last = math.ceil(q[0, a] - WHOLE), math.floor(q[1, a] + WHOLE)
        least, low, high = np.inf, first, first
        for k in range(first, last + 1):
            v = f * tables[b + k] - line * k
            slack = 1e-12 * (abs(v) + abs(line) * k)
            if v < least - slack:
                least, low, high = v, k, k
            elif v <= least + slack:
                high = k
        if point_q[a] > high + 0.5:
            return float(point_q[a] - high)
        return float(point_q[a] - low) if point_q[a] < low - 0.5 else 0.0
    slope = f * (point[a] - point[b])
    return float(slope) if abs(slope) > 1e-12 else 0.0
