"""The layout of a model in its two arrays: compiled functions are quick to compile if they take few arrays.

`ints` starts with the positions of its own parts and of those of `floats`: part k of `ints` is
ints[ints[k]:ints[k + 1]], and part k of `floats` is floats[ints[FLOATS + k]:ints[FLOATS + k + 1]].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.per_row import joined
from udcp_solvers.numeric.compiled import jit_uncounted as jit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.int8]

# Kinds of operation.
(CONSTANT, QUANTITY, TABLE, ADD, SCALE, GATE, LARGER, SMALLER, AT_LEAST, EQUAL, NOT, IF, WORST, FARTHEST, PAIRS) = (
    range(15)
)
# CROSSING: a category that is not in the forest. INDICATOR: the third operand of a maximum or minimum of indicators.
CROSSING = INDICATOR = -2
# Marks of labels.
OUT, FREE, IN = -1, 0, 1
# Bits of categories: a free label may touch it; it is touched.
MAY, TOUCHED = 1, 2
# How an operation is decided: 0 or 1 for an indicator, the first or the second operand for a minimum.
ZERO, ONE, FIRST, SECOND = 1, 2, 3, 4
# The tolerance of counts, which are whole numbers up to rounding.
WHOLE = 1e-9

# The parts of `ints`. Several lists are stored one after the other, with the position where each begins.
_INT_PARTS = 15
(
    HOME,  # (K,) the innermost category of the forest that has the label, or -1
    ABOVE,  # (C,) the category of the forest around each category, -1 for none; CROSSING for one outside the forest
    RISING,  # the categories of the forest, inner ones first
    LABEL_STARTS,  # (K + 1,) of LABEL_CATEGORIES
    LABEL_CATEGORIES,  # the categories of each label
    CATEGORY_STARTS,  # (C + 1,) of CATEGORY_LABELS
    CATEGORY_LABELS,  # the labels of each category
    QUANTITY_STARTS,  # (Q + 1,) of QUANTITY_CATEGORIES
    QUANTITY_CATEGORIES,  # the categories that have a weight in each quantity
    CODE,  # (4 N,) kind and operands of each operation; for a table, its quantity, position and length
    COLUMN_STARTS,  # the first column of each WORST
    PREFIX_STARTS,  # (A + 1,) of PREFIX
    PREFIX,  # the labels of each column by rising entry, up to the last prefix that no other has at a lower one
    TWIN,  # (K,) interchangeable labels have the same number
    NEIGHBOURS,  # (E K K) for each label of each sum of pairs, the others by rising entry
) = range(_INT_PARTS)
# After these come K, C, Q, N, the operation that is counted and the one that has the ceiling, -1 for none.
SIZES = _INT_PARTS
_INTS = _INT_PARTS + 2  # the sizes, and the end of them
FLOATS = _INTS

# The parts of `floats`.
(
    CONSTANTS,  # (Q,) of quantities
    COSTS,  # (Q K) label costs of quantities
    WEIGHTS,  # of the categories of each quantity, in the order of QUANTITY_CATEGORIES
    NUMBERS,  # (2 N) factor, threshold and tolerance of an operation, constant and what it lacks, ends of a hard atom
    TABLES,  # the values of tables, one after the other
    COLUMNS,  # (A K) the entries of each column
    FAR,  # (D K K) the entries of FARTHEST
    PAIR_ENTRIES,  # (E K K) the entries of PAIRS
    LEAST,  # (K,) the least that a label adds to the cost of any set, the ceiling aside
    PREFIX_ENTRIES,  # the entries of PREFIX
    CONSTANTS_LOW,  # what CONSTANTS, COSTS and WEIGHTS lack, as they are sums that were rounded
    COSTS_LOW,
    WEIGHTS_LOW,
) = range(13)
_FLOAT_PARTS = 13
_HEADER = _INTS + _FLOAT_PARTS + 1


def pack(int_parts: Sequence[Ints], sizes: Sequence[int], float_parts: Sequence[Floats]) -> tuple[Ints, Floats]:
    """The two arrays of a model; if parts differ by row (`PerRow`), so do the arrays (`Patched`)."""
    assert len(int_parts) == _INT_PARTS
    assert len(float_parts) == _FLOAT_PARTS
    parts = [*int_parts, np.array(sizes, dtype=np.int64)]
    int_places = _HEADER + np.cumsum([0, *map(len, parts)])
    float_places = np.cumsum([0, *map(len, float_parts)])
    ints, floats = joined([int_places, float_places, *parts]), joined(float_parts)
    return ints.astype(np.int64), floats.astype(np.float64)


@jit
def part(ints: Ints, k: int) -> Ints:
    """A part of `ints`."""
    return ints[ints[k] : ints[k + 1]]


@jit
def numbers(ints: Ints, floats: Floats, k: int) -> Floats:
    """A part of `floats`."""
    return floats[ints[FLOATS + k] : ints[FLOATS + k + 1]]


@jit
def operation(code: Ints, i: int) -> tuple[int, int, int, int]:
    """The kind of an operation and its operands, -1 for none; for a table its quantity, position and length."""
    return code[4 * i], code[4 * i + 1], code[4 * i + 2], code[4 * i + 3]


@jit
def kind_of(code: Ints, i: int) -> int:
    """The kind of an operation."""
    return int(code[4 * i])


@jit
def operand_of(code: Ints, i: int) -> int:
    """The first operand of an operation; for a hard atom, its place among those of its kind."""
    return int(code[4 * i + 1])


@jit
def number_of(number: Floats, i: int) -> float:
    """Factor, constant or threshold of an operation; for a hard atom the upper end."""
    return float(number[2 * i])


@jit
def numbers_of(number: Floats, i: int) -> tuple[float, float]:
    """The number of an operation and its tolerance; for a hard atom the upper and the lower end."""
    return number[2 * i], number[2 * i + 1]


@jit
def sizes_of(ints: Ints) -> tuple[int, int, int, int]:
    """The numbers of labels, categories, quantities and operations."""
    at = ints[SIZES]
    return ints[at], ints[at + 1], ints[at + 2], ints[at + 3]


def size_numbers(ints: Ints) -> list[int]:
    """The sizes, the counted operation and that of the ceiling, as Python integers."""
    numbers: list[int] = part.function(ints, SIZES).tolist()  # type: ignore[attr-defined]  # a kernel
    return numbers


@jit
def counted_of(ints: Ints) -> int:
    """The table of a number of labels that is minimised number by number, or -1."""
    return int(ints[ints[SIZES] + 4])


@jit
def ceiling_of(ints: Ints) -> int:
    """For a loss min(L, c), the operation that is the ceiling c; -1 for other losses."""
    return int(ints[ints[SIZES] + 5])
