"""Depth and width: nesting to its limit, thousands of operands, lets that double, cycles. Nothing recurses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import udcp_dsl as udcp

if TYPE_CHECKING:
    from tests.conftest import Sizes

_HEAD = "labels { a, b, c }  category C { a, b }  costs k { a: 1, b: 2, c: -3 }\n"


def _agrees(text: str) -> udcp.Loss:
    """Compiles, evaluates, grows and proves a loss that no face may take recursively or twice over."""
    loss = udcp.loads(_HEAD + text)
    value = loss({"a", "c"})
    assert value == loss.interpret({"a", "c"}) == pytest.approx(sum(loss.terms({"a", "c"}).values()))
    grow = loss.increments(1)
    grow.push([0])
    assert grow.after()[0, 2] == value
    assert loss.facts.interval.lo <= value <= loss.facts.interval.hi
    return loss


@pytest.mark.parametrize(
    "nested",
    [
        lambda n: "(" * n + "size" + ")" * n,
        lambda n: "-" * n + "size",
        lambda n: "not " * n + "empty",
        lambda n: "if empty then 1 else " * n + "size",
        lambda n: "max(1, 0.5 * empty + " * n + "size" + ")" * n,
        lambda n: "(0 < 1 + 2 * " * n + "empty" + ")" * n,
        lambda n: "-(" * (n // 2) + "-" * (n % 2) + "size" + ")" * (n // 2),
    ],
    ids=["parentheses", "minus", "not", "if", "max", "comparison", "minus and parentheses"],
)
def test_nesting_up_to_200(nested: Callable[[int], str]) -> None:
    _agrees(f"loss l = {nested(200)}")
    with pytest.raises(udcp.SpecError, match="nested more than 200 deep") as caught:
        udcp.loads(f"{_HEAD} loss l = {nested(201)}")
    assert [d.code for d in caught.value.diagnostics] == ["E107"]


def test_powers_up_to_200() -> None:
    # One power more makes one operand more.
    assert _agrees("loss l = " + "1 ^ " * 200 + "size")({"a"}) == 1
    with pytest.raises(udcp.SpecError, match="nested more than 200 deep"):
        udcp.loads(_HEAD + "loss l = " + "1 ^ " * 201 + "size")


@pytest.mark.parametrize("term", ["2 * any(C)", "size", "sum(k)", "(if empty then 1 else max(k))"])
def test_a_sum_of_many_terms(term: str, sizes: Sizes) -> None:
    many = sizes.terms
    loss = udcp.loads(_HEAD + f"loss l = {' + '.join([term] * many)}  loss one = {term}", loss="l")
    one = udcp.loads(_HEAD + f"loss one = {term}")
    assert loss({"a", "c"}) == loss.interpret({"a", "c"}) == many * one({"a", "c"})
    assert loss.terms({"a", "c"}) == {term: loss({"a", "c"})}


@pytest.mark.parametrize(
    ("between", "operand", "value"),
    [(" and ", "any(C)", 1), (" or ", "any(C)", 1), (" * ", "any(C)", 1), (", ", "sum(k)", -2)],
    ids=["and", "or", "product", "max"],
)
def test_other_operators_of_many_operands(between: str, operand: str, value: float, sizes: Sizes) -> None:
    listed = between.join([operand] * sizes.terms)
    loss = udcp.loads(f"{_HEAD} loss l = {f'max({listed})' if between == ', ' else listed}")
    assert loss({"a", "c"}) == loss.interpret({"a", "c"}) == value


@pytest.mark.parametrize(
    ("first", "step", "last"),
    [
        ("sum(k)", "{0} + {0}", "0 * a100 + sum(k)"),  # 2^100 terms, were they not shared
        ("sum(k)", "0.5 * {0} + 0.5 * {0}", "a100"),
        ("sum(k)", "max({0}, {0})", "a100"),
        ("any(C)", "{0} and {0} or {0}", "a100"),
        ("any(C)", "if {0} then {0} else {0}", "a100"),
        ("size", "{0} ^ 1 + 0 * {0}", "a100"),
        ("1", "{0} + {0}", "size + (size >= a100)"),  # numbers: which side of a comparison is one?
        ("1", "{0} * {0}", "a100 * sum(k)"),
    ],
)
def test_a_let_that_is_used_twice_is_one(first: str, step: str, last: str) -> None:
    chain = "\n".join(f"let a{i + 1} = {step.format(f'a{i}')}" for i in range(100))
    _agrees(f"let a0 = {first}\n{chain}\nloss l = {last}")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("let a = a  loss l = a", ["E260"]),
        ("loss l = l", ["E260"]),
        ("let a = b + 1  let b = size + a  loss l = b", ["E260"]),
        ("loss l = m  loss m = max(l, 1)", ["E260"]),
        ("let a = a  let b = b  loss l = a + b", ["E260", "E260"]),
        ("let a = size + b  let b = c  let c = b  loss l = a", ["E260"]),
        (" ".join(f"let a{i} = a{(i + 1) % 1000}" for i in range(1000)) + " loss l = a0", ["E260"]),
    ],
)
def test_cycles_are_diagnostics(text: str, codes: list[str]) -> None:
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(_HEAD + text)
    assert [d.code for d in caught.value.diagnostics] == codes
    for diagnostic in caught.value.diagnostics:
        assert 0 <= diagnostic.span.start < diagnostic.span.end <= len(diagnostic.span.source.text)
