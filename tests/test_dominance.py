"""benchmarks/dominance.py: matched coverage is exact, the verdicts are honest, and the page shows what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp

ROOT = Path(__file__).parent.parent


@pytest.fixture
def dominance(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import dominance

    return dominance


@pytest.fixture
def figures(dominance: ModuleType) -> ModuleType:
    pytest.importorskip("matplotlib")
    import price_figures

    return price_figures


def case(dominance: ModuleType, n: int = 60) -> Any:
    rng = np.random.default_rng(0)
    loss = udcp.loads("labels 0..4  category odd { 1, 3 }  loss l = size + any(odd)")
    P, tuning = rng.dirichlet(np.ones(5), size=(2, n))
    return dominance.Case("small", "", loss, P, tuning, ilp_rows=4)


@pytest.mark.parametrize("oracle", ["base", "lac", "greedy", "price"])
@pytest.mark.parametrize("target", [0.5, 0.83, 0.95])
@pytest.mark.parametrize("true_p", [True, False])
def test_coverage_is_matched_exactly(dominance: ModuleType, oracle: str, target: float, true_p: bool) -> None:
    small = case(dominance)
    y = None if true_p else np.arange(60) % 5
    sample = dominance.Sample.of(udcp.make_oracle(oracle, small.loss), small.P, y)
    covered, costs = dominance.mixed(sample, target)
    assert covered.mean() == pytest.approx(target, abs=1e-12)
    assert dominance.cost_at(sample, target) == costs.mean()


def test_no_mixture_of_sets_is_cheaper_than_price(dominance: ModuleType) -> None:
    """By linear programming over all sets of all rows: the loss is submodular, so `price` is optimal on the sample."""
    from scipy.optimize import linprog

    small = case(dominance, n=12)
    masks = (np.arange(32)[:, None] >> np.arange(5) & 1).astype(np.bool_)
    mass, costs = small.P @ masks.T, np.tile(small.loss.batch(masks), 12)
    price = dominance.Sample.of(udcp.make_oracle("price", small.loss), small.P, None)
    one_set_a_row = np.kron(np.eye(12), np.ones(32))
    for target in (0.6, 0.8, 0.9):
        best = linprog(costs / 12, -mass.reshape(1, -1) / 12, [-target], one_set_a_row, np.ones(12), bounds=(0, 1))
        assert dominance.cost_at(price, target) == pytest.approx(best.fun, rel=1e-7)


def test_a_rival_is_called_cheaper_only_beyond_the_noise(dominance: ModuleType) -> None:
    def verdict(cost: float, error: float) -> str:
        return str(dominance.Rival("lac", 100, cost, 1.0, error, {}).verdict)

    assert [verdict(1.1, 0.04), verdict(1.1, 0.06), verdict(0.9, 0.06), verdict(0.9, 0.04)] == [
        "dearer",
        "equal",
        "equal",
        "cheaper",
    ]
    assert verdict(1.0, 0.0) == "equal"


def test_errors_are_those_of_repeated_samples(dominance: ModuleType) -> None:
    """The bootstrap's error of a difference, against how it differs from one fresh sample to the next."""
    loss = udcp.loads("labels 0..4  category odd { 1, 3 }  loss l = size + any(odd)")
    rng = np.random.default_rng(3)
    oracles = [udcp.make_oracle(name, loss) for name in ("base", "price")]
    differences, errors = [], []
    weights = rng.multinomial(300, np.full(300, 1 / 300), size=200) / 300
    for _ in range(60):
        P = rng.dirichlet(np.ones(5), size=300)
        y = (P.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
        base, price = (dominance.Sample.of(oracle, P, y) for oracle in oracles)
        differences.append(dominance.cost_at(base, 0.9) - dominance.cost_at(price, 0.9))
        curves = [dominance.Curve.around(sample, 0.9).resampled(weights) for sample in (base, price)]
        errors.append((curves[0] - curves[1]).std(ddof=1))
    assert 0.7 < np.mean(errors) / np.std(differences, ddof=1) < 1.4


def test_a_quick_run(dominance: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    before = dominance.PAGE.read_bytes()
    assert dominance.main(["--quick", "--output", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "dominance.json").read_text())
    assert len(data["rows"]) == 33
    assert all(row["holds"] for row in data["rows"] if row["true_p"])
    assert {rival["oracle"] for row in data["rows"] for rival in row["rivals"]} == set(dominance.RIVALS)
    assert "| triage-like mix | 0.1 |" in (tmp_path / "dominance.md").read_text()
    assert (tmp_path / "dominance.svg").read_bytes().startswith(b"<?xml")
    assert dominance.PAGE.read_bytes() == before
    with pytest.raises(SystemExit):
        dominance.main(["--quick"])
    assert "--output FOLDER" in capsys.readouterr().err


def test_the_page_shows_the_results(dominance: ModuleType) -> None:
    data = json.loads((dominance.RESULTS / "dominance.json").read_text(encoding="utf-8"))
    page = dominance.PAGE.read_text(encoding="utf-8")
    assert page == dominance.between_markers(page, dominance.BEGIN, dominance.END, dominance.page(data))
    assert (dominance.RESULTS / "dominance.md").read_text(encoding="utf-8") == dominance.report(data)


def test_the_page_shows_the_two_kinds(figures: ModuleType, dominance: ModuleType) -> None:
    page = dominance.PAGE.read_text(encoding="utf-8")
    assert page == dominance.between_markers(page, figures.BEGIN, figures.END, figures.two_kinds_table())


def test_every_figure_of_the_page_is_there(figures: ModuleType, dominance: ModuleType) -> None:
    page = dominance.PAGE.read_text(encoding="utf-8")
    for name in ("hull", "two-kinds", "cost-coverage"):
        assert f"(figures/{name}.svg)" in page
        assert (figures.FOLDER / f"{name}.svg").is_file()
