"""The optimum of a minorant under the labels of a branch: one pass over the forest of categories, three ways.

v(C) = its weight + the values of its labels below 0 + v of the categories within it below 0; C is entered if v(C) <= 0,
or if it is touched anyway. With a threshold on entries, labels come in by rising entry and v is kept up to date along
the path of each. With a table of the number of labels, each category has its least value for every number, and two are
put together number by number.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import order_by, put
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
    Marks,
    numbers,
    part,
)


@jit
def forest_minimum(
    ints: Ints,
    p: Floats,
    x: Marks,
    labels: Ints,
    state: Ints,
    value: Floats,
    weight: Floats,
    entry: Floats,
    most: float,
    v: Floats,
    chosen: Marks,
) -> float:
    """The least value of a minorant over labels whose entry is at most `most`, and the set that has it.

    At a tie labels with mass are in, others out. `v` is left at 0 or below for categories that are entered, above for
    others; at 0 for those that are touched anyway.
    """
    home, above, rising = part(ints, HOME), part(ints, ABOVE), part(ints, RISING)
    total = 0.0
    put(v, weight)
    for y in labels:
        chosen[y] = 0
        takes = value[y] < 0.0 or (value[y] == 0.0 and p[y] > 0.0)
        if x[y] == IN or (x[y] == FREE and takes and entry[y] <= most):
            chosen[y] = IN
            if x[y] == FREE and home[y] >= 0:
                v[home[y]] += value[y]
            else:
                total += value[y]
    for c in rising:
        if state[c] & TOUCHED or v[c] <= 0.0:
            if above[c] >= 0:
                v[above[c]] += v[c]
            else:
                total += v[c]
            if state[c] & TOUCHED:
                v[c] = 0.0
    _leave(ints, x, labels, v, chosen)
    return total


@jit
def _leave(ints: Ints, x: Marks, labels: Ints, v: Floats, chosen: Marks) -> None:
    """Leave free labels out whose category, or one around it, is not entered."""
    home, above = part(ints, HOME), part(ints, ABOVE)
    for y in labels:
        if x[y] == FREE and chosen[y] == IN:
            c = home[y]
            while c >= 0:
                if v[c] > 0.0:
                    chosen[y] = 0
                    break
                c = above[c]


@jit
def touching(ints: Ints, x: Marks, said: Marks, labels: Ints, value: Floats, v: Floats, chosen: Marks) -> float:
    """What it adds to let the set touch, with one more label, a category that is said to be; the dearest of these.

    That label comes in, and with it what its categories hold below 0 (the value is that of the one category alone).
    """
    home, above = part(ints, HOME), part(ints, ABOVE)
    starts, member = part(ints, CATEGORY_STARTS), part(ints, CATEGORY_LABELS)
    most, label = 0.0, -1
    for c in range(len(said)):
        if said[c] == 0:
            continue
        least, cheapest = np.inf, -1
        for m in range(starts[c], starts[c + 1]):
            y = member[m]
            if x[y] < FREE:
                continue
            if chosen[y] == IN:
                least = 0.0
                break
            extra = max(value[y], 0.0)
            around = home[y]
            while around >= 0:
                extra += max(v[around], 0.0)
                around = above[around]
            if extra < least:
                least, cheapest = extra, y
        if least > most:
            most, label = least, cheapest
    if label >= 0:
        c = home[label]
        while c >= 0:
            v[c] = 0.0
            c = above[c]
        for y in labels:
            if x[y] == FREE and value[y] < 0.0:
                chosen[y] = IN
        chosen[label] = IN
        _leave(ints, x, labels, v, chosen)
    return most


@jit
def changes(
    ints: Ints,
    x: Marks,
    labels: Ints,
    state: Ints,
    value: Floats,
    v: Floats,
    entry: Floats,
    t: float,
    cap: float,
    chosen: Marks,
    change: Floats,
) -> None:
    """By how much the minorant rises at least if a free label is in where it is out, or out where it is in; at most
    `cap`, which all sets beyond the threshold t lie above.

    Letting a label in adds its value and what the categories around it lack to be entered. Leaving one out takes its
    value away, or all that a category around it gains, where that is less.
    """
    home, above = part(ints, HOME), part(ints, ABOVE)
    for y in labels:
        if x[y] != FREE:
            continue
        if chosen[y] == IN:
            change[y] = min(_loss(above, home[y], max(-value[y], 0.0), state, v), cap)
            continue
        extra, c = max(value[y], 0.0) if entry[y] <= t else np.inf, home[y]
        while c >= 0 and extra < cap:
            extra += max(v[c], 0.0)
            c = above[c]
        change[y] = min(extra, cap)


@jit
def settle(
    ints: Ints,
    x: Marks,
    said: Marks,
    labels: Ints,
    state: Ints,
    v: Floats,
    chosen: Marks,
    change: Floats,
    room: float,
) -> bool:
    """Fix the free labels and categories whose change would raise the minorant by more than `room`, above the best set
    known; whether there is one."""
    above, rising = part(ints, ABOVE), part(ints, RISING)
    many = 0
    for c in rising:
        if state[c] & TOUCHED == 0 and -v[c] > room and _loss(above, c, np.inf, state, v) > room:
            said[c] = 1
            many += 1
    for y in labels:
        if x[y] == FREE and change[y] > room:
            x[y] = IN if chosen[y] == IN else OUT
            many += 1
    return many > 0


@jit
def _loss(above: Ints, c: int, own: float, state: Ints, v: Floats) -> float:
    """What the minorant loses at least without a part of category c that is worth `own`."""
    while c >= 0:
        if state[c] & TOUCHED == 0:
            own = min(own, max(-v[c], 0.0))
        c = above[c]
    return own


@jit
def by_threshold(
    ints: Ints,
    floats: Floats,
    i: int,
    f: float,
    x: Marks,
    labels: Ints,
    state: Ints,
    value: Floats,
    weight: Floats,
    rest: float,
    v: Floats,
    entry: Floats,
    everyone: Ints,
    low: float,
    order: Ints,
    spare: Ints,
    sorted_entries: Floats,
) -> tuple[float, float, float]:
    """The least of f t + the value of the minorant over labels of entry at most t, that t, and the least beside it.

    `rest` is the least value without a threshold, `low` the value of the atom on the labels that are in. `entry` is
    left with the entries of the best column; for the farthest of pairs, an entry is the distance to the farthest label
    that is in.
    """
    K = len(x)
    code = part(ints, CODE)
    kind, k = code[4 * i], code[4 * i + 1]
    held, forced = 0, 0.0
    for y in everyone:
        held += x[y] == IN
    for y in labels:
        forced += value[y] if x[y] == IN else 0.0
    # The empty set has no entry.
    best, at, second = (np.inf, 0.0, np.inf) if held else (0.0, -np.inf, np.inf)
    if kind == WORST:
        starts, columns = part(ints, COLUMN_STARTS), numbers(ints, floats, COLUMNS)
        prefix, along, entries = part(ints, PREFIX_STARTS), part(ints, PREFIX), numbers(ints, floats, PREFIX_ENTRIES)
        which = -1
        for a in range(starts[k], starts[k + 1]):
            # What a column has to offer is its first labels, and these must hold all that are in.
            first, last = prefix[a], prefix[a + 1]
            if last - first >= held:
                better, t, second = _along(
                    ints, along[first:last], entries[first:last], f, x, held, forced, state, value, weight, rest, best,
                    second, v,
                )  # fmt: skip
                if better < best:
                    best, at, which = better, t, a
        if which >= 0:
            for y in labels:
                entry[y] = columns[which * K + y]
        return best, at, second
    far = numbers(ints, floats, FAR)[k * K * K : (k + 1) * K * K]
    if held:
        best, at = f * low + forced, low
    for y in labels:
        entry[y] = max(far[y * K + y], low) if held else far[y * K + y]
    for z in everyone:
        if x[z] == IN:
            for y in labels:
                entry[y] = max(entry[y], far[z * K + y])
    many = 0
    for y in labels:
        if x[y] == FREE and value[y] < 0.0:
            order[many] = y
            many += 1
    order_by(entry, order[:many], spare)
    for n in range(many):
        sorted_entries[n] = entry[order[n]]
    better, t, second = _along(
        ints, order[:many], sorted_entries[:many], f, x, 0, forced, state, value, weight, rest, best, second, v
    )
    return (better, t, second) if better < best else (best, at, second)


@jit
def _along(
    ints: Ints,
    order: Ints,
    entries: Floats,
    f: float,
    x: Marks,
    held: int,
    forced: float,
    state: Ints,
    value: Floats,
    weight: Floats,
    rest: float,
    best: float,
    second: float,
    v: Floats,
) -> tuple[float, float, float]:
    """The least of f t + the value of the minorant over labels that come by rising entry, if below `best`, and t; the
    least beside the best so far, from below."""
    home = part(ints, HOME)
    total, at, seen, n = forced, 0.0, 0, 0
    put(v, weight)
    while n < len(order):
        t = entries[n]
        if f * t + rest >= best:
            second = min(second, f * t + rest)
            break
        while n < len(order) and entries[n] == t:
            y = order[n]
            if x[y] == IN:
                seen += 1
            elif x[y] == FREE and value[y] < 0.0:
                total += _entered(ints, y, home[y], value, state, v)
            n += 1
        if seen < held:
            continue
        here = f * t + total
        if here < best:
            best, at, here = here, t, best
        second = min(second, here)
    return best, at, second


@jit
def _entered(ints: Ints, y: int, c: int, value: Floats, state: Ints, v: Floats) -> float:
    """Let a label in; by how much the least value falls."""
    above = part(ints, ABOVE)
    step = value[y]
    while c >= 0:
        old = v[c]
        v[c] = old + step
        if state[c] & TOUCHED == 0:
            step = min(v[c], 0.0) - min(old, 0.0)
            if step == 0.0:
                return 0.0
        c = above[c]
    return float(step)
