"""Rows: probabilities over labels, and what belongs to them, in one checked object.

`rows_of` takes whatever is in memory, `read_rows` whatever is in a file; both give `Rows`, checked. They are imported
when they are first used: the command line shows its help from `column_roles`, without numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from udcp_dsl.prediction.rows.value import Rows, rows_of

__all__ = ["Rows", "rows_of"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from udcp_dsl.prediction.rows import value

    return getattr(value, name)
