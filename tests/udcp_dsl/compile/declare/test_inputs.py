"""Inputs and costs per row: what may be declared, and what a loss takes of it."""

from __future__ import annotations

import pytest

import udcp_dsl as udcp
from tests.udcp_dsl.inputs.test_language import DECLARED, loss_of
from udcp_dsl.diagnostics import Source, SpecError
from udcp_dsl.language.parse import parse
from udcp_dsl.language.unparse import declaration_text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("input a in [0, 1]", "E252"),
        ("costs b per row in [0, 1]", "E252"),
        ("input z in [2, 1]", "E251"),
        ("costs z per row in [2, 1]", "E251"),
        ("input z", "E120"),
        ("input z = 2", "E120"),
        ("costs z per row", "E120"),
        ("costs z per", "E120"),
    ],
)
def test_what_may_not_be_declared(text: str, code: str) -> None:
    with pytest.raises(SpecError) as error:
        udcp.loads(f"labels {{ a, b }}  {text}  loss l = size")
    assert code in [x.code for x in error.value.diagnostics]


def test_labels_from_outside_may_not_be_called_as_an_input() -> None:
    with pytest.raises(SpecError, match="E252"):
        udcp.loads("input km in [0, 1]  loss l = km * size", labels=["km", "b"])


def test_declarations_are_written_as_they_are_read() -> None:
    lines = ["input km in [-1, 200]", "costs fee per row in [0, 5e3]", "costs queue of team per row in [0.5, 600]"]
    spec, faults = parse(Source("x", "\n".join(lines)))
    assert not faults
    assert [declaration_text(x) for x in spec.declarations] == [lines[0], "costs fee per row in [0, 5000]", lines[2]]


def test_per_and_row_stay_names() -> None:
    loss = udcp.loads("labels { a, b }  param per = 2  costs row { a: 1, b: 3 }  loss l = per * sum(row)")
    assert loss({"a", "b"}) == 8


def test_a_loss_reads_what_it_names_and_takes_what_the_spec_declares() -> None:
    loss = loss_of("sum(fee) + size")
    assert list(loss.inputs) == ["fee"]
    assert (loss.inputs["fee"].low, loss.inputs["fee"].high, loss.inputs["fee"].entries) == (0.5, 50, tuple("abcde"))
    assert loss({"a"}, inputs={"fee": [1, 2, 3, 4, 5], "km": 3}) == 2
    assert loss({"b"}, inputs={"fee": {"b": 2, "a": 1, "c": 3, "d": 4, "e": 5}}) == 3
    assert udcp.loads(f"{DECLARED}loss l = size")({"a"}, inputs={"km": 3}) == 1
