"""Rows from files: probabilities, true labels, groups and ids.

The columns of a table are matched by name; those of an array are in the order of the labels, or of the class names.
Nothing is unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, did_you_mean
from udcp_dsl.expression.rows.declared import RowInput
from udcp_dsl.expression.rows.given import EntryColumns
from udcp_dsl.prediction.files import PathLike, known_ending
from udcp_dsl.prediction.rows.array_files import listed, read_array
from udcp_dsl.prediction.rows.arrow_tables import arrow_blocks
from udcp_dsl.prediction.rows.columns import Block, ColumnSelection
from udcp_dsl.prediction.rows.file_parts import ARRAYS, MATRICES, naming_file_in_errors, split_key
from udcp_dsl.prediction.rows.source import open_rows
from udcp_dsl.prediction.rows.text_tables import NO_HEADER, csv_blocks, csv_column, json_blocks, number, scalars
from udcp_dsl.prediction.rows.value import Rows

_COLUMNS = (*MATRICES, ".txt", ".json")


def read_rows(path: PathLike, labels: Sequence[str], *, row: int | None = None, **how: Any) -> Rows:
    """Read all rows of a source at once, or only `row`, counted from 0; `path` and `how` are those of `open_rows`."""
    source = open_rows(path, labels, **how)
    return source.whole() if row is None else source.one(row)


def read_column(path: PathLike, column: str | None = None) -> npt.NDArray[Any] | list[Any]:
    """Read one column (true labels, groups or ids) from .npy, .npz, .csv, .txt, .json, .parquet, .arrow or .feather.

    `column`, `file.csv:column` or `file.npz:key` selects one of several. A .txt has one entry per line. If all texts of
    the column are whole numbers, they become integers. An empty field becomes None, a missing value. The apostrophe
    that `write_sets` puts in front of a text that looks like a formula is removed.
    """
    file, part = split_key(path)
    column = part if column is None else column
    ending = known_ending(file, _COLUMNS)
    if column is not None and ending in (".npy", ".txt", ".json"):
        raise InputError(f"{file}: a {ending} file has no named columns, so there is no {column!r}")

    def choose(columns: Sequence[str], lists: Sequence[int]) -> ColumnSelection:
        if column is None and ending == ".csv" and number(columns[0]) is not None:
            raise InputError(NO_HEADER)
        if column is None and len(columns) != 1:
            raise InputError(f"has {len(columns)} columns ({listed(columns)}): name one, as in {file.name}:COLUMN")
        if column is not None and column not in columns:
            raise InputError(f"there is no column {column!r}; {did_you_mean(column, list(columns))}")
        if column is not None and columns.count(column) > 1:
            raise InputError(f"column {column!r} appears twice")
        return ColumnSelection([], [0 if column is None else list(columns).index(column)])

    with naming_file_in_errors(file):
        if ending in ARRAYS:
            return read_array(file, column)
        if ending == ".txt":
            return scalars([line.strip() for line in _text(file).rstrip().split("\n")])
        if ending == ".json":
            return _read_json(file)
        if ending == ".jsonl":
            with file.open("rb") as stream:
                return _entries(json_blocks(stream, choose))
        if ending == ".csv":
            found: npt.NDArray[Any] | list[Any] = csv_column(_entries(csv_blocks(file, choose)))
            return found
        return _entries(arrow_blocks(file, choose))


def read_input(path: PathLike, x: RowInput, alone: bool = False) -> Any:
    """An input of all rows from a file: the column or key of its name or, for costs, one column per entry, as fee.gp.

    `alone`: it is the only input that is read, so an array without a name is taken.
    """
    file, key = split_key(path)
    if alone and (key is not None or file.suffix.lower() in (".npy", ".txt")):
        return read_column(path)
    try:
        return read_column(path, x.name)
    except InputError as error:
        if not x.entry_columns or file.suffix.lower() in ARRAYS:
            raise InputError(f"input {x.name!r}: {error}") from None
        try:
            columns: list[Any] = [read_column(path, column) for column in x.entry_columns]
        except InputError as lacking:
            raise InputError(f"input {x.name!r}: {error}; {lacking}") from None
        return EntryColumns(dict(zip(x.entries or (), columns, strict=True)))


def _entries(blocks: Iterable[Block]) -> list[Any]:
    return [entry for block in blocks for entry in block.texts[0]]


def _text(file: Path) -> str:
    text = file.read_text(encoding="utf-8-sig")
    if not text.strip():
        raise InputError("is empty")
    return text


def _read_json(file: Path) -> list[Any]:
    text = _text(file)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}") from error
    if not isinstance(content, list):
        raise InputError(f"contains a JSON {type(content).__name__}, expected an array")
    return content
