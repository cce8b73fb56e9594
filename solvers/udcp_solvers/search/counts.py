"""The optimum of a minorant beside a table of how many labels are chosen: the least value for every number, by
category.

Within a category, n labels cost least if they are the n of least value; two parts of it are put together number by
number (min-plus), inner categories before outer ones, and what each part got is kept, to find the labels again. Labels
that the count leaves out come as they pay.
"""

from __future__ import annotations

import math

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill, order_by
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
    Marks,
    numbers,
    part,
)

# Rows of the room that is lent: those before belong to the branch at hand; so many, and how many there are then.
ROOMS, ROWS = 8, 17


@jit
def by_count(
    ints: Ints,
    floats: Floats,
    i: int,
    f: float,
    base: Floats,
    x: Marks,
    labels: Ints,
    state: Ints,
    value: Floats,
    weight: Floats,
    q: Floats,
    pool: Floats,
    picks: Ints,
    order: Ints,
    spare: Ints,
    rooms: Ints,
    trial: Floats,
    chosen: Marks,
) -> float:
    """The least of f table(count) + the value of the minorant, and the set that has it. i is the table's operation;
    `base` (Q,) is what quantities are without the labels; `order` and `spare` are room for labels, the rows of `rooms`
    from ROOMS on for categories or labels, `trial` for numbers of labels."""
    K, C = len(x), len(weight)
    home, above, rising = part(ints, HOME), part(ints, ABOVE), part(ints, RISING)
    code, tables = part(ints, CODE), numbers(ints, floats, TABLES)
    j, start = code[4 * i + 1], code[4 * i + 2]
    counts = numbers(ints, floats, COSTS)[j * K : (j + 1) * K]
    # Labels that are in count before all others.
    before, forced = int(base[j] + 0.5), 0.0
    for y in labels:
        chosen[y] = 0
        if x[y] == IN:
            chosen[y] = IN
            before += counts[y] > 0.0
            forced += value[y]
    start += before
    first, last = math.ceil(q[0, j] - WHOLE) - before, math.floor(q[1, j] + WHOLE) - before
    # Category C is all labels. `room` is one more than the labels that count in each, as far as they may.
    room, place, long, head, following, merged, pick_place, enters, left = (
        rooms[ROOMS], rooms[ROOMS + 1], rooms[ROOMS + 2], rooms[ROOMS + 3], rooms[ROOMS + 4], rooms[ROOMS + 5],
        rooms[ROOMS + 6], rooms[ROOMS + 7], rooms[ROOMS + 8],
    )  # fmt: skip
    fill(room, 1)
    fill(long, 0)
    fill(head, -1)
    fill(following, -1)
    fill(enters, 0)
    fill(left, 0)
    free = 0
    for y in labels:
        if x[y] == FREE:
            order[free] = y
            free += 1
    order_by(value, order[:free], spare)
    for n in range(free - 1, -1, -1):
        y = order[n]
        c = home[y] if home[y] >= 0 else C
        following[y], head[c] = head[c], y
        while counts[y] > 0.0:
            room[c] = min(room[c] + 1, last + 1)
            if c == C:
                break
            c = above[c] if above[c] >= 0 else C
    end = 0
    for c in range(C + 1):
        place[c] = end
        end += room[c]
    many, pick_end = 0, 0
    for n in range(len(rising) + 1):
        c = rising[n] if n < len(rising) else C
        if long[c] == 0:
            long[c] = _alone(head[c], following, counts, value, weight[c] if c < C else 0.0, room[c], pool, place[c])
        if c == C:
            break
        here = pool[place[c] : place[c] + long[c]]
        enters[c] = 1 if state[c] & TOUCHED or here[0] <= 0.0 else 0
        if enters[c] == 0:
            here[0] = 0.0
        out = above[c] if above[c] >= 0 else C
        if long[out] == 0:
            outer = weight[out] if out < C else 0.0
            long[out] = _alone(head[out], following, counts, value, outer, room[out], pool, place[out])
        wide = min(long[out] + long[c] - 1, room[out])
        there = pool[place[out] : place[out] + room[out]]
        for k in range(wide):
            trial[k] = np.inf
            for s in range(max(0, k - long[out] + 1), min(k + 1, long[c])):
                both = there[k - s] + here[s]
                if both < trial[k]:
                    trial[k] = both
                    picks[pick_end + k] = s
        for k in range(wide):
            there[k] = trial[k]
        long[out] = wide
        merged[many], pick_place[many] = c, pick_end
        many += 1
        pick_end += wide
    whole = pool[place[C] : place[C] + long[C]]
    least, at = np.inf, -1
    for k in range(max(first, 0), min(last + 1, long[C])):
        total = whole[k] + f * tables[start + k]
        if total <= least:
            least, at = total, k
    if at < 0 or least == np.inf:
        return np.inf
    left[C], enters[C] = at, 1
    for n in range(many - 1, -1, -1):
        c = merged[n]
        out = above[c] if above[c] >= 0 else C
        s = 0
        if enters[out] == 1:
            s = picks[pick_place[n] + left[out]]
            left[out] -= s
        left[c] = s
        enters[c] = 1 if enters[out] == 1 and (enters[c] == 1 or s > 0) else 0
    for c in range(C + 1):
        if enters[c] == 1:
            _take(head[c], following, counts, value, left[c], chosen)
    return forced + least


@jit
def _alone(
    y: int, following: Ints, counts: Floats, value: Floats, weight: float, room: int, pool: Floats, place: int
) -> int:
    """The least value of the free labels of one category, those of inner ones aside, for every number; how many
    numbers."""
    total = weight
    z = y
    while z >= 0:
        if counts[z] == 0.0:
            total += min(value[z], 0.0)
        z = following[z]
    pool[place] = total
    n = 1
    while y >= 0 and n < room:
        if counts[y] > 0.0:
            total += value[y]
            pool[place + n] = total
            n += 1
        y = following[y]
    return n


@jit
def _take(y: int, following: Ints, counts: Floats, value: Floats, number: int, chosen: Marks) -> None:
    """Choose labels of a category: those that pay, and of those that count the first `number`."""
    while y >= 0:
        if counts[y] == 0.0:
            if value[y] < 0.0:
                chosen[y] = IN
        elif number > 0:
            chosen[y] = IN
            number -= 1
        y = following[y]
