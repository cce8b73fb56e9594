"""A quantity that lies below L - mu p on all sets of a node:

    m(S) = constant + sum over y in S of value(y) + sum over categories C that S touches of weight(C).

It is found on the way down from the loss, f being the factor with which an operation is reached:

    f (A + B)                    f A + f B
    f (indicator * A)            f A or 0, if the indicator is decided
    f max(A, B) with f > 0       s f A + (1 - s) f B, for a mixture s between 0 and 1
    f min(A, B) with f < 0       the same
    f table(k)                   line k + the least f table(j) - line j over the counts j of the node
    l <= A <= h in the node      plus line (A - h) if line > 0, or line (A - l) if line < 0: never above 0
    f times a sum over pairs     what free labels pay for pairs with the labels that are in
    all else                     the lower end of its interval

Some terms do not fit and are left over: a threshold on the entries of labels (columns, farthest pairs), a table of the
number of labels, and pairs of free labels. They are minimised together with m.

Its lines are moved one after another to where its minimum is highest. The minimum over the sets of a node is concave in
each line, and the set S that attains it gives the slope:

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
    ABOVE,
    ADD,
    CATEGORY_LABELS,
    CATEGORY_STARTS,
    CODE,
    COSTS,
    CROSSING,
    FARTHEST,
    FIRST,
    FREE,
    GATE,
    IF,
    IN,
    LARGER,
    MAY,
    NOT,
    NUMBERS,
    PAIR_ENTRIES,
    PAIRS,
    QUANTITY,
    QUANTITY_CATEGORIES,
    QUANTITY_STARTS,
    SCALE,
    SECOND,
    SMALLER,
    TABLE,
    TABLES,
    TOUCHED,
    WEIGHTS,
    WHOLE,
    WORST,
    Floats,
    Ints,
    Marks,
    number_of,
    numbers,
    operand_of,
    operation,
    part,
)
from udcp_solvers.search.workspace import NEAR, Node, Workspace, candidate_labels, open_labels, visit


@jit
def minorant(ints: Ints, floats: Floats, node: Node, T: Workspace) -> float:
    """Fill the values of labels, the weights of categories and the factors of operations; note what is left over.

    Returns the constant. The walk goes from the loss down to its quantities; the factor of each operation results from
    the operations above it.
    """
    code, number, tables = part(ints, CODE), numbers(ints, floats, NUMBERS), numbers(ints, floats, TABLES)
    constant = _begin(ints, floats, node, T)
    Q, left, operations = len(T.quantities), T.left_over, T.operations
    top = visit(len(operations) - 1, 1.0, 0, T.pending)
    while top > 0:
        top -= 1
        i, f = T.pending[top].operation, T.pending[top].factor
        here = operations[i]
        here.factor = f
        kind, a, b, _ = operation(code, i)
        if here.low == here.high:
            constant += f * here.low
            continue
        through = only_operand(code, i, node.decided, T.operations)
        if through >= 0:
            f = f * number_of(number, i) if kind == SCALE else -f if kind == NOT else f
            constant += -f if kind == NOT else 0.0
            top = visit(through, f, top, T.pending)
        elif kind == ADD:
            top = visit(b, f, visit(a, f, top, T.pending), T.pending)
        elif kind == QUANTITY:
            constant += _add(ints, floats, a, f, node, T)
        elif i == left.counted:
            left.count_factor = f
        elif kind == TABLE:
            line = node.lines[Q + i]
            constant += lowest(tables, b, f, line, T.quantities[a].low, T.quantities[a].high)
            if line != 0.0:
                constant += _add(ints, floats, a, line, node, T)
        elif mixes(kind, f):
            share = mixture(node.lines[Q + i])
            top = visit(b, f * (1.0 - share), visit(a, f * share, top, T.pending), T.pending)
        elif f > 0.0 and kind in (WORST, FARTHEST):
            constant += _leave_threshold(number, i, f, T)
        elif f > 0.0 and kind == PAIRS:
            constant += f * here.low
            _add_pairs(ints, floats, i, f, node, T)
        else:
            constant += f * (here.low if f > 0.0 else here.high)
    return constant


@jit
def _begin(ints: Ints, floats: Floats, node: Node, T: Workspace) -> float:
    """Start the minorant with the worth of labels and with bounded quantities at their lines; returns its constant."""
    left, constant = T.left_over, 0.0
    left.threshold, left.threshold_factor, left.count_factor = -1, 0.0, 0.0
    left.pairs, left.pairs_factor = -1, 0.0
    for y in open_labels(T):
        T.labels[y].value = -T.labels[y].worth
    for c in range(len(T.categories)):
        T.categories[c].weight = 0.0
    for i in range(len(T.operations)):
        T.operations[i].factor = 0.0
    for j in range(len(T.quantities)):
        line = node.lines[j]
        if line != 0.0:
            constant -= line * (T.quantities[j].high if line > 0.0 else T.quantities[j].low)
            constant += _add(ints, floats, j, line, node, T)
    return constant


@jit
def _leave_threshold(number: Floats, i: int, f: float, T: Workspace) -> float:
    """Leave over the hard atom with a threshold that can cost most; others count at their lower ends. Returns what is
    added to the constant."""
    left, constant = T.left_over, 0.0
    before = left.threshold
    most = left.threshold_factor * (number_of(number, before) if before >= 0 else 0.0)
    if f * number_of(number, i) <= most:
        return float(f * T.operations[i].low)
    if before >= 0:
        constant = left.threshold_factor * T.operations[before].low
    left.threshold, left.threshold_factor = i, f
    return float(constant)


@jit
def _add_pairs(ints: Ints, floats: Floats, i: int, f: float, node: Node, T: Workspace) -> None:
    """Let every free label pay for its pairs with labels that are in; pairs of free labels are left over."""
    T.left_over.pairs, T.left_over.pairs_factor = i, f
    K, entries, k = len(node.x), numbers(ints, floats, PAIR_ENTRIES), operand_of(part(ints, CODE), i)
    for z in candidate_labels(T):
        if node.x[z] == IN:
            at = (k * K + z) * K
            for y in open_labels(T):
                if node.x[y] == FREE:
                    T.labels[y].value += f * entries[at + y]


@jit
def only_operand(code: Ints, i: int, decided: Marks, operations: Records) -> int:
    """The operand that alone determines an operation in this node; -1 if there is none."""
    kind, a, b, c = operation(code, i)
    if kind in (SCALE, NOT):
        return int(a)
    if kind not in (GATE, IF, SMALLER, LARGER):
        return -1
    first, second = operations[a], operations[b]
    if kind == GATE and first.low > 0.5:
        return int(b)
    if kind == IF and (first.low > 0.5 or first.high < 0.5):
        return int(b if first.low > 0.5 else c)
    if kind == SMALLER:
        if decided[i] == FIRST or first.high <= second.low:
            return int(a)
        if decided[i] == SECOND or second.high <= first.low:
            return int(b)
    if kind == LARGER:
        if first.low >= second.high:
            return int(a)
        if second.low >= first.high:
            return int(b)
    return -1


@jit
def mixes(kind: int, f: float) -> bool:
    """Whether f times a maximum or minimum is at least f times every mixture of its operands."""
    return (kind == LARGER and f > 0.0) or (kind == SMALLER and f < 0.0)


@jit
def mixture(line: float) -> float:
    """The share of the first operand in a mixture."""
    return min(max(0.5 + line, 0.0), 1.0)


@jit
def lowest(tables: Floats, start: int, f: float, line: float, low: float, high: float) -> float:
    """The least f table(k) - line k over the counts in an interval."""
    least = np.inf
    for k in range(math.ceil(low - WHOLE), math.floor(high + WHOLE) + 1):
        least = min(least, f * tables[start + k] - line * k)
    return least


@jit
def _add(ints: Ints, floats: Floats, j: int, f: float, node: Node, T: Workspace) -> float:
    """Add f times a quantity; returns what is added to the constant."""
    K, costs, above = len(node.x), numbers(ints, floats, COSTS), part(ints, ABOVE)
    starts, of, weights = part(ints, QUANTITY_STARTS), part(ints, QUANTITY_CATEGORIES), numbers(ints, floats, WEIGHTS)
    constant = f * T.quantities[j].settled
    for y in open_labels(T):
        T.labels[y].value += f * costs[j * K + y]
    for e in range(starts[j], starts[j + 1]):
        c, w = of[e], f * weights[e]
        state = T.categories[c].state
        if state & TOUCHED or (state & MAY and w < 0.0):
            constant += w
        elif state & MAY and above[c] != CROSSING:
            T.categories[c].weight += w
        elif state & MAY:
            # A crossing category: its likeliest label alone pays for it.
            T.labels[_likeliest(ints, c, node.x, T.labels)].value += w
    return float(constant)


@jit
def _likeliest(ints: Ints, c: int, x: Marks, labels: Records) -> int:
    """The likeliest free label of a category; there must be one."""
    starts, member = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
    likeliest = -1
    for m in range(starts[c], starts[c + 1]):
        y = member[m]
        if x[y] == FREE and (likeliest < 0 or labels[y].p > labels[likeliest].p):
            likeliest = y
    return likeliest


# Relative to what the bound lacks for the node to end: a smaller gain is not worth another bound.
_MIN_GAIN = 0.03


@jit
def start_moves(moves: int, move: Record) -> None:
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
