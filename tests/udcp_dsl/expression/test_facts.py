"""Rules that are easily too generous or too shy, one by one; test_generated_specs.py attacks all of them at once."""

from __future__ import annotations

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check import all_masks, assert_facts

_HEAD = """
labels { a, b, c, d }
category C { a, b }
costs up { a: 1, b: 2, c: 0, d: 2 }
costs down { a: -1, b: -3, c: -0.5, d: -1 }
costs mixed { a: -2, b: 1, c: 0.5, d: 1 }
hierarchy h { x { a, b }, c, d }
"""


def _loss(body: str) -> udcp.Loss:
    loss = udcp.loads(f"{_HEAD} loss l = {body}")
    assert_facts(loss)
    return loss


@pytest.mark.parametrize(
    ("body", "fact"),
    [
        # A slope or a bend is judged beside its neighbours, not beside the largest entry of the table.
        ("1000000000000 - 0.5 * size", "monotone"),
        ("1000000000000 + 0.1 * size ^ 2", "separable"),
        ("1000000000000 + 0.1 * size ^ 2", "submodular"),
        ("0.5 * size ^ 2 - 1e15 * (size >= 4)", "submodular"),
        # A maximum with a negative cost falls from the empty set's 0.
        ("max(mixed)", "submodular"),
        ("max(down)", "supermodular"),
        ("min(up)", "monotone"),
        # `and` of two categories is no category.
        ("any(C) and any({ b, c })", "submodular"),
        ("any(C) and any({ b, c })", "laminar"),
        # The step of an `if` must be paid once, and lead beyond the other branch.
        ("if all(C) then 5 else max(up)", "submodular"),
        ("if any(C) then 1 else max(up)", "submodular"),
        ("if any(C) then 5 + max(up) else max(up)", "supermodular"),
        # Enough of the size, or too little of it.
        ("0.5 * size - any(C)", "monotone"),
        ("size == 2", "monotone"),
        ("max(size, sum(up), 1)", "submodular"),
    ],
)
def test_not_proved(body: str, fact: str) -> None:
    assert not getattr(_loss(body).facts, fact)


@pytest.mark.parametrize(
    "body",
    [
        "(sum(large) - 1e16 * any({ a })) + 1",
        "-(sum(large) - 1e16 * any({ a }))",
        "sum(large) - 1e16 * any({ a, b }) + 3 * size",
        "min(sum(large) - 1e16 * any({ a }), 5) + size",
        "max(large) - 1e16 * any({ a }) + 2 * any({ b })",
    ],
)
def test_what_rounding_hides_is_not_proved(body: str) -> None:
    loss = udcp.loads(f"{_HEAD} costs large {{ a: 1e16, default: 1 }} loss l = {body}")
    assert_facts(loss)
    for fact in ("monotone", "antitone", "separable", "submodular", "supermodular", "laminar", "cardinality"):
        assert not getattr(loss.facts, fact)
    assert not loss.facts.interval.constant


def test_large_costs_are_no_reason_to_doubt() -> None:
    loss = udcp.loads(f"{_HEAD} costs large {{ a: 1e16, default: 1 }} loss l = sum(large) + 1e12 * any(C) - 5 * size")
    assert_facts(loss)
    assert loss.facts.submodular
    assert loss.facts.laminar


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        ("0.1 * size + 0.2 * size", "separable monotone laminar cardinality"),
        ("any(C) or any({ b, c })", "laminar submodular monotone"),
        ("within(C) and within({ b, c })", "supermodular antitone"),
        ("not (within(C) and within({ b, c }))", "laminar submodular monotone"),
        ("all({ a }) or any({ b })", "laminar"),
        ("if any(C) then 5 else max(up)", "submodular monotone"),
        ("if within(C) then max(up) else 5", "submodular monotone"),
        ("if any(C) then -5 else -max(up)", "supermodular antitone"),
        ("min(sum(up), 4, 100)", "submodular monotone"),
        ("max(sum(up), -1)", "separable monotone"),
        ("max(min(up), 3)", "separable cardinality"),
        ("size + any(C) - 1 * any({ c, d })", "monotone"),
        ("size + empty", "monotone cardinality nonnegative"),
        ("max(mixed) + 2 * any({ a, b, c, d })", "laminar submodular monotone"),
        ("min(down)", "supermodular antitone"),
        ("max(up) - max(up)", "separable cardinality monotone antitone"),
        ("count(h.level(1)) == 3", "monotone"),
        ("diameter(h) == 0", "antitone"),
        ("(0 == 0) * sum(up)", "separable monotone"),
    ],
)
def test_proved(body: str, facts: str) -> None:
    found = _loss(body).facts
    assert [name for name in facts.split() if not getattr(found, name)] == []


@pytest.mark.parametrize("costs", ["up", "down", "mixed"])
@pytest.mark.parametrize("atom", ["max", "min"])
def test_the_extreme_cost_is_a_sum_of_nested_categories(atom: str, costs: str) -> None:
    loss = _loss(f"{atom}({costs})")
    assert loss.form is not None
    masks = all_masks(4)
    assert [loss.form(set(np.flatnonzero(m).tolist())) for m in masks] == pytest.approx(loss.batch(masks).tolist())


def test_categories_that_would_fill_the_memory_are_not_made() -> None:
    K = 3000
    labels = [f"y{i}" for i in range(K)]
    costs = ", ".join(f"{label}: {i}" for i, label in enumerate(labels))
    loss = udcp.loads(f"costs k {{ {costs} }}  loss l = max(k)", labels=labels)
    assert loss.form is None
    assert loss.facts.submodular
    assert not loss.facts.laminar


def test_rounding_never_turns_an_interval_round() -> None:
    lo, hi = _loss("size < sum(up) - (0.1 - size)").facts.interval
    assert lo <= hi
    inner = udcp.loads("labels { a }  costs k { a: 0 }  loss l = size - (max(k) - (0.1 - size))")
    assert_facts(inner)
