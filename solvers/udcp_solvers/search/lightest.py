"""The optimum of a minorant under the labels of a branch: one pass over the forest of categories, three ways.

v(C) = its weight + the values of its labels below 0 + v of the categories within it below 0; C is entered if v(C) <= 0,
or if it is touched anyway. With a threshold on entries, labels come in by rising entry and v is kept up to date along
the path of each. With a table of the number of labels, each category has its least value for every number, and two are
put together number by number.
"""

from __future__ import annotations

import numpy as np

from udcp_solvers.numeric.compiled import jit
from udcp_solvers.search.layout import (
    ABOVE,
    CATEGORY_LABELS,
    CATEGORY_STARTS,
    CODE,
    COLUMN_ENDS,
    COLUMN_ORDERS,
    COLUMN_STARTS,
    COLUMNS,
    FAR,
    FREE,
    HOME,
    IN,
    OUT,
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
def lightest(
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

    At a tie labels with mass are in, others out. `v` is left at 0 for categories that are entered, above for others.
    """
    home, above, rising = part(ints, HOME), part(ints, ABOVE), part(ints, RISING)
    total = 0.0
    v[:] = weight
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
                extra += v[around]
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
def settle(
    ints: Ints, x: Marks, labels: Ints, state: Ints, value: Floats, v: Floats, chosen: Marks, room: float
) -> bool:
    """Fix the free labels whose change would raise the minorant by more than `room`, above the best set known; whether
    there is one.

    Letting a label in adds its value and what the categories around it lack to be entered; leaving one out, of
    categories that are touched anyway, takes its value away.
    """
    home, above = part(ints, HOME), part(ints, ABOVE)
    many = 0
    for y in labels:
        if x[y] != FREE:
            continue
        extra, settled = 0.0, True
        c = home[y]
        while c >= 0:
            extra += v[c]
            settled = settled and state[c] & TOUCHED != 0
            c = above[c]
        if chosen[y] != IN and max(value[y], 0.0) + extra > room:
            x[y] = OUT
            many += 1
        elif chosen[y] == IN and settled and -value[y] > room:
            x[y] = IN
            many += 1
    return many > 0


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
    trial: Floats,
    order: Ints,
) -> tuple[float, float]:
    """The least of f t + the value of the minorant over labels of entry at most t, and that t.

    `rest` is the least value without a threshold. `entry` is left with the entries of the best column; for the farthest
    of pairs, an entry is the distance to the farthest label that is in.
    """
    K = len(x)
    code, home = part(ints, CODE), part(ints, HOME)
    kind, k = code[4 * i], code[4 * i + 1]
    starts, orders, columns = part(ints, COLUMN_STARTS), part(ints, COLUMN_ORDERS), numbers(ints, floats, COLUMNS)
    column_ends = numbers(ints, floats, COLUMN_ENDS)
    held, forced = 0, 0.0
    for y in labels:
        if x[y] == IN:
            held += 1
            forced += value[y]
    # The empty set has no entry.
    best, at = (np.inf, 0.0) if held else (0.0, -np.inf)
    first, last = (starts[k], starts[k + 1]) if kind == WORST else (0, 1)
    for a in range(first, last):
        base, end = -np.inf, np.inf
        if kind == WORST:
            end = column_ends[a]
            for y in labels:
                trial[y] = columns[a * K + y]
        else:
            _farthest(numbers(ints, floats, FAR)[k * K * K : (k + 1) * K * K], x, labels, trial)
        for y in labels:
            if x[y] == IN:
                base = max(base, trial[y])
        if f * base + rest >= best or base > end:
            continue
        count = _ordered(
            labels, orders[a * K : (a + 1) * K] if kind == WORST else labels, kind == WORST, x, value, trial, order
        )
        v[:] = weight
        total, better = forced, False
        if held and f * base + forced < best:
            best, at, better = f * base + forced, base, True
        n = 0
        while n < count:
            t = max(base, trial[order[n]])
            if f * t + rest >= best or t > end:
                break
            while n < count and trial[order[n]] <= t:
                total += _entered(ints, order[n], home[order[n]], value, state, v)
                n += 1
            if f * t + total < best:
                best, at, better = f * t + total, t, True
        if better:
            for y in labels:
                entry[y] = trial[y]
    return best, at


@jit
def _farthest(entries: Floats, x: Marks, labels: Ints, trial: Floats) -> None:
    K = len(x)
    for y in labels:
        trial[y] = entries[y * K + y]
    for z in labels:
        if x[z] == IN:
            for y in labels:
                trial[y] = max(trial[y], entries[z * K + y])


@jit
def _ordered(
    labels: Ints, source: Ints, sorted_already: bool, x: Marks, value: Floats, trial: Floats, order: Ints
) -> int:
    """The free labels of value below 0 by rising entry; how many there are."""
    count = 0
    for y in source:
        if x[y] == FREE and value[y] < 0.0:
            order[count] = y
            count += 1
    if not sorted_already:
        by_entry = np.argsort(trial[order[:count]], kind="mergesort")
        order[:count] = order[:count][by_entry]
    return count


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
