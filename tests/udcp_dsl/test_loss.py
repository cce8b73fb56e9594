"""A compiled loss refuses what it cannot mean: sets, matrices, labels and numbers."""

from __future__ import annotations

import itertools
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
        ([0, 3], "row 1: label 3 is out of range: positions run from 0 to 2"),
        ([-1, 0], "row 0: label -1 is out of range"),
        ([0, 1], "row 1: label 1 is in the set already"),
    ],
)
def test_pushes_that_are_no_labels(pushed: Any, message: str) -> None:
    grow = _LOSS.increments(2)
    grow.push([2, 1])
    with pytest.raises(udcp.InputError, match=message):
        grow.push(pushed)
    assert grow.mask.sum() == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", "a"], "label 'a' is given twice; a set contains a label once"),
        ([1, 1], "label 'b' is given twice; a set contains a label once"),
        (np.array([0, 1, 1]), r"label 'b' is given twice; a mask of 0 and 1 is made boolean by \.astype\(bool\)"),
        (np.array([0, 0, 0]), r"label 'a' is given twice; a mask of 0 and 1"),
        (np.array([2, 0, 2]), "label 'c' is given twice; a set contains a label once"),
    ],
)
def test_a_label_given_twice_is_refused(given: Any, message: str) -> None:
    for face in (_LOSS, _LOSS.terms, _LOSS.interpret, _LOSS.mask):
        with pytest.raises(udcp.InputError, match=message):
            face(given)


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


@pytest.mark.parametrize(
    "costs", [(1e12, 1e-9, -1e12, 2e-9), (1.0, 1e-9, -1.0, 3.0, 1.0), (-1e12, 3.0, 1e12, 2e-9, 1.0)]
)
@pytest.mark.parametrize("claim", ["sum(c) > 0", "sum(c) == 0", "sum(c) >= 0.000000002"])
def test_costs_that_cancel_are_added_alike_by_all(costs: tuple[float, ...], claim: str) -> None:
    """One by one, many at once, grown by one label, and by the interpreter: a comparison decides the same."""
    K = len(costs)
    entries = ", ".join(f"x{i}: {cost!r}" for i, cost in enumerate(costs))
    names = ", ".join(f"x{i}" for i in range(K))
    loss = udcp.loads(f"labels {{ {names} }}\ncosts c {{ {entries} }}\nloss l = if {claim} then 1 else 0")
    masks = np.array(list(itertools.product([False, True], repeat=K)))
    many = loss.batch(masks)
    for mask, cost in zip(masks, many, strict=True):
        grow = loss.increments(1)
        for y in np.flatnonzero(mask):
            grow.push([int(y)])
        assert (loss(mask), loss.interpret(mask), float(grow.value[0])) == (cost, cost, cost)
