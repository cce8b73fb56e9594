"""Results describe themselves once, as plain values: a title, tables, notes, a verdict, and further data for JSON.

This package renders descriptions as text, JSON, HTML and data frames.

A table has records, and columns that say how to show them. JSON contains the records; text and HTML show the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

Style: TypeAlias = Literal["bold", "dim", "good", "bad", "open"]
MARKS: Mapping[bool | None, str] = {True: "✓", False: "✗", None: "?"}
STATES: Mapping[bool | None, Style] = {True: "good", False: "bad", None: "open"}


@dataclass(frozen=True)
class Styled:
    """A piece of text with a style; `good`, `bad` and `open` are outcomes of a check."""

    text: str
    style: Style


#: A text, or the pieces of one. Control characters are escaped when it is drawn, except for a piece "\n".
Line: TypeAlias = str | Styled | tuple[str | Styled, ...]


def pieces(line: Line) -> list[tuple[str, Style | None]]:
    """The pieces of a line as they are drawn, with their styles."""
    if isinstance(line, tuple):
        return [part for x in line for part in ([("\n", None)] if x == "\n" else pieces(x))]
    return [(visible(line), None)] if isinstance(line, str) else [(visible(line.text), line.style)]


@dataclass(frozen=True)
class Column:
    """A column: `of` is a field, a key, a position or a function of the record, `form` a format of Python.

    Columns with a format are numbers: right-aligned, never wrapped. A `word` is not wrapped either. None is shown as an
    empty cell.
    """

    head: str
    of: str | int | Callable[[Any], Line | float | None]
    form: str = ""
    kind: Literal["text", "word", "number"] | None = None
    style: Style | None = None
    width: int | None = None  # maximum
    bar: bool = False  # HTML has a bar behind each number, in proportion to it

    @property
    def is_number(self) -> bool:
        return self.kind == "number" or (self.kind is None and bool(self.form))

    def value(self, record: Any) -> Any:
        """The value of a record in this column."""
        if callable(self.of):
            return self.of(record)
        by_key = isinstance(self.of, int) or isinstance(record, Mapping)
        return record[self.of] if by_key else getattr(record, str(self.of))

    def cell(self, record: Any) -> Line:
        """The text of a record in this column."""
        value = self.value(record)
        if value is None:
            return ""
        if isinstance(value, str | Styled | tuple):
            return value
        return format(value, self.form)


@dataclass(frozen=True)
class Table:
    """Records, and the columns to show of them. Without columns, it is in JSON only; without `key`, never in JSON.

    `shown` are the records in text and HTML, if these are not all. The header is omitted if the first column has none.
    `foot` is a record below a rule; `stands_out` selects the records that are bold.
    """

    columns: tuple[Column, ...]
    records: Sequence[Any]
    title: Line = ""
    note: Line = ""
    key: str = ""
    shown: Sequence[Any] | None = None
    foot: Any = None
    stands_out: Callable[[Any], bool] | None = None

    @property
    def rows(self) -> list[tuple[tuple[Line, ...], bool]]:
        """The cells of each record that is shown, and whether it stands out."""
        shown = self.records if self.shown is None else self.shown
        bold = self.stands_out or (lambda record: False)
        return [(tuple(column.cell(record) for column in self.columns), bold(record)) for record in shown]


@dataclass(frozen=True)
class Description:
    """A result in parts. The first piece of the title is its subject; `lines` come below the title.

    The lines of the verdict are never wrapped. JSON has `data` in addition to the records of the tables. `folded` are
    texts by their headings, which HTML unfolds on demand.
    """

    title: Line = ""
    lines: tuple[Line, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[Line, ...] = ()
    verdict: tuple[Line, ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)
    folded: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> Description:
        """The description itself, so that a command may return a description or a result."""
        return self


class Shown:
    """Shows itself at a terminal (`rich.print`) and in a notebook, by its description."""

    def describe(self) -> Description:
        """The description of the object."""
        raise NotImplementedError

    def __rich__(self) -> RenderableType:
        from udcp_dsl.showing.text import as_rich

        return as_rich(self.describe())

    def _repr_html_(self) -> str:
        from udcp_dsl.showing.html import as_html

        return as_html(self.describe())


class Result(Shown):
    """A result that can be printed, written as JSON and, by the columns of `table`, turned into a pandas DataFrame."""

    def table(self) -> Mapping[str, Sequence[Any]]:
        """The columns by name, all of one length."""
        raise NotImplementedError

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        from udcp_dsl.showing.data import as_data

        return as_data(self.describe())

    def to_pandas(self) -> pd.DataFrame:
        """The columns of `table` as a pandas DataFrame."""
        from udcp_dsl.showing.data import as_pandas

        return as_pandas(self.table())

    def __str__(self) -> str:
        from udcp_dsl.showing.text import as_text

        return as_text(self.describe())


# Wording that all results share. Text from users (labels, file names) cannot control a terminal.


def visible(text: str) -> str:
    r"""The text on one line, with unprintable characters escaped.

    >>> visible("a" + chr(7))
    'a\\x07'
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def visible_lines(text: str) -> str:
    """The same for a text of several lines, with its tabs."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def counted(many: int, what: str) -> str:
    """
    >>> counted(1, "claim"), counted(2, "claim")
    ('1 claim', '2 claims')
    """
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def in_unit(what: str, unit: str | None) -> str:
    """
    >>> in_unit("cost", "hours"), in_unit("cost", None)
    ('cost in hours', 'cost')
    """
    return what if unit is None else f"{what} in {visible(unit)}"


def with_unit(amount: str, unit: str | None) -> str:
    """
    >>> with_unit("1.5", "hours"), with_unit("1.5", None)
    ('1.5 hours', '1.5')
    """
    return amount if unit is None else f"{amount} {visible(unit)}"


def listed(names: Sequence[str], most: int) -> str:
    """
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
