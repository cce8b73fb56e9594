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
from numpy.typing import NDArray

from udcp_dsl.oracle import Floats, Indices, Masks, Probabilities
from udcp_solvers.compiled import jit
from udcp_solvers.falling import falling_order, order_scratch
from udcp_solvers.growing import Growing, clear, new_state, push
from udcp_solvers.heads import Ranked, deal, most_to_place, rank, ratio, room_for_ranks
from udcp_solvers.lists import Lists, Model

_ROUNDING = 2.0**-50

# Ranks as bits, 64 to a word: one row a class.
Bits = NDArray[np.int64]


class Room(NamedTuple):
    """Arrays to work in, for one row after another."""

    state: Floats  # of `growing`
    head: Indices  # (G,)
    following: Indices  # (K,)
    states: Indices  # (G,) which categories of a list are touched
    now: Indices  # (G,) the class of a list
    moving: Indices  # (G,) lists on their way to another class
    marked: Masks  # (G,) whether a list is among them
    bits: Bits  # (C, words) the ranks in a class
    low: Indices  # (C,) no word below this one has a bit
    many: Indices  # (C,) how many bits there are
    heap: Indices  # the classes that hold a label; for lazy merges a heap by `key`
    where: Indices  # (C,) place in the heap, or -1
    key: Floats  # (C,) upper bounds
    looked: Indices  # (C,) the step in which a key was computed
    first: Indices  # (C,) the rank that was the class's first then
    stack: Indices  # (C,)
    step: Indices  # (1,) counts steps over all rows


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
    K, G, C = P.shape[1], len(lists.class_of), lists.class_of.max() + 1
    scratch = order_scratch(K)
    ranked = room_for_ranks(K)
    room = Room(
        new_state(growing.code),
        np.empty(G, np.int64),
        np.empty(K, np.int64),
        np.empty(G, np.int64),
        np.empty(G, np.int64),
        np.empty(G, np.int64),
        np.zeros(G, np.bool_),
        np.zeros((C, (K + 63) >> 6), np.int64),
        np.zeros(C, np.int64),
        np.zeros(C, np.int64),
        np.empty(C, np.int64),
        np.full(C, -1, np.int64),
        np.empty(C),
        np.zeros(C, np.int64),
        np.empty(C, np.int64),
        np.empty(C, np.int64),
        np.zeros(1, np.int64),
    )
    for i in range(start, stop):
        rank(P[i], falling_order(P[i], scratch), eps, ranked)
        counts[i] = _merge(growing, lists, model, ranked, room, M, eps, lazy, wanted[i], floor[i], orders[i])


@jit
def _merge(
    growing: Growing,
    lists: Lists,
    model: Model,
    ranks: Ranked,
    room: Room,
    M: float,
    eps: float,
    lazy: bool,
    wanted: int,
    floor: float,
    order: Indices,
) -> int:
    """One row: fills the order, and says how far."""
    # Taken out of the tuples once: a compiled function counts references to what it takes out.
    code, data, state = growing.code, growing.data, room.state
    entries, entry_category = growing.entries, growing.entry_category
    list_of, class_of, unpaid = lists.list_of, lists.class_of, lists.unpaid
    category_start, category_list, category_bit = lists.category_start, lists.category_list, lists.category_bit
    cost_common, cost_extra, slack = model.common, model.extra, model.slack
    ranked, p, width, inverse = ranks.label, ranks.p, ranks.room, ranks.inverse
    head, following, states, now = room.head, room.following, room.states, room.now
    moving, marked, bits, low, many = room.moving, room.marked, room.bits, room.low, room.many
    heap, where, key, looked, first = room.heap, room.where, room.key, room.looked, room.first
    K, G = len(ranked), len(class_of)
    drift = (1.0 - _ROUNDING) / (1.0 + eps)
    step = room.step[0]
    clear(code, data, state)
    if len(category_list):
        deal(list_of, ranked, head, following)
        for g in range(G):
            states[g] = 0
            now[g] = class_of[g, 0]
    A = M - cost_common[1] if lazy else 0.0
    size = 0
    for r in range(K):
        c = class_of[list_of[ranked[r]], 0]
        bits[c, r >> 6] |= 1 << (r & 63)
        many[c] += 1
        if where[c] < 0:
            heap[size] = c
            where[c] = size
            size += 1
            low[c] = r >> 6
            key[c] = _upper(A, cost_extra[c], slack, inverse[r], drift) if lazy else 0.0
    for j in range(size // 2 - 1, -1, -1):
        _sift_down(heap, where, key, size, j)
    most = most_to_place(p, floor)
    spent, placed = 0.0, 0.0
    count, pushed = 0, 0
    ended = False
    while not ended:
        step += 1
        c, r, lower, second = 0, K, -np.inf, np.inf
        if lazy:
            while looked[heap[0]] != step:
                c = heap[0]
                r = _first(bits, low, many, c, K)
                if r == K:
                    size = _drop_top(heap, where, key, size)
                else:
                    first[c] = r
                    looked[c] = step
                    key[c] = _upper(A, cost_extra[c], slack, inverse[r], drift)
                    _sift_down(heap, where, key, size, 0)
            c = heap[0]
            r = first[c]
            second = -np.inf
            for j in range(1, min(size, 3)):
                second = max(second, key[heap[j]])
            lower = _lower(A, cost_extra[c], slack, inverse[r], drift)
            if lower == -np.inf and _lone(heap, many, size):
                second = -np.inf
                lower = 0.0
        if not lower > second:
            while pushed < count:
                push(code, data, state, order[pushed])
                pushed += 1
            r = _best(code, data, state, ranked, width, bits, low, many, heap, key, room.stack, size, lower, M)
            c = now[list_of[ranked[r]]] if len(category_list) else class_of[list_of[ranked[r]], 0]
            second = np.inf
        # Take labels of the class for as long as it stays ahead of the second for certain. No calls in here: each
        # would count references, which takes longer than a step.
        while True:
            y = ranked[r]
            order[count] = y
            count += 1
            placed += p[r]
            if y == wanted or placed > most or count == K:
                ended = True
                break
            bits[c, r >> 6] &= ~(1 << (r & 63))
            many[c] -= 1
            if lazy:
                spent += cost_extra[c]
                A = M - cost_common[count + 1] - spent
            if unpaid[c]:
                # Move the lists of its categories to the classes that they are in once these are touched.
                moves = 0
                for e in range(entries[y], entries[y + 1]):
                    for j in range(category_start[entry_category[e]], category_start[entry_category[e] + 1]):
                        g = category_list[j]
                        states[g] |= 1 << category_bit[j]
                        if not marked[g]:
                            marked[g] = True
                            moving[moves] = g
                            moves += 1
                for j in range(moves):
                    g = moving[j]
                    marked[g] = False
                    old, new = now[g], class_of[g, states[g]]
                    r = head[g]
                    while r < K and (bits[old, r >> 6] >> (r & 63)) & 1 == 0:
                        r = following[r]
                    head[g] = r
                    now[g] = new
                    if new == old or r == K:
                        continue
                    if many[new] == 0 or r >> 6 < low[new]:
                        low[new] = r >> 6
                    bound = _upper(A, cost_extra[new], slack, inverse[r], drift) if lazy else 0.0
                    while r < K:
                        bits[old, r >> 6] ^= 1 << (r & 63)
                        bits[new, r >> 6] |= 1 << (r & 63)
                        many[old] -= 1
                        many[new] += 1
                        r = following[r]
                    if where[new] < 0:
                        where[new] = size
                        key[new] = bound
                        size += 1
                    key[new] = max(key[new], bound)
                    at = where[new]
                    while at > 0 and key[heap[(at - 1) >> 1]] < key[new]:
                        heap[at] = heap[(at - 1) >> 1]
                        where[heap[at]] = at
                        at = (at - 1) >> 1
                    heap[at] = new
                    where[new] = at
                break
            if many[c] == 0 or not lazy:
                break
            w = low[c]
            while bits[c, w] == 0:
                w += 1
            low[c] = w
            word = bits[c, w]
            r = 64 * w + ((np.float64(word & -word).view(np.int64) >> 52) & 0x7FF) - 1023
            if not _lower(A, cost_extra[c], slack, inverse[r], drift) > second:
                break
    for j in range(size):
        c = heap[j]
        where[c] = -1
        many[c] = 0
        bits[c] = 0
    room.step[0] = step
    return count


@jit
def _upper(A: float, extra: float, slack: float, inverse: float, drift: float) -> float:
    """No ratio of a class, less the drift, is above this, now or later."""
    return (A - extra + slack) * inverse * (1.0 + _ROUNDING) - A * drift + abs(A) * _ROUNDING


@jit
def _lower(A: float, extra: float, slack: float, inverse: float, drift: float) -> float:
    """The ratio of a class, less the drift, is at least this now; -inf where the ratio may be 0, the bounds' limit."""
    sure = A - extra - slack
    return sure * inverse * (1.0 - _ROUNDING) - A * drift - abs(A) * _ROUNDING if sure > 0.0 else -np.inf


@jit
def _best(
    code: Indices,
    data: Floats,
    state: Floats,
    ranked: Indices,
    room: Floats,
    bits: Bits,
    low: Indices,
    many: Indices,
    heap: Indices,
    key: Floats,
    stack: Indices,
    size: int,
    lower: float,
    M: float,
) -> int:
    """The rank that comes next, of the classes whose key is not below `lower`; -inf stands for all of them."""
    K = len(ranked)
    best, best_ratio = K, -1.0
    top = 1
    stack[0] = 0
    while top > 0:
        top -= 1
        i = stack[top]
        c = heap[i]
        if lower > -np.inf and key[c] < lower:
            continue
        r = _first(bits, low, many, c, K)
        if r < K:
            found = ratio(code, data, state, ranked, room, r, M)
            if found > best_ratio or (found == best_ratio and r < best):
                best, best_ratio = r, found
        for child in range(2 * i + 1, min(2 * i + 3, size)):
            stack[top] = child
            top += 1
    return best


@jit
def _first(bits: Bits, low: Indices, many: Indices, c: int, K: int) -> int:
    """The lowest rank in a class, or K if it has none."""
    if many[c] == 0:
        return K
    w = low[c]
    while bits[c, w] == 0:
        w += 1
    low[c] = w
    word = bits[c, w]
    # The exponent of a power of two is the place of its bit; the highest bit, a sign, is masked.
    return int(64 * w + ((np.float64(word & -word).view(np.int64) >> 52) & 0x7FF) - 1023)


@jit
def _lone(heap: Indices, many: Indices, size: int) -> bool:
    """Whether only one class has labels."""
    full = 0
    for i in range(size):
        full += 1 if many[heap[i]] > 0 else 0
    return full == 1


@jit
def _drop_top(heap: Indices, where: Indices, key: Floats, size: int) -> int:
    where[heap[0]] = -1
    if size > 1:
        heap[0] = heap[size - 1]
        where[heap[0]] = 0
        _sift_down(heap, where, key, size - 1, 0)
    return size - 1


@jit
def _sift_down(heap: Indices, where: Indices, key: Floats, size: int, i: int) -> None:
    c = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        if key[heap[child]] <= key[c]:
            break
        heap[i] = heap[child]
        where[heap[i]] = i
        i = child
    heap[i] = c
    where[c] = i
