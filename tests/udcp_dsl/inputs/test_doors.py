"""Inputs come in every layout that rows do, and every door gives the sets and the bytes of arrays in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import udcp_dsl as udcp
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.source import open_rows

pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
from pyarrow import parquet  # noqa: E402

LABELS, TEAMS = list("abcde"), list("xyz")
TEXT = """labels { a, b, c, d, e }
categories team { x: { a, b }, y: { c, d }, z: { d, e } }
input km in [0, 200]
input unused in [0, 1]
costs fee per row in [0.5, 50]
costs queue of team per row in [0, 60]
loss l = sum(fee) + 0.1 * km * any(team.x) + count(team, queue)
"""
N = 90
rng = np.random.default_rng(0)
P = rng.dirichlet(np.full(5, 0.6), N)
Y = np.array([rng.choice(5, p=p) for p in P])
KM, FEE, QUEUE = rng.uniform(0, 200, N), rng.uniform(0.5, 50, (N, 5)), rng.uniform(0, 60, (N, 3))
INPUTS: dict[str, Any] = {"km": KM, "fee": FEE, "queue": QUEUE}
MASKS = rng.random((N, 5)) < 0.5


def spec() -> udcp.Loss:
    return udcp.loads(TEXT)


def made(**options: Any) -> udcp.SetPredictor:
    return udcp.SetPredictor(spec(), alpha=0.2, **options).calibrate(P, Y, inputs=INPUTS)


def columns() -> dict[str, Any]:
    return {"km": KM, "fee": FEE.tolist(), "queue": QUEUE.tolist()}


def wide() -> dict[str, Any]:
    """One column per entry, in any order."""
    entries = {f"fee.{label}": FEE[:, i] for i, label in reversed(list(enumerate(LABELS)))}
    return {"km": KM, **entries, **{f"queue.{team}": QUEUE[:, i] for i, team in enumerate(TEAMS)}}


def by_name() -> dict[str, Any]:
    """A mapping in each row, whose entries are in any order."""
    fees = [dict(reversed(list(zip(LABELS, row, strict=True)))) for row in FEE.tolist()]
    return {"km": KM, "fee": fees, "queue": [dict(zip(TEAMS, row, strict=True)) for row in QUEUE.tolist()]}


def table(inputs: dict[str, Any]) -> dict[str, Any]:
    named = {label: P[:, i] for i, label in enumerate(LABELS)}
    return {"visit": [f"v{i}" for i in range(N)], **named, "truth": np.array(LABELS)[Y].tolist(), **inputs}


GIVEN = {
    "arrays": lambda: INPUTS,
    "lists": lambda: {name: np.asarray(column).tolist() for name, column in INPUTS.items()},
    "pandas": lambda: pd.DataFrame(columns()),
    "pandas, one column per entry": lambda: pd.DataFrame(wide()),
    "pandas, by name": lambda: pd.DataFrame(by_name()),
    "polars": lambda: pl.DataFrame(columns()),
    "polars, one column per entry": lambda: pl.DataFrame(wide()),
    "pyarrow": lambda: pa.table(columns()),
    "pyarrow, by name": lambda: pa.table(by_name()),
    "a batch of pyarrow": lambda: pa.record_batch(columns()),
    "columns of pyarrow": lambda: dict(zip(columns(), pa.table(columns()).columns, strict=True)),
    "frames": lambda: {
        "km": pd.Series(KM),
        "fee": pd.DataFrame(FEE, columns=LABELS)[LABELS[::-1]],
        "queue": pl.DataFrame(QUEUE, schema=TEAMS)[TEAMS[::-1]],
    },
    "a mapping of columns": lambda: {"km": KM, "fee": dict(zip(LABELS, FEE.T, strict=True)), "queue": QUEUE},
    "wide mapping": wide,
}


@pytest.mark.parametrize("layout", GIVEN)
def test_python_takes_every_layout(layout: str) -> None:
    given, loss = GIVEN[layout](), spec()
    np.testing.assert_array_equal(loss.batch(MASKS, inputs=given), loss.batch(MASKS, inputs=INPUTS))
    assert loss.terms_batch(MASKS, inputs=given).keys() == loss.terms_batch(MASKS, inputs=INPUTS).keys()
    predictor = udcp.SetPredictor(loss, alpha=0.2).calibrate(P, Y, inputs=given)
    expected = made()
    assert predictor.calibrated.thresholds() == expected.calibrated.thresholds()
    np.testing.assert_array_equal(
        predictor.predict_set(P, inputs=given).costs, expected.predict_set(P, inputs=INPUTS).costs
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("inputs", [columns, wide, by_name])
def test_a_frame_of_probabilities_holds_its_inputs(frame: Any, inputs: Any) -> None:
    whole = frame({**table(inputs()), "unused": np.zeros(N)})
    predictor = udcp.SetPredictor(spec(), alpha=0.2)
    predictor.calibrate(whole, whole["truth"], ignore=["truth", "visit"])
    expected = made()
    assert predictor.calibrated.thresholds() == expected.calibrated.thresholds()
    sets = predictor.predict_set(whole, ignore=["truth", "visit"])
    np.testing.assert_array_equal(sets.mask, expected.predict_set(P, inputs=INPUTS).mask)
    given = {**INPUTS, "km": np.zeros(N)}  # what is given beside it takes the place of its own
    np.testing.assert_array_equal(
        predictor.predict_set(whole, inputs=given, ignore=["truth", "visit"]).costs,
        expected.predict_set(P, inputs=given).costs,
    )


def test_frames_of_another_index_are_refused() -> None:
    frame = pd.DataFrame(P, columns=LABELS)
    moved = pd.DataFrame(columns(), index=np.arange(N)[::-1])
    with pytest.raises(InputError, match="different indexes"):
        udcp.SetPredictor(spec(), alpha=0.2).calibrate(frame, Y, inputs=moved)
    with pytest.raises(InputError, match="input 'km' have different indexes"):
        udcp.SetPredictor(spec(), alpha=0.2).calibrate(frame, Y, inputs={**INPUTS, "km": moved["km"]})


def test_lists_follow_class_names_and_what_is_named_does_not() -> None:
    order = [3, 1, 4, 0, 2]
    names = [LABELS[i] for i in order]
    turned = udcp.SetPredictor(spec(), alpha=0.2, class_names=names)
    lists = {**columns(), "fee": FEE[:, order].tolist()}
    expected = made().predict_set(P, inputs=INPUTS)
    truth = np.array(LABELS)[Y]
    for given in (lists, wide(), by_name()):
        turned.calibrate(P[:, order], truth, inputs=pd.DataFrame(given))
        np.testing.assert_array_equal(turned.predict_set(P[:, order], inputs=pd.DataFrame(given)).mask, expected.mask)
    batch = pa.record_batch({"p": P[:, order].tolist(), **lists})  # lists of both are in the order that is saved
    (found,) = turned.predict_batches([batch], column="p")
    assert found["labels"].to_pylist() == expected.to_lists()
    (found,) = turned.predict_batches([pa.record_batch({"p": P[:, order].tolist(), **wide()})], column="p")
    assert found["labels"].to_pylist() == expected.to_lists()


@pytest.mark.parametrize("inputs", [columns, wide, by_name])
@pytest.mark.parametrize("oracle", ["price", "penalized", "lac"])
def test_no_rows_in_every_layout(inputs: Any, oracle: str) -> None:
    predictor = udcp.SetPredictor(spec(), oracle, alpha=0.2).calibrate(P, Y, inputs=INPUTS)
    whole = pa.record_batch({"p": P.tolist(), **inputs()})
    expected = [made.to_pylist() for made in predictor.predict_batches([whole], column="p")]
    parts = [whole.slice(0, 0), whole, whole.slice(N, 0)]
    assert [made.to_pylist() for made in predictor.predict_batches(parts, column="p")] == [[], *expected, []]
    none = {name: x[:0] for name, x in inputs().items()}
    frames = [none, pd.DataFrame(none), pl.DataFrame(none), pl.from_arrow(whole.slice(0, 0)), whole.slice(0, 0)]
    for given in (*frames, {name: np.asarray(x)[:0] for name, x in INPUTS.items()}):
        assert len(predictor.predict_set(P[:0], inputs=given)) == 0
        assert predictor.p_values(P[:0], inputs=given).shape == (0, 5)


# Files ---------------------------------------------------------------------------------------------------------------


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(x) for x in arguments])


def done(*arguments: object) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, (arguments, result.output)
    return result


def write(path: Path, inputs: dict[str, Any], rows: slice = slice(None)) -> Path:
    whole = {name: column[rows] for name, column in table(inputs).items()}
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(whole), path, row_group_size=7)
    elif path.suffix == ".jsonl":
        pd.DataFrame(whole).to_json(path, orient="records", lines=True, double_precision=15)
    elif path.suffix == ".csv":
        as_text = {n: [json.dumps(x) if isinstance(x, list | dict) else x for x in c] for n, c in whole.items()}
        pd.DataFrame(as_text).to_csv(path, index=False)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.table(whole).schema) as out:
            out.write_table(pa.table(whole), max_chunksize=11)
    return path


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    folder = tmp_path_factory.mktemp("saved")
    (folder / "s.loss").write_text(TEXT, encoding="utf-8")
    predictor = made()
    predictor.save(folder / "p.json")
    return folder / "p.json", predictor.predict_set(P, inputs=INPUTS).to_lists()


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv", ".jsonl"])
@pytest.mark.parametrize("inputs", [columns, wide, by_name])
def test_tables_of_every_kind_and_layout(
    ending: str, inputs: Any, saved: tuple[Path, list[Any]], tmp_path: Path
) -> None:
    file = write(tmp_path / f"rows{ending}", inputs())
    done("predict", saved[0], "--probs", file, "--id", "visit", "--ignore", "truth", "-o", tmp_path / "sets.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "sets.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["labels"] for line in lines] == saved[1]


def test_every_command_reads_them(saved: tuple[Path, list[Any]], tmp_path: Path) -> None:
    loss, file = saved[0].parent / "s.loss", write(tmp_path / "rows.parquet", wide())
    rows, truth = ("--probs", file, "--ignore", "visit"), ("--truth", "truth")
    done("calibrate", loss, *rows, *truth, "--alpha", "0.2", "-o", tmp_path / "again.json")
    same = udcp.SetPredictor.load(tmp_path / "again.json")
    assert same.calibrated.thresholds() == made().calibrated.thresholds()
    report = json.loads(done("evaluate", saved[0], *rows, *truth, "--json").stdout)
    assert report["evaluations"][0]["mean_cost"] == udcp.evaluate(made(), P, Y, inputs=INPUTS).mean_cost
    assert json.loads(done("monitor", saved[0], *rows, *truth, "--json").stdout)["rows"] == N
    done("compare", loss, *rows, *truth, "--oracle", "lac", "--oracle", "price", "--splits", "2", "--alpha", "0.3")
    done("gap", loss, *rows, "--ignore", "truth", "--sample", "5", "--oracle", "price")
    order = json.loads(done("order", loss, *rows, "--ignore", "truth", "--row", "4", "--json").stdout)
    one = spec().at({name: column[4] for name, column in INPUTS.items()})
    first = order["order"][0]
    assert first["cost"] == one({first["label"]})
    shown = done("show", saved[0]).stdout
    assert "km: a number per row in [0, 200]" in shown
    assert "fee: 5 costs of labels per row in [0.5, 50]" in shown
    inputs = json.loads(done("show", saved[0], "--json").stdout)["input"]["inputs"]
    assert [x["name"] for x in inputs] == ["km", "fee", "queue"]


def test_order_shows_what_another_input_changes(saved: tuple[Path, list[Any]], tmp_path: Path) -> None:
    loss, file = saved[0].parent / "s.loss", write(tmp_path / "rows.parquet", columns())
    ask = ("order", loss, "--probs", file, "--ignore", "truth,visit", "--row", "4", "--json")
    row = {name: column[4] for name, column in INPUTS.items()}
    for given, changed in (((), row), (("--input", "km=200"), {**row, "km": 200.0})):
        steps = json.loads(done(*ask, *given).stdout)["order"]
        assert steps[-1]["cost"] == pytest.approx(spec().at(changed)(set(LABELS)), rel=1e-12)
    np.save(tmp_path / "p.npy", P)
    every = ("--input", "km=1", "--input", "fee=1,1,1,1,1", "--input", "queue=x:1,y:2,z:3")
    steps = json.loads(done("order", loss, "--probs", tmp_path / "p.npy", "--row", "0", "--json", *every).stdout)
    assert steps["order"][-1]["cost"] == pytest.approx(5 + 0.1 + 6)


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".csv", ".jsonl"])
def test_inputs_in_a_file_of_their_own(ending: str, saved: tuple[Path, list[Any]], tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", P)
    file = tmp_path / f"inputs{ending}"
    if ending == ".npz":
        np.savez(file, **INPUTS)
    elif ending == ".csv":
        pd.DataFrame(wide()).to_csv(file, index=False)
    elif ending == ".jsonl":
        pd.DataFrame(columns()).to_json(file, orient="records", lines=True, double_precision=15)
    else:
        parquet.write_table(pa.table(columns()), file)
    done("predict", saved[0], "--probs", tmp_path / "p.npy", "--inputs", file, "-o", tmp_path / "sets.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "sets.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["labels"] for line in lines] == saved[1]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("inputs", [columns, wide])
def test_parts_batches_and_a_run_that_goes_on_give_the_same_bytes(
    inputs: Any, saved: tuple[Path, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small batches are, a file of sets has the bytes of one that was written at once."""
    whole = write(tmp_path / "rows.parquet", inputs())
    ask = ("--id", "visit", "--ignore", "truth")
    done("predict", saved[0], "--probs", whole, *ask, "-o", tmp_path / "whole.csv")
    (tmp_path / "in").mkdir()
    for i in range(6):
        write(tmp_path / "in" / f"part-{i}.parquet", inputs(), slice(15 * i, 15 * i + 15))
    done("predict", saved[0], "--probs", tmp_path / "in", *ask, "-o", tmp_path / "out/")
    with monkeypatch.context() as small:
        small.setattr("udcp_dsl.rows.source.BATCH", 20)
        done("predict", saved[0], "--probs", whole, *ask, "-o", tmp_path / "small.csv")
    assert (tmp_path / "small.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    done("predict", saved[0], "--probs", tmp_path / "in", *ask, "-o", tmp_path / "again/")
    once = contents(tmp_path / "out")
    assert contents(tmp_path / "again") == once
    (tmp_path / "again" / "part-3.parquet").unlink()
    done("predict", saved[0], "--probs", tmp_path / "in", *ask, "-o", tmp_path / "again/")
    assert contents(tmp_path / "again") == once
    listed = [x for name in sorted(once) for x in parquet.read_table(tmp_path / "out" / name)["labels"].to_pylist()]
    assert listed == saved[1]
    found = list(made().predict_batches(pa.table(inputs() | {"p": P.tolist()}).to_batches(max_chunksize=7), column="p"))
    assert [x for batch in found for x in batch["labels"].to_pylist()] == saved[1]


@pytest.mark.parametrize("oracle", ["price", "penalized", "lac"])
@pytest.mark.parametrize("inputs", [columns, wide])
def test_stored_rows_calibrate_as_arrays_do(
    oracle: str, inputs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("udcp_dsl.rows.source.BATCH", 60)
    file = write(tmp_path / "rows.parquet", inputs())
    read = {"truth_column": "truth", "ignore": ["visit"], "inputs": spec().inputs}
    rows = open_rows(file, LABELS, **read).stored()
    stored = udcp.SetPredictor(spec(), oracle, alpha=0.2).calibrate(rows)
    held = udcp.SetPredictor(spec(), oracle, alpha=0.2).calibrate(P, Y, inputs=INPUTS)
    stored.save(tmp_path / "stored.json")
    held.save(tmp_path / "held.json")
    assert (tmp_path / "stored.json").read_bytes() == (tmp_path / "held.json").read_bytes()
    assert udcp.evaluate(stored, rows).mean_cost == udcp.evaluate(held, P, Y, inputs=INPUTS).mean_cost


def test_a_predictor_is_adapted_with_the_inputs_of_its_calibration_rows() -> None:
    predictor = made(repair=None)
    adapted = predictor.adapt(P[:40], calibration=(P, Y, INPUTS))
    assert adapted.predict_set(P, inputs=INPUTS).mask.shape == (N, 5)
    frame = pd.DataFrame({**{label: P[:, i] for i, label in enumerate(LABELS)}, **columns()})
    again = predictor.adapt(frame[:40], calibration=(frame, Y))
    np.testing.assert_array_equal(again.predict_set(frame).mask, adapted.predict_set(P, inputs=INPUTS).mask)
    with pytest.raises(InputError, match="give inputs="):
        predictor.adapt(P[:40], calibration=(P, Y))
