"""Rows from files of every kind, in parts and batches: those of one array, and faults that are named by their place."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.parts import find_parts, stream_part
from udcp_dsl.rows.source import Source, open_rows, read_column, read_rows

LABELS = ("cat", "dog", "wolf")
P = np.random.default_rng(0).dirichlet(np.ones(3), 23).astype(np.float32)
IDS = [f"photo{i}" for i in range(23)]
TRUTH = [LABELS[i % 3] for i in range(23)]
FLOATS = {np.float16: pa.float16(), np.float32: pa.float32(), np.float64: pa.float64()}


def table(rows: slice = slice(None), kind: str = "list", dtype: Any = np.float32, **change: Any) -> pa.Table:
    part = P[rows].astype(dtype)
    n = len(part)
    columns: dict[str, Any] = {"photo": IDS[rows], "truth": TRUTH[rows], "taken": list(range(n))}
    flat = pa.array(part.ravel(), FLOATS[dtype])
    if kind == "list":
        columns["p"] = pa.ListArray.from_arrays(pa.array(np.arange(0, 3 * n + 1, 3), pa.int32()), flat)
    elif kind == "fixed":
        columns["p"] = pa.FixedSizeListArray.from_arrays(flat, 3)
    else:
        del columns["taken"]
        columns |= {label: part[:, j] for j, label in enumerate(LABELS)}
    return pa.table(columns | change)


def write(path: Path, made: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(made, path, row_group_size=5)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in made.to_pylist()))
    elif path.stem == "stream":
        with pa.ipc.new_stream(path, made.schema) as out:
            out.write_table(made, max_chunksize=7)
    else:
        with pa.ipc.new_file(path, made.schema) as out:
            out.write_table(made, max_chunksize=7)
    return path


def opened(path: object, **more: Any) -> Source:
    return open_rows(str(path), LABELS, id_column="photo", truth_column="truth", **more)


def assert_same(source: Source, most: int | None, dtype: Any = np.float32) -> None:
    batches = list(source.batches(most))
    if most is not None:
        assert all(len(batch.rows) <= most for batch in batches)
    kept = (
        np.float64 if source.parts[0].ending == ".jsonl" else max(dtype, np.float32, key=lambda d: np.dtype(d).itemsize)
    )
    np.testing.assert_array_equal(np.concatenate([b.rows.P for b in batches]), P.astype(dtype).astype(kept))
    assert [name for b in batches if b.rows.ids is not None for name in b.rows.ids] == IDS
    assert np.concatenate([b.rows.truth for b in batches]).tolist() == [i % 3 for i in range(23)]
    assert [batch.at for batch in batches] == np.cumsum([0, *(len(b.rows) for b in batches)])[:-1].tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["list", "fixed", "columns"])
@pytest.mark.parametrize("name", ["p.parquet", "p.arrow", "stream.arrow", "p.feather", "p.jsonl"])
def test_every_layout_of_every_table_gives_the_same_rows(tmp_path: Path, name: str, kind: str, dtype: Any) -> None:
    path = write(tmp_path / name, table(kind=kind, dtype=dtype))
    for most in (None, 1, 4, 100):
        assert_same(opened(path), most, dtype)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_parts_are_read_in_the_order_of_their_numbers(tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, start in {1: 0, 2: 6, 10: 16}.items():
        write(folder / f"part-{number}.{ending}", table(slice(start, {1: 6, 2: 16, 10: 23}[number])))
    (folder / "_SUCCESS").touch()
    (folder / ".part.crc").touch()
    for given in (folder, f"{folder}/part-*.{ending}", f"{tmp_path}/**/part-*.{ending}"):
        source = opened(given)
        assert [part.path.name for part in source.parts] == [f"part-{i}.{ending}" for i in (1, 2, 10)]
        assert source.rows == (23 if ending == "parquet" else None)
        assert_same(source, 4)
        assert [(b.part, b.start) for b in source.batches(6)][:2] in ([(0, 0), (1, 0)], [(0, 0), (0, 5)])
    np.testing.assert_array_equal(source.whole().P.astype(np.float32), P)
    np.testing.assert_array_equal(source.one(7).P.astype(np.float32), P[7:8])


def test_lists_may_be_in_the_order_of_class_names(tmp_path: Path) -> None:
    path = write(tmp_path / "p.parquet", table())
    rows = opened(path, class_names=["wolf", "cat", "dog"]).whole()
    np.testing.assert_array_equal(rows.P, P[:, [1, 2, 0]])
    named = write(tmp_path / "n.parquet", table(kind="columns"))  # which name themselves
    np.testing.assert_array_equal(opened(named, class_names=["wolf", "cat", "dog"]).whole().P, P)


def test_other_columns_are_carried_along_on_request(tmp_path: Path) -> None:
    for name in ("p.parquet", "p.arrow", "p.jsonl"):
        batches = list(opened(write(tmp_path / name, table()), carry=["taken"]).batches(4))
        assert [x for batch in batches for x in batch.carried.column("taken").to_pylist()] == list(range(23))


def test_an_array_is_mapped_a_batch_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udcp_dsl.rows.parts._MMAP_BYTES", 0)
    for order in ("C", "F"):
        np.save(tmp_path / "p.npy", np.asarray(P, order=order))
        source = open_rows(tmp_path / "p.npy", LABELS, beside={"true labels": TRUTH})
        assert source.rows == 23
        batches = list(source.batches(5))
        np.testing.assert_array_equal(np.concatenate([batch.rows.P for batch in batches]), P)
        assert all(batch.rows.P.flags.writeable for batch in batches)
        assert np.concatenate([b.rows.truth for b in batches]).tolist() == [i % 3 for i in range(23)]


def test_a_stream_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    made = table(kind="columns")
    arrow = write(tmp_path / "stream.arrow", made).read_bytes()
    lines = write(tmp_path / "p.jsonl", made).read_bytes()
    text = made.to_pandas().to_csv(index=False).encode()
    for content in (arrow, lines, text):
        source = Source((stream_part(io.BufferedReader(io.BytesIO(content))),), opened(tmp_path / "p.jsonl").wanted)  # type: ignore[arg-type]
        np.testing.assert_allclose(np.concatenate([b.rows.P for b in source.batches(4)]), P, rtol=1e-6)
    with pytest.raises(InputError, match=r"-: parquet cannot be read from a stream"):
        stream_part(io.BufferedReader(io.BytesIO(b"PAR1")))  # type: ignore[arg-type]


def test_a_column_of_json_lines(tmp_path: Path) -> None:
    assert read_column(write(tmp_path / "p.jsonl", table()), "photo") == IDS


def nan(row: int) -> np.ndarray:
    wrong = P.copy()
    wrong[row, 1] = np.nan
    return wrong


def lists(rows: list[Any]) -> pa.Array:
    return pa.array(rows, pa.list_(pa.float32()))


BAD: dict[str, tuple[Any, str]] = {
    "NaN": (lists(nan(19).tolist()), r"part-1\.parquet: probabilities: row 19, label 'dog', is NaN \(counted from 0\)"),
    "missing": (lists([*P[:9].tolist(), None, *P[10:].tolist()]), r"column 'p': row 9 \(counted from 0\) is missing"),
    "missing entry": (
        lists([*P[:9].tolist(), [0.5, None, 0.5], *P[10:].tolist()]),
        r"part-1\.parquet: column 'p': row 9, entry 1 \(both counted from 0\), is missing",
    ),
    "short": (lists([*P[:22].tolist(), [1.0]]), r"row 22 \(counted from 0\) has 1 entries, but there are 3 labels"),
    "of another type": (
        pa.array(P.tolist(), pa.list_(pa.float64())),
        r"part-1\.parquet: its schema differs: column 'p' contains list<element: double>, but list<element: float>",
    ),
    "text": (pa.array([["x"] * 3] * 23), r"its schema differs: column 'p' contains list<element: string>"),
    "not there": (None, r"part-1\.parquet: no column for label 'cat'"),
}


@pytest.mark.parametrize(("column", "message"), BAD.values(), ids=BAD)
def test_a_fault_is_named_by_part_and_row(tmp_path: Path, column: Any, message: str) -> None:
    write(tmp_path / "part-0.parquet", table())
    made = table(p=column) if column is not None else table().drop_columns("p").drop_columns("taken")
    write(tmp_path / "part-1.parquet", made)
    with pytest.raises(InputError, match=message):
        list(opened(tmp_path).batches(4))


def test_faults_of_parts_as_wholes(tmp_path: Path) -> None:
    write(tmp_path / "part-0.parquet", table())
    write(tmp_path / "part-1.parquet", table().slice(0, 0))
    with pytest.raises(InputError, match=r"part-1\.parquet: has no rows"):
        list(opened(tmp_path).batches())
    whole = write(tmp_path / "part-1.parquet", table()).read_bytes()
    (tmp_path / "part-1.parquet").write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"part-1\.parquet: (is, despite its extension, not|cannot be read)"):
        list(opened(tmp_path).batches())
    (tmp_path / "part-1.parquet").unlink()
    (tmp_path / "part-1.csv").write_text("x")
    with pytest.raises(InputError, match=r"contains files of two kinds, part-0\.parquet and part-1\.csv"):
        find_parts(tmp_path)
    with pytest.raises(InputError, match=r"nothing\*\.parquet: a pattern with no files of rows"):
        find_parts(f"{tmp_path}/nothing*.parquet")


def test_two_columns_of_lists_must_be_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "p.parquet", table(q=table()["p"]))
    with pytest.raises(InputError, match="columns 'p' and 'q' contain lists: name the column of probabilities"):
        opened(path).whole()
    np.testing.assert_array_equal(opened(path, column="q").whole().P, P)
    for column, message in {"r": "there is no column 'r'", "photo": "column 'photo' must contain one list"}.items():
        with pytest.raises(InputError, match=message):
            opened(path, column=column).whole()


def test_true_labels_are_names_or_positions_in_all_parts(tmp_path: Path) -> None:
    write(tmp_path / "part-0.jsonl", table())
    write(tmp_path / "part-1.jsonl", table(truth=[0] * 23))
    with pytest.raises(InputError, match=r"part-1\.jsonl: true labels: some are names and some are numbers"):
        read_rows(tmp_path, LABELS, truth_column="truth")


JSON = {
    "not JSON": ('{"p": [1, 0, 0]}\n{"p": [1,\n', r"p\.jsonl: line 2: is not JSON"),
    "an array": ('{"p": [1, 0, 0]}\n[1, 0, 0]\n', r"line 2: contains a JSON list, expected one object per line"),
    "a key less": ('{"p": [1, 0, 0]}\n{"q": 1}\n', r"line 2: has no 'p', which the first line has"),
    "too short": ('{"p": [1, 0, 0]}\n{"p": [1, 0]}\n', r"line 2: the list of probabilities has 2 entries"),
    "text": ('{"p": [1, 0, 0]}\n{"p": [1, 0, "x"]}\n', r"line 2: 'x' is not a number"),
    "nothing": ("\n", r"p\.jsonl: is empty"),
}


@pytest.mark.parametrize(("text", "message"), JSON.values(), ids=JSON)
def test_bad_json_lines(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.jsonl").write_text(text)
    with pytest.raises(InputError, match=message):
        read_rows(tmp_path / "p.jsonl", LABELS)
