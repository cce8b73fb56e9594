"""Greedy orders of losses that only see which numbers and categories a set holds: a merge of lists.

The next label is the head of a class of lists. For monotone sums the merge is lazy: with A = M - (cost common to all),
a class whose best head has room q = max(1 - p, 0) + eps has the ratio (A - extra) / q, and A only falls. Less the drift
A / (1 + eps) that all share, a ratio never rises while its class stays as it is, so that an old value is an upper
bound: a heap of such bounds yields the next class after few looks. Bounds allow for rounding; whatever is too near to
tell is decided by the floats of `growing`, which every path shares, so the order is the naive one to the last tie.
For other losses each class is looked at in each step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_dsl.oracle import Floats, Indices, Probabilities
from udcp_solvers.compiled import jit
from udcp_solvers.falling import falling_order, order_scratch
from udcp_solvers.growing import Growing, Held, clear, hold, push
from udcp_solvers.heads import Heads, deal, done, rank, ratio, room_for_heads, touch
from udcp_solvers.lists import Lists, Model

_ROUNDING = 2.0**-50


class Queue(NamedTuple):
    """The classes that hold a label, as a heap by `key` where the merge is lazy."""

    bits: Indices  # (B, words) for classes of several lists: the ranks in it, 32 to a word
    low: Indices  # (B,) no word below this one has a bit
    heap: Indices  # (C,)
    where: Indices  # (C,) place in the heap, or -1
    key: Floats  # (C,) upper bounds
    looked: Indices  # (C,) the step in which the key was computed
    best: Indices  # (C,) the rank for which it was
    stack: Indices  # (C,)
    count: Indices  # (2,) classes in the heap; steps made so far, over all rows


@jit
def merge_orders(
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
    lazy: bool,
    orders: Indices,
    counts: Indices,
) -> None:
    """The labels of each row in greedy order, until label `wanted` is placed or less mass than `floor` remains."""
    K = P.shape[1]
    scratch = order_scratch(K)
    heads = room_for_heads(K, len(lists.some))
    held = hold(growing)
    queue = _room_for_queue(K, lists)
    for i in range(start, stop):
        rank(P[i], falling_order(P[i], scratch), eps, heads)
        counts[i] = _merge(growing, lists, model, held, heads, queue, M, eps, lazy, wanted[i], floor[i], orders[i])


@jit
def _room_for_queue(K: int, lists: Lists) -> Queue:
    B, C = lists.bits.max() + 1, len(lists.bits)
    return Queue(
        np.zeros((B, (K + 31) >> 5), np.int64),
        np.zeros(B, np.int64),
        np.empty(C, np.int64),
        np.full(C, -1, np.int64),
        np.empty(C),
        np.full(C, -1, np.int64),
        np.empty(C, np.int64),
        np.empty(C, np.int64),
        np.zeros(2, np.int64),
    )


@jit
def _merge(
    growing: Growing,
    lists: Lists,
    model: Model,
    held: Held,
    heads: Heads,
    queue: Queue,
    M: float,
    eps: float,
    lazy: bool,
    wanted: int,
    floor: float,
    order: Indices,
) -> int:
    K = len(heads.ranked)
    clear(growing, held)
    deal(lists, heads)
    for g in range(len(heads.head)):
        _enter(lists, heads, queue, g)
    drift = (1.0 - _ROUNDING) / (1.0 + eps)
    if lazy:
        for i in range(queue.count[0]):
            c = queue.heap[i]
            queue.looked[c] = -1
            A = M - model.common[1]
            r = _first(lists, heads, queue, c)
            queue.key[c] = _upper(A, model.extra[c], model.slack, heads.inverse[r], drift)
        for i in range(queue.count[0] // 2 - 1, -1, -1):
            _sift_down(queue, i)
    total = heads.p.sum()
    spent = 0.0
    placed = 0.0
    count = 0
    while count < K:
        if lazy:
            r = _lazy(growing, lists, model, held, heads, queue, M, M - model.common[count + 1] - spent, drift)
        else:
            r = _best(growing, lists, held, heads, queue, M)
        y = heads.ranked[r]
        g = lists.list_of[y]
        c = heads.now[g]
        order[count] = y
        count += 1
        placed += heads.p[r]
        if y == wanted or done(heads, placed, total, floor):
            break
        if lazy:
            spent += model.extra[c]
        _leave_rank(lists, queue, c, r)
        heads.head[g] = heads.following[r]
        for i in range(touch(growing, held, lists, heads, y)):
            moved = heads.changed[i]
            if lists.class_of[moved, heads.state[moved]] != heads.now[moved]:
                _leave(lists, heads, queue, moved)
                heads.now[moved] = lists.class_of[moved, heads.state[moved]]
                _enter(lists, heads, queue, moved)
                if lazy:
                    _raise(queue, heads.now[moved])
        push(growing, held, y)
    for g in range(len(heads.head)):
        _leave(lists, heads, queue, g)
    for i in range(queue.count[0]):
        queue.where[queue.heap[i]] = -1
    queue.count[0] = 0
    return count


@jit
def _upper(A: float, extra: float, slack: float, inverse: float, drift: float) -> float:
    """No ratio of a class, less the drift, is above this, now or later."""
    return (A - extra + slack) * inverse * (1.0 + _ROUNDING) - A * drift + abs(A) * _ROUNDING


@jit
def _lazy(
    growing: Growing,
    lists: Lists,
    model: Model,
    held: Held,
    heads: Heads,
    queue: Queue,
    M: float,
    A: float,
    drift: float,
) -> int:
    """The rank that comes next."""
    queue.count[1] += 1
    step = queue.count[1]
    heap, key = queue.heap, queue.key
    K = len(heads.ranked)
    while queue.looked[heap[0]] != step:
        c = heap[0]
        r = _first(lists, heads, queue, c)
        if r == K:
            _remove_top(queue)
            continue
        queue.best[c] = r
        queue.looked[c] = step
        key[c] = _upper(A, model.extra[c], model.slack, heads.inverse[r], drift)
        _sift_down(queue, 0)
    c = heap[0]
    r = queue.best[c]
    many = queue.count[0]
    if many == 1:
        return int(r)
    sure = A - model.extra[c] - model.slack
    if sure <= 0.0:
        # The ratio is 0 from here on, which the bounds know nothing of.
        return _best(growing, lists, held, heads, queue, M)
    lower = sure * heads.inverse[r] * (1.0 - _ROUNDING) - A * drift - abs(A) * _ROUNDING
    if key[heap[1]] < lower and (many == 2 or key[heap[2]] < lower):
        return int(r)
    return _near(growing, lists, held, heads, queue, M, lower)


@jit
def _near(
    growing: Growing, lists: Lists, held: Held, heads: Heads, queue: Queue, M: float, lower: float
) -> int:
    """The best rank of the classes whose bound reaches `lower`."""
    K = len(heads.ranked)
    best, best_ratio = K, -1.0
    stack, top = queue.stack, 1
    stack[0] = 0
    while top > 0:
        top -= 1
        i = stack[top]
        c = queue.heap[i]
        if queue.key[c] < lower:
            continue
        r = _first(lists, heads, queue, c)
        if r < K:
            found = ratio(growing, held, heads, r, M)
            if found > best_ratio or (found == best_ratio and r < best):
                best, best_ratio = r, found
        for child in range(2 * i + 1, min(2 * i + 3, queue.count[0])):
            stack[top] = child
            top += 1
    return best


@jit
def _best(growing: Growing, lists: Lists, held: Held, heads: Heads, queue: Queue, M: float) -> int:
    """The best rank of all classes."""
    K = len(heads.ranked)
    best, best_ratio = K, -1.0
    for i in range(queue.count[0]):
        r = _first(lists, heads, queue, queue.heap[i])
        if r < K:
            found = ratio(growing, held, heads, r, M)
            if found > best_ratio or (found == best_ratio and r < best):
                best, best_ratio = r, found
    return best


@jit
def _first(lists: Lists, heads: Heads, queue: Queue, c: int) -> int:
    """The lowest rank in a class, or K if it has none."""
    K = len(heads.ranked)
    b = lists.bits[c]
    if b < 0:
        g = lists.only[c]
        return int(heads.head[g]) if heads.now[g] == c else K
    words = queue.bits[b]
    for w in range(queue.low[b], len(words)):
        if words[w] != 0:
            queue.low[b] = w
            lowest = words[w] & -words[w]
            # The exponent of a power of two is the place of its bit.
            return int(32 * w + (np.float64(lowest).view(np.int64) >> 52) - 1023)
    queue.low[b] = len(words)
    return K


@jit
def _leave_rank(lists: Lists, queue: Queue, c: int, r: int) -> None:
    if lists.bits[c] >= 0:
        queue.bits[lists.bits[c], r >> 5] &= ~(1 << (r & 31))


@jit
def _leave(lists: Lists, heads: Heads, queue: Queue, g: int) -> None:
    """Take a list out of its class; the class may stay in the heap without a label."""
    r = heads.head[g]
    while r < len(heads.ranked):
        _leave_rank(lists, queue, heads.now[g], r)
        r = heads.following[r]


@jit
def _enter(lists: Lists, heads: Heads, queue: Queue, g: int) -> None:
    """Put a list into its class, and the class at the end of the heap if it is not there."""
    K = len(heads.ranked)
    c = heads.now[g]
    b = lists.bits[c]
    r = heads.head[g]
    if r < K and queue.where[c] < 0:
        queue.heap[queue.count[0]] = c
        queue.where[c] = queue.count[0]
        queue.count[0] += 1
    if b >= 0 and r < K:
        queue.low[b] = min(queue.low[b], r >> 5)
        while r < K:
            queue.bits[b, r >> 5] |= 1 << (r & 31)
            r = heads.following[r]


@jit
def _raise(queue: Queue, c: int) -> None:
    """To the top, to be looked at next: its bound is no longer one."""
    heap, where = queue.heap, queue.where
    queue.key[c] = np.inf
    i = where[c]
    while i > 0:
        above = (i - 1) >> 1
        heap[i] = heap[above]
        where[heap[i]] = i
        i = above
    heap[0] = c
    where[c] = 0


@jit
def _remove_top(queue: Queue) -> None:
    heap, where = queue.heap, queue.where
    queue.count[0] -= 1
    last = queue.count[0]
    where[heap[0]] = -1
    if last > 0:
        heap[0] = heap[last]
        where[heap[0]] = 0
        _sift_down(queue, 0)


@jit
def _sift_down(queue: Queue, i: int) -> None:
    heap, where, key = queue.heap, queue.where, queue.key
    many = queue.count[0]
    c = heap[i]
    while True:
        child = 2 * i + 1
        if child >= many:
            break
        if child + 1 < many and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        if key[heap[child]] <= key[c]:
            break
        heap[i] = heap[child]
        where[heap[i]] = i
        i = child
    heap[i] = c
    where[c] = i
