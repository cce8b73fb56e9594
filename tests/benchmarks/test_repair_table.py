"""docs/repair.md is what benchmarks/repair.py measured, and its verdicts hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def repair(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import repair

    return repair


def test_the_page_shows_what_was_measured(repair: Any) -> None:
    data = json.loads((repair.RESULTS / "repair.json").read_text(encoding="utf-8"))
    page = repair.PAGE.read_text(encoding="utf-8")
    assert page == repair.between_markers(page, repair.BEGIN, repair.END, repair.page(data))
    assert (repair.RESULTS / "repair.md").read_text(encoding="utf-8") == repair.report(data)
    assert data["holds"] is repair.verdicts(data["rows"])[0] is True
    assert {row["case"] for row in data["rows"]} == {name for name, _ in repair.cases(quick=False)}


def row(costs: dict[str, list[float]], *, is_forest: bool = False) -> dict[str, Any]:
    return {"case": "drawn", "alpha": 0.1, "is_forest": is_forest, "costs": costs}


def test_verdicts_go_by_paired_differences(repair: Any) -> None:
    """A rival that is always a little cheaper is cheaper, however much the splits differ; a forest may not lose."""
    ours = [1.0, 2.0, 3.0]
    lost = row({"price, repaired": ours, "price": ours, "lac": [0.9, 1.91, 2.9]})
    even = row({"price, repaired": ours, "price": ours, "lac": [1.9, 1.91, 1.9]})
    assert repair.cheaper(lost) == ["lac"]
    assert repair.cheaper(even) == []
    assert repair.verdicts([lost, lost, even])[0]
    assert not repair.verdicts([lost, lost, lost])[0]
    assert not repair.verdicts([lost | {"is_forest": True}, even])[0]


def test_a_repair_that_harms_is_seen(repair: Any) -> None:
    raw = [1.0, 2.0, 3.0]
    for added, fails in ((0.02, False), (0.2, True)):
        harmed = row({"price, repaired": (np.array(raw) + added).tolist(), "price": raw})
        assert repair.harmed(harmed) is fails


def test_predictors_are_those_of_the_default_and_without(repair: Any) -> None:
    pytest.importorskip("sklearn")
    case = dict(repair.cases(quick=True))["digits, C = 1: shapes"]()
    split = repair.split_of(case, 0)
    with_repair, without = (repair.result_of(split, "lac", 0.1, repair=asked) for asked in (True, False))
    assert with_repair.repair.kind == "auto"
    assert with_repair.repair.adopted
    assert with_repair.repair.n_rows == len(split.calibration) // 5
    assert without.repair is None
    assert not set(split.calibration) & set(split.test)
