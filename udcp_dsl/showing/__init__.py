"""Results describe themselves once, as data; this package renders them as text, JSON, HTML and data frames."""

from __future__ import annotations

from udcp_dsl.showing.description import (
    MARKS,
    STATES,
    Column,
    Description,
    Line,
    Result,
    Shown,
    Styled,
    Table,
    counted,
    in_unit,
    listed,
    visible,
    with_unit,
)

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
