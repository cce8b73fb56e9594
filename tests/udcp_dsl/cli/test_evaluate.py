"""`udcp evaluate` says what `udcp.evaluate` finds, at every level that was calibrated."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl
from udcp_dsl import SetPredictor
from udcp_dsl.rows.columns import NamedPositions

Udcp = Callable[..., Result]
LABELS = ["cat", "dog", "wolf", "lynx"]
rng = np.random.default_rng(1)
P = rng.dirichlet(np.ones(4), 400)
Y = NamedPositions.of(np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1), LABELS)
SITES = np.array(["north", "south"])[np.arange(400) % 2]
NEW, TRUTH, PLACES = P[200:], Y[200:], SITES[200:]
SOURCE = ("--probs", "p.npy", "--truth", "y.npy")
TABLE = ("--probs", "rows.csv", "--truth", "label", "--group", "site")


def saved(oracle: str = "lac", *, groups: bool = False, **settings: object) -> SetPredictor:
    predictor = SetPredictor(udcp_dsl.load("pets.loss"), oracle, **{"alpha": 0.2, **settings})  # type: ignore[arg-type]
    predictor.calibrate(P[:200], Y[:200], groups=SITES[:200] if groups else None).save("pets.json")
    return predictor


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    np.save("p.npy", NEW)
    np.save("y.npy", TRUTH.names)
    with Path("rows.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*LABELS, "label", "site"])
        writer.writerows([*p, LABELS[y], site] for p, y, site in zip(NEW.tolist(), TRUTH, PLACES, strict=True))


def evaluations(udcp: Udcp, *arguments: str) -> list[dict[str, object]]:
    result = udcp("evaluate", "pets.json", *arguments, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["ok"], data["warnings"]) == (True, [])
    assert data["accuracy"] == (NEW.argmax(axis=1) == TRUTH).mean()
    found: list[dict[str, object]] = data["evaluations"]
    return found


def plain(evaluation: udcp_dsl.Evaluation) -> dict[str, object]:
    data: dict[str, object] = json.loads(json.dumps(evaluation.as_dict()))
    return {**data, "promised": float(1 - evaluation.alpha)}


def test_every_level_or_one(udcp: Udcp) -> None:
    predictor = saved(alpha=[0.2, 0.3])
    whole = [plain(udcp_dsl.evaluate(predictor, NEW, TRUTH, alpha=alpha)) for alpha in (0.2, 0.3)]
    assert evaluations(udcp, *SOURCE) == whole
    assert evaluations(udcp, *SOURCE, "--alpha", "0.3") == whole[1:]
    assert whole[0]["coverage"] != whole[1]["coverage"]


def test_the_table(udcp: Udcp) -> None:
    predictor = saved()
    found = udcp_dsl.evaluate(predictor, NEW, TRUTH)
    result = udcp("evaluate", "pets.json", *SOURCE)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.startswith(f"{found}\n")
    assert f"{found.coverage:.4f}" in result.stdout
    guarantee = "covers the true label with probability at least 0.8, on average over calibrations (200 rows)"
    assert f"guaranteed: {guarantee}" in " ".join(result.stdout.split())


@pytest.mark.parametrize(("shift", "place"), [(0.0, "contains"), (0.5, "is below"), (-0.5, "is above")])
def test_it_says_on_which_side_of_the_promise_coverage_lies(udcp: Udcp, shift: float, place: str) -> None:
    saved()
    near = np.where(rng.random(200) < abs(shift), NEW.argmin(axis=1) if shift > 0 else NEW.argmax(axis=1), TRUTH)
    np.save("y.npy", np.array(LABELS)[near])
    assert f"the measured interval {place} 0." in udcp("evaluate", "pets.json", *SOURCE).stdout


def test_by_group(udcp: Udcp) -> None:
    predictor = saved(conditional="group", groups=True)
    (found,) = evaluations(udcp, *TABLE)
    assert found == plain(udcp_dsl.evaluate(predictor, NEW, TRUTH, groups=PLACES))
    text = udcp("evaluate", "pets.json", *TABLE).stdout
    assert "at least 0.8, within each group" in text
    assert "north" in text
    missing = udcp("evaluate", "pets.json", *SOURCE)
    assert missing.exit_code == 2
    assert "needs the group of each row: give --group" in missing.stderr


def test_by_class(udcp: Udcp) -> None:
    saved(conditional="class")
    text = udcp("evaluate", "pets.json", *SOURCE).stdout
    assert "within each class" in text
    assert all(label in text for label in LABELS)


def test_the_share_of_sets_that_are_proved_to_be_the_best(udcp: Udcp) -> None:
    saved("lac")
    assert evaluations(udcp, *SOURCE)[0]["certified"] is None
    saved("price")
    assert evaluations(udcp, *SOURCE)[0]["certified"] == 1.0
    assert re.search("proved best +100.0%", udcp("evaluate", "pets.json", *SOURCE).stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing option '--probs'"),
        (("--probs", "p.npy"), "Missing option '--truth'"),
        ((*SOURCE, "--alpha", "0.1"), "not calibrated for alpha 0.1: choose from 0.2"),
        ((*SOURCE, "--workers", "2"), "'lac' runs no solver"),
        (("--probs", "none.npy", "--truth", "y.npy"), "none.npy"),
        (("--probs", "rows.csv", "--truth", "label"), "site"),
    ],
)
def test_mistakes(udcp: Udcp, arguments: tuple[str, ...], message: str) -> None:
    saved()
    result = udcp("evaluate", "pets.json", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_help(udcp: Udcp) -> None:
    assert "Example:  udcp evaluate pets.json" in udcp("evaluate", "--help").stdout
