"""`udcp compare` prints and writes what `udcp.compare` finds."""

from __future__ import annotations

import csv
import datetime
import functools
import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl
from udcp_dsl.cli import compare as verb
from udcp_dsl.rows.columns import NamedPositions

Udcp = Callable[..., Result]

LABELS = ("cat", "dog", "wolf", "lynx")
RNG = np.random.default_rng(5)
P = RNG.dirichlet(np.full(4, 0.5), 240)
Y = NamedPositions.of([RNG.choice(4, p=p) for p in P], LABELS)
SITES = RNG.choice(["north", "south"], 240)
OTHER = """\
labels { cat, dog, wolf, lynx }
costs fees { wolf: 4, default: 1 }
loss fees_only = sum(fees)
"""
QUICK = ("--oracle", "lac", "--oracle", "price", "--splits", "3", "--seed", "2")
SOURCE = ("--probs", "p.npy", "--truth", "y.npy")


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    np.save("p.npy", P)
    np.save("y.npy", np.array(LABELS)[Y])
    Path("other.loss").write_text(OTHER)
    with Path("rows.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*LABELS, "truth", "site", "photo"])
        writer.writerows(
            [*p, LABELS[y], site, f"img{i}"] for i, (p, y, site) in enumerate(zip(P, Y, SITES, strict=True))
        )


def expected(*specs: str, **settings: Any) -> udcp_dsl.Comparison:
    losses = [udcp_dsl.load(spec) for spec in specs or ("pets.loss",)]
    return udcp_dsl.compare(losses, P, Y, **{"oracles": ["lac", "price"], "splits": 3, "seed": 2, **settings})


@functools.cache
def usual() -> udcp_dsl.Comparison:
    """What is expected of pets.loss and QUICK."""
    return expected()


def untimed(data: dict[str, Any]) -> dict[str, Any]:
    for row in (*data["runs"], *data["summaries"], *(data["beside"] or {"summaries": []})["summaries"]):
        del row["seconds"]
    return data


def plain(comparison: udcp_dsl.Comparison) -> dict[str, Any]:
    return untimed(json.loads(json.dumps(comparison.as_dict())))


def test_as_data(udcp: Udcp) -> None:
    result = udcp("compare", "pets.loss", *SOURCE, *QUICK, "--json")
    assert result.exit_code == 0, result.output
    data = untimed(json.loads(result.stdout))
    assert (data.pop("ok"), data.pop("files"), data.pop("warnings"), data.pop("diagnostics")) == (True, [], [], [])
    assert data == plain(usual())
    assert result.stderr == ""


def test_several_specs_and_alphas(udcp: Udcp) -> None:
    arguments = ("pets.loss", "other.loss", *SOURCE, *QUICK, "--alpha", "0.1", "--alpha", "1/4", "--oracle", "ratio")
    data = untimed(json.loads(udcp("compare", *arguments, "--json").stdout))
    whole = expected("pets.loss", "other.loss", alphas=["0.1", "1/4"], oracles=["lac", "price", "ratio"])
    assert data["summaries"] == plain(whole)["summaries"]
    text = udcp("compare", *arguments).stdout
    headings = ["pets, alpha 0.1", "pets, alpha 0.25", "fees_only, alpha 0.1", "fees_only, alpha 0.25"]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    assert "ratio is left out for pets: oracle 'ratio' needs a separable loss" in text


def test_the_table(udcp: Udcp) -> None:
    text = udcp("compare", "pets.loss", *SOURCE, *QUICK).stdout
    lines = text.split("\n")
    for summary in usual().summaries():
        line = next(line for line in lines if line.startswith(summary.oracle))
        mark = ["*"] if summary.oracle == "price" else []
        low, high = summary.coverage_interval
        assert line.split()[:-1] == [
            *(summary.oracle, *mark, f"{summary.coverage:.4f}", f"{low:.3f}", "to", f"{high:.3f}"),
            *(f"{summary.cost_mean:.5g}", f"{summary.cost_error:.2g}", f"{summary.size:.4g}", f"{summary.empty:.1%}"),
        ]
        for term, cost in summary.cost_by_term.items():
            assert f"{cost:.4g}" in next(line for line in lines if line.startswith(term))
        for name, (covered, share) in summary.by_size.items():
            row = next(line for line in lines[lines.index("") :] if line.split()[:1] == [name])
            assert f"{covered:.3f} ({share:.0%})" in row
    assert "240 rows, 4 labels" in text


def test_what_is_promised_beside(udcp: Udcp) -> None:
    asked = ("--conditional", "difficulty", "--bins", "3", "--alpha", "0.1", "--confidence", "0.9")
    data = untimed(json.loads(udcp("compare", "pets.loss", *SOURCE, *QUICK, *asked, "--json").stdout))
    whole = expected(conditional="difficulty", bins=3, alphas="0.1", confidence="0.9")
    assert data["beside"] == plain(whole)["beside"]
    assert data["confidence"] == "0.9"
    text = udcp("compare", "pets.loss", *SOURCE, *QUICK, *asked).stdout
    assert "pets, alpha 0.1, within each of 3 bins by difficulty" in text
    assert "coverage by difficulty" in text
    risk = ("other.loss", *SOURCE, *QUICK, "--risk", "fees", "--alpha", "1.5")
    data = untimed(json.loads(udcp("compare", *risk, "--json").stdout))
    assert data["summaries"] == plain(expected("other.loss", risk="fees", alphas="1.5"))["summaries"]
    assert data["summaries"][0]["risk"] is not None


def test_the_losses_of_one_spec(udcp: Udcp) -> None:
    arguments = ("compare", "pets.loss", "--loss", "plain", "--loss", "pets", "--param", "weight=5", *SOURCE, *QUICK)
    data = untimed(json.loads(udcp(*arguments, "--json").stdout))
    losses = [udcp_dsl.load("pets.loss", loss=name, params={"weight": 5}) for name in ("plain", "pets")]
    whole = udcp_dsl.compare(losses, P, Y, oracles=["lac", "price"], splits=3, seed=2)
    assert data["summaries"] == plain(whole)["summaries"]


def test_groups_and_ids_of_a_table(udcp: Udcp) -> None:
    table = ("--probs", "rows.csv", "--truth", "truth", "--group", "site", "--id", "photo")
    data = untimed(json.loads(udcp("compare", "pets.loss", *table, *QUICK, "--json").stdout))
    whole = plain(expected(groups=SITES, ids=[f"img{i}" for i in range(240)]))
    assert data["summaries"] == whole["summaries"]
    assert data["examples"] == whole["examples"]
    assert set(data["summaries"][0]["by_group"]) == {"north", "south"}
    assert "coverage by group" in udcp("compare", "pets.loss", *table, *QUICK).stdout


def test_class_names_logits_and_scores(udcp: Udcp) -> None:
    names = ["lynx", "cat", "dog", "wolf"]
    Path("names.txt").write_text("\n".join(LABELS[y] for y in Y))
    np.save("q.npy", P[:, [3, 0, 1, 2]])
    np.save("scores.npy", 3 * P)
    np.save("logits.npy", np.log(P))
    for source in (
        ("--probs", "q.npy", "--truth", "names.txt", "--class-names", ",".join(names)),
        ("--probs", "scores.npy", "--truth", "y.npy", "--normalize"),
        ("--probs", "logits.npy", "--truth", "y.npy", "--logits"),
    ):
        data = json.loads(udcp("compare", "pets.loss", *source, *QUICK, "--json").stdout)
        costs = [x["cost"] for x in data["summaries"]]
        assert costs == pytest.approx([x.cost for x in usual().summaries()])


def test_integers_beside_class_names_are_doubtful(udcp: Udcp) -> None:
    np.save("q.npy", P[:, [3, 0, 1, 2]])
    np.save("integers.npy", Y)
    source = ("--probs", "q.npy", "--truth", "integers.npy", "--class-names", "lynx,cat,dog,wolf")
    result = udcp("compare", "pets.loss", *source, *QUICK)
    assert result.exit_code == 0
    assert "warning: y contains integers, taken as positions in loss.labels" in result.stderr


@pytest.mark.parametrize("file", ["runs.csv", "runs.parquet"])
def test_runs_are_written(udcp: Udcp, file: str) -> None:
    result = udcp("compare", "pets.loss", *SOURCE, *QUICK, "--out", file)
    assert result.exit_code == 0, result.output
    assert f"{file} is written" in result.stdout
    if file.endswith("csv"):
        with Path(file).open(newline="") as text:
            costs = [float(row["mean_cost"]) for row in csv.DictReader(text)]
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        costs = parquet.read_table(file)["mean_cost"].to_pylist()
    assert costs == pytest.approx(usual().table()["mean_cost"], rel=1e-11)


def test_runs_on_standard_output_have_it_for_themselves(udcp: Udcp) -> None:
    result = udcp("compare", "pets.loss", *SOURCE, *QUICK, "--out", "-")
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [float(row["mean_cost"]) for row in rows] == pytest.approx(usual().table()["mean_cost"], rel=1e-11)
    assert "240 rows, 4 labels" in result.stderr
    assert "is written" not in result.output
    assert not Path("-").exists()


@pytest.mark.usefixtures("undrawn")
def test_report_and_figures(udcp: Udcp) -> None:
    pytest.importorskip("matplotlib")
    result = udcp("compare", "pets.loss", *SOURCE, *QUICK, "--report", "out.html", "--figures", "figures", "--json")
    assert result.exit_code == 0, result.output
    page = Path("out.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert re.search(r"<title>Prediction sets compared: \w+\.\w+</title>", page)  # the file of the rows
    assert "<code>udcp compare pets.loss " in page
    assert str(datetime.date.today()) in page
    figures = [str(path) for path in sorted(Path("figures").iterdir())]
    assert {Path(name).suffix for name in figures} == {".svg", ".pdf"}
    written = json.loads(result.stdout)["files"]
    assert written[0] == "out.html"
    assert sorted(written[1:]) == figures


def test_without_matplotlib(udcp: Udcp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    for wanted in (("--report", "out.html"), ("--figures", "out")):
        result = udcp("compare", "pets.loss", *SOURCE, *QUICK, *wanted, "--out", "runs.csv")
        assert result.exit_code == 2
        assert "pip install 'udcp_dsl[report]'" in result.stderr
    assert not Path("out").exists()
    assert not Path("out.html").exists()
    assert not Path("runs.csv").exists()


def test_warnings(udcp: Udcp) -> None:
    result = udcp("compare", "pets.loss", *SOURCE, *QUICK, "--alpha", "0.001")
    assert result.exit_code == 0
    assert result.stderr.count("warning:") == 1
    assert "the fold for thresholds has 120 rows, and alpha 0.001 needs 999" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'SPEC...'"),
        (["pets.loss"], "Missing option '--probs'"),
        (["pets.loss", "--probs", "p.npy"], "Missing option '--truth'"),
        (["absent.loss", *SOURCE], "absent.loss"),
        (["pets.loss", "pets.loss", *SOURCE], "is given twice"),
        (["pets.loss", *SOURCE, "--oracle", "pirce"], "there is no oracle 'pirce': did you mean 'price'"),
        (["pets.loss", *SOURCE, "--oracle", "ratio"], "no oracle is left for the loss 'pets'"),
        (["pets.loss", *SOURCE, "--alpha", "2"], "strictly between 0 and 1"),
        (["pets.loss", *SOURCE, "--alpha", "0.1", "--alpha", "0.10"], "each once"),
        (["pets.loss", *SOURCE, "--splits", "0"], "0 is not in the range"),
        (["pets.loss", *SOURCE, "--seed", "-1"], "seed is -1: give a whole number, 0 or more"),
        (["pets.loss", *SOURCE, "--loss", "none"], "none"),
        (["pets.loss", *SOURCE, "--out", "runs.xls"], "unknown extension '.xls'"),
        (["pets.loss", *SOURCE, "--out", "-", "--report", "-"], "give a name that ends in .html"),
        (["pets.loss", *SOURCE, "--out", "absent/runs.csv"], "there is no folder 'absent'"),
        (["pets.loss", *SOURCE, "--report", "."], "is a folder, not a file"),
        (["pets.loss", *SOURCE, "--figures", "p.npy"], "is a file, not a folder"),
        (["pets.loss", *SOURCE, "--figures", "absent/figures"], "there is no folder 'absent'"),
        (["pets.loss", "--probs", "y.npy", "--truth", "y.npy"], "a vector of 240"),
        (["pets.loss", *SOURCE, "--bins", "3"], "--bins needs --conditional difficulty"),
        (["pets.loss", *SOURCE, "--conditional", "group"], "'group' is not one of 'difficulty', 'decision'"),
        (["pets.loss", *SOURCE, "--confidence", "95"], "confidence is '95'"),
        (["other.loss", *SOURCE, "--risk", "fees"], "in the units of the harm: give --alpha"),
        (["other.loss", *SOURCE, "--risk", "fee", "--alpha", "1"], "did you mean 'fees'"),
        (["pets.loss", "--probs", "p.npy", "--truth", "p.npy"], "true labels"),
    ],
)
def test_mistakes(udcp: Udcp, folder: Path, arguments: list[str], message: str) -> None:
    before = sorted(folder.iterdir())
    result = udcp("compare", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert sorted(folder.iterdir()) == before


def test_specs_of_other_labels(udcp: Udcp) -> None:
    Path("other.loss").write_text(OTHER.replace("lynx", "emu"))
    result = udcp("compare", "pets.loss", "other.loss", *SOURCE)
    assert result.exit_code == 2
    assert "'pets' (pets.loss) and 'fees_only' (other.loss) have different labels" in result.stderr


def test_help(udcp: Udcp) -> None:
    result = udcp("compare", "--help")
    assert result.exit_code == 0
    assert "Example:  udcp compare pets.loss" in " ".join(result.stdout.split("\n"))
    assert "SPEC..." in result.stdout


@pytest.mark.usefixtures("undrawn")
def test_labels_that_are_codes_are_shown_by_name(udcp: Udcp) -> None:
    pytest.importorskip("matplotlib")
    Path("names.csv").write_text("label,name\ncat,House cat\nwolf,Grey <wolf>\nlynx,\n")
    result = udcp("compare", "pets.loss", *SOURCE, *QUICK, "--names", "names.csv", "--report", "out.html", "--json")
    assert result.exit_code == 0, result.output
    page = Path("out.html").read_text(encoding="utf-8")
    assert "House cat" in page
    assert "Grey <wolf>" not in page
    assert "House cat" not in Path("pets.loss").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,title\ncat,Cat\n", "there is no column 'name'"),
        ("label,name\ncat,Cat\ncat,Kitty\n", "label 'cat' is named twice"),
        ("label,name\ncatt,Cat\n", "--names: 'catt' is not a label; did you mean 'cat'?"),
        ("", "is empty"),
    ],
)
def test_names_that_are_wrong(udcp: Udcp, text: str, message: str) -> None:
    Path("names.csv").write_text(text)
    result = udcp("compare", "pets.loss", *SOURCE, *QUICK, "--names", "names.csv")
    assert result.exit_code == 2
    assert message in result.stderr


SWEPT = (
    "labels { cat, dog, wolf, lynx }\nparam fear = 1 in [0, 9]\nparam k = 1\nloss l = k * size + fear * any({ wolf })\n"
)


def test_several_values_of_a_parameter_are_a_sweep(udcp: Udcp, folder: Path) -> None:
    Path("swept.loss").write_text(SWEPT)
    result = udcp("compare", "swept.loss", *SOURCE, *QUICK, "--param", "fear=0,2,5", "--param", "k=2", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    loss = udcp_dsl.loads(SWEPT, params={"k": 2})
    settings: dict[str, Any] = {"oracles": ["lac", "price"], "splits": 3, "seed": 2}
    expected = udcp_dsl.sweep(loss, P, Y, param="fear", values=[0, 2, 5], **settings)
    assert data["rows"] == json.loads(json.dumps(expected.as_dict()["rows"]))
    told = udcp("compare", "swept.loss", *SOURCE, *QUICK, "--param", "fear=0,2", "--figures", "out")
    assert told.exit_code == 0
    assert sorted(x.name for x in Path("out").iterdir()) == ["l-fear.pdf", "l-fear.svg"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--param", "fear=0,1", "--param", "k=1,2"), "several values for one parameter only"),
        (("--param", "fear=0,1", "--out", "x.csv"), "--figures and --json"),
        (("--param", "fear=0,1", "--conditional", "difficulty"), "cannot be combined with --conditional"),
        (("--param", "fear=0,x"), "'x' is not a number"),
        (("--param", "fear=0,99"), "outside [0, 9]"),
        (("--param", "fer=0,1"), "did you mean 'fear'"),
    ],
)
def test_a_wrong_sweep(udcp: Udcp, folder: Path, options: tuple[str, ...], why: str) -> None:
    Path("swept.loss").write_text(SWEPT)
    result = udcp("compare", "swept.loss", *SOURCE, *QUICK, *options)
    assert result.exit_code == 2
    assert why in result.stderr
