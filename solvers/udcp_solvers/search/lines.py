"""The lines of a minorant, moved one after another to where it is highest.

The optimum of a minorant is concave in its lines. Whether it rises with one is read off the set that attains it: a
table's line should rise while the set counts more than where the line touches the table, a bound's while the set is
beyond it, a mixture should lean to the operand that is larger there. So each is found by halving.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.compiled import jit
from udcp_solvers.search.layout import (
    CODE,
    LARGER,
    SMALLER,
    TABLE,
    TABLES,
    WHOLE,
    Floats,
    Ints,
    counted_of,
    numbers,
    part,
)

# What is kept of the search for a line: which, where it lies, the best so far, moves left for it and for each.
AT, LOW, HIGH, KEPT, MOVES, LEFT = range(6)


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
    better: bool,
    factor_of: Floats,
    search: Floats,
) -> bool:
    """Move a line, after the bound at the present ones is known (`better`: the highest so far); False where all have
    been moved: then they are left at their best, unless that is where the bound was just taken."""
    s = int(search[AT])
    if s >= 0:
        if better:
            search[KEPT] = lines[s]
        way = _way(ints, floats, s, lines[s], q, point_q, point, factor_of)
        if way != 0 and search[MOVES] > 0:
            search[LOW if way > 0 else HIGH] = lines[s]
            lines[s] = 0.5 * (search[LOW] + search[HIGH])
            search[MOVES] -= 1
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
            open_here = factor_of[i] != 0.0 and ends[0, i] < ends[1, i] and i != counted_of(ints)
            if not open_here or kind not in (TABLE, LARGER, SMALLER):
                continue
            if kind == TABLE:
                high = steepest
                for k in range(code[4 * i + 2] + 1, code[4 * i + 2] + code[4 * i + 3]):
                    high = max(high, abs(factor_of[i] * (tables[k] - tables[k - 1])))
        way = _way(ints, floats, s, lines[s], q, point_q, point, factor_of)
        if way == 0 or high == 0.0:
            continue
        # Of a branch within another, near to where it was there.
        reach = 2.0 * high if lines[s] == 0.0 else 0.25 * high
        search[AT], search[KEPT], search[MOVES] = s, lines[s], search[LEFT]
        search[LOW], search[HIGH] = max(lines[s] - reach, -high), min(lines[s] + reach, high)
        search[LOW if way > 0 else HIGH] = lines[s]
        lines[s] = 0.5 * (search[LOW] + search[HIGH])
        return True
    search[AT] = len(lines)
    return False


@jit
def _way(
    ints: Ints, floats: Floats, s: int, line: float, q: Floats, point_q: Floats, point: Floats, factor_of: Floats
) -> int:
    """Whether the minorant rises with a line (1), falls (-1), or is highest (0)."""
    Q = len(point_q)
    if s < Q:
        v = point_q[s]
        if line == 0.0:
            return int(v > q[1, s] + WHOLE) - int(v < q[0, s] - WHOLE)
        at = q[1, s] if line > 0.0 else q[0, s]
        return int(v > at + WHOLE) - int(v < at - WHOLE)
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
        return int(point_q[a] > high + 0.5) - int(point_q[a] < low - 0.5)
    more = f * (point[a] - point[b])
    return int(more > 1e-12) - int(more < -1e-12)
