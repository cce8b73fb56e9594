"""The table of docs/price-oracle.md is what benchmarks/hierarchy.py measured, and the floor was met."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_shows_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import hierarchy

    run = json.loads(hierarchy.RESULTS.read_text(encoding="utf-8"))
    shown = hierarchy.PAGE.read_text(encoding="utf-8").split(hierarchy.BEGIN)[1].split(hierarchy.END)[0]
    assert shown.strip() == hierarchy.table(run)
    assert run["k"] == 10_000
    assert {x["case"] for x in run["results"]} == set(hierarchy.CASES)
    assert max(max(x["score_of"], x["sets"]) for x in run["results"]) < hierarchy.LIMIT
