"""`Rows`: what is taken of them stays together, what holds them is not copied, and the door lets nothing pass twice."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from tests.specs import size_of
from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.decisions import Decided
from udcp_dsl.rows.rows import NOT_PER_ROW, Rows, highest, rows_of

ABC = ["a", "b", "c"]
GOOD = np.array([[0.5, 0.25, 0.25], [0.125, 0.375, 0.5], [0.0, 1.0, 0.0]])


def rows() -> Rows:
    loss = udcp.loads("labels { a, b, c }  input km in [0, 9]  loss l = km * size")
    more: dict[str, Any] = {"groups": [1, 2.0, "x"], "ids": ["i", "j", "k"], "weights": [1, 0.5, 2]}
    made = rows_of(GOOD, ABC, y=["a", "c", "b"], **more, inputs={"km": [3, 1, 4]}, loss=loss)
    added = {"top": GOOD.max(axis=1), "stratum": np.array([0, 1, 0]), "anchor": np.array([1.0, np.nan, 2.0])}
    return made.with_columns(**added, place=np.arange(3), decided=Decided(np.array([True, False, True])))


@pytest.mark.parametrize("part", [slice(1, 3), np.array([2, 0]), np.array([1, 1, 1])])
def test_a_part_takes_every_column(part: slice | np.ndarray) -> None:
    whole, some = rows(), rows().take(part)
    columns = [field.name for field in fields(Rows) if field.name not in NOT_PER_ROW]
    for name in columns:  # a column that is added later is taken too, or this fails
        taken, expected = getattr(some, name), getattr(whole, name)[part]
        if name == "inputs":
            taken, expected = taken["km"], whole.inputs["km"][part]  # type: ignore[index]
        if name == "decided":
            taken, expected = taken.handed_over, expected.handed_over
        np.testing.assert_array_equal(taken, expected)
    assert [getattr(some, name) for name in NOT_PER_ROW] == [getattr(whole, name) for name in NOT_PER_ROW]
    assert some.labels == tuple(ABC)
    np.testing.assert_array_equal(some.true_probabilities, whole.true_probabilities[part])
    np.testing.assert_array_equal(some.highest_probabilities, GOOD.max(axis=1)[part])
    assert rows_of(GOOD, ABC).take(part).y is None


def test_nothing_is_copied_on_the_way() -> None:
    made = rows_of(GOOD, ABC)
    assert np.shares_memory(made.P, GOOD)
    assert np.shares_memory(made.take(slice(0, 2)).P, GOOD)
    assert rows_of(made, ABC, groups=["x"] * 3).P is made.P


def test_what_is_given_beside_rows_takes_the_place_of_their_own() -> None:
    again = rows_of(rows(), ABC, y=[1, 1, 1], ids=[4, 5, 6])
    assert (again.truth.tolist(), again.ids.tolist(), again.groups.tolist()) == (  # type: ignore[union-attr]
        [1, 1, 1],
        ["4", "5", "6"],
        ["1", "2", "x"],
    )


def test_positions_stay_positions_where_labels_are_numbers() -> None:
    """Handed back to the door, the positions of rows are not read as the names that integers would be."""
    numbers = ["2", "0", "1"]
    made = rows_of(GOOD, numbers, y=["2", "0", "1"])
    assert made.truth.tolist() == rows_of(made, numbers, y=made.y).truth.tolist() == [0, 1, 2]


def test_rows_of_other_labels_are_refused() -> None:
    for labels in (["a", "c", "b"], ["a", "b"], ["x", "y", "z"]):
        with pytest.raises(InputError, match="the rows were made for other labels, or for another order"):
            rows_of(rows(), labels)


def test_truth_that_is_missing_is_asked_for() -> None:
    loss = size_of("a b c")
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.5)
    many = np.tile(GOOD, (20, 1))
    for call in (lambda: rows_of(GOOD, ABC).truth, lambda: predictor.calibrate(GOOD), lambda: udcp.compare(loss, many)):
        with pytest.raises(InputError, match="the true labels are missing: give y"):
            call()


def test_rows_that_hold_all_are_all_that_is_needed() -> None:
    loss = size_of("a b c")
    many = rows().take(np.tile([0, 1, 2], 20))
    made = udcp.SetPredictor(loss, "lac", alpha=0.5, conditional="group").calibrate(many)
    apart = udcp.SetPredictor(loss, "lac", alpha=0.5, conditional="group")
    apart.calibrate(many.P, many.y, groups=many.groups)
    assert made.calibrated.thresholds() == apart.calibrated.thresholds()
    sets = made.predict_set(rows())
    assert sets.ids is not None
    assert sets.ids.tolist() == ["i", "j", "k"]
    found = udcp.evaluate(made, many)
    assert {stratum.name for stratum in found.by_group} == {"1", "2", "x"}
    marginal = udcp.SetPredictor(loss, "lac", alpha=0.5).calibrate(many)  # groups that are not asked for do no harm
    assert marginal.predict_set(many).mask.shape == (60, 3)


def test_logits_are_remembered_where_the_rows_are_probabilities_already() -> None:
    """Rows hold probabilities; what the predictor is told of logits is for those who come with numbers."""
    loss = size_of("a b c")
    logits = np.random.default_rng(0).normal(size=(40, 3))
    y = np.arange(40) % 3
    read = udcp.SetPredictor(loss, "lac", alpha=0.2).calibrate(rows_of(logits, ABC, y=y, logits=True), logits=True)
    plain = udcp.SetPredictor(loss, "lac", alpha=0.2).calibrate(logits, y, logits=True)
    assert read.calibrated.thresholds() == plain.calibrated.thresholds()
    np.testing.assert_array_equal(
        read.predict_set(logits).mask, read.predict_set(rows_of(logits, ABC, logits=True)).mask
    )


def test_class_names_are_checked_whatever_comes_with_them() -> None:
    pd = pytest.importorskip("pandas")
    for given in (GOOD, pd.DataFrame(GOOD, columns=ABC), rows()):
        with pytest.raises(InputError, match="class_names: 'd' is not a label"):
            rows_of(given, ABC, class_names=["a", "b", "d"])


@pytest.mark.parametrize("kind", [list, np.array, iter])
def test_integers_in_another_order_than_the_class_names_are_warned_of(kind: Any) -> None:
    with pytest.warns(UserWarning, match="y contains integers, taken as positions in loss.labels"):
        made = rows_of(GOOD, ABC, y=kind([0, 1, 2]), class_names=["c", "b", "a"])
    assert made.truth.tolist() == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows_of(GOOD, ABC, y=kind([0, 1, 2]), class_names=ABC)
        rows_of(GOOD, ABC, y=kind(["a", "b", "c"]), class_names=["c", "b", "a"])
        rows_of(GOOD, ["1", "2", "3"], y=kind([1, 2, 3]), class_names=[3, 2, 1])


@pytest.mark.parametrize("names", [set(ABC), dict.fromkeys(ABC), "abc", ["a", "b", None], ["a", "b", 1.5]])
def test_class_names_without_an_order_or_a_name_are_refused_at_every_door(names: Any) -> None:
    loss = udcp.loads("loss l = size", labels=ABC)
    y = ["a", "c", "b"]
    doors = (
        lambda: rows_of(GOOD, ABC, class_names=names),
        lambda: rows_of(rows(), ABC, class_names=names),
        lambda: udcp.SetPredictor(loss, "lac", class_names=names),
        lambda: udcp.compare(loss, GOOD, y, class_names=names, oracles=["lac"], splits=1),
    )
    for door in doors:
        with pytest.raises((TypeError, InputError), match=r"class_names: (expected a sequence|number 3 is)"):
            door()


def test_class_names_may_be_read_once() -> None:
    made = rows_of(GOOD, ABC, y=["a", "c", "b"], class_names=iter(["c", "b", "a"]))
    np.testing.assert_array_equal(made.P, GOOD[:, ::-1])


def test_frames_and_series_of_different_indexes_are_not_joined_by_position() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(GOOD, columns=ABC, index=["x", "y", "z"])
    y = pd.Series(["a", "c", "b"], index=["x", "y", "z"])
    turned = y.loc[["z", "x", "y"]]
    made = rows_of(frame, ABC, y=y, groups=y, ids=y.index)
    assert made.truth.tolist() == [0, 2, 1]
    for columns in ({"y": turned}, {"groups": turned}, {"ids": turned}, {"y": y.reset_index(drop=True)}):
        with pytest.raises(
            InputError, match=r"the probabilities and the .* have different indexes.*reset_index.*to_numpy"
        ):
            rows_of(frame, ABC, **columns)
    with pytest.raises(InputError, match="the true labels and the groups have different indexes"):
        rows_of(GOOD, ABC, y=y, groups=turned)
    for same in (turned.to_numpy(), turned.tolist()):
        assert rows_of(frame, ABC, y=same).truth.tolist() == [1, 0, 2]
    assert rows_of(GOOD, ABC, y=turned).truth.tolist() == [1, 0, 2]  # an array has no index
    plain = frame.reset_index(drop=True)
    assert rows_of(plain, ABC, y=turned.reset_index(drop=True)).truth.tolist() == [1, 0, 2]
    with pytest.raises(InputError, match="true labels: 2 entries for 3 rows"):
        rows_of(frame, ABC, y=y[:2])


def test_rows_that_are_given_again_lose_what_stages_added() -> None:
    rows = rows_of(GOOD, ABC).with_columns(top=np.ones(len(GOOD)), place=np.arange(len(GOOD)))
    for names in (None, ABC):
        again = rows_of(rows, ABC, class_names=names)
        assert (again.top, again.place) == (None, None)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_highest_probability_is_that_of_any_layout(dtype: type) -> None:
    P = np.random.default_rng(0).dirichlet(np.full(7, 0.05), 500).astype(dtype)
    P[0] = [1, 0, 0, 0, 0, 0, -0.0]
    P[1] = [0, 0, 0, np.finfo(dtype).tiny / 2, 1, 0, 0]
    for laid in (P, np.asfortranarray(P), np.repeat(P, 2, axis=1)[:, ::2], P[::-1][::-1]):
        found = highest(laid)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, P.max(axis=1))
