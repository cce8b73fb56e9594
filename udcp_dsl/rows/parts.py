"""Sources of rows: a file, the files of a folder or a pattern, or a stream; each is read in blocks of rows."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, did_you_mean, nearest
from udcp_dsl.files import ARROW, PathLike, known_ending
from udcp_dsl.rows.arrow import arrow_blocks, parquet_metadata, schema_of, stream_blocks
from udcp_dsl.rows.selection import WHOLE, Block, ColumnSpec, Span
from udcp_dsl.rows.text import csv_blocks, csv_stream_blocks, json_blocks

ARRAYS = (".npy", ".npz")
MATRICES = (*ARRAYS, ".csv", *ARROW, ".jsonl")
STREAM = "-"  # as a path: standard input

_WITH_KEY = re.compile(r"(.*?\.(?:npz|csv|parquet|arrow|feather)):(.+)", re.IGNORECASE | re.DOTALL)
_PATTERN = re.compile(r"[*?\[]")
_MMAP_BYTES = 1 << 26  # files from this size on are memory-mapped, not read
_UNPACKED_BYTES = 1 << 28  # a larger array in an .npz may be this many times its compressed size:
_MAX_EXPANSION = 100


@dataclass(frozen=True)
class Part:
    """A file of rows, or a stream (whose `ending` is that of a file with the same content).

    It may be a piece of a large file: the rows `start` to `stop`.
    """

    path: Path
    ending: str
    key: str | None = None  # of an array in an .npz
    stream: IO[bytes] | None = None
    name: str = ""  # relative to the folder that is common to all parts
    start: int = 0
    stop: int | None = None  # None: to the end of the file

    def pieces(self, length: int) -> tuple[Part, ...]:
        """The same rows in pieces of `length` rows, if the file says how many it has and can be read from any row."""
        try:
            rows = self.rows or 0
        except InputError:  # a damaged file, which is reported when it is read
            return (self,)
        if rows <= length:
            return (self,)
        return tuple(replace(self, start=at, stop=min(at + length, rows)) for at in range(0, rows, length))

    def continues(self, other: Part | None) -> bool:
        """Whether this is the piece that follows `other`."""
        return (
            other is not None
            and replace(self, start=other.start, stop=other.stop) == other
            and self.start == other.stop
        )

    @property
    def rows(self) -> int | None:
        """Number of rows, if it is known without reading them; else None."""
        if self.stop is not None:
            return self.stop - self.start
        if self.stream is not None:
            return None
        with naming_file_in_errors(self.path):
            if self.ending == ".parquet":
                return int(parquet_metadata(self.path).num_rows)
            return len(read_array(self.path, None)) if self.ending == ".npy" else None

    @property
    def identity(self) -> dict[str, int]:
        """What shows whether the file has changed: its size, and its time of modification."""
        with naming_file_in_errors(self.path):
            found = self.path.stat()
        return {"bytes": found.st_size, "changed": found.st_mtime_ns}

    def blocks(self, wanted: ColumnSpec, most: int | None, like: Any = None) -> Iterator[Block]:
        """Its rows in blocks, as they are in the file; errors do not name the file.

        The blocks of a piece are followed by those of the next pieces; no block has rows of two.
        """
        span = WHOLE if self.stop is None else Span(self.start, self.stop - self.start)
        if self.ending in ARRAYS:
            columns = wanted.columns
            if columns.inputs and wanted.read_attributes:
                names = ", ".join(map(repr, columns.inputs))
                raise InputError(f"the loss reads row inputs, {names}, but an array has no columns for them: "
                                 "give them in a separate file, --inputs FILE (in Python inputs=)")  # fmt: skip
            if columns.per_row or columns.carry:
                what = " or ".join(columns.per_row) or columns.carry[0]
                raise InputError(f"an array has no column of {what}: give a separate file")
            if columns.ignore or columns.column is not None:
                raise InputError("an array has no named columns to ignore")
            return array_blocks(self.path, self.key, most, span)
        if self.key is not None:
            raise InputError("all columns are read; only an .npz contains several matrices to choose from")
        if self.stream is not None:
            reader = {".arrow": stream_blocks, ".csv": csv_stream_blocks, ".jsonl": json_blocks}[self.ending]
            return reader(self.stream, wanted.choose, most)
        if self.ending == ".csv":
            return csv_blocks(self.path, wanted.choose, most)
        if self.ending == ".jsonl":
            return _json_file_blocks(self.path, wanted, most)
        return arrow_blocks(self.path, wanted.choose, most, like, span)

    def schema(self) -> Any:
        """The schema of a parquet or Arrow file; None for other files and streams."""
        if self.ending not in ARROW or self.stream is not None:
            return None
        with naming_file_in_errors(self.path):
            return schema_of(self.path)


def _json_file_blocks(path: Path, wanted: ColumnSpec, most: int | None) -> Iterator[Block]:
    with path.open("rb") as stream:
        yield from json_blocks(stream, wanted.choose, most)


def find_parts(source: PathLike) -> tuple[Part, ...]:
    """The parts of `source`: a file, `file.npz:key`, all files of a folder, those of a pattern, or `-`.

    Parts are ordered by name, and numbers in names by value. In a folder, names that begin with a dot or an underscore
    are skipped, since programs that write such folders mark other files in this way; all others must have one ending.
    """
    text = os.fspath(source)
    if text == STREAM:
        return (stream_part(sys.stdin.buffer),)
    if Path(text).is_dir():
        found = [Path(folder, name) for folder, _, names in os.walk(text) for name in names]
        files = [file for file in found if not any(part[0] in "._" for part in file.relative_to(text).parts)]
        return _of_one_kind(text, Path(text), files, "a folder")
    if _PATTERN.search(text) and not Path(split_key(text)[0]).exists():
        files = [Path(name) for name in glob.glob(text, recursive=True) if Path(name).is_file()]
        common = os.path.commonpath([file.parent for file in files]) if files else "."
        return _of_one_kind(text, Path(common), files, "a pattern")
    file, key = split_key(text)
    return (Part(file, known_ending(file, MATRICES), key, name=file.name),)


def _of_one_kind(source: str, root: Path, files: Sequence[Path], what: str) -> tuple[Part, ...]:
    if not files:
        raise InputError(f"{source}: {what} with no files of rows")
    ordered = sorted(files, key=lambda file: _natural(str(file)))
    parts = tuple(
        Part(file, known_ending(file, MATRICES), name=str(Path(os.path.relpath(file, root)))) for file in ordered
    )
    other = next((part for part in parts if part.ending != parts[0].ending), None)
    if other is not None:
        raise InputError(f"{source}: contains files of two kinds, {parts[0].name} and {other.name}: use one kind")
    return parts


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(piece), "") if piece.isdigit() else (0, piece) for piece in re.split(r"([0-9]+)", name)]


def stream_part(stream: Any) -> Part:
    """A stream as a part; its first bytes show whether it is Arrow, JSON lines or CSV."""
    first = bytes(stream.peek(8)[:8])
    if first.startswith(b"PAR1"):
        raise InputError(f"{STREAM}: parquet cannot be read from a stream: save it as a file, or send an Arrow stream")
    if first.startswith((b"\xff\xff\xff\xff", b"ARROW1")):
        ending = ".arrow"
    else:
        ending = ".jsonl" if first.lstrip().startswith(b"{") else ".csv"
    return Part(Path(STREAM), ending, stream=stream, name=STREAM)


def split_key(path: PathLike) -> tuple[Path, str | None]:
    """Split `file.npz:key` in two, unless a file of this name exists."""
    text = os.fspath(path)
    match = _WITH_KEY.fullmatch(text)
    return (Path(match[1]), match[2]) if match and not Path(text).exists() else (Path(text), None)


@contextmanager
def naming_file_in_errors(file: Path, beside: Mapping[str, PathLike] = MappingProxyType({})) -> Iterator[None]:
    """Errors raised inside name this file, or the file of the column that they are about (`beside`, by role)."""
    try:
        yield
    except InputError as error:
        own = next((path for role, path in beside.items() if str(error).startswith(f"{role}: ")), file)
        raise InputError(f"{own}: {error}") from error
    except FileNotFoundError as error:
        close = nearest(file.name, os.listdir(file.parent)) if file.parent.is_dir() else []
        raise InputError(f"{file}: no such file" + (f"; did you mean {close[0]!r}?" if close else "")) from error
    except IsADirectoryError as error:
        raise InputError(f"{file}: is a folder, not a file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: is not UTF-8 text") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error


def array_blocks(file: Path, key: str | None, most: int | None = None, span: Span = WHOLE) -> Iterator[Block]:
    """The blocks of an array, of `most` rows each (one if it has none); of a large .npy, only the current block takes
    memory."""
    array = read_array(file, key)
    if array.ndim == 0:
        yield Block(array, [])
        return
    if not len(array):
        yield Block(array, [])
    mapped = isinstance(array.base, np.memmap)
    for first, stop in span.cuts(0, len(array), most or max(1, len(array))):
        yield Block(array[first:stop], [])
        if mapped:  # pages that were read count as memory until they are unmapped
            array = read_array(file, key)


def listed_names(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def read_array(file: Path, key: str | None) -> npt.NDArray[Any]:
    """The array of a .npy, or the one called `key` of an .npz."""
    ending = file.suffix.lower()
    with file.open("rb") as stream:
        magic = stream.read(6)
    if not magic.startswith(b"\x93NUMPY" if ending == ".npy" else b"PK"):
        raise InputError(f"is, despite its extension, not a numpy {ending} file")
    try:
        if ending == ".npy":
            return np.asarray(np.load(file, "c" if file.stat().st_size >= _MMAP_BYTES else None, allow_pickle=False))
        with np.load(file, allow_pickle=False) as archive:
            if key is None and len(archive.files) != 1:
                names = listed_names(archive.files)
                raise InputError(f"contains {len(archive.files)} arrays ({names}): name one, as in {file.name}:KEY")
            key = archive.files[0] if key is None else key
            if key not in archive.files:
                raise InputError(f"there is no array {key!r}; {did_you_mean(key, archive.files)}")
            _refuse_zip_bomb(archive, key)
            return np.asarray(archive[key])
    except (InputError, OSError):
        raise
    except Exception as error:  # numpy may raise almost anything for a damaged header, even errors of tokenize
        if "pickle" in str(error) or "Python objects" in str(error):
            raise InputError("contains pickled Python objects, which are never loaded: save numbers or text") from error
        raise InputError(f"is damaged: {error}") from error


def _refuse_zip_bomb(archive: Any, key: str) -> None:
    """Refuse an array of gigabytes from a small file: real rows hardly compress that much."""
    names = archive.zip.namelist()
    member = archive.zip.getinfo(f"{key}.npy" if f"{key}.npy" in names else key)
    if member.file_size > max(_UNPACKED_BYTES, _MAX_EXPANSION * member.compress_size):
        raise InputError(
            f"{key!r} expands from {member.compress_size:,} bytes to {member.file_size:,}: if that is intended, "
            "save it uncompressed, with numpy.save"
        )
