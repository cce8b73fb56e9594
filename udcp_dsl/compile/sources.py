"""The data files of a spec: where they may be, and how CSV, JSON and .npy are read.

Files are read only below the spec's own folder, never unpickled, never run. The bytes of all files are kept, so that a
saved predictor contains everything that it needs.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import Fix, Suggestion, suggest
from udcp_dsl.language import ast
from udcp_dsl.language.unparse import name_text

# JSON that is nested deeper than this is refused, as are such expressions.
_DEEPEST = 200

# Largest data file that is read: text takes up to twenty times its size in memory, an array eight times.
_MOST_TEXT, _MOST_ARRAY = 100_000_000, 1_000_000_000
_SEPARATORS = {";": "semicolons", "\t": "tabs"}

# A number in a cell; Python's float() would also accept 1_000 and the digits of any script.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_LOOKED_FOR = "paths are relative to the spec's folder"
_NUMBERS = "write a finite number, such as 2, -0.5 or 1e-3"
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)


class FileFault(Exception):
    """An error in a data file; the checker adds the place in the spec.

    `wrong` is a path or column that the spec names and that does not exist, `suggestion` what to suggest instead.
    """

    def __init__(
        self, code: str, message: str, help: str = "", *, wrong: str = "", suggestion: Suggestion | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.help = help if suggestion is None else suggestion.help or help
        self._wrong, self._suggestion = wrong, suggestion

    def fixes(self, file: ast.File) -> tuple[Fix, ...]:
        """The fixes that write a suggested name in place of the wrong path or column."""
        if self._suggestion is None:
            return ()
        if self._wrong == file.path and file.path_span is not None:
            return self._suggestion.fixes(file.path_span, lambda path: json.dumps(path, ensure_ascii=False))
        named = (name for name in (file.column, file.by, *file.levels) if name is not None)
        return tuple(
            x for name in named if name.text == self._wrong for x in self._suggestion.fixes(name.span, name_text)
        )


class Files:
    """The files that a spec may read: `folder` on disk, or `contents` in memory (by path as written)."""

    def __init__(
        self, folder: Path | None = None, *, allow_outside: bool = False, contents: Mapping[str, bytes] | None = None
    ) -> None:
        self.folder = folder
        self.allow_outside = allow_outside
        self.read_so_far: dict[str, bytes] = {}
        self._contents = contents
        self._tables: dict[str, Table] = {}

    def read(self, path: str) -> bytes:
        """The bytes of a file named in the spec."""
        if path not in self.read_so_far:
            self.read_so_far[path] = self._carried(path) if self._contents is not None else self._from_disk(path)
        return self.read_so_far[path]

    def _carried(self, path: str) -> bytes:
        assert self._contents is not None
        if path not in self._contents:
            message, suggestion = f"{path!r} is not among the spec's files", suggest(path, self._contents)
            raise FileFault("E301", message, "the spec has no files", wrong=path, suggestion=suggestion)
        return self._contents[path]

    def _from_disk(self, path: str) -> bytes:
        if self.folder is None:
            way_out = "give folder=... to loads, or use load"
            raise FileFault("E301", f"cannot read {path!r}: the spec has no folder", way_out)
        if "\0" in path or not path:
            raise FileFault("E301", f"{path!r} is not a path", "name a file below the spec's folder")
        try:
            folder = resolved(self.folder)
            there = resolved(folder / path)
            if not self.allow_outside and not there.is_relative_to(folder):
                way_out = "keep data below the spec's folder, or allow it: --allow-outside (allow_outside=True)"
                raise FileFault("E302", f"{path!r} lies outside the spec's folder", way_out)
            if not there.exists():
                message, way_out = f"there is no file {path!r} in the spec's folder", _LOOKED_FOR
                raise FileFault("E301", message, way_out, wrong=path, suggestion=self._nearby(folder, path))
            if not there.is_file():
                raise FileFault("E301", f"{path!r} is not a file", "name a .csv, .json or .npy file")
            return _read_up_to(there, path)
        except OSError as error:
            way_out = "check that it may be read"
            raise FileFault("E301", f"cannot read {path!r}: {error.strerror or error}", way_out) from None

    def _nearby(self, folder: Path, path: str) -> Suggestion:
        where = (folder / path).parent
        names = sorted(os.listdir(where))[:1000] if where.is_dir() else []
        parent = os.path.dirname(path)
        data = [n for n in names if n.endswith((".csv", ".json", ".npy"))]
        there = [f"{parent}/{n}" if parent else n for n in data]
        return suggest(path, there)

    def table(self, path: str) -> Table:
        """A CSV file, parsed once however often the spec names it."""
        if path not in self._tables:
            self._tables[path] = read_csv(path, self.read(path))
        return self._tables[path]


def resolved(path: Path) -> Path:
    """The path without links; OSError if a link leads back to itself (before Python 3.13, pathlib: RuntimeError)."""
    try:
        return path.resolve()
    except RuntimeError:
        raise OSError(errno.ELOOP, "it is a link that leads back to itself", str(path)) from None


def _read_up_to(there: Path, path: str) -> bytes:
    most = _MOST_ARRAY if there.suffix.lower() == ".npy" else _MOST_TEXT
    size = there.stat().st_size
    if size <= most:
        with there.open("rb") as file:
            data = file.read(most + 1)  # a file may grow while it is read
        size = len(data)
    if size > most:
        message = f"{path} is too large: it has {size / 1e6:,.0f} MB, and at most {most / 1e6:,.0f} MB are read"
        raise FileFault("E301", message, "keep only the rows and columns that the spec needs, or save numbers as .npy")
    return data


@dataclass(frozen=True)
class Table:
    """A CSV file: a header and rows of the same length, as text; `lines` are the line numbers of the rows."""

    path: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    @cached_property
    def _keyed(self) -> dict[int, dict[str, int]]:
        """A cache of `keyed`: the row of each key, by the position of the key column."""
        return {}

    @cached_property
    def positions(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.header)}

    @cached_property
    def starts_with_index(self) -> bool:
        """Whether the first column is an index, as pandas writes it: without a name, it counts the rows.

        A distance matrix between labels that are numbers looks so too, but has the same names in its header.
        """
        counted = [row[0] for row in self.rows]
        if self.header[0] not in ("", "Unnamed: 0") or len(self.header) == 1 or not counted:
            return False
        first = int(counted[0]) if re.fullmatch(r"[0-9]{1,9}", counted[0], re.ASCII) else None
        counts = first is not None and all(cell == str(i) for i, cell in enumerate(counted, start=first))
        return counts and list(self.header[1:]) != counted

    def position(self, column: str) -> int:
        if column not in self.positions:
            message = f"{self.path} has no column {column!r}"
            raise FileFault("E304", message, wrong=column, suggestion=suggest(column, self.header))
        return self.positions[column]

    def keyed(self, key: str | None) -> tuple[int, dict[str, int]]:
        """The position of the key column (the first if None) and the row of each key, in file order."""
        at = 0 if key is None else self.position(key)
        if at in self._keyed:
            return at, self._keyed[at]
        rows: dict[str, int] = {}
        for i, row in enumerate(self.rows):
            if row[at] in rows:
                first = self.lines[rows[row[at]]]
                twice = f"{row[at]!r} appears twice in column {self.header[at]!r} (first on line {first})"
                way_out = "each row needs a different key; `by` names the column of keys (`column` for the labels)"
                raise FileFault("E306", f"{self.path}:{self.lines[i]}: {twice}", way_out)
            rows[row[at]] = i
        self._keyed[at] = rows
        return at, rows

    def number(self, row: int, at: int) -> float:
        """A cell as a finite number."""
        cell, where = self.rows[row][at], f"{self.path}:{self.lines[row]}: column {self.header[at]!r}"
        if not _NUMBER.fullmatch(cell):
            what = f"{shown(cell)} is not a number" if cell else "there is no number"
            if _DECIMAL_COMMA.fullmatch(cell):
                way_out = "write a decimal point: " + cell.replace(",", ".")
                raise FileFault("E305", f"{where}: {shown(cell)} has a decimal comma", way_out)
            raise FileFault("E305", f"{where}: {what}", _NUMBERS)
        if not math.isfinite(float(cell)):
            raise FileFault("E305", f"{where}: {shown(cell)} is not a finite number", _NUMBERS)
        return float(cell)


def finite(value: object, where: str) -> float:
    """A finite number from a JSON value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FileFault("E305", f"{where}: {shown(value)} is not a number", _NUMBERS)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):  # JSON itself has no infinity, but 1e400 is read as one
        raise FileFault("E305", f"{where}: {shown(value)} is not a finite number", _NUMBERS)
    return number


def shown(value: object) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def decode(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{path}:{line}: not UTF-8 (byte 0x{data[error.start]:02x})"
        raise FileFault("E303", message, "save the file as UTF-8") from None


def read_csv(path: str, data: bytes) -> Table:
    """A CSV file with a header; blank lines are skipped, quoted fields and a BOM accepted."""
    text = decode(path, data)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: tuple[str, ...] | None = None
    rows: list[tuple[str, ...]] = []
    lines: list[int] = []
    try:
        for line, cells in _numbered(reader):
            cleaned = tuple(cell.strip() for cell in cells)
            if not any(cleaned):
                continue
            if header is None:
                header = cleaned
                continue
            if len(header) == 1 and not rows:
                _refuse_other_separator(path, text, header[0], ",".join(cleaned))
            if len(cleaned) != len(header):
                message = f"{path}:{line}: {len(cleaned)} fields where the header has {len(header)}"
                way_out = "give each row one field per column; put fields that contain commas in double quotes"
                raise FileFault("E303", message, way_out)
            rows.append(cleaned)
            lines.append(line)
    except csv.Error as error:
        way_out = "check the double quotes: each opening quote needs a closing one"
        raise FileFault("E303", f"{path}:{reader.line_num}: not CSV: {error}", way_out) from None
    if header is None:
        raise FileFault("E303", f"{path} is empty", "give it a header and a row for each label")
    if len(set(header)) < len(header):
        twice = next(name for name, many in Counter(header).items() if many > 1)
        raise FileFault("E306", f"{path}: column {twice!r} appears twice in the header", "rename one of them")
    return Table(path, header, tuple(rows), tuple(lines))


def _refuse_other_separator(path: str, text: str, header: str, first: str) -> None:
    """Refuse a file whose only column is several, divided by semicolons or tabs, as spreadsheets of many countries do.

    A header in double quotes is one field, whatever it holds.
    """
    for sign, name in _SEPARATORS.items():
        if 0 < header.count(sign) == first.count(sign) and not text.lstrip().startswith('"'):
            commas = " and decimal commas" if "," in first else ""
            decimal = ", decimal=','" if commas else ""
            raise FileFault(
                "E303",
                f"{path} has {name} between its fields{commas}; CSV files of specs have commas and decimal points",
                f"in pandas: read_csv({path!r}, sep={sign!r}{decimal}).to_csv({path!r}, index=False)",
            )  # fmt: skip


def _numbered(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line on which each begins."""
    before = 0
    for cells in reader:
        yield before + 1, cells
        before = reader.line_num  # type: ignore[attr-defined]  # csv's reader counts; its type is private


def read_json(path: str, data: bytes) -> object:
    """A JSON file; duplicate keys and numbers that are not finite are errors."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise FileFault("E306", f"{path}: the key {key!r} appears twice in one object", "keep one of them")
            found[key] = value
        return found

    def constant(name: str) -> object:
        raise FileFault("E305", f"{path}: {name} is not a finite number", _NUMBERS)

    text = decode(path, data)
    too_deep = FileFault("E303", f"{path}: nested deeper than {_DEEPEST}", "use fewer levels")
    way_out = "JSON has double quotes, no comments, and no comma before a closing bracket"
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except RecursionError:
        raise too_deep from None
    except json.JSONDecodeError as error:
        raise FileFault("E303", f"{path}:{error.lineno}: not JSON: {error.msg}", way_out) from None
    except ValueError as error:
        raise FileFault("E303", f"{path}: not JSON: {error}", way_out) from None
    if _depth(value) > _DEEPEST:
        raise too_deep
    return value


def _depth(value: object) -> int:
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return deepest


def read_npy(path: str, data: bytes) -> npt.NDArray[np.float64]:
    """A .npy file of finite numbers, as float64."""
    way_out = "save a plain array of numbers with numpy.save"
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # a damaged header makes numpy raise almost anything, tokenize's errors among them
        objects = "pickle" in str(error) and b"|O" in data[:200]
        why = "it contains Python objects" if objects else "it is not a .npy array"
        raise FileFault("E303", f"{path}: {why}", way_out) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        raise FileFault("E303", f"{path} does not contain an array of numbers", way_out)
    if 8 * array.size > _MOST_ARRAY:
        message = f"{path} is too large: it has {array.size:,} numbers, and at most {_MOST_ARRAY // 8:,} are read"
        raise FileFault("E301", message, "keep only what the spec needs")
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        raise FileFault("E305", f"{path}: the entry at {index} is not a finite number", _NUMBERS)
    return numbers
