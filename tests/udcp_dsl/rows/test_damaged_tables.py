"""Tables that are cut or damaged: an error that names the file, or a warning, and no traceback."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from udcp_dsl import InputError
from udcp_dsl.rows.parts import find_parts, stream_part
from udcp_dsl.rows.selection import ColumnSpec
from udcp_dsl.rows.source import Source, open_rows, read_column, read_rows

LABELS = ["ham", "spam", "eggs"]
P = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.125, 0.125, 0.75]])
NUMBERS = {label: P[:, j] for j, label in enumerate(LABELS)}


def streamed(batches: int) -> tuple[bytes, bytes]:
    """An Arrow stream, and the same without the mark at its end."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.table(NUMBERS).schema) as writer:
        for _ in range(batches):
            writer.write_table(pa.table(NUMBERS))
        cut = sink.getvalue()
    return sink.getvalue(), cut


def test_a_stream_that_is_cut_between_batches_is_warned_of(tmp_path: Path) -> None:
    whole, cut = streamed(2)

    def read(data: bytes) -> Any:
        part = stream_part(io.BufferedReader(io.BytesIO(data)))  # type: ignore[arg-type]
        return Source((part,), ColumnSpec(tuple(LABELS))).whole()

    def from_file(data: bytes) -> Any:
        (tmp_path / "p.arrow").write_bytes(data)
        return read_rows(tmp_path / "p.arrow", LABELS)

    for way in (read, from_file):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(way(whole)) == 6
        with pytest.warns(UserWarning, match="the Arrow stream has no end marker: it may be truncated"):
            assert len(way(cut)) == 6


class Broken:
    """A file of pyarrow whose description leads nowhere."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise self._error


@pytest.mark.parametrize("error", [IndexError("row group index 3 out of range"), KeyError("p"), OverflowError("large")])
@pytest.mark.parametrize("where", ["read_metadata", "read_schema", "ParquetFile"])
def test_whatever_pyarrow_raises_of_a_damaged_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, where: str
) -> None:
    pq.write_table(pa.table(NUMBERS), tmp_path / "p.parquet")
    monkeypatch.setattr(pq, where, Broken(error))
    part = find_parts(tmp_path / "p.parquet")[0]
    asks: dict[str, Any] = {"read_metadata": lambda: part.rows, "read_schema": part.schema}
    ask = asks.get(where, lambda: read_rows(tmp_path / "p.parquet", LABELS))
    with pytest.raises(InputError, match=r"p\.parquet: is, despite its extension, not a \.parquet file"):
        ask()


def as_number_of_rows(n: int) -> bytes:
    """The header and the value of a field of 64 bits in a footer, for a number that takes two bytes."""
    return bytes([0x16, (2 * n & 127) | 128, 2 * n >> 7])


def claiming(file: Path, groups: tuple[int, ...], which: int, said: int, rows: int) -> None:
    """A parquet file with row groups of these sizes; the footer says another size for one, and `rows` for the file."""
    labels = {label: np.full(sum(groups), value) for label, value in zip(LABELS, (0.5, 0.25, 0.25), strict=True)}
    table = pa.table({**labels, "id": range(sum(groups))})
    with pq.ParquetWriter(file, table.schema) as writer:
        for at, size in zip(np.cumsum((0, *groups)).tolist(), groups, strict=False):
            writer.write_table(table.slice(at, size), row_group_size=size)
    data = file.read_bytes()
    for told, instead in ((groups[which], said), (sum(groups), rows)):
        at = data.rindex(as_number_of_rows(told))  # of a group, the last such number; those of its columns come before
        data = data[:at] + as_number_of_rows(instead) + data[at + 3 :]
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("groups", "which", "said", "rows", "most", "read", "message"),
    [
        ((600, 400), 0, 600, 1100, 100, 0, "its footer says 1,100 rows, but those of its row groups sum to 1,000"),
        ((600, 400), 0, 600, 900, 100, 0, "its footer says 900 rows, but those of its row groups sum to 1,000"),
        ((600, 400), 0, 700, 1100, 100, 600, r"row group 0 has 600 rows, but the footer says 700 \(groups are counted"),
        ((600, 400), 0, 700, 1100, 5000, 0, "row groups 0 to 1 have 1,000 rows, but the footer says 1,100"),
        # The first 1,100 rows would end with 30 of the third group.
        ((1000, 70, 400), 1, 200, 1600, 1100, 0, "row groups 1 to 2 have 470 rows, but the footer says 600"),
    ],
)
def test_row_groups_with_other_rows_than_the_footer_says(
    groups: tuple[int, ...], which: int, said: int, rows: int, most: int, read: int, message: str, tmp_path: Path
) -> None:
    """No row of a group is taken for one of the group before."""
    claiming(tmp_path / "p.parquet", groups, which, said, rows)
    found: list[int] = []
    batches = open_rows(tmp_path / "p.parquet", LABELS, id_column="id").batches(most)
    with pytest.raises(InputError, match=rf"p\.parquet: is damaged: {message}"):
        found.extend(len(batch.rows) for batch in batches)
    assert sum(found) == read
    with pytest.raises(InputError, match=r"p\.parquet: is damaged"):
        read_column(tmp_path / "p.parquet", "id")


def test_a_flipped_bit_is_an_input_error_that_names_the_file(tmp_path: Path) -> None:
    """Lists that are read without decoding, and ids beside them. Of the pages: in the sizes of levels that come after
    them a wrong one ends the process, in pyarrow, before anything can be raised."""
    lists = pa.array(P.astype(np.float32).tolist(), pa.list_(pa.float32(), 3))
    file = tmp_path / "p.parquet"
    pq.write_table(pa.table({"id": ["a", "b", "c"], "p": lists}), file, use_dictionary=["id"], compression="none")
    good = file.read_bytes()
    messages = []
    for bit in [*range(0, 1600, 8), 41, *range(272, 279), 329, 330]:
        data = bytearray(good)
        data[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(data)
        for read in (lambda: read_rows(file, LABELS, id_column="id"), lambda: read_column(file, "id")):
            try:
                read()
            except InputError as error:
                messages.append(str(error))
    assert len(messages) > 20
    assert all("p.parquet: " in message for message in messages)
