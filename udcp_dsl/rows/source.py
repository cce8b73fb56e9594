"""A source of more rows than fit into memory, which yields checked rows one batch at a time, in order.

It is a plain object with the names of files and the columns to read. It can be read several times (except a stream),
and sent to other processes. The columns of a table are matched by name; those of an array are in the order of the
labels, or of the class names. Nothing is unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, RowFault, did_you_mean, warn
from udcp_dsl.expression.domain import WHOLE_NUMBER
from udcp_dsl.expression.given import EntryColumns, RowInputs
from udcp_dsl.expression.inputs import RowInput
from udcp_dsl.files import PathLike, known_ending
from udcp_dsl.rows.arrow import arrow_blocks
from udcp_dsl.rows.columns import BlockedMatrix, listed, sample_texts, texts_of, to_array
from udcp_dsl.rows.matrix import Matrix, names_of_classes, probabilities
from udcp_dsl.rows.parts import (
    ARRAYS,
    MATRICES,
    Part,
    find_parts,
    listed_names,
    naming_file_in_errors,
    read_array,
    split_key,
)
from udcp_dsl.rows.roles import ENTRIES, Columns
from udcp_dsl.rows.rows import NOT_PER_ROW, Rows, rows_of
from udcp_dsl.rows.selection import Block, ColumnSelection, ColumnSpec
from udcp_dsl.rows.text import NO_HEADER, csv_blocks, csv_column, json_blocks, number, scalars
from udcp_dsl.threads import prefetch

BATCH = 1 << 21  # entries of the matrix in memory at a time, per thread
MEMORY_CELLS = 1 << 24  # largest matrix, in entries, that is read into memory; a larger one stays in its files
_COLUMNS = (*MATRICES, ".txt", ".json")  # files with a single column
_NO_LIMIT = 1 << 62
_MEMORY_BYTES = 1 << 26  # the same limit in bytes, for files that do not say how many rows they have


@dataclass(frozen=True)
class Batch:
    """Some rows of a part: the first is row `start` of its file, and row `at` of the source.

    `part` is the position of the part in the source. `carried` are columns to copy, as a RecordBatch. `ids` are in the
    type of the file, if its columns have types.
    """

    rows: Rows
    part: int
    start: int
    at: int
    carried: Any = None
    ids: Any = None


@dataclass(frozen=True)
class Source:
    """Rows in files, made by `open_rows`; `beside` has columns from elsewhere, by role, for all rows in order."""

    parts: tuple[Part, ...]
    wanted: ColumnSpec
    logits: bool = False
    normalize: bool = False
    beside: Mapping[str, Any] = field(default_factory=dict)
    beside_in: Mapping[str, PathLike] = field(default_factory=dict)  # the files of these columns, if from files
    model: Part | None = None  # the part whose schema all others must have, if it is not the first

    @property
    def labels(self) -> tuple[str, ...]:
        return self.wanted.labels

    @cached_property
    def rows(self) -> int | None:
        """Number of rows, if the files say it; else None."""
        counts = [part.rows for part in self.parts]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]  # None is not among them

    @cached_property
    def _numbered_ids(self) -> npt.NDArray[np.int64] | None:
        """The ids from `beside`, if they are integers; else None."""
        ids = np.asarray(self.beside.get("ids", ()))
        return ids if len(ids) and ids.dtype.kind in "iu" else None

    def part(self, which: int) -> Source:
        """A source of one part."""
        if self.beside:
            raise InputError(f"{next(iter(self.beside))}: give a column of the parts, not a separate file")
        return replace(self, parts=(self.parts[which],), model=self.model or self.parts[0])

    def in_pieces(self, length: int) -> Source:
        """The same rows, with large files split into parts of `length` rows."""
        return replace(self, parts=tuple(piece for part in self.parts for piece in part.pieces(length)))

    def batches(self, most: int | None = None, *, empty: bool = False) -> Iterator[Batch]:
        """The rows in order, at most `most` at a time (without it, as many as fit into `BATCH`)."""
        return (batch for _, batch in self.by_part(most, empty=empty) if batch is not None)

    def by_part(self, most: int | None = None, *, empty: bool = False) -> Iterator[tuple[int, Batch | None]]:
        """The batches, each with the position of its part; None marks the end of a part.

        With `empty=True`, a part without rows has one batch without rows; otherwise it is refused.
        """
        most = most or self.batch_rows
        model = self.model or self.parts[0]
        like = model.schema() if self.parts != (model,) else None
        at, truth_check = 0, _TruthKindCheck(self.labels)
        blocks: Iterator[Block] = iter(())
        before: Part | None = None
        for which, part in enumerate(self.parts):
            start = part.start
            with naming_file_in_errors(part.path, self.beside_in):
                try:
                    if not part.continues(before):  # else the file is already open, at the first row of this piece
                        blocks = part.blocks(self.wanted, most, like)
                    read = False
                    for block in blocks:
                        if block.values.shape[:1] == (0,) and not empty:
                            continue
                        rows = self._checked(block, part, at, truth_check, empty=empty)
                        ids = self._numbered_ids[at : at + len(rows)] if self._numbered_ids is not None else block.ids
                        yield which, Batch(rows, which, start, at, block.carried, ids)
                        start, at, read = start + len(rows), at + len(rows), True
                        if start == part.stop:
                            break
                except RowFault as fault:
                    raise fault.moved(start) from fault
                if not read:
                    raise InputError("has no rows")
                if start < (part.stop or start):
                    raise InputError(f"ends after {start} rows, but had {part.stop} before: was it changed meanwhile?")
            before = part
            yield which, None
        self._check_beside(at)

    def _counted(self) -> int | None:
        """Number of rows, found by reading them if necessary; None for a stream."""
        if self.rows is not None or self.parts[0].stream is not None:
            return self.rows
        n = 0
        for part in self.parts:
            with naming_file_in_errors(part.path):
                n += sum(len(block.values) for block in part.blocks(self.wanted, self.batch_rows))
        return n

    @property
    def batch_rows(self) -> int:
        """Rows in memory at a time, per thread."""
        return max(1, BATCH // len(self.labels))

    def _check_beside(self, n: int) -> None:
        for role, column in self.beside.items():
            if len(column) != n:
                raise InputError(f"{role}: {len(column)} entries for {n} rows")

    def _checked(self, block: Block, part: Part, at: int, truth_check: _TruthKindCheck, *, empty: bool = False) -> Rows:
        of_text = part.ending == ".csv"  # EntryColumns are converted when they are checked
        texts = [csv_column(x) if of_text and isinstance(x, list) else x for x in block.texts]
        found = self.wanted.roles(texts)
        for role, column in self.beside.items():
            found[role] = column[at : at + len(block.values)]
            if len(found[role]) < len(block.values):
                self._check_beside(self._counted() or at + len(block.values))
        if "true labels" in found:
            found["true labels"] = truth_check.checked(listed(found["true labels"], "true labels"))
        return block_rows(block, self.wanted, found, logits=self.logits, normalize=self.normalize, empty=empty)

    def whole(self) -> Rows:
        """All rows, in memory."""
        return _joined([batch.rows for batch in self.batches(_NO_LIMIT)])

    def stored(self) -> Rows:
        """All rows, with probabilities that stay in their files: they are read in blocks, and checked, at each use.
        All other columns are read now. Refuses a stream, which cannot be read again."""
        if self.parts[0].stream is not None:
            raise InputError(
                f"{self.parts[0].path}: a stream can be read only once, but its rows are needed several times"
            )
        numbers = replace(self, wanted=self.wanted.probabilities_only, beside={})
        rows = self._attributes()
        n = len(rows)

        def read() -> Iterator[Matrix]:
            found = 0
            for batch in prefetch(numbers.batches()):
                found += len(batch.rows)
                if found <= n:
                    yield batch.rows.P
            if found != n:
                raise InputError(f"{self.parts[0].path}: had {n} rows before, and now has {found}: was a file changed?")

        return replace(rows, P=cast("Matrix", BlockedMatrix((n, len(self.labels)), read)))

    def _attributes(self) -> Rows:
        """All rows without their probabilities: P has no columns."""
        bare = replace(self, wanted=self.wanted.attributes_only)
        if self.wanted.columns.per_row:
            return bare.whole()
        n = self._counted() or 0
        self._check_beside(n)
        named = next(replace(self, wanted=self.wanted.probabilities_only, beside={}).batches(1)).rows.columns
        block = Block(np.empty((n, 0)), [], columns=named)
        return _joined([bare._checked(block, self.parts[0], 0, _TruthKindCheck(self.labels))])

    def read(self) -> Rows:
        """All rows: in memory if they are few, or from a stream or an .npz; else `stored`."""
        packed = self.parts[0].stream is not None or self.parts[0].ending == ".npz"
        return self.whole() if packed or self._fits_in_memory else self.stored()

    def sampled(self, seed: int) -> Rows:
        """All rows if they fit into memory; otherwise, with a warning, a random sample that does, drawn by `seed`."""
        rows = self.read()
        if not isinstance(rows.P, BlockedMatrix):
            return rows
        most = min(len(rows), max(1, MEMORY_CELLS // len(self.labels)))
        if most < len(rows):
            warn(f"a random sample of {most:,} of the {len(rows):,} rows is used, to limit memory (seed {seed})")
        some = rows.take(np.sort(np.random.default_rng([seed, MEMORY_CELLS]).choice(len(rows), most, replace=False)))
        return replace(some, P=to_array(some.P))

    @property
    def _fits_in_memory(self) -> bool:
        if self.rows is not None:
            return self.rows * len(self.labels) <= MEMORY_CELLS
        return sum(part.identity["bytes"] for part in self.parts) <= _MEMORY_BYTES

    def one(self, row: int) -> Rows:
        """The row with this number, counted from 0; other rows are not checked."""
        at = 0
        for part in self.parts:
            first = at - part.start
            with naming_file_in_errors(part.path):
                for block in part.blocks(self.wanted, None):
                    if row < at + len(block.values):
                        place = slice(row - at, row - at + 1)
                        texts = [cells[place] for cells in block.texts]
                        single = replace(block, values=block.values[place], texts=texts)
                        try:
                            return self._checked(single, part, row, _TruthKindCheck(self.labels))
                        except RowFault as fault:
                            raise fault.moved(row - first) from fault
                    at += len(block.values)
        with naming_file_in_errors(self.parts[-1].path):
            raise InputError(f"there is no row {row}: rows are counted from 0, and there are {at}")


def open_rows(
    path: PathLike,
    labels: Sequence[str],
    columns: Columns | None = None,
    *,
    class_names: Sequence[object] | None = None,
    logits: bool = False,
    normalize: bool = False,
    beside: Mapping[str, Any] | None = None,
    inputs: Mapping[str, RowInput] | None = None,
    unread: Mapping[str, RowInput] | None = None,
    **roles: Any,
) -> Source:
    """A source of rows: a file, all files of a folder, those of a pattern (`parts/*.parquet`), or `-`, standard input.

    .npy, .npz (`file.npz:key`), .csv, .parquet, .arrow, .feather and .jsonl are read, each with one column per label
    or, in Arrow tables and JSON lines, with one column of lists, in the order of `labels` or, if given, `class_names`.
    `columns` says which columns hold what; `roles` are its fields by keyword (`id_column="photo"`). `beside` has
    columns that are not in the files, by role ("ids", "groups", "true labels"), for all rows in order. `inputs` are
    those that a loss reads (`loss.inputs`); columns of `unread` inputs are ignored.
    """
    names = None if class_names is None else names_of_classes(class_names)
    columns = replace(columns or Columns(), **roles)
    wanted = ColumnSpec.of(labels, names, columns, inputs, beside or (), unread)
    return Source(find_parts(path), wanted, logits, normalize, dict(beside or {}))


def block_rows(
    block: Block,
    wanted: ColumnSpec,
    found: Mapping[str, Any],
    *,
    logits: bool = False,
    normalize: bool = False,
    empty: bool = False,
) -> Rows:
    """The rows of a block, checked; `found` has their other columns, by role."""
    P = block.values
    if wanted.read_probabilities:
        names = wanted.class_names if block.columns is None else None
        P = probabilities(P, wanted.labels, class_names=names, logits=logits, normalize=normalize, empty=empty)
    entries = {ENTRIES[role]: column for role, column in found.items() if role in ENTRIES}
    ids = entries.pop("ids", None)
    rows = Rows(wanted.labels, P, columns=block.columns)
    rows = rows_of(rows, wanted.labels, class_names=wanted.class_names, empty=empty, **entries)
    rows = replace(rows, inputs=wanted.inputs_of(found, len(rows)))
    return rows if ids is None else replace(rows, ids=np.array(texts_of(ids, "sample ids", len(rows)), dtype=np.str_))


class _TruthKindCheck:
    """Checks that true labels are all names or all numbers, since a number may be a position."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = labels
        self._first: type | None = None

    @cached_property
    def _numbers_are_names(self) -> bool:
        return all(WHOLE_NUMBER.fullmatch(label) for label in self._labels)

    def checked(self, entries: list[Any]) -> list[Any]:
        kinds = {int if isinstance(entry, int) else str for entry in entries if isinstance(entry, int | str)}
        if not self._numbers_are_names and self._first is not None and kinds - {self._first}:
            raise InputError("true labels: some are names and some are numbers: give names, or positions, in every row")
        self._first = self._first or next(iter(kinds), None)
        return entries


def _joined(rows: Sequence[Rows]) -> Rows:
    """The rows of several batches; warns if rows share an id."""
    first = rows[0]

    def column(name: str) -> Any:
        parts = [getattr(some, name) for some in rows]
        join: Any = RowInputs.joined if name == "inputs" else np.concatenate
        return None if parts[0] is None else join(parts)

    found = {x.name: column(x.name) for x in fields(first) if x.name not in NOT_PER_ROW} if len(rows) > 1 else {}
    joined = replace(first, **found)
    if joined.ids is not None:
        sample_texts(joined.ids, len(joined))
    return joined


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
            raise InputError(
                f"has {len(columns)} columns ({listed_names(columns)}): name one, as in {file.name}:COLUMN"
            )
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
