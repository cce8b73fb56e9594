"""Ids in files of sets: of the type, and in the column of the name, that they have in the table that was read."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.cluster.streams import predict_file, write_p_values
from udcp_dsl.rows.source import open_rows

LABELS = ["cat", "dog", "wolf"]
P = np.random.default_rng(0).dirichlet(np.ones(3), 6)


@pytest.fixture(scope="module")
def predictor() -> udcp.SetPredictor:
    return udcp.SetPredictor(size_of("cat dog wolf"), "lac", alpha=0.5).calibrate(np.eye(3), LABELS)


def table(ids: Any, name: str = "photo") -> pa.Table:
    return pa.table({**{label: P[:, j] for j, label in enumerate(LABELS)}, name: ids})


def answered(predictor: udcp.SetPredictor, source: Path, out: Path, **columns: Any) -> Any:
    rows = open_rows(source, LABELS, **columns)
    predict_file(predictor, rows, out, Fraction(1, 2))
    return pq.read_table(out) if out.suffix == ".parquet" else feather.read_table(out, memory_map=False)


TYPES = {
    "int64": pa.array(range(6)),
    "uint8": pa.array(range(6), pa.uint8()),
    "string": pa.array([f"x{i}" for i in range(6)]),
    "large_string": pa.array([f"x{i}" for i in range(6)], pa.large_string()),
    "double": pa.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5]),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_they_keep_their_type_and_name(
    predictor: udcp.SetPredictor, tmp_path: Path, kind: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("udcp_dsl.rows.source.BATCH", 6)  # two rows a batch
    pq.write_table(table(TYPES[kind]), tmp_path / "p.parquet")
    found = answered(predictor, tmp_path / "p.parquet", tmp_path / f"s.{ending}", id_column="photo")
    assert found.column_names == ["photo", "labels", "size", "cost"]
    assert found["photo"].combine_chunks() == TYPES[kind]


def test_those_of_a_dictionary_are_what_it_says(
    predictor: udcp.SetPredictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("udcp_dsl.rows.source.BATCH", 6)
    batches = [table(pa.array(ids).dictionary_encode()) for ids in (["a"] * 6, ["b", "c"] * 3)]
    with pa.ipc.new_stream(tmp_path / "p.arrow", batches[0].schema) as writer:
        for batch in batches:
            writer.write_table(batch)
    for ending in ("parquet", "arrow"):
        found = answered(predictor, tmp_path / "p.arrow", tmp_path / f"s.{ending}", id_column="photo")
        assert found["photo"].to_pylist() == ["a"] * 6 + ["b", "c"] * 3


@pytest.mark.parametrize("taken", ["size", "labels", "cost", "time"])
def test_a_name_that_is_taken_gives_way(predictor: udcp.SetPredictor, tmp_path: Path, taken: str) -> None:
    pq.write_table(table(list(range(6)), taken), tmp_path / "p.parquet")
    carry = ["time"] if taken == "time" else []
    found = answered(predictor, tmp_path / "p.parquet", tmp_path / "s.parquet", id_column=taken, carry=carry)
    assert found.column_names == ["id", "labels", "size", "cost", *carry]
    assert found["id"].to_pylist() == list(range(6))


def test_in_text(predictor: udcp.SetPredictor, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(
        "".join(json.dumps({"photo": i if i < 4 else f"x{i}", "p": row.tolist()}) + "\n" for i, row in enumerate(P))
    )
    source = open_rows(tmp_path / "p.jsonl", LABELS, id_column="photo")
    predict_file(predictor, source, tmp_path / "s.jsonl", Fraction(1, 2))
    written = [json.loads(line)["photo"] for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert written == [0, 1, 2, 3, "x4", "x5"]
    found = answered(predictor, tmp_path / "p.jsonl", tmp_path / "s.parquet", id_column="photo")
    assert found["photo"].to_pylist() == ["0", "1", "2", "3", "x4", "x5"]  # a column has one type
    pq.write_table(table(list(range(7, 13))), tmp_path / "p.parquet")
    source = open_rows(tmp_path / "p.parquet", LABELS, id_column="photo")
    predict_file(predictor, source, tmp_path / "s.csv", Fraction(1, 2))
    write_p_values(predictor, source, tmp_path / "q.csv")
    for name, header in (("s.csv", "photo,labels,size,cost"), ("q.csv", "photo,cat,dog,wolf")):
        lines = (tmp_path / name).read_text().splitlines()
        assert lines[0] == header
        assert [line.split(",")[0] for line in lines[1:]] == [str(i) for i in range(7, 13)]


@pytest.mark.parametrize("ids", [np.arange(6), list(range(6))])
def test_numbers_of_a_file_of_their_own_stay_numbers(predictor: udcp.SetPredictor, tmp_path: Path, ids: Any) -> None:
    np.save(tmp_path / "p.npy", P)
    found = answered(predictor, tmp_path / "p.npy", tmp_path / "s.parquet", beside={"ids": ids})
    assert found["id"].combine_chunks() == pa.array(range(6))
