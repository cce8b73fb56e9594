"""Weights by a classifier: near the true ratio, clipped, told; through the predictor, with full sets counted."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.diagnostics import InputError

LOSS = size_of("a b c")


def test_a_normal_shift_is_found() -> None:
    rng = np.random.default_rng(0)
    old, new = rng.normal(0, 1, (4000, 2)), rng.normal([0.7, 0], 1, (4000, 2))
    with pytest.warns(UserWarning, match=r"exact only for the true ratio.*effective sample of \d+ of the 4000 old"):
        found = udcp.weights_from_classifier(old, new)
    true = np.exp(0.7 * old[:, 0] - 0.245)
    assert np.corrcoef(np.log(found.old), np.log(true))[0, 1] > 0.99
    assert found.effective_size == pytest.approx(found.old.sum() ** 2 / (found.old**2).sum())
    assert 1000 < found.effective_size < 3500


def test_ratios_are_clipped_and_own_classifiers_are_taken() -> None:
    class Sure:
        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict_proba(self, X: Any) -> Any:
            new = (np.asarray(X)[:, 0] > 0).astype(float)
            return np.column_stack([1 - new, new])

    with pytest.warns(UserWarning, match="estimated"):
        found = udcp.weights_from_classifier([[-1.0], [1.0]], [[1.0], [2.0]], classifier=Sure(), clip=4)
    assert found.old.tolist() == [0.25, 4.0]
    assert found.new.tolist() == [4.0, 4.0]


class Remembering:
    """Knows the rows that it was fitted on by heart, and nothing of others."""

    fitted: ClassVar[list[int]] = []

    def fit(self, X: Any, y: Any) -> Any:
        self.known = {tuple(x): int(kind) for x, kind in zip(X.tolist(), y.tolist(), strict=True)}
        self.fitted.append(int(y.sum()))
        return self

    def predict_proba(self, X: Any) -> Any:
        new = np.array([self.known.get(tuple(x), 0.5) for x in X.tolist()])
        return np.column_stack([1 - new, new])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_odds_of_a_row_are_by_a_classifier_that_has_not_seen_it() -> None:
    rng, mine = np.random.default_rng(0), Remembering()
    found = udcp.weights_from_classifier(rng.normal(size=(83, 2)), rng.normal(size=(31, 2)), classifier=mine)
    np.testing.assert_array_equal(np.concatenate([found.old, found.new]), np.full(114, 83 / 31))
    assert mine.fitted == [24, 25, 25, 25, 25]  # each fold has a fifth of the new rows
    assert not hasattr(mine, "known")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_forest_finds_no_shift_where_there_is_none() -> None:
    """In sample it gives old rows a mean weight of 0.24 and new rows one above 5, so that nearly all sets are full."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng, forest = np.random.default_rng(0), ensemble.RandomForestClassifier(50)
    old, new = rng.normal(size=(2, 200, 5))
    found = udcp.weights_from_classifier(old, new, classifier=forest)
    assert 0.7 < found.old.mean() < 1.5
    assert found.new.mean() < 1.6
    again = udcp.weights_from_classifier(old, new, classifier=forest)
    np.testing.assert_array_equal(again.old, found.old)
    np.testing.assert_array_equal(again.new, found.new)
    assert forest.random_state is None
    assert not hasattr(forest, "estimators_")


def test_how_many_rows_of_each_kind_there_were_is_told_beside_the_effective_sample() -> None:
    rng = np.random.default_rng(0)
    with pytest.warns(
        UserWarning, match=r"of the 40 old rows \(40 old and 900 new rows.*old rows, 1 for .* is 1\.00\)"
    ):
        udcp.weights_from_classifier(rng.normal(size=(40, 1)), rng.normal(size=(900, 1)))


@pytest.mark.parametrize(
    ("old", "new", "options", "message"),
    [
        ([[1.0]], [[1.0, 2.0]], {}, "1 columns, new rows 2"),
        ([1.0], [[1.0]], {}, "the old rows have shape"),
        ([[np.nan]], [[1.0]], {}, "row 0 .* contains NaN"),
        ([["x"]], [[1.0]], {}, "not numbers"),
        ([[1.0]], [[1.0]], {"clip": 0.5}, "clip is 0.5"),
        ([[1.0]], [[1.0]], {"classifier": 3}, "fit and predict_proba"),
        ([[1.0]], [[1.0], [2.0]], {"classifier": Remembering()}, "1 old and 2 new rows: .* 2 or more of both"),
    ],
)
def test_bad_input(old: Any, new: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        udcp.weights_from_classifier(old, new, **options)


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(3), n)
    return q, np.array(list("abc"))[(q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)]


def test_through_the_predictor(tmp_path: Any) -> None:
    P, y = rows(200, 0)
    weights = np.random.default_rng(1).random(200)
    predictor = udcp.SetPredictor(LOSS, "lac", alpha=0.2).calibrate(P, y, weights=weights)
    new = np.concatenate([np.full(20, 0.5), np.full(5, 1e6)])
    with pytest.warns(UserWarning, match="5 of 25 rows have such large weights"):
        sets = predictor.predict_set(P[:25], weights=new)
    assert sets.sizes[20:].tolist() == [3] * 5
    # By the definition, for the first row.
    scores = -P[np.arange(200), [list("abc").index(x) for x in y]]
    order = np.argsort(scores)
    enough = weights[order].cumsum() >= 0.8 * (weights.sum() + 0.5)
    tau = scores[order][enough.argmax()]
    np.testing.assert_array_equal(sets.mask[:20], -P[:20] <= tau)
    predictor.save(tmp_path / "p.json")
    again = udcp.SetPredictor.load(tmp_path / "p.json").predict_set(P[:20], weights=new[:20])
    np.testing.assert_array_equal(again.mask, sets.mask[:20])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", ["weights", "adapt"])
def test_saved_where_a_true_label_scores_infinity(way: str, tmp_path: Any) -> None:
    P, y = rows(200, 0)
    costly = udcp.loads("labels { a, b, c }  costs v { a: 1, b: 2, c: 3 }  loss l = sum(v)")
    P[7], y[7] = [0.6, 0.4, 0.0], "c"
    predictor, more = udcp.SetPredictor(costly, "ratio", alpha=0.2, repair=None), {}
    if way == "weights":
        predictor.calibrate(P, y, weights=np.ones(200))
        more = {"weights": np.ones(200)}
    else:
        shift = udcp.LabelShift([0.3, 0.3, 0.4], [0.2, 0.2, 0.6])
        predictor = predictor.calibrate(P, y).adapt(shift, calibration=(P, y))
    predictor.save(tmp_path / "p.json")
    again = udcp.SetPredictor.load(tmp_path / "p.json")
    np.testing.assert_array_equal(again.predict_set(P, **more).mask, predictor.predict_set(P, **more).mask)


@pytest.mark.parametrize("conditional", ["class", "difficulty", "group"])
def test_with_conditions(conditional: Any, tmp_path: Any) -> None:
    P, y = rows(300, 2)
    groups = {"groups": ["g", "h"] * 150} if conditional == "group" else {}
    predictor = udcp.SetPredictor(LOSS, "base", alpha=0.2, conditional=conditional)
    predictor.calibrate(P, y, weights=np.ones(300), **groups)
    plain = udcp.SetPredictor(LOSS, "base", alpha=0.2, conditional=conditional).calibrate(P, y, **groups)
    weighted = predictor.predict_set(P, weights=np.ones(300), **groups)
    np.testing.assert_array_equal(weighted.mask, plain.predict_set(P, **groups).mask)  # equal weights change nothing
    predictor.save(tmp_path / "p.json")
    again = udcp.SetPredictor.load(tmp_path / "p.json").predict_set(P, weights=np.ones(300), **groups)
    np.testing.assert_array_equal(again.mask, weighted.mask)


def test_weights_that_are_0_on_the_rows_left_for_thresholds() -> None:
    """The only row with a weight above 0 goes into the repair."""
    P, y = rows(400, 3)
    predictor = udcp.SetPredictor(LOSS, "lac")
    left = predictor.threshold_rows(predictor._rows_of(P, {"y": y}))
    weights = np.zeros(400)
    weights[np.setdiff1d(np.arange(400), left)[0]] = 1.0
    with pytest.raises(InputError, match="the weights of the rows left for thresholds are all 0"):
        predictor.calibrate(P, y, weights=weights)


def test_weights_that_are_missing_or_wrong() -> None:
    P, y = rows(50, 3)
    for bad, message in (
        (np.zeros(50), "all 0"),
        (-np.ones(50), "row 0 .* is -1"),
        (np.full(50, np.nan), "row 0 .* is missing"),
        (np.ones(49), "49 entries for 50 rows"),
        (["x"] * 50, "is 'x', not a number"),
        (np.full(50, np.inf), "row 0 .* is inf"),
    ):
        with pytest.raises(InputError, match=message):
            udcp.SetPredictor(LOSS, "lac").calibrate(P, y, weights=bad)
    weighted = udcp.SetPredictor(LOSS, "lac").calibrate(P, y, weights=np.ones(50))
    with pytest.raises(InputError, match="give weights="):
        weighted.predict_set(P)
    with pytest.raises(InputError, match="give weights="):
        udcp.evaluate(weighted, P, y)
    with pytest.raises(InputError, match="calibration had none"):
        udcp.SetPredictor(LOSS, "lac").calibrate(P, y).predict_set(P, weights=np.ones(50))
