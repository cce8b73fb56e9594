"""What can be promised together, and what is refused, with the reason."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.promise import OPTIONS

LOSS = udcp.loads(
    "labels {a, b, c}  costs harm {a: 5, b: 1, c: 0.5}  costs odd {a: -1, default: 1}  costs none {default: 0} "
    "categories F {x: {a, b}, y: {c}}  costs of_family of F {x: 1, y: 2}  loss l = size"
)
HARM = {"risk": "harm", "alpha": 0.2}

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"conditional": "hardness"}, 'choose None, "group", "class", "difficulty" or "decision"'),
    ({"bins": 3}, 'bins= needs conditional="difficulty"'),
    ({"conditional": "difficulty", "bins": 1}, "bins is 1: give a whole number from 2"),
    ({"conditional": "difficulty", "bins": 2.5}, "bins is 2.5"),
    ({"conditional": "difficulty", "pool": True}, "have equal sizes, so use fewer"),
    ({"confidence": 1}, "confidence is 1: give a number strictly between 0 and 1"),
    ({"confidence": "high"}, "confidence is 'high'"),
    ({"simultaneous": True}, "needs confidence"),
    ({"simultaneous": True, "confidence": 0.9}, "needs conditional"),
    ({"confidence": 0.9, "randomize": True}, "no Beta distribution"),
    ({"risk": "harms", "alpha": 0.1}, "no such costs; did you mean 'harm'"),
    ({"risk": "F", "alpha": 0.1}, "no such costs"),
    ({"risk": 3, "alpha": 0.1}, "risk is 3: give the name of costs"),
    ({"risk": "of_family", "alpha": 0.1}, "costs of a family"),
    ({"risk": "odd", "alpha": 0.1}, "label 'a' has -1, but a harm cannot be below 0"),
    ({"risk": "none", "alpha": 0.1}, "0 for every label"),
    ({"risk": "harm"}, "in the units of the harm"),
    ({"risk": "harm", "confidence_level": 0.9}, "in the units of the harm"),
    ({"risk": "harm", "alpha": 5}, "strictly between 0 and 5, the largest harm"),
    ({"risk": "harm", "alpha": 0}, "alpha is 0: give a mean harm above 0"),
    ({**HARM, "conditional": "class"}, "within a class every miss does the same harm"),
    ({**HARM, "confidence": 0.9}, "the distribution of a mean harm over calibrations is not known"),
    ({**HARM, "randomize": True}, "no exact randomised form"),
    ({"temperature": "hot"}, "temperature is 'hot': give \"fit\""),
    ({"temperature": 0}, "finite number above 0"),
    ({"temperature": float("nan")}, "finite number above 0"),
    ({"temperature": True}, "finite number above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        udcp.SetPredictor(LOSS, "lac", **settings)


def test_confidence_without_alpha_explains_what_each_level_is() -> None:
    """A user of MAPIE gives 0.95 as the coverage, which is `confidence_level` here."""
    with pytest.raises(InputError) as refused:
        udcp.SetPredictor(LOSS, "lac", confidence=0.95)
    told = str(refused.value)
    assert "confidence_level=0.95 or, which is the same, alpha=0.05" in told
    assert "over the draw of the calibration rows" in told
    assert "alpha=0.1, confidence=0.95" in told
    for settings in ({"alpha": 0.1}, {"confidence_level": 0.9}):
        udcp.SetPredictor(LOSS, "lac", confidence=0.95, **settings)


def test_a_default_alpha_is_said() -> None:
    assert (
        repr(udcp.SetPredictor(LOSS, "lac")) == "SetPredictor('l', oracle='lac', alpha=0.1 (default), not calibrated)"
    )
    for settings in ({"alpha": 0.1}, {"confidence_level": 0.9}):
        predictor = udcp.SetPredictor(LOSS, "lac", **settings)
        assert repr(predictor) == "SetPredictor('l', oracle='lac', alpha=0.1, not calibrated)"
    assert udcp.Promise() == udcp.Promise(alpha=0.1)


def test_alpha_of_a_risk_may_exceed_1() -> None:
    assert float(udcp.SetPredictor(LOSS, "lac", risk="harm", alpha=1.5).alphas[0]) == 1.5


@pytest.mark.parametrize("settings", [{"randomize": True}, {"alpha": 0.1, "confidence": 0.9}])
def test_weights_that_are_refused(settings: dict[str, Any]) -> None:
    P = np.full((40, 3), 1 / 3)
    predictor = udcp.SetPredictor(LOSS, "lac", **settings)
    with pytest.raises(InputError, match="exclude each other"):
        predictor.calibrate(P, ["a"] * 40, weights=np.ones(40))


def test_guarantees_in_words() -> None:
    told = [
        udcp.SetPredictor(LOSS, "lac", **settings).promise.guarantee(
            udcp.SetPredictor(LOSS, "lac", **settings).alphas[0]
        )
        for settings in (
            {},
            {"conditional": "difficulty"},
            {"conditional": "group", "alpha": 0.1, "confidence": 0.95, "simultaneous": True},
            HARM,
        )
    ]
    assert told == [
        "covers the true label with probability at least 0.9",
        "covers the true label with probability at least 0.9, within each of 4 bins by difficulty",
        "covers the true label with probability at least 0.9, within each group, with confidence 0.95 over the draw of "
        "the calibration rows, in all at once",
        "keeps the mean of 'harm' over missed true labels at most 0.2",
    ]


def test_the_explicit_signatures_are_those_of_the_declarations() -> None:
    taken = inspect.signature(udcp.SetPredictor).parameters
    assert {name: taken[name].default for name in OPTIONS} == {name: own.default for name, own in OPTIONS.items()}
    beside = {"loss", "oracle", "promise", "options", "confidence_level", "class_names"}
    assert set(taken) == {*OPTIONS, *beside}


def test_the_signature_of_the_scikit_learn_class_too() -> None:
    sklearn = pytest.importorskip("udcp_dsl.sklearn")
    taken = inspect.signature(sklearn.UtilitySetClassifier).parameters
    declared = {name: own.default for name, own in OPTIONS.items() if name != "seed"} | {"alpha": 0.1}
    assert {name: taken[name].default for name in declared} == declared
    beside = {"estimator", "loss", "oracle", "options", "calibration_size", "cv", "class_names", "random_state"}
    assert set(taken) == {*declared, *beside}


def test_a_promise_is_given_as_one_value_or_by_keywords_and_not_both() -> None:
    promise = udcp.Promise(alpha=[0.1, 0.2], nonempty=True)
    predictor = udcp.SetPredictor(LOSS, "lac", promise=promise)
    assert predictor.promise is promise
    assert predictor.promise == udcp.SetPredictor(LOSS, "lac", alpha=[0.1, 0.2], nonempty=True).promise
    with pytest.raises(InputError, match="promise= and alpha= are both given: put alpha into the promise"):
        udcp.SetPredictor(LOSS, "lac", promise=promise, alpha=0.3)
    with pytest.raises(TypeError, match=r"make one with udcp\.Promise"):
        udcp.SetPredictor(LOSS, "lac", promise={"alpha": 0.1})


@pytest.mark.parametrize(
    "asked",
    [{}, {"alpha": ["1/3", 0.25]}, {"conditional": "difficulty", "bins": 3, "alpha": 0.1, "confidence": 0.9}, HARM],
)
def test_a_promise_as_json(asked: dict[str, Any]) -> None:
    promise = udcp.Promise(**asked)
    assert udcp.Promise.from_dict(json.loads(json.dumps(promise.as_dict()))) == promise
