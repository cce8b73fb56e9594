"""Rows: probabilities over labels, with true labels, groups, ids, weights and inputs, in one checked object.

`rows_of` takes data in memory, `read_rows` files; both return checked `Rows`. Names are imported on first use, because
the command line shows its help from `column_roles`, without numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from udcp_dsl.lazy_imports import on_first_use

if TYPE_CHECKING:
    from udcp_dsl.prediction.rows.value import Rows, rows_of

__all__ = ["Rows", "rows_of"]

__getattr__, __dir__ = on_first_use(__name__, {"value": " ".join(__all__)})
