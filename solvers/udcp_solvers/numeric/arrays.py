"""Array types shared by the packages; Floats, Indices, Masks and Probabilities are those of the oracle protocol.

A record array (named fields in one array) replaces several plain arrays: every array that is passed from kernel to
kernel makes all of them slower to compile.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.predict.oracle import Floats, Indices, Masks, Probabilities

__all__ = [
    "Floats",
    "Indices",
    "Ints",
    "Ints32",
    "Masks",
    "Probabilities",
    "Record",
    "Records",
    "Row",
    "plain",
    "records",
]

# Counts, positions, indices of categories and nodes; `Indices` (of labels) is the same type.
Ints = NDArray[np.int64]
# Nodes of hierarchies and their depths, as `udcp_dsl` stores them.
Ints32 = NDArray[np.int32]
# The probabilities of one instance, float32 or float64.
Row = NDArray[np.floating[Any]]
# An np.recarray, and one record of it.
Records: TypeAlias = Any
Record: TypeAlias = Any


def records(count: int, fields: np.dtype[Any]) -> Records:
    """An array of `count` records, all zero."""
    return np.zeros(count, dtype=_record_of(fields)).view(np.recarray)


@cache
def _record_of(fields: np.dtype[Any]) -> np.dtype[Any]:
    """The record type of these fields; cached, since numba recognises the same object at once but has to compare a new
    one."""
    return np.dtype((np.record, fields))


def plain(P: Probabilities) -> Floats:
    """P as a writable, contiguous float64 array, for kernels that are slow to compile: numba would compile them again
    for float32, read-only or strided arrays, which are types of their own."""
    rows = np.ascontiguousarray(P, dtype=np.float64)
    return rows if rows.flags.writeable else rows.copy()
