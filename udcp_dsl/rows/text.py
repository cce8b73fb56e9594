"""Text tables in blocks of rows: .csv, and JSON lines with one object per row.

Errors name the line. Whether a cell that is not a probability is a number or a text depends on its whole column
(`scalars`), so blocks contain the unconverted cells of a CSV. A text that a spreadsheet would execute as a formula, as
=1+1, is written with an apostrophe in front, which our own reader removes.
"""

from __future__ import annotations

import csv
import io
import json
import re
from array import array
from collections.abc import Generator, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.domain import WHOLE_NUMBER
from udcp_dsl.rows.arrow import Choose
from udcp_dsl.rows.selection import Block, ColumnSelection

NO_HEADER = "has no header, its first line is numbers: write the names of the columns above it"
# Leading apostrophes match too, so that those of the text itself can be told from the one that is added.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?", re.ASCII)
_PLAIN_CSV_BYTES = 1 << 20  # below, reading takes less time than importing pyarrow
_QUICK_BLOCK = 1 << 23  # bytes of text that are parsed at a time


def scalars(cells: list[str]) -> list[Any]:
    """Text cells as integers, if all are written as integers; empty cells as None."""
    kind = int if all(WHOLE_NUMBER.fullmatch(cell) and len(cell) < 19 for cell in cells if cell) else str
    return [kind(cell) if cell else None for cell in cells]


def csv_column(cells: list[str]) -> list[Any]:
    """The values of a column of CSV cells."""
    return scalars([from_cell(cell) for cell in cells])


def number(cell: str) -> float | None:
    """The number that a cell has, or None."""
    try:
        return None if "_" in cell else float(cell)  # 1_000 is a number in Python only
    except ValueError:
        return None


def csv_blocks(file: Path, choose: Choose, most: int | None = None) -> Iterator[Block]:
    """The blocks of a .csv, of about `most` rows each; texts are unconverted cells (see `csv_column`)."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = _csv_rows(stream)
        header = _header(rows)
        choice = _chosen(header, rows, choose)
    read: int | None = 0
    if file.stat().st_size >= _PLAIN_CSV_BYTES and len(header) > 1:
        read = yield from _quick_blocks(file, header, choice)
    if read is None:
        return
    with file.open(encoding="utf-8-sig", newline="") as stream:
        yield from _plain_blocks(_csv_rows(stream), choice, most, read)


def csv_stream_blocks(stream: IO[bytes], choose: Choose, most: int | None = None) -> Iterator[Block]:
    """The blocks of a CSV stream, such as standard input, which can be read only once."""
    rows = _csv_rows(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""))
    header = _header(rows)
    yield from _plain_blocks(rows, _chosen(header, rows, choose), most, 0, header)


def _csv_rows(stream: IO[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV, each with the number of the line on which it ends."""
    rows = csv.reader(stream, strict=True)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise InputError(f"line {rows.line_num}: is not CSV: {error}") from error


def _header(rows: Iterator[tuple[int, list[str]]]) -> list[str]:
    header = next((row for _, row in rows if row), None)
    if header is None:
        raise InputError("is empty")
    return header


def _chosen(header: list[str], rows: Iterator[tuple[int, list[str]]], choose: Choose) -> ColumnSelection:
    """The columns to read from a table with this header; if some are missing, `rows` help to say why."""
    try:
        choice = choose(header, ())
    except InputError as error:
        if all(number(name) is not None for name in header):
            raise InputError(NO_HEADER) from error
        _refuse_other_separators(header, rows, choose)
        raise
    if len(header) == 1 and ";" in header[0]:  # accepted if one column is read, as of true labels
        _refuse_other_separators(header, rows, choose)
    return choice


def _refuse_other_separators(header: list[str], rows: Iterator[tuple[int, list[str]]], choose: Choose) -> None:
    """Refuse a table that has the wanted columns, or several instead of one, if it is split at another separator.

    Spreadsheets that write semicolons also write decimal commas.
    """
    line = ",".join(header)
    for separator in ";\t|":
        names = line.split(separator)
        if len(names) == 1:
            continue
        if len(header) > 1:
            try:
                choose(names, ())
            except InputError:
                continue
        first = ",".join(next((row for _, row in rows if row), []))
        cells = first.split(separator)
        if len(cells) != len(names) and len(header) == 1 and first:
            continue
        decimal = any(_DECIMAL_COMMA.fullmatch(cell.strip()) for cell in cells)
        commas = ", and its numbers have decimal commas" if decimal else ""
        raise InputError(
            f"its fields are separated by {separator!r}, not by commas{commas}; "
            + _conversion_advice(f"sep={separator!r}" + (", decimal=','" if decimal else ""))
        )


def _conversion_advice(options: str) -> str:
    return f"convert it: pandas.read_csv(FILE, {options}).to_csv(NEW, index=False)"


def _plain_blocks(
    rows: Iterator[tuple[int, list[str]]],
    choice: ColumnSelection,
    most: int | None,
    skip: int,
    header: list[str] | None = None,
) -> Iterator[Block]:
    """The blocks after the first `skip` rows (one if the table has none); the header is still among the rows, unless it
    is given."""
    header = _header(rows) if header is None else header
    values, many, seen = array("d"), 0, False
    cells: list[list[str]] = [[] for _ in choice.texts]
    blank = 0

    def block() -> Block:
        numbers = np.array(values).reshape(many, len(choice.numbers))
        return Block(numbers, choice.by_role([list(column) for column in cells]), columns=choice.labels)

    for line, row in rows:
        if not row:  # an empty field if there is one column, else a blank line
            blank += len(header) == 1
            continue
        if len(row) != len(header):
            raise InputError(f"line {line}: {len(row)} fields, but the header has {len(header)}")
        seen = True
        if skip:
            skip -= 1
            continue
        read = [number(row[position]) for position in choice.numbers]
        if None in read:
            position = choice.numbers[read.index(None)]
            wrong = f"line {line}, column {header[position]!r}: {row[position]!r}"
            if _DECIMAL_COMMA.fullmatch(row[position].strip()):
                raise InputError(f"{wrong} has a decimal comma; " + _conversion_advice("decimal=','"))
            raise InputError(f"{wrong} is not a number")
        values.extend(read)  # type: ignore[arg-type]
        for column, position in zip(cells, choice.texts, strict=True):
            column.extend([""] * blank)
            column.append(row[position])
        many += 1 + blank
        blank = 0
        if most is not None and many >= most:
            yield block()
            values, many = array("d"), 0
            for column in cells:
                column.clear()
    if many or not seen:
        yield block()


def _quick_blocks(file: Path, header: Sequence[str], choice: ColumnSelection) -> Generator[Block, None, int | None]:
    """The blocks, read by pyarrow if that is installed; returns None at the end of the file.

    At an error, it returns the number of rows read so far; the plain reader goes on from there and names the error.
    """
    read = 0
    try:
        import pyarrow as pa
        import pyarrow.csv as pacsv
    except ImportError:
        return read
    types = {header[p]: pa.float64() for p in choice.numbers} | {header[p]: pa.string() for p in choice.texts}
    convert = pacsv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[])
    parse = pacsv.ParseOptions(newlines_in_values=True)
    try:
        reader = pacsv.open_csv(file, pacsv.ReadOptions(block_size=_QUICK_BLOCK), parse, convert)
        for batch in reader:
            values = np.empty((len(batch), len(choice.numbers)))
            for j, position in enumerate(choice.numbers):
                values[:, j] = batch.column(header[position]).to_numpy(zero_copy_only=False)
            texts = [batch.column(header[position]).to_pylist() for position in choice.texts]
            yield Block(values, choice.by_role(texts), columns=choice.labels)
            read += len(batch)
    except (pa.ArrowException, OSError):
        return read
    return None


def json_blocks(stream: IO[bytes], choose: Choose, most: int | None = None) -> Iterator[Block]:
    """The blocks of JSON lines: objects with the same keys, one of which may hold the list of probabilities."""
    lines = _json_lines(stream)
    first = next(lines, None)
    if first is None:
        raise InputError("is empty")
    names = list(first[1])
    choice = choose(names, [i for i, name in enumerate(names) if isinstance(first[1][name], list)])
    wanted = [names[position] for position in choice.columns]
    pending = chain([first], lines)
    while rows := list(islice(pending, most)):
        values: list[list[float]] = []
        for line, row in rows:
            for name in wanted:
                if name not in row:
                    raise InputError(f"line {line}: has no {name!r}, which the first line has")
            numbers = [row[names[position]] for position in choice.numbers]
            values.append(_json_numbers(line, numbers[0] if choice.width is not None else numbers, choice.width))
        texts = [[row[names[position]] for _, row in rows] for position in choice.texts]
        carried = None
        if choice.carried:
            import pyarrow as pa

            kept = [names[position] for position in choice.carried]
            carried = pa.RecordBatch.from_pylist([{name: row[name] for name in kept} for _, row in rows])
        ids = None if choice.ids is None else texts[choice.texts.index(choice.ids)]
        numbers_of_rows = np.array(values, dtype=np.float64).reshape(len(rows), -1)
        yield Block(numbers_of_rows, choice.by_role(texts), carried, choice.labels, ids)


def _json_lines(stream: IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(stream, start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {line}: is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise InputError(f"line {line}: contains a JSON {type(row).__name__}, expected one object per line")
        yield line, row


def _json_numbers(line: int, numbers: Any, width: int | None) -> list[float]:
    if not isinstance(numbers, list) or (width is not None and len(numbers) != width):
        has = f"has {len(numbers)} entries" if isinstance(numbers, list) else "is not a list"
        raise InputError(f"line {line}: the list of probabilities {has}, but there are {width} labels")
    for entry in numbers:
        if isinstance(entry, bool) or not isinstance(entry, int | float):
            raise InputError(f"line {line}: {entry!r} is not a number")
    return numbers


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
