"""`udcp order`: the order is the oracle's, and every number that of its prefix."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl
from udcp_dsl import oracle_names

Udcp = Callable[..., Result]
LABELS = ["cat", "dog", "wolf", "lynx"]
P = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.25, 0.25, 0.0]])


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    np.save("p.npy", P)
    table = "\n".join(f"{name},{','.join(map(str, row[[3, 0, 1, 2]]))},x" for name, row in zip("ab", P, strict=True))
    Path("p.csv").write_text(f"photo,lynx,cat,dog,wolf,site\n{table}\n")


@pytest.mark.parametrize("oracle", oracle_names())
def test_the_steps_are_the_prefixes_of_the_oracles_order(udcp: Udcp, oracle: str) -> None:
    lam = ["--option", "lam=0.5"] if oracle == "penalized" else []
    result = udcp(
        "order", "pets.loss", "--loss", "plain", "--probs", "p.npy", "--row", "1", "--oracle", oracle, *lam, "--json"
    )
    assert result.exit_code == 0, result.output
    loss = udcp_dsl.load("pets.loss", loss="plain")
    made = udcp_dsl.make_oracle(oracle, loss, **({"lam": 0.5} if lam else {}))
    scores = made.scores(P[1:])[0]
    data = json.loads(result.stdout)
    assert (data["oracle"], data["row"], data["labels"]) == (oracle, 1, 4)
    steps = data["order"]
    labels = [step["label"] for step in steps]
    assert labels == sorted(LABELS, key=lambda y: (scores[LABELS.index(y)], -P[1][LABELS.index(y)], LABELS.index(y)))
    for rank, step in enumerate(steps, start=1):
        y = LABELS.index(step["label"])
        assert step["rank"] == rank
        assert float(step["score"]) == scores[y]
        assert step["p"] == P[1, y]
        assert step["mass"] == pytest.approx(sum(P[1, LABELS.index(label)] for label in labels[:rank]))
        assert step["cost"] == loss(labels[:rank])


def test_as_a_table(udcp: Udcp) -> None:
    result = udcp(
        "order", "pets.loss", "--probs", "p.csv", "--id", "photo", "--ignore", "site", "--row", "0", "--oracle", "base",
        "--top", "2",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = result.stdout.split("\n")
    assert lines[0] == "pets, row 0, a, by base, mass before"
    assert lines[2].split() == ["rank", "label", "p", "mass", "cost", "score"]
    assert lines[4].split() == ["1", "lynx", "0.4", "0.4", "7.01", "-1"]
    assert lines[5].split() == ["2", "wolf", "0.3", "0.7", "9.02", "-0.6"]
    assert lines[6].startswith("the first 2 of 4 labels; mass and cost of the set")


def test_columns_in_another_order(udcp: Udcp) -> None:
    np.save("q.npy", P[:, [3, 0, 1, 2]])
    answers = [
        udcp("order", "pets.loss", *given, "--row", "0", "--oracle", "lac", "--json").stdout
        for given in (
            ["--probs", "p.npy"],
            ["--probs", "q.npy", "--class-names", "lynx,cat,dog,wolf"],
            ["--probs", "p.csv", "--ignore", "photo", "--ignore", "site"],
        )
    ]
    assert answers[0] == answers[1] == answers[2]


def test_logits_and_scores(udcp: Udcp) -> None:
    np.save("logits.npy", np.log(P[:1]) + 4)
    np.save("scores.npy", 8 * P)
    expected = json.loads(
        udcp("order", "pets.loss", "--probs", "p.npy", "--row", "0", "--oracle", "lac", "--json").stdout
    )
    for given in (["logits.npy", "--logits"], ["scores.npy", "--normalize"]):
        result = udcp("order", "pets.loss", "--probs", *given, "--row", "0", "--oracle", "lac", "--json")
        found = json.loads(result.stdout)
        assert [step["label"] for step in found["order"]] == [step["label"] for step in expected["order"]]
        assert [step["p"] for step in found["order"]] == pytest.approx([step["p"] for step in expected["order"]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--row", "2"], "p.npy: there is no row 2: rows are counted from 0, and there are 2"),
        (["--row", "-1"], "-1 is not in the range"),
        (["--row", "0", "--oracle", "bass"], "there is no oracle 'bass': did you mean 'base'"),
        (["--row", "0", "--oracle", "raps", "--option", "lamb=1"], "no option 'lamb': did you mean 'lam'"),
        (["--row", "0", "--oracle", "raps", "--option", "lam"], "'lam' is not of the form name=value"),
        (["--row", "0", "--oracle", "raps", "--option", "lam=1", "--option", "lam=2"], "'lam' is set twice"),
        (["--row", "0", "--oracle", "raps", "--option", "lam=much"], "lam must be 0 or a number"),
        (["--row", "0", "--oracle", "penalized"], "has no lambda before it is calibrated: give one, --option lam=0.1"),
        (
            ["--row", "0", "--oracle", "lac", "--id", "photo"],
            "p.npy: an array has no column of ids: give a separate file",
        ),
        (["--row", "0", "--oracle", "lac", "--ignore", "site"], "p.npy: an array has no named columns to ignore"),
        (["--row", "0", "--oracle", "lac", "--top", "0"], "0 is not in the range"),
        (
            ["--row", "0", "--oracle", "lac", "--class-names", "a,b"],
            "--class-names has 2 names, but there are 4 labels",
        ),
        ([], "Missing option '--row'"),
    ],
)
def test_mistakes(udcp: Udcp, arguments: list[str], message: str) -> None:
    result = udcp("order", "pets.loss", "--probs", "p.npy", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_probabilities_that_are_none(udcp: Udcp) -> None:
    np.save("bad.npy", 3 * P)
    result = udcp("order", "pets.loss", "--probs", "bad.npy", "--row", "0", "--oracle", "lac")
    assert result.exit_code == 2
    assert "pass --normalize, for logits --logits" in result.stderr
    absent = udcp("order", "pets.loss", "--probs", "absent.npy", "--row", "0", "--oracle", "lac", "--json")
    assert absent.exit_code == 2
    assert json.loads(absent.stdout)["diagnostics"][0]["message"] == "absent.npy: no such file"


def test_a_label_that_would_steer_the_terminal(udcp: Udcp) -> None:
    Path("odd.loss").write_text('labels { "\\u001b[31mred", blue }  loss l = size')
    np.save("two.npy", [[0.5, 0.5]])
    result = udcp("order", "odd.loss", "--probs", "two.npy", "--row", "0", "--oracle", "lac")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred" in result.stdout


def test_labels_of_equal_score_come_by_falling_p(udcp: Udcp) -> None:
    Path("free.loss").write_text("labels { cat, dog, wolf, lynx }  costs c { cat: 1, default: 0 }  loss l = sum(c)")
    result = udcp("order", "free.loss", "--probs", "p.npy", "--row", "0", "--oracle", "ratio", "--json")
    steps = json.loads(result.stdout)["order"]
    assert [step["label"] for step in steps] == ["lynx", "wolf", "dog", "cat"]
    assert [step["score"] for step in steps] == [0.0, 0.0, 0.0, 10.0]


def test_the_hull_of_price_is_what_it_explains(udcp: Udcp) -> None:
    result = udcp("order", "pets.loss", "--probs", "p.npy", "--row", "0", "--json")
    loss = udcp_dsl.load("pets.loss")
    steps = udcp_dsl.make_oracle("price", loss).explain(P[0])  # type: ignore[attr-defined]
    hull = json.loads(result.stdout)["hull"]
    assert [vertex["price"] for vertex in hull] == [step.price for step in steps]
    inside: list[str] = []
    for vertex in hull:
        inside += vertex["entered"]
        assert vertex["left"] == []
        assert vertex["mass"] == pytest.approx(sum(P[0, LABELS.index(y)] for y in inside), abs=1e-15)
        assert vertex["cost"] == loss(inside)
    for before, vertex in pairwise(hull):
        slope = (vertex["cost"] - before["cost"]) / (vertex["mass"] - before["mass"])
        assert vertex["price"] == pytest.approx(slope, rel=1e-12)


def test_a_row_is_scored_once_for_its_order_and_its_hull(udcp: Udcp, monkeypatch: pytest.MonkeyPatch) -> None:
    scored = []
    price = type(udcp_dsl.make_oracle("price", udcp_dsl.load("pets.loss")))
    before = price.scores

    def counted(self: udcp_dsl.predict.oracle.Oracle, P: np.ndarray) -> np.ndarray:
        scored.append(P.tolist())
        return before(self, P)

    monkeypatch.setattr(price, "scores", counted)
    assert json.loads(udcp("order", "pets.loss", "--probs", "p.npy", "--row", "0", "--json").stdout)["hull"]
    assert scored == [P[:1].tolist()]


def test_the_hull_as_a_table(udcp: Udcp) -> None:
    result = udcp("order", "pets.loss", "--loss", "plain", "--probs", "p.npy", "--row", "1", "--top", "3")
    lines = result.stdout.split("\n")
    start = lines.index("the hull: what each price of probability buys")
    assert lines[start + 1].split() == ["price", "enter", "labels", "mass", "cost"]
    assert [line.split() for line in lines[start + 3 : start + 6]] == [
        ["0", "0", "0", "0"],
        ["2", "cat", "1", "0.5", "1"],
        ["4", "dog,", "wolf", "3", "1", "3"],
    ]
    assert lines[start + 6] == "mass and cost of the best set at each price"
    few = udcp("order", "pets.loss", "--loss", "plain", "--probs", "p.npy", "--row", "1", "--top", "2").stdout
    assert "the first 2 of 3 prices; mass and cost" in few


def test_labels_that_leave_are_told(udcp: Udcp) -> None:
    Path("torn.loss").write_text(
        "labels { a, b, c, d }  hierarchy h { x { p { a }, q { d } }, y { r { b, c } } }  loss l = diameter(h)"
    )
    np.save("torn.npy", [[0.36, 0.31, 0.31, 0.02]])
    result = udcp("order", "torn.loss", "--probs", "torn.npy", "--row", "0", "--json")
    hull = json.loads(result.stdout)["hull"]
    assert [(v["entered"], v["left"]) for v in hull] == [(["a"], []), (["b", "c"], ["a"]), (["d"], [])]
    table = udcp("order", "torn.loss", "--probs", "torn.npy", "--row", "0").stdout
    assert "labels in the column 'left' are no longer in the best set" in " ".join(table.split())


def test_an_oracle_without_a_hull(udcp: Udcp) -> None:
    given = ("order", "pets.loss", "--probs", "p.npy", "--row", "0", "--oracle", "greedy")
    assert json.loads(udcp(*given, "--json").stdout)["hull"] is None
    assert "hull" not in udcp(*given).stdout


@pytest.mark.parametrize(
    ("oracle", "ending", "magic"),
    [
        ("price", "svg", b"<?xml"),
        ("price", "png", b"\x89PNG"),
        ("price", "pdf", b"%PDF"),
        ("greedy", "svg", b"<?xml"),
        ("base", "svg", b"<?xml"),
    ],
)
def test_a_figure_for_any_oracle(udcp: Udcp, oracle: str, ending: str, magic: bytes) -> None:
    pytest.importorskip("matplotlib")
    file = Path(f"row.{ending}")
    given = ("order", "pets.loss", "--probs", "p.npy", "--row", "0", "--oracle", oracle, "--plot", str(file))
    assert f"figure written to {file}" in udcp(*given).stdout
    content = file.read_bytes()
    assert content.startswith(magic)
    assert json.loads(udcp(*given, "--json").stdout)["plot"] == str(file)
    assert file.read_bytes() == content
    assert not list(Path().glob(".udcp-*"))
    if ending == "svg":
        assert ("slopes are prices" in content.decode()) == (oracle == "price")
        assert (re.search(r">\+ [a-z]", content.decode()) is not None) == (oracle == "price")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("row.gif", "row.gif: unknown extension '.gif' of a figure; known: .svg, .png, .pdf"),
        ("absent/row.svg", "absent/row.svg: there is no folder 'absent' to write it to"),
    ],
)
def test_figures_that_cannot_be_written(udcp: Udcp, file: str, message: str) -> None:
    pytest.importorskip("matplotlib")
    result = udcp("order", "pets.loss", "--probs", "p.npy", "--row", "0", "--plot", file)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_figure_without_matplotlib(udcp: Udcp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = udcp("order", "pets.loss", "--probs", "p.npy", "--row", "0", "--plot", "row.svg")
    assert result.exit_code == 2
    assert "pip install 'udcp_dsl[report]'" in result.stderr
    assert not Path("row.svg").exists()


def test_a_figure_of_many_labels_names_some_of_them(udcp: Udcp) -> None:
    pytest.importorskip("matplotlib")
    Path("many.loss").write_text("labels 0..199  loss l = size")
    weights = 0.97 ** np.arange(200)
    np.save("many.npy", [weights / weights.sum()])
    udcp("order", "many.loss", "--probs", "many.npy", "--row", "0", "--plot", "row.svg")
    named = [int(text) for text in re.findall(r">\+ (\d+)<", Path("row.svg").read_text())]
    assert 3 < len(named) < 25
    assert 0 in named
