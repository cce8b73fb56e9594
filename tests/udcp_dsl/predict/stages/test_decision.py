"""`conditional="decision"`: what is done with a row is decided by its best set at a price, and covered by itself."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import CalibrationWarning, calibrate, coverage_law
from udcp_dsl.predict.stages.decision import merged

if TYPE_CHECKING:
    from tests.conftest import Sizes

ROOT = Path(__file__).parents[4]
LABELS = "labels { a, b, c, d }  costs c { a: 1, b: 2, c: 3, d: 4 }  "
CAPPED = udcp.loads(LABELS + "loss l = min(sum(c) + 0.5 * size, 5)")
TREAT = b"label,wait,scan,cut\na,0,2,5\nb,1,2,5\nc,9,3,1\nd,9,3,2\n"
STAY = b"label,home,ward\na,0,1\nb,0,1\nc,8,2\nd,4,2\n"
FILES = {"treat.csv": TREAT, "stay.csv": STAY}
ACTIONS = udcp.loads(LABELS + 'actions treat from "treat.csv"  loss l = worst(treat) + 0.01 * size', files=FILES)
BOTH = udcp.loads(
    LABELS + 'actions treat from "treat.csv" actions stay from "stay.csv" loss l = min(worst(treat) + worst(stay), 4)',
    files=FILES,
)


def rows(n: int, seed: int, sharp: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(4, sharp), n)
    return P, (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def made(loss: udcp.Loss, oracle: str = "lac", n: int = 800, **asked: Any) -> udcp.SetPredictor:
    asked = {"alpha": 0.2, "repair": None, **asked}
    return udcp.SetPredictor(loss, oracle, conditional="decision", **asked).calibrate(*rows(n, 0))


def best_sets(predictor: udcp.SetPredictor, P: np.ndarray) -> np.ndarray:
    oracle = udcp.make_oracle("price", predictor.loss)
    assert predictor.decision is not None
    return oracle.best(P, np.full(len(P), predictor.decision.price))


@pytest.mark.parametrize("oracle", ["lac", "price", "penalized", "greedy"])
def test_the_best_set_decides_and_never_the_final_one(oracle: str) -> None:
    predictor = made(CAPPED, oracle)
    P, _ = rows(600, 1)
    sets = predictor.predict_set(P)
    decided = CAPPED.batch(best_sets(predictor, P)) >= 5
    assert sets.handed_over is not None
    assert (sets.handed_over == decided).all()
    by_final_set = CAPPED.batch(sets.mask) >= 5
    assert (by_final_set != decided).any()
    assert (sets.costs[decided] == 5).all()  # someone else decides there, at that price
    assert (sets.costs[~decided] == CAPPED.batch(sets.mask)[~decided]).all()
    assert (sets[5:9].handed_over == decided[5:9]).all()


def test_the_price_is_the_least_at_which_kept_rows_are_covered_on_its_own_rows() -> None:
    predictor = made(CAPPED)
    P, y = rows(800, 0)
    assert predictor.decision is not None
    left = predictor.threshold_rows(predictor.rows(P, y))
    own = np.setdiff1d(np.arange(800), left)
    assert (len(own), predictor.decision.n, predictor.calibrated.n) == (200, 200, 600)
    oracle = udcp.make_oracle("price", CAPPED)

    def kept_coverage(price: float) -> float:
        masks = oracle.best(P[own], np.full(len(own), price))
        kept = CAPPED.batch(masks) < 5
        return float(masks[np.arange(len(own)), y[own]][kept].mean()) if kept.any() else 1.0

    price = predictor.decision.price
    assert kept_coverage(price) >= 0.8 > kept_coverage(price * 0.998)


def test_actions_are_decided_beforehand_and_certified_over_the_final_set() -> None:
    predictor = made(ACTIONS)
    P, y = rows(600, 2)
    sets = predictor.predict_set(P)
    values, names = ACTIONS.actions["treat"].values, list(ACTIONS.actions["treat"].actions)
    S = best_sets(predictor, P)
    for i in range(len(S)):
        held = np.flatnonzero(S[i]) if S[i].any() else np.arange(4)
        action = int(values[held].max(axis=0).argmin())
        assert names[action] == sets.actions[i]
        final = np.flatnonzero(sets.mask[i]) if sets.mask[i].any() else np.arange(4)
        assert sets.certificates[i] == values[final, action].max()
    covered = sets.mask[np.arange(600), y]
    paid = values[y, [names.index(a) for a in sets.actions]]
    assert (paid <= sets.certificates)[covered].all()
    again = udcp.PredictionSets(ACTIONS, sets.mask)
    assert (again.actions != sets.actions).any()  # the final sets would have asked for others
    np.testing.assert_array_equal(sets.costs, again.costs)  # which their costs count, as the page says
    assert ((again.certificates < sets.certificates) == (sets.costs < sets.certificates + 0.01 * sets.sizes)).all()
    report = udcp.evaluate(predictor, P, y)
    assert {s.name for s in report.by_decision} == set(sets.actions)
    assert report.handed_over is None


@pytest.mark.parametrize("loss", [CAPPED, ACTIONS, BOTH])
def test_saved_loaded_streamed_and_in_blocks(loss: udcp.Loss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    predictor = made(loss)
    P, y = rows(120, 3)
    sets = predictor.predict_set(P)
    predictor.save(tmp_path / "p.json")
    loaded = udcp.SetPredictor.load(tmp_path / "p.json")
    assert (loaded.decision, loaded.promise) == (predictor.decision, predictor.promise)
    for other in (loaded.predict_set(P), *([sets[:0]] if loss is CAPPED else [])):
        for name, column in other.decisions.items():
            assert (column == sets.decisions[name][: len(other)]).all()
    batch = pa.record_batch({"p": list(P)})
    (answer,) = loaded.predict_batches([batch])
    for name, column in sets.decisions.items():
        assert answer.column(name).to_pylist() == column.tolist()
    assert answer.column("cost").to_pylist() == sets.costs.tolist()
    report = udcp.evaluate(loaded, P, y)
    assert report.mean_cost == pytest.approx(sets.costs.mean())
    assert sum(report.cost_by_term.values()) == pytest.approx(report.mean_cost)
    repaired = made(loss, repair=udcp.Repair(exponent=1.0))
    monkeypatch.setattr("udcp_dsl.predict.predictor._BLOCK", 40)
    for name, column in repaired.predict_set(P).decisions.items():
        assert (column == sets.decisions[name]).all()


def test_each_decision_is_covered_as_often_as_its_rank_says(sizes: Sizes) -> None:
    """The number of covered fresh rows of a decision is beta-binomial, by the number of rows that its threshold was set
    on; the sum over calibrations lies within five standard deviations but for a chance of 1e-6."""
    gain, variance = dict.fromkeys(("kept", "handed over"), 0.0), dict.fromkeys(("kept", "handed over"), 0.0)
    for trial in range(sizes.repeats):
        P, y = rows(360, 100 + trial)
        asked: dict[str, Any] = {"alpha": 0.25, "repair": None, "seed": trial}
        predictor = udcp.SetPredictor(CAPPED, "lac", conditional="decision", **asked).calibrate(P[:160], y[:160])
        names = predictor.fitted.context.strata.names
        if names != ("handed over", "kept"):
            continue
        sets = predictor.predict_set(P[160:])
        covered = sets.mask[np.arange(200), y[160:]]
        for name, cell in zip(names, predictor.calibrated.cells, strict=True):
            own = sets.handed_over == (name == "handed over")
            law = coverage_law(cell.n, 0.25, int(own.sum()))
            gain[str(name)] += float(covered[own].sum() - law.mean())
            variance[str(name)] += float(law.var())
    for name, sum_of in gain.items():
        assert abs(sum_of) < 5 * math.sqrt(variance[name])


def test_both_decisions_of_the_tickets_are_covered_by_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decided at one price, rows of each decision in disjoint calibrations: the numbers covered are beta-binomial, and
    their sum lies within five standard deviations but for a chance of 1e-6."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    tickets = importlib.import_module("tickets")
    loss = udcp.load(ROOT / "specs/tickets/tickets.loss", loss="desk")
    P, y = tickets.rows(1900)
    predictor = udcp.SetPredictor(loss, "lac", conditional="decision", repair=None).calibrate(P[:400], y[:400])
    prepared = predictor.fitted.prepare(predictor.rows(P[400:], y[400:]))
    names = predictor.fitted.context.strata.names
    assert names == ("handed over", "kept")
    scores = predictor.oracle.score_of(P[400:], y[400:])
    for name in ("kept", "handed over"):
        own = scores[prepared.stratum == names.index(name)]
        assert len(own) > 150
        covered, mean, variance = 0, 0.0, 0.0
        for part in np.array_split(np.random.default_rng(0).permutation(own), max(1, len(own) // 100)):
            n = len(part) // 2
            law = coverage_law(n, 0.1, len(part) - n)
            covered += int((part[n:] <= calibrate(part[:n], alpha=0.1).tau()).sum())
            mean, variance = mean + law.mean(), variance + law.var()
        assert abs(covered - mean) < 5 * math.sqrt(variance)


@pytest.mark.slow
def test_kept_tickets_are_covered_as_promised_at_full_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """By `price`, over 12 calibrations of 1,000 rows: without it kept rows are covered 0.77 to 0.86."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    tickets = importlib.import_module("tickets")
    loss = udcp.load(ROOT / "specs/tickets/tickets.loss", loss="desk")
    P, y = tickets.rows(14000)
    kept, handed = [], []
    for start in range(0, 12000, 1000):
        part = slice(start, start + 1000)
        predictor = udcp.SetPredictor(loss, "price", conditional="decision").calibrate(P[part], y[part])
        sets = predictor.predict_set(P[12000:])
        covered = sets.mask[np.arange(2000), y[12000:]]
        kept.append(covered[~sets.handed_over].mean())  # type: ignore[operator]
        handed.append(covered[sets.handed_over].mean())
    for found in (kept, handed):
        assert abs(np.mean(found) - 0.9) < 0.02, found


def test_decisions_of_too_few_rows_are_merged() -> None:
    assert merged({"wait": 50, "cut": 9, "scan": 3}, 10) == {
        "wait": "wait",
        "cut": "cut or scan",
        "scan": "cut or scan",
    }
    assert merged({"wait": 5, "cut": 3}, 10) == {"wait": "wait or cut", "cut": "wait or cut"}
    assert merged({"a": 30, "b": 20, "c": 0}, 10) == {"a": "a", "b": "b or c", "c": "b or c"}
    P, y = rows(100, 5)
    with pytest.warns(CalibrationWarning, match="too few rows to cover each decision separately"):
        predictor = udcp.SetPredictor(CAPPED, "lac", alpha=0.05, conditional="decision").calibrate(P, y)
    (name,) = predictor.fitted.context.strata.names
    assert set(name.split(" or ")) == {"kept", "handed over"}
    assert predictor.predict_set(P).handed_over is not None


def test_an_action_that_no_tuning_row_had_goes_with_the_smallest_part() -> None:
    predictor = made(ACTIONS)
    stage = predictor.decision
    assert stage is not None
    assert set(stage.parts) == {"wait", "scan", "cut"}
    one = stage.__class__(stage.n, stage.price, {"wait": stage.n}, {"wait": "wait"})
    placed = one.add_columns(predictor.fitted.context, predictor.fitted.prepare(predictor.rows(rows(200, 6)[0])))
    assert set(placed.stratum.tolist()) == {0}  # type: ignore[union-attr]


REFUSED: list[tuple[udcp.Loss, dict[str, Any], str]] = [
    (udcp.loads(LABELS + "loss l = size"), {}, r"needs a loss with a decision, .* min\(L, c\).* worst\(u\)"),
    (CAPPED, {"risk": "c", "alpha": 0.2}, "risk and conditional"),
    (CAPPED, {"alpha": [0.1, 0.2]}, "takes one alpha"),
    (CAPPED, {"pool": True}, "already merged"),
    (CAPPED, {"miss": 10.0}, "miss and conditional"),
]


@pytest.mark.parametrize(("loss", "asked", "why"), REFUSED)
def test_refused(loss: udcp.Loss, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        udcp.SetPredictor(loss, "lac", conditional="decision", **asked)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InputError, match="give 80 rows or more"):
        udcp.SetPredictor(CAPPED, "lac", conditional="decision").calibrate(*rows(60, 0))


def test_with_confidence_weights_and_a_monitor() -> None:
    P, y = rows(400, 7)
    sure = udcp.SetPredictor(CAPPED, "lac", alpha=0.2, conditional="decision", confidence=0.9, simultaneous=True)
    sure.calibrate(P, y)
    assert sure.calibrated.rule.confidence == 1 - (1 - sure.promise.confidence) / 2
    weighted = udcp.SetPredictor(CAPPED, "lac", alpha=0.2, conditional="decision", repair=None)
    weighted.calibrate(P, y, weights=P.max(axis=1))
    assert weighted.predict_set(P[:5], weights=P[:5].max(axis=1)).handed_over is not None
    monitor = udcp.Monitor(made(CAPPED))
    monitor.update(*rows(50, 8))
    assert {stream.name for stream in monitor.streams} >= {"kept", "handed over"}


def test_inputs_of_rows_take_part() -> None:
    loss = udcp.loads(LABELS + "input km in [0, 10]  loss l = min(sum(c) + km * any({d}), 8)")
    P, y = rows(400, 9)
    km = np.random.default_rng(0).choice([0.0, 9.0], 400)
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.2, conditional="decision", repair=None)
    predictor.calibrate(P, y, inputs={"km": km})
    handed = [predictor.predict_set(P, inputs={"km": np.full(400, x)}).handed_over for x in (0.0, 9.0)]
    assert (handed[0] != handed[1]).any()


def test_a_comparison_shows_it_beside() -> None:
    result = udcp.compare(
        CAPPED, *rows(600, 10), conditional="decision", alphas=0.2, oracles=["lac", "price"], splits=2
    )
    assert result.beside is not None
    assert "within each decision" in str(result)
    for summary in result.beside.summaries():
        assert set(summary.by_decision) == {"kept", "handed over"}


def test_the_scikit_learn_class_and_the_command_line(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    from udcp_dsl.sklearn import UtilitySetClassifier

    X, y = make_classification(1200, n_classes=4, n_informative=4, class_sep=0.5, random_state=0)
    loss = udcp.loads("labels 0..3  loss l = min(size, 2)")
    model = UtilitySetClassifier(
        LogisticRegression(), loss, oracle="lac", conditional="decision", calibration_size=0.5
    ).fit(X, y)
    assert model.predict_set(X[:20]).handed_over is not None
    P, truth = rows(800, 0)
    (tmp_path / "l.loss").write_text(CAPPED.source.text)
    np.save(tmp_path / "p.npy", P)
    np.save(tmp_path / "y.npy", truth)
    files = [str(tmp_path / name) for name in ("l.loss", "p.npy", "y.npy", "out.json", "sets.csv")]
    arguments = ["calibrate", files[0], "--probs", files[1], "--truth", files[2], "--oracle", "lac", "-o", files[3]]
    done = CliRunner().invoke(main, [*arguments, "--conditional", "decision", "--alpha", "0.2", "--repair", "none"])
    assert done.exit_code == 0, done.output
    assert "decided by the best set at the price" in " ".join(done.output.split())
    assert CliRunner().invoke(main, ["predict", files[3], "--probs", files[1], "-o", files[4]]).exit_code == 0
    handed = [line.rsplit(",", 1)[1] == "true" for line in Path(files[4]).read_text().splitlines()[1:]]
    assert handed == made(CAPPED).predict_set(P).handed_over.tolist()  # type: ignore[union-attr]
