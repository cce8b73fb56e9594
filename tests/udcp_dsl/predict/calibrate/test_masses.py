"""Thresholds by weight and by harm: the definition in fractions, known cases, and the mean over draws."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import Calibration, Rule, Strata, calibrate
from udcp_dsl.predict.calibrate.weighted import steps

if TYPE_CHECKING:
    from tests.conftest import Sizes

WEIGHTS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 1 / 3, 2.5, 1e-12, 7e8])


def by_definition(
    scores: list[float], weights: list[float], harms: list[str], new: float, alpha: Fraction, most: Fraction
) -> float:
    """The least tau, of minus infinity and the scores, with the bound; in fractions."""
    v, h = [Fraction(w) for w in weights], [Fraction(x) for x in harms]
    for tau in [-math.inf, *sorted(set(scores))]:
        missed = sum((v[i] * h[i] for i, s in enumerate(scores) if s > tau), Fraction(0))
        if missed + Fraction(new) * most <= alpha * (sum(v, Fraction(0)) + Fraction(new)):
            return tau
    return math.inf


@given(
    st.lists(st.tuples(st.integers(0, 5), WEIGHTS, st.sampled_from(["0", "0.1", "0.3", "1"])), min_size=1, max_size=9),
    WEIGHTS,
    st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(3, 10), Fraction(2, 3)]),
    st.booleans(),
)
def test_by_definition(points: list[tuple[int, float, str]], new: float, alpha: Fraction, by_harm: bool) -> None:
    points.sort()
    scores, weights, harms = ([float(p[0]) for p in points], [p[1] for p in points], [p[2] for p in points])
    if not by_harm:
        harms = ["1"] * len(points)
    found = steps(
        np.array(scores),
        alpha,
        weights=np.array(weights),
        harms=np.array([float(x) for x in harms]) if by_harm else None,
        most=Fraction(1) if by_harm else None,
    )
    assert found.tau(np.array([new]))[0] == by_definition(scores, weights, harms, new, alpha, Fraction(1))


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=30),
    st.fractions(Fraction(1, 30), Fraction(2, 3), max_denominator=30),
)
def test_equal_weights_and_harms_are_the_plain_rank(scores: list[int], alpha: Fraction) -> None:
    plain = calibrate(scores, alpha=alpha, already_warned=True).tau()
    n = len(scores)
    harm = calibrate(scores, alpha=alpha, harms=np.ones(n), rule=Rule(None, Fraction(1)), already_warned=True).tau()
    weighted = calibrate(scores, alpha=alpha, weights=np.full(n, 0.1), already_warned=True)
    assert harm == plain
    assert weighted.tau(weights=[0.1])[0, 0] == plain  # type: ignore[index]


def test_harms_are_the_decimals_that_were_written() -> None:
    """Two misses of 0.1 among 29 points, and 0.1 for the new one: 0.3 / 30 is 0.01 exactly; floats are above it."""
    scores, harms = np.arange(29.0), np.full(29, 0.1)
    assert 0.1 + 0.1 + 0.1 > 0.3
    assert calibrate(scores, alpha=0.01, harms=harms, rule=Rule(None, Fraction(1, 10))).tau() == 26.0


def test_a_limit_is_decided_to_the_last_bit() -> None:
    """One point of weight 1 at alpha 1/4 carries a new one of weight 1/3 at most; the float below 1/3, not the next."""
    found = steps(np.array([5.0]), Fraction(1, 4), weights=np.array([1.0]))
    third = 1 / 3
    assert Fraction(third) < Fraction(1, 3)
    assert found.tau(np.array([third, math.nextafter(third, 1)])).tolist() == [5.0, math.inf]


def test_a_bound_that_empty_sets_keep() -> None:
    c = calibrate(np.arange(9.0), alpha=0.9, harms=np.zeros(9), rule=Rule(None, Fraction(5)))
    assert c.tau() == -math.inf


def mean_risk(n: int, draws: int, seed: int) -> tuple[float, float]:
    """The mean harm of a new point over draws, with its error; alpha is 0.3, harms are 5, 1 and 0.2."""
    rng = np.random.default_rng(seed)
    kinds = np.array([5.0, 1.0, 0.2])
    missed = np.empty(draws)
    for i in range(draws):
        y = rng.integers(0, 3, n + 1)
        scores = rng.normal(size=n + 1) - y
        harms = kinds[y]
        tau = calibrate(
            scores[:-1], alpha=0.3, harms=harms[:-1], rule=Rule(None, Fraction(5)), already_warned=True
        ).tau()
        missed[i] = harms[-1] * (scores[-1] > tau)
    return float(missed.mean()), float(missed.std() / math.sqrt(draws))


@pytest.mark.parametrize("n", [60, *(pytest.param(n, marks=pytest.mark.slow) for n in (30, 200, 1000))])
def test_mean_risk_over_draws(n: int, sizes: Sizes) -> None:
    mean, error = mean_risk(n, sizes.draws, n)
    assert 0.3 - 2 * 5 / (n + 1) - 4 * error < mean < 0.3 + 4 * error


def shifted(draws: int, seed: int, *, weigh: bool) -> float:
    """Coverage of a new point from N(1, 1), calibrated on N(0, 1) with the true ratio or with none; scores rise with
    x, so that no weights means too little coverage."""
    rng, n, covered = np.random.default_rng(seed), 120, 0
    for _ in range(draws):
        x, new = rng.normal(size=n), rng.normal(1.0, 1.0)
        scores, s = x + 0.3 * rng.normal(size=n), new + 0.3 * rng.normal()
        if weigh:
            c = calibrate(scores, alpha=0.2, weights=np.exp(x - 0.5), already_warned=True)
            tau = c.tau(weights=[np.exp(new - 0.5)])[0, 0]  # type: ignore[index]
        else:
            tau = float(calibrate(scores, alpha=0.2).tau())
        covered += s <= tau
    return covered / draws


def test_coverage_under_a_known_shift(sizes: Sizes) -> None:
    error = math.sqrt(0.16 / sizes.draws)
    assert 0.8 - 4 * error < shifted(sizes.draws, 0, weigh=True) < 0.87 + 4 * error
    assert shifted(sizes.draws, 0, weigh=False) < 0.6


def test_weights_by_group_class_and_difficulty() -> None:
    rng = np.random.default_rng(3)
    n = 60
    scores, weights, y = rng.normal(size=n), rng.random(n), rng.integers(0, 3, n)
    new = np.array([0.5, 2.0])
    v, bins = rng.random(n), Strata.of_bins((0.4,))
    groups, classes = Strata("group", ("a", "b")), Strata("class", n_classes=3)
    for strata, own in ((groups, (y != 0).astype(np.intp)), (classes, y), (bins, bins.codes_of_bins(v))):
        c = calibrate(scores, alpha=0.2, weights=weights, strata=strata, codes=own, already_warned=True)
        parts = [own == i for i in range(len(strata))]
        alone = [calibrate(scores[p], alpha=0.2, weights=weights[p], already_warned=True) for p in parts]
        each = [np.asarray(x.tau(weights=new)) for x in alone]
        if strata.by_class:
            np.testing.assert_array_equal(c.tau(weights=new), np.hstack(each))
        else:
            np.testing.assert_array_equal(c.tau(np.array([1, 1]), weights=new), each[1])
            np.testing.assert_array_equal(c.tau(np.array([1, 0]), weights=new), [each[1][0], each[0][1]])
        assert Calibration.from_dict(c.as_dict(), c.alpha, strata, c.rule, randomize=False).as_dict() == c.as_dict()


def read_back(made: Calibration, plain: Any) -> Calibration:
    return Calibration.from_dict(plain, made.alpha, made.strata, made.rule, randomize=False)


@pytest.mark.parametrize("scores", [[1.0, 2.0, math.inf], [1.0, math.inf, math.inf], [math.inf] * 3])
def test_a_calibration_with_infinite_scores_is_read_back(scores: list[float]) -> None:
    for weights in ([1.0, 0.5, 2.0], [0.0, 0.0, 1.0]):
        made = calibrate(scores, alpha=0.6, weights=weights, already_warned=True)
        again = read_back(made, json.loads(json.dumps(made.as_dict())))
        assert again.as_dict() == made.as_dict()
        new = np.array([0.0, 0.4, 1.0, 9.0])
        np.testing.assert_array_equal(again.tau(weights=new), made.tau(weights=new))


@pytest.mark.parametrize("taus", [[2.0, 2.0, "inf"], [2.0, 1.0, "inf"], [1.0, "inf", "inf", "inf"], [1.0, 2.0, 3.0]])
def test_steps_that_no_scores_give_are_refused(taus: list[Any]) -> None:
    made = calibrate([1.0, 2.0, 3.0], alpha=0.5, weights=[1.0, 1.0, 2.0])
    plain: Any = made.as_dict()
    plain["cells"][0]["steps"] = {"limits": [float(i) for i in range(len(taus) - 1)], "taus": taus}
    with pytest.raises(InputError, match="the steps are damaged"):
        read_back(made, plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1.0, -1.0]}, r"weights: row 1 \(counted from 0\) is -1"),
        ({"weights": [1.0, math.nan]}, "row 1 .* is nan"),
        ({"weights": [0.0, 0.0]}, "all 0"),
        ({"weights": [1.0]}, "shape"),
        ({"weights": [1.0, 1.0], "rule": Rule(Fraction(9, 10))}, "confidence"),
        ({"harms": [1.0, 1.0]}, "most="),
        ({"harms": [1.0, 3.0], "rule": Rule(None, Fraction(2))}, "above 2"),
        ({"harms": [1.0, 1.0], "rule": Rule(Fraction(9, 10), Fraction(1))}, "confidence"),
    ],
)  # fmt: skip
def test_bad_input(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        calibrate([1.0, 2.0], alpha=0.5, **options)  # type: ignore[arg-type]


def test_weights_that_are_missing_at_prediction_or_unasked() -> None:
    weighted, plain = calibrate([1.0, 2.0], alpha=0.5, weights=[1.0, 1.0]), calibrate([1.0, 2.0], alpha=0.5)
    with pytest.raises(InputError, match="needs the weight of each row"):
        weighted.tau()
    with pytest.raises(InputError, match="calibration had none"):
        plain.tau(weights=[1.0])
