"""The table of docs/decisions.md is what benchmarks/special.py measured, and shows why cuts stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_shows_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import special

    cases = json.loads(special.RESULTS.read_text(encoding="utf-8"))["cases"]
    shown = special.PAGE.read_text(encoding="utf-8").split(special.BEGIN)[1].split(special.END)[0]
    assert shown.strip() == special.table(cases)
    assert {case["loss"] for case in cases} == {loss for losses in special.LOSSES.values() for loss in losses}
    cuts = [case for case in cases if case["algorithm"] == "cuts"]
    assert any(case["gap"] > 0 for case in cuts)
    assert max(case["search"] / case["special"] for case in cuts) > 100
