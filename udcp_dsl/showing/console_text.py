"""A description as text and tables of rich, for terminals and `print`.

Parts have a blank line between them: title, tables with their titles and notes, notes, verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO

from rich.box import SIMPLE
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from udcp_dsl.showing.description import Description, Line, Table, pieces

_WIDTH = 100
_STYLES = {"bold": "bold", "dim": "dim", "good": "green", "bad": "bold red", "open": "yellow"}


def as_text(description: Description) -> str:
    """As plain text, 100 columns wide."""
    out = StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None, markup=False, highlight=False)
    console.print(as_rich(description), crop=False)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))


def as_rich(description: Description) -> RenderableType:
    """What rich prints."""
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
    return [*_lines([table.title]), _table(table), *_lines([table.note])]


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
