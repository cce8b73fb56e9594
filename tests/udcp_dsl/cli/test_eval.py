"""`udcp eval`: the cost of one set, term by term."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Udcp = Callable[..., Result]


def test_terms_and_total_as_a_table(udcp: Udcp) -> None:
    result = udcp("eval", "pets.loss", "cat", "wolf", "--param", "weight=2.5")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "pets of {cat, wolf}\n"
        "\n"
        "term                              cost\n"
        "──────────────────────────────────────\n"
        "weight * count(kinds.level(1))       5\n"
        "5 * any(wild)                        5\n"
        "0.01 * size                       0.02\n"
        "──────────────────────────────────────\n"
        "total                            10.02\n"
    )


def test_json(udcp: Udcp) -> None:
    assert json.loads(udcp("eval", "pets.loss", "wolf", "cat", "--json").stdout) == {
        "ok": True,
        "diagnostics": [],
        "loss": "pets",
        "labels": ["cat", "wolf"],
        "terms": [
            {"text": "weight * count(kinds.level(1))", "cost": 4.0},
            {"text": "5 * any(wild)", "cost": 5.0},
            {"text": "0.01 * size", "cost": 0.02},
        ],
        "total": 9.02,
        "unit": None,
    }


def test_no_labels_is_the_empty_set(udcp: Udcp) -> None:
    result = udcp("eval", "pets.loss", "--loss", "plain")
    assert result.stdout.startswith("plain of {}\n")
    assert json.loads(udcp("eval", "pets.loss", "--json").stdout)["total"] == 0


def test_a_label_given_twice_is_refused(udcp: Udcp) -> None:
    result = udcp("eval", "pets.loss", "wolf", "cat", "wolf")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: label 'wolf' is given twice; a set contains a label once\n"


def test_an_unknown_label_offers_the_nearest(udcp: Udcp) -> None:
    result = udcp("eval", "pets.loss", "wolff")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: unknown label 'wolff'; did you mean 'wolf'?\n"


def test_numbers_are_names_of_labels_not_positions(udcp: Udcp, folder: Path) -> None:
    (folder / "n.loss").write_text("labels 5..7 loss l = any({ 5 }) + 0.5 * size")
    assert json.loads(udcp("eval", "n.loss", "5", "--json").stdout)["total"] == 1.5
    (folder / "m.loss").write_text("labels { a, b } loss l = size")
    assert udcp("eval", "m.loss", "0").exit_code == 2


def test_a_label_that_looks_like_an_option_follows_two_dashes(udcp: Udcp, folder: Path) -> None:
    (folder / "d.loss").write_text('labels { "--json", b } loss l = size')
    result = udcp("eval", "d.loss", "--", "--json")
    assert result.stdout.startswith("l of {--json}\n")
    assert udcp("eval", "d.loss", "--", "--jsn").stderr.startswith("error: unknown label '--jsn'")


def test_minus_zero_is_zero(udcp: Udcp, folder: Path) -> None:
    (folder / "z.loss").write_text("labels { a, b } loss l = size - 2 * all({ a, b })")
    assert "-0" not in udcp("eval", "z.loss", "a").stdout
