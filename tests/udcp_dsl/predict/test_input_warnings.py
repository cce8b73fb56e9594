"""Doubtful rows are warned of: columns in another order, and draws that are shared. Honest rows never are."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import udcp_dsl as udcp
from udcp_dsl import SetPredictor
from udcp_dsl.predict.calibrate import CalibrationWarning, row_draws
from udcp_dsl.predict.row_warnings import _exchanged_columns, warn_of_another_order, warn_of_shared_draws
from udcp_dsl.rows.rows import Rows, rows_of


def names(K: int) -> list[str]:
    return [f"l{i}" for i in range(K)]


def loss_of(K: int) -> udcp.Loss:
    return udcp.loads("loss l = size", labels=names(K))


def classified(n: int, K: int, sure: float, seed: int = 0) -> tuple[Any, Any]:
    """Calibrated probabilities, the surer the larger `sure` is, and true labels drawn from them."""
    rng = np.random.default_rng(seed)
    logits = sure * rng.normal(size=(n, K))
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P, np.argmax(np.log(P) + rng.gumbel(size=P.shape), axis=1)


def said(do: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        do()
    return [str(warning.message) for warning in caught]


def of_order(rows: Rows) -> list[str]:
    return said(lambda: warn_of_another_order(rows))


# --- columns in another order ---


@pytest.mark.parametrize("K", [3, 10, 1000])
def test_columns_in_another_order_are_told_with_what_the_right_one_would_give(K: int) -> None:
    P, y = classified(4000, K, 6.0 if K < 100 else 12.0)
    order = np.roll(np.arange(K), 1)
    assert of_order(rows_of(P, names(K), y=y)) == []
    (message,) = of_order(rows_of(P[:, order], names(K), y=y))
    assert "of the rows, and would be in " in message
    assert "with the columns in another order (that of 'l" in message
    assert "are the columns in the order of the labels (loss.labels; class_names= gives another)" in message


def test_the_pair_that_is_named_is_a_pair_that_was_swapped() -> None:
    P, y = classified(2000, 3, 6.0)
    (message,) = of_order(rows_of(P[:, [1, 2, 0]], names(3), y=y))
    pairs = [f"that of 'l{i}' is highest where 'l{(i + 1) % 3}' is true" for i in range(3)]
    assert sum(pair in message for pair in pairs) == 1


@given(st.integers(0, 10**6), st.integers(2, 40), st.sampled_from([5, 40, 300, 2000]), st.floats(0.0, 5.0))
def test_a_classifier_of_any_skill_whose_columns_are_in_order_is_never_doubted(
    seed: int, K: int, n: int, sure: float
) -> None:
    P, y = classified(n, K, sure, seed)
    assert of_order(rows_of(P, names(K), y=y)) == []


@pytest.mark.parametrize("K", [2, 10, 300])
def test_guesses_constants_and_a_classifier_stuck_on_one_label_are_not_in_another_order(K: int) -> None:
    rng = np.random.default_rng(0)
    y = np.minimum(rng.geometric(0.4, size=1000) - 1, K - 1)  # the first label is by far the most frequent
    guessed = rng.dirichlet(np.ones(K), size=1000)
    stuck = np.full((1000, K), 0.1 / (K - 1))
    stuck[:, min(2, K - 1)] = 0.9
    for P in (guessed, np.full((1000, K), 1 / K), stuck):
        assert not any("in another order" in message for message in of_order(rows_of(P, names(K), y=y)))


def test_fewer_hits_than_by_chance_are_told() -> None:
    y = np.random.default_rng(0).integers(4, size=300)
    P = np.full((300, 4), 1 / 3) * (np.arange(4) != y[:, None])  # any but the true one, in a tie
    (message,) = of_order(rows_of(P, names(4), y=y))
    assert "is right in 0.0% of the rows, less often than chance: are the columns" in message
    assert of_order(rows_of(P[:20], names(4), y=y[:20])) == []  # bad luck, perhaps


def test_calibrate_and_compare_say_so_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    P, y = classified(400, 4, 6.0)
    loss, wrong = loss_of(4), P[:, [1, 2, 3, 0]]
    predictor = SetPredictor(loss, "lac", alpha=0.2)
    with pytest.warns(CalibrationWarning, match="with the columns in another order"):
        predictor.calibrate(wrong, y)
    with pytest.warns(CalibrationWarning, match="with the columns in another order"):
        udcp.compare(loss, wrong, y, oracles=["lac"], splits=2)
    monkeypatch.setattr(type(predictor.oracle), "_score_of", lambda *_: pytest.fail("the work was done"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        with pytest.raises(CalibrationWarning):
            predictor.calibrate(wrong, y)


# --- two columns that are exchanged ---


def exchanged(P: Any, i: int, j: int) -> Any:
    order = np.arange(P.shape[1])
    order[[i, j]] = j, i
    return P[:, order]


@pytest.mark.parametrize(("K", "n"), [(10, 1000), (100, 12000)])
def test_two_exchanged_columns_are_named(K: int, n: int) -> None:
    P, y = classified(n, K, 8.0)
    assert of_order(rows_of(P, names(K), y=y)) == []
    (message,) = of_order(rows_of(exchanged(P, 3, 7), names(K), y=y))
    assert "rows whose true label is 'l3' or 'l7' the likeliest label is right in " in message
    assert "with these two columns exchanged: are the columns in the order of the labels" in message
    predictor = SetPredictor(loss_of(K), "lac", alpha=0.1)
    with pytest.warns(CalibrationWarning, match="with these two columns exchanged"):
        predictor.calibrate(exchanged(P, 3, 7), y)


@pytest.mark.parametrize("wrong", [0, 40])
def test_two_labels_that_are_mostly_called_one_are_not_exchanged(wrong: int) -> None:
    """All rows of 'l0' are called 'l1', and most of 'l1': exchanged, more of the two would be right."""
    y = np.repeat([0, 1, 2, 3], [400, 100, 1000, 1000])
    called = np.where(y == 0, 1, y)
    called[400 : 400 + wrong] = 0
    P = np.eye(4)[called] * 0.9 + 0.025
    assert of_order(rows_of(P, names(4), y=y)) == []


def test_few_rows_of_two_labels_are_bad_luck() -> None:
    y = np.repeat([0, 1, 2], [14, 14, 1000])
    P = np.eye(3)[np.choose(y, [1, 0, 2])] * 0.9 + 1 / 30
    assert of_order(rows_of(P, names(3), y=y)) == []
    y = np.repeat([0, 1, 2], [15, 15, 1000])
    P = np.eye(3)[np.choose(y, [1, 0, 2])] * 0.9 + 1 / 30
    (message,) = of_order(rows_of(P, names(3), y=y))
    assert "of the 30 rows whose true label is 'l0' or 'l1'" in message


def test_exchanges_by_chance_are_rarer_than_1_in_10_000() -> None:
    """At the border: rows of two labels are called one or the other by a fair coin. The chance itself, as a sum over
    how many rows of each are called the other; which ones does not matter."""
    n = 30
    y = np.repeat([0, 1, 2], [n, n, 2 * n])
    found = 0.0
    for one, other in itertools.product(range(n + 1), repeat=2):
        called = y.copy()
        called[:one], called[n : n + other] = 1, 0
        if _exchanged_columns(Rows(tuple(names(3)), np.eye(3)[called], y)) is not None:
            found += binom.pmf(one, n, 0.5) * binom.pmf(other, n, 0.5)
    assert 0 < found < 1e-4


# --- an alpha that may be meant as the coverage ---


@pytest.mark.parametrize(("asked", "told"), [({"alpha": 0.9}, "alpha=0.1"), ({"confidence_level": 0.4}, "alpha=0.4")])
def test_an_alpha_from_one_half_on_is_warned_of(asked: dict[str, float], told: str) -> None:
    P, y = classified(200, 3, 2.0)
    (message,) = said(lambda: SetPredictor(loss_of(3), "lac", **asked).calibrate(P, y))  # type: ignore[arg-type]  # levels
    assert "alpha is the share of misses, not the coverage" in message
    assert message.endswith(told)


def test_an_alpha_of_one_half_is_not_told_to_be_itself() -> None:
    P, y = classified(200, 3, 2.0)
    (message,) = said(lambda: SetPredictor(loss_of(3), "lac", alpha=0.5).calibrate(P, y))
    assert message == "alpha is 0.5, so sets may miss the true label in 0.5 of the rows"


def test_an_alpha_just_below_one_is_shown_in_full() -> None:
    P, y = classified(200, 3, 2.0)
    (message,) = said(lambda: SetPredictor(loss_of(3), "lac", alpha=0.999999).calibrate(P, y))
    assert message.startswith("alpha is 0.999999, so sets may miss the true label in 0.999999 of the rows")


def test_a_smaller_alpha_and_a_mean_harm_are_not() -> None:
    P, y = classified(200, 3, 2.0)
    loss = udcp.loads("costs harm {default: 2}  loss l = size", labels=names(3))
    assert said(lambda: SetPredictor(loss, "lac", alpha=[0.1, 0.49]).calibrate(P, y)) == []
    assert said(lambda: SetPredictor(loss, "lac", alpha=0.9, risk="harm").calibrate(P, y)) == []
    (message,) = said(lambda: udcp.compare(loss, P, y, oracles=["lac"], alphas=0.9, splits=1))
    assert message.startswith("alpha is 0.9, so sets may miss the true label in 0.9 of the rows")


# --- draws that are shared ---


def test_rows_that_repeat_are_counted() -> None:
    P, y = classified(500, 3, 1.0)
    rounded, y = np.repeat(P[:250], 2, axis=0), np.repeat(y[:250], 2)
    P[7] = P[8]  # one pair among many is no matter
    assert said(lambda: warn_of_shared_draws(rows_of(P, names(3)), 0)) == []
    (message,) = said(lambda: warn_of_shared_draws(rows_of(rounded, names(3)), 0))
    assert "500 of 500 rows have the same probabilities as another" in message
    assert said(lambda: warn_of_shared_draws(rows_of(rounded, names(3), ids=range(500)), 0)) == []

    predictor = SetPredictor(loss_of(3), "lac", alpha=0.2, randomize=True)
    with pytest.warns(CalibrationWarning, match="500 of 500 rows"):
        predictor.calibrate(rounded, y)
    assert said(lambda: predictor.calibrate(rounded, y, ids=range(500))) == []
    with pytest.warns(CalibrationWarning, match="500 of 500 rows"):
        predictor.predict_set(rounded)
    with pytest.warns(CalibrationWarning, match="500 of 500 rows"):
        udcp.evaluate(predictor, rounded, y)
    assert said(lambda: predictor.predict_set(rounded, ids=range(500))) == []
    assert said(lambda: SetPredictor(loss_of(3), "lac", alpha=0.2).calibrate(rounded, y)) == []


def test_ids_tell_equal_rows_apart() -> None:
    """With a constant p all rows had one draw: coverage 0 or 1 by seed. With ids it is 1 - alpha for every seed."""
    rng = np.random.default_rng(0)
    P, n = np.tile([0.5, 0.3, 0.2], (4000, 1)), 4000
    y = rng.choice(3, size=n, p=P[0])
    for seed in range(3):
        predictor = SetPredictor(loss_of(3), "lac", alpha=0.35, randomize=True, seed=seed)
        predictor.calibrate(P, y, ids=[f"c{i}" for i in range(n)])
        found = udcp.evaluate(predictor, P, rng.choice(3, size=n, p=P[0]), ids=[f"t{i}" for i in range(n)])
        assert abs(found.coverage - 0.65) < 0.04
        assert found.sets.ids is not None
        ids = found.sets.ids
        again = predictor.predict_set(P[:9], ids=ids[:9])
        np.testing.assert_array_equal(again.mask, found.sets.mask[:9])  # by the id alone, whatever the batch


DRAWS_OF_0_1_0 = [6080524525250238, 8018929554190514]


def test_draws_without_ids_are_what_they_were() -> None:
    rows = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    assert row_draws(rows, 0)[:, 0].tolist() == DRAWS_OF_0_1_0
    with_ids = row_draws(rows, 0, ["a", "b"])[:, 0]
    assert not set(with_ids.tolist()) & set(DRAWS_OF_0_1_0)
    assert row_draws(rows[:1], 0, ["a"])[:, 0].tolist() == with_ids[:1].tolist()


def test_ids_of_a_file_are_taken_into_the_draw(tmp_path: Path) -> None:
    from udcp_dsl.rows.source import read_rows

    P, y = np.tile([0.5, 0.3, 0.2], (200, 1)), np.arange(200) % 3
    lines = [",".join(["id", *names(3)]), *(f"x{i},0.5,0.3,0.2" for i in range(200))]
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
    rows = read_rows(tmp_path / "p.csv", names(3), id_column="id")
    predictor = SetPredictor(loss_of(3), "lac", alpha=0.35, randomize=True).calibrate(rows, y)
    np.testing.assert_array_equal(
        predictor.predict_set(rows).mask, predictor.predict_set(P, ids=[f"x{i}" for i in range(200)]).mask
    )


# --- training rows ---


def test_rows_that_are_all_right_against_their_probabilities_are_told() -> None:
    """Forty rows of 0.75 are all right with probability 1e-5, thirty with 2e-4."""
    P = np.full((40, 3), 0.125) + 0.625 * np.eye(3)[np.arange(40) % 3]
    y = P.argmax(axis=1)
    (message,) = [x for x in said(lambda: SetPredictor(loss_of(3), "lac").calibrate(P, y)) if "trained" in x]
    assert message.startswith(
        "the likeliest label is right in all 40 rows, although its probability is 0.75 on average"
    )
    for rows, truth in ((P[:30], y[:30]), (P, [1, *y[1:]]), (np.eye(3)[y], y)):
        warned = said(lambda rows=rows, truth=truth: SetPredictor(loss_of(3), "lac").calibrate(rows, truth))  # type: ignore[misc]
        assert not [x for x in warned if "trained" in x]
