"""p-values: the set at any alpha is {p > alpha}, for every kind of promise, and their exact law."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import kstest

import udcp_dsl as udcp
from tests.specs import ANCHORED

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSS = "labels { a, b, c }  costs harm { a: 1, b: 0.5, c: 2 }  loss l = size"
LEVELS = ["0.05", "0.1", "1/7", "0.25", "1/3", "0.5", "0.9"]


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """With many ties: probabilities of one digit."""
    rng = np.random.default_rng(seed)
    P = rng.multinomial(10, rng.dirichlet(np.ones(3), n)) / 10
    return P, (P.cumsum(axis=1) > rng.random((n, 1)) * 0.999).argmax(axis=1)


PROMISES: list[dict[str, Any]] = [
    {},
    {"conditional": "group"},
    {"conditional": "class"},
    {"conditional": "difficulty", "bins": 3},
    {"nonempty": True},
    {"randomize": True},
    {"randomize": True, "conditional": "class"},
    {"confidence": 0.9},
    {"confidence": 0.9, "conditional": "difficulty", "bins": 2},
    {"risk": "harm"},
    {"weights": True},
    {"weights": True, "conditional": "class"},
    {"repair": udcp.Repair(1 / 2.0)},
]


@pytest.mark.parametrize("oracle", ["lac", "base"])
@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_the_set_at_any_alpha_holds_the_labels_whose_p_is_above_it(promise: dict[str, Any], oracle: str) -> None:
    options = {name: x for name, x in promise.items() if name != "weights"}
    (P, y), (new, _) = rows(90, 0), rows(60, 1)
    of, at = {}, {}
    if promise.get("conditional") == "group":
        of, at = {"groups": np.arange(90) % 3}, {"groups": np.arange(60) % 3}
    if "weights" in promise:
        of, at = {"weights": np.arange(90) % 5 / 4}, {"weights": np.arange(60) % 3 / 2}
    for alpha in LEVELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few rows, shared draws
            predictor = udcp.SetPredictor(udcp.loads(LOSS), oracle, alpha=alpha, **options).calibrate(P, y, **of)
            mask = predictor.predict_set(new, **at).mask
            p = predictor.p_values(new, **at)
        assert np.array_equal(p > float(Fraction(alpha)), mask), alpha


@pytest.mark.parametrize("promise", [{"randomize": True}, {}, {"weights": True}], ids=str)
def test_at_infinite_scores_too_the_set_holds_the_labels_whose_p_is_above_alpha(promise: dict[str, Any]) -> None:
    """Under `ratio` a label with p = 0 scores infinity; many true labels do, and many labels of new rows."""
    (P, y), (new, _) = rows(60, 2), rows(200, 3)
    y[:25] = P[:25].argmin(axis=1)
    assert (P[np.arange(60), y] == 0).sum() > 3
    assert (new == 0).any()
    options = {name: x for name, x in promise.items() if name != "weights"}
    of, at = ({"weights": np.ones(60)}, {"weights": np.ones(200)}) if "weights" in promise else ({}, {})
    for alpha in LEVELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # zeros, too few rows, shared draws
            predictor = udcp.SetPredictor(udcp.loads(LOSS), "ratio", alpha=alpha, **options).calibrate(P, y, **of)
            mask = predictor.predict_set(new, **at).mask
            p = predictor.p_values(new, **at)
        assert np.array_equal(p > float(Fraction(alpha)), mask), alpha


def test_of_plain_scores_by_hand() -> None:
    predictor = udcp.SetPredictor(udcp.loads(LOSS), "lac", alpha=0.5).calibrate(
        [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], [0, 1, 0]
    )
    assert predictor.p_values([[0.5, 0.4, 0.1], [0.8, 0.15, 0.05]]).tolist() == [[0.75, 0.25, 0.25], [1.0, 0.25, 0.25]]
    assert predictor.p_values(np.empty((0, 3))).shape == (0, 3)


def test_of_the_true_label_they_are_uniform(sizes: Sizes) -> None:
    """Over calibrations and rows together, randomised: exactly; by Kolmogorov and Smirnov, failing once in 10^5."""
    loss, found = udcp.loads(LOSS), []
    for seed in range(sizes.draws):
        P, y = rows(21, 100 + seed)
        predictor = udcp.SetPredictor(loss, "lac", alpha=0.3, randomize=True, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few rows, shared draws
            predictor.calibrate(P[:20], y[:20])
            found.append(predictor.p_values(P[20:])[0, y[20]])
    assert kstest(found, "uniform").pvalue > 1e-5


def test_with_anchors_they_are_of_the_smallest_alpha() -> None:
    rng = np.random.default_rng(4)
    P = rng.dirichlet(np.ones(3), 300)
    y = (P.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    predictor = udcp.SetPredictor(ANCHORED, "price", alpha=[0.3, 0.1]).calibrate(P[:200], y[:200])
    assert predictor.anchors is not None
    assert np.array_equal(predictor.p_values(P[200:]) > 0.1, predictor.predict_set(P[200:], alpha=0.1).mask)


def test_thinned_in_a_file_they_are_rounded_up_but_not_past_alpha(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from udcp_dsl.predict.calibrate import ranks as calibration_scores

    monkeypatch.setattr(calibration_scores, "_MAX_WHOLE_SCORES", 100)
    monkeypatch.setattr(calibration_scores, "_MAX_RANK_PARTS", 40)
    monkeypatch.setattr(calibration_scores, "_MIN_RANK_PARTS", 20)
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.ones(3), 700)
    y = (P.cumsum(axis=1) > rng.random((700, 1))).argmax(axis=1)
    made = udcp.SetPredictor(udcp.loads(LOSS), "lac", alpha=[0.1, 0.23]).calibrate(P[:600], y[:600])
    made.save(tmp_path / "p.json")
    loaded = udcp.SetPredictor.load(tmp_path / "p.json")
    exact, rough = made.p_values(P[600:]), loaded.p_values(P[600:])
    assert (rough >= exact).all()
    assert (rough > exact).any()
    for alpha in (0.1, 0.23):
        assert np.array_equal(rough > alpha, exact > alpha)


def test_refusals() -> None:
    P, y = rows(30, 0)
    with pytest.raises(udcp.InputError, match="not calibrated"):
        udcp.SetPredictor(udcp.loads(LOSS), "lac").p_values(P)
    made = udcp.SetPredictor(udcp.loads(LOSS), "lac", alpha=0.3).calibrate(P, y)
    fitted = made.fitted
    made.use({fitted.alpha: replace(fitted, thresholds=replace(fitted.thresholds, scores=None))})
    with pytest.raises(udcp.InputError, match=r"before 0\.2\.0.*it again to have p-values"):
        made.p_values(P)
    weighted = udcp.SetPredictor(udcp.loads(LOSS), "lac", alpha=0.3).calibrate(P, y, weights=np.ones(30))
    with pytest.raises(udcp.InputError, match="need weights, too: give weights="):
        weighted.p_values(P)
