"""Promises on the command line: the same predictors as in Python, through calibrate, show, predict and evaluate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl
from udcp_dsl import Repair, SetPredictor
from udcp_dsl.rows.columns import NamedPositions

Udcp = Callable[..., Result]
rng = np.random.default_rng(4)
P = rng.dirichlet(np.ones(3), 300)
Y = NamedPositions.of(np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1), ["wart", "nevus", "melanoma"])
WEIGHTS = rng.random(300)
SPEC = "labels {wart, nevus, melanoma}\ncosts harm {wart: 1, nevus: 2, melanoma: 10}\nloss skin = size\n"
SOURCE = ("--probs", "p.npy", "--truth", "y.npy")

CASES: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    (("--conditional", "difficulty", "--bins", "3"), {"conditional": "difficulty", "bins": 3}, "each of 3 bins"),
    (("--alpha", "0.1", "--confidence", "0.9"), {"alpha": 0.1, "confidence": 0.9}, "with confidence 0.9 over the draw"),
    (
        ("--conditional", "class", "--alpha", "0.1", "--confidence", "0.8", "--simultaneous"),
        {"conditional": "class", "alpha": 0.1, "confidence": 0.8, "simultaneous": True},
        "in all at once",
    ),
    (
        ("--risk", "harm", "--alpha", "1.5"),
        {"risk": "harm", "alpha": 1.5},
        "mean of 'harm' over missed true labels at most 1.5",
    ),
    (("--repair", "temperature"), {"repair": "temperature"}, "probabilities repaired: "),
    (("--temperature", "2"), {"repair": Repair(0.5)}, "probabilities repaired: flattened"),
]


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    Path("skin.loss").write_text(SPEC)
    np.save("p.npy", P)
    np.save("y.npy", Y.names)
    np.save("w.npy", WEIGHTS)
    Path("w.csv").write_text("id,weight\n" + "".join(f"{i},{w!r}\n" for i, w in enumerate(WEIGHTS.tolist())))


@pytest.mark.parametrize(("arguments", "settings", "told"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_as_in_python(udcp: Udcp, arguments: tuple[str, ...], settings: dict[str, Any], told: str) -> None:
    done = udcp("calibrate", "skin.loss", *SOURCE, "--oracle", "lac", *arguments, "-o", "skin.json")
    assert done.exit_code == 0, done.output
    same = SetPredictor(udcp_dsl.load("skin.loss"), "lac", **settings).calibrate(P, Y)
    again = SetPredictor.load("skin.json")
    np.testing.assert_array_equal(again.predict_set(P).mask, same.predict_set(P).mask)
    shown = udcp("show", "skin.json")
    assert shown.exit_code == 0, shown.output
    assert told in " ".join(shown.stdout.split())
    data = json.loads(udcp("show", "skin.json", "--json").stdout)
    assert data["promise"]["told"] == [same.promise.guarantee(same.alphas[0])]
    assert data["temperature"] == same.temperature
    sets = udcp("predict", "skin.json", "--probs", "p.npy", "-o", "sets.npy")
    assert sets.exit_code == 0, sets.output
    np.testing.assert_array_equal(np.load("sets.npy"), same.predict_set(P).mask)
    judged = udcp("evaluate", "skin.json", *SOURCE)
    assert judged.exit_code == 0, judged.output
    assert f"guaranteed: {same.promise.guarantee(same.alphas[0])}" in " ".join(judged.stdout.split())
    risk = json.loads(udcp("evaluate", "skin.json", *SOURCE, "--json").stdout)["evaluations"][0]["risk"]
    assert (risk is None) == ("risk" not in settings)


@pytest.mark.parametrize("file", ["w.npy", "w.csv:weight"])
def test_weights(udcp: Udcp, file: str) -> None:
    options = ("--oracle", "lac", "--weights", file, "-o", "skin.json")
    done = udcp("calibrate", "skin.loss", *SOURCE, *options)
    assert done.exit_code == 0, done.output
    same = SetPredictor(udcp_dsl.load("skin.loss"), "lac").calibrate(P, Y, weights=WEIGHTS)
    done = udcp("predict", "skin.json", "--probs", "p.npy", "--weights", file, "-o", "sets.npy")
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(np.load("sets.npy"), same.predict_set(P, weights=WEIGHTS).mask)
    assert "whose shift the weights describe" in " ".join(udcp("show", "skin.json").stdout.split())
    assert udcp("evaluate", "skin.json", *SOURCE, "--weights", file).exit_code == 0
    missing = udcp("predict", "skin.json", "--probs", "p.npy", "-o", "other.npy")
    assert missing.exit_code == 2
    assert "give" in missing.stderr
    assert not Path("other.npy").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--risk", "harms", "--alpha", "1"), "did you mean 'harm'"),
        (("--risk", "harm"), "in the units of the harm"),
        (("--risk", "harm", "--alpha", "11"), "strictly between 0 and 10"),
        (("--alpha", "1.5"), "strictly between 0 and 1"),
        (("--temperature", "warm"), "give fit, or a number above 0"),
        (("--temperature", "-1"), "above 0"),
        (("--repair", "warm"), "give auto, temperature or none"),
        (("--confidence", "2"), "strictly between 0 and 1"),
        (("--bins", "3"), "--bins needs --conditional difficulty"),
        (("--simultaneous",), "needs --confidence"),
        (("--confidence", "0.9", "--randomize"), "exclude each other"),
        (("--alpha", "0.1", "--confidence", "0.9", "--weights", "w.npy"), "exclude each other"),
        (("--weights", "y.txt"), "is 'x', not a number"),
        (("--conditional", "difficulty", "--group", "y.npy"), "choose one"),
    ],
)
def test_what_is_refused(udcp: Udcp, arguments: tuple[str, ...], message: str) -> None:
    Path("y.txt").write_text("x\n" * 300)
    done = udcp("calibrate", "skin.loss", *SOURCE, "--oracle", "lac", *arguments, "-o", "skin.json")
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())
    assert not Path("skin.json").exists()


def test_compare_at_a_temperature(udcp: Udcp) -> None:
    options = ("--oracle", "lac", "--splits", "2", "--json")
    done = udcp("compare", "skin.loss", *SOURCE, *options, "--repair", "temperature")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert (data["n"], data["temperature"] > 0) == (240, True)
    assert udcp("compare", "skin.loss", *SOURCE, *options, "--temperature", "cold").exit_code == 2


def test_a_default_alpha_is_said(udcp: Udcp) -> None:
    arguments = ("calibrate", "skin.loss", *SOURCE, "--oracle", "lac", "-o", "skin.json")
    assert "alpha 0.1 (default)" in udcp(*arguments).stdout
    assert "(default)" not in udcp(*arguments, "--alpha", "0.1").stdout


def test_an_alpha_meant_as_coverage_is_told_in_the_words_of_the_command_line(udcp: Udcp) -> None:
    done = udcp("calibrate", "skin.loss", *SOURCE, "--oracle", "lac", "--alpha", "0.9", "-o", "skin.json")
    assert "For coverage 0.9 give --alpha 0.1" in " ".join(done.output.split())
    refused = udcp("calibrate", "skin.loss", *SOURCE, "--oracle", "lac", "--confidence", "0.95", "-o", "skin.json")
    told = " ".join(refused.output.split())
    assert refused.exit_code == 2
    assert "--confidence 0.95 is given without --alpha" in told
    assert "give --alpha 0.05. --confidence is something else" in told
    assert "as in --alpha 0.1 --confidence 0.95" in told
    assert "confidence_level" not in done.output + refused.output
