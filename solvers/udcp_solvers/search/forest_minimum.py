"""The minimum of a minorant over the sets of a node: one pass over the forest of categories, inner ones first.

    v(C) = weight(C) + sum of the values below 0 of the labels of C alone + sum of v(D) below 0 of the categories D in C

A category is entered if v(C) <= 0, or if it is touched anyway; the minimum is the sum of v over the outermost of these.
With a threshold, a set pays f t for the largest entry t of its labels: labels are let in by rising entry, and v is
updated along the path of each.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.arrays import Records
from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import order_by
from udcp_solvers.search.layout import (
    ABOVE,
    CATEGORY_LABELS,
    CATEGORY_STARTS,
    CODE,
    COLUMN_STARTS,
    COLUMNS,
    FAR,
    FREE,
    HOME,
    IN,
    OUT,
    PREFIX,
    PREFIX_ENTRIES,
    PREFIX_STARTS,
    RISING,
    TOUCHED,
    WORST,
    Floats,
    Ints,
    numbers,
    operation,
    part,
)
from udcp_solvers.search.workspace import Node, Workspace, candidate_labels, open_labels


@jit
def forest_minimum(ints: Ints, node: Node, t: float, T: Workspace) -> float:
    """The least value of the minorant over labels with an entry of at most t (all labels if t is infinite); fills
    `chosen`.

    At a tie, labels with mass are in, others out. `v` is left at 0 or below for categories that are entered, above 0
    for others; at 0 for those that are touched anyway.
    """
    home, above, rising = part(ints, HOME), part(ints, ABOVE), part(ints, RISING)
    categories, total = T.categories, 0.0
    for c in range(len(categories)):
        categories[c].v = categories[c].weight
    for y in open_labels(T):
        label, mark = T.labels[y], node.x[y]
        T.chosen[y] = 0
        takes = label.value < 0.0 or (label.value == 0.0 and label.p > 0.0)
        if mark == IN or (mark == FREE and takes and (t == np.inf or label.entry <= t)):
            T.chosen[y] = IN
            if mark == FREE and home[y] >= 0:
                categories[home[y]].v += label.value
            else:
                total += label.value
    for c in rising:
        category = categories[c]
        if category.state & TOUCHED or category.v <= 0.0:
            if above[c] >= 0:
                categories[above[c]].v += category.v
            else:
                total += category.v
            if category.state & TOUCHED:
                category.v = 0.0
    _leave_unentered(ints, node, T)
    return total


@jit
def _leave_unentered(ints: Ints, node: Node, T: Workspace) -> None:
    """Leave out free labels whose category, or one around it, is not entered."""
    home, above = part(ints, HOME), part(ints, ABOVE)
    for y in open_labels(T):
        if node.x[y] == FREE and T.chosen[y] == IN:
            c = home[y]
            while c >= 0:
                if T.categories[c].v > 0.0:
                    T.chosen[y] = 0
                    break
                c = above[c]


@jit
def touching(ints: Ints, node: Node, T: Workspace) -> float:
    """How much the minimum rises, at least, since categories must be touched: the largest of their rises by one more
    label.

    That label is chosen, and with it the labels below 0 in the categories that it enters (the rise is that of the one
    category alone).
    """
    home, above = part(ints, HOME), part(ints, ABOVE)
    most, label = 0.0, -1
    for c in range(len(node.must_touch)):
        if node.must_touch[c] == 1:
            extra, cheapest = _cheapest_touch(ints, c, node, T)
            if extra > most:
                most, label = extra, cheapest
    if label >= 0:
        c = home[label]
        while c >= 0:
            T.categories[c].v = 0.0
            c = above[c]
        for y in open_labels(T):
            if node.x[y] == FREE and T.labels[y].value < 0.0:
                T.chosen[y] = IN
        T.chosen[label] = IN
        _leave_unentered(ints, node, T)
    return most


@jit
def _cheapest_touch(ints: Ints, c: int, node: Node, T: Workspace) -> tuple[float, int]:
    """The least rise of the minimum if a label of a category is let in, and that label; 0 if one is chosen already."""
    home, above = part(ints, HOME), part(ints, ABOVE)
    starts, member = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
    least, cheapest = np.inf, -1
    for m in range(starts[c], starts[c + 1]):
        y = member[m]
        if node.x[y] < FREE:
            continue
        if T.chosen[y] == IN:
            return 0.0, -1
        extra, around = max(T.labels[y].value, 0.0), home[y]
        while around >= 0:
            extra += max(T.categories[around].v, 0.0)
            around = above[around]
        if extra < least:
            least, cheapest = extra, y
    return least, cheapest


@jit
def changes(ints: Ints, node: Node, t: float, max_change: float, T: Workspace) -> None:
    """Fill `change`: the least rise of the minimum if a free label changes sides; at most `max_change`, the rise at any
    other threshold than t.

    Letting a label in adds its value and what the categories around it lack to be entered. Leaving one out takes away
    its value, or all that a category around it gains if that is less.
    """
    home, above = part(ints, HOME), part(ints, ABOVE)
    for y in open_labels(T):
        if node.x[y] != FREE:
            continue
        label = T.labels[y]
        if T.chosen[y] == IN:
            label.change = min(_loss_without(above, home[y], max(-label.value, 0.0), T.categories), max_change)
            continue
        extra, c = max(label.value, 0.0) if t == np.inf or label.entry <= t else np.inf, home[y]
        while c >= 0 and extra < max_change:
            extra += max(T.categories[c].v, 0.0)
            c = above[c]
        label.change = min(extra, max_change)


@jit
def fix_labels(ints: Ints, node: Node, room: float, T: Workspace) -> bool:
    """Fix the free labels and categories whose change would raise the minimum by more than `room`, what it is below the
    incumbent; returns whether there is one."""
    above, rising = part(ints, ABOVE), part(ints, RISING)
    fixed = 0
    for c in rising:
        category = T.categories[c]
        if (
            category.state & TOUCHED == 0
            and -category.v > room
            and _loss_without(above, c, np.inf, T.categories) > room
        ):
            node.must_touch[c] = 1
            fixed += 1
    for y in open_labels(T):
        if node.x[y] == FREE and T.labels[y].change > room:
            node.x[y] = IN if T.chosen[y] == IN else OUT
            fixed += 1
    return fixed > 0


@jit
def _loss_without(above: Ints, c: int, own: float, categories: Records) -> float:
    """The least rise of the minimum without a part of category c that lowers it by `own`."""
    while c >= 0:
        if categories[c].state & TOUCHED == 0:
            own = min(own, max(-categories[c].v, 0.0))
        c = above[c]
    return own


@jit
def by_threshold(ints: Ints, floats: Floats, rest: float, node: Node, T: Workspace) -> tuple[float, float, float]:
    """The least of f t + the minimum over labels with an entry of at most t; its t; and the least at any other t.

    `rest` is the minimum without a threshold. Entries are left as those of the best column; for the farthest of pairs,
    an entry is the distance to the farthest label that is in.
    """
    scan, i = T.scan, T.left_over.threshold
    scan.held, scan.forced, scan.rest = 0, 0.0, rest
    for y in candidate_labels(T):
        scan.held += node.x[y] == IN
    for y in open_labels(T):
        scan.forced += T.labels[y].value if node.x[y] == IN else 0.0
    # The empty set has no entry.
    scan.least, scan.at, scan.second = np.inf, 0.0, np.inf
    if scan.held == 0:
        scan.least, scan.at = 0.0, -np.inf
    kind, k, _, _ = operation(part(ints, CODE), i)
    if kind == WORST:
        _scan_columns(ints, floats, k, node, T)
    else:
        _scan_distances(ints, floats, k, T.operations[i].low, node, T)
    return scan.least, scan.at, scan.second


@jit
def _scan_columns(ints: Ints, floats: Floats, k: int, node: Node, T: Workspace) -> None:
    """Scan thresholds in each column of a hard atom."""
    K, starts, columns = len(node.x), part(ints, COLUMN_STARTS), numbers(ints, floats, COLUMNS)
    prefix, along, entries = part(ints, PREFIX_STARTS), part(ints, PREFIX), numbers(ints, floats, PREFIX_ENTRIES)
    best = -1
    for a in range(starts[k], starts[k + 1]):
        # Only the prefix of a column counts, and it must hold all labels that are in.
        first, last = prefix[a], prefix[a + 1]
        if last - first >= T.scan.held and _scan(ints, along[first:last], entries[first:last], T.scan.held, node, T):
            best = a
    if best >= 0:
        for y in open_labels(T):
            T.labels[y].entry = columns[best * K + y]


@jit
def _scan_distances(ints: Ints, floats: Floats, k: int, low: float, node: Node, T: Workspace) -> None:
    """Scan thresholds on the distance to the farthest label that is in; `low` is the largest distance between labels
    in."""
    K, scan, f = len(node.x), T.scan, T.left_over.threshold_factor
    far = numbers(ints, floats, FAR)[k * K * K : (k + 1) * K * K]
    if scan.held > 0:
        scan.least, scan.at = f * low + scan.forced, low
    for y in open_labels(T):
        T.labels[y].entry = max(far[y * K + y], low) if scan.held > 0 else far[y * K + y]
    for z in candidate_labels(T):
        if node.x[z] == IN:
            for y in open_labels(T):
                T.labels[y].entry = max(T.labels[y].entry, far[z * K + y])
    free = 0
    for y in open_labels(T):
        if node.x[y] == FREE and T.labels[y].value < 0.0:
            T.order[free], T.keys[y] = y, T.labels[y].entry
            free += 1
    order_by(T.keys, T.order[:free], T.spare)
    for n in range(free):
        T.trial[n] = T.keys[T.order[n]]
    _scan(ints, T.order[:free], T.trial[:free], 0, node, T)


@jit
def _scan(ints: Ints, order: Ints, entries: Floats, held: int, node: Node, T: Workspace) -> bool:
    """Let labels in by rising entry t, and note the least of f t + the minimum; returns whether it is less than before.

    A threshold counts only after `held` labels that are in.
    """
    home, scan, f = part(ints, HOME), T.scan, T.left_over.threshold_factor
    total, seen, n, better = scan.forced, 0, 0, False
    for c in range(len(T.categories)):
        T.categories[c].v = T.categories[c].weight
    while n < len(order):
        t = entries[n]
        if f * t + scan.rest >= scan.least:
            scan.second = min(scan.second, f * t + scan.rest)
            break
        while n < len(order) and entries[n] == t:
            y = order[n]
            if node.x[y] == IN:
                seen += 1
            elif node.x[y] == FREE and T.labels[y].value < 0.0:
                total += _let_in(ints, T.labels[y].value, home[y], T.categories)
            n += 1
        if seen < held:
            continue
        here = f * t + total
        if here < scan.least:
            scan.least, scan.at, here, better = here, t, scan.least, True
        scan.second = min(scan.second, here)
    return better


@jit
def _let_in(ints: Ints, value: float, c: int, categories: Records) -> float:
    """Let a label of category c in; returns the change of the minimum, 0 or less."""
    above, step = part(ints, ABOVE), value
    while c >= 0:
        category = categories[c]
        old = category.v
        category.v = old + step
        if category.state & TOUCHED == 0:
            step = min(category.v, 0.0) - min(old, 0.0)
            if step == 0.0:
                return 0.0
        c = above[c]
    return float(step)
