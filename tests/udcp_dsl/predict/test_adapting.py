"""`SetPredictor.adapt`: coverage under label shift with true and estimated ratios, which rows, saving, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import norm, t

import udcp_dsl as udcp
from udcp_dsl.cli import main
from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict import adapt as adapting
from udcp_dsl.predict.calibrate import CalibrationWarning
from udcp_dsl.predict.stages.repair import NewMix

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSS = udcp.loads("labels {a, b, c, d}  costs harm {d: 4, default: 1}  loss l = size + 2 * any({a}) * any({b})")
OLD, NEW = np.array([0.4, 0.35, 0.2, 0.05]), np.array([0.05, 0.1, 0.25, 0.6])
TRUE = udcp.LabelShift(OLD, NEW)


def drawn(n: int, mix: np.ndarray, seed: int, exponent: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Points around the corner of their label; p is right for the old mix, to the power `exponent`."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=n, p=mix)
    x = 1.5 * np.eye(4)[y] + rng.normal(size=(n, 4))
    odds = (OLD * np.exp(1.5 * x)) ** exponent
    return odds / odds.sum(axis=1, keepdims=True), y


def coverage(predictor: udcp.SetPredictor, P: np.ndarray, y: np.ndarray) -> float:
    return float(predictor.predict_set(P).mask[np.arange(len(y)), y].mean())


def margin(found: list[float]) -> float:
    """Three standard errors of the mean, as Student's law has them for so few."""
    return float(t(len(found) - 1).isf(norm.sf(3)) * np.std(found, ddof=1) / len(found) ** 0.5)


@pytest.mark.parametrize("oracle", ["lac", "price"])
def test_mean_coverage_is_that_of_the_law_with_true_ratios(oracle: str, sizes: Sizes) -> None:
    """1 - alpha at least, and no more than the mean share of the largest weight above it."""
    P, y = drawn(20_000, NEW, 1)
    found = []
    for seed in range(sizes.problems):
        own = drawn(240, OLD, 1000 + seed)
        predictor = udcp.SetPredictor(LOSS, oracle, alpha=0.2, repair=None, seed=seed).calibrate(*own)
        found.append(coverage(predictor.adapt(TRUE, calibration=own), P, y))
    error = margin(found)
    most = TRUE.ratios.max() / (180 + TRUE.ratios.max())
    assert 0.8 - error <= np.mean(found) <= 0.8 + most + error


def test_shares_with_names_are_matched_by_name() -> None:
    own = drawn(900, OLD, 0)
    old = udcp.SetPredictor(LOSS, "price", alpha=0.1).calibrate(*own)
    order = [2, 0, 3, 1]
    named = udcp.LabelShift(OLD[order], NEW[order], labels=[LOSS.labels[i] for i in order])
    sets = [old.adapt(shift, calibration=own).predict_set(own[0]).mask for shift in (TRUE, named)]
    np.testing.assert_array_equal(*sets)
    with pytest.raises(InputError, match="'x' is not a label"):
        old.adapt(udcp.LabelShift(OLD, NEW, labels=["a", "b", "c", "x"]), calibration=own)


@pytest.mark.parametrize("exponent", [1.0, 0.5])
def test_it_covers_under_a_strong_shift_where_the_old_predictor_does_not(exponent: float) -> None:
    own, (P, y) = drawn(4000, OLD, 0, exponent), drawn(4000, NEW, 1, exponent)
    old = udcp.SetPredictor(LOSS, "price", alpha=0.1).calibrate(*own)
    before = old.predict_set(P).mask
    new = old.adapt(P, calibration=own)
    assert coverage(old, P, y) < 0.85
    assert coverage(new, P, y) == pytest.approx(0.9, abs=0.025)
    stage = new.fitted.find("new mix")
    assert stage is not None
    np.testing.assert_allclose(stage.shift.new, NEW, atol=0.03 if exponent == 1 else 0.1)  # a repair is not perfect
    np.testing.assert_array_equal(old.predict_set(P).mask, before)
    assert old.fitted.find("new mix") is None


@pytest.mark.parametrize("oracle", ["ratio", "price"])
def test_rows_with_inputs_are_adapted_too(oracle: str, sizes: Sizes) -> None:
    """Coverage of the new mix lies within the bounds of the law, as without inputs; and constant columns give the bits
    of the constant loss."""
    head, body = "labels {a, b, c, d}  ", "loss l = sum(fee) + 0.1 * km * size"
    loss = udcp.loads(f"{head} costs fee per row in [1, 9]  input km in [0, 50]  {body}")

    def inputs(n: int, seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        return {"fee": rng.uniform(1, 9, (n, 4)), "km": rng.uniform(0, 50, n)}

    P, y = drawn(20_000, NEW, 1)
    found, asked = [], {"alpha": 0.2, "repair": None}
    for seed in range(sizes.problems):
        own, with_own = drawn(240, OLD, 1000 + seed), inputs(240, seed)
        predictor = udcp.SetPredictor(loss, oracle, seed=seed, **asked).calibrate(*own, inputs=with_own)
        new = predictor.adapt(TRUE, calibration=(*own, with_own))
        found.append(float(new.predict_set(P, inputs=inputs(len(P), 99)).mask[np.arange(len(y)), y].mean()))
    error = margin(found)
    most = TRUE.ratios.max() / (240 + TRUE.ratios.max())
    assert 0.8 - error <= np.mean(found) <= 0.8 + most + error

    constant = {"fee": np.tile([2.0, 3.0, 1.5, 7.0], (240, 1)), "km": np.full(240, 12.0)}
    by_row = udcp.SetPredictor(loss, oracle, **asked).calibrate(*own, inputs=constant)
    plain = udcp.loads(f"{head} costs fee {{ a: 2, b: 3, c: 1.5, d: 7 }}  param km = 12  {body}")
    one = udcp.SetPredictor(plain, oracle, **asked).calibrate(*own)
    new = [by_row.adapt(own[0], calibration=(*own, constant)), one.adapt(own[0], calibration=own)]
    assert new[0].calibrated.thresholds() == new[1].calibrated.thresholds()
    sets = [new[0].predict_set(own[0], inputs=constant), new[1].predict_set(own[0])]
    np.testing.assert_array_equal(sets[0].mask, sets[1].mask)
    with pytest.raises(InputError, match="the loss reads inputs"):
        by_row.adapt(own[0], calibration=own)


def test_calibration_may_be_a_list_and_is_needed_for_a_given_shift() -> None:
    own = drawn(900, OLD, 0)
    old = udcp.SetPredictor(LOSS, "lac", alpha=0.1).calibrate(*own)
    found = [old.adapt(TRUE, calibration=given).calibrated.thresholds() for given in (own, [*own])]
    assert found[0] == found[1]
    with pytest.raises(InputError, match=r"give calibration=\(probs, y\)"):
        old.adapt(TRUE)


def test_the_harm_of_misses_is_bounded_for_the_new_mix() -> None:
    own, (P, y) = drawn(4000, OLD, 0), drawn(20_000, NEW, 1)
    old = udcp.SetPredictor(LOSS, "lac", alpha=0.2, risk="harm", repair=None).calibrate(*own)
    harm = np.array([1.0, 1.0, 1.0, 4.0])[y]

    def mean_harm(predictor: udcp.SetPredictor) -> float:
        return float((harm * ~predictor.predict_set(P).mask[np.arange(len(y)), y]).mean())

    assert mean_harm(old) > 0.3
    assert mean_harm(old.adapt(TRUE, calibration=own)) < 0.23


@pytest.mark.parametrize("oracle", ["lac", "price", "penalized"])
@pytest.mark.parametrize("n", [250, 900])
def test_rows_that_a_stage_was_fitted_on_are_left_out(oracle: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    own = drawn(n, OLD, 0, 0.5)
    old = udcp.SetPredictor(LOSS, oracle, alpha=0.1).calibrate(*own)
    rows: list[Any] = []
    made = adapting.adapted
    monkeypatch.setattr(
        adapting, "adapted", lambda chain, shift, given: rows.append(given) or made(chain, shift, given)
    )
    old.adapt(TRUE, calibration=own)
    np.testing.assert_array_equal(rows[0].P, own[0][old.threshold_rows(old.rows(*own))])
    assert len(rows[0].P) < n or old.calibrated.n == n
    more = drawn(n + 1, OLD, 1, 0.5)
    old.adapt(TRUE, calibration=more)
    assert len(rows[1].P) == n + 1


@pytest.mark.parametrize("oracle", ["lac", "price"])
def test_saved_and_loaded_it_gives_the_same_sets(oracle: str, tmp_path: Path) -> None:
    own, (P, y) = drawn(900, OLD, 0, 0.5), drawn(500, NEW, 1, 0.5)
    old = udcp.SetPredictor(LOSS, oracle, alpha=[0.1, 0.2], nonempty=True).calibrate(*own)
    new = old.adapt(P, calibration=own)
    new.save(tmp_path / "new.json")
    loaded = udcp.SetPredictor.load(tmp_path / "new.json")
    for alpha in (0.1, 0.2):
        found = new.predict_set(P, alpha=alpha).mask
        np.testing.assert_array_equal(loaded.predict_set(P, alpha=alpha).mask, found)
        assert (found != old.predict_set(P, alpha=alpha).mask).any()
    np.testing.assert_array_equal(loaded.p_values(P), new.p_values(P))
    np.testing.assert_array_equal(new.p_values(P) > 0.1, new.predict_set(P, alpha=0.1).mask)
    assert loaded.fitted.about_p == new.fitted.about_p
    assert udcp.evaluate(loaded, P, y, alpha=0.1).coverage == coverage_at(new, P, y, 0.1)
    again = tmp_path / "again.json"
    loaded.save(again)
    assert again.read_bytes() == (tmp_path / "new.json").read_bytes()
    shown = CliRunner().invoke(main, ["show", str(again)])
    assert shown.exit_code == 0, shown.output
    assert "only as far as the estimated ratios are right" in " ".join(shown.output.split())


def coverage_at(predictor: udcp.SetPredictor, P: np.ndarray, y: np.ndarray, alpha: float) -> float:
    return float(predictor.predict_set(P, alpha=alpha).mask[np.arange(len(y)), y].mean())


def test_a_file_whose_ratios_were_exchanged_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = drawn(900, OLD, 0)
    new = udcp.SetPredictor(LOSS, "lac").calibrate(*own).adapt(TRUE, calibration=own)
    monkeypatch.setattr(NewMix, "as_dict", lambda self: {"old": OLD.tolist(), "new": OLD.tolist(), "rows": 0})
    new.save(tmp_path / "wrong.json")
    with pytest.raises(InputError, match="were made for another mix"):
        udcp.SetPredictor.load(tmp_path / "wrong.json")


def test_it_says_what_it_did_and_on_what_the_guarantee_depends() -> None:
    own, (P, _) = drawn(900, OLD, 0), drawn(2000, NEW, 1)
    old = udcp.SetPredictor(LOSS, "lac").calibrate(*own)
    estimated, given = old.adapt(P, calibration=own), old.adapt(TRUE, calibration=own)
    said = "adapted to a new mix of labels, estimated on 2,000 rows without true labels: d 4."
    assert said in estimated.fitted.about_p
    told = estimated.fitted.guarantee
    assert told == (
        "covers the true label with probability at least 0.9, for the new mix of labels, and only as far as the "
        "estimated ratios are right"
    )
    assert given.fitted.about_p.endswith(
        "adapted to a new mix of labels, as given: d 5.0% -> 60.0%, a 40.0% -> 5.0%, b 35.0% -> 10.0%"
    )
    assert given.fitted.guarantee.endswith("and only if the given ratios are right")


def test_without_calibration_rows_it_reports_the_mix(tmp_path: Path) -> None:
    own, (P, _) = drawn(2000, OLD, 0), drawn(2000, NEW, 1)
    old = udcp.SetPredictor(LOSS, "lac", conditional="class").calibrate(*own)
    shift = old.adapt(P)
    np.testing.assert_allclose(shift.new, NEW, atol=0.06)
    assert str(shift).startswith("the mix of labels has moved by 5")
    assert " on 2,000 new rows: d " in str(shift)
    old.save(tmp_path / "old.json")
    assert str(udcp.SetPredictor.load(tmp_path / "old.json").adapt(P)) == str(shift)
    with pytest.raises(InputError, match="no repair was fitted"):
        udcp.SetPredictor(LOSS, "lac", repair=None).calibrate(*own).adapt(P)


def test_known_ratios_are_taken_as_they_are_and_a_label_may_vanish() -> None:
    shift = udcp.LabelShift([0.5, 0.49, 0.005, 0.005], [0.0, 0.5, 0.5, 0.0])
    assert shift.ratios.tolist() == pytest.approx([0.0, 0.5 / 0.49, 100.0, 0.0])
    own, (P, y) = drawn(5000, shift.old, 0), drawn(5000, shift.new, 1)
    new = udcp.SetPredictor(LOSS, "lac", repair=None).calibrate(*own).adapt(shift, calibration=own)
    assert coverage(new, P, y) > 0.87


def test_labels_that_are_in_every_set_are_named() -> None:
    own = drawn(60, OLD, 0)
    old = udcp.SetPredictor(LOSS, "lac", repair=None).calibrate(*own)
    with pytest.warns(CalibrationWarning, match="in every prediction set, because they are much more frequent now: d;"):
        new = old.adapt(TRUE, calibration=own)
    assert new.predict_set(own[0]).mask[:, 3].all()


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        ({"conditional": "class"}, {}, "whatever the mix of labels"),
        ({"conditional": "difficulty"}, {}, "the label mix may have changed"),
        ({"conditional": "group"}, {"groups": ["x", "y"] * 450}, "the label mix may have changed"),
        ({}, {"weights": np.ones(900)}, "another shift"),
        ({"randomize": True}, {}, "adapt and randomize exclude each other"),
        ({"confidence": 0.9, "alpha": 0.1}, {}, "adapt and confidence exclude each other"),
    ],
)
def test_promises_that_do_not_combine_are_refused(options: Any, more: Any, message: str) -> None:
    own = drawn(900, OLD, 0)
    predictor = udcp.SetPredictor(LOSS, "lac", **options).calibrate(*own, **more)
    with pytest.raises(InputError, match=message):
        predictor.adapt(TRUE, calibration=own)


def test_invalid_input_is_refused() -> None:
    own = drawn(900, OLD, 0)
    predictor = udcp.SetPredictor(LOSS, "lac")
    with pytest.raises(InputError, match="not calibrated"):
        predictor.adapt(own[0])
    predictor.calibrate(*own)
    with pytest.raises(InputError, match="true labels are missing"):
        predictor.adapt(TRUE, calibration=own[0])
    with pytest.raises(InputError, match="of 2 labels, and the loss has 4"):
        predictor.adapt(udcp.LabelShift([0.5, 0.5], [0.1, 0.9]), calibration=own)
    new = predictor.adapt(TRUE, calibration=own)
    for calibration in (None, own):
        with pytest.raises(InputError, match="already adapted to a new mix"):
            new.adapt(own[0], calibration=calibration)
    with pytest.raises(InputError, match="monitor the original predictor"):
        udcp.Monitor(new)
    with pytest.raises(InputError, match="calibration had none"):
        new.predict_set(own[0], weights=np.ones(900))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ([0.5, 0.6], [0.5, 0.5], "the old mix"),
        ([0.5, 0.5], [1.5, -0.5], "the new mix"),
        ([1.0, 0.0], [0.5, 0.5], "share of 0 in the old mix"),
        ([0.5, 0.5], [0.5, 0.25, 0.25], "one entry per label"),
        ([0.5, "x"], [0.5, 0.5], "not one number per label"),
    ],
)
def test_mixes_that_cannot_be_are_refused(old: Any, new: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        udcp.LabelShift(old, new)
