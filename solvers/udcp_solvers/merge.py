"""Greedy orders of losses that only see which numbers and categories a set holds: a merge of lists.

The next label is the first, by falling p, of some class of lists. Where the loss is a sum, a class whose first label
has room q = max(1 - p, 0) + eps has the ratio (A - extra) / q: A is common to all, and `extra` is what one more label
of the class costs beyond that. Less the drift A / (1 + eps), which all share, a ratio never rises while A falls and the
class only loses labels, so that an old value is an upper bound. Classes stand in blocks; each keeps a bound, and only
blocks whose bound is the highest are looked at again: one or two a step.

All this is good up to `slack`, for rounding: classes whose extras are that near form one level, and what is too near to
tell is decided by the floats of `growing`, which every path shares; so the order is the naive one to the last tie. A
loss that is not a sum has infinite slack: one level, and every class is looked at in each step.
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
# Levels in a block.
_BLOCK = 32

# Ranks as bits, 64 to a word: one row a class.
Bits = NDArray[np.int64]


class Levels(NamedTuple):
    """Classes by rising extra cost; a level's are too near to one another to be told apart by it."""

    level_of: Indices  # (C,)
    start: Indices  # (levels + 1,) where each level's classes begin
    classes: Indices  # (C,)
    extra: Floats  # (levels,)
    slack: float  # of the model, and of a level's one number for its classes


def levels_of(model: Model) -> Levels:
    order = np.argsort(model.extra, kind="stable")
    rising = model.extra[order]
    begins = np.append(True, np.diff(rising) > 4 * model.slack)
    start = np.append(np.flatnonzero(begins), len(rising)).astype(np.int64)
    level_of = np.empty(len(rising), np.int64)
    level_of[order] = np.cumsum(begins) - 1
    spread = rising[start[1:] - 1] - rising[start[:-1]]
    return Levels(level_of, start, order.astype(np.int64), rising[start[:-1]], model.slack + float(spread.max()))


class Room(NamedTuple):
    """Arrays to work in, for one row after another."""

    state: Floats  # of `growing`
    head: Indices  # (G,) a rank at or before the first of a list that is not placed
    following: Indices  # (K,)
    states: Indices  # (G,) which categories of a list are touched
    now: Indices  # (G,) the class of a list
    moving: Indices  # (G,) lists on their way to another class
    marked: Masks  # (G,) whether a list is among them
    bits: Bits  # (C, words) the ranks in a class
    low: Indices  # (C,) no word below this one has a bit
    many: Indices  # (C,) how many bits there are
    least: Indices  # (levels,) the lowest rank in a level, or K
    inverse: Floats  # (levels,) 1 / q of that label, or 0
    key: Floats  # (blocks,) upper bounds
    looked: Indices  # (blocks,) the step in which the bound was computed
    top: Indices  # (blocks,) the level that had the highest bound then
    second: Floats  # (blocks,) the highest bound of the block's others
    step: Indices  # (1,) counts steps, over all rows


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
    levels: Levels,
    M: float,
    eps: float,
    orders: Indices,
    counts: Indices,
) -> None:
    """The labels of each row in greedy order, until label `wanted` is placed or less mass than `floor` remains."""
    K, G, C, many_levels = P.shape[1], len(lists.class_of), len(levels.level_of), len(levels.extra)
    blocks = -(-many_levels // _BLOCK)
    scratch = order_scratch(K)
    ranks = room_for_ranks(K)
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
        np.empty(many_levels, np.int64),
        np.empty(many_levels),
        np.empty(blocks),
        np.zeros(blocks, np.int64),
        np.empty(blocks, np.int64),
        np.empty(blocks),
        np.zeros(1, np.int64),
    )
    for i in range(start, stop):
        rank(P[i], falling_order(P[i], scratch), eps, ranks)
        counts[i] = _merge(growing, lists, model, levels, ranks, room, M, eps, wanted[i], floor[i], orders[i])


@jit
def _merge(
    growing: Growing,
    lists: Lists,
    model: Model,
    levels: Levels,
    ranks: Ranked,
    room: Room,
    M: float,
    eps: float,
    wanted: int,
    floor: float,
    order: Indices,
) -> int:
    """One row: fills the order, and says how far."""
    # Taken out of the tuples once, and few calls below: a compiled function counts references to every array that it
    # takes out or hands on, which may take longer than a step.
    code, data, state = growing.code, growing.data, room.state
    entries, entry_category = growing.entries, growing.entry_category
    list_of, class_of, unpaid = lists.list_of, lists.class_of, lists.unpaid
    category_start, category_list, category_bit = lists.category_start, lists.category_list, lists.category_bit
    cost_common, cost_extra = model.common, model.extra
    level_of, level_start, level_classes = levels.level_of, levels.start, levels.classes
    level_extra, slack = levels.extra, levels.slack
    ranked, p, width, inverse = ranks.label, ranks.p, ranks.room, ranks.inverse
    head, following, states, now = room.head, room.following, room.states, room.now
    moving, marked, bits, low, many = room.moving, room.marked, room.bits, room.low, room.many
    least, level_inverse, key, looked = room.least, room.inverse, room.key, room.looked
    top, second = room.top, room.second
    K, G = len(ranked), len(class_of)
    drift = (1.0 - _ROUNDING) / (1.0 + eps)
    with_categories = len(category_list) > 0
    clear(code, data, state)
    if with_categories:
        deal(list_of, ranked, head, following)
        for g in range(G):
            states[g] = 0
            now[g] = class_of[g, 0]
    least[:] = K
    level_inverse[:] = 0.0
    key[:] = np.inf
    for r in range(K):
        c = class_of[list_of[ranked[r]], 0]
        if many[c] == 0:
            low[c] = r >> 6
            if least[level_of[c]] == K:
                least[level_of[c]] = r
                level_inverse[level_of[c]] = inverse[r]
        bits[c, r >> 6] |= 1 << (r & 63)
        many[c] += 1
    most = most_to_place(p, floor)
    spent, placed = 0.0, 0.0
    count, pushed, step = 0, 0, room.step[0]
    A = M - cost_common[1]
    while True:
        step += 1
        b = 0
        while True:
            for j in range(len(key)):
                b = j if key[j] > key[b] else b
            if looked[b] == step:
                break
            looked[b] = step
            key[b] = _look(level_extra, level_inverse, top, second, b, A, slack, drift)
        # The ratio that is surely reached, and the most that any other may have.
        level = top[b]
        lower = (A - level_extra[level] - slack) * level_inverse[level]
        rival = -np.inf
        for j in range(len(key)):
            rival = max(rival, key[j]) if j != b else rival
        rival = max(rival + A * drift + abs(A) * _ROUNDING, second[b])
        r = least[level]
        c = level_classes[level_start[level]]
        # Where no ratio is certain to be above 0, all may be 0, and p decides.
        lower = lower * (1.0 - _ROUNDING) if lower > 0.0 else -np.inf
        if not rival * (1.0 + _ROUNDING) < lower or level_start[level + 1] - level_start[level] > 1:
            r, sure = _sole(inverse, bits, low, many, level_classes, cost_extra, A, slack, lower, K)
            if not sure:
                while pushed < count:
                    push(code, data, state, order[pushed])
                    pushed += 1
                r = _best(
                    code, data, state, ranked, width, inverse, bits, low, many, level_classes, cost_extra, A, slack, lower, M
                )  # fmt: skip
            c = now[list_of[ranked[r]]] if with_categories else class_of[list_of[ranked[r]], 0]
        y = ranked[r]
        order[count] = y
        count += 1
        placed += p[r]
        if y == wanted or placed > most or count == K:
            break
        spent += cost_extra[c]
        before, A = A, M - cost_common[count + 1] - spent
        if A > before:
            key[:] = np.inf
        bits[c, r >> 6] ^= 1 << (r & 63)
        many[c] -= 1
        level = level_of[c]
        least[level] = _least(bits, low, many, level_start, level_classes, level, K)
        level_inverse[level] = inverse[least[level]]
        if not unpaid[c]:
            continue
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
            while r < K:
                bits[old, r >> 6] ^= 1 << (r & 63)
                bits[new, r >> 6] |= 1 << (r & 63)
                many[old] -= 1
                many[new] += 1
                r = following[r]
            for level in (level_of[old], level_of[new]):
                least[level] = _least(bits, low, many, level_start, level_classes, level, K)
                level_inverse[level] = inverse[least[level]]
            # A bound no longer, now that there are more labels.
            b = level_of[new] // _BLOCK
            bound = _upper(A, level_extra[level_of[new]], level_inverse[level_of[new]], slack, drift)
            key[b] = max(key[b], bound)
    room.step[0] = step
    for r in range(K):
        g = list_of[ranked[r]]
        c = now[g] if with_categories else class_of[g, 0]
        bits[c, r >> 6] = 0
        many[c] = 0
    return count


@jit
def _upper(A: float, extra: float, inverse: float, slack: float, drift: float) -> float:
    """No ratio, less the drift, is above this, now or later."""
    return (A - extra + slack) * inverse * (1.0 + _ROUNDING) - A * drift + abs(A) * _ROUNDING


@jit
def _look(
    extra: Floats, inverse: Floats, top: Indices, second: Floats, b: int, A: float, slack: float, drift: float
) -> float:
    """Find the level of a block with the highest bound, and the second bound; returns the block's key."""
    best, others, at = -np.inf, -np.inf, b * _BLOCK
    for level in range(b * _BLOCK, min((b + 1) * _BLOCK, len(extra))):
        bound = (A - extra[level] + slack) * inverse[level]
        if bound > best:
            others = best
            best, at = bound, level
        elif bound > others:
            others = bound
    top[b], second[b] = at, others
    return _upper(A, extra[at], inverse[at], slack, drift)


@jit
def _sole(
    inverse: Floats,
    bits: Bits,
    low: Indices,
    many: Indices,
    classes: Indices,
    cost_extra: Floats,
    A: float,
    slack: float,
    lower: float,
    K: int,
) -> tuple[int, bool]:
    """A rank that may come next, as its ratio may reach `lower`, and whether it is the only one."""
    found = K
    for c in classes:
        r = _first(bits, low, many, c, K)
        if r < K and (A - cost_extra[c] + slack) * inverse[r] * (1.0 + _ROUNDING) >= lower:
            if found < K:
                return found, False
            found = r
    return found, True


@jit
def _best(
    code: Indices,
    data: Floats,
    state: Floats,
    ranked: Indices,
    width: Floats,
    inverse: Floats,
    bits: Bits,
    low: Indices,
    many: Indices,
    classes: Indices,
    cost_extra: Floats,
    A: float,
    slack: float,
    lower: float,
    M: float,
) -> int:
    """The rank that comes next, of those whose ratio may reach `lower`."""
    K = len(ranked)
    best, best_ratio = K, -1.0
    for c in classes:
        r = _first(bits, low, many, c, K)
        if r < K and (A - cost_extra[c] + slack) * inverse[r] * (1.0 + _ROUNDING) >= lower:
            found = ratio(code, data, state, ranked, width, r, M)
            if found > best_ratio or (found == best_ratio and r < best):
                best, best_ratio = r, found
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
    return 64 * w + _lowest_bit(bits[c, w])


@jit
def _lowest_bit(word: int) -> int:
    """The exponent of a power of two is the place of its bit; the highest bit, a sign, is masked."""
    return int((np.float64(word & -word).view(np.int64) >> 52) & 0x7FF) - 1023


@jit
def _least(
    bits: Bits, low: Indices, many: Indices, level_start: Indices, level_classes: Indices, level: int, K: int
) -> int:
    """The lowest rank in a level."""
    least = K
    for i in range(level_start[level], level_start[level + 1]):
        least = min(least, _first(bits, low, many, level_classes[i], K))
    return least
