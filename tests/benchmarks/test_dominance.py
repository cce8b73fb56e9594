"""benchmarks/dominance.py: matched coverage is exact, the verdicts are honest, and the page shows what was measured."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import chi2

import udcp_dsl as udcp

if TYPE_CHECKING:
    from tests.conftest import Sizes

ROOT = Path(__file__).parents[2]


@pytest.fixture
def dominance(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import dominance

    return dominance


@pytest.fixture
def cases(dominance: ModuleType) -> ModuleType:
    import dominance_cases

    return dominance_cases


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


def test_errors_are_those_of_repeated_samples(dominance: ModuleType, sizes: Sizes) -> None:
    """The bootstrap's error of a difference is within a tenth of how it differs from one fresh sample to the next, but
    for a chance of 1e-5 on each side."""
    loss = udcp.loads("labels 0..4  category odd { 1, 3 }  loss l = size + any(odd)")
    rng = np.random.default_rng(3)
    oracles = [udcp.make_oracle(name, loss) for name in ("base", "price")]
    differences, errors = [], []
    weights = rng.multinomial(300, np.full(300, 1 / 300), size=200) / 300
    for _ in range(sizes.repeats):
        P = rng.dirichlet(np.ones(5), size=300)
        y = (P.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
        base, price = (dominance.Sample.of(oracle, P, y) for oracle in oracles)
        differences.append(dominance.cost_at(base, 0.9) - dominance.cost_at(price, 0.9))
        curves = [dominance.Curve.around(sample, 0.9).resampled(weights) for sample in (base, price)]
        errors.append((curves[0] - curves[1]).std(ddof=1))
    law = chi2(sizes.repeats - 1)
    low, high = np.sqrt(law.mean() / law.isf(1e-5)), np.sqrt(law.mean() / law.ppf(1e-5))
    assert 0.9 * low < np.mean(errors) / np.std(differences, ddof=1) < 1.1 * high


@pytest.fixture
def digits(cases: ModuleType) -> Any:
    pytest.importorskip("sklearn")
    return dict(cases.real(quick=True))[cases.WRONG]()


def test_no_row_that_is_judged_is_tuned_on(digits: Any) -> None:
    """Both parts are views of one array, so that rows in common would be memory in common."""
    for judged, tuned in ((digits.P, digits.tuning), (digits.y, digits.tuning_y)):
        assert judged.base is tuned.base
        assert judged.base is not None
        assert not np.shares_memory(judged, tuned)


def test_a_repair_is_that_of_the_product_on_rows_that_are_not_judged(cases: ModuleType, digits: Any) -> None:
    """The judged rows replaced, it stays the same; the others replaced, it does not."""
    name = cases.WRONG + cases.REPAIRED
    state = dict(cases.real(quick=True))[name]()
    assert state.name == name
    assert (digits.wrong, state.wrong) == (True, False)
    predictor = udcp.SetPredictor(digits.loss, "lac").calibrate(digits.tuning, digits.tuning_y)
    assert str(state.repair) == str(predictor.repair)
    assert state.repair.adopted
    np.testing.assert_array_equal(state.P, state.repair.apply(digits.P))
    np.testing.assert_array_equal(state.tuning, state.repair.apply(digits.tuning))
    some_wrong = np.where(np.arange(len(digits.tuning_y)) % 10, digits.tuning_y, 0)
    flat = digits.tuning**2 / (digits.tuning**2).sum(axis=1, keepdims=True)
    other = {"P": digits.P[::-1], "y": digits.y * 0, "tuning": flat, "tuning_y": some_wrong}
    for replaced, same in (({"P", "y"}, True), ({"tuning"}, False), ({"tuning_y"}, False)):
        changed = dataclasses.replace(digits, **{part: other[part] for part in replaced})
        assert (cases.repaired(changed).repair.as_dict() == state.repair.as_dict()) is same, replaced


def test_the_states_of_p_are_counted_apart(dominance: ModuleType) -> None:
    """A row that fails counts against its own state, and is named."""
    lac = {"oracle": "lac", "cost": 0.9, "price_cost": 1.0, "difference_error": 0.01}

    def row(case: str, true_p: bool, repair: str | None, verdict: str, wrong: bool = False) -> dict[str, Any]:
        state = {"true_p": true_p, "repair": repair, "wrong": wrong, "holds": verdict != "cheaper"}
        return {"case": case, "alpha": 0.1, **state, "rivals": [{**lac, "verdict": verdict}]}

    rows = [
        row("drawn", True, None, "dearer"),
        row("seen", False, None, "cheaper"),
        row("seen too", False, None, "equal"),
        row("seen, repaired", False, "none", "dearer"),
        row("unsure", False, None, "cheaper", wrong=True),
    ]
    lowest = "`price` is lowest, or equal within noise, in"
    assert dominance.verdict({"rows": rows}) == [
        f"With true p {lowest} 1 of 1 rows.",
        f"On real classifiers as they are {lowest} 1 of 2 rows.",
        "`lac` is cheaper on seen at alpha 0.1: 0.9 against 1 (standard error 0.01).",
        f"On real classifiers, repaired on other rows, {lowest} 1 of 1 rows.",
        f"On the digits with C = 1, whose p are wrong by design, {lowest} 0 of 1 rows.",
        "`lac` is cheaper on unsure at alpha 0.1: 0.9 against 1 (standard error 0.01).",
    ]


def test_what_the_repair_does_to_price_is_reported(dominance: ModuleType) -> None:
    costs = {"a": 2.0, "a, repaired": 1.5, "b": 1.0, "b, repaired": 1.01, "c": 7.0}
    told = dominance.effect({"rows": [{"case": name, "alpha": 0.1, "price_cost": c} for name, c in costs.items()]})
    assert "in 1 of 2 rows" in told
    assert "by -25.0% to +1.0%" in told


def test_every_real_classifier_is_in_the_results_in_both_states(dominance: ModuleType) -> None:
    data = json.loads((dominance.RESULTS / "dominance.json").read_text(encoding="utf-8"))
    found = {(row["case"], row["alpha"], row["repair"] is None) for row in data["rows"] if not row["true_p"]}
    names = [name for name, _ in dominance.real(quick=False)]
    assert len(names) == 16
    assert found == {(name, alpha, "repaired" not in name) for name in names for alpha in dominance.ALPHAS}


@pytest.mark.slow
def test_a_quick_run(dominance: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    before = dominance.PAGE.read_bytes()
    assert dominance.main(["--quick", "--output", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "dominance.json").read_text())
    assert len(data["rows"]) == 57
    assert all(row["holds"] for row in data["rows"] if row["true_p"])
    assert {rival["oracle"] for row in data["rows"] for rival in row["rivals"]} == set(dominance.RIVALS)
    assert "| triage-like mix |  | 0.1 |" in (tmp_path / "dominance.md").read_text()
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
