"""Tables of Arrow in blocks of rows: .parquet, .arrow and .feather files, and Arrow's streams.

No more than a block is decoded at a time, however large the row groups of a parquet file are; a batch of an Arrow file
or stream is as large as its writer made it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, RowFault, warn
from udcp_dsl.prediction.files import require_pyarrow
from udcp_dsl.prediction.rows.columns import Block, ColumnSelection
from udcp_dsl.prediction.rows.list_pages import Pages, plain_pages

# What is wanted of a table with these columns, of which those at these positions hold lists.
Choose: TypeAlias = Callable[[Sequence[str], Sequence[int]], ColumnSelection]

_READ_AHEAD = 1 << 26  # bytes of a parquet file that are held undecoded, over all columns
_LEAST_READ_AHEAD = 1 << 16  # of one
_ALL = 1 << 62  # rows
_END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream
_DAMAGED = (LookupError, OverflowError)  # what pyarrow also raises of a file whose own description is damaged


def arrow_blocks(file: Path, choose: Choose, most: int | None = None, like: Any = None) -> Iterator[Block]:
    """The blocks of a file, of at most `most` rows each; `like` is a schema that what is chosen must agree with."""
    file.open("rb").close()  # an absent or unreadable file is told apart from a damaged one
    pa = require_pyarrow(file.suffix.lower())
    try:
        if file.suffix.lower() == ".parquet":
            yield from _parquet_blocks(pa, file, choose, most, like)
        else:
            with pa.OSFile(os.fspath(file)) as opened:
                yield from _ipc_blocks(pa, opened, choose, most, like)
    except (pa.ArrowException, *_DAMAGED) as error:
        raise InputError(f"is not what its ending says, a {file.suffix.lower()} file: {error}") from error


def stream_blocks(stream: IO[bytes], choose: Choose, most: int | None = None) -> Iterator[Block]:
    """The same of an Arrow stream that is read once, such as standard input."""
    pa = require_pyarrow("Arrow")
    try:
        watched = _Watched(stream)
        with pa.ipc.open_stream(watched) as reader:
            yield from _batch_blocks(pa, reader.schema, reader, choose, most)
        _warn_of_a_cut(watched.last)
    except (pa.ArrowException, OSError, *_DAMAGED) as error:
        raise InputError(f"is not a whole Arrow stream: {error}") from error


class _Watched:
    """A stream of which the last bytes that were read are remembered."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.last = (self.last + data[-len(_END) :])[-len(_END) :]
        return data


def _warn_of_a_cut(last: bytes) -> None:
    """Between two batches a stream that was cut looks like one that is whole, but for the mark of its end."""
    if last != _END:
        warn("the Arrow stream has no mark at its end: it may have been cut, and rows be missing")


def block_of(batch: Any, choose: Choose) -> Block:
    """A RecordBatch as one block."""
    pa = require_pyarrow("Arrow")
    return _block(pa, batch, choose(batch.schema.names, _lists(pa, batch.schema)))


def schema_of(file: Path) -> Any:
    """The schema of a file; None where it has none of its own, as text has."""
    pa = require_pyarrow(file.suffix.lower())
    try:
        if file.suffix.lower() == ".parquet":
            return pa.parquet.read_schema(file)
        with pa.OSFile(os.fspath(file)) as opened:
            return _opened(pa, opened).schema
    except (pa.ArrowException, *_DAMAGED) as error:
        raise InputError(f"is not what its ending says, a {file.suffix.lower()} file: {error}") from error


def _parquet_blocks(pa: Any, file: Path, choose: Choose, most: int | None, like: Any) -> Iterator[Block]:
    metadata = pa.parquet.read_metadata(file)
    schema = metadata.schema.to_arrow_schema()
    choice = _chosen(pa, schema, choose, like)
    known = schema.names  # made anew at each asking
    names = [known[position] for position in choice.columns]
    buffer = max(_LEAST_READ_AHEAD, _READ_AHEAD // max(1, len(names)))
    with (
        file.open("rb", buffering=0) as bare,
        pa.parquet.ParquetFile(file, metadata=metadata, buffer_size=buffer, page_checksum_verification=True) as parquet,
    ):
        rows = _evenly(max(1, metadata.num_rows), most or _ALL)
        pages = _pages(pa, parquet, bare, schema, choice)
        if pages is not None:
            yield from _page_blocks(pa, parquet, bare, pages, choice, known, rows)
            return
        for batch in parquet.iter_batches(batch_size=rows, columns=names):
            yield _block(pa, batch, _within(choice, known, batch.schema.names))


def _evenly(n: int, most: int) -> int:
    """The rows of a block, at most so many of n: blocks alike, and even in number, so that two lanes end together.

    >>> _evenly(10, 12), _evenly(10, 4), _evenly(10, 9)
    (10, 3, 5)
    """
    many = -(-n // most)
    return n if many == 1 else -(-n // (many + many % 2))


def _pages(pa: Any, parquet: Any, bare: IO[bytes], schema: Any, choice: ColumnSelection) -> Pages | None:
    """The pages of the lists that are chosen, where they need no decoding."""
    if choice.width is None or choice.numbers[0] in (*choice.texts, *choice.carried):
        return None
    kind = schema.types[choice.numbers[0]]
    if not pa.types.is_floating(kind.value_type) or getattr(kind, "list_size", choice.width) != choice.width:
        return None
    return plain_pages(parquet, bare, schema.names[choice.numbers[0]], kind, choice.width)


def _page_blocks(
    pa: Any, parquet: Any, bare: IO[bytes], pages: Pages, choice: ColumnSelection, names: Sequence[str], rows: int
) -> Iterator[Block]:
    """Numbers from their pages, and what is beside them as Arrow reads it, as many rows at a time."""
    n = parquet.metadata.num_rows
    beside = replace(choice, numbers=[], width=None)
    others = [names[position] for position in beside.columns]
    batches = parquet.iter_batches(batch_size=rows, columns=others) if others else None
    start = 0
    while start < n:
        batch = next(batches, None) if batches is not None else None
        if batches is not None and batch is None:
            raise InputError(f"says that it has {n} rows, but a column ends after {start}")
        stop = start + len(batch) if batch is not None else min(start + rows, n)
        try:
            values = pages.read(bare, start, stop)
        except EOFError as error:
            raise InputError(f"was changed while it was read: {error}") from error
        if batch is None:
            yield Block(values, [])
        else:
            found = _block(pa, batch, _within(beside, names, batch.schema.names))
            yield replace(found, values=values, named=False)
        start = stop


def _ipc_blocks(pa: Any, opened: Any, choose: Choose, most: int | None, like: Any) -> Iterator[Block]:
    reader = _opened(pa, opened)
    if hasattr(reader, "num_record_batches"):
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        yield from _batch_blocks(pa, reader.schema, batches, choose, most, like, gather=True)
        return
    yield from _batch_blocks(pa, reader.schema, reader, choose, most, like)
    opened.seek(max(0, opened.size() - len(_END)))
    _warn_of_a_cut(opened.read())


def _gathered(pa: Any, batches: Iterator[Any], most: int) -> Iterator[Any]:
    """The rows of small batches in fewer: each block that is worked on costs something, however few rows it has."""
    waiting, rows = list[Any](), 0
    for batch in batches:
        waiting, rows = [*waiting, batch], rows + len(batch)
        if 2 * rows >= most:
            yield from _as_one(pa, waiting)
            waiting, rows = [], 0
    yield from _as_one(pa, waiting)


def _as_one(pa: Any, batches: list[Any]) -> list[Any]:
    if len(batches) < 2:
        return batches
    for batch in batches:
        batch.validate(full=True)  # before anything in it is followed
    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())


def _batch_blocks(
    pa: Any, schema: Any, batches: Any, choose: Choose, most: int | None, like: Any = None, gather: bool = False
) -> Iterator[Block]:
    choice = _chosen(pa, schema, choose, like)
    kept = choice.columns
    names = schema.names
    choice = _within(choice, names, [names[position] for position in kept])
    chosen = (batch.select(kept) for batch in batches)
    for batch in _gathered(pa, chosen, most) if gather and most is not None else chosen:
        for start in range(0, len(batch), most or max(1, len(batch))):
            yield _block(pa, batch.slice(start, most), choice)


def _opened(pa: Any, opened: Any) -> Any:
    """Arrow's file format or, which the ending does not tell, its stream format."""
    try:
        return pa.ipc.open_file(opened)
    except pa.ArrowInvalid:
        opened.seek(0)
        return pa.ipc.open_stream(opened)


def _lists(pa: Any, schema: Any) -> list[int]:
    return [i for i, kind in enumerate(schema.types) if _is_list(pa, kind)]


def _is_list(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _chosen(pa: Any, schema: Any, choose: Choose, like: Any) -> ColumnSelection:
    """What is wanted of a table, which must be of the same kind as in the schema `like`."""
    choice = choose(schema.names, _lists(pa, schema))
    if like is not None:
        names, kinds, others = schema.names, schema.types, dict(zip(like.names, like.types, strict=True))
        for position in choice.columns:
            name, kind = names[position], kinds[position]
            if name not in others:
                raise InputError(f"its schema differs: column {name!r} is not in the first part")
            if others[name] != kind:
                raise InputError(
                    f"its schema differs: column {name!r} holds {kind}, but {others[name]} in the first part"
                )
    return choice


def _within(choice: ColumnSelection, names: Sequence[str], left: Sequence[str]) -> ColumnSelection:
    """The same choice where only the columns `left` are there."""
    place = {name: position for position, name in enumerate(left)}

    def moved(positions: list[int]) -> list[int]:
        return [place[names[position]] for position in positions]

    ids = None if choice.ids is None else place[names[choice.ids]]
    numbers, texts, carried = (moved(x) for x in (choice.numbers, choice.texts, choice.carried))
    return replace(choice, numbers=numbers, texts=texts, carried=carried, ids=ids)


def _block(pa: Any, batch: Any, choice: ColumnSelection) -> Block:
    batch.validate(full=True)  # else offsets from the file are followed wherever they lead
    if choice.width is not None:
        values = _of_lists(pa, batch, choice.numbers[0], choice.width)
    else:
        names = batch.schema.names
        columns = [_of_numbers(pa, names[position], batch.column(position)) for position in choice.numbers]
        values = np.stack(columns, axis=1) if columns else np.empty((len(batch), 0))
    texts = [batch.column(position).to_pylist() for position in choice.texts]
    carried = batch.select(choice.carried) if choice.carried else None
    ids = None if choice.ids is None else batch.column(choice.ids)
    if ids is not None and pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()  # dictionaries differ between blocks
    return Block(values, choice.by_role(texts), carried, named=choice.width is None, ids=ids)


def _of_numbers(pa: Any, name: str, column: Any) -> npt.NDArray[Any]:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise InputError(f"column {name!r} holds {column.type}, not numbers")
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise RowFault(row, f"column {name!r}: ", " (counted from 0) is missing")
    return numbers_of(column)


def _of_lists(pa: Any, batch: Any, position: int, K: int) -> npt.NDArray[Any]:
    name, column = batch.schema.names[position], batch.column(position)
    kind, before = column.type, f"column {name!r}: "
    if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise InputError(f"column {name!r} holds {kind}, not lists of numbers")
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise RowFault(row, before, " (counted from 0) is missing")
    if pa.types.is_fixed_size_list(kind):
        if kind.list_size != K:
            raise InputError(f"column {name!r} holds lists of {kind.list_size}, but there are {K} labels")
    else:
        lengths = np.diff(numbers_of(column.offsets))
        wrong = np.flatnonzero(lengths != K)
        if wrong.size:
            has = f" (counted from 0) has {lengths[wrong[0]]} entries, but there are {K} labels"
            raise RowFault(int(wrong[0]), before, has)
    flat = column.flatten()
    if flat.null_count:
        row, entry = divmod(int(np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))[0]), K)
        raise RowFault(row, before, f", entry {entry} (both counted from 0), is missing")
    return numbers_of(flat).reshape(-1, K)


def numbers_of(column: Any) -> npt.NDArray[Any]:
    """The numbers of an array of Arrow without missing ones, where they are; `to_numpy` would import pandas first."""
    kind = column.type.to_pandas_dtype()
    if not len(column):
        return np.empty(0, kind)
    return np.asarray(_Memory(column.buffers()[1], np.dtype(kind)))[column.offset : column.offset + len(column)]


class _Memory:
    """A buffer of Arrow as an array that is not read-only, which is a type of its own to compiled code, for which all
    would be compiled again. Nothing writes to rows, not to those that a user passes either."""

    def __init__(self, buffer: Any, dtype: np.dtype[Any]) -> None:
        self._buffer = buffer  # kept for as long as the array is
        self.__array_interface__ = {
            "version": 3,
            "data": (buffer.address, False),
            "shape": (buffer.size // dtype.itemsize,),
            "typestr": dtype.str,
        }
