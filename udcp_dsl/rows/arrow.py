"""Arrow tables in blocks of rows: .parquet, .arrow and .feather files, and Arrow streams.

Only one block is decoded at a time, however large the row groups of a parquet file are; a batch of an Arrow file or
stream is as large as its writer made it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, RowFault, warn
from udcp_dsl.files import require_pyarrow
from udcp_dsl.rows.selection import WHOLE, Block, ColumnSelection, Span

# From the names of a table's columns, and the positions of those that hold lists, to the columns to read.
Choose: TypeAlias = Callable[[Sequence[str], Sequence[int]], ColumnSelection]

_READ_AHEAD = 1 << 26  # undecoded bytes of a parquet file in memory, over all columns
_LEAST_READ_AHEAD = 1 << 16  # of one column
_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"  # the end marker of a stream
_DAMAGED = (LookupError, OverflowError)  # what pyarrow also raises for a file with damaged metadata


def arrow_blocks(
    file: Path, choose: Choose, most: int | None = None, like: Any = None, span: Span = WHOLE
) -> Iterator[Block]:
    """The blocks of a file, of at most `most` rows each (one block if it has no rows); `like` is a schema that the
    chosen columns must match.

    `span` says where to begin in a parquet file, and where its pieces end: no block has rows of two.
    """
    file.open("rb").close()  # OSError if it is absent or unreadable: it is not reported as damaged
    pa = require_pyarrow(file.suffix.lower())
    with _naming_damage(pa, file):
        if file.suffix.lower() == ".parquet":
            yield from _parquet_blocks(pa, file, choose, most, like, span)
        else:
            with pa.OSFile(os.fspath(file)) as opened:
                yield from _ipc_blocks(pa, opened, choose, most, like)


@contextmanager
def _naming_damage(pa: Any, file: Path) -> Iterator[None]:
    """What pyarrow raises for a damaged file becomes an InputError."""
    try:
        yield
    except (pa.ArrowException, *_DAMAGED) as error:
        raise InputError(f"is, despite its extension, not a {file.suffix.lower()} file: {error}") from error


def stream_blocks(stream: IO[bytes], choose: Choose, most: int | None = None) -> Iterator[Block]:
    """The blocks of an Arrow stream, such as standard input, which can be read only once."""
    pa = require_pyarrow("Arrow")
    try:
        watched = _TailRecorder(stream)
        with pa.ipc.open_stream(watched) as reader:
            yield from _batch_blocks(pa, reader.schema, reader, choose, most)
        _warn_if_truncated(watched.last)
    except (pa.ArrowException, OSError, *_DAMAGED) as error:
        raise InputError(f"is not a complete Arrow stream: {error}") from error


class _TailRecorder:
    """A stream that remembers the last bytes that were read."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.last = (self.last + data[-len(_STREAM_END) :])[-len(_STREAM_END) :]
        return data


def _warn_if_truncated(last: bytes) -> None:
    """Warn if the end marker is missing: a stream cut between two batches otherwise looks complete."""
    if last != _STREAM_END:
        warn("the Arrow stream has no end marker: it may be truncated, and rows may be missing")


def block_of(batch: Any, choose: Choose) -> Block:
    """A RecordBatch as one block."""
    pa = require_pyarrow("Arrow")
    return _block(pa, batch, choose(batch.schema.names, _list_positions(pa, batch.schema)))


def schema_of(file: Path) -> Any:
    """The schema of a parquet or Arrow file."""
    pa = require_pyarrow(file.suffix.lower())
    with _naming_damage(pa, file):
        if file.suffix.lower() == ".parquet":
            return pa.parquet.read_schema(file)
        with pa.OSFile(os.fspath(file)) as opened:
            return _open_ipc(pa, opened).schema


def parquet_metadata(file: Path) -> Any:
    """The footer of a parquet file, whose numbers of rows must agree."""
    pa = require_pyarrow(".parquet")
    with _naming_damage(pa, file):
        metadata = pa.parquet.read_metadata(file)
        in_groups = sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if in_groups != metadata.num_rows:
        raise InputError(
            f"is damaged: its footer says {metadata.num_rows:,} rows, but those of its row groups sum to {in_groups:,}"
            ": write it again"
        )
    return metadata


def _parquet_blocks(pa: Any, file: Path, choose: Choose, most: int | None, like: Any, span: Span) -> Iterator[Block]:
    metadata = parquet_metadata(file)
    schema = metadata.schema.to_arrow_schema()
    choice = _chosen(pa, schema, choose, like)
    known = schema.names  # built again at each access
    names = [known[position] for position in choice.columns]
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    group, at = _group_of(counts, span.start)
    # No pre-buffer: it holds whole row groups, undecoded, so memory would grow with the file.
    buffer = max(_LEAST_READ_AHEAD, _READ_AHEAD // max(1, len(names)))
    options = {"buffer_size": buffer, "pre_buffer": False, "page_checksum_verification": True}
    with pa.parquet.ParquetFile(file, metadata=metadata, **options) as parquet:
        rows = most or max(1, metadata.num_rows)
        batches = _complete_groups(parquet, counts, group, rows, names)
        for batch in _or_no_rows(pa, _in_blocks(pa, batches, at, span, rows), schema, choice.columns):
            yield _block(pa, batch, _reindexed(choice, known, batch.schema.names))


def _complete_groups(parquet: Any, counts: Sequence[int], first: int, most: int, names: list[str]) -> Iterator[Any]:
    """The batches of the row groups from `first` on; refuses groups that have fewer rows than the footer says."""
    for run in _runs(counts, first, most):
        expected = sum(counts[run.start : run.stop])
        batches = parquet.iter_batches(batch_size=most, row_groups=list(run), columns=names)
        batches = _refuse_missing_rows(batches, expected, run)
        # Of several groups, all are read first: rows of the next group must not take the places of missing ones.
        yield from batches if len(run) == 1 else list(batches)


def _runs(counts: Sequence[int], first: int, most: int) -> Iterator[range]:
    """The row groups from `first` on in runs of at most `most` rows; a larger group is alone.

    >>> list(_runs([9, 2, 2, 2, 5], 0, 5))
    [range(0, 1), range(1, 3), range(3, 4), range(4, 5)]
    """
    while first < len(counts):
        stop, rows = first + 1, counts[first]
        while stop < len(counts) and rows + counts[stop] <= most:
            rows += counts[stop]
            stop += 1
        yield range(first, stop)
        first = stop


def _refuse_missing_rows(batches: Iterator[Any], expected: int, groups: range) -> Iterator[Any]:
    found = 0
    for batch in batches:
        found += len(batch)
        yield batch
    if found != expected:
        where = f"row group {groups[0]} has" if len(groups) == 1 else f"row groups {groups[0]} to {groups[-1]} have"
        raise InputError(
            f"is damaged: {where} {found:,} rows, but the footer says {expected:,} (groups are counted from 0): "
            "write it again"
        )


def _in_blocks(pa: Any, batches: Iterator[Any], at: int, span: Span, most: int) -> Iterator[Any]:
    """The rows of batches, which begin at row `at`, in blocks of exactly `most` rows, cut as `span` says.

    Rows are copied if a block needs several batches.
    """
    waiting = list[Any]()
    for batch in batches:
        for first, stop in span.cuts(at, at + len(batch), most):
            waiting.append(batch.slice(first - at, stop - first))
            if stop == span.block_end(stop - 1, most):
                yield from _combined(pa, waiting)
                waiting = []
        at += len(batch)
    yield from _combined(pa, waiting)


def _group_of(counts: Sequence[int], row: int) -> tuple[int, int]:
    """The row group that contains this row, or the number of groups if none does; also, the row at which it begins."""
    at = 0
    for group, rows in enumerate(counts):
        if row < at + rows:
            return group, at
        at += rows
    return len(counts), at


def _ipc_blocks(pa: Any, opened: Any, choose: Choose, most: int | None, like: Any) -> Iterator[Block]:
    reader = _open_ipc(pa, opened)
    if hasattr(reader, "num_record_batches"):
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        yield from _batch_blocks(pa, reader.schema, batches, choose, most, like, gather=True)
        return
    yield from _batch_blocks(pa, reader.schema, reader, choose, most, like)
    opened.seek(max(0, opened.size() - len(_STREAM_END)))
    _warn_if_truncated(opened.read())


def _combined(pa: Any, batches: list[Any]) -> list[Any]:
    if len(batches) < 2:
        return batches
    for batch in batches:
        batch.validate(full=True)  # before its offsets are used
    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())


def _batch_blocks(
    pa: Any, schema: Any, batches: Any, choose: Choose, most: int | None, like: Any = None, gather: bool = False
) -> Iterator[Block]:
    """`gather` joins small batches, because each block has a fixed cost."""
    choice = _chosen(pa, schema, choose, like)
    kept = choice.columns
    names = schema.names
    choice = _reindexed(choice, names, [names[position] for position in kept])
    chosen: Iterator[Any] = (batch.select(kept) for batch in batches)
    if gather and most is not None:
        chosen = _in_blocks(pa, chosen, 0, WHOLE, most)
    slices = (
        batch.slice(start, most) for batch in chosen for start in range(0, len(batch), most or max(1, len(batch)))
    )
    for part in _or_no_rows(pa, slices, schema, kept):
        yield _block(pa, part, choice)


def _or_no_rows(pa: Any, batches: Iterator[Any], schema: Any, columns: Sequence[int]) -> Iterator[Any]:
    """The batches or, if there are none, one without rows, which has these columns of the schema."""
    first = next(batches, None)
    if first is None:
        first = pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(position) for position in columns]))
    yield first
    yield from batches


def _open_ipc(pa: Any, opened: Any) -> Any:
    """Open Arrow's file format or its stream format; the ending does not say which it is."""
    try:
        return pa.ipc.open_file(opened)
    except pa.ArrowInvalid:
        opened.seek(0)
        return pa.ipc.open_stream(opened)


def _list_positions(pa: Any, schema: Any) -> list[int]:
    return [i for i, kind in enumerate(schema.types) if _is_list(pa, kind)]


def _is_list(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _chosen(pa: Any, schema: Any, choose: Choose, like: Any) -> ColumnSelection:
    """The columns to read from a table; they must have the same types as in the schema `like`, if it is given."""
    choice = choose(schema.names, _list_positions(pa, schema))
    if like is not None:
        names, kinds, others = schema.names, schema.types, dict(zip(like.names, like.types, strict=True))
        for position in choice.columns:
            name, kind = names[position], kinds[position]
            if name not in others:
                raise InputError(f"its schema differs: column {name!r} is not in the first part")
            if others[name] != kind:
                raise InputError(
                    f"its schema differs: column {name!r} contains {kind}, but {others[name]} in the first part"
                )
    return choice


def _reindexed(choice: ColumnSelection, names: Sequence[str], left: Sequence[str]) -> ColumnSelection:
    """The same selection in a table that has only the columns `left`."""
    place = {name: position for position, name in enumerate(left)}

    def moved(positions: list[int]) -> list[int]:
        return [place[names[position]] for position in positions]

    ids = None if choice.ids is None else place[names[choice.ids]]
    numbers, texts, carried = (moved(x) for x in (choice.numbers, choice.texts, choice.carried))
    return replace(choice, numbers=numbers, texts=texts, carried=carried, ids=ids)


def _block(pa: Any, batch: Any, choice: ColumnSelection) -> Block:
    batch.validate(full=True)  # else wrong offsets in the file could point anywhere in memory
    if choice.width is not None:
        values = _list_array(pa, batch, choice.numbers[0], choice.width)
    else:
        names = batch.schema.names
        columns = [_number_array(pa, names[position], batch.column(position)) for position in choice.numbers]
        values = np.stack(columns, axis=1) if columns else np.empty((len(batch), 0))
    texts = [batch.column(position).to_pylist() for position in choice.texts]
    carried = batch.select(choice.carried) if choice.carried else None
    ids = None if choice.ids is None else batch.column(choice.ids)
    if ids is not None and pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()  # dictionaries differ between blocks
    return Block(values, choice.by_role(texts), carried, choice.labels, ids)


def _number_array(pa: Any, name: str, column: Any) -> npt.NDArray[Any]:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise InputError(f"column {name!r} contains {column.type}, not numbers")
    if column.null_count:
        raise RowFault(_first_null(column), f"column {name!r}: ", " (counted from 0) is missing")
    return numbers_of(column)


def _first_null(column: Any) -> int:
    return int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])


def _list_array(pa: Any, batch: Any, position: int, K: int) -> npt.NDArray[Any]:
    name, column = batch.schema.names[position], batch.column(position)
    kind, before = column.type, f"column {name!r}: "
    if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise InputError(f"column {name!r} contains {kind}, not lists of numbers")
    if column.null_count:
        raise RowFault(_first_null(column), before, " (counted from 0) is missing")
    if pa.types.is_fixed_size_list(kind):
        if kind.list_size != K:
            raise InputError(f"column {name!r} contains lists of {kind.list_size}, but there are {K} labels")
    else:
        lengths = np.diff(numbers_of(column.offsets))
        wrong = np.flatnonzero(lengths != K)
        if wrong.size:
            has = f" (counted from 0) has {lengths[wrong[0]]} entries, but there are {K} labels"
            raise RowFault(int(wrong[0]), before, has)
    flat = column.flatten()
    if flat.null_count:
        row, entry = divmod(_first_null(flat), K)
        raise RowFault(row, before, f", entry {entry} (both counted from 0), is missing")
    return numbers_of(flat).reshape(-1, K)


def numbers_of(column: Any) -> npt.NDArray[Any]:
    """The numbers of an Arrow array without nulls, not copied; `to_numpy` would import pandas first."""
    kind = column.type.to_pandas_dtype()
    if not len(column):
        return np.empty(0, kind)
    return np.asarray(_WritableBuffer(column.buffers()[1], np.dtype(kind)))[column.offset : column.offset + len(column)]


class _WritableBuffer:
    """A buffer of Arrow as a writable array. A read-only array has another type for numba, so all kernels would be
    compiled again for it. No code writes to rows, neither to these nor to those that a user passes."""

    def __init__(self, buffer: Any, dtype: np.dtype[Any]) -> None:
        self._buffer = buffer  # kept alive as long as the array
        self.__array_interface__ = {
            "version": 3,
            "data": (buffer.address, False),
            "shape": (buffer.size // dtype.itemsize,),
            "typestr": dtype.str,
        }
