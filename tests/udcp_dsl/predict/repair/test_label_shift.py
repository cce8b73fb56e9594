"""The mix of labels among new rows, estimated without their truth."""

from __future__ import annotations

import numpy as np
import pytest

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.repair import Repair
from udcp_dsl.predict.repair.label_shift import LabelShift, estimate_label_shift


def posteriors(n: int, mix: np.ndarray, old: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points around the corner of their label, drawn by `mix`; p is right for the mix `old`."""
    rng = np.random.default_rng(seed)
    K = len(mix)
    y = rng.choice(K, size=n, p=mix)
    x = 2 * np.eye(K)[y] + rng.normal(size=(n, K))
    odds = old * np.exp(2 * x)
    return odds / odds.sum(axis=1, keepdims=True), y


OLD = np.array([0.4, 0.3, 0.2, 0.1])
NEW = np.array([0.1, 0.2, 0.3, 0.4])


def test_a_planted_mix_is_found() -> None:
    old, _ = posteriors(5000, OLD, OLD, 0)
    new, _ = posteriors(5000, NEW, OLD, 1)
    shift = estimate_label_shift(old, new)
    np.testing.assert_allclose(shift.old, OLD, atol=0.02)
    np.testing.assert_allclose(shift.new, NEW, atol=0.03)
    assert shift.distance == pytest.approx(0.4, abs=0.03)
    assert shift.n_rows == 5000


def test_rows_of_the_old_mix_leave_it_where_it_is() -> None:
    old, _ = posteriors(5000, OLD, OLD, 0)
    assert estimate_label_shift(old, old).distance < 1e-4
    assert estimate_label_shift(old, posteriors(5000, OLD, OLD, 1)[0]).distance < 0.03


def test_p_that_is_too_high_for_a_label_does_not_make_it_swallow_the_others() -> None:
    """The old mix is the mean of p, not the counts of labels."""
    old, y = posteriors(2000, np.array([0.5, 0.3, 0.2, 0.0]), OLD, 0)
    assert 3 not in y
    new, _ = posteriors(2000, np.array([0.5, 0.3, 0.2, 0.0]), OLD, 1)
    assert estimate_label_shift(old, new).new[3] < 0.1


def test_it_is_the_maximum_of_the_penalised_likelihood() -> None:
    from scipy.optimize import minimize

    old, _ = posteriors(300, OLD, OLD, 0)
    new, _ = posteriors(200, NEW, OLD, 1)
    shift = estimate_label_shift(old, new, pseudo_count=2.0)

    def value(z: np.ndarray) -> float:
        mix = np.exp(z) / np.exp(z).sum()
        return float(-np.log(new @ (mix / shift.old)).sum() - 2.0 * 4 * (shift.old @ np.log(mix)))

    best = minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(shift.new, np.exp(best) / np.exp(best).sum(), atol=1e-4)


def test_few_rows_stay_near_the_old_mix() -> None:
    old, _ = posteriors(5000, OLD, OLD, 0)
    new, _ = posteriors(5000, NEW, OLD, 1)
    assert estimate_label_shift(old, new[:5]).distance < 0.1 < estimate_label_shift(old, new).distance


def test_weights_and_repair_carry_the_ratios() -> None:
    shift = LabelShift(np.array([0.5, 0.49, 0.01]), np.array([0.25, 0.35, 0.4]), 100)
    assert shift.ratios.tolist() == pytest.approx([0.5, 0.35 / 0.49, 20.0])
    assert shift.weights(np.array([2, 0])).tolist() == [20.0, 0.5]
    P = np.random.default_rng(0).dirichlet([1, 1, 1], 10)
    for repair in (Repair(), Repair(2.0, np.array([1.0, 0.0, -1.0]), 0.1)):
        expected = repair.apply(P) * shift.ratios
        np.testing.assert_allclose(shift.adapted(repair).apply(P), expected / expected.sum(axis=1, keepdims=True))


def test_shares_are_put_into_the_order_of_the_labels_by_name() -> None:
    shift = LabelShift([0.2, 0.3, 0.5], [0.6, 0.4, 0.0], labels=["cold", "flu", "7"]).for_labels(("flu", "7", "cold"))
    assert (shift.old.tolist(), shift.new.tolist()) == ([0.3, 0.5, 0.2], [0.4, 0.0, 0.6])
    assert shift.labels == ("flu", "7", "cold")
    by_position = LabelShift([0.2, 0.8], [0.6, 0.4]).for_labels(("b", "a"))
    assert (by_position.old.tolist(), by_position.labels) == ([0.2, 0.8], ("b", "a"))


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["cold", "flo"], "labels of the LabelShift: 'flo' is not a label; did you mean 'flu'"),
        (["x", "y"], "'x' is not a label; known: flu, cold"),
        (["flu", "flu"], "labels: 'flu' appears twice"),
        (["flu"], "differ in length"),
        ([None, "flu"], "labels: number 1 is None"),
    ],
)
def test_names_that_are_not_those_of_the_labels_are_refused(labels: list[str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        LabelShift([0.5, 0.5], [0.9, 0.1], labels=labels).for_labels(("flu", "cold"))
    with pytest.raises(InputError, match="the mixes are of 2 labels, and the loss has 3"):
        LabelShift([0.5, 0.5], [0.9, 0.1], labels=["flu", "cold"]).for_labels(("flu", "cold", "none"))


def test_it_names_the_labels_that_moved_the_most() -> None:
    shift = LabelShift(OLD, NEW, 1200)
    text = "the mix of labels has moved by 40.0% on 1,200 new rows: a 40.0% -> 10.0%, d 10.0% -> 40.0%"
    assert shift.describe(list("abcd"), 2) == text


def test_zeros_are_no_fault() -> None:
    old = np.array([[1.0, 0.0, 0.0]] * 50)
    new = np.array([[0.0, 1.0, 0.0]] * 50)
    for pseudo_count in (0.0, 5.0):
        shift = estimate_label_shift(old, new, pseudo_count=pseudo_count)
        assert np.isfinite(shift.new).all()
        assert np.isfinite(shift.adapted(Repair()).apply(new)).all()


@pytest.mark.parametrize(
    ("old", "new", "pseudo_count"),
    [((0, 3), (5, 3), 1.0), ((5, 3), (0, 3), 1.0), ((5, 3), (5, 2), 1.0), ((5, 3), (5, 3), -1.0)],
)
def test_invalid_input_is_refused(old: tuple[int, int], new: tuple[int, int], pseudo_count: float) -> None:
    with pytest.raises(InputError):
        estimate_label_shift(np.full(old, 1 / 3), np.full(new, 1 / 3), pseudo_count=pseudo_count)
