"""`PredictionSets`: a sequence of sets that keeps the names of its rows, is told shortly, and may be empty."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl import InputError, PredictionSets, SetPredictor
from udcp_dsl.predict.saved import _hash
from udcp_dsl.rows.columns import NamedPositions
from udcp_dsl.rows.rows import rows_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

LOSS = udcp.loads("labels {cat, dog, wolf, lynx}  costs c {wolf: 3, lynx: 2, default: 1}  loss l = sum(c)")
MASK = np.array([[True, False, True, False], [False] * 4, [False, True, False, False]])
SETS = PredictionSets(LOSS, MASK, np.array(["a", "b", "c"]))
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4), 120)
Y = NamedPositions.of([RNG.choice(4, p=p) for p in P], LOSS.labels)


def test_sets_are_a_sequence_of_tuples_of_labels() -> None:
    assert list(SETS) == SETS.labels == [("cat", "wolf"), (), ("dog",)]
    assert [SETS[i] for i in range(-3, 3)] == 2 * SETS.labels
    assert SETS[np.int64(2)] == ("dog",)
    for i in (3, -4):
        with pytest.raises(IndexError, match=rf"there is no set {i}: there are 3"):
            SETS[i]


@pytest.mark.parametrize(
    ("which", "kept"),
    [
        (slice(1, None), [1, 2]),
        (slice(None, None, -2), [2, 0]),
        ([2, 0], [2, 0]),
        (np.array([True, False, True]), [0, 2]),
        ([], []),
    ],
)
def test_a_part_of_the_sets_is_prediction_sets_with_their_names(which: Any, kept: list[int]) -> None:
    part = SETS[which]
    assert isinstance(part, PredictionSets)
    assert list(part) == [SETS.labels[i] for i in kept]
    assert part.costs.tolist() == SETS.costs[kept].tolist()
    assert part.to_pandas().index.tolist() == ["abc"[i] for i in kept]


@pytest.mark.parametrize("which", ["a", 1.5, None, [True, False], [5]])
def test_what_is_no_index_is_refused(which: Any) -> None:
    with pytest.raises((TypeError, IndexError)):
        SETS[which]


def test_a_frame_keeps_its_index() -> None:
    predictor = SetPredictor(LOSS, "lac").calibrate(P, Y)
    index = pd.Index([f"patient {i}" for i in range(5)], name="patient")
    sets = predictor.predict_set(pd.DataFrame(P[:5], columns=list(LOSS.labels), index=index))
    assert sets.to_pandas().index.equals(index)
    assert sets.to_pandas().index.name == "patient"
    assert sets[3:].to_pandas().index.tolist() == ["patient 3", "patient 4"]
    assert udcp.evaluate(predictor, pd.DataFrame(P, columns=list(LOSS.labels)), Y).sets.to_pandas().index[-1] == 119
    named = predictor.predict_set(pd.DataFrame(P[:2], columns=list(LOSS.labels)), ids=["x", "y"])
    assert named.to_pandas().index.tolist() == ["x", "y"]  # ids that are given count for more
    assert predictor.predict_set(pl.DataFrame(P[:2], schema=list(LOSS.labels))).to_pandas().index.tolist() == [0, 1]


def test_the_repr_is_short_whatever_the_number_of_sets() -> None:
    assert repr(SETS) == "PredictionSets(3 sets of 4 labels, loss 'l': mean size 1, 1 empty)"
    assert repr(SETS[:0]) == "PredictionSets(0 sets of 4 labels, loss 'l')"
    assert len(repr(PredictionSets(LOSS, np.ones((10**5, 4), bool)))) < 100


EMPTY = {
    "array": np.empty((0, 4)),
    "list": [],
    "pandas": pd.DataFrame(np.empty((0, 4)), columns=list(LOSS.labels)),
    "polars": pl.DataFrame(np.empty((0, 4)), schema=list(LOSS.labels)),
}


@pytest.mark.parametrize("given", EMPTY.values(), ids=list(EMPTY))
@pytest.mark.parametrize("settings", [{}, {"nonempty": True}, {"randomize": True}, {"conditional": "class"}])
def test_an_empty_batch_has_no_sets(given: Any, settings: dict[str, Any]) -> None:
    predictor = SetPredictor(LOSS, "price", pool="conditional" in settings, **settings).calibrate(P, Y)
    sets = predictor.predict_set(given, ids=[])
    assert (len(sets), list(sets), sets.mask.shape, sets.costs.shape) == (0, [], (0, 4), (0,))
    assert sets.to_pandas().empty


def test_an_empty_batch_of_logits_and_of_groups() -> None:
    predictor = SetPredictor(LOSS, "lac", conditional="group").calibrate(np.log(P), Y, groups=["g"] * 120, logits=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(predictor.predict_set(np.empty((0, 4)), groups=[])) == 0


def test_nothing_is_learnt_from_an_empty_batch() -> None:
    predictor = SetPredictor(LOSS, "lac").calibrate(P, Y)
    with pytest.raises(InputError, match="there are no rows"):
        predictor.calibrate(np.empty((0, 4)), [])
    with pytest.raises(InputError, match="there are no rows"):
        udcp.evaluate(predictor, np.empty((0, 4)), [])
    with pytest.raises(InputError, match="3 columns, but there are 4 labels"):
        predictor.predict_set(np.empty((0, 3)))
    with pytest.raises(InputError, match="1 entries for 0 rows"):
        predictor.predict_set(np.empty((0, 4)), ids=["a"])


@pytest.mark.parametrize("oracle", udcp.oracle_names())
def test_every_predictor_can_be_pickled_and_copied(oracle: str) -> None:
    predictor = SetPredictor(LOSS, oracle).calibrate(P, Y)
    expected = predictor.predict_set(P[:20]).mask
    for again in (pickle.loads(pickle.dumps(predictor)), copy.deepcopy(predictor)):
        assert np.array_equal(again.predict_set(P[:20]).mask, expected)
        assert again.oracle.options == predictor.oracle.options
        assert again.oracle.loss is again.loss
        again.calibrate(P, Y)
        assert np.array_equal(again.predict_set(P[:20]).mask, expected)
    uncalibrated = pickle.loads(pickle.dumps(SetPredictor(LOSS, oracle)))
    assert np.array_equal(uncalibrated.calibrate(P, Y).predict_set(P[:20]).mask, expected)


def test_sets_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(SETS))
    assert (again.labels, again.costs.tolist()) == (SETS.labels, SETS.costs.tolist())


# --- labels as they were given ---

DIGITS = udcp.loads("labels 3..6  loss l = size")
NAMED = [int(DIGITS.labels[y]) for y in Y]  # the labels are numbers, so that integers are their names


@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, lambda y: np.array(y, np.int8)], ids=["list", "array", "Series", "int8"]
)
def test_integers_stay_integers(kind: Any, tmp_path: Any) -> None:
    predictor = SetPredictor(DIGITS, "lac", alpha=0.1).calibrate(P, kind(NAMED))
    sets = predictor.predict_set(P)
    covered = np.mean([y in s for y, s in zip(NAMED, sets, strict=True)])
    assert covered == sets.mask[np.arange(len(P)), Y].mean() > 0.8
    assert {type(label) for s in sets for label in s} == {int}
    assert sets[3] == sets.labels[3] == sets[:5][3] == sets[[3]][0]
    assert DIGITS.labels == ("3", "4", "5", "6")
    assert udcp.evaluate(predictor, P, NAMED).sets.labels == sets.labels
    predictor.save(tmp_path / "p.json")
    loaded = SetPredictor.load(tmp_path / "p.json")
    assert loaded.predict_set(P).labels == sets.labels
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "p.json").read_bytes()


@pytest.mark.parametrize(
    ("loss", "y", "class_names", "held"),
    [
        (DIGITS, [str(y) for y in NAMED], None, str),
        (DIGITS, [str(y) for y in NAMED], [3, 4, 5, 6], str),  # what sets are compared with
        (DIGITS, NAMED, ["3", "4", "5", "6"], int),
        (LOSS, Y, None, str),  # positions
        (LOSS, Y, LOSS.labels, str),
    ],
)
def test_true_labels_that_are_names_decide(loss: udcp.Loss, y: Any, class_names: Any, held: type) -> None:
    sets = SetPredictor(loss, "lac", alpha=0.1, class_names=class_names).calibrate(P, y).predict_set(P)
    assert {type(label) for s in sets for label in s} == {held}


def test_class_names_decide_where_true_labels_do_not() -> None:
    rows = rows_of(P, DIGITS.labels, y=NAMED)
    predictor = SetPredictor(DIGITS, "lac", alpha=0.1, class_names=np.array([4, 3, 6, 5])).calibrate(rows)
    assert set().union(*predictor.predict_set(rows)) == {3, 4, 5, 6}
    assert set().union(*SetPredictor(DIGITS, "lac", alpha=0.1).calibrate(rows).predict_set(rows)) == {*"3456"}


@pytest.mark.parametrize("given", [(1,), (1, 1, 2, 3), (1, 2, 3, None), "1234", (1, 2, 3, 4, 4)])
def test_a_file_with_other_labels_is_refused(given: Any, tmp_path: Any) -> None:
    predictor = SetPredictor(DIGITS, "lac", alpha=0.1).calibrate(P, NAMED)
    predictor.save(file := tmp_path / "p.json")
    text = file.read_text()
    assert '"given_labels": [' in text
    content = json.loads(text) | {"given_labels": given if isinstance(given, str) else list(given)}
    file.write_text(json.dumps(content | {"sha256": _hash(content)}))
    with pytest.raises(InputError, match="given_labels must have one entry per label"):
        SetPredictor.load(file)


def test_as_polars_dicts_and_lists() -> None:
    assert SETS.to_lists() == [["cat", "wolf"], [], ["dog"]]
    assert SETS.to_dicts()[1:] == [
        {"id": "b", "labels": [], "size": 0, "cost": 0.0},
        {"id": "c", "labels": ["dog"], "size": 1, "cost": 1.0},
    ]
    assert json.loads(json.dumps(SETS.to_dicts())) == SETS.to_dicts()
    frame = SETS.to_polars()
    assert frame.to_dicts() == SETS.to_dicts()
    assert SETS[:0].to_polars().schema == SETS[1:2].to_polars().schema == frame.schema
    numbers = PredictionSets(DIGITS, MASK, given_labels=(3, 4, 5, 6))
    assert numbers.to_polars()["labels"].to_list() == numbers.to_lists() == [[3, 5], [], [4]]
    assert "id" not in numbers.to_dicts()[0]
    mixed = PredictionSets(DIGITS, MASK, given_labels=(3, "4", 5, 6))
    assert mixed.to_polars()["labels"].to_list() == [["3", "5"], [], ["4"]]
    index = pd.DataFrame(P[:2], columns=list(LOSS.labels), index=["x", "y"])
    sets = SetPredictor(LOSS, "lac", alpha=0.1).calibrate(P, Y).predict_set(index)
    assert sets.to_polars()["id"].to_list() == ["x", "y"]
