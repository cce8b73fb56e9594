"""`udcp check`: what it says, as text and as data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from udcp_dsl.expression.facts import FACT_NAMES

Udcp = Callable[..., Result]


def test_heading_facts_and_oracles_are_shown(udcp: Udcp) -> None:
    result = udcp("check", "pets.loss", "--why")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "pets in pets.loss: 4 labels, values in [0, 9.04]",
        "with weight = 2",
        "the spec also has plain: choose with --loss",
    ]
    assert "monotone        proved    every summand is monotone" in lines
    (refuted,) = [i for i, line in enumerate(lines) if line.startswith("separable       refuted   L({")]
    assert [line.strip() for line in lines[refuted + 1 : refuted + 3]] == [
        "because of weight * count(kinds.level(1)) (line 6)",
        "so that ratio does not apply",
    ]
    assert "base        ✓ yes     no      microseconds   one sort of each row, stopped early" in lines
    assert "greedy      ✓ yes     no      microseconds   a bound per group of equal labels at each step" in lines
    assert "price       ✓ yes     yes     microseconds   minimum cuts" in lines
    assert any(line.startswith("ratio       no ") and "needs separable, which is refuted" in line for line in lines)


def test_oracles_come_first_and_facts_in_one_line(udcp: Udcp) -> None:
    lines = udcp("check", "pets.loss").stdout.splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("oracle ")]
    (known,) = [i for i, line in enumerate(lines) if line.startswith("proved: ")]
    assert heads[0] < known
    text = " ".join(lines[known:])
    assert "not: antitone, separable" in text
    assert "(--why explains)" in text
    assert "✗" not in "".join(lines), "what is refuted is no failure"


def test_text_is_plain_and_at_most_100_wide(udcp: Udcp) -> None:
    text = udcp("check", "pets.loss").stdout
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert all(line == line.rstrip() for line in text.splitlines())


def test_json_has_the_documented_keys(udcp: Udcp) -> None:
    result = udcp("check", "pets.loss", "--json", "--param", "weight=3")
    data = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list(data) == [
        "ok", "diagnostics", "file", "loss", "losses", "unit", "labels", "params", "interval", "facts", "summands",
        "lost", "free_labels", "oracles",
    ]  # fmt: skip
    assert data["ok"] is True
    assert (data["loss"], data["losses"], data["labels"]) == ("pets", ["plain", "pets"], 4)
    assert data["params"] == {"weight": 3}
    assert data["interval"] == [0, 11.04]
    assert tuple(data["facts"]) == FACT_NAMES
    separable = data["facts"]["separable"]
    assert separable["state"] == "refuted"
    assert separable["blame"] == {"text": "weight * count(kinds.level(1))", "line": 6, "column": 13}
    assert len(separable["sets"]) == 4
    assert data["facts"]["monotone"]["blame"] is None
    assert data["lost"]["separable"] == ["ratio"]
    assert data["lost"]["monotone"] == []
    assert [s["text"] for s in data["summands"]] == ["weight * count(kinds.level(1))", "5 * any(wild)", "0.01 * size"]
    assert data["summands"][1]["facts"]["separable"] == "refuted"
    fields = {"name", "applies", "why", "exact", "time", "declared", "does", "tuned", "solves"}
    assert all(fields == set(x) for x in data["oracles"])
    said = {x["name"]: x for x in data["oracles"]}
    assert (said["ratio"]["applies"], said["ratio"]["exact"], said["ratio"]["time"]) == (False, None, None)
    assert (said["price"]["exact"], said["price"]["time"]) == (True, "microseconds")
    assert [name for name, x in said.items() if x["tuned"]] == ["penalized"]
    assert [name for name, x in said.items() if x["solves"]] == ["ilp"]


def test_time_is_measured_where_it_is_asked_for(udcp: Udcp) -> None:
    data = json.loads(udcp("check", "pets.loss", "--time", "--json").stdout)
    measured = {x["name"]: x["seconds_a_row"] for x in data["oracles"]}
    assert measured.pop("ratio") is None
    assert all(0 < seconds < 60 for seconds in measured.values())
    lines = udcp("check", "pets.loss", "--time").stdout.splitlines()
    (heading,) = [line for line in lines if line.startswith("oracle ")]
    assert heading.split() == ["oracle", "applies", "exact", "time", "per", "row", "measured", "how"]
    (price,) = [line for line in lines if line.startswith("price ")]
    assert re.search(r"microseconds   [\d.]+ [um]?s ", price)


def test_another_loss_is_chosen_by_name(udcp: Udcp) -> None:
    data = json.loads(udcp("check", "pets.loss", "--loss", "plain", "--json").stdout)
    assert data["loss"] == "plain"
    assert data["facts"]["separable"]["state"] == "proved"
    assert {x["name"]: x["applies"] for x in data["oracles"]}["ratio"] is True


@pytest.mark.parametrize("labels", ["a,b, c", "names.txt", "names.csv", "names.json"])
def test_labels_come_from_a_list_or_a_file(udcp: Udcp, folder: Path, labels: str) -> None:
    (folder / "open.loss").write_text("loss l = size")
    (folder / "names.txt").write_text("a\n\nb\r\nc\n")
    (folder / "names.csv").write_text('name,cost\na,1\n"b",2\nc,3\n')
    (folder / "names.json").write_text('["a", "b", "c"]')
    assert udcp("eval", "open.loss", "a", "b", "c", "--labels", labels).exit_code == 0
    assert json.loads(udcp("check", "open.loss", "--labels", labels, "--json").stdout)["labels"] == 3


def test_labels_may_be_a_range(udcp: Udcp, folder: Path) -> None:
    (folder / "open.loss").write_text("loss l = size")
    assert json.loads(udcp("check", "open.loss", "--labels", "0..9,other", "--json").stdout)["labels"] == 11


def test_free_labels_are_warned_of(udcp: Udcp, folder: Path) -> None:
    (folder / "free.loss").write_text("labels 1..9\nloss l = any({1, 2}) + 3")
    result = udcp("check", "free.loss")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "free.loss:2:10: warning[W601]: labels that cost nothing: '3', '4', '5' and 4 more;"
    )
    assert "= help: give `size` a small weight: + 0.01 * size" in result.stderr
    data = json.loads(udcp("check", "free.loss", "--json").stdout)
    assert data["free_labels"] == ["3", "4", "5", "6", "7", "8", "9"]
    assert [(x["code"], x["severity"]) for x in data["diagnostics"]] == [("W601", "warning")]


def test_warnings_of_the_spec_are_shown_once_and_do_not_fail(udcp: Udcp, folder: Path) -> None:
    (folder / "c.csv").write_text("name,cost\na,1\nb,2\nz,3\n")
    (folder / "rows.loss").write_text('labels { a, b }\ncosts c from "c.csv" column cost\nloss l = sum(c)')
    result = udcp("check", "rows.loss")
    assert result.exit_code == 0
    assert result.stderr.count("warning[W501]") == 1
    assert [x["code"] for x in json.loads(udcp("eval", "rows.loss", "--json").stdout)["diagnostics"]] == ["W501"]


def test_data_outside_the_folder_is_read_only_where_allowed(udcp: Udcp, folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "names.json").write_text('["a"]')
    (folder / "below" / "l.loss").write_text('labels from "../names.json" loss l = size')
    assert "error[E302]" in udcp("check", "below/l.loss").stderr
    assert udcp("check", "below/l.loss", "--allow-outside").exit_code == 0


def test_a_label_cannot_steer_the_terminal(udcp: Udcp, folder: Path) -> None:
    (folder / "l.loss").write_text('labels { "\\u001b[31m", b } loss l = any({ b }) + 0.5 * size')
    text = udcp("check", "l.loss").stdout + udcp("eval", "l.loss", "\x1b[31m").stdout
    assert "\x1b" not in text
    assert r"\x1b[31m" in text


def test_brackets_in_labels_are_not_markup(udcp: Udcp, folder: Path) -> None:
    (folder / "l.loss").write_text('labels { "[bold]a", ":cat:" } loss l = size')
    assert "l of {[bold]a, :cat:}" in udcp("eval", "l.loss", "[bold]a", ":cat:").stdout


MANY = "labels 0..29 hierarchy h { x { 0..9 }, 10..29 } loss l = "


@pytest.mark.parametrize(
    ("body", "fact", "lost"),
    [
        ("size", "separable", []),
        ("any({0, 1})", "separable", ["ratio"]),
        ("-size", "monotone", ["ratio"]),
        ("diameter(h)", "laminar", []),  # price is as fast on a tree diameter
        ("size ^ 2", "laminar", []),  # and on a function of size
        ("spread(h)", "laminar", ["price in microseconds"]),
    ],
)
def test_what_is_lost_by_a_fact(udcp: Udcp, folder: Path, body: str, fact: str, lost: list[str]) -> None:
    (folder / "many.loss").write_text(MANY + body)
    assert json.loads(udcp("check", "many.loss", "--json").stdout)["lost"][fact] == lost
