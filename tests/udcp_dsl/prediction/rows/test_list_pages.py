"""Numbers of lists from the pages of a parquet file are those that Arrow decodes, or Arrow is left to decode them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.rows import list_pages
from udcp_dsl.prediction.rows.list_pages import Pages, all_equal, lists_begin, plain_pages
from udcp_dsl.prediction.rows.source import open_rows

PLAIN: dict[str, Any] = {"use_dictionary": False, "compression": "none"}


def pages_of(file: Path, K: int) -> Pages | None:
    with pq.ParquetFile(file) as parquet, file.open("rb", buffering=0) as bare:
        return plain_pages(parquet, bare, "p", parquet.schema_arrow.field("p").type, K)


def lists(values: np.ndarray, *, fixed: bool = False, nullable: bool = True) -> pa.Table:
    n, K = values.shape
    item = pa.field("element", pa.from_numpy_dtype(values.dtype), nullable=nullable)
    flat = pa.array(values.ravel(), item.type)
    if fixed:
        return pa.table({"p": pa.FixedSizeListArray.from_arrays(flat, type=pa.list_(item, K))})
    return pa.table({"p": pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32) * K, flat, type=pa.list_(item))})


@given(
    n=st.integers(1, 300),
    K=st.integers(1, 130),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    fixed=st.booleans(),
    nullable=st.booleans(),
    version=st.sampled_from(["1.0", "2.0"]),
    page=st.sampled_from([64, 1000, 1 << 20]),
    group=st.integers(1, 300),
    data=st.data(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_row_is_the_one_that_was_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    n: int,
    K: int,
    dtype: Any,
    fixed: bool,
    nullable: bool,
    version: Any,
    page: int,
    group: int,
    data: st.DataObject,
) -> None:
    monkeypatch.setattr(list_pages, "_FEW", 1)
    values = np.random.default_rng(n).random((n, K)).astype(dtype)
    file = tmp_path / "p.parquet"
    pq.write_table(
        lists(values, fixed=fixed, nullable=nullable),
        file,
        row_group_size=group,
        data_page_size=page,
        data_page_version=version,
        write_batch_size=data.draw(st.integers(1, 50)),
        **PLAIN,
    )
    pages = pages_of(file, K)
    assert pages is not None
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    with file.open("rb", buffering=0) as bare:
        np.testing.assert_array_equal(pages.read(bare, start, stop), values[start:stop])


def _levels(runs: list[tuple[str, list[int]]]) -> bytes:
    """Levels of one bit, in runs of one value or in groups of eight."""
    out = bytearray()
    for kind, bits in runs:
        header = len(bits) << 1 if kind == "one" else len(bits) // 8 << 1 | 1
        while header > 127:
            out.append(header & 127 | 128)
            header >>= 7
        out.append(header)
        out += bytes([bits[0]]) if kind == "one" else np.packbits(bits, bitorder="little").tobytes()
    return bytes(out)


@given(st.integers(1, 40), st.integers(0, 39), st.integers(1, 400), st.lists(st.integers(1, 5)), st.integers(-1, 399))
def test_levels_are_those_of_lists_of_one_length(K: int, phase: int, many: int, groups: list[int], wrong: int) -> None:
    phase %= K
    bits = [int((phase + i) % K != 0) for i in range(many)]
    if 0 <= wrong < many:
        bits[wrong] ^= 1
    runs, at, left = [], 0, list(groups)
    while at < many:
        alike = next((i for i in range(at, many) if bits[i] != bits[at]), many) - at
        if alike >= 8:
            runs.append(("one", bits[at : at + alike]))
            at += alike
        else:
            taken = 8 * (left.pop() if left else 1)
            padded = bits[at : at + taken]
            runs.append(("groups", padded + [0] * (-len(padded) % 8)))
            at += taken
    assert lists_begin(_levels(runs), phase, K, many) == (not 0 <= wrong < many)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_every_level_must_be_the_highest(level: int) -> None:
    width = level.bit_length()
    packed = np.packbits([level >> bit & 1 for _ in range(8) for bit in range(width)], bitorder="little").tobytes()
    assert all_equal(bytes([3]) + packed + bytes([8 << 1, level]), level, 16)
    assert not all_equal(bytes([3]) + packed + bytes([8 << 1, level - 1]), level, 16)
    assert not all_equal(bytes([3, *([0] * width)]), level, 8)


def random_rows(n: int = 200, K: int = 20) -> np.ndarray:
    return np.random.default_rng(1).dirichlet(np.ones(K), n).astype(np.float32)


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": True},
        {"compression": "snappy"},
        {"use_byte_stream_split": True},
        {"write_page_checksum": True},
        {"data_page_size": 64, "write_batch_size": 20},
    ],
    ids=str,
)
def test_what_needs_decoding_is_left_to_arrow(tmp_path: Path, options: dict[str, Any]) -> None:
    values = random_rows()
    pq.write_table(lists(values), tmp_path / "p.parquet", **{**PLAIN, **options})
    assert pages_of(tmp_path / "p.parquet", 20) is None
    np.testing.assert_array_equal(open_rows(tmp_path / "p.parquet", [str(y) for y in range(20)]).whole().P, values)


def test_lists_that_differ_are_left_to_arrow(tmp_path: Path) -> None:
    rows = random_rows(50).tolist()
    for change in ([None], [rows[0][:19]], [[*rows[0], 0.0]], [[*rows[0][:19], None]], [[]]):
        table = pa.table({"p": pa.array(rows[:30] + change + rows[30:], pa.list_(pa.float32()))})
        pq.write_table(table, tmp_path / "p.parquet", **PLAIN)
        assert pages_of(tmp_path / "p.parquet", 20) is None
    two = [rows[0][:19], [*rows[0], 0.0]]  # as many numbers as two rows have
    pq.write_table(pa.table({"p": pa.array(two * 30, pa.list_(pa.float32()))}), tmp_path / "p.parquet", **PLAIN)
    assert pages_of(tmp_path / "p.parquet", 20) is None


def test_columns_beside_come_along_row_by_row(tmp_path: Path) -> None:
    values, labels = random_rows(), [str(y) for y in range(20)]
    table = lists(values).append_column("id", pa.array([f"r{i}" for i in range(200)]))
    table = table.append_column("taken", pa.array(range(200)))
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=37, **PLAIN)
    assert pages_of(tmp_path / "p.parquet", 20) is not None
    batches = list(open_rows(tmp_path / "p.parquet", labels, id_column="id", carry=["taken"]).batches(23))
    np.testing.assert_array_equal(np.concatenate([batch.rows.P for batch in batches]), values)
    assert [name for batch in batches for name in batch.rows.ids] == [f"r{i}" for i in range(200)]  # type: ignore[union-attr]
    assert [i for batch in batches for i in batch.carried["taken"].to_pylist()] == list(range(200))
    assert all(len(batch.rows) <= 23 for batch in batches)


def test_a_fault_is_named_by_its_row(tmp_path: Path) -> None:
    values, labels = random_rows(), [str(y) for y in range(20)]
    values[150, 3] = np.nan
    pq.write_table(lists(values), tmp_path / "p.parquet", **PLAIN)
    assert pages_of(tmp_path / "p.parquet", 20) is not None
    with pytest.raises(InputError, match=r"p\.parquet: probabilities: row 150, label '3', is NaN"):
        for _ in open_rows(tmp_path / "p.parquet", labels).batches(40):
            pass


def test_a_damaged_file_is_never_worse_than_a_refusal(tmp_path: Path) -> None:
    """Whatever a byte of the pages is changed to: rows come out, or an error of our own."""
    labels = [str(y) for y in range(20)]
    pq.write_table(lists(random_rows()), tmp_path / "p.parquet", **PLAIN)
    whole = (tmp_path / "p.parquet").read_bytes()
    draw = random.Random(0)
    for _ in range(150):
        data = bytearray(whole)
        data[draw.randrange(4, 120)] = draw.randrange(256)
        (tmp_path / "p.parquet").write_bytes(data)
        try:
            assert open_rows(tmp_path / "p.parquet", labels).whole().P.shape == (200, 20)
        except InputError:
            continue
    pq.write_table(lists(random_rows()), tmp_path / "p.parquet", **PLAIN)
    pages = pages_of(tmp_path / "p.parquet", 20)
    assert pages is not None
    (tmp_path / "p.parquet").write_bytes(whole[:500])
    with (tmp_path / "p.parquet").open("rb", buffering=0) as bare, pytest.raises(EOFError):
        pages.read(bare, 0, 200)
