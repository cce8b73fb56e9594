"""The minimum of a minorant plus a table of how many labels are chosen, by category and number (min-plus).

v(C, n), the least value of n counted labels in C, is that of two parts A and B of C put together:

    v(C, n) = min over s of v(A, n - s) + v(B, s).

Among labels that are in no inner category of C, the best n are the n of least value. Inner categories are merged before
outer ones, and the number of labels that each part got is recorded, to find the labels again. Labels that the table
does not count are chosen if their value is below 0. Category C stands for all labels; those in no category belong to it
directly.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import order_by
from udcp_solvers.search.layout import (
    ABOVE,
    CODE,
    COSTS,
    FREE,
    HOME,
    IN,
    RISING,
    TABLES,
    TOUCHED,
    WHOLE,
    Floats,
    Ints,
    numbers,
    operation,
    part,
)
from udcp_solvers.search.workspace import Node, Workspace, open_labels


@jit
def by_count(ints: Ints, floats: Floats, node: Node, T: Workspace) -> float:
    """The least of f table(count) + the minorant; fills `chosen`."""
    left = T.left_over
    _, j, start, _ = operation(part(ints, CODE), left.counted)
    K, tables = len(node.x), numbers(ints, floats, TABLES)
    counts = numbers(ints, floats, COSTS)[j * K : (j + 1) * K]
    # Labels that are in are counted first.
    before, forced = int(T.quantities[j].settled + 0.5), 0.0
    for y in open_labels(T):
        T.chosen[y] = 0
        if node.x[y] == IN:
            T.chosen[y] = IN
            before += counts[y] > 0.0
            forced += T.labels[y].value
    start += before
    first = math.ceil(T.quantities[j].low - WHOLE) - before
    last = math.floor(T.quantities[j].high + WHOLE) - before
    _list_free_labels(ints, counts, last, node, T)
    merged = _merge_all(ints, counts, T)
    whole = T.categories[len(T.categories) - 1]
    least, at = np.inf, -1
    for k in range(max(first, 0), min(last + 1, whole.length)):
        total = T.pool[whole.place + k] + left.count_factor * tables[start + k]
        if total <= least:
            least, at = total, k
    if at < 0 or least == np.inf:
        return np.inf
    _choose(ints, counts, at, merged, T)
    return forced + least


@jit
def _category_around(above: Ints, c: int, C: int) -> int:
    """The category around category c, or around label c if `above` is by label; C for none."""
    around = above[c]
    return int(around) if around >= 0 else C


@jit
def _list_free_labels(ints: Ints, counts: Floats, last: int, node: Node, T: Workspace) -> None:
    """List the free labels of each category by value, and reserve space for every number of them that may be chosen."""
    home, above = part(ints, HOME), part(ints, ABOVE)
    categories, C, free, end = T.categories, len(T.categories) - 1, 0, 0
    for c in range(C + 1):
        category = categories[c]
        category.capacity, category.length, category.head = 1, 0, -1
        category.enters, category.to_choose = False, 0
    for y in open_labels(T):
        T.labels[y].following = -1
        if node.x[y] == FREE:
            T.order[free], T.keys[y] = y, T.labels[y].value
            free += 1
    order_by(T.keys, T.order[:free], T.spare)
    for n in range(free - 1, -1, -1):
        y = T.order[n]
        c = _category_around(home, y, C)
        T.labels[y].following, categories[c].head = categories[c].head, y
        while counts[y] > 0.0:
            categories[c].capacity = min(categories[c].capacity + 1, last + 1)
            if c == C:
                break
            c = _category_around(above, c, C)
    for c in range(C + 1):
        categories[c].place = end
        end += categories[c].capacity


@jit
def _merge_all(ints: Ints, counts: Floats, T: Workspace) -> int:
    """Compute the least value of every category for every number, inner ones first; returns how many were merged."""
    above, rising = part(ints, ABOVE), part(ints, RISING)
    categories, C, merged, end = T.categories, len(T.categories) - 1, 0, 0
    for c in rising:
        inner = categories[c]
        _fill_own_values(c, counts, T)
        inner.enters = inner.state & TOUCHED != 0 or T.pool[inner.place] <= 0.0
        if not inner.enters:
            T.pool[inner.place] = 0.0
        around = _category_around(above, c, C)
        _fill_own_values(around, counts, T)
        width = _merge(c, around, end, T)
        categories[merged].merged, categories[merged].picks = c, end
        merged += 1
        end += width
    _fill_own_values(C, counts, T)
    return merged


@jit
def _merge(c: int, around: int, end: int, T: Workspace) -> int:
    """Merge a category into the one around it; returns for how many numbers. picks[end + k] is how many of k labels it
    gets."""
    inner, outer, pool = T.categories[c], T.categories[around], T.pool
    width = min(outer.length + inner.length - 1, outer.capacity)
    for k in range(width):
        T.trial[k] = np.inf
        for s in range(max(0, k - outer.length + 1), min(k + 1, inner.length)):
            both = pool[outer.place + k - s] + pool[inner.place + s]
            if both < T.trial[k]:
                T.trial[k] = both
                T.picks[end + k] = s
    for k in range(width):
        pool[outer.place + k] = T.trial[k]
    outer.length = width
    return int(width)


@jit
def _fill_own_values(c: int, counts: Floats, T: Workspace) -> None:
    """Compute, once, the least values of a category for every number of its free labels that are in no inner
    category."""
    category = T.categories[c]
    if category.length > 0:
        return
    total = category.weight if c < len(T.categories) - 1 else 0.0
    y = category.head
    while y >= 0:
        if counts[y] == 0.0:
            total += min(T.labels[y].value, 0.0)
        y = T.labels[y].following
    T.pool[category.place] = total
    n, y = 1, category.head
    while y >= 0 and n < category.capacity:
        if counts[y] > 0.0:
            total += T.labels[y].value
            T.pool[category.place + n] = total
            n += 1
        y = T.labels[y].following
    category.length = n


@jit
def _choose(ints: Ints, counts: Floats, number: int, merged: int, T: Workspace) -> None:
    """Choose the labels of the best set of `number` labels: from outer categories to inner ones, as many as each
    got."""
    above, categories, C = part(ints, ABOVE), T.categories, len(T.categories) - 1
    categories[C].to_choose, categories[C].enters = number, True
    for n in range(merged - 1, -1, -1):
        inner = categories[categories[n].merged]
        outer = categories[_category_around(above, categories[n].merged, C)]
        s = 0
        if outer.enters:
            s = T.picks[categories[n].picks + outer.to_choose]
            outer.to_choose -= s
        inner.to_choose = s
        inner.enters = outer.enters and (inner.enters or s > 0)
    for c in range(C + 1):
        if categories[c].enters:
            _choose_first(categories[c].head, counts, categories[c].to_choose, T)


@jit
def _choose_first(y: int, counts: Floats, number: int, T: Workspace) -> None:
    """Choose labels of a category: those not counted that are below 0, and of those counted the first `number`."""
    while y >= 0:
        if counts[y] == 0.0:
            if T.labels[y].value < 0.0:
                T.chosen[y] = IN
        elif number > 0:
            T.chosen[y] = IN
            number -= 1
        y = T.labels[y].following
