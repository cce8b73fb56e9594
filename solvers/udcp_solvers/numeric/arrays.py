"""The arrays that the rooms hand to each other, by what they hold; the first four are those of the oracle protocol.

Records, rows of named fields in one array, stand in for many plain arrays: each of those that is handed from kernel to
kernel makes all of them slower to compile.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.prediction.oracle import Floats, Indices, Masks, Probabilities

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

# Counts, places, numbers of categories and nodes; `Indices` of labels are of the same type.
Ints = NDArray[np.int64]
# Nodes of hierarchies and their depths, as `udcp_dsl` holds them.
Ints32 = NDArray[np.int32]
# The probabilities of one instance, float32 or float64.
Row = NDArray[np.floating[Any]]
# An np.recarray, and one of its records.
Records: TypeAlias = Any
Record: TypeAlias = Any


def records(many: int, fields: np.dtype[Any]) -> Records:
    """So many records, all zero."""
    return np.zeros(many, dtype=_record_of(fields)).view(np.recarray)


@cache
def _record_of(fields: np.dtype[Any]) -> np.dtype[Any]:
    """One object for each kind of record: numba recognises it at once, where it would have to compare a new one."""
    return np.dtype((np.record, fields))


def plain(P: Probabilities) -> Floats:
    """Rows of one type for a kernel that takes its time for each: single precision, rows that cannot be written to and
    rows with gaps are types of their own to numba, and it would compile all again."""
    rows = np.ascontiguousarray(P, dtype=np.float64)
    return rows if rows.flags.writeable else rows.copy()
