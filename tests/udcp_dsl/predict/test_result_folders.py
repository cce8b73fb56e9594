"""A folder of sets as others find it: read by polars, gone on with after its input was touched, written by one."""

from __future__ import annotations

import json
import os
import shutil
import threading
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.cli import main
from udcp_dsl.cluster import streams as predicting
from udcp_dsl.cluster.folders import ResultFolder, locked, open_folder
from udcp_dsl.cluster.streams import predict_parts
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.source import Source, open_rows

if TYPE_CHECKING:
    from tests.conftest import Sizes

LABELS = ["cat", "dog", "wolf"]
LEVEL = Fraction(3, 10)
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), 40)
Y = np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)


def made(seed: int = 0) -> udcp.SetPredictor:
    return udcp.SetPredictor(size_of("cat dog wolf"), "lac", alpha=0.3, seed=seed, randomize=seed > 0).calibrate(P, Y)


def write(folder: Path, number: int, values: np.ndarray) -> None:
    lists = pa.array(values.tolist(), pa.list_(pa.float64()))
    rows = range(10 * number, 10 * number + len(values))
    pq.write_table(pa.table({"photo": list(rows), "p": lists}), folder / f"part-{number}.parquet", compression="none")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "in").mkdir()
    for number in range(4):
        write(tmp_path / "in", number, P[10 * number : 10 * number + 10])
    return open_rows(tmp_path / "in", LABELS, id_column="photo")


def run(source: Source, out: Path, predictor: udcp.SetPredictor | None = None) -> int:
    predictor = predictor or made()
    return predict_parts(predictor, open_folder(out, ".parquet", predictor, source, LEVEL), LEVEL).n


def test_it_holds_parts_alone_which_polars_reads(tmp_path: Path, source: Source) -> None:
    assert run(source, tmp_path / "out") == 40
    assert pl.read_parquet(tmp_path / "out").columns == ["photo", "labels", "size", "cost"]
    assert pl.read_parquet(tmp_path / "out")["photo"].to_list() == list(range(40))
    assert (tmp_path / ".out.udcp.json").exists()
    assert run(source, tmp_path / "out") == 0


def test_where_nothing_can_be_written_beside_it_the_manifest_is_in_it(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert run(source, tmp_path / "out") == 40
    assert not (tmp_path / ".out.udcp.json").exists()
    assert (tmp_path / "out" / ".udcp.json").exists()
    assert run(source, tmp_path / "out") == 0


def test_a_folder_of_version_02_is_gone_on_with_as_it_was_begun(tmp_path: Path, source: Source) -> None:
    open_folder(tmp_path / "out", ".parquet", made(), source, LEVEL)
    content = json.loads((tmp_path / ".out.udcp.json").read_text())
    del content["folder"]
    (tmp_path / ".out.udcp.json").unlink()
    (tmp_path / "out" / "_udcp.json").write_text(json.dumps(content | {"format_version": 1}))
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "out" / "part-2.parquet")
    assert run(source, tmp_path / "out") == 30
    assert sorted(os.listdir(tmp_path / "out")) == ["_udcp.json", *(f"part-{i}.parquet" for i in range(4))]
    assert not (tmp_path / ".out.udcp.json").exists()
    table = pq.read_table(tmp_path / "out" / "part-1.parquet")
    assert table.column_names[0] == "id"
    assert table["id"].to_pylist() == [str(i) for i in range(10, 20)]


def test_a_folder_that_was_removed_or_replaced_is_another(tmp_path: Path, source: Source) -> None:
    run(source, tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    assert run(source, tmp_path / "out", made(seed=1)) == 40
    run(source, tmp_path / "other")
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "other").rename(tmp_path / "out")
    with pytest.raises(InputError, match="is not empty, and contains no sets of this command"):
        run(source, tmp_path / "out", made(seed=1))


def test_a_part_that_was_touched_is_accepted(tmp_path: Path, source: Source) -> None:
    run(source, tmp_path / "out")
    before = pl.read_parquet(tmp_path / "out")
    os.utime(tmp_path / "in" / "part-2.parquet", ns=(1, 1))
    assert run(source, tmp_path / "out") == 10  # whether it is the same is not known
    assert pl.read_parquet(tmp_path / "out").equals(before)
    assert run(source, tmp_path / "out") == 0


def test_a_part_of_the_same_size_with_another_content_gets_its_own_sets(tmp_path: Path, source: Source) -> None:
    run(source, tmp_path / "out")
    write(tmp_path / "in", 2, P[30:40])
    parts = open_folder(tmp_path / "out", ".parquet", made(), source, LEVEL)
    assert parts.remaining == (2,)  # and were it killed here:
    assert run(source, tmp_path / "out") == 10
    out = pl.read_parquet(tmp_path / "out")
    assert out["labels"][20:30].to_list() == out["labels"][30:40].to_list()
    write(tmp_path / "in", 2, P[30:39])
    with pytest.raises(InputError, match=r"part-2\.parquet has changed since prediction began"):
        run(source, tmp_path / "out")


def test_a_folder_is_written_by_one_process_at_a_time(tmp_path: Path, source: Source) -> None:
    pytest.importorskip("fcntl")
    predictor = made()
    parts = open_folder(tmp_path / "out", ".parquet", predictor, source, LEVEL)
    with locked(tmp_path / "out"):
        for again in (
            lambda: open_folder(tmp_path / "out", ".parquet", predictor, source, LEVEL),
            lambda: predict_parts(predictor, parts, LEVEL),
        ):
            with pytest.raises(InputError, match="out: another process is writing sets to it"):
                again()
    other = open_folder(tmp_path / "out", ".parquet", made(seed=1), source, LEVEL)  # nothing is in it yet
    with pytest.raises(InputError, match="out: another process writes other sets to it"):
        predict_parts(predictor, parts, LEVEL)
    assert predict_parts(made(seed=1), other, LEVEL).n == 40


def test_of_several_that_start_at_once_each_goes_on_or_is_told_why(
    tmp_path: Path, source: Source, sizes: Sizes
) -> None:
    pytest.importorskip("fcntl")
    predictor, told = made(), list[str]()

    def start(out: Path, barrier: threading.Barrier) -> None:
        barrier.wait()
        try:
            open_folder(out, ".parquet", predictor, source, LEVEL)
        except InputError as error:
            told.append(str(error))

    for number in range(sizes.examples):
        barrier = threading.Barrier(3)
        threads = [threading.Thread(target=start, args=(tmp_path / f"out{number}", barrier)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (tmp_path / f".out{number}.udcp.json").exists()
    assert all("another process is writing sets to it" in message for message in told), told


@pytest.fixture
def one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty rows in one file, in batches of 2 and so in pieces of 32."""
    monkeypatch.setattr("udcp_dsl.rows.source.BATCH", 6)
    lists = pa.array(P.tolist(), pa.list_(pa.float64()))
    pq.write_table(pa.table({"photo": list(range(40)), "p": lists}), tmp_path / "all.parquet", row_group_size=7)
    np.save(tmp_path / "all.npy", P)
    return tmp_path


@pytest.mark.parametrize("ending", [".parquet", ".npy"])
@pytest.mark.parametrize("length", [2, 6, 10, 32])
def test_a_large_file_has_its_sets_in_pieces_which_are_gone_on_with(
    one_file: Path, ending: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("udcp_dsl.cluster.folders._PIECE", length // 2)
    source, predictor, out = open_rows(one_file / f"all{ending}", LABELS), made(), one_file / "out"

    def opened() -> ResultFolder:
        return open_folder(out, ".parquet", predictor, source, LEVEL)

    parts = opened()
    many = -(-40 // length)
    assert len(parts.files) == many
    assert parts.files[1].name == f"all.from-{length:09}.parquet"
    assert predict_parts(predictor, parts, LEVEL).n == 40
    assert [pq.read_metadata(file).num_rows for file in parts.files] == [length] * (40 // length) + [40 % length] * (
        40 % length > 0
    )
    whole = pl.read_parquet(out)
    assert whole["id"].to_list() == list(range(40))
    assert whole["labels"].to_list() == [list(labels) for labels in predictor.predict_set(P).labels]
    bytes_before = {file: file.read_bytes() for file in parts.files}
    assert opened().remaining == ()
    some = sorted({1, many // 2, many - 1})
    for which in some:
        parts.files[which].unlink()
    assert opened().remaining == tuple(some)
    monkeypatch.setattr("udcp_dsl.cluster.folders._PIECE", 1000)  # it goes on as it was begun
    assert predict_parts(predictor, opened(), LEVEL).n == sum(min(length, 40 - length * which) for which in some)
    assert {file: file.read_bytes() for file in parts.files} == bytes_before


def test_a_fault_in_a_piece_is_named_by_the_row_of_the_file(one_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udcp_dsl.cluster.folders._PIECE", 5)
    wrong = P.copy()
    wrong[27] = np.nan
    write(one_file, 0, wrong)
    predictor, source = made(), open_rows(one_file / "part-0.parquet", LABELS)
    parts = open_folder(one_file / "out", ".parquet", predictor, source, LEVEL)
    for _ in range(2):  # the second begins where the first has ended
        with pytest.raises(InputError, match=r"part-0\.parquet: probabilities: row 27, label 'cat', is NaN"):
            predict_parts(predictor, parts, LEVEL)
        assert sorted(os.listdir(one_file / "out")) == [f"part-0.from-{start:09}.parquet" for start in (0, 10)]
        parts = open_folder(one_file / "out", ".parquet", predictor, source, LEVEL)
        assert parts.remaining == (2, 3)


def test_a_file_that_became_shorter_is_no_finished_piece(one_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udcp_dsl.cluster.folders._PIECE", 5)
    write(one_file, 0, P)
    predictor, source = made(), open_rows(one_file / "part-0.parquet", LABELS)
    parts = open_folder(one_file / "out", ".parquet", predictor, source, LEVEL)
    write(one_file, 0, P[:23])
    with pytest.raises(
        InputError, match=r"part-0\.parquet: ends after 23 rows, but had 30 before: was it changed meanwhile"
    ):
        predict_parts(predictor, parts, LEVEL)
    assert sorted(os.listdir(one_file / "out")) == [f"part-0.from-{start:09}.parquet" for start in (0, 10)]


def test_a_folder_of_version_2_has_one_part_for_a_file_however_large(one_file: Path) -> None:
    source, predictor = open_rows(one_file / "all.parquet", LABELS, id_column="photo"), made()
    open_folder(one_file / "out", ".parquet", predictor, source, LEVEL)
    content = json.loads((one_file / ".out.udcp.json").read_text())
    assert content.pop("rows") == 32
    (one_file / ".out.udcp.json").write_text(json.dumps(content | {"format_version": 2}))
    (one_file / "out" / "other.parquet").touch()  # else the folder is empty, and may be begun with anything
    parts = open_folder(one_file / "out", ".parquet", predictor, source, LEVEL)
    assert [file.name for file in parts.files] == ["all.parquet"]
    assert predict_parts(predictor, parts, LEVEL).n == 40


@pytest.mark.parametrize("output", ["sets.parquet", "out/"])
def test_an_interrupt_says_how_to_go_on(one_file: Path, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(one_file)
    monkeypatch.setattr("udcp_dsl.cluster.folders._PIECE", 5)
    made().save("pets.json")
    command = ["predict", "pets.json", "--probs", "all.parquet", "--id", "photo", "-o", output]
    predict_block, asked = predicting.predict_block, list[int]()

    def interrupted(*given: Any, first: int, **more: Any) -> Any:
        asked.append(first)
        if first >= 24:
            raise KeyboardInterrupt
        return predict_block(*given, first=first, **more)

    with monkeypatch.context() as patched:
        patched.setattr(predicting, "predict_block", interrupted)
        result = CliRunner().invoke(main, command)
    assert result.exit_code == 130
    last = result.stderr.splitlines()[-1]
    if output == "sets.parquet":
        assert "no sets were written; with a folder (-o sets/) finished parts are kept" in last
        assert not Path("sets.parquet").exists()
        return
    assert last == "interrupted: 2 of 4 parts are finished; rerun the command to continue"
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0
    assert "out/: 20 sets" in result.output
    assert "2 of 4 parts already existed" in result.output
    assert pl.read_parquet("out")["photo"].to_list() == list(range(40))
