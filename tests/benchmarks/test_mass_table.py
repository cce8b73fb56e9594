"""docs/mass.md is what benchmarks/mass.py measured, and says what is claimed of the mass before a label."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def mass(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("torch")  # which fits the temperatures
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("mass")


def test_the_page_shows_what_was_measured(mass: Any) -> None:
    results = json.loads(mass.RESULTS.read_text(encoding="utf-8"))
    page = mass.PAGE.read_text(encoding="utf-8")
    for name, table in (("costs", mass.costs_table(results)), ("coverage", mass.coverage_table(results))):
        shown = page.split(f"<!-- {name}: made by benchmarks/mass.py -->")[1].split(f"<!-- end of {name} -->")[0]
        assert shown.strip() == table


def test_what_is_claimed_holds(mass: Any) -> None:
    """`greedy` costs at most half, `price` least; no set of `base` and `greedy` is empty; shares are shares."""
    results = json.loads(mass.RESULTS.read_text(encoding="utf-8"))
    assert len(mass.cases(results)) >= 8
    assert mass.faults(results) == []
    assert all(0 <= row["empty"] < 1 for row in results)
    assert all(row["empty"] == 0 for row in results if row["oracle"] in ("`base`", "`greedy`"))
