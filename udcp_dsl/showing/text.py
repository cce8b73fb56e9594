"""Render a description with rich, for terminals and `print`.

A blank line separates the parts: title, tables with their titles and notes, notes, verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import StringIO

from rich.box import SIMPLE
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from udcp_dsl.showing import Column, Description, Line, Table, pieces

_WIDTH = 100
_STYLES = {"bold": "bold", "dim": "dim", "good": "green", "bad": "bold red", "open": "yellow"}


def as_text(description: Description) -> str:
    """The description as plain text, 100 columns wide."""
    out = StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, markup=False, highlight=False)
    console.print(as_rich(description), crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))


def as_rich(description: Description) -> RenderableType:
    """The description as an object that rich can print."""
    blocks: list[list[RenderableType]] = [
        _lines([description.title, *description.lines]),
        *(_block(table) for table in description.tables if table.columns),
        _lines(description.notes),
        [_line(line, wrapped=False) for line in description.verdict],
    ]
    return Group(*_apart([block for block in blocks if block]))


def _apart(blocks: list[list[RenderableType]]) -> Iterator[RenderableType]:
    for number, block in enumerate(blocks):
        yield from [Text("")] if number else []
        yield from block


def _lines(lines: Iterable[Line]) -> list[RenderableType]:
    return [_line(line) for line in lines if line]


def _line(line: Line, wrapped: bool = True) -> Text:
    text = Text(no_wrap=not wrapped, overflow=None if wrapped else "ignore")
    for piece, style in pieces(line):
        text.append(piece, style and _STYLES[style])
    return text


def _block(table: Table) -> list[RenderableType]:
    return [*_lines([table.title]), _Fitted(table), *_lines([table.note])]


class _Fitted:
    """A table; if all columns but the first are numbers and it is too wide, in parts, each with the first column."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        first, *rest = self._table.columns
        if not all(column.is_number for column in rest):
            yield _table(self._table)  # texts are wrapped instead
            return
        widths = [_width(self._table, place) for place in range(len(rest) + 1)]
        room = options.max_width - min(widths[0], options.max_width // 3)
        part: list[Column] = []
        parts, used = [part], 0
        for column, width in zip(rest, widths[1:], strict=True):
            if part and used + width > room:
                part, used = [], 0
                parts.append(part)
            part.append(column)
            used += width
        for number, own in enumerate(parts):
            yield from [Text("")] if number else []
            yield _table(replace(self._table, columns=(first, *own)))


def _width(table: Table, place: int) -> int:
    """The width of a column without wrapping, and of the gap before it."""
    column = table.columns[place]
    cells = [column.head, *(cells[place] for cells, _ in table.rows)]
    cells += [] if table.foot is None else [column.cell(table.foot)]
    widest = max(_line(cell).cell_len for cell in cells)
    return min(widest, column.width or widest) + 3 * (place > 0)


def _table(table: Table) -> RichTable:
    columns, foot = table.columns, table.foot
    drawn = RichTable(
        box=SIMPLE,
        show_edge=False,
        pad_edge=False,
        show_header=columns[0].head != "",
        show_footer=foot is not None,
        header_style="dim",
    )
    for column in columns:
        drawn.add_column(
            _line(column.head),
            "" if foot is None else _line(column.cell(foot)),
            footer_style="bold" if column.is_number else "",
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number or column.kind == "word",
            overflow="fold",
            max_width=column.width,
            style="" if column.style is None else _STYLES[column.style],
        )
    for cells, bold in table.rows:
        drawn.add_row(*map(_line, cells), style="bold" if bold else "")
    return drawn
