"""The repair of p as a stage: which rows it takes, that no other stage has them, and that promises keep their laws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import binomtest

import udcp_dsl as udcp
from udcp_dsl.check.coverage import Problem, coverage_trials
from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict import chain
from udcp_dsl.predict.calibrate import CalibrationWarning, exact_level, points_needed, rank
from udcp_dsl.predict.calibrate.rule import confident_points, confident_rank
from udcp_dsl.predict.stages import repair

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSS = udcp.loads("labels 0..5  costs harm {0: 4, 1: 2, default: 1}  loss l = size")


def drawn(n: int, seed: int, exponent: float = 0.4, K: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose p is the true one to the power `exponent`: below 1, a classifier that is too unsure."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(K, 0.5), n) + 1e-9
    true /= true.sum(axis=1, keepdims=True)
    y = (np.log(true) + rng.gumbel(size=true.shape)).argmax(axis=1)
    p = true**exponent
    return p / p.sum(axis=1, keepdims=True), y


def names(y: np.ndarray) -> list[str]:
    return [LOSS.labels[k] for k in y]


@pytest.mark.parametrize(
    ("n", "own"), [(60, None), (299, None), (300, 100), (450, 100), (1000, 200), (5000, 1000), (8000, 1000)]
)
def test_a_fifth_of_the_rows_at_least_100_and_at_most_1000(n: int, own: int | None) -> None:
    P, y = drawn(n, 0)
    predictor = udcp.SetPredictor(LOSS, "lac").calibrate(P, names(y))
    stage = predictor.fitted.find("repair")
    assert (None if stage is None else stage.rows_used) == own
    assert predictor.calibrated.n == n - (own or 0)
    if own is not None:
        assert str(stage).endswith(f"fitted on {own:,} of {n:,} rows")


def test_no_other_stage_and_no_threshold_has_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows carry their number in the last bits of p, so that what each stage is given can be told."""
    P, y = drawn(1000, 1)
    seen: dict[str, set[bytes]] = {}
    fit, hand_on = repair.fit_repair, chain.seen

    def fitted(rows: Any, *more: Any, **named: Any) -> Any:
        seen["repair"] = {row.tobytes() for row in rows}
        return fit(rows, *more, **named)

    def handed_on(context: Any, stages: Any, rows: Any, **named: Any) -> Any:
        seen.setdefault("later", set()).update(row.tobytes() for row in rows.P)
        return hand_on(context, stages, rows, **named)

    monkeypatch.setattr(repair, "fit_repair", fitted)
    monkeypatch.setattr(chain, "seen", handed_on)
    for oracle, spec in (("penalized", LOSS), ("price", mixed())):
        seen.clear()
        predictor = udcp.SetPredictor(spec, oracle).calibrate(P, names(y))
        assert len(predictor.fitted.stages) == 2
        assert (len(seen["repair"]), len(seen["later"])) == (200, 800)
        assert not seen["repair"] & seen["later"]


def mixed() -> udcp.Loss:
    """Not submodular: `price` takes an anchor."""
    return udcp.loads("labels 0..5  costs c {default: 1}  loss l = 8 * (any({0, 1}) and any({2, 3, 4, 5})) + sum(c)")


@pytest.mark.parametrize("conditional", ["group", "class"])
def test_every_cell_keeps_what_its_threshold_needs(conditional: Any) -> None:
    P, y = drawn(600, 2)
    small = np.arange(600) % 60 == 0  # 10 rows: a fifth less would be too few
    groups = np.where(small, "small", "large") if conditional == "group" else None
    y = np.where(small, 5, y % 5) if conditional == "class" else y
    predictor = udcp.SetPredictor(LOSS, "lac", conditional=conditional).calibrate(P, names(y), groups=groups)
    stage = predictor.fitted.find("repair")
    assert stage is not None
    cells = [cell.n for cell in predictor.calibrated.cells]
    assert min(cells) >= points_needed(0.1)
    assert sum(cells) + stage.rows_used == 600
    assert 90 <= stage.rows_used <= 120


def test_where_every_row_is_needed_none_is_taken() -> None:
    P, y = drawn(400, 3)
    asked = {"conditional": "class", "alpha": 0.01, "pool": True}
    predictor = udcp.SetPredictor(LOSS, "lac", **asked).calibrate(P, names(y))
    assert predictor.fitted.find("repair") is None
    assert predictor.calibrated.n == 400


def test_what_was_done_is_said_and_saved(tmp_path: Path) -> None:
    P, y = drawn(1000, 4)
    predictor = udcp.SetPredictor(LOSS, "lac").calibrate(P, names(y))
    about = predictor.fitted.about_p
    assert about.startswith("probabilities repaired: sharpened (exponent ")
    assert "log loss 1." in about
    assert about.endswith("on held-out folds, fitted on 200 of 1,000 rows")
    predictor.save(tmp_path / "p.json")
    loaded = udcp.SetPredictor.load(tmp_path / "p.json")
    assert loaded.fitted.about_p == about
    np.testing.assert_array_equal(loaded.predict_set(P).mask, predictor.predict_set(P).mask)
    true, truth = drawn(1000, 5, exponent=1.0)
    left = udcp.SetPredictor(LOSS, "lac").calibrate(true, names(truth))
    assert left.fitted.about_p == "probabilities unchanged (no repair was significantly better)"
    np.testing.assert_array_equal(left.repaired(true), true)
    few = udcp.SetPredictor(LOSS, "lac").calibrate(P[:200], names(y[:200]))
    assert few.fitted.about_p == "probabilities unchanged (a repair needs 300 calibration rows)"
    all_needed = udcp.SetPredictor(LOSS, "lac", alpha=0.0025).calibrate(P[:400], names(y[:400]))  # 399 for thresholds
    taken = "probabilities unchanged (the thresholds need the rows that a repair would take)"
    assert all_needed.fitted.about_p == taken


def test_temperature_and_a_repair_that_was_made_before() -> None:
    P, y = drawn(500, 6)
    fitted = udcp.SetPredictor(LOSS, "base", repair="temperature").calibrate(P, names(y))
    assert fitted.calibrated.n == 400
    assert fitted.temperature == pytest.approx(0.4, abs=0.08)
    again = udcp.SetPredictor(LOSS, "base", repair=fitted.repair).calibrate(P, names(y))
    assert again.calibrated.n == 500
    np.testing.assert_array_equal(again.repaired(P), fitted.repaired(P))
    logits = udcp.SetPredictor(LOSS, "base", repair="temperature").calibrate(np.log(P), names(y), logits=True)
    assert logits.temperature == pytest.approx(fitted.temperature, rel=1e-6)
    with pytest.raises(InputError, match="give 50 rows or more"):
        udcp.SetPredictor(LOSS, "base", repair="temperature").calibrate(P[:49], names(y[:49]))
    other = udcp.Repair(offsets=np.zeros(4))
    with pytest.raises(InputError, match="made for 4 labels, but there are 6"):
        udcp.SetPredictor(LOSS, "base", repair=other).calibrate(P, names(y))


def test_a_repair_that_was_made_for_another_order_of_the_labels_is_matched_by_name(tmp_path: Path) -> None:
    order = np.arange(len(LOSS.labels))[::-1]
    turned = udcp.loads("loss l = size", labels=[LOSS.labels[i] for i in order])
    P, y = drawn(1000, 4)
    made = udcp.SetPredictor(LOSS, "lac").calibrate(P, names(y)).repair
    assert made is not None
    offsets = np.linspace(-1, 1, len(order))
    for given in (made, udcp.Repair(2.0, offsets, labels=LOSS.labels)):
        first = udcp.SetPredictor(LOSS, "lac", repair=given).calibrate(P, names(y))
        second = udcp.SetPredictor(turned, "lac", repair=given).calibrate(P[:, order], names(y))
        np.testing.assert_allclose(second.repaired(P[:, order]), first.repaired(P)[:, order], rtol=1e-12)
        second.save(tmp_path / "p.json")
        loaded = udcp.SetPredictor.load(tmp_path / "p.json")
        assert loaded.repair == second.repair
        again = loaded.calibrate(P[:, order], names(y))  # by the repair that the promise holds
        np.testing.assert_array_equal(again.predict_set(P[:, order]).mask, second.predict_set(P[:, order]).mask)
    other = udcp.loads("loss l = size", labels=[*"abcdef"])
    with pytest.raises(InputError, match="made for other labels"):
        udcp.SetPredictor(other, "lac", repair=given).calibrate(P, y)


def test_the_old_name_works_and_says_what_to_use() -> None:
    P, y = drawn(300, 7)
    with pytest.warns(DeprecationWarning, match=r"temperature= is deprecated since udcp_dsl 0\.3 .*repair="):
        old = udcp.SetPredictor(LOSS, "base", temperature="fit")
    assert old.promise == udcp.Promise(repair="temperature")
    with pytest.warns(DeprecationWarning, match="temperature="):
        given = udcp.SetPredictor(LOSS, "base", temperature=2.5).calibrate(P, names(y))
    assert given.temperature == 2.5
    assert given.calibrated.n == 300
    with pytest.raises(InputError, match="repair and temperature are both given"):
        udcp.Promise(repair=None, temperature=2.0)
    for wrong in ("cold", 2.0, True, 3):
        with pytest.raises(InputError, match='give "auto", "temperature", None, or a Repair'):
            udcp.Promise(repair=wrong)


def test_p_far_from_accuracy_is_warned_of_where_nothing_repairs_it() -> None:
    P, y = drawn(400, 8, exponent=0.2)
    spec = udcp.loads("labels 0..5  costs c {0: 2, default: 1}  loss l = sum(c)")
    with pytest.warns(CalibrationWarning, match=r"is 0\.2\d on average, .*right in 0\.\d\d of the rows.*repair=None"):
        udcp.SetPredictor(spec, "price", repair=None).calibrate(P, names(y))
    with pytest.warns(CalibrationWarning, match="300 or more"):
        udcp.SetPredictor(spec, "price").calibrate(P[:200], names(y[:200]))


# Laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("oracle", ["lac", "base", "price"])
def test_coverage_keeps_its_law(oracle: str, sizes: Sizes) -> None:
    problem = Problem.generated(6, np.random.default_rng(0), kind="overconfident")
    predictor = udcp.SetPredictor(LOSS, oracle, alpha=0.2)
    trials = coverage_trials(predictor, problem, n_cal=500, repeats=sizes.repeats, rng=np.random.default_rng(1))
    assert trials.n_cal == 400
    assert trials.chance > 1e-4


def covers(trials: int, exact: float, one: Any) -> None:
    """Each trial is a calibration on rows of its own, and one fresh row: its coverage is exact."""
    hits = sum(one(seed) for seed in range(trials))
    assert binomtest(hits, trials, exact).pvalue > 1e-5


@pytest.mark.parametrize("conditional", ["group", "class", "difficulty"])
def test_coverage_within_cells_keeps_its_law(conditional: Any, sizes: Sizes) -> None:
    cells: list[int] = []

    def one(seed: int) -> bool:
        n = 500 + seed % 150
        P, y = drawn(n + 1, 1000 + seed)
        groups = np.where(np.arange(n + 1) % 3 == 0, "a", "b") if conditional == "group" else None
        asked = {"alpha": "1/4", "conditional": conditional, "seed": seed}
        own, new = (None, None) if groups is None else (groups[:-1], groups[-1:])
        predictor = udcp.SetPredictor(LOSS, "lac", **asked).calibrate(P[:-1], names(y[:-1]), groups=own)
        assert predictor.fitted.find("repair") is not None
        cells.append(predictor.calibrated.n)
        return bool(predictor.predict_set(P[-1:], groups=new).mask[0, y[-1]])

    hits = sum(one(seed) for seed in range(sizes.repeats))
    # In a cell of m points coverage is ceil((m + 1) 3/4) / (m + 1), at most 1 / (m + 1) above 3/4; m is 40 or more.
    assert binomtest(hits, sizes.repeats, 0.75, alternative="less").pvalue > 1e-5
    assert binomtest(hits, sizes.repeats, 0.75 + 1 / 40, alternative="greater").pvalue > 1e-5
    assert min(cells) >= 400


def test_confidence_keeps_its_law(sizes: Sizes) -> None:
    def one(seed: int) -> bool:
        P, y = drawn(601, 2000 + seed)
        predictor = udcp.SetPredictor(LOSS, "lac", alpha="1/4", confidence=0.9, seed=seed)
        predictor.calibrate(P[:-1], names(y[:-1]))
        assert predictor.calibrated.n == 480
        return bool(predictor.predict_set(P[-1:]).mask[0, y[-1]])

    assert confident_points(*map(exact_level, ("1/4", 0.9))) < 480
    level, sure = map(exact_level, ("1/4", 0.9))
    covers(sizes.repeats, confident_rank(480, level, sure) / 481, one)


def test_randomized_coverage_is_exact(sizes: Sizes) -> None:
    def one(seed: int) -> bool:
        P, y = drawn(501, 3000 + seed)
        predictor = udcp.SetPredictor(LOSS, "base", alpha="1/4", randomize=True, seed=seed)
        return bool(predictor.calibrate(P[:-1], names(y[:-1])).predict_set(P[-1:]).mask[0, y[-1]])

    covers(sizes.repeats, 0.75, one)


def test_harm_stays_below_its_bound_and_weights_cover(sizes: Sizes) -> None:
    harm = np.array([4.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    missed, covered = [], []
    for seed in range(sizes.repeats):
        P, y = drawn(700, 4000 + seed)
        predictor = udcp.SetPredictor(LOSS, "lac", alpha=0.5, risk="harm", seed=seed).calibrate(P[:500], names(y[:500]))
        assert predictor.fitted.find("repair") is not None
        inside = predictor.predict_set(P[500:501]).mask[0, y[500]]
        missed.append(0.0 if inside else harm[y[500]])
        # New rows are taken with a chance of their highest p, which is the weight of each.
        weighted = udcp.SetPredictor(LOSS, "lac", alpha="1/4", seed=seed)
        weighted.calibrate(P[:500], names(y[:500]), weights=P[:500].max(axis=1))
        new = next(i for i in range(500, len(P)) if np.random.default_rng([seed, i]).random() < P[i].max())
        covered.append(weighted.predict_set(P[new : new + 1], weights=P[new : new + 1].max(axis=1)).mask[0, y[new]])
    error = float(np.std(missed)) / sizes.repeats**0.5
    assert float(np.mean(missed)) < 0.5 + 4 * error
    assert binomtest(int(sum(covered)), sizes.repeats, 0.75, alternative="less").pvalue > 1e-5


def test_a_repair_fitted_on_the_rows_of_the_thresholds_would_lose_coverage() -> None:
    """What the fold is for: 300 rows of 200 labels, and a fit with a weak penalty on these very rows."""
    from udcp_dsl.predict.repair.fit import Candidate, Sample, fitted

    K, n, spec = 200, 300, udcp.loads("labels 0..199  loss l = size")
    kept, lost = [], []
    for seed in range(6):
        P, y = drawn(n + 400, 5000 + seed, exponent=1.0, K=K)
        sample = Sample(P[:n], y[:n], np.ones(n))
        at = fitted(sample, Candidate(0.0, 0.5))
        overfitted = udcp.Repair(at.exponent, at.offsets)
        for found, how in ((lost, overfitted), (kept, "auto")):
            predictor = udcp.SetPredictor(spec, "lac", repair=how, seed=seed).calibrate(P[:n], y[:n])
            found.append(predictor.predict_set(P[n:]).mask[np.arange(400), y[n:]].mean())
    assert np.mean(kept) > 0.87
    assert np.mean(lost) < 0.8
    assert rank(200, 0.1) <= 200


def test_labels_that_the_fold_lacks_are_counted_and_the_costly_ones_named() -> None:
    K = 30
    spec = udcp.loads("labels 0..29  costs c {29: 9, 28: 7, default: 1}  loss l = sum(c)")
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.r_[np.full(20, 0.5), np.full(10, 1e-3)], 600) + 1e-12
    true /= true.sum(axis=1, keepdims=True)
    y = (np.log(true) + rng.gumbel(size=true.shape)).argmax(axis=1)
    flat = true**0.3 * np.exp(rng.normal(size=K))
    predictor = udcp.SetPredictor(spec, "lac").calibrate(flat / flat.sum(axis=1, keepdims=True), y)
    stage = predictor.fitted.find("repair")
    assert stage is not None
    assert stage.repair.offsets is not None
    assert len(stage.repair.absent) >= 8
    said = f"{len(stage.repair.absent)} labels without a row there, scaled down (cost above the median: 29, 28)"
    assert predictor.fitted.about_p.endswith(said)
