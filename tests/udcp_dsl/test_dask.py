"""A cluster writes the bytes that one process writes, though a worker dies; what goes wrong is told by part and row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.cli import main
from udcp_dsl.cluster.dask import Cluster, connected, predict_parts, rows_of_parts, spread
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.columns import to_array
from udcp_dsl.rows.source import open_rows

PARTS, ROWS = 6, 15
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), PARTS * ROWS)
Y = np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)

# What each of three workers would take two seconds to import: they are forked by a process that has done so.
PRELOADED = (
    "distributed lark numba.np.arraymath pulp pyarrow.parquet udcp_dsl.cluster.dask udcp_solvers.ilp udcp_solvers.lac"
)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import dask
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(PRELOADED.split())  # distributed has set its own by now
        with connected(None, 2) as found:
            yield found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made().save("pets.json")
    Path("in").mkdir()
    for number in range(PARTS):
        write(number, P[number * ROWS : (number + 1) * ROWS])
    run("predict", "pets.json", "--probs", "in", "--id", "photo", "-o", "alone/")
    return tmp_path


def made() -> udcp.SetPredictor:
    return udcp.SetPredictor(size_of("cat dog wolf"), "lac", alpha=0.3).calibrate(P, Y)


def write(number: int, rows: np.ndarray) -> None:
    table = pa.table({"photo": [f"{number}/{i}" for i in range(len(rows))], "p": rows.tolist()})
    pq.write_table(table, f"in/part-{number}.parquet")


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result


def contents(name: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(name).iterdir()}


def slowly() -> None:
    """In a worker: each batch takes a while, so that there is a middle of the work."""
    import time

    from udcp_dsl.cluster import streams as predicting

    was: Callable[..., Any] = predicting.predict_block
    predicting.predict_block = lambda *a, **k: (time.sleep(0.2), was(*a, **k))[1]  # type: ignore[assignment]


@pytest.mark.usefixtures("folder")
def test_a_worker_that_dies_costs_its_part_and_no_more(client: Any) -> None:
    client.run(slowly)
    pids = list(client.run(os.getpid).values())
    assert len(set(pids)) == 2

    import threading

    def kill() -> None:
        while len(list(Path("out").glob("*.parquet"))) < 2:
            time.sleep(0.01)
        os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    tally = predict_parts(client, made(), "in", "out", id_column="photo")
    killer.join()
    assert tally.n == PARTS * ROWS
    # A worker killed while it opens a file cannot take its temporary name away.
    found = {name: data for name, data in contents("out").items() if not name.endswith(".tmp")}
    assert found == contents("alone")
    assert predict_parts(client, made(), "in", "out", id_column="photo").n == 0


@pytest.mark.usefixtures("folder")
def test_lists_need_class_names_if_calibration_matched_columns_by_name(client: Any) -> None:
    named = pd.DataFrame(P[:, [2, 0, 1]], columns=["wolf", "cat", "dog"])
    predictor = udcp.SetPredictor(size_of("cat dog wolf"), "lac", alpha=0.3).calibrate(named, Y)
    with pytest.raises(InputError, match=r"part-\d.parquet: the columns have no names, .* class_names="):
        predict_parts(client, predictor, "in", "out", id_column="photo")
    predict_parts(client, predictor, "in", "new", id_column="photo", class_names=["cat", "dog", "wolf"])
    assert contents("new") == contents("alone")


@pytest.mark.usefixtures("folder")
def test_kernels_take_one_thread_a_task(client: Any) -> None:
    predict_parts(client, made(), "in", "out", id_column="photo")
    # Of a worker that had something to do: of numba as it is there already, and as it would be imported now.
    threads = client.run(lambda: (__import__("numba").config.NUMBA_NUM_THREADS, os.environ.get("NUMBA_NUM_THREADS")))
    assert (1, "1") in threads.values()


@pytest.mark.usefixtures("folder")
def test_a_fault_is_told_by_part_and_row_and_finished_parts_stay(client: Any) -> None:
    wrong = P[:ROWS].copy()
    wrong[7, 1] = np.nan
    write(5, wrong)
    with pytest.raises(InputError, match=r"part-5\.parquet: probabilities: row 7, label 'dog', is NaN"):
        predict_parts(client, made(), "in", "out", id_column="photo")
    assert not Path("out/part-5.parquet").exists()
    write(5, P[5 * ROWS :])
    assert predict_parts(client, made(), "in", "out", id_column="photo").n >= ROWS
    assert Path("out/part-5.parquet").exists()
    write(5, P[5 * ROWS + 1 :])
    with pytest.raises(InputError, match=r"part-5\.parquet has changed since prediction began"):
        predict_parts(client, made(), "in", "out", id_column="photo")


@pytest.fixture
def deserted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of threads without workers; what takes a minute takes a second."""
    from distributed import LocalCluster

    for name in ("_TOLD_AFTER", "_LOOKS_EVERY"):
        monkeypatch.setattr(f"udcp_dsl.cluster.dask.{name}", 0.1)
    for name, seconds in (("_TOLD_EVERY", 0.2), ("_LOST_AFTER", 1.0)):
        monkeypatch.setattr(f"udcp_dsl.cluster.dask.{name}", seconds)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None, threads_per_worker=1) as found:
        yield found


def test_a_cluster_without_workers_is_told_of_until_it_scales_up(deserted: Any) -> None:
    from distributed import Client

    told: list[str] = []

    def say(text: str) -> None:
        told.append(text)
        if len(told) == 3:
            deserted.scale(1)

    with Client(deserted.scheduler_address, set_as_default=False) as client:  # a cluster of which only this is known
        cluster = Cluster(client, say=say)
        future = client.submit(lambda: (7, []), pure=False)
        assert [answer for _, answer in cluster.answers([future])] == [7]
    assert len(told) >= 3
    assert f"has had no workers for 0 seconds: start some, with dask worker {deserted.scheduler_address}" in told[0]
    assert told[0].endswith("still waiting for workers")


@pytest.mark.usefixtures("folder")
def test_a_local_cluster_that_has_lost_its_workers_is_given_up(deserted: Any) -> None:
    from distributed import Client

    with (
        Client(deserted, set_as_default=False) as client,
        pytest.warns(UserWarning, match="still waiting"),
        pytest.raises(InputError, match="the local Dask cluster has had no workers for 1 seconds"),
    ):
        predict_parts(client, made(), "in", "out", id_column="photo")


def test_work_that_the_scheduler_no_longer_knows_is_an_error(deserted: Any) -> None:
    from distributed import Client

    with Client(deserted, set_as_default=False) as client:
        futures = [client.submit(lambda: (7, []), pure=False)]
        client.cancel(futures)
        with pytest.raises(InputError, match="the Dask scheduler was lost, or cancelled the work"):
            list(Cluster(client).answers(futures))


@pytest.mark.slow
def test_a_file_on_which_every_worker_dies_is_an_error(client: Any) -> None:
    with pytest.raises(InputError, match="several workers died while they worked on the same file"):
        list(Cluster(client).answers([client.submit(os._exit, 1, pure=False)]))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_command_says_that_it_waits_and_gives_up_after_that_time(deserted: Any, more: tuple[str, ...]) -> None:
    common = ["predict", "pets.json", "--probs", "in", "--id", "photo", "-o", "out/", *more]
    result = CliRunner().invoke(
        main, [*common, "--engine", "dask", "--scheduler", deserted.scheduler_address, "--wait", "0.5"]
    )
    assert result.exit_code == 2
    assert "warning: the Dask cluster has had no workers for 0 seconds" in result.stderr
    assert f"start some, with dask worker {deserted.scheduler_address}" in result.output.split("still waiting")[-1]


RUN = "import sys; from udcp_dsl.cli import main\nif __name__ == '__main__': main(sys.argv[1:])"


@pytest.mark.slow  # two clusters in processes of their own; one of the default run loses a worker (above)
def test_the_whole_run_is_killed_and_run_again(folder: Path) -> None:
    (folder / "run.py").write_text(RUN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = "run.py predict pets.json --probs in --id photo -o out/ --engine dask --workers 2".split()
    process = subprocess.Popen([sys.executable, *command], cwd=folder, env=environment, start_new_session=True)
    while process.poll() is None and not list(folder.glob("out/*.parquet")):
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert contents("out") == contents("alone")


@pytest.mark.usefixtures("folder")
def test_mistakes() -> None:
    common = ["predict", "pets.json", "--probs", "in", "--id", "photo"]
    for more, message in {
        ("-o", "sets.csv", "--engine", "dask"): "give a folder, -o sets/",
        ("-o", "out/", "--scheduler", "tcp://127.0.0.1:1"): "--scheduler needs --engine dask",
        ("-o", "out/", "--wait", "9"): "--wait needs --engine dask",
        ("-o", "out/", "--engine", "dask", "--scheduler", "nowhere"): "there is no scheduler at 'nowhere'",
    }.items():
        result = CliRunner().invoke(main, [*common, *more])
        assert result.exit_code == 2
        assert message in result.stderr


SPEC = """
labels {cat, dog, wolf}
costs harm { wolf: 4, default: 1 }
distance far from "far.csv"
loss plain = size
loss wide = spread(far) + 0.1 * size
"""


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "wide", "--oracle", "price"),
        (
            "--loss",
            "wide",
            "--oracle",
            "price",
            "--conditional",
            "difficulty",
            "--bins",
            "2",
            "--repair",
            "temperature",
        ),
        ("--loss", "plain", "--oracle", "penalized", "--nonempty"),
        ("--loss", "plain", "--oracle", "base", "--risk", "harm", "--alpha", "0.5"),
        ("--loss", "plain", "--oracle", "lac", "--conditional", "class", "--randomize"),
        ("--loss", "wide", "--oracle", "ilp"),
    ],
    ids=lambda options: " ".join(options[1:]),
)
def test_a_cluster_calibrates_to_the_bytes_of_one_process(
    folder: Path, client: Any, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("far.csv").write_text("label,cat,dog,wolf\ncat,0,1,3\ndog,1,0,2\nwolf,3,2,0\n")
    Path("pets.loss").write_text(SPEC)
    Path("y.txt").write_text("\n".join(np.array(["cat", "dog", "wolf"])[Y]))
    # The cluster of the module, and not one for each command.
    monkeypatch.setattr("udcp_dsl.cluster.dask.connected", lambda scheduler, workers: nullcontext(client))
    rows = ("calibrate", "pets.loss", "--probs", "in", "--truth", "y.txt", "--id", "photo", *options)
    run(*rows, "-o", "alone.json")
    run(*rows, "-o", "cluster.json", "--engine", "dask")
    assert Path("cluster.json").read_bytes() == Path("alone.json").read_bytes()


def test_a_fault_of_calibration_rows_is_told_by_part_and_row(folder: Path, client: Any) -> None:
    rows = rows_of_parts(client, "in", ["cat", "dog", "wolf"], beside={"true labels": Y}, column="p")
    bad = P[:ROWS].copy()
    bad[7] = np.nan
    write(4, bad)
    assert (
        to_array(rows.P[np.array([3, ROWS, PARTS * ROWS - 1])]).tolist() == P[[3, ROWS, -1]].tolist()
    )  # part 4 is not asked
    assert to_array(rows.P[:0]).shape == (0, 3)
    with pytest.raises(InputError, match=r"part-4\.parquet: .*row 7.* NaN"):
        udcp.SetPredictor(size_of("cat dog wolf"), "lac").calibrate(rows)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_a_worker_that_dies_in_the_middle_of_calibration_changes_nothing(client: Any) -> None:
    pids = list(client.run(os.getpid).values())
    killed: list[int] = []

    def kill(done: int, rows: int) -> None:
        if not killed and done >= 3 * ROWS:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    source = open_rows("in", ["cat", "dog", "wolf"], beside={"true labels": Y}, column="p")
    loss = size_of("cat dog wolf")
    udcp.SetPredictor(loss, "penalized", alpha=0.3).calibrate(spread(Cluster(client), source, kill)).save(
        "cluster.json"
    )
    udcp.SetPredictor(loss, "penalized", alpha=0.3).calibrate(P, Y).save("alone.json")
    assert killed
    assert Path("cluster.json").read_bytes() == Path("alone.json").read_bytes()


INPUTS_SPEC = """
labels {cat, dog, wolf}
categories home { indoors: { cat, dog }, outdoors: { wolf } }
input km in [0, 200]
costs fee per row in [0, 9]
costs queue of home per row in [0, 30]
loss separable = sum(fee) + 0.1 * km * size
loss trip = sum(fee) + count(home, queue) + km * (any({ cat }) and any({ wolf }))
"""


def with_inputs(wide: bool) -> None:
    """The same parts, with the inputs of their rows: in columns of lists, or one for each entry."""
    own = np.random.default_rng(1)
    for number in range(PARTS):
        table = pq.read_table(f"in/part-{number}.parquet")
        fee, queue = own.uniform(0, 9, (ROWS, 3)), own.uniform(0, 30, (ROWS, 2))
        columns: dict[str, Any] = {"km": own.uniform(0, 200, ROWS), "fee": fee.tolist(), "queue": queue.tolist()}
        if wide:
            columns = {"km": columns["km"], **{f"fee.{x}": fee[:, i] for i, x in enumerate(("cat", "dog", "wolf"))}}
            columns |= {f"queue.{x}": queue[:, i] for i, x in enumerate(("indoors", "outdoors"))}
        for name, column in columns.items():
            table = table.append_column(name, pa.array(column))
        pq.write_table(table, f"in/part-{number}.parquet")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("wide", "options"),
    [
        pytest.param(False, ("--loss", "trip", "--oracle", "price"), marks=pytest.mark.slow),  # workers compile
        (True, ("--loss", "separable", "--oracle", "ratio", "--repair", "temperature")),
        (False, ("--loss", "separable", "--oracle", "penalized")),
    ],
)
def test_a_cluster_calibrates_and_predicts_with_inputs_to_the_bytes_of_one_process(
    client: Any, wide: bool, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_inputs(wide)
    Path("pets.loss").write_text(INPUTS_SPEC)
    Path("y.txt").write_text("\n".join(np.array(["cat", "dog", "wolf"])[Y]))
    monkeypatch.setattr("udcp_dsl.cluster.dask.connected", lambda scheduler, workers: nullcontext(client))
    read = ("--probs", "in", "--id", "photo")  # lists that are no input are the probabilities
    rows = ("calibrate", "pets.loss", *read, "--truth", "y.txt", *options, "--alpha", "0.3")
    run(*rows, "-o", "alone.json")
    run(*rows, "-o", "cluster.json", "--engine", "dask")
    assert Path("cluster.json").read_bytes() == Path("alone.json").read_bytes()
    run("predict", "alone.json", *read, "-o", "one/")
    run("predict", "cluster.json", *read, "-o", "many/", "--engine", "dask")
    assert contents("many") == contents("one")
    predictor = udcp.SetPredictor.load("alone.json")
    source = open_rows("in", predictor.loss.labels, id_column="photo", column="p", inputs=predictor.inputs)
    expected = predictor.predict_set(source.whole()).to_lists()
    assert [x for i in range(PARTS) for x in pq.read_table(f"one/part-{i}.parquet")["labels"].to_pylist()] == expected


@pytest.mark.usefixtures("folder")
def test_an_input_that_is_wrong_is_told_by_part_and_row(client: Any) -> None:
    with_inputs(wide=False)
    loss = udcp.loads(INPUTS_SPEC, loss="separable")
    rows = rows_of_parts(client, "in", loss, beside={"true labels": Y}, column="p")
    by_hand = rows_of_parts(client, "in", loss.labels, beside={"true labels": Y}, column="p", inputs=loss.inputs)
    assert rows.inputs is not None
    assert by_hand.inputs is not None
    assert rows.inputs.equals(by_hand.inputs)
    predictor = udcp.SetPredictor(loss, "ratio", alpha=0.3).calibrate(rows)
    table = pq.read_table("in/part-4.parquet")
    far = pa.array([500.0 if i == 7 else 1.0 for i in range(ROWS)])
    pq.write_table(table.set_column(table.schema.get_field_index("km"), "km", far), "in/part-4.parquet")
    with pytest.raises(InputError, match=r"part-4\.parquet: row 7: input 'km' is 500, outside \[0, 200\]"):
        predict_parts(client, predictor, "in", "out", id_column="photo", column="p")
