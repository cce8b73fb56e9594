"""The numbers of a parquet column of lists, straight from the pages of the file.

Parquet keeps no lengths of lists but two small integers, levels, for each number: whether a list begins with it, and
whether it is there. To decode them takes several times as long as to copy the numbers. Where every list has K entries
and none is missing, levels repeat themselves: that is seen by comparing bytes, and the numbers of a page, as they are
in memory, are then copied from the file to where they belong. Only pages that are neither compressed nor encoded, and
have no checksum, are read so; of all others, and of anything strange, `plain_pages` gives None: Arrow reads the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

_HEAD = 1 << 13  # bytes that are read of a page at first: its header, statistics included, and most often its levels
_FEW = 1 << 14  # numbers of a page, below which looking at its header takes longer than decoding it
_LONG = 1 << 12  # levels of a run that are in groups of eight: writers end one at some 500
_MOST_LEVELS = 1 << 24  # bytes of a page
_PHYSICAL = {"halffloat": "FIXED_LEN_BYTE_ARRAY", "float": "FLOAT", "double": "DOUBLE"}
_PLAIN, _RLE = 0, 3  # encodings, by parquet's numbers
_DATA, _DATA_V2 = 0, 3  # kinds of pages


class _Strange(Exception):
    """A page that is not as it is here supposed to be."""


@dataclass(frozen=True)
class Pages:
    """Where the numbers of n rows are: those from `firsts[i]` on, row after row, from byte `places[i]` of the file on.

    `firsts` has one entry more, the number of all.
    """

    K: int
    dtype: np.dtype[Any]
    firsts: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]

    def read(self, file: IO[bytes], start: int, stop: int) -> npt.NDArray[Any]:
        """The rows `start` to `stop` of the open file; EOFError where it has become shorter."""
        out = np.empty((stop - start, self.K), self.dtype)
        memory = memoryview(out.data).cast("B")
        size, first, last = self.dtype.itemsize, start * self.K, stop * self.K
        page = int(np.searchsorted(self.firsts, first, side="right")) - 1
        while first < last:
            end = min(last, int(self.firsts[page + 1]))
            at = int(self.places[page]) + (first - int(self.firsts[page])) * size
            _read_into(file, memory[(first - start * self.K) * size : (end - start * self.K) * size], at)
            first, page = end, page + 1
        return out


def plain_pages(parquet: Any, file: IO[bytes], name: str, kind: Any, K: int) -> Pages | None:
    """The pages of a ParquetFile, and of the same file opened, that hold the column `name`: lists of K numbers.

    `kind` is the type that Arrow gives it.
    """
    dtype = np.dtype(kind.value_type.to_pandas_dtype())
    leaves = [
        (i, leaf)
        for i, leaf in enumerate(parquet.schema.column(i) for i in range(len(parquet.schema)))
        if leaf.path.startswith(f"{name}.")
    ]
    if len(leaves) != 1 or _PHYSICAL.get(str(kind.value_type)) != leaves[0][1].physical_type or K < 1:
        return None
    position, leaf = leaves[0]
    if leaf.max_repetition_level != 1 or sys.byteorder != "little":
        return None
    firsts, places = [0], list[int]()
    try:
        for group in range(parquet.metadata.num_row_groups):
            of_group = parquet.metadata.row_group(group)
            chunk = of_group.column(position)
            begun = firsts[-1]
            for many, place in _chunk_pages(file, chunk, leaf.max_definition_level, K, dtype.itemsize):
                firsts.append(firsts[-1] + many)
                places.append(place)
            if firsts[-1] - begun != of_group.num_rows * K:
                return None
    except (_Strange, LookupError, TypeError, RecursionError):  # whatever a damaged header comes to
        return None
    return Pages(K, dtype, np.array(firsts), np.array(places, dtype=np.int64))


def _chunk_pages(file: IO[bytes], chunk: Any, present: int, K: int, size: int) -> Iterator[tuple[int, int]]:
    """Of each page of a column in a row group: how many numbers it has, and where they begin."""
    if chunk.compression != "UNCOMPRESSED" or chunk.has_dictionary_page:
        raise _Strange
    at, end, phase = chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size, 0
    while at < end:
        file.seek(at)
        head = file.read(_HEAD)
        fields, length = _struct(head, 0)
        if 4 in fields:  # a checksum, which Arrow is asked to look at
            raise _Strange
        after = at + length + fields[3]
        if fields[1] == _DATA:
            many, *encodings = (fields[5][i] for i in range(1, 5))
            begins, length = _sized(file, at, head, length)
            levels, length = _sized(file, at, head, length)
        elif fields[1] == _DATA_V2:
            many, *encodings = fields[8][1], fields[8][4], _RLE, _RLE
            begins, length = _some(file, at, head, length, fields[8][6])
            levels, length = _some(file, at, head, length, fields[8][5])
        else:
            raise _Strange
        body = at + length
        few = many < min(_FEW, chunk.num_values) and after < end
        if few or encodings != [_PLAIN, _RLE, _RLE] or after > end or not 0 < many * size == after - body:
            raise _Strange
        if not (all_equal(levels, present, many) and lists_begin(begins, phase, K, many)):
            raise _Strange
        yield many, body
        at, phase = after, (phase + many) % K


def lists_begin(levels: bytes, phase: int, K: int, many: int) -> bool:
    """Whether levels say that a list begins with every K-th number, of as many, of which the first is the phase-th.

    Levels are runs: of one bit over and over, or of groups of eight bits as they are. Once a run begins at the same
    phase as one before it, what is between the two most often repeats to the end, and bytes are compared.

    >>> lists_begin(bytes([2 << 1 | 1, 0b11101110, 0b11101110]), phase=0, K=4, many=16)
    True
    """
    at, done, repeats = 0, 0, True
    seen = dict[int, tuple[int, int]]()
    while done < many:
        here = (phase + done) % K
        if repeats and here in seen:
            first, before = seen[here]
            length, counted = at - first, done - before
            times = min((many - done) // counted, (len(levels) - at) // length)
            repeats = levels[at : at + times * length] == levels[first : first + times * length]
            seen.clear()
            if repeats and times:
                at, done = at + times * length, done + times * counted
                continue
        seen[here] = at, done
        count, value, at = _run(levels, at, 1)
        count = min(count, many - done)
        if isinstance(value, int):
            inside = here > 0 and here + count <= K if value else here == 0 and (count == 1 or K == 1)
            if not inside:
                return False
        elif count > _LONG or _begun(here, count, K) != int.from_bytes(value, "little") & ((1 << count) - 1):
            return False
        done += count
    return True


def _begun(here: int, count: int, K: int) -> int:
    """As many bits, the first the lowest, that are 0 where a list of K begins, when `here` of one came before."""
    bits = (1 << count) - 1
    for place in range(-here % K, count, K):
        bits ^= 1 << place
    return bits


def all_equal(levels: bytes, level: int, many: int) -> bool:
    """Whether as many levels are all this one, the highest: every number is there.

    >>> all_equal(bytes([100 << 1 & 127 | 128, 1, 3]), 3, 100)
    True
    """
    width = level.bit_length()
    at, done = 0, 0
    while done < many:
        count, value, at = _run(levels, at, width)
        count = min(count, many - done)
        if isinstance(value, int):
            if value != level:
                return False
        elif (_unpacked(value, width)[:count] != level).any():
            return False
        done += count
    return True


def _run(levels: bytes, at: int, width: int) -> tuple[int, int | bytes, int]:
    """How many levels a run has, the one that all of them are or the bytes that they are in, and where the run ends."""
    header, at = _whole(levels, at)
    if header < 2:
        raise _Strange
    if header & 1:
        end = at + (header >> 1) * width
        if end > len(levels):
            raise _Strange
        return (header >> 1) * 8, levels[at:end], end
    return header >> 1, levels[at], at + 1


def _unpacked(packed: bytes, width: int) -> npt.NDArray[np.int64]:
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little").reshape(-1, width)
    return np.asarray(bits @ (1 << np.arange(width)), dtype=np.int64)


def _whole(data: bytes, at: int) -> tuple[int, int]:
    """A whole number in groups of seven bits, the lowest first, and where it ends."""
    if (value := data[at]) < 128:
        return value, at + 1
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise _Strange


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct in Thrift's compact protocol by their numbers, and where it ends."""
    fields, number = dict[int, Any](), 0
    while (byte := data[at]) != 0:
        if byte >> 4:
            number, at = number + (byte >> 4), at + 1
        else:
            number, at = _signed(data, at + 1)
        fields[number], at = _value(data, at, byte & 15)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (4, 5, 6):
        return _signed(data, at)
    if kind in (1, 2):  # true and false, in the kind itself
        return kind == 1, at
    if kind == 8:  # bytes
        length, at = _whole(data, at)
        return None, at + length
    if kind == 12:
        return _struct(data, at)
    raise _Strange  # no header of a page of data has any other


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _whole(data, at)
    return (value >> 1) ^ -(value & 1), at


def _sized(file: IO[bytes], at: int, head: bytes, first: int) -> tuple[bytes, int]:
    """Bytes after a count of them, and where they end."""
    count, first = _some(file, at, head, first, 4)
    return _some(file, at, head, first, int.from_bytes(count, "little"))


def _some(file: IO[bytes], at: int, head: bytes, first: int, many: int) -> tuple[bytes, int]:
    """As many bytes of a page, from its byte `first` on, and where they end; what begins it was read already."""
    if not 0 <= many <= _MOST_LEVELS:
        raise _Strange
    if first + many <= len(head):
        return head[first : first + many], first + many
    file.seek(at + first)
    return file.read(many), first + many


def _read_into(file: Any, memory: memoryview, at: int) -> None:
    file.seek(at)
    while len(memory):
        many = file.readinto(memory)
        if not many:
            raise EOFError("the file has become shorter")
        memory = memory[many:]
