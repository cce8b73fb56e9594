"""Greedy orders where labels differ in cost: only the few labels that may come next are looked at in each step.

For a loss that is a sum (`lists.Model`) the ratio of a label y is (A - e) q, with q = 1 / (max(1 - p, 0) + eps), e what
y costs beyond what all cost, and A common to all: a line in A. While A moves by d, no ratio moves by less or more than
d times the least or the largest q of the row. So labels whose ratio at some A is above a bound need no rivals from
outside for a while: some hundred such are a *pool*, and of the pool some two dozen are the *window*, of which the next
label is the best, by loops without branches. Once labels outside of window or pool might be better, these are taken
anew. Labels whose categories were touched cost less (or more, if the weight is negative), and may come in.

Ratios are good up to `slack`: what is too near to tell is decided by the floats of `growing`, which every path shares.
A row with many such cases (ties, ratios of 0) is given up: its count is -1, and another path is to take it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.growth.growing import Growing, clear, cost_with, new_state, push
from udcp_solvers.growth.heads import most_to_place
from udcp_solvers.growth.lists import Lists, Model
from udcp_solvers.numeric.arrays import Floats, Indices, Probabilities, Row
from udcp_solvers.numeric.compiled import jit

# Labels in a pool and in a window: aimed at, and at most when taken; and room in a window for more that come in.
_POOL, _MOST_POOL = 160, 320
_WINDOW, _MOST_WINDOW, _FULL = 24, 48, 64
# Slots of a window that are worked on together; the number is a power of 2.
_LANES = 16
# Bounds tried for one pool or window, windows that gave no label, and cases too near to tell, before a row is given up.
_TRIES, _NEAR = 30, 64


class Scratch(NamedTuple):
    """Arrays to work in, for one row after another."""

    state: Floats  # of `growing`
    touched: Indices  # (G,) which categories of a list are touched, as bits
    p: Floats  # (K,)
    e: Floats  # (K,)
    q: Floats  # (K,) 0 once the label is placed
    b: Floats  # (K,) e q, infinite once the label is placed
    key: Floats  # (K,)
    pool: Indices  # labels
    pool_q: Floats  # their q and b
    pool_b: Floats
    place: Indices  # (K,) where in the pool a label is, or -1
    window: Indices  # places in the pool
    high: Floats  # the most that their ratios may be when A is what it was at the start of the window
    slope: Floats  # their q
    value: Floats  # the most that their ratios may be now
    lanes: Floats


@jit
def window_orders(
    start: int,
    stop: int,
    P: Probabilities,
    wanted: Indices,
    floor: Floats,
    growing: Growing,
    lists: Lists,
    model: Model,
    M: float,
    eps: float,
    orders: Indices,
    counts: Indices,
) -> None:
    """The labels of each row in greedy order, until label `wanted` is placed or less mass than `floor` remains."""
    K = P.shape[1]
    scratch = Scratch(
        state=new_state(growing.code),
        touched=np.empty(len(lists.class_of), np.int64),
        p=np.empty(K),
        e=np.empty(K),
        q=np.empty(K),
        b=np.empty(K),
        key=np.empty(K),
        pool=np.empty(K + 1, np.int64),
        pool_q=np.empty(K),
        pool_b=np.empty(K),
        place=np.empty(K, np.int64),
        window=np.empty(max(K + 1, _FULL), np.int64),
        high=np.empty(_FULL),
        slope=np.empty(_FULL),
        value=np.empty(_FULL),
        lanes=np.empty(_LANES),
    )
    for i in range(start, stop):
        counts[i] = _order(P[i], growing, lists, model, scratch, M, eps, wanted[i], floor[i], orders[i])


@jit
def _order(
    row: Row,
    growing: Growing,
    lists: Lists,
    model: Model,
    scratch: Scratch,
    M: float,
    eps: float,
    wanted: int,
    floor: float,
    order: Indices,
) -> int:
    """One row: fills the order, and says how far; -1 if it was given up."""
    code, data, state = growing.code, growing.data, scratch.state
    entries, entry_category = growing.entries, growing.entry_category
    list_of, first_class = lists.list_of, lists.first_class
    common, extra = model.common, model.extra
    touched, p, e, q, b, key = scratch.touched, scratch.p, scratch.e, scratch.q, scratch.b, scratch.key
    pool, pool_q, pool_b, place = scratch.pool, scratch.pool_q, scratch.pool_b, scratch.place
    window, high, slope, value, lanes = scratch.window, scratch.high, scratch.slope, scratch.value, scratch.lanes
    # The model's slack, and the rounding of A q - b and of a ratio, which is far less.
    slack = 3.0 * model.slack
    K = len(row)
    with_categories = len(lists.category_list) > 0
    clear(code, data, state)
    touched[:] = 0
    place[:] = -1
    least, largest = np.inf, 0.0
    for y in range(K):
        p[y] = np.float64(row[y])
        q[y] = 1.0 / (max(1.0 - p[y], 0.0) + eps)
        e[y] = extra[first_class[y]]
        b[y] = e[y] * q[y]
        least = min(least, q[y])
        largest = max(largest, q[y])
    most = most_to_place(p, floor)
    pool_size, pool_gap, gap = 0, -1.0, 0.0
    pool_A, pool_bound = 0.0, np.inf
    spent, placed = 0.0, 0.0
    count, pushed, near, idle = 0, 0, 0, 0
    while True:
        A0 = M - common[count + 1] - spent
        if pool_bound == np.inf:
            for i in range(pool_size):
                place[pool[i]] = -1
            top = _keys(A0 + slack, q, b, key, K)
            if pool_gap < 0.0:
                pool_gap = _spread(key, top) * min(1.0, _POOL / K)
            pool_size, pool_gap = _above(key, K, top, pool_gap, _POOL, _MOST_POOL, pool)
            pool_A, pool_bound = A0, top - pool_gap if pool_size < K - count else -np.inf
            for i in range(pool_size):
                y = pool[i]
                pool_q[i], pool_b[i], place[y] = q[y], b[y], i
            gap = pool_gap * _WINDOW / max(pool_size, _WINDOW)
        top = _keys(A0 + slack, pool_q, pool_b, key, pool_size)
        size, gap = _above(key, pool_size, top, gap, _WINDOW, _MOST_WINDOW, window)
        if size > _MOST_WINDOW:
            return -1
        bound = top - gap
        steepest = 0.0
        for j in range(size):
            high[j], slope[j] = key[window[j]], pool_q[window[j]]
            steepest = max(steepest, slope[j])
        for j in range(size, _FULL):
            window[j], high[j], slope[j] = -1, -np.inf, 0.0
        begun = count
        while True:
            A = M - common[count + 1] - spent
            d = A - A0
            slots = max((size + _LANES - 1) & -_LANES, 2 * _LANES)
            # What is surely reached; and what labels outside may reach.
            lower = _move(high, slope, d, slots, value, lanes) - 2.0 * slack * steepest
            pool_d = A - pool_A
            if pool_bound + pool_d * (least if pool_d <= 0.0 else largest) >= lower:
                if count == begun:
                    pool_gap *= 2.0
                pool_bound = np.inf
                break
            if bound + d * (least if d <= 0.0 else largest) >= lower:
                break
            many, at = _reaching(value, lower, slots)
            if many == 1 and lower > 0.0:
                y = pool[window[at]]
            else:
                near += 1
                if near > _NEAR:
                    return -1
                while pushed < count:
                    push(code, data, state, order[pushed])
                    pushed += 1
                _keys(A + slack, q, b, key, K)
                y = _decide(code, data, state, p, key, lower if lower > 0.0 else -np.inf, M, eps)
                at = 0
                while at < size and window[at] != place[y]:
                    at += 1
            order[count] = y
            count += 1
            placed += p[y]
            if y == wanted or placed > most or count == K:
                return count
            spent += e[y]
            q[y], b[y] = 0.0, np.inf
            if place[y] >= 0:
                pool_q[place[y]], pool_b[place[y]] = 0.0, np.inf
                if at < size:
                    high[at], slope[at] = -np.inf, 0.0
            if with_categories:
                was = touched[list_of[y]]
                for j in range(entries[y + 1] - entries[y]):
                    if (was >> j) & 1 == 0:
                        category = entry_category[entries[y] + j]
                        pool_size, size, steepest = _touch(
                            category, lists, extra, scratch, pool_A + slack, pool_bound, pool_size,
                            A0 + slack, bound, size, steepest,
                        )  # fmt: skip
                if size == _FULL:
                    break
        idle = idle + 1 if count == begun else 0
        if idle > _TRIES:
            return -1
        if count - begun < _WINDOW // 4:
            gap *= 2.0
    return -1


@jit
def _keys(A: float, q: Floats, b: Floats, key: Floats, size: int) -> float:
    """A q - b for the first labels, and the largest of these."""
    for y in range(size):
        key[y] = A * q[y] - b[y]
    m0, m1, m2, m3 = -np.inf, -np.inf, -np.inf, -np.inf
    for y in range(0, size - 3, 4):
        m0, m1 = max(m0, key[y]), max(m1, key[y + 1])
        m2, m3 = max(m2, key[y + 2]), max(m3, key[y + 3])
    for y in range(size - size % 4, size):
        m0 = max(m0, key[y])
    return float(max(max(m0, m1), max(m2, m3)))


@jit
def _spread(key: Floats, top: float) -> float:
    lowest = top
    for x in key:
        lowest = min(lowest, x)
    return top - lowest


@jit
def _above(key: Floats, size: int, top: float, gap: float, aim: int, most: int, out: Indices) -> tuple[int, float]:
    """Put the places of keys of at least top - gap into `out`: how many, and the gap.

    A gap that gives more than `most` is made smaller, as long as that helps.
    """
    found = 0
    for _ in range(_TRIES):
        found = 0
        bound = top - gap
        for y in range(size):
            out[found] = y
            found += key[y] >= bound
        if found <= most:
            break
        gap *= aim / found
    return found, gap


@jit
def _move(high: Floats, slope: Floats, d: float, slots: int, value: Floats, lanes: Floats) -> float:
    """The values of a window after A has moved by d, and the largest of these."""
    for j in range(slots):
        value[j] = high[j] + d * slope[j]
    # The larger of two, lane by lane, is compiled to vector instructions; a running maximum is not.
    for j in range(_LANES):
        lanes[j] = value[j] if value[j] > value[_LANES + j] else value[_LANES + j]
    for k in range(2 * _LANES, slots, _LANES):
        for j in range(_LANES):
            lanes[j] = lanes[j] if lanes[j] > value[k + j] else value[k + j]
    for j in range(8):
        lanes[j] = lanes[j] if lanes[j] > lanes[j + 8] else lanes[j + 8]
    for j in range(4):
        lanes[j] = lanes[j] if lanes[j] > lanes[j + 4] else lanes[j + 4]
    return float(max(max(lanes[0], lanes[1]), max(lanes[2], lanes[3])))


@jit
def _reaching(value: Floats, lower: float, slots: int) -> tuple[int, int]:
    """How many values reach `lower`, and the sum of their places: the place, if it is one."""
    many, at = 0, 0
    for j in range(slots):
        reaches = value[j] >= lower
        many += reaches
        at += j * reaches
    return many, at


@jit
def _decide(
    code: Indices, data: Floats, state: Floats, p: Floats, key: Floats, lower: float, M: float, eps: float
) -> int:
    """The next label by the floats of `growing`, of those whose keys reach `lower`; ties by higher p, lower index."""
    best, best_ratio = -1, -1.0
    for y in range(len(p)):
        if key[y] > -np.inf and key[y] >= lower:
            found = max(M - cost_with(code, data, state, y), 0.0) / (max(1.0 - p[y], 0.0) + eps)
            if found > best_ratio or (found == best_ratio and p[y] > p[best]):
                best, best_ratio = y, found
    return best


@jit
def _touch(
    category: int,
    lists: Lists,
    extra: Floats,
    scratch: Scratch,
    pool_A: float,
    pool_bound: float,
    pool_size: int,
    A: float,
    bound: float,
    size: int,
    steepest: float,
) -> tuple[int, int, float]:
    """Note that a category is touched, and take in those of its labels that now are above a bound.

    The new sizes of pool and window, and the steepest slope; where the window is full, labels may be missing there.
    """
    class_of, member_start, members = lists.class_of, lists.member_start, lists.members
    category_list, category_bit = lists.category_list, lists.category_bit
    touched, e, q, b = scratch.touched, scratch.e, scratch.q, scratch.b
    pool, pool_q, pool_b, place = scratch.pool, scratch.pool_q, scratch.pool_b, scratch.place
    window, high, slope = scratch.window, scratch.high, scratch.slope
    for i in range(lists.category_start[category], lists.category_start[category + 1]):
        g = category_list[i]
        touched[g] |= 1 << category_bit[i]
        now = extra[class_of[g, touched[g]]]
        for m in range(member_start[g], member_start[g + 1]):
            y = members[m]
            if q[y] == 0.0:
                continue
            e[y], b[y] = now, now * q[y]
            if place[y] < 0:
                if pool_A * q[y] - b[y] < pool_bound:
                    continue
                place[y], pool[pool_size], pool_q[pool_size] = pool_size, y, q[y]
                pool_size += 1
            at = place[y]
            pool_b[at] = b[y]
            x = A * q[y] - b[y]
            j = 0
            while j < size and window[j] != at:
                j += 1
            if j == size:
                if x < bound or size == _FULL:
                    continue
                size += 1
            window[j], high[j], slope[j] = at, x, q[y]
            steepest = max(steepest, q[y])
    return pool_size, size, steepest
