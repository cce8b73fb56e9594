"""Rows: probabilities over labels, and what belongs to them. One value, and one door to it.

`rows_of` takes whatever is in memory, `read_rows` whatever is in a file; both give `Rows`, checked.
"""

from udcp_dsl.prediction.rows.value import Rows, rows_of

__all__ = ["Rows", "rows_of"]
