"""Rows from files: probabilities, true labels, groups and ids.

A table's columns name themselves and are matched by name; an array's are in label order, or in that of class names.
Nothing is unpickled.
"""

from __future__ import annotations

import csv
import json
import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, did_you_mean, nearest
from udcp_dsl.expression.domain import WHOLE_NUMBER
from udcp_dsl.prediction.cells import from_cell
from udcp_dsl.prediction.files import ARROW, PathLike, known_ending, require_pyarrow
from udcp_dsl.prediction.rows.probabilities import arrange, match_columns
from udcp_dsl.prediction.rows.value import Rows, rows_of

# Of a table's column names: the positions of the columns of numbers, and of those of anything else.
_Choice: TypeAlias = Callable[[list[str]], tuple[list[int], list[int]]]

_ARRAYS = (".npy", ".npz")
_MATRICES = (*_ARRAYS, ".csv", *ARROW)
_COLUMNS = (*_MATRICES, ".txt", ".json")
_WITH_PART = re.compile(r"(.*?\.(?:npz|csv|parquet|arrow|feather)):(.+)", re.IGNORECASE | re.DOTALL)
_MMAP_BYTES = 1 << 26  # arrays from here on are mapped, not read
_UNPACKED_BYTES = 1 << 28  # an array of an .npz that is larger may be so many times as large as in the file:
_MOST_SWELLING = 100
_PLAIN_CSV_BYTES = 1 << 20  # below, reading takes less time than importing pyarrow
_NO_HEADER = "has no header, its first line is numbers: write the names of the columns above it"


def read_rows(
    path: PathLike,
    labels: Sequence[str],
    *,
    class_names: Sequence[object] | None = None,
    id_column: str | None = None,
    group_column: str | None = None,
    truth_column: str | None = None,
    ignore: Sequence[str] = (),
    logits: bool = False,
    normalize: bool = False,
    row: int | None = None,
) -> Rows:
    """Read rows, with a column for each label, from .npy, .npz (`file.npz:key`), .csv, .parquet, .arrow or .feather.

    Columns of a table are matched by name, and all must be labels, one of the three columns named here, or among those
    to `ignore`; an array's are in the order of `labels` or, where given, of `class_names`. `logits` and `normalize` say
    what the numbers are, as for `rows_of`. Of several rows `row`, counted from 0, is the only one that is looked at.
    """
    named = {"ids": id_column, "groups": group_column, "true labels": truth_column}
    others = {role: name for role, name in named.items() if name is not None}
    values, found = _read_numbers(path, labels, class_names, others, ignore)
    with _blamed_on(_split(path)[0]):
        if row is not None:
            if row >= len(values):
                raise InputError(f"there is no row {row}: rows are counted from 0, and there are {len(values)}")
            values, found = values[row : row + 1], {role: [column[row]] for role, column in found.items()}
        return rows_of(
            values,
            labels,
            y=found.get("true labels"),
            groups=found.get("groups"),
            ids=found.get("ids"),
            logits=logits,
            normalize=normalize,
        )


def _read_numbers(
    path: PathLike, labels: Sequence[str], class_names: Any, others: Mapping[str, str], ignore: Sequence[str]
) -> tuple[npt.NDArray[Any], dict[str, list[Any]]]:
    """The numbers as they are in the file, in the order of the labels, and the columns that have other roles."""
    file, part = _split(path)
    ending = known_ending(file, _MATRICES)
    if ending in _ARRAYS:
        if others:
            raise InputError(f"{file}: an array has no column of {' or '.join(others)}: give a file of their own")
        if ignore:
            raise InputError(f"{file}: an array has no named columns to ignore")
        with _blamed_on(file):
            return arrange(_read_array(file, ending, part), labels, class_names), {}
    if part is not None:
        raise InputError(f"{file}:{part}: all columns are read; only an .npz holds several matrices to choose from")

    def choose(columns: list[str]) -> tuple[list[int], list[int]]:
        numbers = match_columns(columns, labels, [*others.values(), *ignore])
        return numbers, [columns.index(name) for name in others.values()]

    with _blamed_on(file):
        values, columns = (_read_csv if ending == ".csv" else _read_arrow)(file, choose)
        if len(values) == 0:
            raise InputError("has no rows")
        return values, dict(zip(others, columns, strict=True))


def read_column(path: PathLike, column: str | None = None) -> npt.NDArray[Any] | list[Any]:
    """Read one column (true labels, groups or ids) from .npy, .npz, .csv, .txt, .json, .parquet, .arrow or .feather.

    `column`, or `file.csv:column` and `file.npz:key`, says which where there are several. A .txt has one entry a line.
    Text that consists of whole numbers becomes integers; an empty field becomes None, a missing value; the apostrophe
    that `write_sets` puts before what would be a formula in a spreadsheet is taken away.
    """
    file, part = _split(path)
    column = part if column is None else column
    ending = known_ending(file, _COLUMNS)
    if column is not None and ending in (".npy", ".txt", ".json"):
        raise InputError(f"{file}: a {ending} file has no named columns, so there is no {column!r}")

    def choose(columns: list[str]) -> tuple[list[int], list[int]]:
        if column is None and ending == ".csv" and _number(columns[0]) is not None:
            raise InputError(_NO_HEADER)
        if column is None and len(columns) != 1:
            raise InputError(f"has {len(columns)} columns ({_listed(columns)}): name one, as in {file.name}:COLUMN")
        if column is not None and column not in columns:
            raise InputError(f"there is no column {column!r}; {did_you_mean(column, columns)}")
        if column is not None and columns.count(column) > 1:
            raise InputError(f"column {column!r} is there twice")
        return [], [0 if column is None else columns.index(column)]

    with _blamed_on(file):
        if ending in _ARRAYS:
            return _read_array(file, ending, column)
        if ending == ".txt":
            return _scalars([line.strip() for line in _text(file).rstrip().split("\n")])
        if ending == ".json":
            return _read_json(file)
        return (_read_csv if ending == ".csv" else _read_arrow)(file, choose)[1][0]


def _split(path: PathLike) -> tuple[Path, str | None]:
    """`file.npz:key` in two; a file whose name has a colon wins."""
    text = os.fspath(path)
    match = _WITH_PART.fullmatch(text)
    return (Path(match[1]), match[2]) if match and not Path(text).exists() else (Path(text), None)


@contextmanager
def _blamed_on(file: Path) -> Iterator[None]:
    """Faults found inside are faults of this file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    except FileNotFoundError as error:
        close = nearest(file.name, os.listdir(file.parent)) if file.parent.is_dir() else []
        raise InputError(f"{file}: no such file" + (f"; did you mean {close[0]!r}?" if close else "")) from error
    except IsADirectoryError as error:
        raise InputError(f"{file}: is a folder, not a file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not UTF-8 text") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


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
        raise InputError(f"holds a JSON {type(content).__name__}, expected an array")
    return content


def _scalars(cells: list[str]) -> list[Any]:
    """Cells of text as integers, if all are written as integers are, and None for what is empty."""
    kind = int if all(WHOLE_NUMBER.fullmatch(cell) and len(cell) < 19 for cell in cells if cell) else str
    return [kind(cell) if cell else None for cell in cells]


def _csv_column(cells: list[str]) -> list[Any]:
    return _scalars([from_cell(cell) for cell in cells])


def _read_array(file: Path, ending: str, key: str | None) -> npt.NDArray[Any]:
    with file.open("rb") as stream:
        magic = stream.read(6)
    if not magic.startswith(b"\x93NUMPY" if ending == ".npy" else b"PK"):
        raise InputError(f"is not what its ending says, a numpy {ending} file")
    try:
        if ending == ".npy":
            return np.asarray(np.load(file, "r" if file.stat().st_size >= _MMAP_BYTES else None, allow_pickle=False))
        with np.load(file, allow_pickle=False) as archive:
            if key is None and len(archive.files) != 1:
                raise InputError(
                    f"holds {len(archive.files)} arrays ({_listed(archive.files)}): name one, as in {file.name}:KEY"
                )
            key = archive.files[0] if key is None else key
            if key not in archive.files:
                raise InputError(f"there is no array {key!r}; {did_you_mean(key, archive.files)}")
            _refuse_swelling(archive, key)
            return np.asarray(archive[key])
    except (InputError, OSError):
        raise
    except Exception as error:  # a damaged header makes numpy raise almost anything, tokenize's errors among them
        if "pickle" in str(error) or "Python objects" in str(error):
            raise InputError("holds pickled Python objects, which are never loaded: save numbers or text") from error
        raise InputError(f"is damaged: {error}") from error


def _refuse_swelling(archive: Any, key: str) -> None:
    """Refuse an array that a small file unpacks to gigabytes: no one asked for that, and rows hardly shrink so far."""
    names = archive.zip.namelist()
    member = archive.zip.getinfo(f"{key}.npy" if f"{key}.npy" in names else key)
    if member.file_size > max(_UNPACKED_BYTES, _MOST_SWELLING * member.compress_size):
        raise InputError(
            f"{key!r} unpacks from {member.compress_size:,} bytes to {member.file_size:,}: if that is meant, save it "
            "unpacked, with numpy.save"
        )


def _csv_rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV with the number of the line on which each ends."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, strict=True)
        try:
            for row in rows:
                yield rows.line_num, row
        except csv.Error as error:
            raise InputError(f"line {rows.line_num}: is not CSV: {error}") from error


def _read_csv(file: Path, choose: _Choice) -> tuple[npt.NDArray[np.float64], list[list[Any]]]:
    header = next((row for _, row in _csv_rows(file) if row), None)
    if header is None:
        raise InputError("is empty")
    try:
        numbers, texts = choose(header)
    except InputError as error:
        if all(_number(name) is not None for name in header):
            raise InputError(_NO_HEADER) from error
        if len(header) == 1 and re.search("[;\t|]", header[0]):
            raise InputError(f"has one column, {header[0]!r}; separate the fields by commas") from error
        raise
    if file.stat().st_size >= _PLAIN_CSV_BYTES and len(header) > 1:
        quick = _read_csv_quickly(file, header, numbers, texts)
        if quick is not None:
            return quick
    values = array("d")
    cells: list[list[str]] = [[] for _ in texts]
    blank = 0
    body = _csv_rows(file)
    next(row for _, row in body if row)
    for line, row in body:
        if not row:  # of one column, an empty field; of more, nothing
            blank += len(header) == 1
            continue
        if len(row) != len(header):
            raise InputError(f"line {line}: {len(row)} fields, but the header has {len(header)}")
        read = [_number(row[position]) for position in numbers]
        if None in read:
            position = numbers[read.index(None)]
            raise InputError(f"line {line}, column {header[position]!r}: {row[position]!r} is not a number")
        values.extend(read)  # type: ignore[arg-type]
        for column, position in zip(cells, texts, strict=True):
            column.extend([""] * blank)
            column.append(row[position])
        blank = 0
    return np.asarray(values).reshape(-1, max(1, len(numbers))), [_csv_column(column) for column in cells]


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python's own 1_000 is no number here
    except ValueError:
        return None


def _read_csv_quickly(
    file: Path, header: list[str], numbers: list[int], texts: list[int]
) -> tuple[npt.NDArray[np.float64], list[list[Any]]] | None:
    """The same by pyarrow if that is installed and finds no fault; faults are for the plain reader to name."""
    try:
        import pyarrow as pa
        import pyarrow.csv as pacsv
    except ImportError:
        return None
    types = {header[p]: pa.float64() for p in numbers} | {header[p]: pa.string() for p in texts}
    convert = pacsv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[])
    try:
        table = pacsv.read_csv(file, parse_options=pacsv.ParseOptions(newlines_in_values=True), convert_options=convert)
    except (pa.ArrowException, OSError):
        return None
    values = np.empty((table.num_rows, len(numbers)))
    for j, position in enumerate(numbers):
        values[:, j] = table.column(header[position]).to_numpy()
    return values, [_csv_column(table.column(header[position]).to_pylist()) for position in texts]


def _read_arrow(file: Path, choose: _Choice) -> tuple[npt.NDArray[Any], list[list[Any]]]:
    file.open("rb").close()  # an absent or unreadable file is told apart from a damaged one
    ending = file.suffix.lower()
    pa = require_pyarrow(ending)
    try:
        if ending == ".parquet":
            with pa.parquet.ParquetFile(file) as parquet:
                names = parquet.schema_arrow.names
                numbers, texts = choose(names)
                table = parquet.read(columns=[names[position] for position in (*numbers, *texts)])
        else:
            table = _read_ipc(pa, file)
            names = table.column_names
            numbers, texts = choose(names)
        table.validate(full=True)  # else offsets from the file are followed wherever they lead
    except pa.ArrowException as error:
        raise InputError(f"is not what its ending says, a {ending} file: {error}") from error
    columns = []
    for name in (names[position] for position in numbers):
        column = table.column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise InputError(f"column {name!r} holds {column.type}, not numbers")
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy())[0])
            raise InputError(f"column {name!r}: row {row} (counted from 0) is missing")
        columns.append(column.to_numpy())
    values = np.stack(columns, axis=1) if columns else np.empty((0, 0))
    return values, [table.column(names[position]).to_pylist() for position in texts]


def _read_ipc(pa: Any, file: Path) -> Any:
    """Arrow's file format or, which the ending does not tell, its stream format."""
    try:
        return pa.feather.read_table(file)
    except pa.ArrowInvalid:
        with pa.OSFile(os.fspath(file)) as stream:
            return pa.ipc.open_stream(stream).read_all()
