"""What oracles buy under a risk, and that the risk is kept through the predictor."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.predict.chain import seen
from udcp_dsl.predict.harm import Harm
from udcp_dsl.predict.stages.stage import FitContext
from udcp_dsl.rows.rows import rows_of

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSS = udcp.loads("labels {a, b, c}  costs harm {a: 5, b: 1, c: 0}  costs l {a: 1, b: 2, c: 3}  loss l1 = sum(l)")
W = np.array([5.0, 1.0, 0.0])
P = np.array([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0], [0.1, 0.8, 0.1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_price_ratio_and_lac_take_w_p_and_the_others_its_share(dtype: type) -> None:
    harm, given = Harm.of(LOSS, "harm"), P.astype(dtype)
    for name in ("price", "ratio", "lac"):
        bought = harm.weigh_block(given, udcp.make_oracle(name, LOSS))
        assert bought.dtype == dtype
        np.testing.assert_allclose(bought * 8, W * P, rtol=1e-6)  # one factor for all rows, a power of two
    for name in ("base", "raps", "greedy", "penalized", "ilp"):
        bought = harm.weigh_block(given, udcp.make_oracle(name, LOSS, **({"lam": 0.1} if name == "penalized" else {})))
        np.testing.assert_allclose(bought.sum(axis=1), [1.0, 0.0, 1.0], rtol=1e-6)
        np.testing.assert_allclose(bought[0], [2.5 / 2.8, 0.3 / 2.8, 0.0], rtol=1e-6)


def test_ratio_is_cost_per_harm() -> None:
    oracle = udcp.make_oracle("ratio", LOSS)
    context = FitContext(udcp.Promise(risk="harm", alpha=0.5), oracle)
    scores = oracle.scores(seen(context, (), rows_of(P, LOSS.labels)))
    np.testing.assert_allclose(scores[0] / 8, [1 / 2.5, 2 / 0.3, np.inf])


@pytest.mark.parametrize("oracle", ["price", "ratio", "lac", "base", "raps", "greedy"])
def test_a_row_without_harm_does_not_disturb(oracle: str) -> None:
    """Where all mass is on harmless labels nothing is worth buying, and nothing breaks."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.dirichlet(np.ones(3), 60), np.tile([0.0, 0.0, 1.0], (20, 1))])
    y = np.array(list("abc"))[[rng.choice(3, p=p) for p in rows]]
    predictor = udcp.SetPredictor(LOSS, oracle, risk="harm", alpha=0.6).calibrate(rows, y)
    harmless = predictor.fitted.prepare(predictor.rows(rows[-2:]))
    assert not harmless.P.any()
    scores = predictor.oracle.scores(harmless)
    assert not np.isnan(scores).any()
    tau = predictor.thresholds()
    np.testing.assert_array_equal(predictor.predict_set(rows[-2:]).mask, scores <= tau)
    harmful = predictor.oracle.scores(predictor.fitted.prepare(predictor.rows(rows[:60])))
    assert (scores.min(axis=1) >= harmful.min()).all()


def risk_of(oracle: str, draws: int, n: int, seed: int, **settings: Any) -> tuple[float, float]:
    """The mean harm of fresh rows, calibrated anew in each draw."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(draws):
        q = rng.dirichlet(np.ones(3), n + 50)
        y = (q.cumsum(axis=1) > rng.random((n + 50, 1))).argmax(axis=1)
        said = q**2 / (q**2).sum(axis=1, keepdims=True)  # overconfident
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predictor = udcp.SetPredictor(LOSS, oracle, risk="harm", alpha=0.4, **settings)
            mask = predictor.calibrate(said[:n], np.array(list("abc"))[y[:n]]).predict_set(said[n:]).mask
        found.append(float((W[y[n:]] * ~mask[np.arange(50), y[n:]]).mean()))
    return float(np.mean(found)), float(np.std(found) / np.sqrt(draws))


@pytest.mark.parametrize("oracle", ["ratio", "base"])
def test_the_risk_is_kept(oracle: str, sizes: Sizes) -> None:
    mean, error = risk_of(oracle, sizes.repeats, 100, 1)
    assert 0.4 - 2 * 5 / 101 - 4 * error < mean < 0.4 + 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["price", "ratio", "lac", "base", "raps", "greedy", "penalized"])
@pytest.mark.parametrize("settings", [{}, {"conditional": "difficulty", "bins": 2}, {"temperature": "fit"}])
def test_the_risk_is_kept_by_every_oracle(oracle: str, settings: dict[str, Any], sizes: Sizes) -> None:
    mean, error = risk_of(oracle, sizes.repeats, 200, 2, **settings)
    assert mean < 0.4 + 4 * error


def test_too_few_rows_give_full_sets_and_say_how_many_are_needed() -> None:
    with pytest.warns(UserWarning, match="alpha 0.1 needs 49, but there are 40"):
        predictor = udcp.SetPredictor(LOSS, "lac", risk="harm", alpha=0.1).calibrate(
            np.full((40, 3), 1 / 3), ["a", "b"] * 20
        )
    assert predictor.predict_set(P).sizes.tolist() == [3, 3, 3]


def test_evaluation_tells_the_risk_beside_coverage() -> None:
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 200)
    y = np.array(list("abc"))[[rng.choice(3, p=p) for p in q]]
    predictor = udcp.SetPredictor(LOSS, "lac", risk="harm", alpha=1.0).calibrate(q[:100], y[:100])
    found = udcp.evaluate(predictor, q[100:], y[100:])
    assert found.risk is not None
    missed = ~found.sets.mask[np.arange(100), [list("abc").index(x) for x in y[100:]]]
    harms = np.array([W[list("abc").index(x)] for x in y[100:]])
    assert found.risk.mean == pytest.approx((harms * missed).mean())
    assert found.coverage == pytest.approx(1 - missed.mean())
    assert found.as_dict()["risk"]["alpha"] == 1.0
    assert "mean harm" in str(found)
    assert "risk " in repr(found)
