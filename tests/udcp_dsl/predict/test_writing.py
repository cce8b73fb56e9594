"""Prediction sets are read back as they were written, and nothing partial is ever written."""

from __future__ import annotations

import csv
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from hypothesis import example, given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.files import atomic_write
from udcp_dsl.rows import writing
from udcp_dsl.rows.source import read_column
from udcp_dsl.rows.text import from_cell, to_cell
from udcp_dsl.rows.writing import write_sets

ABC = ["a", "b", "c"]


def read_sets(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    if path.suffix in (".arrow", ".feather"):
        return list(pa.feather.read_table(path).to_pylist())
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    with path.open(encoding="utf-8", newline="") as stream:
        rows: list[dict[str, Any]] = list(csv.DictReader(stream))
    for row in rows:
        row["id"] = from_cell(row["id"])
        as_json = row["labels"].startswith("[")
        row["labels"] = json.loads(row["labels"]) if as_json else row["labels"].split("|") if row["labels"] else []
        row["size"] = int(row["size"])
        if "cost" in row:
            row["cost"] = float(row["cost"])
    return rows


@st.composite
def prediction_sets(draw: st.DrawFn) -> tuple[np.ndarray, list[str], list[str] | None, np.ndarray | None]:
    n, K = draw(st.integers(0, 6)), draw(st.integers(1, 5))
    mask = np.array(draw(st.lists(st.lists(st.booleans(), min_size=K, max_size=K), min_size=n, max_size=n)), bool)
    labels = draw(st.lists(st.text("ab|,\"[ é\n=-'", max_size=3), min_size=K, max_size=K, unique=True))
    ids = draw(st.none() | st.lists(st.text("x,\"é=@+-'1.\t", min_size=1, max_size=3), min_size=n, max_size=n))
    number = st.floats(allow_nan=False, allow_infinity=False)
    costs = draw(st.none() | st.lists(number, min_size=n, max_size=n))
    return mask.reshape(n, K), labels, ids, None if costs is None else np.array(costs, float)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "csv", "jsonl"])
@given(case=prediction_sets())
def test_sets_are_read_back(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Any) -> None:
    monkeypatch.setattr(writing, "_BLOCK", 7)  # several blocks even of a small mask
    mask, labels, ids, costs = case
    path = tmp_path / f"sets.{ending}"
    write_sets(path, mask=mask, labels=labels, ids=ids, costs=costs, sizes=mask.sum(axis=1))
    names: list[Any] = list(range(len(mask))) if ids is None else ids
    if ending == "csv":
        names = [str(name) for name in names]
    expected = [
        {"id": name, "labels": [label for label, inside in zip(labels, row, strict=True) if inside], "size": row.sum()}
        for name, row in zip(names, mask, strict=True)
    ]
    if costs is not None:
        about = (lambda cost: pytest.approx(cost, rel=5e-12, abs=0)) if ending == "csv" else float
        expected = [row | {"cost": about(cost)} for row, cost in zip(expected, costs, strict=True)]
    assert read_sets(path) == expected
    assert os.listdir(tmp_path) == [path.name]


def test_sets_as_a_mask(tmp_path: Path) -> None:
    mask = np.array([[True, False, True], [False, False, False]])
    write_sets(tmp_path / "sets.npy", mask=mask, labels=ABC)
    np.testing.assert_array_equal(np.load(tmp_path / "sets.npy"), mask)


def test_sets_as_text(tmp_path: Path) -> None:
    mask = np.array([[True, False, True], [False, False, False]])
    path = tmp_path / "sets.csv"
    write_sets(path, mask=mask, labels=ABC, ids=["x", "y"], costs=np.array([1.5, 0.0]))
    assert path.read_text() == "id,labels,size,cost\nx,a|c,2,1.5\ny,,0,0.0\n"
    write_sets(path, mask=mask, labels=["a", "b|b", "c"])
    assert path.read_text() == 'id,labels,size\n0,"[""a"", ""c""]",2\n1,[],0\n'
    write_sets(tmp_path / "sets.jsonl", mask=mask, labels=ABC, ids=["x", "y"], costs=np.array([1.5, 0.0]))
    first = '{"id": "x", "labels": ["a", "c"], "size": 2, "cost": 1.5}\n'
    assert (tmp_path / "sets.jsonl").read_text().startswith(first)


def test_no_cell_of_a_csv_is_a_formula(tmp_path: Path) -> None:
    mask = np.array([[True, False], [True, True], [False, True], [False, False], [True, False]])
    ids = ["=1+1", "@anna", "-12", "+49 30", "'=x"]
    path = tmp_path / "sets.csv"
    write_sets(path, mask=mask, labels=["-1", "1"], ids=ids, costs=np.array([-1.0, -2.0, 0.0, 1.0, -1.5]))
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == ["'=1+1", "'@anna", "-12", "'+49 30", "''=x"]
    assert [row["labels"] for row in rows] == ['["-1"]', '["-1", "1"]', '["1"]', "[]", '["-1"]']
    assert [row["cost"] for row in rows] == ["-1.0", "-2.0", "0.0", "1.0", "-1.5"]  # numbers are numbers
    assert read_column(path, "id") == ids


@given(st.text("=+-@\t\r\n'1.e a|", max_size=5))
@example("'=1")  # an apostrophe of the text itself
@example("''=1")
def test_cells_are_read_back_and_begin_no_formula(text: str) -> None:
    cell = to_cell(text)
    assert from_cell(cell) == text
    if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and cell:
        float(cell)


@pytest.mark.parametrize("quick", [False, True])
def test_a_column_of_a_csv_loses_the_apostrophe_by_either_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: bool
) -> None:
    from udcp_dsl.rows import text as text_tables

    monkeypatch.setattr(text_tables, "_PLAIN_CSV_BYTES", 0 if quick else 1 << 30)
    (tmp_path / "t.csv").write_text("id,p\n'=x,0.5\n'tis,0.5\n-7,0.5\n''@,1\n")
    assert read_column(tmp_path / "t.csv", "id") == ["=x", "'tis", "-7", "'@"]


def test_a_csv_has_the_shortest_number_of_twelve_digits_and_every_other_format_all_of_them(tmp_path: Path) -> None:
    costs = np.array([0.1 + 0.2, 1 / 3, -2 / 3, 123456789012345.0, 1.1e-7 + 1e-23])
    mask = np.ones((len(costs), 3), dtype=bool)
    write_sets(tmp_path / "sets.csv", mask=mask, labels=ABC, costs=costs)
    with (tmp_path / "sets.csv").open(newline="") as stream:
        written = [row["cost"] for row in csv.DictReader(stream)]
    assert written == ["0.3", "0.333333333333", "-0.666666666667", "123456789012345.0", "1.1e-07"]
    for ending in ("jsonl", "parquet"):
        write_sets(tmp_path / f"sets.{ending}", mask=mask, labels=ABC, costs=costs)
        assert [row["cost"] for row in read_sets(tmp_path / f"sets.{ending}")] == costs.tolist()


BAD_SETS: dict[str, tuple[dict[str, Any], str]] = {
    "not boolean": ({"mask": np.ones((2, 3), int)}, r"the mask has dtype int64 and shape \(2, 3\), expected bool"),
    "wrong K": ({"mask": np.ones((2, 4), bool)}, r"shape \(2, 4\), expected bool and \(n, 3\)"),
    "ids": ({"ids": ["x"]}, r"ids: 1 entries for 2 sets"),
    "costs": ({"costs": np.ones(3)}, r"costs: 3 entries for 2 sets"),
    "infinite costs": ({"costs": np.array([1, np.inf])}, r"costs: row 1 is not a finite number"),
    "sizes": ({"sizes": np.array([3, 2])}, r"sizes: row 1 is not the size of its set"),
}


@pytest.mark.parametrize(("change", "message"), BAD_SETS.values(), ids=BAD_SETS)
def test_bad_sets(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        write_sets(tmp_path / "sets.csv", **({"mask": np.ones((2, 3), bool), "labels": ABC} | change))
    assert os.listdir(tmp_path) == []


# --- writing ---


def test_nothing_partial_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    for fault in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(fault), atomic_write(path) as temporary:  # noqa: PT012  the block is what is tested
            assert temporary.parent == tmp_path
            temporary.write_text("half of the n")
            assert path.read_text() == "old"
            raise fault
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["out.json"]
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.json"]


def test_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new") as temporary:
            temporary.write_text("x")
        (tmp_path / "kept").write_text("old")
        (tmp_path / "kept").chmod(0o604)
        with atomic_write(tmp_path / "kept") as temporary:
            temporary.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o604


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with atomic_write(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"nowhere/out: cannot be written: No such"),
        atomic_write(tmp_path / "nowhere/out"),
    ):
        pass
    for place in (tmp_path, Path(os.devnull)):
        with pytest.raises(InputError, match=rf"{place}: cannot be written: it is not a regular"), atomic_write(place):
            pass
    full = OSError(28, "No space left on device")
    with (
        pytest.raises(InputError, match=r"out: cannot be written: No space left on device"),
        atomic_write(tmp_path / "out"),
    ):
        raise full
    assert os.listdir(tmp_path) == []
