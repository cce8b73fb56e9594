"""Home visits: specs/home_visits, the calls that benchmarks/home_visits.py draws, and what the page of it shows."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp

ROOT = Path(__file__).parents[2]
QUEUE = {"Nursing": 20, "Physiotherapy": 5, "Palliative": 0, "Mental health": 60, "Technicians": 10}


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return import_module("home_visits")


@pytest.fixture
def loss() -> udcp.Loss:
    return udcp.load(ROOT / "specs" / "home_visits" / "home_visits.loss")


def test_what_a_set_costs_depends_on_the_call(loss: udcp.Loss) -> None:
    one = {"insulin", "blood sample"}
    assert loss(one, inputs={"km": 4, "queue": QUEUE}) == pytest.approx(6 + 8 + 20 + 2 * 1.3 * 4)
    assert loss(one, inputs={"km": 40, "queue": QUEUE}) == pytest.approx(6 + 8 + 20 + 2 * 1.3 * 40)
    both = {"insulin", "low mood"}
    assert loss(both, inputs={"km": 4, "queue": QUEUE}) == pytest.approx(6 + 30 + 80 + 2 * 2 * 1.3 * 4)
    assert loss.facts.laminar
    assert loss.facts.submodular


def test_calls_are_within_the_ranges_and_in_the_order_of_the_spec(visits: Any, loss: udcp.Loss) -> None:
    drawn = visits.calls(500)
    assert loss.inputs_of(drawn.inputs, 500) is not None
    assert drawn.P.shape == (500, loss.K)
    assert 0.5 < (drawn.P.argmax(axis=1) == drawn.y).mean() < 0.9
    families = {name: loss.labels.index(name) for name in ("wound dressing", "gait training", "pain control")}
    starts = np.cumsum([0, *visits._TEAMS])
    assert list(families.values()) == starts[:3].tolist()
    again = visits.calls(500)
    np.testing.assert_array_equal(again.P, drawn.P)
    np.testing.assert_array_equal(again.km, drawn.km)


def test_inputs_are_cheaper_than_constants_at_the_same_coverage(visits: Any, loss: udcp.Loss) -> None:
    """On a small draw: thresholds on the calls that are judged, so that all ways cover alike."""
    drawn = visits.calls(600, 3)
    means = np.concatenate([[drawn.km.mean()], drawn.queue.mean(axis=0)])
    costs = {}
    for name, oracle, constants in (("inputs", "price", None), ("constants", "price", means), ("lac", "lac", None)):
        mask = visits.sets_of(loss, drawn, drawn, oracle, constants)
        assert mask[np.arange(600), drawn.y].mean() == pytest.approx(0.9, abs=0.004)
        costs[name] = loss.batch(mask, inputs=drawn.inputs).mean()
    assert costs["inputs"] < 0.98 * costs["constants"] < 0.98 * costs["lac"]


def test_the_page_shows_what_was_measured(visits: Any) -> None:
    results = json.loads(visits.RESULTS.read_text(encoding="utf-8"))
    page = visits.PAGE.read_text(encoding="utf-8")
    made = page.split("<!-- made by benchmarks/home_visits.py -->")[1].split("<!-- end of what is made -->")[0]
    assert made.strip() == visits.table_of(results)
    mean = {way: np.mean([row["cost"] for row in results if row["way"] == way]) for way in {x["way"] for x in results}}
    best = mean.pop("inputs of each call")
    assert best < 0.97 * min(mean.values())


def test_the_page_quotes_the_spec(loss: udcp.Loss) -> None:
    page = (ROOT / "docs" / "home-visits.md").read_text(encoding="utf-8")
    (quoted,) = re.findall(r"```loss\n(.*?)```", page, re.DOTALL)
    lines = [line.partition("#")[0].split() for line in quoted.splitlines() if line.partition("#")[0].strip()]
    spec = [x.partition("#")[0].split() for x in loss.source.text.splitlines() if x.partition("#")[0].strip()]
    assert lines == spec


def test_the_commands_of_the_page_run(visits: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from click.testing import CliRunner

    from udcp_dsl.cli import main

    spec = str(ROOT / "specs" / "home_visits" / "home_visits.loss")
    visits.write_rows(tmp_path, 300)
    calls, saved = str(tmp_path / "calls.parquet"), str(tmp_path / "visits.json")
    queue = "queue=" + ",".join(f"{team}:{minutes}" for team, minutes in QUEUE.items())
    outputs = []
    for command in (
        ["eval", spec, "insulin", "blood sample", "--input", "km=4", "--input", queue],
        ["calibrate", spec, "--probs", calls, "--truth", "need", "--id", "call", "-o", saved],
        ["predict", saved, "--probs", calls, "--id", "call", "--ignore", "need", "-o", str(tmp_path / "sets.csv")],
        ["order", spec, "--probs", calls, "--ignore", "need,call", "--row", "7", "--input", "km=50"],
    ):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
        outputs.append(done.stdout)
    assert "44.4" in outputs[0]
