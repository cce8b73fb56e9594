"""The table of docs/benchmarks.md is what benchmarks/floors.py measured, and every floor was met."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_shows_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import floors

    run = json.loads(floors.RESULTS.read_text(encoding="utf-8"))
    shown = floors.PAGE.read_text(encoding="utf-8").split(floors.BEGIN)[1].split(floors.END)[0]
    assert shown.strip() == floors.page_table(run)
    assert {x["case"] for x in run["results"]} == {case.name for case in floors.CASES}
    assert all(x["ratio"] <= x["at_most"] for x in run["results"])
    assert run["greedy_times_faster"] >= floors.AT_LEAST
