"""Sets of rows in batches and parts are those of one array; a folder is gone on with, and never mixed."""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from click.testing import CliRunner

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.cli import main
from udcp_dsl.cluster.folders import open_folder, refuse_shared_ids
from udcp_dsl.cluster.streams import predict_file, predict_parts, write_p_values
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.parts import stream_part
from udcp_dsl.rows.source import open_rows

LABELS = ["cat", "dog", "wolf"]
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), 60)
Y = np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)
SITES = np.array(["north", "south"])[np.arange(60) % 2]


def made(**options: Any) -> udcp.SetPredictor:
    groups = SITES if options.get("conditional") == "group" else None
    return udcp.SetPredictor(size_of("cat dog wolf"), "lac", alpha=0.3, **options).calibrate(P, Y, groups=groups)


def batch(rows: slice = slice(None), **more: Any) -> pa.RecordBatch:
    ids = [f"photo{i}" for i in range(60)][rows]
    lists = pa.array(P[rows].tolist(), pa.list_(pa.float64()))
    taken = pa.array(np.arange(60)[rows])
    return pa.record_batch({"photo": ids, "site": SITES[rows].tolist(), "taken": taken, "p": lists, **more})


def in_parts(folder: Path, many: int = 4) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(60), many)):
        table = pa.Table.from_batches([batch(slice(rows[0], rows[-1] + 1))])
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=4)
    return folder


@pytest.mark.parametrize("options", [{}, {"conditional": "group"}, {"conditional": "class"}, {"randomize": True}])
def test_batches_are_answered_as_one_array_is(options: dict[str, Any]) -> None:
    predictor = made(**options)
    by_group = {"group_column": "site"} if predictor.conditional == "group" else {}
    parts = [batch(slice(0, 0)), batch(slice(0, 7)), batch(slice(7, 60))]
    answers = pa.Table.from_batches(
        predictor.predict_batches(iter(parts), id_column="photo", carry=["taken"], **by_group)
    )
    groups = SITES if by_group else None
    sets = predictor.predict_set(P, ids=batch()["photo"].to_pylist(), groups=groups)
    assert answers.column_names == ["id", "labels", "size", "cost", "taken"]
    assert [tuple(labels) for labels in answers["labels"].to_pylist()] == sets.labels
    assert answers["id"].to_pylist() == batch()["photo"].to_pylist()
    assert answers["size"].to_pylist() == sets.sizes.tolist()
    assert answers["cost"].to_pylist() == sets.costs.tolist()
    assert answers["taken"].to_pylist() == list(range(60))


def test_batches_without_ids_are_numbered_and_may_have_a_column_a_label() -> None:
    frame = pa.record_batch({label: P[:, j] for j, label in enumerate(LABELS)})
    answers = pa.Table.from_batches(made().predict_batches([frame.slice(0, 25), frame.slice(25)]))
    assert answers["id"].to_pylist() == list(range(60))


def test_wrong_batches() -> None:
    predictor = made()
    wrong = batch(p=pa.array([[np.nan, 0.5, 0.5]] * 60, pa.list_(pa.float64())))
    with pytest.raises(InputError, match=r"batch 1: probabilities: row 0, label 'cat', is NaN"):
        list(predictor.predict_batches([batch(), wrong]))
    for options, message in {
        "carry": (["id"], "column 'id' cannot be carried along"),
        "id_column": ("foto", "batch 0: there is no column 'foto'; known: photo"),
        "group_column": ("site", "groups= is given, but the predictor was not calibrated by group"),
        "alpha": (0.2, "not calibrated for alpha 0.2"),
    }.items():
        with pytest.raises(InputError, match=message[1]):
            list(predictor.predict_batches([batch()], **{options: message[0]}))


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv", ".jsonl", ".npy"])
def test_parts_are_those_of_one_file(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("udcp_dsl.rows.source.BATCH", 15)
    predictor, level = made(), made().alphas[0]
    source = open_rows(in_parts(tmp_path / "in"), LABELS, id_column="photo", carry=["taken"])
    whole = predict_file(predictor, source, tmp_path / f"sets{ending}", level)
    parts = open_folder(tmp_path / "out", ending, predictor, source, level)
    assert parts.remaining == (0, 1, 2, 3)
    assert predict_parts(predictor, parts, level) == whole
    mask = predictor.predict_set(P).mask
    if ending == ".npy":
        np.testing.assert_array_equal(np.concatenate([np.load(file) for file in parts.files]), mask)
        np.testing.assert_array_equal(np.load(tmp_path / "sets.npy"), mask)
    elif ending == ".csv":
        texts = [file.read_text().splitlines() for file in parts.files]
        one = (tmp_path / "sets.csv").read_text().splitlines()
        assert one == [texts[0][0], *(line for text in texts for line in text[1:])]
    again = open_folder(tmp_path / "out", ending, predictor, source, level)
    assert (again.remaining, predict_parts(predictor, again, level).n) == ((), 0)
    parts.files[2].unlink()
    assert open_folder(tmp_path / "out", ending, predictor, source, level).remaining == (2,)


def test_a_folder_of_other_sets_is_refused(tmp_path: Path) -> None:
    predictor, level = made(), made().alphas[0]
    source = open_rows(in_parts(tmp_path / "in"), LABELS, id_column="photo")
    open_folder(tmp_path / "out", ".csv", predictor, source, level)
    (tmp_path / "out" / "part-0.csv").touch()
    open_folder(tmp_path / "out", ".csv", made(), source, level)  # the same, made again
    others = {
        "by another predictor": (made(nonempty=True), source, ".csv"),
        "in files of another kind": (predictor, source, ".jsonl"),
        "with other columns": (predictor, open_rows(tmp_path / "in", LABELS), ".csv"),
    }
    for message, (other, rows, ending) in others.items():
        with pytest.raises(InputError, match=rf"\.out\.udcp\.json: the sets in this folder are {message}"):
            open_folder(tmp_path / "out", ending, other, rows, level)
    table = pa.Table.from_batches([batch()])
    pq.write_table(table, tmp_path / "in" / "part-2.parquet")
    with pytest.raises(InputError, match=r"part-2\.parquet has changed since prediction began"):
        open_folder(tmp_path / "out", ".csv", predictor, source, level)
    with pytest.raises(InputError, match=r"in: is not empty, and contains no sets of this command"):
        open_folder(tmp_path / "in", ".csv", predictor, source, level)
    (tmp_path / ".out.udcp.json").write_text("{}")
    with pytest.raises(InputError, match=r"\.out\.udcp\.json: is not a manifest of prediction sets"):
        open_folder(tmp_path / "out", ".csv", predictor, source, level)


def test_an_id_in_two_parts_is_refused_by_both_its_places(tmp_path: Path) -> None:
    in_parts(tmp_path / "in", 6)
    source = open_rows(tmp_path / "in", LABELS, id_column="photo")
    refuse_shared_ids(source)
    ids = [f"other{i}" for i in range(9)] + ["photo23"]
    table = pa.Table.from_batches([batch(slice(50, 60), photo=ids)])
    pq.write_table(table, tmp_path / "in" / "part-5.parquet")
    with pytest.raises(
        InputError, match=r"part-5\.parquet: sample ids: row 9 .* has the id 'photo23', as has row 3 of .*part-2\.parq"
    ):
        refuse_shared_ids(source)


def test_finished_parts_stay_when_a_later_one_is_wrong(tmp_path: Path) -> None:
    predictor, level = made(), made().alphas[0]
    in_parts(tmp_path / "in")
    wrong = batch(slice(30, 45), p=pa.array([[0.5, 0.5, 0.0]] * 7 + [[np.nan] * 3] * 8, pa.list_(pa.float64())))
    pq.write_table(pa.Table.from_batches([wrong]), tmp_path / "in" / "part-2.parquet")
    source = open_rows(tmp_path / "in", LABELS)
    parts = open_folder(tmp_path / "out", ".parquet", predictor, source, level)
    with pytest.raises(InputError, match=r"part-2\.parquet: probabilities: row 7, label 'cat', is NaN"):
        predict_parts(predictor, parts, level)
    assert sorted(os.listdir(tmp_path / "out")) == ["part-0.parquet", "part-1.parquet"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor, level = made(), made().alphas[0]
    source = open_rows(in_parts(tmp_path / "in"), LABELS)
    parts = open_folder(tmp_path / "out", ".csv", predictor, source, level)

    def on_a_full_disk(target: Path) -> nullcontext[Path]:
        made_up = target.parent / ".udcp-full.tmp"
        made_up.symlink_to("/dev/full")
        return nullcontext(made_up)

    monkeypatch.setattr("udcp_dsl.files._made_beside", on_a_full_disk)
    with pytest.raises(InputError, match=r"part-0\.csv: cannot be written: No space left on device"):
        predict_parts(predictor, parts, level)
    assert os.listdir(tmp_path / "out") == []


def test_weights_that_nobody_uses_are_refused(tmp_path: Path) -> None:
    folder, predictor, level = in_parts(tmp_path / "in"), made(), made().alphas[0]
    weighted = open_rows(folder / "part-1.parquet", LABELS, weight_column="taken")
    for work in (predict_file, lambda predictor, source, file, _: write_p_values(predictor, source, file)):
        with pytest.raises(InputError, match="weights= are given, but calibration had none"):
            work(predictor, weighted, tmp_path / "sets.csv", level)
    assert sorted(os.listdir(tmp_path)) == ["in"]


def rewritten(folder: Path, ending: str) -> Path:
    """The parts of a folder in another format, the third of them without rows."""
    for number, file in enumerate(sorted(folder.iterdir())):
        table = pq.read_table(file).slice(0, 0 if number == 2 else None)
        columns = {label: [row[i] for row in table["p"].to_pylist()] for i, label in enumerate(LABELS)}
        flat = pa.table(
            {
                "photo": table["photo"],
                "taken": table["taken"],
                **{k: pa.array(x, pa.float64()) for k, x in columns.items()},
            }
        )
        file.unlink()
        if ending == ".npy":
            np.save(file.with_suffix(ending), np.stack([flat[label].to_numpy() for label in LABELS], axis=1))
        elif ending == ".csv":
            pacsv.write_csv(flat, file.with_suffix(ending), pacsv.WriteOptions(quoting_style="none"))
        elif ending == ".parquet":
            pq.write_table(table, file)
        else:
            with pa.OSFile(str(file.with_suffix(ending)), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
                out.write_table(table)
    return folder


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv", ".npy"])
@pytest.mark.parametrize("form", [".parquet", ".arrow", ".csv", ".jsonl", ".npy"])
def test_a_part_without_rows_has_a_file_without_sets(ending: str, form: str, tmp_path: Path) -> None:
    folder, predictor = rewritten(in_parts(tmp_path / "in"), ending), made(conditional="class")
    roles: dict[str, Any] = {} if ending == ".npy" else {"id_column": "photo"}
    roles |= {"carry": ["taken"]} if ending in (".parquet", ".arrow") else {"ignore": ["taken"]} if roles else {}
    roles |= {"ignore": ["site"]} if "carry" in roles else {}
    source, level = open_rows(folder, LABELS, **roles), predictor.alphas[0]
    refuse_shared_ids(source)
    tally = predict_parts(predictor, open_folder(tmp_path / "out", form, predictor, source, level), level)
    assert tally.n == 45
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [f"part-{i}{form}" for i in range(4)]
    if form == ".parquet":
        assert [pq.read_metadata(file).num_rows for file in files] == [15, 15, 0, 15]
        assert pq.read_schema(files[2]) == pq.read_schema(files[1])
    elif form == ".npy":
        assert np.load(files[2]).shape == (0, 3)
    elif form == ".csv":
        header = files[1].read_text(encoding="utf-8").splitlines()[0]
        assert files[2].read_text(encoding="utf-8").splitlines() == [header]
    assert predict_file(predictor, source, tmp_path / f"one{form}", level).n == 45
    write_p_values(predictor, source, tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text(encoding="utf-8").splitlines()) == 46
    whole = replace(source, parts=(source.parts[2],))
    assert predict_file(predictor, whole, tmp_path / f"none{form}", level).n == 0
    with pytest.raises(InputError, match=r"part-2.*: has no rows"):
        source.whole()


def test_the_command_predicts_parts_without_rows(tmp_path: Path) -> None:
    folder, predictor = rewritten(in_parts(tmp_path / "in"), ".parquet"), made()
    predictor.save(tmp_path / "p.json")
    truth = pa.array(np.array(LABELS)[Y[:15]].tolist())
    for file in folder.iterdir():
        table = pq.read_table(file)
        pq.write_table(table.append_column("truth", truth.slice(0, len(table))), file)
    ask = ["predict", str(tmp_path / "p.json"), "--id", "photo", "--truth", "truth"]
    ask += ["--ignore", "site,taken", "--probs"]
    done = CliRunner().invoke(main, [*ask, str(folder), "-o", f"{tmp_path}/out/"])
    assert done.exit_code == 0, done.output
    assert "45 sets at alpha 0.3" in done.output
    done = CliRunner().invoke(main, [*ask, str(folder / "part-2.parquet"), "-o", f"{tmp_path}/none.csv"])
    assert done.exit_code == 0, done.output
    assert "none.csv: 0 sets at alpha 0.3" in done.output
    assert (tmp_path / "none.csv").read_text(encoding="utf-8") == "photo,labels,size,cost\n"
    done = CliRunner().invoke(main, [*ask, str(folder / "part-2.parquet"), "-o", f"{tmp_path}/none/"])
    assert done.exit_code == 0, done.output
    assert "0 sets at alpha 0.3" in done.output
    done = CliRunner().invoke(main, [*ask, str(folder / "part-2.parquet"), "-o", f"{tmp_path}/none/"])
    assert "none/: nothing to do: 1 of 1 part already existed" in done.output


# As many times as it is told, in processes forked from one that has imported what takes two seconds.
SLOWLY = """
import importlib, os, sys, time
from udcp_dsl.cluster import streams as predicting
from udcp_dsl.cli import main
for name in "lark numba.np.arraymath pyarrow.parquet udcp_dsl.cli.predict udcp_solvers.lac".split():
    importlib.import_module(name)
was = predicting.predict_block
predicting.predict_block = lambda *a, **k: (time.sleep(0.05), was(*a, **k))[1]
for line in sys.stdin:
    process = os.fork()
    if not process:
        main(sys.argv[1:])
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_killed_at_any_moment_and_run_again_the_bytes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made().save(tmp_path / "pets.json")
    in_parts(tmp_path / "in", 10)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def command(out: str) -> list[str]:
        return f"predict pets.json --probs in --id photo -o {out}/".split()

    assert CliRunner().invoke(main, command("whole")).exit_code == 0
    program = [sys.executable, "-c", SLOWLY, *command("out")]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, env=environment, stdin=pipe, stdout=pipe, bufsize=0) as forking:
        assert forking.stdin is not None
        assert forking.stdout is not None
        for moment in (0, 3):
            forking.stdin.write(b"again\n")
            process = int(forking.stdout.readline())
            ended: list[Any] = []
            while not ended and len(list(tmp_path.glob("out/*.parquet"))) <= moment:
                ended = select.select([forking.stdout], [], [], 0.005)[0]
            assert not ended
            os.kill(process, signal.SIGKILL)
            assert int(forking.stdout.readline()) == -signal.SIGKILL
            assert moment < len(list(tmp_path.glob("out/*.parquet"))) < 10
        forking.stdin.close()
    done = CliRunner().invoke(main, command("out"))
    assert done.exit_code == 0
    assert "of 10 parts already existed" in done.output
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"conditional": "group"},
        {"conditional": "class"},
        {"conditional": "difficulty", "bins": 2},
        {"conditional": "group", "pool": True},
        {"randomize": True},
        {"nonempty": True},
        {"repair": "temperature"},
        {"confidence": 0.8},
    ],
    ids=str,
)
def test_thresholds_from_40_parts_are_those_of_one_array(tmp_path: Path, options: dict[str, Any]) -> None:
    in_parts(tmp_path / "in", 40)
    rows = open_rows(tmp_path / "in", LABELS, id_column="photo", group_column="site", beside={"true labels": Y}).whole()
    groups = SITES if options.get("conditional") == "group" else None
    ids = batch()["photo"].to_pylist()
    for oracle in ("lac", "penalized"):
        one, parts = (udcp.SetPredictor(size_of("cat dog wolf"), oracle, alpha=0.3, **options) for _ in range(2))
        one.calibrate(P, Y, groups=groups, ids=ids)
        parts.calibrate(rows)
        assert parts.calibrated.as_dict() == one.calibrated.as_dict()


@pytest.mark.parametrize("options", [{}, {"conditional": "group"}, {"randomize": True}, {"nonempty": True}], ids=str)
def test_p_values_in_blocks_are_those_of_one_array(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("udcp_dsl.cluster.streams.BATCH", 2 * 3 * 4)  # four rows at a time
    predictor = made(**options)
    by_group = {"group_column": "site"} if predictor.conditional == "group" else {}
    ids = batch()["photo"].to_pylist()
    source = open_rows(in_parts(tmp_path / "in"), LABELS, id_column="photo", column="p", **by_group)
    told: list[int] = []
    write_p_values(predictor, source, tmp_path / "p.npy", told.append)
    expected = predictor.p_values(P, ids=ids, groups=SITES if by_group else None)
    assert np.load(tmp_path / "p.npy").tolist() == expected.tolist()
    assert told[:5] == [4, 8, 12, 15, 19]  # in parts of 15 rows
    write_p_values(predictor, source, tmp_path / "p.csv")
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "photo,cat,dog,wolf"
    assert [line.split(",")[0] for line in lines[1:]] == ids
    assert np.array([line.split(",")[1:] for line in lines[1:]], float) == pytest.approx(expected)


def test_p_values_of_a_stream_are_refused_and_a_fault_leaves_nothing(tmp_path: Path) -> None:
    source = open_rows(in_parts(tmp_path / "in"), LABELS, column="p")
    bad = P.copy()
    bad[50] = np.nan
    lists = pa.array(bad[45:].tolist(), pa.list_(pa.float64()))
    pq.write_table(pa.table(batch(slice(45, 60)).set_column(3, "p", lists).to_pydict()), tmp_path / "in/part-3.parquet")
    with pytest.raises(InputError, match=r"part-3.parquet: .*row 5.* NaN"):
        write_p_values(made(), source, tmp_path / "p.npy")
    streamed = replace(source, parts=(stream_part(io.BufferedReader(io.BytesIO(b"{}"))),))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="can be read only once"):
        write_p_values(made(), streamed, tmp_path / "p.npy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_parts_before_a_fault_are_finished(tmp_path: Path) -> None:
    folder = in_parts(tmp_path / "in")
    (folder / "part-2.parquet").write_bytes(b"PAR1 and then nothing")
    predictor = made()
    source = open_rows(folder, LABELS, column="p")
    parts = open_folder(tmp_path / "out", ".parquet", predictor, source, predictor.alphas[0])
    with pytest.raises(InputError, match=r"part-2\.parquet"):
        predict_parts(predictor, parts, predictor.alphas[0])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "part-0.parquet",
        "part-1.parquet",
    ]


def test_a_full_disk_leaves_finished_parts_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from udcp_dsl.cluster import streams as predicting

    whole = predicting.open_sets

    @contextmanager
    def full(path: Any) -> Iterator[Any]:
        with whole(path) as write:

            def fail(block: Any) -> None:
                write(block)
                raise OSError(errno.ENOSPC, "No space left on device")

            yield fail if Path(path).name == "part-1.parquet" else write

    monkeypatch.setattr(predicting, "open_sets", full)
    predictor = made()
    source = open_rows(in_parts(tmp_path / "in"), LABELS, column="p")
    parts = open_folder(tmp_path / "out", ".parquet", predictor, source, predictor.alphas[0])
    with pytest.raises(InputError, match=r"part-1\.parquet: cannot be written: No space"):
        predict_parts(predictor, parts, predictor.alphas[0])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["part-0.parquet"]
