"""The table of docs/benchmarks.md is what benchmarks/languages.py measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_shows_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import languages

    shown = languages.PAGE.read_text(encoding="utf-8").split(languages.BEGIN)[1].split(languages.END)[0]
    assert shown.strip() == languages.table(json.loads(languages.RESULTS.read_text(encoding="utf-8")))
