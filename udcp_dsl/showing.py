"""Results for the eye: text and tables as plain text, and as HTML that a notebook shows.

Both are made of the same parts, rich's texts and tables, so that a result is told once. In HTML every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from udcp_dsl.diagnostics import InputError

_WIDTH = 100


def visible(text: str) -> str:
    """A name with what does not print spelt out.

    >>> visible("a" + chr(7))
    "'a\\\\x07'"
    """
    return text if text.isprintable() else repr(text)


def plain_table(*columns: str) -> Any:
    """A table without a frame: the first column is text, the others are numbers, but for one without a name."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, header_style="dim", show_header=columns[0] != "")
    table.add_column(columns[0], overflow="fold")
    for column in columns[1:]:
        table.add_column(column, justify="left" if column == "" else "right", no_wrap=column != "")
    return table


def as_text(shown: object) -> str:
    """What rich shows, as plain text."""
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    Console(file=text, width=_WIDTH, color_system=None, markup=False, highlight=False).print(shown)
    return "\n".join(line.rstrip() for line in text.getvalue().rstrip().split("\n"))


def as_html(parts: Iterable[Any]) -> str:
    """Texts and tables of rich as HTML; parts that are empty are left out."""
    from rich.table import Table

    shown = (_table(part) if isinstance(part, Table) else f"<p>{_cell(part)}</p>" for part in parts if part)
    return f"<div>{''.join(shown)}</div>"


def details(summary: str, text: str) -> str:
    """A text that is unfolded on demand, with its lines as they are."""
    shown = "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(shown)}</pre></details>"


def _table(table: Any) -> str:
    columns: Sequence[Any] = table.columns
    align = [f' style="text-align: {column.justify}"' for column in columns]
    heads = "".join(f"<th{how}>{_cell(column.header)}</th>" for column, how in zip(columns, align, strict=True))
    rows = []
    for row, cells in zip(table.rows, zip(*(column.cells for column in columns), strict=True), strict=True):
        tag = '<tr style="font-weight: bold">' if row.style == "bold" else "<tr>"
        texts = (f"<td{how}>{_cell(cell)}</td>" for cell, how in zip(cells, align, strict=True))
        rows.append(f"{tag}{''.join(texts)}</tr>")
    head = f"<thead><tr>{heads}</tr></thead>" if table.show_header else ""
    return f'<table style="margin: 0.5em 0">{head}<tbody>{"".join(rows)}</tbody></table>'


def _cell(text: Any) -> str:
    return escape(visible(str(text)))


def require_pandas() -> Any:
    """pandas, or how to get it."""
    try:
        import pandas
    except ImportError:
        raise InputError("to_pandas needs pandas: pip install pandas") from None
    return pandas
