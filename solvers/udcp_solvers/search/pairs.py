"""The optimum of label values and a sum over pairs, from below, and a set that is good by both.

In a set of k labels each is paired with k - 1 others, so it pays at least half of its k - 1 least entries; the k labels
for which value and half are least bound the sets of k. A label whose value is less than its k - 1 least entries would
better be left out of every set of k or more, so it counts there neither by itself nor beside others.
"""

from __future__ import annotations

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill, order_by
from udcp_solvers.search.layout import CODE, FREE, IN, NEAR_PAIRS, NEIGHBOURS, Floats, Ints, Marks, numbers, part


@jit
def by_pairs(
    ints: Ints,
    floats: Floats,
    i: int,
    f: float,
    x: Marks,
    labels: Ints,
    value: Floats,
    half: Floats,
    least: Floats,
    order: Ints,
    spare: Ints,
    alive: Ints,
    next_of: Ints,
) -> float:
    """A bound on the values of free labels plus f times the sum over pairs of them; what follows `value` is room for
    labels."""
    K = len(x)
    at = part(ints, CODE)[4 * i + 1] * K * K
    entries = numbers(ints, floats, NEAR_PAIRS)[at : at + K * K]
    neighbours = part(ints, NEIGHBOURS)[at : at + K * K]
    many = 0
    for y in labels:
        if x[y] == FREE and value[y] < 0.0:
            order[many], half[y] = y, 0.0
            many += 1
    fill(alive, 0)
    fill(next_of, 0)
    for n in range(many):
        alive[order[n]] = 1
    bound, k = 0.0, 1
    while many >= k:
        for n in range(many):
            least[order[n]] = value[order[n]] + half[order[n]]
        # From one number to the next the order hardly changes.
        order_by(least, order[:many], spare)
        total, lowest = 0.0, 0.0
        for n in range(many):
            if n < k:
                total += least[order[n]]
            lowest += min(least[order[n]], 0.0)
        bound = min(bound, total)
        if lowest >= bound:  # with more labels each pays more: no number beyond this one is better
            break
        # One more label: each that stays pays for its next neighbour.
        k += 1
        stay = 0
        for n in range(many):
            y = order[n]
            z = next_of[y]
            while z < K and (alive[neighbours[y * K + z]] == 0 or neighbours[y * K + z] == y):
                z += 1
            if z == K:
                alive[y] = 0
                continue
            half[y] += 0.5 * f * entries[y * K + neighbours[y * K + z]]
            next_of[y] = z + 1
            if value[y] + 2.0 * half[y] > 0.0:
                alive[y] = 0
            else:
                order[stay] = y
                stay += 1
        many = stay
    return bound


@jit
def grow(
    ints: Ints, floats: Floats, i: int, f: float, x: Marks, labels: Ints, value: Floats, more: Floats, chosen: Marks
) -> None:
    """Choose the labels that are in, then one after another the free label that lowers values and pairs most."""
    K = len(x)
    at = part(ints, CODE)[4 * i + 1] * K * K
    entries = numbers(ints, floats, NEAR_PAIRS)[at : at + K * K]
    for y in labels:
        chosen[y] = IN if x[y] == IN else 0
        more[y] = value[y]
    while True:
        best, label = 0.0, -1
        for y in labels:
            if x[y] == FREE and chosen[y] != IN and more[y] < best:
                best, label = more[y], y
        if label < 0:
            return
        chosen[label] = IN
        for y in labels:
            more[y] += f * entries[label * K + y]
