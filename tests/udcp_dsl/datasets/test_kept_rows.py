"""The classifiers that come with the package: rows that sum to 1, labels of their specs, mistakes as they are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.datasets import icons, kept_rows, source_code
from udcp_dsl.rows.matrix import probabilities

SPECS = Path(__file__).parents[3] / "specs"
KEPT = [(source_code, "code/languages.loss", 4905, 54, 0.814), (icons, "icons/icons.loss", 5736, 320, 0.731)]


@pytest.mark.parametrize(("make", "spec", "n", "K", "right"), KEPT)
def test_rows_and_labels(make: Any, spec: str, n: int, K: int, right: float) -> None:
    data, loss = make(), udcp.load(SPECS / spec)
    assert data.labels == loss.labels
    assert data.probs.shape == (len(data), K) == (n, K)
    assert probabilities(data.probs, data.labels) is data.probs
    np.testing.assert_allclose(data.probs.sum(axis=1), 1, rtol=1e-12)
    assert (data.probs.argmax(axis=1) == data.y).mean() == pytest.approx(right, abs=0.002)  # as the pages say
    assert (data.probs > 0).all()


@pytest.mark.parametrize("make", [source_code, icons])
def test_a_seed_is_an_order_of_the_rows(make: Any) -> None:
    first, again, other = make(), make(), make(1)
    assert np.array_equal(first.probs, again.probs)
    assert not np.array_equal(first.y, other.y)
    assert np.array_equal(np.bincount(first.y), np.bincount(other.y))
    with pytest.raises(udcp.InputError, match="seed is -1"):
        make(-1)


def test_the_network_of_the_editor_is_too_unsure_and_a_temperature_pays() -> None:
    data = source_code()
    assert data.probs.max(axis=1).mean() < (data.probs.argmax(axis=1) == data.y).mean() - 0.05


@pytest.mark.parametrize(("make", "spec"), [kept[:2] for kept in KEPT])
def test_sets_cover_and_cost_less_by_price(make: Any, spec: str) -> None:
    data, loss = make(), udcp.load(SPECS / spec)
    n, m = 600, 400
    cost = {}
    for oracle in ("lac", "price"):
        predictor = udcp.SetPredictor(loss, oracle, alpha=0.1).calibrate(data.probs[:n], data.y[:n])
        found = udcp.evaluate(predictor, data.probs[n : n + m], data.y[n : n + m])
        # Four standard deviations of a beta of n rows and a binomial of m together.
        assert abs(found.coverage - 0.9) < 4 * np.sqrt(0.09 * (1 / n + 1 / m))
        cost[oracle] = found.mean_cost
    assert cost["price"] < cost["lac"]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(udcp.InputError, match="have 320 labels, its spec has 54"):
        kept_rows._load("icons", "code/languages", "", 0)
    monkeypatch.setattr(kept_rows, "_FOLDER", tmp_path)
    with pytest.raises(udcp.InputError, match="the rows of icons are not part of this installation"):
        icons()
