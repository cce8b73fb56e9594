"""Inputs per row through the scikit-learn class: fitted with their rows, requested, routed, split with the rows; and
what the estimator itself requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import InputError

pd = pytest.importorskip("pandas")
sklearn = pytest.importorskip("sklearn")

from sklearn.exceptions import UnsetMetadataPassedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold, cross_validate, train_test_split  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, StandardScaler  # noqa: E402
from sklearn.utils import check_random_state  # noqa: E402

from udcp_dsl.sklearn import UtilitySetClassifier, set_scorer  # noqa: E402

TEXT = "labels { a, b, c }  input km in [0, 9]  costs fee per row in [1, 5]  loss l = sum(fee) + km * any({ a, b })"
N = 300


@pytest.fixture
def routed() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def rows() -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] + rng.normal(size=N) > 0).astype(int) + (X[:, 1] > 1)]
    return X, y, {"km": rng.uniform(0, 9, N), "fee": rng.uniform(1, 5, (N, 3))}


def frame(inputs: dict[str, Any]) -> Any:
    return pd.DataFrame({"km": inputs["km"], "fee": inputs["fee"].tolist()})


def model(**settings: Any) -> Any:
    return UtilitySetClassifier(LogisticRegression(), udcp.loads(TEXT), alpha=0.2, random_state=0, **settings)


def test_inputs_are_fitted_with_their_rows() -> None:
    X, y, inputs = rows()
    made = model().fit(X, y, inputs=inputs)
    new = {name: column[:20] for name, column in inputs.items()}
    sets = made.predict_set(X[:20], inputs=new)
    np.testing.assert_array_equal(made.p_values(X[:20], inputs=new) > 0.2, sets.mask)
    by_frame = model().fit(X, y, inputs=frame(inputs)).predict_set(X[:20], inputs=frame(inputs)[:20])
    np.testing.assert_array_equal(by_frame.mask, sets.mask)
    np.testing.assert_array_equal(by_frame.costs, sets.costs)
    report = made.evaluate_sets(X, y, inputs=inputs)
    assert report.mean_cost == udcp.evaluate(made, X, y, inputs=inputs).mean_cost
    assert report.mean_cost == pytest.approx(made.predict_set(X, inputs=inputs).costs.mean())
    for face in (made.predict_set, made.p_values):
        with pytest.raises(InputError, match="give inputs="):
            face(X[:20])
    with pytest.raises(InputError, match="give inputs="):
        made.evaluate_sets(X, y)


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("n", [N - 50, N + 50])
@pytest.mark.parametrize("columns", [dict, pd.DataFrame])
def test_another_number_of_rows_is_refused_before_the_split(cv: int | None, n: int, columns: Any) -> None:
    X, y, _ = rows()
    rng = np.random.default_rng(0)
    inputs = columns({"km": rng.uniform(0, 9, n), "fee": rng.uniform(1, 5, (n, 3)).tolist()})
    with pytest.raises(InputError, match=f"inputs have {n} rows, but X has {N}"):
        model(cv=cv).fit(X, y, inputs=inputs)


def test_inputs_with_another_index_than_the_rows_are_refused() -> None:
    X, y, inputs = rows()
    table, seen = frame(inputs), pd.DataFrame(X, columns=["x", "z"])
    turned = table.iloc[::-1]
    made = model().fit(seen, y, inputs=table)
    for use in (model().fit, made.calibrate, made.evaluate_sets):
        with pytest.raises(InputError, match="X and the inputs have different indexes"):
            use(seen, y, inputs=turned)
        with pytest.raises(InputError, match="X and y have different indexes"):
            use(seen, pd.Series(y, index=turned.index), inputs=table)
    for use in (made.predict_set, made.p_values):
        with pytest.raises(InputError, match="X and the inputs have different indexes"):
            use(seen, inputs=turned)
        with pytest.raises(InputError, match="X and input 'km' have different indexes"):
            use(seen, inputs={"km": turned["km"], "fee": inputs["fee"]})


@pytest.mark.parametrize("cv", [None, 3])
def test_errors_name_the_rows_as_given_also_those_that_train(cv: int | None) -> None:
    X, y, inputs = rows()
    for row in range(12):  # some train, some calibrate
        km = np.where(np.arange(N) == row, np.nan, inputs["km"])
        with pytest.raises(InputError, match=f"^row {row}: input 'km' is not a finite number"):
            model(cv=cv).fit(X, y, inputs={**inputs, "km": km})


def test_a_harm_per_row_is_fitted_with_its_rows() -> None:
    X, y, inputs = rows()
    text = "labels { a, b, c }  costs fee per row in [1, 5]  loss l = size"
    made = UtilitySetClassifier(LogisticRegression(), udcp.loads(text), alpha=0.9, risk="fee", random_state=0)
    made.fit(X, y, inputs=pd.DataFrame({"fee": inputs["fee"].tolist()}))
    _, held_out = train_test_split(np.arange(N), test_size=0.25, random_state=check_random_state(0))
    expected = udcp.SetPredictor(udcp.loads(text), alpha=0.9, risk="fee")
    expected.calibrate(made.predict_proba(X[held_out]), y[held_out], inputs={"fee": inputs["fee"][held_out]})
    assert made.predictor_.calibrated.thresholds() == expected.calibrated.thresholds()


def test_calibration_rows_keep_their_own_inputs() -> None:
    """As if the split were made by hand."""
    X, y, inputs = rows()
    made = model().fit(X, y, inputs=inputs)
    training, held_out = train_test_split(np.arange(N), test_size=0.25, random_state=check_random_state(0))
    fitted = LogisticRegression().fit(X[training], y[training])
    own = {name: column[held_out] for name, column in inputs.items()}
    predictor = udcp.SetPredictor(udcp.loads(TEXT), alpha=0.2)
    predictor.calibrate(fitted.predict_proba(X[held_out]), y[held_out], inputs=own)
    assert made.predictor_.calibrated.thresholds() == predictor.calibrated.thresholds()


def test_cross_conformal_sets_read_them_too() -> None:
    """Constant columns give the sets of the loss with these constants."""
    X, y, inputs = rows()
    constant = {"km": np.full(N, 4.0), "fee": np.tile([1.5, 2.0, 3.0], (N, 1))}
    text = "labels { a, b, c }  costs fee { a: 1.5, b: 2, c: 3 }  loss l = sum(fee) + 4 * any({ a, b })"
    made = model(cv=3, calibration_size=0.3).fit(X, y, inputs=constant)
    plain = UtilitySetClassifier(LogisticRegression(), udcp.loads(text), alpha=0.2, random_state=0, cv=3).fit(X, y)
    sets, expected = made.predict_set(X, inputs=constant), plain.predict_set(X)
    np.testing.assert_array_equal(sets.mask, expected.mask)
    np.testing.assert_allclose(sets.costs, expected.costs)
    other = made.predict_set(X, inputs=inputs)
    assert (other.mask != sets.mask).any()
    with pytest.raises(InputError, match="give inputs="):
        made.predict_set(X)


@pytest.mark.usefixtures("routed")
def test_metadata_can_be_requested() -> None:
    asked = model().set_fit_request(inputs=True, groups=True, weights=True)
    names = ["inputs", "groups", "weights", "sample_weight"]
    assert asked.get_metadata_routing().consumes("fit", names) == {"inputs", "groups", "weights"}
    scorer = set_scorer("neg_cost").set_score_request(inputs=True, groups=True, weights=False)
    assert scorer.get_metadata_routing().score.requests == {"inputs": True, "groups": True, "weights": False}


@pytest.mark.usefixtures("routed")
def test_a_pipeline_passes_them_on() -> None:
    X, y, inputs = rows()
    pipe = make_pipeline(StandardScaler(), model().set_fit_request(inputs=True)).fit(X, y, inputs=inputs)
    alone = model().fit(StandardScaler().fit_transform(X), y, inputs=inputs)
    scaled = pipe[:-1].transform(X)
    np.testing.assert_array_equal(
        pipe[-1].predict_set(scaled, inputs=inputs).mask, alone.predict_set(scaled, inputs=inputs).mask
    )
    scorer = set_scorer("neg_cost")
    assert scorer(pipe, X, y, inputs=inputs) == -alone.evaluate_sets(scaled, y, inputs=inputs).mean_cost


@pytest.mark.usefixtures("routed")
@pytest.mark.parametrize("in_a_pipeline", [False, True])
def test_cross_validation_splits_them_with_the_rows(in_a_pipeline: bool) -> None:
    X, y, inputs = rows()
    table = frame(inputs)
    made = model().set_fit_request(inputs=True)
    made = make_pipeline(StandardScaler(), made) if in_a_pipeline else made
    scorers = {name: set_scorer(name).set_score_request(inputs=True) for name in ("coverage", "neg_cost")}
    folds = KFold(3, shuffle=True, random_state=0)
    found = cross_validate(made, X, y, scoring=scorers, cv=folds, params={"inputs": table}, return_estimator=True)
    for (_, test), fitted, coverage, cost in zip(
        folds.split(X), found["estimator"], found["test_coverage"], found["test_neg_cost"], strict=True
    ):
        seen = fitted[:-1].transform(X[test]) if in_a_pipeline else X[test]
        last = fitted[-1] if in_a_pipeline else fitted
        report = last.evaluate_sets(seen, y[test], inputs=table.iloc[test])
        assert (coverage, cost) == (report.coverage, -report.mean_cost)


@pytest.mark.usefixtures("routed")
def test_groups_and_weights_are_routed_too() -> None:
    X, y, inputs = rows()
    groups, weights = np.where(X[:, 0] > 0, "east", "west"), np.exp(0.2 * X[:, 1])
    made = model(conditional="group").set_fit_request(inputs=True, groups=True)
    scorer = set_scorer("coverage").set_score_request(inputs=True, groups=True)
    found = cross_validate(made, X, y, scoring=scorer, cv=3, params={"inputs": frame(inputs), "groups": groups})
    assert (found["test_score"] > 0.6).all()
    made = model().set_fit_request(inputs=True, weights=True)
    scorer = set_scorer("neg_size").set_score_request(inputs=True, weights=True)
    found = cross_validate(made, X, y, scoring=scorer, cv=3, params={"inputs": frame(inputs), "weights": weights})
    assert (found["test_score"] < 0).all()


@pytest.mark.usefixtures("routed")
def test_a_search_over_alphas_takes_the_cheapest() -> None:
    X, y, inputs = rows()
    scorer = set_scorer("neg_cost").set_score_request(inputs=True)
    search = GridSearchCV(model().set_fit_request(inputs=True), {"alpha": [0.05, 0.4]}, scoring=scorer, cv=2)
    search.fit(X, y, inputs=frame(inputs))
    assert search.best_params_ == {"alpha": 0.4}


@pytest.mark.usefixtures("routed")
def test_a_mapping_that_is_not_split_is_refused_with_the_way_out() -> None:
    X, y, inputs = rows()
    made = model().set_fit_request(inputs=True)
    with pytest.raises(InputError, match=r"inputs have 300 rows, but X has 200.*give a frame"):
        cross_validate(made, X, y, cv=3, params={"inputs": inputs}, error_score="raise")


def test_measures_and_estimators_that_there_are_not() -> None:
    with pytest.raises(InputError, match="coverage, neg_cost, neg_size"):
        set_scorer("cost")  # type: ignore[arg-type]
    X, y, _ = rows()
    with pytest.raises(InputError, match="LogisticRegression predicts no sets"):
        set_scorer()(LogisticRegression().fit(X, y), X, y)


# --- what the estimator requests ---


class Seeing(LogisticRegression):  # type: ignore[misc]  # scikit-learn ships no types
    """Keeps what its `fit` is given."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        self.seen = {"X": X, "sample_weight": sample_weight, "groups": groups}
        return super().fit(X, y, sample_weight)


@pytest.mark.usefixtures("routed")
@pytest.mark.parametrize("cv", [None, 3])
def test_the_estimator_gets_what_it_requests_for_the_rows_that_it_is_fitted_on(cv: int | None) -> None:
    X, y = rows()[:2]
    weights = X[:, 0] ** 2
    inner = Seeing().set_fit_request(sample_weight=True, groups=True)
    own = {} if cv else {"groups": X[:, 1] > 0}
    made = UtilitySetClassifier(inner, cv=cv, alpha=0.2, conditional=None if cv else "group")
    made.fit(X, y, sample_weight=weights, **own)
    fitted = [made.estimator_, *(estimator for estimator, _ in made._folds)] if cv else [made.estimator_]
    for each in fitted:
        np.testing.assert_array_equal(each.seen["sample_weight"], each.seen["X"][:, 0] ** 2)
        assert cv or (each.seen["groups"] == (each.seen["X"][:, 1] > 0)).all()
    assert {len(each.seen["X"]) for each in fitted} == ({N, 2 * N // 3} if cv else {3 * N // 4})


@pytest.mark.usefixtures("routed")
def test_cross_validation_and_pipelines_pass_on_what_the_estimator_requests() -> None:
    X, y = rows()[:2]
    weights, folds = X[:, 0] ** 2, KFold(2)
    made = UtilitySetClassifier(Seeing().set_fit_request(sample_weight=True), alpha=0.2)
    more = {"params": {"sample_weight": weights}, "scoring": set_scorer(), "return_estimator": True}
    for model in (made, make_pipeline(FunctionTransformer(), made)):
        for fitted in cross_validate(model, X, y, cv=folds, error_score="raise", **more)["estimator"]:
            seen = (fitted if model is made else fitted[-1]).estimator_.seen
            np.testing.assert_array_equal(seen["sample_weight"], seen["X"][:, 0] ** 2)


@pytest.mark.usefixtures("routed")
def test_what_nobody_requests_is_an_error() -> None:
    X, y = rows()[:2]
    with pytest.raises(UnsetMetadataPassedError, match=r"sample_weight.*Seeing\.fit"):
        UtilitySetClassifier(Seeing(), alpha=0.2).fit(X, y, sample_weight=np.ones(N))
    with pytest.raises(TypeError, match="sample_wait"):
        UtilitySetClassifier(Seeing(), alpha=0.2).fit(X, y, sample_wait=np.ones(N))
    UtilitySetClassifier(Seeing(), alpha=0.2, conditional="group").fit(X, y, groups=np.zeros(N))  # not requested


def test_without_routing_the_way_to_the_estimator_is_named() -> None:
    X, y = rows()[:2]
    with pytest.raises(udcp.InputError, match=r"fit got sample_weight, .*set_fit_request\(sample_weight=True\)"):
        UtilitySetClassifier(Seeing()).fit(X, y, sample_weight=np.ones(N))
