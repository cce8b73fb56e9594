"""The bound of a branch, the set that attains it, and what a change of each label makes of it.

What is left of the minorant beside label values and category weights (a threshold on entries, a table of a count, pairs
of free labels) is optimised with them. A bound tells more than it is: with a label changed it rises by at least what
the label and its categories are worth, and labels for which that is too much are settled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from udcp_solvers.numeric.compiled import jit_uncounted as jit
from udcp_solvers.numeric.filling import fill
from udcp_solvers.search.counts import ROOMS, ROWS, by_count
from udcp_solvers.search.forest_minimum import by_threshold, changes, forest_minimum, touching
from udcp_solvers.search.layout import (
    CATEGORY_LABELS,
    FREE,
    IN,
    Floats,
    Ints,
    Marks,
    size_numbers,
    sizes_of,
)
from udcp_solvers.search.lines import COUNTED, KEPT_OF_LINES
from udcp_solvers.search.minorant import minorant
from udcp_solvers.search.pairs import by_pairs, grow


class Scratch(NamedTuple):
    """Open branches by place on the stack: `marks` of labels, categories and operations; `reals`, bounds of quantities,
    lines, and the bound of the branch. Rows of `ints`, `floats` and `small` are for the branch at hand. `warm`: where
    the lines of the first branch were the last time. `margin`: how much worse than the best set, at least, one is in
    which a label is changed."""

    marks: Marks
    reals: Floats
    ints: Ints
    floats: Floats
    small: Marks
    search: Floats
    warm: Floats
    margin: Floats
    pool: Floats
    picks: Ints


# Behind what is kept of lines: where changes of labels are known, what they are at most, else 0; the branches looked
# at.
CAP, LOOKED = 6, 7
# Rows of the scratch.
LABELS_ROW, STATE_ROW, POINT_STATE_ROW, WAITING_ROW, ORDER_ROW, SPARE_ROW, TOUCHED_ROW, EVERYONE_ROW = range(ROOMS)
(
    FACTORS_ROW, VALUE_ROW, WEIGHT_ROW, V_ROW, ENTRY_ROW, TRIAL_ROW, POINT_Q_ROW, POINT_ROW, LOW_ROW, HIGH_ROW,
    QLOW_ROW, QHIGH_ROW, FACTOR_OF_ROW, WORTH_ROW, BASE_ROW, CHANGE_ROW, WITH_ROW, WITHOUT_ROW, ALL_WITH_ROW,
    ALL_WITHOUT_ROW,
) = range(20)  # fmt: skip


def scratch_of(ints: Ints) -> Scratch:
    """Room for the search of one thread."""
    K, C, Q, N, counted = size_numbers(ints)[:5]
    deep = 2 * K + 2 * C + 64 * (Q + N) + 64
    wide = max(max(K, C), 3 * (Q + N)) + 2
    counts = counted >= 0
    inside = int(ints[CATEGORY_LABELS + 1] - ints[CATEGORY_LABELS])
    return Scratch(
        np.zeros((deep, K + C + N), np.int8),
        np.zeros((deep, 3 * Q + N + 1)),
        np.zeros((ROWS, wide), np.int64),
        np.zeros((20, wide)),
        np.zeros((2, K), np.int8),
        np.zeros(KEPT_OF_LINES),
        np.zeros(Q + N),
        np.zeros(K),
        np.zeros(inside + 2 * C + 2 * K + 4 if counts else 1),
        np.zeros((C + 1) * (K + 1) if counts else 1, np.int64),
    )


@jit
def bounded(
    ints: Ints, floats: Floats, p: Floats, marks: Marks, lines: Floats, labels: Ints, everyone: Ints, T: Scratch
) -> float:
    """The bound of a branch at these lines, the set that attains it, and by how much it rises with a label changed."""
    K, C, Q, N = sizes_of(ints)
    x, said, decided = marks[:K], marks[K : K + C], marks[K + C :]
    state = T.ints[STATE_ROW][:C]
    ends, q = T.floats[LOW_ROW : HIGH_ROW + 1, :N], T.floats[QLOW_ROW : QHIGH_ROW + 1, :Q]
    value, weight, v = T.floats[VALUE_ROW][:K], T.floats[WEIGHT_ROW][:C], T.floats[V_ROW][:C]
    entry, chosen, change = T.floats[ENTRY_ROW][:K], T.small[0], T.floats[CHANGE_ROW][:K]
    counted = int(T.search[COUNTED])
    constant, threshold, f, of_count, pairs, of_pairs = minorant(
        ints, floats, T.floats[BASE_ROW][:Q], p, T.floats[WORTH_ROW][:K], x, decided, lines, labels, everyone, state, q,
        ends, counted, value, weight, T.ints[WAITING_ROW], T.floats[FACTORS_ROW], T.floats[FACTOR_OF_ROW][:N],
    )  # fmt: skip
    T.search[CAP] = 0.0
    fill(change, 0.0)
    if of_count != 0.0:
        return constant + by_count(
            ints, floats, counted, of_count, T.floats[BASE_ROW][:Q], x, labels, state, value, weight, q, T.pool,
            T.picks, T.ints[ORDER_ROW], T.ints[SPARE_ROW], T.ints, T.floats[TRIAL_ROW], chosen,
        )  # fmt: skip
    total = forest_minimum(ints, p, x, labels, state, value, weight, value, np.inf, v, chosen)
    if threshold < 0 and pairs >= 0:
        # Weights of categories are at least 0.
        forced = 0.0
        for y in labels:
            forced += value[y] if x[y] == IN else 0.0
        room = T.floats[TRIAL_ROW][:K]
        below = by_pairs(
            ints, floats, pairs, of_pairs, x, labels, value, room, T.floats[ENTRY_ROW], T.ints[ORDER_ROW],
            T.ints[SPARE_ROW], T.ints[ROOMS], T.ints[ROOMS + 1],
        )  # fmt: skip
        total = max(total, forced + below)
        grow(ints, floats, pairs, of_pairs, x, labels, value, room, chosen)
        return constant + total
    t, cap = np.inf, np.inf
    if threshold < 0:
        more = touching(ints, x, said, labels, value, v, chosen)
        if more > 0.0:
            return constant + total + more
    else:
        total, t, second = by_threshold(
            ints, floats, threshold, f, x, labels, state, value, weight, total, v, entry, everyone, ends[0, threshold],
            T.ints[ORDER_ROW], T.ints[SPARE_ROW], T.floats[TRIAL_ROW],
        )  # fmt: skip
        forest_minimum(ints, p, x, labels, state, value, weight, entry, t, v, chosen)
        cap = second - total
    T.search[CAP] = cap
    changes(ints, x, labels, state, value, v, entry, t, cap, chosen, change)
    return constant + total


@jit
def margins(value: float, labels: Ints, T: Scratch) -> None:
    """What sets with and without each label cost at least, by the bound just found, less what they are worth."""
    change, chosen = T.floats[CHANGE_ROW], T.small[0]
    for y in labels:
        here, there = (WITH_ROW, WITHOUT_ROW) if chosen[y] == IN else (WITHOUT_ROW, WITH_ROW)
        T.floats[here, y], T.floats[there, y] = value, value + change[y]


@jit
def ended(bound: float, value: float, marks: Marks, labels: Ints, T: Scratch) -> None:
    """A branch ends: what its sets with and without each label cost at least counts for all. `value` is the bound just
    found, -inf if there is none."""
    x, chosen = marks[: len(T.margin)], T.small[0]
    known = value > -np.inf
    change = T.floats[CHANGE_ROW]
    for y in labels:
        free = x[y] == FREE
        more = max(bound, value + change[y]) if free and known else bound if free else np.inf
        is_in = chosen[y] == IN if free else x[y] == IN
        here, there = (ALL_WITH_ROW, ALL_WITHOUT_ROW) if is_in else (ALL_WITHOUT_ROW, ALL_WITH_ROW)
        T.floats[here, y], T.floats[there, y] = min(T.floats[here, y], bound), min(T.floats[there, y], more)
