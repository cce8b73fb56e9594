"""Greedy orders of losses that only see which numbers and categories a set holds: a merge of lists.

The next label is the first, by falling p, of some class of lists. Where the loss is a sum, classes differ by what one
more label costs beyond what all cost, `extra`; of two classes, one with less extra and a first label of higher p comes
before the other, whatever the set. So only the front matters: classes by rising extra, each with a first label of
higher p than all before it. It is short (about log C for C classes), and a tree of least ranks over the classes by
extra mends it when a label is placed. On the front the ratios (A - extra) / q decide, A being common to all.

All this is good up to `slack`, for rounding: classes whose extras are that near form one level, and what is too near to
tell is decided by the floats of `growing`, which every path shares; so the order is the naive one to the last tie. A
loss that is not a sum has infinite slack: one level, and every class is looked at in each step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.growth.growing import Growing, clear, new_state, push
from udcp_solvers.growth.heads import Ranked, deal, most_to_place, rank, ranks_for, ratio
from udcp_solvers.growth.lists import Lists, Model
from udcp_solvers.numeric.arrays import Floats, Indices, Ints, Masks, Probabilities
from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.falling import falling_order, order_scratch

_ROUNDING = 2.0**-50
# Up to so many levels, looking at all of them is quicker than keeping the front.
_FEW = 12

# Ranks as bits, 64 to a word: one row a class.
Bits = Ints


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
    return Levels(
        level_of=level_of,
        start=start,
        classes=order.astype(np.int64),
        extra=rising[start[:-1]],
        slack=model.slack + float(spread.max()),
    )


class Scratch(NamedTuple):
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
    tree: Indices  # the least rank below each node of a binary tree over the levels; node 1 is the root
    front: Indices  # levels
    behind: Indices  # the part of it behind the level that is mended


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
    K, G, C = P.shape[1], len(lists.class_of), len(levels.level_of)
    leaves = 1
    while leaves < len(levels.extra):
        leaves *= 2
    sorting = order_scratch(K)
    ranks = ranks_for(K)
    scratch = Scratch(
        state=new_state(growing.code),
        head=np.empty(G, np.int64),
        following=np.empty(K, np.int64),
        states=np.empty(G, np.int64),
        now=np.empty(G, np.int64),
        moving=np.empty(G, np.int64),
        marked=np.zeros(G, np.bool_),
        bits=np.zeros((C, (K + 63) >> 6), np.int64),
        low=np.zeros(C, np.int64),
        many=np.zeros(C, np.int64),
        tree=np.empty(2 * leaves, np.int64),
        front=np.empty(leaves, np.int64),
        behind=np.empty(leaves, np.int64),
    )
    for i in range(start, stop):
        rank(P[i], falling_order(P[i], sorting), eps, ranks)
        counts[i] = _merge(growing, lists, model, levels, ranks, scratch, M, wanted[i], floor[i], orders[i])


@jit
def _merge(
    growing: Growing,
    lists: Lists,
    model: Model,
    levels: Levels,
    ranks: Ranked,
    scratch: Scratch,
    M: float,
    wanted: int,
    floor: float,
    order: Indices,
) -> int:
    """One row: fills the order, and says how far."""
    # Taken out of the tuples once, and few calls below: a compiled function counts references to every array that it
    # takes out or hands on, which may take longer than a step.
    code, data, state = growing.code, growing.data, scratch.state
    entries, entry_category = growing.entries, growing.entry_category
    list_of, class_of, first_class, unpaid = lists.list_of, lists.class_of, lists.first_class, lists.unpaid
    category_start, category_list, category_bit = lists.category_start, lists.category_list, lists.category_bit
    cost_common, cost_extra = model.common, model.extra
    level_of, level_start, level_classes = levels.level_of, levels.start, levels.classes
    level_extra, slack = levels.extra, levels.slack
    ranked, p, denominator, inverse = ranks.label, ranks.p, ranks.denominator, ranks.inverse
    head, following, states, now = scratch.head, scratch.following, scratch.states, scratch.now
    moving, marked, bits, low, many = scratch.moving, scratch.marked, scratch.bits, scratch.low, scratch.many
    tree, front = scratch.tree, scratch.front
    K, G, leaves = len(ranked), len(class_of), len(front)
    with_categories = len(category_list) > 0
    clear(code, data, state)
    if with_categories:
        deal(list_of, ranked, head, following)
        for g in range(G):
            states[g] = 0
            now[g] = class_of[g, 0]
    tree[:] = K
    for r in range(K):
        c = first_class[ranked[r]]
        if many[c] == 0:
            low[c] = r >> 6
            leaf = leaves + level_of[c]
            tree[leaf] = min(tree[leaf], r)
        bits[c, r >> 6] |= 1 << (r & 63)
        many[c] += 1
    for node in range(leaves - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
    # With few levels all of them are looked at, also those without a label, whose `inverse` is 0.
    flat = len(level_extra) <= _FEW
    size = len(level_extra)
    if flat:
        for j in range(size):
            front[j] = j
    else:
        size = _extend(tree, front, 0, -1, leaves, K, leaves)
    most = most_to_place(p, floor)
    spent, placed = 0.0, 0.0
    count, pushed = 0, 0
    while True:
        # The ratio that is surely reached, and the most that any other may have.
        A = M - cost_common[count + 1] - spent
        lower, at, top, top_at, second = -np.inf, 0, -np.inf, 0, -np.inf
        for j in range(size):
            level = front[j]
            q = inverse[tree[leaves + level]]
            low_end = (A - level_extra[level] - slack) * q
            high_end = (A - level_extra[level] + slack) * q
            if low_end > lower:
                lower, at = low_end, j
            if high_end > top:
                second = top
                top, top_at = high_end, j
            elif high_end > second:
                second = high_end
        rival = second if top_at == at else top
        level = front[at]
        c = level_classes[level_start[level]]
        r = tree[leaves + level]
        # Where no ratio is certain to be above 0, all may be 0, and p decides.
        lower = lower * (1.0 - _ROUNDING) if lower > 0.0 else -np.inf
        if not rival * (1.0 + _ROUNDING) < lower or level_start[level + 1] - level_start[level] > 1:
            r, at, sure = _sole(
                inverse, bits, low, many, level_start, level_classes, cost_extra, front, size, A, slack, lower, K
            )
            if not sure:
                while pushed < count:
                    push(code, data, state, order[pushed])
                    pushed += 1
                r, at = _best(
                    code, data, state, ranked, denominator, inverse, bits, low, many,
                    level_start, level_classes, cost_extra, front, size, A, slack, lower, M,
                )  # fmt: skip
            c = now[list_of[ranked[r]]] if with_categories else first_class[ranked[r]]
            rival = np.inf
        level = level_of[c]
        alone = flat and level_start[level + 1] - level_start[level] == 1
        # Take labels of the class, where that is easy, for as long as it stays ahead of what any other may have had.
        while True:
            y = ranked[r]
            order[count] = y
            count += 1
            placed += p[r]
            ended = y == wanted or placed > most or count == K
            if ended:
                break
            spent += cost_extra[c]
            bits[c, r >> 6] ^= 1 << (r & 63)
            many[c] -= 1
            if not alone:
                _lead(bits, low, many, level_start, level_classes, tree, level, leaves, K)
                break
            r = K
            if many[c] > 0:
                w = low[c]
                while bits[c, w] == 0:
                    w += 1
                low[c] = w
                r = 64 * w + _lowest_bit(bits[c, w])
            tree[leaves + level] = r
            now_A = M - cost_common[count + 1] - spent
            lower = (now_A - level_extra[level] - slack) * inverse[r]
            if r == K or unpaid[c] or now_A > A or not max(rival, 0.0) * (1.0 + _ROUNDING) < lower * (1.0 - _ROUNDING):
                break
        if ended:
            break
        if not unpaid[c]:
            if not flat:
                size = _mend(tree, front, scratch.behind, size, at, leaves, K)
            continue
        # Move the lists of its categories to the classes that they are in once these are touched.
        moves = 0
        touched = states[list_of[y]]
        for e in range(entries[y + 1] - entries[y]):
            if (touched >> e) & 1 == 1:
                continue
            category = entry_category[entries[y] + e]
            for j in range(category_start[category], category_start[category + 1]):
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
            level = level_of[old]
            if many[old] == 0 and level_start[level + 1] - level_start[level] == 1:
                _note(tree, leaves + level, K)
            elif tree[leaves + level] == head[g]:
                _lead(bits, low, many, level_start, level_classes, tree, level, leaves, K)
            if tree[leaves + level_of[new]] > head[g]:
                _note(tree, leaves + level_of[new], head[g])
        if not flat:
            size = _extend(tree, front, 0, -1, leaves, K, leaves)
    if bits.size < K:
        bits[:] = 0
        many[:] = 0
    else:
        for r in range(K):
            c = now[list_of[ranked[r]]] if with_categories else first_class[ranked[r]]
            bits[c, r >> 6] = 0
            many[c] = 0
    return count


@jit
def _sole(
    inverse: Floats,
    bits: Bits,
    low: Indices,
    many: Indices,
    level_start: Indices,
    level_classes: Indices,
    cost_extra: Floats,
    front: Indices,
    size: int,
    A: float,
    slack: float,
    lower: float,
    K: int,
) -> tuple[int, int, bool]:
    """A rank that may come next, where on the front it is, and whether it is the only one."""
    found, at = K, 0
    for j in range(size):
        for i in range(level_start[front[j]], level_start[front[j] + 1]):
            c = level_classes[i]
            r = _first(bits, low, many, c, K)
            if r < K and (A - cost_extra[c] + slack) * inverse[r] * (1.0 + _ROUNDING) >= lower:
                if found < K:
                    return found, at, False
                found, at = r, j
    return found, at, True


@jit
def _best(
    code: Indices,
    data: Floats,
    state: Floats,
    ranked: Indices,
    denominator: Floats,
    inverse: Floats,
    bits: Bits,
    low: Indices,
    many: Indices,
    level_start: Indices,
    level_classes: Indices,
    cost_extra: Floats,
    front: Indices,
    size: int,
    A: float,
    slack: float,
    lower: float,
    M: float,
) -> tuple[int, int]:
    """The rank that comes next, of the classes on the front that may reach `lower`, and where on the front it is."""
    K = len(ranked)
    best, best_ratio, at = K, -1.0, 0
    for j in range(size):
        for i in range(level_start[front[j]], level_start[front[j] + 1]):
            c = level_classes[i]
            r = _first(bits, low, many, c, K)
            if r < K and (A - cost_extra[c] + slack) * inverse[r] * (1.0 + _ROUNDING) >= lower:
                found = ratio(code, data, state, ranked, denominator, r, M)
                if found > best_ratio or (found == best_ratio and r < best):
                    best, best_ratio, at = r, found, j
    return best, at


@jit
def _first(bits: Bits, low: Indices, many: Indices, c: int, K: int) -> int:
    """The lowest rank in a class, or K if it has none."""
    if many[c] == 0:
        return K
    w = low[c]
    while bits[c, w] == 0:
        w += 1
    low[c] = w
    return int(64 * w + _lowest_bit(bits[c, w]))


@jit
def _lowest_bit(word: int) -> int:
    """The exponent of a power of two is the place of its bit; the highest bit, a sign, is masked."""
    return int((np.float64(word & -word).view(np.int64) >> 52) & 0x7FF) - 1023


@jit
def _lead(
    bits: Bits,
    low: Indices,
    many: Indices,
    level_start: Indices,
    level_classes: Indices,
    tree: Indices,
    level: int,
    leaves: int,
    K: int,
) -> None:
    """Find the least rank of a level anew, and note it in the tree."""
    least = K
    for i in range(level_start[level], level_start[level + 1]):
        least = min(least, _first(bits, low, many, level_classes[i], K))
    _note(tree, leaves + level, least)


@jit
def _note(tree: Indices, node: int, least: int) -> None:
    """Write a leaf of the tree."""
    tree[node] = least
    while node > 1:
        node >>= 1
        least = min(tree[2 * node], tree[2 * node + 1])
        if tree[node] == least:
            break
        tree[node] = least


@jit
def _next(tree: Indices, level: int, below: int, leaves: int) -> int:
    """The first level above the given one (-1: any) whose least rank is lower than `below`, or `leaves` if none is."""
    if level < 0:
        node = 1
        if tree[1] >= below:
            return leaves
    else:
        node = leaves + level
        while node > 1 and (node & 1 == 1 or tree[node + 1] >= below):
            node >>= 1
        if node <= 1:
            return leaves
        node += 1
    while node < leaves:
        node = 2 * node if tree[2 * node] < below else 2 * node + 1
    return node - leaves


@jit
def _extend(tree: Indices, front: Indices, size: int, level: int, end: int, below: int, leaves: int) -> int:
    """Put what of the front lies between two levels at front[size:]; `below` is the least rank so far. The new size."""
    level = _next(tree, level, below, leaves)
    while level < end:
        front[size] = level
        size += 1
        level = _next(tree, level, tree[leaves + level], leaves)
    return size


@jit
def _mend(tree: Indices, front: Indices, behind: Indices, size: int, at: int, leaves: int, K: int) -> int:
    """The front after the first label of its level at place `at` was placed: its new size.

    What comes before stays, and what comes behind: its ranks are lower than all that were hidden here.
    """
    level = front[at]
    least = tree[leaves + front[at - 1]] if at > 0 else K
    end = front[at + 1] if at + 1 < size else leaves
    many = size - at - 1
    for j in range(many):
        behind[j] = front[at + 1 + j]
    size = at
    if tree[leaves + level] < least:
        least = tree[leaves + level]
        size += 1
    size = _extend(tree, front, size, level, end, least, leaves)
    for j in range(many):
        front[size + j] = behind[j]
    return size + many
