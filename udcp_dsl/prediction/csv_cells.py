"""Text in the cells of a CSV file, which a spreadsheet must not execute as a formula such as =1+1.

An apostrophe before such a text prevents that; our own reader removes it again.
"""

from __future__ import annotations

import re

# Leading apostrophes match too, so that those of the text itself can be told from the one that is added.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def looks_like_formula(text: str) -> bool:
    """Whether the text begins like a formula, or like an escaped formula."""
    return _FORMULA.match(text) is not None


def to_cell(text: str) -> str:
    """The text as a cell: formulas are escaped, numbers are not.

    >>> to_cell("=1+1"), to_cell("-3.5"), to_cell("'tis"), to_cell("'=1+1")
    ("'=1+1", '-3.5', "'tis", "''=1+1")
    """
    return f"'{text}" if looks_like_formula(text) and not _NUMBER.fullmatch(text) else text


def from_cell(cell: str) -> str:
    """The text that `to_cell` turned into this cell.

    >>> from_cell("'=1+1"), from_cell("-3.5"), from_cell("'tis"), from_cell("''=1+1")
    ('=1+1', '-3.5', "'tis", "'=1+1")
    """
    return cell[1:] if cell[:1] == "'" and looks_like_formula(cell) else cell
