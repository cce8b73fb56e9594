"""Lists of numbers from parquet files, however they were written: the same rows, in bounded memory."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.source import open_rows

if TYPE_CHECKING:
    from tests.conftest import Sizes


def lists(values: np.ndarray, *, fixed: bool = False, nullable: bool = True) -> pa.Table:
    n, K = values.shape
    item = pa.field("element", pa.from_numpy_dtype(values.dtype), nullable=nullable)
    flat = pa.array(values.ravel(), item.type)
    if fixed:
        return pa.table({"p": pa.FixedSizeListArray.from_arrays(flat, type=pa.list_(item, K))})
    return pa.table({"p": pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32) * K, flat, type=pa.list_(item))})


@given(
    n=st.integers(1, 40),
    K=st.integers(1, 12),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    fixed=st.booleans(),
    nullable=st.booleans(),
    group=st.integers(1, 30),
    written=st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["none", "snappy", "zstd"]),
            "use_dictionary": st.booleans(),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "data_page_size": st.sampled_from([64, 1 << 20]),
            "write_page_checksum": st.booleans(),
        }
    ),
    most=st.integers(3, 20),
    length=st.integers(4, 45),
    data=st.data(),
)
def test_every_row_is_the_one_that_was_written(
    tmp_path: Path,
    n: int,
    K: int,
    dtype: Any,
    fixed: bool,
    nullable: bool,
    group: int,
    written: dict[str, Any],
    most: int,
    length: int,
    data: st.DataObject,
) -> None:
    """From whichever piece on; and blocks of a piece do not depend on where reading began."""
    values = np.random.default_rng(n).dirichlet(np.ones(K), n).astype(dtype)
    table = lists(values, fixed=fixed, nullable=nullable).append_column("id", pa.array([f"r{i}" for i in range(n)]))
    table = table.append_column("taken", pa.array(range(n)))
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=group, **written)
    source = open_rows(tmp_path / "p.parquet", [str(y) for y in range(K)], id_column="id", carry=["taken"])
    pieces = source.in_pieces(length)
    assert [part.rows for part in pieces.parts] == [min(length, n - at) for at in range(0, n, length)]
    which = data.draw(st.integers(0, len(pieces.parts) - 1))
    for some, first in ((source, 0), (pieces, 0), (pieces.part(which), which * length)):
        batches = list(some.batches(most))
        P = np.concatenate([batch.rows.P for batch in batches])
        numbers = range(first, first + len(P))
        np.testing.assert_array_equal(P, np.asarray(values[numbers], P.dtype))
        starts = [batch.start for batch in batches]
        assert starts == [row for part in some.parts for row in range(part.start, part.stop or n, most)]
        assert [name for batch in batches for name in batch.rows.ids] == [f"r{i}" for i in numbers]  # type: ignore[union-attr]
        assert [i for batch in batches for i in batch.carried["taken"].to_pylist()] == list(numbers)
        assert len(P) == sum(part.rows or 0 for part in some.parts)


def test_a_fault_is_named_by_its_row(tmp_path: Path) -> None:
    values = np.random.default_rng(0).dirichlet(np.ones(20), 200)
    values[150, 3] = np.nan
    pq.write_table(lists(values), tmp_path / "p.parquet", row_group_size=37)
    with pytest.raises(InputError, match=r"p\.parquet: probabilities: row 150, label '3', is NaN"):
        list(open_rows(tmp_path / "p.parquet", [str(y) for y in range(20)]).batches(40))


def test_a_damaged_file_is_never_worse_than_a_refusal(tmp_path: Path, sizes: Sizes) -> None:
    """Whatever a byte of the pages is changed to: rows come out, or an error of our own."""
    values = np.random.default_rng(0).dirichlet(np.ones(20), 200)
    pq.write_table(lists(values), tmp_path / "p.parquet")
    whole, draw = (tmp_path / "p.parquet").read_bytes(), random.Random(0)
    for _ in range(sizes.mutants):
        data = bytearray(whole)
        data[draw.randrange(4, 120)] = draw.randrange(256)
        (tmp_path / "p.parquet").write_bytes(data)
        try:
            assert open_rows(tmp_path / "p.parquet", [str(y) for y in range(20)]).whole().P.shape == (200, 20)
        except InputError:
            continue


def write_by_default(file: Path, n: int, K: int) -> None:
    """As pyarrow writes it: snappy, one row group."""
    many = min(n, 10_000)
    P = np.random.default_rng(0).dirichlet(np.ones(K), many).astype(np.float32)
    some = lists(P).append_column("y", pa.array([str(y) for y in P.argmax(axis=1)]))
    pq.write_table(pa.concat_tables([some] * (n // many)), file)
    assert pq.read_metadata(file).num_row_groups == 1


# The peak of anonymous memory, which is what grows where rows are held: files that are mapped do not count.
WATCHED = """
import re, sys, threading, time
from pathlib import Path
from udcp_dsl.cli import main
from udcp_dsl.rows import arrow as arrow_tables
from udcp_dsl.rows import source
peak = 0
def look():
    global peak
    peak = max(peak, int(re.search("RssAnon:[^0-9]+([0-9]+) kB", Path("/proc/self/status").read_text())[1]) / 1024)
"""
READ = """
source.BATCH, arrow_tables._READ_AHEAD = 1 << 18, 1 << 20
for name in ("few", "many"):
    for batch in source.open_rows(f"{sys.argv[1]}/{name}.parquet", [str(y) for y in range(200)]).batches():
        look()
    print(peak)
"""
RUN = """
def watch():
    while True:
        look()
        time.sleep(0.002)
threading.Thread(target=watch, daemon=True).start()
try:
    main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print(peak)
"""
LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how much memory is anonymous")


def printed(program: str, *arguments: object) -> list[float]:
    command = [sys.executable, "-c", WATCHED + program, *map(str, arguments)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [float(line) for line in lines if line.replace(".", "").isdecimal()]


@LINUX
def test_memory_does_not_grow_with_a_file_that_was_written_by_default(tmp_path: Path) -> None:
    """Of 80 MB a batch is held; with the pre-buffer of pyarrow, all of it."""
    write_by_default(tmp_path / "few.parquet", 10_000, 200)
    write_by_default(tmp_path / "many.parquet", 100_000, 200)
    few, many = printed(READ, tmp_path)
    assert many - few < 30, (few, many)


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["calibrate", "predict"])
def test_memory_of_commands_does_not_grow_with_a_file_that_was_written_by_default(tmp_path: Path, verb: str) -> None:
    (tmp_path / "s.loss").write_text("labels 0..399\nloss l = size\n")
    took = list[float]()
    for n in (40_000, 640_000):
        rows = tmp_path / f"{n}.parquet"
        write_by_default(rows, n, 400)
        asked = ("--truth", "y", "--oracle", "lac", "--alpha", "0.1", "-o", tmp_path / f"{n}.json")
        command = ("calibrate", tmp_path / "s.loss", "--probs", rows, *asked)
        if verb == "predict":
            if not took:
                printed(RUN, *command)
            command = (
                "predict",
                tmp_path / "40000.json",
                "--probs",
                rows,
                "--ignore",
                "y",
                "-o",
                tmp_path / f"sets{n}",
            )
        took.append(printed(RUN, *command)[-1])
    assert took[1] - took[0] < 150, took
