"""The oracle that the first screen names: the cheapest at the same coverage; where chance decides, over all splits."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from udcp_dsl.measure.comparison import MatchedCost
from udcp_dsl.report import page as module
from udcp_dsl.report.page import answer

LEVEL = Fraction(1, 10)


def summary(oracle: str, cost: float, coverage: tuple[float, float] = (0.88, 0.92)) -> Any:
    return SimpleNamespace(loss="l", alpha=LEVEL, oracle=oracle, cost_mean=cost, coverage_interval=coverage)


@pytest.mark.parametrize(
    ("gap", "covers", "named"),
    [
        (0.05, (0.88, 0.92), "price"),  # a split on which lac is cheaper by chance
        (2.0, (0.88, 0.92), "lac"),  # lac is cheaper for certain at the same coverage
        (0.05, (0.80, 0.85), "lac"),  # price is cheap because it covers too little
    ],
)
def test_where_chance_decides_on_one_split_all_splits_do(
    gap: float, covers: tuple[float, float], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows = 5 + rng.standard_normal(400)
    dearer = rows + rng.standard_normal(400)
    dearer += rows.mean() + gap - dearer.mean()
    none = np.zeros(400)
    costs = {
        name: MatchedCost(float(x.mean()), x - x.mean(), 400, 0.9, none, none, 0.0)
        for name, x in {"lac": rows, "price": dearer}.items()
    }
    monkeypatch.setattr(module, "matched", lambda _, s, alpha=None: costs[s.oracle])
    comparison: Any = SimpleNamespace(
        summaries=lambda: [summary("lac", 6.0), summary("price", 5.0, covers)],
        alphas=[LEVEL],
        promise=SimpleNamespace(risk=None),
        along={},
    )
    found = answer(comparison, "l")
    assert found is not None
    assert found.best.oracle == named
    assert found.rival is not None
    assert {found.best.oracle, found.rival.oracle} == {"lac", "price"}
