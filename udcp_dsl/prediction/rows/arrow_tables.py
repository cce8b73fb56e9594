"""Tables of Arrow in blocks of rows: .parquet, .arrow and .feather files, and Arrow's streams.

No more than a block is decoded at a time, however large the row groups of a parquet file are; a batch of an Arrow file
or stream is as large as its writer made it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, RowFault
from udcp_dsl.prediction.files import require_pyarrow
from udcp_dsl.prediction.rows.layout import Block, Choice

# What is wanted of a table with these columns, of which those at these positions hold lists.
Choose: TypeAlias = Callable[[Sequence[str], Sequence[int]], Choice]

_READ_AHEAD = 1 << 26  # bytes of a parquet file that are held undecoded, over all columns
_LEAST_READ_AHEAD = 1 << 16  # of one
_ALL = 1 << 62  # rows


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
    except pa.ArrowException as error:
        raise InputError(f"is not what its ending says, a {file.suffix.lower()} file: {error}") from error


def stream_blocks(stream: IO[bytes], choose: Choose, most: int | None = None) -> Iterator[Block]:
    """The same of an Arrow stream that is read once, such as standard input."""
    pa = require_pyarrow("Arrow")
    try:
        with pa.ipc.open_stream(stream) as reader:
            yield from _batch_blocks(pa, reader.schema, reader, choose, most)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"is not a whole Arrow stream: {error}") from error


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
    except pa.ArrowException as error:
        raise InputError(f"is not what its ending says, a {file.suffix.lower()} file: {error}") from error


def _parquet_blocks(pa: Any, file: Path, choose: Choose, most: int | None, like: Any) -> Iterator[Block]:
    schema = pa.parquet.read_schema(file)
    choice = _chosen(pa, schema, choose, like)
    names = [schema.names[position] for position in choice.columns]
    buffer = max(_LEAST_READ_AHEAD, _READ_AHEAD // max(1, len(names)))
    with pa.parquet.ParquetFile(file, buffer_size=buffer, page_checksum_verification=True) as parquet:
        rows = min(most or _ALL, max(1, parquet.metadata.num_rows))
        for batch in parquet.iter_batches(batch_size=rows, columns=names):
            yield _block(pa, batch, _within(choice, schema.names, batch.schema.names))


def _ipc_blocks(pa: Any, opened: Any, choose: Choose, most: int | None, like: Any) -> Iterator[Block]:
    reader = _opened(pa, opened)
    batches: Any = reader
    if hasattr(reader, "num_record_batches"):
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    yield from _batch_blocks(pa, reader.schema, batches, choose, most, like)


def _batch_blocks(
    pa: Any, schema: Any, batches: Any, choose: Choose, most: int | None, like: Any = None
) -> Iterator[Block]:
    choice = _chosen(pa, schema, choose, like)
    kept = choice.columns
    choice = _within(choice, schema.names, [schema.names[position] for position in kept])
    for batch in batches:
        chosen = batch.select(kept)
        for start in range(0, len(chosen), most or max(1, len(chosen))):
            yield _block(pa, chosen.slice(start, most), choice)


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


def _chosen(pa: Any, schema: Any, choose: Choose, like: Any) -> Choice:
    """What is wanted of a table, which must be of the same kind as in the schema `like`."""
    choice = choose(schema.names, _lists(pa, schema))
    if like is not None:
        for position in choice.columns:
            name, kind = schema.names[position], schema.types[position]
            if name not in like.names:
                raise InputError(f"its schema differs: column {name!r} is not in the first part")
            if like.field(name).type != kind:
                raise InputError(
                    f"its schema differs: column {name!r} holds {kind}, but {like.field(name).type} in the first part"
                )
    return choice


def _within(choice: Choice, names: Sequence[str], left: Sequence[str]) -> Choice:
    """The same choice where only the columns `left` are there."""
    place = {name: position for position, name in enumerate(left)}

    def moved(positions: list[int]) -> list[int]:
        return [place[names[position]] for position in positions]

    return Choice(moved(choice.numbers), moved(choice.texts), moved(choice.carried), choice.width)


def _block(pa: Any, batch: Any, choice: Choice) -> Block:
    batch.validate(full=True)  # else offsets from the file are followed wherever they lead
    if choice.width is not None:
        values = _of_lists(pa, batch, choice.numbers[0], choice.width)
    else:
        columns = [_of_numbers(pa, batch, position) for position in choice.numbers]
        values = np.stack(columns, axis=1) if columns else np.empty((len(batch), 0))
    texts = [batch.column(position).to_pylist() for position in choice.texts]
    carried = batch.select(choice.carried) if choice.carried else None
    return Block(values, texts, carried, named=choice.width is None)


def _of_numbers(pa: Any, batch: Any, position: int) -> npt.NDArray[Any]:
    name, column = batch.schema.names[position], batch.column(position)
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
    # A copy, since what is read-only is a type of its own to compiled code, for which all would be compiled again.
    return np.array(numbers_of(flat)).reshape(-1, K)


def numbers_of(column: Any) -> npt.NDArray[Any]:
    """The numbers of an array of Arrow without missing ones, where they are; `to_numpy` would import pandas first."""
    kind = column.type.to_pandas_dtype()
    if not len(column):
        return np.empty(0, kind)
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]
