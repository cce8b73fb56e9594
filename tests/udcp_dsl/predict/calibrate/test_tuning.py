"""Lambda on folds of its own: each fold for one purpose, the choice, and Proposition 1's bound."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import (
    DEFAULT_GRID,
    Tuning,
    three_folds,
    tune,
)

if TYPE_CHECKING:
    from tests.conftest import Sizes


@given(st.integers(3, 200), st.integers(0, 2**32))
def test_three_folds_are_disjoint_exhaustive_and_equal(n: int, seed: int) -> None:
    folds = three_folds(n, np.random.default_rng(seed))
    assert sorted(np.concatenate(folds).tolist()) == list(range(n))
    assert max(map(len, folds)) - min(map(len, folds)) <= 1
    again = three_folds(n, np.random.default_rng(seed))
    assert all(np.array_equal(a, b) for a, b in zip(folds, again, strict=True))


def test_too_few_rows_for_three_folds_are_refused() -> None:
    with pytest.raises(InputError, match="2 calibration rows cannot be split"):
        three_folds(2, np.random.default_rng(0))


def test_tune_asks_for_every_threshold_and_cost_once() -> None:
    seen: list[tuple[str, float]] = []

    def threshold_of(lam: float) -> float:
        seen.append(("threshold", lam))
        return 10 * lam

    def mean_cost_of(lam: float, tau: float) -> float:
        assert tau == 10 * lam
        seen.append(("cost", lam))
        return abs(lam - 0.1)

    t = tune(DEFAULT_GRID, threshold_of, mean_cost_of, n=10, cost_range=(0, 12))
    assert sorted(seen) == sorted((what, lam) for what in ("threshold", "cost") for lam in DEFAULT_GRID)
    assert (t.best, t.n, t.lo, t.hi, t.delta) == (0.1, 10, 0.0, 12.0, 0.05)
    assert t.thresholds == tuple(10 * lam for lam in DEFAULT_GRID)
    assert t.excess == pytest.approx(2 * 12 * math.sqrt(math.log(2 * 5 / 0.05) / (2 * 10)), rel=1e-15)
    assert Tuning.from_dict(json.loads(json.dumps(t.as_dict(), allow_nan=False))) == t


def test_ties_go_to_the_smallest_lambda() -> None:
    t = Tuning(
        grid=(10.0, 0.1, 1.0), thresholds=(math.inf, 0.0, -math.inf), mean_costs=(2.0, 2.0, 3.0), n=5, lo=0, hi=3
    )
    assert t.best == 0.1
    assert Tuning.from_dict(json.loads(json.dumps(t.as_dict(), allow_nan=False))) == t
    unbounded = Tuning((1.0,), (0.0,), (2.0,), n=5, lo=0, hi=math.inf)
    assert unbounded.excess == math.inf
    assert Tuning.from_dict(json.loads(json.dumps(unbounded.as_dict(), allow_nan=False))) == unbounded


def test_the_bound_holds_and_means_the_choice(sizes: Sizes) -> None:
    """Costs are 0 or 1 with known chances: the chosen lambda's regret exceeds the bound less often than delta."""
    rng = np.random.default_rng(3)
    chances, delta, n = np.array([0.5, 0.45, 0.6]), 0.2, 40
    regrets = []
    for _ in range(sizes.draws):
        costs = tuple((rng.random((n, 3)) < chances).mean(axis=0).tolist())
        t = Tuning((0.1, 1.0, 10.0), (0.0,) * 3, costs, n=n, lo=0, hi=1, delta=delta)
        regrets.append(chances[t.grid.index(t.best)] - chances.min())
    assert np.mean(np.array(regrets) > t.excess) <= delta
    assert max(regrets) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": ()}, "at least one finite number"),
        ({"grid": (1.0, 1.0)}, "each only once"),
        ({"grid": (1.0, math.inf)}, "finite number"),
        ({"thresholds": (0.0,)}, "a threshold and a mean cost for each"),
        ({"n": 0}, "at least one row"),
        ({"delta": 1.0}, "delta strictly between 0 and 1"),
        ({"lo": 2.0}, "costs in rising order"),
        ({"lo": math.nan}, "costs in rising order"),
        ({"mean_costs": (0.5, 1.5)}, r"mean cost at lambda 2\.0 is 1\.5, outside \[0\.0, 1\.0\]"),
        ({"mean_costs": (0.5, math.nan)}, r"mean cost at lambda 2\.0 is nan"),
    ],
)
def test_bad_tunings(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"grid": (1.0, 2.0), "thresholds": (0.0, 0.0), "mean_costs": (0.5, 1.0)}
    good |= {"n": 9, "lo": 0.0, "hi": 1.0}
    Tuning(**good)
    with pytest.raises(InputError, match=message):
        Tuning(**(good | change))


@pytest.mark.parametrize(
    "change", [{"n": 1.5}, {"n": True}, {"range": [0.0]}, {"delta": "x"}, {"grid": 1.0}, {"more": 1}]
)
def test_damaged_tunings(change: dict[str, Any]) -> None:
    data = Tuning((1.0,), (0.0,), (0.5,), n=9, lo=0.0, hi=1.0).as_dict()
    with pytest.raises(InputError, match="the saved calibration is damaged"):
        Tuning.from_dict(data | change)


def test_folds_are_drawn_from_all_over_the_rows() -> None:
    """Rows in a file are often sorted, by site or by day: each fold has rows of every tenth of them."""
    for fold in three_folds(900, np.random.default_rng(0)):
        assert set((fold // 90).tolist()) == set(range(10))
