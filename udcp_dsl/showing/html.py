"""Render a description as HTML: a fragment for notebooks, with inline styles. Every text is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from udcp_dsl.showing import Column, Description, Line, Table, pieces, visible_lines

_TEXT, _NUMBER = "text-align: left", "text-align: right"
_BOLD = ' style="font-weight: bold"'
# Colours that are readable on white and on black; our own pages override them by the class.
_INLINE = {
    "good": "color: #2a8552; font-weight: bold",
    "bad": "color: #d63b3b; font-weight: bold",
    "open": "color: #a86f00",
    "bold": "font-weight: bold",
    "dim": "opacity: 0.75",
}


def as_html(description: Description) -> str:
    """A fragment for notebooks; the verdict is below the title."""
    d = description
    tables = (f"{paragraphs([t.title])}{table_html(t)}{paragraphs([t.note])}" for t in d.tables if t.columns)
    folded = (
        f"<details><summary>{escape(head)}</summary><pre>{escape(visible_lines(text))}</pre></details>"
        for head, text in d.folded.items()
    )
    parts = [paragraphs([d.title, *d.verdict, *d.lines]), *tables, paragraphs(d.notes), *folded]
    return f"<div>{''.join(parts)}</div>"


def marked(line: Line) -> str:
    """A line with its styles."""
    found = (
        escape(text) if style is None else f'<span class="{style}" style="{_INLINE[style]}">{escape(text)}</span>'
        for text, style in pieces(line)
    )
    return "".join(found).replace("\n", "<br>")


def paragraphs(lines: Sequence[Line]) -> str:
    """One paragraph per line that is not empty."""
    return "".join(f"<p>{marked(line)}</p>" for line in lines if line)


def table_html(table: Table, caption: str = "") -> str:
    """A table, aligned by inline styles because notebooks have no others. On a narrow screen it scrolls by itself."""
    records = table.records if table.shown is None else table.shown
    longest = {column: _longest(column, records) for column in table.columns if column.bar}

    def cell(x: Line, column: Column, tag: str, record: Any = None) -> str:
        kind = ' class="number"' if column.is_number else ""
        style = _NUMBER if column.is_number else _TEXT
        if record is not None and column.bar:
            style += _bar(column.value(record), longest[column])
        head = ' scope="col"' if tag == "th" else ""
        return f'<{tag}{head}{kind} style="{style}">{marked(x)}</{tag}>'

    heads = (cell(column.head, column, "th" if column.head else "td") for column in table.columns)
    named = any(column.head for column in table.columns) and (table.columns[0].head or len(table.columns) > 3)
    head = f"<thead><tr>{''.join(heads)}</tr></thead>" if named else ""
    body = [
        f"<tr{_BOLD if bold else ''}>"
        f"{''.join(cell(x, column, 'td', record) for x, column in zip(cells, table.columns, strict=True))}</tr>"
        for (cells, bold), record in zip(table.rows, records, strict=True)
    ]
    if table.foot is not None:
        foot = "".join(cell(column.cell(table.foot), column, "td") for column in table.columns)
        body.append(f"<tr{_BOLD}>{foot}</tr>")
    title = f"<caption>{caption}</caption>" if caption else ""
    return f'<div class="scroll" tabindex="0"><table>{title}{head}<tbody>{"".join(body)}</tbody></table></div>'


def _longest(column: Column, records: Sequence[Any]) -> float:
    values = [column.value(record) for record in records]
    return max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)


def _bar(value: float | None, longest: float) -> str:
    """The style of a bar behind a number, in a pale shade of its colour."""
    if value is None or not math.isfinite(value) or longest <= 0:
        return ""
    width = 100 * abs(value) / longest
    pale = "color-mix(in srgb, currentColor 16%, transparent)"
    return f"; background: linear-gradient(90deg, {pale} {width:.1f}%, transparent {width:.1f}%)"
