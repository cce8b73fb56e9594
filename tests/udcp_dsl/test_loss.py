"""A compiled loss refuses what it cannot mean: sets, matrices, labels and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp

_LOSS = udcp.loads("labels { a, b, c }  loss l = size + 2 * within({ a })")


@pytest.mark.parametrize("face", [_LOSS.batch, _LOSS.terms_batch])
@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (np.zeros((2, 4), dtype=bool), r"masks have shape \(2, 4\); expected \(n, 3\)"),
        (np.zeros(3, dtype=bool), r"masks have shape \(3,\)"),
        (np.array([[1, 0, 1]]), "masks are int64, not bool"),
    ],
)
def test_masks_of_another_shape_or_type(face: Any, masks: Any, message: str) -> None:
    with pytest.raises(udcp.InputError, match=message):
        face(masks)


def test_no_sets_have_no_costs() -> None:
    assert _LOSS.batch(np.zeros((0, 3), dtype=bool)).shape == (0,)
    assert _LOSS.increments(0).after().shape == (0, 3)


@pytest.mark.parametrize(
    ("pushed", "message"),
    [
        ([0], r"one position for each of 2 sets is expected, not int64 of shape \(1,\)"),
        ([0.5, 1.0], "not float64"),
        ([0, 3], "row 1: label 3 is not a position: they run from 0 to 2"),
        ([-1, 0], "row 0: label -1 is not a position"),
        ([0, 1], "row 1: label 1 is in the set already"),
    ],
)
def test_pushes_that_are_no_labels(pushed: Any, message: str) -> None:
    grow = _LOSS.increments(2)
    grow.push([2, 1])
    with pytest.raises(udcp.InputError, match=message):
        grow.push(pushed)
    assert grow.mask.sum() == 2


def test_labels_in_one_string() -> None:
    with pytest.raises(udcp.InputError, match="labels is one string, 'abc': give a list"):
        udcp.loads("loss l = size", labels="abc")


@pytest.mark.parametrize(
    ("body", "blamed"),
    [
        ("sum(k)", "'sum(k)'"),  # 0 on the set of all labels, but not on {a, b}
        ("1e200 * (1e200 * max(one))", "'1e200 * (1e200 * max(one))'"),
        ("max(k) + max(k) - 2 * max(k)", "max(k)"),
        ("(max(k) + max(k)) >= 1", "'(max(k) + max(k))'"),
    ],
)
def test_values_that_no_float_can_hold(body: str, blamed: str) -> None:
    costs = "costs k { a: 1e308, b: 1e308, c: -1e308, d: -1e308 }  costs one { a: 1, default: 1 }"
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(f"labels {{ a, b, c, d }}  {costs}  loss l = {body}")
    assert [d.code for d in caught.value.diagnostics] == ["E405"]
    assert "may be too large for a number" in str(caught.value)
    assert blamed in str(caught.value)


def test_a_product_of_indicators_is_one_whatever_its_value() -> None:
    for constant, cost in (("0 == 0", 5.0), ("0 == 1", 0.0)):
        loss = udcp.loads(f"labels {{ a, b }}  loss l = if ({constant}) * any({{ a }}) then 5 else 0")
        assert loss({"a"}) == loss.interpret({"a"}) == cost
    for number in ("1 * any({ a })", "any({ a }) / 1", "p * any({ a })"):
        with pytest.raises(udcp.SpecError, match="is a number, not an indicator"):
            udcp.loads(f"labels {{ a, b }}  param p = 1  loss l = if {number} then 5 else 0")
