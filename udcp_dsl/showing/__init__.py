"""Results describe themselves once, as data; here that is drawn: text, JSON, HTML, data frames. One file for each."""

from __future__ import annotations

from udcp_dsl.showing.description import MARKS, STATES, Column, Description, Line, Result, Shown, Styled, Table
from udcp_dsl.showing.shared_wording import counted, in_unit, listed, visible, with_unit

__all__ = [
    "MARKS",
    "STATES",
    "Column",
    "Description",
    "Line",
    "Result",
    "Shown",
    "Styled",
    "Table",
    "counted",
    "in_unit",
    "listed",
    "visible",
    "with_unit",
]
