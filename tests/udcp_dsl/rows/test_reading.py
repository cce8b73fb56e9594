"""Every kind of file gives the same matrix, and every bad file has its own message."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows import parts as array_files
from udcp_dsl.rows import text as text_tables
from udcp_dsl.rows.columns import truth
from udcp_dsl.rows.matrix import check_class_names, probabilities
from udcp_dsl.rows.parts import find_parts
from udcp_dsl.rows.roles import Columns
from udcp_dsl.rows.selection import ColumnSelection, ColumnSpec
from udcp_dsl.rows.source import read_column, read_rows
from udcp_dsl.rows.writing import write_sets

ABC = ["a", "b", "c"]
GOOD = np.array([[0.5, 0.25, 0.25], [0.1, 0.4, 0.5], [0.0, 1.0, 0.0]])


@pytest.fixture(params=["plain", "pyarrow"])
def csv_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both readers of CSV, whatever the size of the file."""
    monkeypatch.setattr(text_tables, "_PLAIN_CSV_BYTES", 0 if request.param == "pyarrow" else 1 << 60)
    return str(request.param)


def write_frame(path: Path, frame: pd.DataFrame) -> Path:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False, encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.stem == "stream":
        with pa.ipc.new_stream(path, table.schema) as out:
            out.write_table(table)
    else:
        pa.feather.write_feather(table, path)
    return path


TABLES = ["p.csv", "p.parquet", "p.arrow", "stream.arrow", "p.feather"]


# --- good files ---


@st.composite
def frames(draw: st.DrawFn) -> tuple[np.ndarray, list[str], list[int]]:
    n, K = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    number = st.floats(allow_nan=False, allow_infinity=False)
    values = np.array(draw(st.lists(st.lists(number, min_size=K, max_size=K), min_size=n, max_size=n)))
    text = st.text('ab|,"; é\n', min_size=1, max_size=4)
    labels = draw(st.lists(text, min_size=K, max_size=K, unique=True))
    return values, labels, draw(st.permutations(range(K)))


@pytest.mark.parametrize("name", TABLES)
@given(case=frames())
def test_tables_are_matched_by_name_and_keep_every_bit(
    name: str, tmp_path: Path, csv_reader: str, case: tuple[np.ndarray, list[str], list[int]]
) -> None:
    values, labels, order = case
    frame = pd.DataFrame(values[:, order], columns=[labels[i] for i in order])
    ids = [f"x,{i}" for i in range(len(values))]
    frame.insert(len(labels) // 2, "the id", ids)
    frame["site"] = [str(i % 2) for i in range(len(values))]
    frame["y"] = [labels[i % len(labels)] for i in range(len(values))]
    path = write_frame(tmp_path / name, frame)
    wanted = ColumnSpec(tuple(labels), columns=Columns(id_column="the id", group_column="site", truth_column="y"))
    for most in (None, 2):
        blocks = list(find_parts(path)[0].blocks(wanted, most))
        np.testing.assert_array_equal(np.concatenate([block.values for block in blocks]), values)
    rows = read_rows(path, labels, id_column="the id", group_column="site", truth_column="y", logits=True)
    np.testing.assert_array_equal(rows.P, probabilities(values, labels, logits=True))
    assert rows.ids is not None
    assert rows.groups is not None
    assert rows.ids.tolist() == ids
    assert rows.groups.tolist() == [str(i % 2) for i in range(len(values))]
    assert rows.truth.tolist() == [i % len(labels) for i in range(len(values))]


@pytest.mark.parametrize(
    ("dtype", "kept"), [(np.float16, np.float32), (np.float32,) * 2, (np.float64,) * 2, (np.int64, np.float64)]
)
def test_arrays_keep_their_precision(tmp_path: Path, dtype: type, kept: type) -> None:
    P = np.eye(3, dtype=dtype)[[2, 0]]
    np.save(tmp_path / "p.npy", P)
    np.savez(tmp_path / "one.npz", P)
    np.savez_compressed(tmp_path / "two.npz", P=P, other=np.zeros(4))
    for name in ("p.npy", "one.npz", "two.npz:P"):
        out = read_rows(tmp_path / name, ABC).P
        assert out.dtype == kept
        np.testing.assert_array_equal(out, P)
        np.testing.assert_array_equal(read_rows(str(tmp_path / name), ABC, class_names=["c", "b", "a"]).P, P[:, ::-1])
    frame = pd.DataFrame(P, columns=ABC)
    if dtype != np.float16:
        assert read_rows(write_frame(tmp_path / "p.parquet", frame), ABC).P.dtype == kept


def test_a_large_array_is_mapped_and_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "_MMAP_BYTES", 0)
    np.save(tmp_path / "p.npy", GOOD)
    values = read_rows(tmp_path / "p.npy", ABC).P
    assert values.base is not None
    assert isinstance(values.base.base, np.memmap)
    assert np.shares_memory(probabilities(values, ABC), values)


def test_byte_order_mark_quotes_blank_lines_and_crlf(tmp_path: Path, csv_reader: str) -> None:
    path = tmp_path / "p.csv"
    text = 'id,"b","a","c, or d"\r\n"x ""1""",0.25,0.5,0.25\r\n\r\n"two\r\nlines","0.5", 0.5 ,0\r\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    table = read_rows(path, ["a", "b", "c, or d"], id_column="id")
    np.testing.assert_array_equal(table.P, [[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]])
    assert table.ids is not None
    assert table.ids.tolist() == ['x "1"', "two\r\nlines"]
    path.write_bytes(b"\xef\xbb\xbfa,b,c\n0.5,0.5,0\n")
    np.testing.assert_array_equal(read_rows(path, ABC).P, [[0.5, 0.5, 0.0]])


def test_the_quick_reader_reads_what_the_plain_one_does(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes('\ufeffid,"b\n1",a\n"x, ""y""",0.1, 1e-300\n\n"two\nlines","nan",7\n'.encode())
    choice = ColumnSelection([2, 1], [0, 0])
    (quick,) = text_tables._quick_blocks(path, ["id", "b\n1", "a"], choice)
    (plain,) = text_tables.csv_blocks(path, lambda _, __: choice)  # small, so read by the plain reader
    np.testing.assert_array_equal(quick.values, plain.values)
    assert quick.texts == plain.texts == [['x, "y"', "two\nlines"]] * 2


def test_one_column_may_have_two_roles(tmp_path: Path, csv_reader: str) -> None:
    for name in TABLES:
        frame = pd.DataFrame(GOOD, columns=ABC).assign(site=["x", "y", "x"])
        table = read_rows(write_frame(tmp_path / name, frame), ABC, id_column="site", group_column="site")
        assert table.ids is not None
        assert table.groups is not None
        assert table.ids.tolist() == table.groups.tolist() == ["x", "y", "x"]


def test_columns_that_are_numbers(tmp_path: Path, csv_reader: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text("y,10,7,3\n7,0.5,0.25,0.25\n3,0,1,0\n")
    table = read_rows(path, ["3", "7", "10"], truth_column="y")
    np.testing.assert_array_equal(table.P, [[0.25, 0.25, 0.5], [0, 1, 0]])
    assert table.y is not None
    assert table.y.tolist() == [1, 0]


COLUMN: dict[str, list[Any]] = {"names": ["b", "c", "a"], "positions": [1, 2, 0]}


@pytest.mark.parametrize("kind", COLUMN)
@pytest.mark.parametrize("name", ["y.npy", "y.npz", "y.csv", "y.txt", "y.json", "y.parquet", "y.arrow", "y.feather"])
def test_columns_of_every_kind_of_file(tmp_path: Path, csv_reader: str, name: str, kind: str) -> None:
    y, path = COLUMN[kind], tmp_path / name
    if path.suffix == ".npy":
        np.save(path, np.array(y))
    elif path.suffix == ".npz":
        np.savez(path, y=np.array(y))
    elif path.suffix == ".txt":
        path.write_bytes("\ufeff".encode() + "\r\n".join(str(entry) for entry in y).encode() + b"\r\n\r\n")
    elif path.suffix == ".json":
        path.write_text(json.dumps(y))
    else:
        write_frame(path, pd.DataFrame({"y": y}))
    assert truth(read_column(path), ABC, 3).tolist() == [1, 2, 0]
    if path.suffix in (".csv", ".parquet", ".arrow", ".feather"):
        write_frame(path, pd.DataFrame({"id": [7, 8, 9], "y": y}))
        assert truth(read_column(path, "y"), ABC, 3).tolist() == [1, 2, 0]
        assert truth(read_column(f"{path}:y"), ABC, 3).tolist() == [1, 2, 0]
        assert list(read_column(f"{path}:id")) == [7, 8, 9]


def test_text_that_only_looks_like_a_number_stays_text(tmp_path: Path, csv_reader: str) -> None:
    path = tmp_path / "ids.csv"
    for cells in (["007", "1"], ["1.0", "2"], ["1e3", "4"], ["9" * 40, "1"]):
        path.write_text("id,x\n" + "".join(f"{cell},0\n" for cell in cells))
        assert read_column(path, "id") == cells


def test_an_empty_field_is_a_missing_value(tmp_path: Path, csv_reader: str) -> None:
    path = tmp_path / "y.csv"
    path.write_text("y\na\n\nb\n\n\n")
    assert read_column(path) == ["a", None, "b"]
    path.write_text("x,y\n1,a\n1,\n1,b\n")
    assert read_column(path, "y") == ["a", None, "b"]
    (tmp_path / "y.txt").write_text("1\n\n2\n")
    assert read_column(tmp_path / "y.txt") == [1, None, 2]


def test_a_file_with_a_colon_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "y.csv:z.txt").write_text("1\n2\n")
    assert read_column(tmp_path / "y.csv:z.txt") == [1, 2]


# --- bad files ---

BAD_CSV: dict[str, tuple[str, str]] = {
    "empty": ("", r"p\.csv: is empty"),
    "no rows": ("a,b,c\n", r"p\.csv: has no rows"),
    "no header": (
        "0.5,0.25,0.25\n0.5,0.5,0\n",
        r"p\.csv: has no header, its first line is numbers: write the names",
    ),
    "semicolons": ("a;b;c\n0.5;0.25;0.25\n", r"p\.csv: its fields are separated by ';', not by commas"),
    "too few": ("a,b,c\n0.5,0.25,0.25\n0.5,0.5\n", r"p\.csv: line 3: 2 fields, but the header has 3"),
    "too many": ("a,b,c\n\n0.5,0.25,0.25,0\n", r"p\.csv: line 3: 4 fields, but the header has 3"),
    "text": ("a,b,c\n0.5,0.25,0.25\n0.5,half,0\n", r"p\.csv: line 3, column 'b': 'half' is not a number"),
    "nothing": ("a,b,c\n0.5,,0.5\n", r"p\.csv: line 2, column 'b': '' is not a number"),
    "not available": ("a,b,c\n0.5,NA,0.5\n", r"p\.csv: line 2, column 'b': 'NA' is not a number"),
    "underscore": ("a,b,c\n1_0,0,0\n", r"p\.csv: line 2, column 'a': '1_0' is not a number"),
    "misspelt": ("a,B,c\n0.5,0.25,0.25\n", r"p\.csv: no column for label 'b' .* did you mean 'B'\?"),
    "extra": ("a,b,c,d\n0.5,0.25,0.25,1\n", r"p\.csv: column 'd' is not a label"),
    "twice": ("a,b,c,c\n0.5,0.25,0.25,1\n", r"p\.csv: column 'c' appears twice"),
    "open quote": ('a,b,c\n0.5,0.25,"0.25\n', r"p\.csv: line 2: is not CSV: unexpected end of data"),
}


@pytest.mark.parametrize(("text", "message"), BAD_CSV.values(), ids=BAD_CSV)
def test_bad_csv(tmp_path: Path, csv_reader: str, text: str, message: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_rows(path, ABC)


def test_csv_that_is_not_utf8(tmp_path: Path, csv_reader: str) -> None:
    path = tmp_path / "p.csv"
    for text in ("é,b\n0.5,0.5\n", "id,a,b\né,0.5,0.5\n"):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(InputError, match=r"p\.csv: is not UTF-8 text"):
            read_rows(path, ["a", "b"], id_column="id")


def test_bad_side_columns_name_the_file_and_the_row(tmp_path: Path, csv_reader: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text("id,y,a,b\nx,a,0.5,0.5\n,a,0.5,0.5\nz,aa,0.5,0.5\n")
    with pytest.raises(InputError, match=r"p\.csv: sample ids: row 1 \(counted from 0\) is missing"):
        read_rows(path, ["a", "b"], id_column="id", ignore=["y"])
    with pytest.raises(InputError, match=r"p\.csv: groups: row 1 \(counted from 0\) is missing"):
        read_rows(path, ["a", "b"], group_column="id", ignore=["y"])
    path.write_text("id,y,a,b\nx,a,0.5,0.5\nx,a,0.5,0.5\nz,aa,0.5,0.5\n")
    with pytest.raises(
        InputError, match=r"p\.csv: true labels: row 2 .* is 'aa', which is not a label; did you mean 'a'"
    ):
        read_rows(path, ["a", "b"], id_column="id", truth_column="y")
    with pytest.raises(InputError, match=r"p\.csv: there is no column 'ids'; did you mean 'id'"):
        read_rows(path, ["a", "b"], id_column="ids", truth_column="y")


def test_wrong_probabilities_name_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", GOOD * 2)
    with pytest.raises(InputError, match=r"p\.npy: probabilities: row 2, label 'b', is 2, which is"):
        read_rows(tmp_path / "p.npy", ABC)
    rows = read_rows(tmp_path / "p.npy", ABC, normalize=True)
    np.testing.assert_array_equal(rows.P, GOOD)


def test_of_one_row_the_others_are_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("id,y,a,b\nx,a,9,9\ny,b,0.25,0.75\n")
    rows = read_rows(path, ["a", "b"], id_column="id", truth_column="y", row=1)
    assert (rows.P.tolist(), rows.ids.tolist(), rows.truth.tolist()) == ([[0.25, 0.75]], ["y"], [1])  # type: ignore[union-attr]
    with pytest.raises(InputError, match=r"p\.csv: there is no row 2: rows are counted from 0, and there are 2"):
        read_rows(path, ["a", "b"], ignore=["id", "y"], row=2)


def test_absent_file_folder_and_ending(tmp_path: Path) -> None:
    np.save(tmp_path / "probs.npy", GOOD)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"prob\.npy: no such file; did you mean 'probs\.npy'\?"):
        read_rows(tmp_path / "prob.npy", ABC)
    for ending in (".npz", ".csv", ".parquet", ".arrow"):
        with pytest.raises(InputError, match=r"no such file$"):
            read_rows(tmp_path / "nowhere" / f"file{ending}", ABC)
    with pytest.raises(InputError, match=r"folder\.csv: a folder with no files of rows"):
        read_rows(tmp_path / "folder.csv", ABC)
    known = r"known: \.npy, \.npz, \.csv, \.parquet, \.arrow, \.feather, \.jsonl"
    with pytest.raises(InputError, match=rf"probs\.xlsx: unknown extension '\.xlsx'; {known}$"):
        read_rows("probs.xlsx", ABC)
    with pytest.raises(InputError, match=rf"unknown extension ''; {known}, \.txt, \.json$"):
        read_column("probs")
    with pytest.raises(InputError, match=r"unknown extension '\.txt'; known: .*\.jsonl, \.npy$"):
        write_sets(tmp_path / "sets.txt", mask=np.ones((1, 3), bool), labels=ABC)


@pytest.mark.parametrize("name", ["p.npy", "p.csv", "p.parquet"])
def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"anything")

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")  # as a superuser, the tests could read a locked file

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=rf"{name}: cannot be read: Permission denied"):
        read_rows(path, ABC)


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_an_array_that_is_not_what_it_says(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    path.write_text("a,b,c\n")
    with pytest.raises(InputError, match=rf"p\.{ending}: is, despite its extension, not a numpy \.{ending} file"):
        read_rows(path, ABC)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
def test_a_table_that_is_not_what_it_says(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    path.write_text("a,b,c\n0.5,0.25,0.25\n")
    with pytest.raises(InputError, match=rf"p\.{ending}: is, despite its extension, not a \.{ending} file"):
        read_rows(path, ABC)


def test_pickles_are_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = np.array([["a", 1]], dtype=object)
    np.save(tmp_path / "p.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "p.npz", objects)
    for name in ("p.npy", "p.npz"):
        with pytest.raises(InputError, match=rf"{name}: contains pickled Python objects, which are never loaded"):
            read_rows(tmp_path / name, ABC)
    monkeypatch.setattr(array_files, "_MMAP_BYTES", 0)
    with pytest.raises(InputError, match=r"p\.npy: contains pickled Python objects, which are never loaded"):
        read_rows(tmp_path / "p.npy", ABC)


@pytest.mark.parametrize("mmap", [0, 1 << 30])
@pytest.mark.parametrize("name", ["p.npy", "p.npz"])
def test_a_damaged_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, mmap: int) -> None:
    monkeypatch.setattr(array_files, "_MMAP_BYTES", mmap)
    path = tmp_path / name
    (np.save if name == "p.npy" else np.savez)(path, GOOD)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=rf"{name}: is damaged: "):
        read_rows(path, ABC)


def test_arrays_of_an_archive_must_be_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", train=GOOD, test=GOOD)
    with pytest.raises(InputError, match=r"p\.npz: contains 2 arrays \(train, test\): name one, as in p\.npz:KEY"):
        read_rows(tmp_path / "p.npz", ABC)
    with pytest.raises(InputError, match=r"p\.npz: there is no array 'tset'; did you mean 'test'\?"):
        read_rows(f"{tmp_path / 'p.npz'}:tset", ABC)


def test_arrays_are_of_the_right_shape_and_have_no_named_columns(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", GOOD)
    with pytest.raises(InputError, match=r"p\.npy: the probabilities have 3 columns, but there are 2 labels"):
        read_rows(tmp_path / "p.npy", ["a", "b"])
    with pytest.raises(InputError, match=r"p\.npy: an array has no column of ids or true labels: give a separate file"):
        read_rows(tmp_path / "p.npy", ABC, id_column="id", truth_column="y")
    with pytest.raises(InputError, match=r"p\.npy: a \.npy file has no named columns, so there is no 'y'"):
        read_column(tmp_path / "p.npy", "y")
    with pytest.raises(InputError, match=r"p\.csv: all columns are read; only an \.npz contains several matrices"):
        read_rows(tmp_path / "p.csv:a", ABC)


@pytest.mark.parametrize("name", ["p.parquet", "p.arrow"])
def test_bad_tables(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_frame(path, pd.DataFrame({"a": [0.5], "b": ["half"], "c": [0.0]}))
    with pytest.raises(InputError, match=rf"{name}: column 'b' contains \w*string, not numbers"):
        read_rows(path, ABC)
    write_frame(path, pd.DataFrame({"a": [0.5, 0.5], "b": [0.5, None], "c": [0.0, 0.0]}))
    with pytest.raises(InputError, match=rf"{name}: column 'b': row 1 \(counted from 0\) is missing"):
        read_rows(path, ABC)
    write_frame(path, pd.DataFrame({"a": [0.5], "b": [0.5], "C": [0.0]}))
    with pytest.raises(InputError, match=rf"{name}: no column for label 'c' .* did you mean 'C'"):
        read_rows(path, ABC)
    write_frame(path, pd.DataFrame({"a": [], "b": [], "c": []}, dtype=float))
    with pytest.raises(InputError, match=rf"{name}: has no rows"):
        read_rows(path, ABC)


@pytest.mark.parametrize("name", ["p.parquet", "p.arrow", "p.feather"])
def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = write_frame(tmp_path / name, pd.DataFrame(GOOD, columns=ABC))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"files need pyarrow: pip install 'udcp_dsl\[tables\]'"):
        read_rows(path, ABC)
    with pytest.raises(InputError, match=r"files need pyarrow: pip install 'udcp_dsl\[tables\]'"):
        write_sets(tmp_path / f"sets{path.suffix}", mask=np.ones((1, 3), bool), labels=ABC)
    assert os.listdir(tmp_path) == [name]
    monkeypatch.setattr(text_tables, "_PLAIN_CSV_BYTES", 0)
    pd.DataFrame(GOOD, columns=ABC).to_csv(tmp_path / "p.csv", index=False)
    np.testing.assert_array_equal(read_rows(tmp_path / "p.csv", ABC).P, GOOD)


BAD_COLUMNS: dict[str, tuple[str, str, str]] = {
    "several": ("y.csv", "id,y\n1,a\n", r"y\.csv: has 2 columns \(id, y\): name one, as in y\.csv:COLUMN"),
    "unknown": ("y.csv:Y", "id,y\n1,a\n", r"y\.csv: there is no column 'Y'; did you mean 'y'\?"),
    "no header": ("y.csv", "1\n0\n2\n", r"y\.csv: has no header, its first line is numbers: write the names"),
    "twice": ("y.csv:y", "y,y\n1,a\n", r"y\.csv: column 'y' appears twice"),
    "empty": ("y.txt", " \n", r"y\.txt: is empty"),
    "not JSON": ("y.json", "[1,\n2,,]", r"y\.json: is not JSON: .*line 2"),
    "deep JSON": ("y.json", "[" * 100_000, r"y\.json: is not JSON"),
    "an object": ("y.json", "{}", r"y\.json: contains a JSON dict, expected an array"),
}


@pytest.mark.parametrize(("name", "text", "message"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_bad_columns(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name.partition(":")[0]).write_text(text)
    with pytest.raises(InputError, match=message):
        read_column(tmp_path / name)


def test_an_array_that_swells_is_not_unpacked_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    P = np.zeros((50_000, 2))
    P[:, 0] = 1
    np.savez_compressed(tmp_path / "p.npz", P=P)
    assert len(read_rows(tmp_path / "p.npz", ("a", "b"))) == 50_000  # small enough, however far it shrank
    monkeypatch.setattr("udcp_dsl.rows.parts._UNPACKED_BYTES", 1 << 16)
    with pytest.raises(InputError, match=r"p\.npz: 'P' expands from [\d,]+ bytes to 800,128: if that is intended"):
        read_rows(tmp_path / "p.npz", ("a", "b"))
    varied = np.random.default_rng(0).dirichlet([1, 1], 50_000)
    np.savez_compressed(tmp_path / "p.npz", P=varied)
    assert len(read_rows(tmp_path / "p.npz", ("a", "b"))) == 50_000


def test_a_wide_header_with_one_name_twice_is_refused_in_one_pass(tmp_path: Path) -> None:
    names = [f"column{i}" for i in range(200_000)]  # each compared with all would take minutes
    (tmp_path / "wide.csv").write_text(",".join([*names, names[-1]]) + "\n")
    with pytest.raises(InputError, match="column 'column199999' appears twice"):
        read_rows(tmp_path / "wide.csv", names)
    with pytest.raises(InputError, match="class_names: 'column199999' appears twice"):
        check_class_names([*names, names[-1]], [*names, "last"])
