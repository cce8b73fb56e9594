"""`udcp check --ilp` and `--export`: the size of the linear model, and the model as a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pulp
import pytest
from click.testing import Result

Udcp = Callable[..., Result]

REFUSED = 'labels 0..19\ncosts c from "c.json"\ncosts d { default: 0.3 }\nloss l = size\n  + (sum(c) >= sum(d) + 1)\n'


def test_the_size_is_shown(udcp: Udcp) -> None:
    # Beside the 4 labels: two families of two labels, and the two wild ones.
    result = udcp("check", "pets.loss", "--ilp")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "ilp: 7 binaries, 0 continuous, 6 rows, 12 nonzeros"
    assert "ilp:" not in udcp("check", "pets.loss").stdout


def test_the_size_as_data(udcp: Udcp) -> None:
    data = json.loads(udcp("check", "pets.loss", "--ilp", "--json").stdout)
    assert data["ilp"] == {"binaries": 7, "continuous": 0, "rows": 6, "nonzeros": 12}
    assert data["why_not_ilp"] is None


@pytest.fixture
def refused(folder: Path) -> str:
    (folder / "refused.loss").write_text(REFUSED)
    (folder / "c.json").write_text(json.dumps({str(y): 2.0**0.5 * (y + 1) ** 1.5 for y in range(20)}))
    return "refused.loss"


def test_what_cannot_be_lowered_is_named(udcp: Udcp, refused: str) -> None:
    result = udcp("check", refused, "--ilp")
    assert result.exit_code == 1
    text = " ".join(result.stdout.split())
    assert "ilp: refused.loss:5:5: '(sum(c) >= sum(d) + 1)' has no exact linear form: " in text
    data = json.loads(udcp("check", refused, "--ilp", "--json").stdout)
    assert (data["ok"], data["ilp"]) == (False, None)
    assert data["why_not_ilp"].startswith("refused.loss:5:5: ")
    assert [x["applies"] for x in data["oracles"] if x["name"] == "ilp"] == [False]
    assert udcp("check", refused).exit_code == 0


def test_the_model_is_exported(udcp: Udcp, folder: Path) -> None:
    for name in ("model.lp", "model.mps"):
        result = udcp("check", "pets.loss", "--export", name)
        assert result.exit_code == 0
        assert result.stdout.splitlines()[-1] == f"written to {name}"
    assert sorted(path.name for path in folder.iterdir()) == ["model.lp", "model.mps", "pets.loss"]
    variables, _ = pulp.LpProblem.fromMPS(str(folder / "model.mps"))
    assert len(variables) == 7


@pytest.mark.parametrize("name", ["model.txt", "nowhere/model.lp", "."])
def test_a_place_that_will_not_do(udcp: Udcp, folder: Path, name: str) -> None:
    result = udcp("check", "pets.loss", "--export", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert [path.name for path in folder.iterdir()] == ["pets.loss"]


def test_nothing_is_exported_where_there_is_no_model(udcp: Udcp, folder: Path, refused: str) -> None:
    result = udcp("check", refused, "--export", "model.lp")
    assert result.exit_code == 2
    assert "'(sum(c) >= sum(d) + 1)' has no exact linear form" in result.stderr
    assert not (folder / "model.lp").exists()
