"""What benchmarks/miss.py kept: no row is more than 3 percent above the best of a grid; docs/miss.md has its table."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_alpha_that_a_worth_finds_is_as_good_as_the_best_of_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    miss = importlib.import_module("miss")
    rows = json.loads((ROOT / "benchmarks/results/miss.json").read_text(encoding="utf-8"))["rows"]
    assert len({row["case"] for row in rows}) == 11
    assert {(row["repair"], row["oracle"]) for row in rows} == {(r, o) for r in ("auto", None) for o in miss.ORACLES}
    assert len(rows) == 11 * 2 * len(miss.ORACLES) * len(miss.VALUED_AT)
    assert {row["splits"] for row in rows} == {10}
    assert max(row["above"] for row in rows) <= miss.MOST_ABOVE
    page = (ROOT / "docs/miss.md").read_text(encoding="utf-8")
    assert page.split(miss.BEGIN)[1].split(miss.END)[0].strip() == miss.table(rows)
