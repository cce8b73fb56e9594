"""The repair of p: what it is, how it is fitted, when it is adopted, and what it never does."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize_scalar

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.repair import Repair, fit_repair
from udcp_dsl.predict.repair import fit as fitting
from udcp_dsl.predict.repair.log_loss import PenalizedLogLoss, Point, minimum
from udcp_dsl.predict.repair.value import HeldOutLoss

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def softmax(z: Floats) -> Floats:
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def draw(p: Floats, rng: np.random.Generator) -> Ints:
    below = p.cumsum(axis=1) < rng.random((len(p), 1))
    return np.asarray(np.minimum(below.sum(axis=1), p.shape[1] - 1), dtype=np.int64)


def rows(n: int, K: int, exponent: float = 1.0, shift: float = 0.0, seed: int = 0) -> tuple[Floats, Ints]:
    """p, and truths drawn from p^exponent exp(b), with b of standard deviation `shift`."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, K))
    return softmax(z), draw(softmax(exponent * z + shift * rng.normal(size=K)), rng)


def fit(P: Any, y: Any, seed: int = 0, **options: Any) -> Repair:
    return fit_repair(P, y, rng=np.random.default_rng(seed), **options)


def naive(P: Any, repair: Repair) -> Floats:
    """One label after the other, as the formula is written."""
    K = P.shape[1]
    out = np.zeros(P.shape)
    for i, row in enumerate(np.asarray(P, dtype=np.float64)):
        powers = [((1 - repair.smoothing) * p + repair.smoothing / K) ** repair.exponent for p in row]
        if repair.offsets is not None:
            powers = [q * np.exp(b) for q, b in zip(powers, repair.offsets, strict=True)]
        out[i] = np.array(powers) / sum(powers)
    return out


# The value --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offsets", [None, np.linspace(-1, 2, 5)])
@pytest.mark.parametrize(("exponent", "smoothing"), [(2.5, 0.0), (0.3, 0.01), (1.0, 0.1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_what_the_formula_says(exponent: float, smoothing: float, offsets: Any, dtype: Any) -> None:
    P = rows(20, 5)[0].astype(dtype)
    repair = Repair(exponent, offsets, smoothing)
    found = repair.apply(P)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, naive(P, repair), rtol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("K", [2, 7, 33])
def test_a_rows_bits_do_not_depend_on_its_batch(dtype: Any, K: int) -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(K, 0.3), 100_000).astype(dtype)
    repair = Repair(1.7, rng.normal(size=K), 0.01)
    whole = repair.apply(P)
    for row in (0, 3, 99_999):
        assert np.array_equal(repair.apply(P[row : row + 1])[0], whole[row])
    for part in (P[50:57], np.asfortranarray(P[50:57]), np.repeat(P[50:57], 2, axis=1)[:, ::2]):
        assert np.array_equal(repair.apply(part), whole[50:57])
    assert np.array_equal(repair.apply(P[::-3]), whole[::-3])


def test_nothing_adopted_returns_the_very_same_array() -> None:
    P, _ = rows(4, 3)
    assert Repair().apply(P) is P
    assert not Repair().adopted
    assert Repair(offsets=np.zeros(3)).adopted


@pytest.mark.parametrize("exponent", [1 / 20, 1.0, 20.0])
def test_extremes_stay_distributions(exponent: float) -> None:
    P = np.array([[1.0, 0.0, 0.0], [1e-300, 1.0, 0.0], [5e-324, 5e-324, 1.0], [1 / 3, 1 / 3, 1 / 3]])
    repair = Repair(exponent, np.array([-100.0, 0.0, 100.0]))
    found = repair.apply(P)
    assert not np.isnan(found).any()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert bool((found[P == 0] == 0).all())
    assert bool((Repair(exponent, smoothing=0.1).apply(P) > 0).all())


def test_zero_rows_are_repaired_to_zero_rows() -> None:
    assert Repair(2.0).apply(np.empty((0, 4), dtype=np.float32)).shape == (0, 4)


def test_rows_of_other_labels_are_refused() -> None:
    with pytest.raises(InputError, match="3 labels"):
        Repair(offsets=np.zeros(3)).apply(np.ones((1, 4)) / 4)


LOSSES = HeldOutLoss(1.31, 0.92, 0.01)


@pytest.mark.parametrize(
    ("repair", "text"),
    [
        (
            Repair(1.9, np.array([1.0] * 37 + [0.01] * 3), 0.0, "auto", 600, LOSSES),
            "probabilities repaired: sharpened (exponent 1.9) and 37 labels shifted; log loss 1.31 -> 0.92 on held-out "
            "folds, fitted on 600 of 3,000 rows",
        ),
        (
            Repair(0.5, np.array([1.0, 0.0]), 0.01, "auto", 600, LOSSES),
            "probabilities repaired: flattened (exponent 0.5), 1 label shifted and smoothed by 0.01; log loss 1.31 -> "
            "0.92 on held-out folds, fitted on 600 of 3,000 rows",
        ),
        (
            Repair(2.0, kind="temperature", n_rows=100),
            "probabilities repaired: sharpened (exponent 2), fitted on 100 of 3,000 rows",
        ),
        (Repair(smoothing=0.1), "probabilities repaired: smoothed by 0.1"),
        (
            Repair(kind="auto", n_rows=600, losses=LOSSES),
            "probabilities unchanged (no repair was significantly better)",
        ),
        (Repair(kind="auto", n_rows=3), "probabilities unchanged (too few rows to fit a repair)"),
    ],
)
def test_it_says_what_it_does_in_one_sentence(repair: Repair, text: str) -> None:
    assert repair.describe(3000) == text
    assert str(repair) == text.replace(" of 3,000", "")


def test_json_returns_the_same_bits() -> None:
    P, y = rows(300, 5, 2.0, 1.0)
    repair = fit(P, y)
    assert repair.offsets is not None
    again = Repair.from_dict(json.loads(json.dumps(repair.as_dict())))
    assert again.as_dict() == repair.as_dict()
    assert again.losses == repair.losses
    assert np.array_equal(again.apply(P), repair.apply(P))
    assert Repair.from_dict(Repair().as_dict()).as_dict() == Repair().as_dict()


@pytest.mark.parametrize(
    "fault",
    [
        {"exponent": 20.1},
        {"exponent": 0.04},
        {"exponent": float("nan")},
        {"exponent": True},
        {"exponent": "2"},
        {"exponent": 10**400},
        {"smoothing": -0.1},
        {"smoothing": 1.1},
        {"smoothing": None},
        {"offsets": [0.0]},
        {"offsets": [0.0, 0.0, float("nan")]},
        {"offsets": [0.0, 0.0, "inf"]},
        {"offsets": [0.0, 0.0, 101.0]},
        {"offsets": [0.0, 0.0, 10**400]},
        {"offsets": [0.0, 0.0, True]},
        {"offsets": 0.0},
        {"kind": "magic"},
        {"kind": ["auto"]},
        {"n_rows": -1},
        {"n_rows": 1.0},
        {"n_rows": 10**400},
        {"losses": [1.0, 2.0]},
        {"losses": [1.0, 2.0, "inf"]},
        {"losses": [1.0, -2.0, 0.0]},
        {"absent": [3]},
        {"absent": [1, 0]},
        {"absent": [0.0]},
        {"absent": 0},
        {"labels": "abc"},
        {"labels": ["a", "b"]},
        {"labels": ["a", "b", None]},
        {"labels": ["a", "b", "a"]},
        {"other": 1},
    ],
    ids=str,
)
def test_a_file_that_was_changed_is_refused(fault: dict[str, object]) -> None:
    good = Repair(2.0, np.zeros(3), 0.1, "auto", 100, LOSSES, (0, 2)).as_dict()
    Repair.from_dict(good).for_labels("abc")
    with pytest.raises(InputError):
        Repair.from_dict(good | fault).for_labels("abc")


def test_offsets_are_put_into_the_order_of_the_labels_by_name() -> None:
    repair = Repair(2.0, np.array([1.0, 2.0, 3.0]), absent=(1,), labels=("c", "a", "b"))
    assert Repair.from_dict(json.loads(json.dumps(repair.as_dict()))) == repair
    found = repair.for_labels(("a", "b", "c"))
    assert found.offsets is not None
    assert (found.offsets.tolist(), found.absent, found.labels) == ([2.0, 3.0, 1.0], (0,), ("a", "b", "c"))
    by_position = Repair(2.0, np.array([1.0, 2.0]), absent=(1,)).for_labels(("a", "b"))
    assert by_position.offsets is not None
    assert (by_position.offsets.tolist(), by_position.absent, by_position.labels) == ([1.0, 2.0], (1,), ("a", "b"))
    with pytest.raises(InputError, match="the repair was made for other labels: 'c' is not a label; did you mean"):
        repair.for_labels(("a", "b", "cc"))
    with pytest.raises(InputError, match="made for 3 labels, but there are 2"):
        repair.for_labels(("a", "b"))
    assert Repair(2.0, absent=(1, 2), labels=("x", "y", "z")).for_labels(("a", "z")).absent == (1,)
    with pytest.raises(InputError, match="name 'a' twice"):
        Repair(labels=("a", "a"))
    with pytest.raises(InputError, match="3 offsets and 2 labels"):
        Repair(offsets=np.zeros(3), labels=("a", "b"))


def test_offsets_cannot_be_changed_from_outside() -> None:
    given = np.zeros(3)
    repair = Repair(offsets=given)
    given[0] = 5.0
    assert repair.offsets is not None
    assert repair.offsets[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        repair.offsets[0] = 1.0


# The minimum ------------------------------------------------------------------------------------------------------


def objective(c: float | None, n: int = 60, K: int = 6, *, prior: bool = True) -> PenalizedLogLoss:
    P, y = rows(n, K, 1.8, 1.0)
    return PenalizedLogLoss(np.log(P), y, np.random.default_rng(1).random(n), c, prior)


def vector(at: Point, c: float | None) -> Floats:
    return np.append(at.log_exponent, at.offsets if c is not None else [])


@pytest.mark.parametrize("c", [None, 0.5, 20.0])
@pytest.mark.parametrize("prior", [True, False])
def test_gradient_and_hessian_agree_with_finite_differences(c: float | None, prior: bool) -> None:
    own = objective(c, prior=prior)
    rng = np.random.default_rng(2)
    at = Point(-0.7, rng.normal(size=6))  # where the log loss is convex in log a
    near = own.quadratic(own.evaluate(at))
    for i, _ in enumerate(near.gradient):
        step = np.zeros(7)
        step[i] = 1e-5
        up, down = (own.evaluate(at.moved(step, sign)) for sign in (1.0, -1.0))
        assert near.gradient[i] == pytest.approx((up.value - down.value) / 2e-5, rel=1e-6, abs=1e-6)
        slopes = (own.quadratic(up).gradient - own.quadratic(down).gradient) / 2e-5
        unit = step[: len(near.gradient)] / 1e-5
        if i > 0 or near.gradient[0] > 0:
            np.testing.assert_allclose(near.product(unit), slopes, rtol=1e-5, atol=1e-5)
        assert near.product(unit)[i] == pytest.approx(near.diagonal[i])


@pytest.mark.parametrize("c", [None, 0.5, 5.0])
def test_the_minimum_is_that_of_scipy(c: float | None) -> None:
    from scipy.optimize import minimize

    own = objective(c)
    size = 1 if c is None else 7

    def value(x: Floats) -> float:
        return own.evaluate(Point(float(x[0]), x[1:] if c is not None else np.zeros(6))).value

    best = minimize(value, np.zeros(size), method="BFGS", options={"gtol": 1e-7})
    found = minimum(own, Point(0.0, np.zeros(6)), 1e-12)
    assert own.evaluate(found).value <= best.fun + 1e-9
    np.testing.assert_allclose(vector(found, c), best.x, atol=1e-4)


def test_a_label_without_observations_is_scaled_to_c_of_c_plus_expected() -> None:
    rng = np.random.default_rng(0)
    n, K, c = 1000, 4, 2.0
    P = np.tile([0.5, 0.3, 0.15, 0.05], (n, 1))  # the last is expected 50 times, and never observed
    y = rng.choice(3, size=n, p=np.array([0.5, 0.3, 0.2]))
    found = minimum(PenalizedLogLoss(np.log(P), y, np.ones(n), c), Point(0.0, np.zeros(K)), 1e-12)
    scale = Repair(found.exponent, found.offsets).apply(P[:1])[0, 3] / 0.05
    assert c / (c + 50) * 0.7 < scale < c / (c + 50) * 1.5
    expected = n * Repair(found.exponent, found.offsets).apply(P[:1])[0]
    np.testing.assert_allclose(c * (np.exp(found.offsets) - 1), np.bincount(y, minlength=K) - expected, atol=1e-4)


def test_the_exponent_is_bounded_where_every_row_is_right() -> None:
    P = np.tile([0.6, 0.4], (5000, 1))
    own = PenalizedLogLoss(np.log(P), np.zeros(5000, dtype=np.intp), np.ones(5000))
    assert minimum(own, Point(0.0, np.zeros(2)), 1e-12).exponent <= 20.0 * (1 + 1e-12)
    repair = fit(P, np.zeros(5000, dtype=np.int64))
    assert repair.exponent <= 20.0
    for right, exponent in ((0.6, 20.0), (0.999, 20.0), (0.5, 1.0), (0.4, 1 / 20)):
        P = np.tile([right, 1 - right], (50, 1))
        told = "the exponent stays 1: on the 50 rows" if exponent == 1 else "the exponent is at its limit"
        with pytest.warns(UserWarning, match=told):
            assert fit(P, np.zeros(50, dtype=np.int64), kind="temperature").exponent == exponent


# The choice -------------------------------------------------------------------------------------------------------


def test_what_is_wrong_with_p_is_found() -> None:
    every, drawn = rows(5000, 8, 1.8, 1.0)
    P, y, new, truth = every[:1000], drawn[:1000], every[1000:], drawn[1000:]
    repair = fit(P, y)
    assert 1.5 < repair.exponent < 2.1
    assert repair.offsets is not None
    assert repair.losses is not None
    assert repair.losses.is_better
    assert repair.n_rows == 1000

    def log_loss(p: Floats) -> float:
        return float(-np.log(p[np.arange(len(p)), truth]).mean())

    assert log_loss(repair.apply(new)) < log_loss(new) - 0.1
    assert log_loss(repair.apply(new)) == pytest.approx(repair.losses.after, abs=0.1)


def test_true_p_is_left_alone(seed: int) -> None:
    repair = fit(*rows(500, 8, seed=seed), seed=seed)
    assert not repair.adopted
    assert repair.losses is not None


def test_candidates_are_judged_on_rows_that_they_were_not_fitted_on() -> None:
    """With two rows per label, a fit that were judged on its own rows would always win."""
    P, y = rows(200, 100)
    repair = fit(P, y)
    assert not repair.adopted
    inside = fitting.Sample(P, y, np.ones(200))
    at = fitting.fitted(inside, fitting.Candidate(0.0, 0.5))
    own = PenalizedLogLoss(np.log(P), y, np.ones(200), 0.5).evaluate(at)
    assert repair.losses is not None
    assert own.log_losses.mean() < repair.losses.before - 0.2


def test_a_temperature_is_that_of_the_likelihood() -> None:
    for seed, exponent in ((0, 0.6), (1, 1.0), (2, 2.5)):
        P, y = rows(200, 6, exponent, seed=seed)
        P[0] = np.eye(6)[y[0]]  # zeros beside the truth
        P[1] = np.eye(6)[(y[1] + 1) % 6]  # a truth with p = 0
        repair = fit(P, y, kind="temperature")
        known = P[np.arange(len(y)), y] > 0

        def likelihood(exponent: float, P: Any = P[known], y: Any = y[known]) -> float:
            return float(np.log(Repair(exponent).apply(P)[np.arange(len(y)), y]).sum())

        best = minimize_scalar(lambda a: -likelihood(a), bounds=(0.05, 20), method="bounded", options={"xatol": 1e-9})
        assert repair.exponent == pytest.approx(best.x, rel=1e-5)
        assert (repair.offsets, repair.smoothing, repair.kind) == (None, 0.0, "temperature")


def test_a_temperature_needs_a_truth_with_p_above_0() -> None:
    with pytest.raises(InputError, match="probability 0"):
        fit(np.array([[1.0, 0.0]] * 20), np.ones(20, dtype=np.int64), kind="temperature")


def test_weights_count_rows() -> None:
    """Weight 2 is two copies, for the mean; rows of weight 0 are not there."""
    P, y = rows(300, 5, 2.0, 1.0)
    weights = np.ones(300)
    weights[200:] = 0
    assert fit(P, y, weights=weights).as_dict() == fit(P[:200], y[:200]).as_dict()
    same = fit(P, y, weights=np.full(300, 7.0)).as_dict(), fit(P, y).as_dict()
    assert same[0]["exponent"] == pytest.approx(same[1]["exponent"])
    other = np.where(y == 0, 5.0, 1.0)
    plain, weighted = fit(P, y), fit(P, y, weights=other)
    assert plain.offsets is not None
    assert weighted.offsets is not None
    assert weighted.offsets[0] - weighted.offsets[1:].mean() > plain.offsets[0] - plain.offsets[1:].mean() + 0.3


def test_the_paired_error_is_the_textbooks_and_weighted() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.random(50), rng.random(50)
    sample = fitting.Sample(np.full((50, 2), 0.5), np.zeros(50, dtype=np.intp), np.ones(50))
    error = sample.compare(before, after).standard_error
    assert error == pytest.approx(np.std(after - before, ddof=1) / np.sqrt(50))
    w = np.where(np.arange(50) < 10, 1.0, 1e-9)
    few = fitting.Sample(sample.P, sample.y, w).compare(before, after)
    assert few.before == pytest.approx(before[:10].mean())
    assert few.standard_error == pytest.approx(np.std((after - before)[:10], ddof=1) / np.sqrt(10), rel=1e-6)


# Edges ------------------------------------------------------------------------------------------------------------


def test_two_labels() -> None:
    repair = fit(*rows(400, 2, 3.0, 0.5))
    assert repair.exponent > 1.5


def test_p_of_0_and_1_and_truths_with_p_0() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    P = np.eye(3)[np.where(rng.random(300) < 0.7, y, (y + 1) % 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        repair = fit(P, y)
    found = repair.apply(P)
    assert repair.smoothing > 0
    assert not np.isnan(found).any()
    # Right in 70 percent: p' is about that.
    assert float(found.max(axis=1).mean()) == pytest.approx(0.7, abs=0.1)


def test_every_truth_with_p_0() -> None:
    P = np.tile([1.0, 0.0], (100, 1))
    repair = fit(P, np.ones(100, dtype=np.int64))
    assert not np.isnan(repair.apply(P)).any()


def test_every_row_right() -> None:
    P, _ = rows(300, 5)
    repair = fit(P, P.argmax(axis=1))
    assert 1.0 < repair.exponent <= 20.0
    assert np.array_equal(repair.apply(P).argmax(axis=1), P.argmax(axis=1)) or repair.offsets is not None


def test_a_fold_with_one_label() -> None:
    P, _ = rows(300, 5)
    repair = fit(P, np.full(300, 2))
    assert repair.absent == (0, 1, 3, 4)
    found = repair.apply(P)
    assert bool((found > 0).all())
    assert found[:, 2].mean() > P[:, 2].mean()


def test_ties_stay_ties_without_offsets() -> None:
    P = np.full((200, 4), 0.25)
    repair = fit(P, np.arange(200) % 4)
    assert not repair.adopted
    assert np.unique(Repair(3.0, smoothing=0.1).apply(P)).size == 1


def test_float32_is_fitted_as_its_float64() -> None:
    P, y = rows(300, 5, 2.0)
    single = P.astype(np.float32)
    assert fit(single, y).as_dict() == fit(single.astype(np.float64), y).as_dict()


@pytest.mark.parametrize("n", [0, 1, 4, 9])
def test_fewer_rows_than_folds_leave_p_alone(n: int) -> None:
    P, y = rows(10, 3)
    repair = fit(P[:n], y[:n])
    assert not repair.adopted
    assert repair.n_rows == n


def test_ten_thousand_labels() -> None:
    P, y = rows(40, 10_000, 2.0)
    repair = fit(P, y)
    assert len(repair.absent) >= 10_000 - 40
    assert repair.apply(P).shape == P.shape


def test_a_matrix_too_large_takes_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "_MAX_CELLS", 500)
    assert fit(*rows(300, 5)).n_rows == 100


def test_the_same_seed_gives_the_same_bits() -> None:
    P, y = rows(300, 20, 2.0, 1.0)
    assert fit(P, y, seed=3).as_dict() == fit(P, y, seed=3).as_dict()
    assert fit(P, y, seed=3).losses != fit(P, y, seed=4).losses


@pytest.mark.parametrize(
    ("P", "y", "options"),
    [
        (np.ones(3), [0, 0, 0], {}),
        (np.ones((2, 1), dtype=np.int64), [0, 0], {}),
        (np.full((2, 2), 0.5), [0, 2], {}),
        (np.full((2, 2), 0.5), [0.0, 1.0], {}),
        (np.full((2, 2), 0.5), [0, 1], {"weights": [1.0, -1.0]}),
        (np.full((2, 2), 0.5), [0, 1], {"kind": "given"}),
    ],
)
def test_invalid_input_is_refused(P: Any, y: Any, options: Any) -> None:
    with pytest.raises(InputError):
        fit(P, y, **options)


def test_importing_it_does_not_import_scipy() -> None:
    code = "import sys, udcp_dsl.predict.repair; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
