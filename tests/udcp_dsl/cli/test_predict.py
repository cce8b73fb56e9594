"""`udcp predict`: the sets of the Python interface in every format, with ids, levels and groups."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq
from click.testing import Result

import udcp_dsl
from udcp_dsl import SetPredictor

Udcp = Callable[..., Result]
LABELS = ["cat", "dog", "wolf", "lynx"]
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(4), 90)
Y = np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)
NAMES = np.array(LABELS)[Y]
NEW = rng.dirichlet(np.ones(4), 25)
SITES = ["north", "south"] * 12 + ["north"]


@pytest.fixture(autouse=True)
def predictor(folder: Path) -> SetPredictor:
    np.save("new.npy", NEW)
    rows = "".join(
        f"photo{i},{','.join(repr(float(x)) for x in row[[3, 0, 1, 2]])},{site}\n"
        for i, (row, site) in enumerate(zip(NEW, SITES, strict=True))
    )
    Path("new.csv").write_text(f"photo,lynx,cat,dog,wolf,site\n{rows}")
    made = SetPredictor(udcp_dsl.load("pets.loss"), "lac", alpha=0.3).calibrate(P, NAMES)
    made.save("pets.json")
    return made


TABLE = ["--probs", "new.csv", "--id", "photo", "--ignore", "site"]


def run(udcp: Udcp, *arguments: str, file: str = "pets.json") -> Result:
    result = udcp("predict", file, *arguments)
    assert result.exit_code == 0, result.output
    return result


def test_every_format(udcp: Udcp, predictor: SetPredictor) -> None:
    sets = predictor.predict_set(NEW)
    ids = [f"photo{i}" for i in range(25)]
    said = f"25 sets at alpha 0.3, mean size {sets.sizes.mean():.4g}, mean cost {sets.costs.mean():.6g}"
    for ending in ("csv", "jsonl", "parquet", "npy"):
        result = run(udcp, *TABLE, "-o", f"sets.{ending}")
        assert result.stdout.startswith(f"sets.{ending}: {said}")
        assert result.stderr == ""
    table = list(csv.DictReader(Path("sets.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["photo"] for row in table] == ids
    assert [tuple(filter(None, row["labels"].split("|"))) for row in table] == sets.labels
    assert [float(row["cost"]) for row in table] == sets.costs.tolist()
    lines = [json.loads(line) for line in Path("sets.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["photo"], tuple(line["labels"]), line["size"]) for line in lines] == list(
        zip(ids, sets.labels, sets.sizes.tolist(), strict=True)
    )
    arrow = pq.read_table("sets.parquet").to_pydict()
    assert [tuple(labels) for labels in arrow["labels"]] == sets.labels
    assert arrow["cost"] == sets.costs.tolist()
    assert np.array_equal(np.load("sets.npy"), sets.mask)


def test_an_id_that_repeats_is_called_out_once_and_the_sets_are_written(udcp: Udcp) -> None:
    text = Path("new.csv").read_text()
    Path("new.csv").write_text(text.replace("photo7,", "photo3,").replace("photo9,", "photo3,"))
    result = run(udcp, *TABLE, "-o", "sets.csv")
    assert result.stderr.count("warning:") == 1
    assert "'photo3' is the id of rows 3 and 7" in result.stderr
    assert "3 of 25 rows share" in result.stderr
    assert len(Path("sets.csv").read_text().splitlines()) == 26
    (warning,) = json.loads(run(udcp, *TABLE, "-o", "sets.csv", "--json").stdout)["warnings"]
    assert "'photo3' is the id of rows 3 and 7" in warning


@pytest.mark.parametrize(("chosen", "file"), [([], "sets.csv"), (["--format", "jsonl"], "sets.jsonl")])
def test_standard_output_has_the_table_and_nothing_else(udcp: Udcp, chosen: list[str], file: str) -> None:
    said = run(udcp, *TABLE, "-o", file).stdout
    result = run(udcp, *TABLE, "-o", "-", *chosen)
    assert result.stdout_bytes == Path(file).read_bytes()
    assert result.stderr == said.replace(file, "standard output")
    assert not Path("-").exists()


def test_costs_of_a_csv_have_no_noise(udcp: Udcp) -> None:
    Path("tenths.loss").write_text("labels { cat, dog, wolf, lynx }  loss tenths = 0.1 * size")
    made = SetPredictor(udcp_dsl.load("tenths.loss"), "lac", alpha=0.2).calibrate(P, NAMES)
    made.save("tenths.json")
    assert 0.1 * 3 in made.predict_set(NEW).costs  # which is 0.30000000000000004
    run(udcp, "--probs", "new.npy", "-o", "sets.csv", file="tenths.json")
    costs = {row["cost"] for row in csv.DictReader(Path("sets.csv").read_text().splitlines())}
    assert "0.3" in costs
    assert costs <= {"0.0", "0.1", "0.2", "0.3", "0.4"}


def test_sources(udcp: Udcp, predictor: SetPredictor) -> None:
    expected = predictor.predict_set(NEW).mask
    np.save("moved.npy", NEW[:, [3, 0, 1, 2]])
    Path("ids.txt").write_text("\n".join(f"n{i}" for i in range(25)))
    for source in (
        ["--probs", "new.npy"],
        ["--probs", "moved.npy", "--class-names", "lynx,cat,dog,wolf"],
        TABLE,
        ["--probs", "new.csv", "--ignore", "photo", "--ignore", "site"],
        ["--probs", "new.npy", "--id", "ids.txt"],
    ):
        run(udcp, *source, "-o", "sets.npy")
        assert np.array_equal(np.load("sets.npy"), expected)
    run(udcp, "--probs", "new.npy", "--id", "ids.txt", "-o", "sets.jsonl")
    assert json.loads(Path("sets.jsonl").read_text().splitlines()[3])["id"] == "n3"


def test_class_names_of_the_predictor(udcp: Udcp, predictor: SetPredictor) -> None:
    names = ["lynx", "cat", "dog", "wolf"]
    moved = SetPredictor(predictor.loss, "lac", alpha=0.3, class_names=names)
    moved.calibrate(P[:, [3, 0, 1, 2]], np.array(LABELS)[Y]).save("moved.json")
    np.save("moved.npy", NEW[:, [3, 0, 1, 2]])
    for source in (["--probs", "moved.npy"], TABLE, ["--probs", "new.npy", "--class-names", ",".join(LABELS)]):
        run(udcp, *source, "-o", "sets.npy", file="moved.json")
        assert np.array_equal(np.load("sets.npy"), predictor.predict_set(NEW).mask)


def test_levels_and_groups(udcp: Udcp, predictor: SetPredictor) -> None:
    grouped = SetPredictor(predictor.loss, "lac", alpha=[0.2, 0.4], conditional="group")
    grouped.calibrate(P, NAMES, groups=["north", "south", "south"] * 30).save("grouped.json")
    source = ["--probs", "new.csv", "--id", "photo", "--group", "site", "-o", "sets.npy"]
    run(udcp, *source, "--alpha", "0.4", file="grouped.json")
    assert np.array_equal(np.load("sets.npy"), grouped.predict_set(NEW, alpha=0.4, groups=SITES).mask)
    several = udcp("predict", "grouped.json", *source)
    assert several.exit_code == 2
    assert "calibrated for several alphas: give --alpha, one of 0.2, 0.4" in several.stderr
    without = udcp("predict", "grouped.json", *TABLE, "--alpha", "0.4", "-o", "sets.npy")
    assert without.exit_code == 2
    assert "calibrated by group, so prediction needs the group of each row: give --group" in without.stderr


def test_in_blocks(udcp: Udcp, predictor: SetPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sets, and a fault is named by its row in the file."""
    monkeypatch.setattr("udcp_dsl.rows.source.BATCH", 4 * 4)
    run(udcp, "--probs", "new.npy", "-o", "sets.npy")
    assert np.array_equal(np.load("sets.npy"), predictor.predict_set(NEW).mask)
    SetPredictor(predictor.loss, "lac", conditional="group").calibrate(P, NAMES, groups=["north"] * 90).save(
        "grouped.json"
    )
    Path("sites.txt").write_text("\n".join(["north"] * 20 + ["south"] * 5))
    result = udcp("predict", "grouped.json", "--probs", "new.npy", "--group", "sites.txt", "-o", "sets.npy")
    assert "row 20: group 'south' is not among the calibration rows" in result.stderr
    np.save("bad.npy", np.where(np.arange(25)[:, None] == 20, np.nan, NEW))
    result = udcp("predict", "pets.json", "--probs", "bad.npy", "-o", "sets.npy")
    assert "row 20, label 'cat', is NaN" in result.stderr


def test_as_data(udcp: Udcp, predictor: SetPredictor) -> None:
    data = json.loads(run(udcp, "--probs", "new.npy", "-o", "sets.npy", "--json").stdout)
    sets = predictor.predict_set(NEW)
    assert data == {
        "ok": True, "warnings": [], "file": "sets.npy", "loss": "pets", "oracle": "lac", "alpha": "0.3", "n": 25,
        "unit": None, "mean_size": sets.sizes.mean(), "mean_cost": pytest.approx(sets.costs.mean()),
        "empty": int((sets.sizes == 0).sum()), "handed_over": None,
    }  # fmt: skip


def test_a_file_that_is_there_is_replaced_whole_or_not_at_all(udcp: Udcp, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("sets.csv").write_text("old")
    run(udcp, "--probs", "new.npy", "-o", "sets.csv")
    before = Path("sets.csv").read_bytes()
    assert before.startswith(b"id,labels,size,cost\n")

    def interrupted(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", interrupted)
    result = udcp("predict", "pets.json", "--probs", "new.npy", "-o", "sets.csv")
    assert result.exit_code == 2
    assert "sets.csv: cannot be written: No space left on device" in result.stderr
    assert Path("sets.csv").read_bytes() == before
    assert not list(Path().glob(".udcp*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["pets.json", "--probs", "new.npy", "-o", "sets.xlsx"],
            "sets.xlsx: unknown extension '.xlsx'; known: .parquet",
        ),
        (["pets.json", "--probs", "new.npy", "-o", "absent/sets.csv"], "there is no folder 'absent'"),
        (["pets.json", "--probs", "new.npy"], "Missing option '-o'"),
        (
            ["pets.json", "--probs", "new.npy", "--format", "jsonl", "-o", "sets.csv"],
            "--format is for standard output (-o -) and folders: a file's extension sets its format",
        ),
        (["pets.json", "-o", "sets.csv"], "Missing option '--probs'"),
        (["pest.json", "--probs", "new.npy", "-o", "sets.csv"], "there is no file 'pest.json'"),
        (["pets.loss", "--probs", "new.npy", "-o", "sets.csv"], "pets.loss is a spec, not a saved predictor"),
        (["pets.json", "--probs", "new.npy", "--alpha", "0.1", "-o", "sets.csv"], "not calibrated for alpha 0.1"),
        (["pets.json", "--probs", "new.npy", "--group", "sites.txt", "-o", "sets.csv"], "sites.txt: no such file"),
        (["pets.json", "--probs", "new.csv", "-o", "sets.csv"], "columns 'photo' and 'site' are not labels"),
        (
            ["pets.json", "--probs", "new.csv", "--id", "photo", "--group", "site", "-o", "sets.csv"],
            "the predictor was not calibrated by group",
        ),
    ],
)
def test_mistakes(udcp: Udcp, arguments: list[str], message: str) -> None:
    result = udcp("predict", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert not Path("sets.csv").exists()


def test_a_table_and_json_do_not_share_standard_output(udcp: Udcp) -> None:
    result = udcp("predict", "pets.json", "--probs", "new.npy", "-o", "-", "--json")
    assert result.exit_code == 2
    assert "both go to standard output" in json.loads(result.stdout)["diagnostics"][0]["message"]


def test_p_values_are_written_beside_the_sets(udcp: Udcp, predictor: SetPredictor) -> None:
    expected = predictor.p_values(NEW)
    run(udcp, "--probs", "new.npy", "-o", "sets.npy", "--p-values", "p.npy")
    assert np.array_equal(np.load("p.npy"), expected)
    assert np.array_equal(np.load("p.npy") > 0.3, np.load("sets.npy"))
    data = json.loads(run(udcp, "--probs", "new.npy", "-o", "sets.npy", "--p-values", "p.csv", "--json").stdout)
    assert data["p_values"] == "p.csv"
    with Path("p.csv").open(newline="") as stream:
        header, *table = csv.reader(stream)
    assert header == ["id", *predictor.loss.labels]
    assert [float(x) for x in table[3][1:]] == pytest.approx(expected[3])
    result = udcp("predict", "pets.json", "--probs", "new.npy", "-o", "sets.npy", "--p-values", "p.txt")
    assert (result.exit_code, "unknown extension '.txt'" in result.stderr) == (2, True)
