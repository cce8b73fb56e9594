"""The temperature: what it does to rows, that the fit is the best, its fold, and that coverage keeps its law."""

from __future__ import annotations

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.stages.temperature import HIGHEST, LOWEST, fit_temperature, temperature_fold, tempered
from udcp_dsl.testing.coverage import Problem, coverage_trials

LOSS = udcp.loads("labels 0..3  loss l = size")


def drawn(n: int, T: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that say softmax(T z) where softmax(z) is true: the temperature that repairs them is T."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 4)) * 2
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = np.exp(T * z - (T * z).max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("T", [0.2, 1.0, 3.0, 1e6])
def test_tempered_rows_are_the_softmax_of_divided_logs(T: float, dtype: type) -> None:
    P = np.array([[0.7, 0.2, 0.1, 0.0], [1.0, 0.0, 0.0, 0.0], [1e-30, 1e-35, 0.5, 0.5]], dtype=dtype)
    with np.errstate(divide="ignore"):
        z = np.log(P.astype(np.float64)) / T
    meant = np.exp(z - z.max(axis=1, keepdims=True))
    meant /= meant.sum(axis=1, keepdims=True)
    out = tempered(P, T)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, meant, rtol=1e-6, atol=1e-37)
    assert tempered(P, None) is P
    assert tempered(P, 1.0) is P


@pytest.mark.parametrize("T", [0.5, 1.0, 2.5])
def test_the_fit_finds_what_was_done_and_is_the_best(T: float) -> None:
    P, y = drawn(4000, T, 0)
    found = fit_temperature(P, y)
    assert found == pytest.approx(T, rel=0.1)

    def likelihood(t: float) -> float:
        return float(np.log(tempered(P, t)[np.arange(len(y)), y]).sum())

    assert likelihood(found) >= max(likelihood(found * f) for f in (0.99, 1.01, 0.9, 1.1))


def test_ends_of_the_range_are_told() -> None:
    sure = np.array([[0.9, 0.1]] * 20)
    with pytest.warns(UserWarning, match="as far as it goes"):
        assert fit_temperature(sure, np.zeros(20, dtype=np.int64)) == LOWEST
    with pytest.warns(UserWarning, match="as far as it goes"):
        assert fit_temperature(sure, np.ones(20, dtype=np.int64)) == HIGHEST
    with pytest.warns(UserWarning, match="p says nothing"):
        assert fit_temperature(np.full((20, 2), 0.5), np.zeros(20, dtype=np.int64)) == 1.0
    with pytest.raises(InputError, match="has probability 0"):
        fit_temperature(np.array([[1.0, 0.0]]), np.array([1]))


def test_its_fold_is_a_fifth_by_seed_and_no_other_fold_has_its_rows() -> None:
    assert len(temperature_fold(1000, 0)) == 200
    assert len(temperature_fold(100_000, 0)) == 1000
    assert (
        temperature_fold(1000, 0).tolist() == temperature_fold(1000, 0).tolist() != temperature_fold(1000, 1).tolist()
    )
    with pytest.raises(InputError, match="give 50 rows or more"):
        temperature_fold(49, 0)
    P, y = drawn(500, 2.0, 1)
    predictor = udcp.SetPredictor(LOSS, "lac", temperature="fit").calibrate(P, y)
    assert predictor.calibrated.n == 400
    own = temperature_fold(500, 0)
    assert predictor.temperature == fit_temperature(P[own], y[own])
    rest = np.setdiff1d(np.arange(500), own)
    plain = udcp.SetPredictor(LOSS, "lac").calibrate(tempered(P[rest], predictor.temperature), y[rest])
    assert predictor.calibrated.tau() == plain.calibrated.tau()
    tuned = udcp.SetPredictor(LOSS, "penalized", temperature="fit").calibrate(P, y)
    assert tuned.tuning is not None
    assert tuned.calibrated.n == 133
    assert tuned.tuning.n == 133


def test_logits_and_log_p_are_one() -> None:
    P, y = drawn(300, 2.0, 3)
    a = udcp.SetPredictor(LOSS, "base", temperature="fit").calibrate(P, y)
    b = udcp.SetPredictor(LOSS, "base", temperature="fit").calibrate(np.log(P), y, logits=True)
    assert a.temperature == pytest.approx(b.temperature, rel=1e-9)
    np.testing.assert_array_equal(a.predict_set(P).mask, b.predict_set(np.log(P)).mask)


def test_a_temperature_given_changes_sets_and_1_does_not() -> None:
    P, y = drawn(300, 3.0, 4)
    sets = {T: udcp.SetPredictor(LOSS, "base", temperature=T).calibrate(P, y).predict_set(P) for T in (None, 1, 3.0)}
    np.testing.assert_array_equal(sets[None].mask, sets[1].mask)
    assert (sets[None].mask != sets[3.0].mask).any()
    assert sets[3.0].sizes.mean() < sets[None].sizes.mean()


def test_coverage_keeps_its_law() -> None:
    problem = Problem.generated(4, np.random.default_rng(0), kind="overconfident")
    predictor = udcp.SetPredictor(LOSS, "lac", alpha=0.2, temperature=2.0)
    trials = coverage_trials(predictor, problem, n_cal=30, repeats=100, rng=np.random.default_rng(1))
    assert trials.chance > 1e-4
