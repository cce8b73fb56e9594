"""Files of probabilities, true labels, groups and ids in; files of prediction sets out.

A table's columns name themselves and are matched by name; an array's are in label order, or in that of class names.
Nothing is unpickled, and nothing partial is written: a file appears under its name when it is whole.
"""

from __future__ import annotations

import csv
import json
import os
import re
import secrets
import stat
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, did_you_mean, nearest
from udcp_dsl.expression.domain import WHOLE_NUMBER
from udcp_dsl.prediction.inputs import arrange, groups, match_columns, sample_ids, truth

PathLike: TypeAlias = str | os.PathLike[str]
# Of a table's column names: the positions of the columns of numbers, and of those of anything else.
_Choice: TypeAlias = Callable[[list[str]], tuple[list[int], list[int]]]

_ARRAYS = (".npy", ".npz")
_ARROW = (".parquet", ".arrow", ".feather")
_MATRICES = (*_ARRAYS, ".csv", *_ARROW)
_COLUMNS = (*_MATRICES, ".txt", ".json")
_SETS = (*_ARROW, ".csv", ".jsonl", ".npy")
_WITH_PART = re.compile(r"(.*?\.(?:npz|csv|parquet|arrow|feather)):(.+)", re.IGNORECASE | re.DOTALL)
_MMAP_BYTES = 1 << 26  # arrays from here on are mapped, not read
_PLAIN_CSV_BYTES = 1 << 20  # below, reading takes less time than importing pyarrow
_NO_HEADER = "has no header, its first line is numbers: write the names of the columns above it"
_BLOCK = 1 << 22  # entries of a mask that are written at a time


@dataclass(frozen=True)
class Table:
    """One row an instance: `values` (n, K) in label order, not yet known to be probabilities; the rest (n,) or None."""

    values: npt.NDArray[Any]
    ids: npt.NDArray[np.str_] | None = None
    groups: npt.NDArray[np.str_] | None = None
    truth: npt.NDArray[np.int64] | None = None


def read_matrix(
    path: PathLike,
    labels: Sequence[str],
    *,
    class_names: Any = None,
    id_column: str | None = None,
    group_column: str | None = None,
    truth_column: str | None = None,
    ignore: Sequence[str] = (),
) -> Table:
    """Read a matrix with a column for each label from .npy, .npz (`file.npz:key`), .csv, .parquet, .arrow or .feather.

    Columns of a table are matched by name, and all must be labels, one of the three columns named here, or among those
    to `ignore`; an array's are in the order of `labels` or, where given, of `class_names`. What the numbers are is for
    `udcp_dsl.prediction.inputs.probabilities` to check.
    """
    file, part = _split(path)
    ending = known_ending(file, _MATRICES)
    named = {"ids": id_column, "groups": group_column, "true labels": truth_column}
    others = {role: name for role, name in named.items() if name is not None}
    if ending in _ARRAYS:
        if others:
            raise InputError(f"{file}: an array has no column of {' or '.join(others)}: give a file of their own")
        if ignore:
            raise InputError(f"{file}: an array has no named columns to ignore")
        with _blamed_on(file):
            return Table(arrange(_read_array(file, ending, part), labels, class_names))
    if part is not None:
        raise InputError(f"{file}:{part}: all columns are read; only an .npz holds several matrices to choose from")

    def choose(columns: list[str]) -> tuple[list[int], list[int]]:
        numbers = match_columns(columns, labels, [*others.values(), *ignore])
        return numbers, [columns.index(name) for name in others.values()]

    with _blamed_on(file):
        values, columns = (_read_csv if ending == ".csv" else _read_arrow)(file, choose)
        n = len(values)
        if n == 0:
            raise InputError("has no rows")
        found = dict(zip(others, columns, strict=True))
        return Table(
            values,
            ids=sample_ids(found["ids"], n) if "ids" in found else None,
            groups=groups(found["groups"], n) if "groups" in found else None,
            truth=truth(found["true labels"], labels, n) if "true labels" in found else None,
        )


def read_column(path: PathLike, column: str | None = None) -> npt.NDArray[Any] | list[Any]:
    """Read one column (true labels, groups or ids) from .npy, .npz, .csv, .txt, .json, .parquet, .arrow or .feather.

    `column`, or `file.csv:column` and `file.npz:key`, says which where there are several. A .txt has one entry a line.
    Text that consists of whole numbers becomes integers; an empty field becomes None, a missing value.
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


def sets_ending(path: PathLike) -> str:
    """The ending of a file for `write_sets`; refuses those that it cannot write, here and now."""
    ending = known_ending(Path(path), _SETS)
    if ending in _ARROW:
        require_pyarrow(ending)
    return ending


def write_sets(
    path: PathLike,
    *,
    mask: npt.NDArray[np.bool_],
    labels: Sequence[str],
    ids: Sequence[str] | npt.NDArray[np.str_] | None = None,
    costs: npt.NDArray[np.floating[Any]] | None = None,
    sizes: npt.NDArray[np.integer[Any]] | None = None,
) -> None:
    """Write prediction sets, one a row: id (row number if there are none), labels, size and, where given, cost.

    .parquet, .arrow, .feather: labels are a list of strings. .jsonl: one object a row. .csv: labels are joined by `|`;
    if any label of the spec is empty, contains `|` or starts with `[`, every cell is a JSON array instead. .npy: the
    boolean mask alone.
    """
    file = Path(path)
    ending = sets_ending(path)
    n = len(mask)
    if mask.dtype != np.bool_ or mask.shape != (n, len(labels)):
        raise InputError(
            f"the mask has dtype {mask.dtype} and shape {mask.shape}, expected bool and (n, {len(labels)})"
        )
    counted = mask.sum(axis=1)
    for name, column in (("ids", ids), ("costs", costs), ("sizes", sizes)):
        if column is not None and len(column) != n:
            raise InputError(f"{name}: {len(column)} entries for {n} sets")
    if sizes is not None and not np.array_equal(sizes, counted):
        raise InputError(f"sizes: row {int(np.flatnonzero(sizes != counted)[0])} is not the size of its set")
    if costs is not None and not np.isfinite(costs).all():
        raise InputError(f"costs: row {int(np.flatnonzero(~np.isfinite(costs))[0])} is not a finite number")
    names = list(range(n)) if ids is None else [str(name) for name in ids]
    paid = None if costs is None else np.asarray(costs, np.float64)
    sets = _Sets(mask, list(labels), names, counted.astype(np.int64), paid)
    with atomic_write(file) as temporary:
        if ending == ".npy":
            with temporary.open("wb") as out:
                np.save(out, mask)
        elif ending == ".csv":
            _write_csv(temporary, sets)
        elif ending == ".jsonl":
            _write_jsonl(temporary, sets)
        else:
            _write_arrow(temporary, sets, ending)


@contextmanager
def atomic_write(path: PathLike) -> Iterator[Path]:
    """A temporary file in the folder of `path`, renamed to it at the end of the block, or removed if that raises.

    A file that was there before keeps its permissions; a new one gets the usual ones.
    """
    target = Path(os.path.realpath(path))  # a link stays, and what it points to is replaced
    temporary = target.parent / f".udcp-{secrets.token_hex(8)}.tmp"
    if target.exists() and not target.is_file():
        raise InputError(f"{path}: cannot be written: it is not a regular file")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            yield temporary
            descriptor = os.open(temporary, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _split(path: PathLike) -> tuple[Path, str | None]:
    """`file.npz:key` in two; a file whose name has a colon wins."""
    text = os.fspath(path)
    match = _WITH_PART.fullmatch(text)
    return (Path(match[1]), match[2]) if match and not Path(text).exists() else (Path(text), None)


def known_ending(file: Path, known: Sequence[str]) -> str:
    """The ending of a file, in lower case; refuses one that is not known."""
    ending = file.suffix.lower()
    if ending not in known:
        raise InputError(f"{file}: unknown ending {ending!r}; known: {', '.join(known)}")
    return ending


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
            return np.asarray(archive[key])
    except (InputError, OSError):
        raise
    except Exception as error:  # a damaged header makes numpy raise almost anything, tokenize's errors among them
        if "pickle" in str(error) or "Python objects" in str(error):
            raise InputError("holds pickled Python objects, which are never loaded: save numbers or text") from error
        raise InputError(f"is damaged: {error}") from error


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
    return np.asarray(values).reshape(-1, max(1, len(numbers))), [_scalars(column) for column in cells]


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
    return values, [_scalars(table.column(header[position]).to_pylist()) for position in texts]


def require_pyarrow(ending: str) -> Any:
    """The module that reads and writes files with this ending; says how to get it where it is missing."""
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f"{ending} files need pyarrow: pip install 'udcp_dsl[tables]'") from error
    return pyarrow


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


@dataclass(frozen=True)
class _Sets:
    mask: npt.NDArray[np.bool_]
    labels: list[str]
    ids: list[Any]  # all str, or all int
    sizes: npt.NDArray[np.int64]
    costs: npt.NDArray[np.float64] | None

    def blocks(self) -> Iterator[slice]:
        step = max(1, _BLOCK // max(1, len(self.labels)))
        return (slice(start, start + step) for start in range(0, len(self.mask), step))

    def rows(self) -> Iterator[tuple[str | int, list[str], int, float | None]]:
        for block in self.blocks():
            members = [self.labels[label] for label in np.nonzero(self.mask[block])[1].tolist()]
            end = 0
            sizes = self.sizes[block].tolist()
            costs = [None] * len(sizes) if self.costs is None else self.costs[block].tolist()
            for name, size, cost in zip(self.ids[block], sizes, costs, strict=True):
                start, end = end, end + size
                yield name, members[start:end], size, cost


def _write_csv(file: Path, sets: _Sets) -> None:
    as_json = any(not label or "|" in label or label.startswith("[") for label in sets.labels)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["id", "labels", "size"] + ([] if sets.costs is None else ["cost"]))
        for name, members, size, cost in sets.rows():
            cell = json.dumps(members, ensure_ascii=False) if as_json else "|".join(members)
            writer.writerow([name, cell, size] + ([] if cost is None else [short(cost)]))


def short(value: float) -> str:
    """A number as a CSV has it: to 12 digits, where those after them are what rounding left, and whole ones in full.

    >>> short(0.1 + 0.2), short(1 / 3), short(123456789012345.0)
    ('0.3', '0.333333333333', '123456789012345.0')
    """
    return repr(value if value.is_integer() else float(f"{value:.12g}"))


def _write_jsonl(file: Path, sets: _Sets) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        for name, members, size, cost in sets.rows():
            row = {"id": name, "labels": members, "size": size} | ({} if cost is None else {"cost": cost})
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_arrow(file: Path, sets: _Sets, ending: str) -> None:
    pa = require_pyarrow(ending)
    ids = pa.array(sets.ids, pa.int64() if sets.ids and isinstance(sets.ids[0], int) else pa.string())
    names = pa.array(sets.labels, pa.string())
    fields = {"id": ids.type, "labels": pa.list_(pa.string()), "size": pa.int64()}
    if sets.costs is not None:
        fields["cost"] = pa.float64()
    schema = pa.schema(fields)
    with pa.parquet.ParquetWriter(file, schema) if ending == ".parquet" else pa.ipc.new_file(file, schema) as writer:
        for block in sets.blocks():
            members = names.take(pa.array(np.nonzero(sets.mask[block])[1]))
            offsets = np.concatenate([[0], np.cumsum(sets.sizes[block])]).astype(np.int32)
            columns = [ids[block], pa.ListArray.from_arrays(pa.array(offsets), members), pa.array(sets.sizes[block])]
            if sets.costs is not None:
                columns.append(pa.array(sets.costs[block]))
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
