"""Generated specs with inputs: all faces mean what the interpreter says, what is proved holds over the ranges, rows are
scored by their own loss, and constant columns give the bits of the constant loss."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.udcp_solvers.brute_force import price_scores
from udcp_dsl.check import GeneratedSpec, assert_facts, assert_meaning, drawn_inputs, specs
from udcp_dsl.diagnostics import OracleError, Source
from udcp_dsl.expression.facts import Interval
from udcp_dsl.expression.inputs import RowLeaf
from udcp_dsl.language import ast
from udcp_dsl.language.parse import parse
from udcp_dsl.language.unparse import unparse

if TYPE_CHECKING:
    from tests.conftest import SeenAmong

seeds = st.integers(0, 2**20)


def assert_all(spec: GeneratedSpec, seed: int) -> None:
    tree, faults = parse(Source("generated", spec.text))
    assert not faults
    assert tree == spec.tree
    assert unparse(tree) == spec.text
    loss = spec.compile()
    assert_meaning(loss, seed=seed)
    assert_facts(loss, seed=seed)


@given(specs(inputs=True), seeds)
def test_meaning_and_facts_hold_over_the_ranges(spec: GeneratedSpec, seed: int) -> None:
    assert_all(spec, seed)


@pytest.mark.parametrize("interval", ["[-2, 1]", "[-2, -1]", "[0, 3]"])
def test_facts_hold_over_ranges_of_either_sign(interval: str) -> None:
    text = f"labels {{ a, b, c }}  input x in {interval}  loss l = x * size + x * any({{ a, b }})"
    assert_facts(udcp.loads(text), seed=0)


def assert_scored(spec: GeneratedSpec, seed: int) -> None:
    loss, rng = spec.compile(), np.random.default_rng(seed)
    inputs = loss.inputs_of(drawn_inputs(loss.inputs, 3, rng), 3)
    P = rng.dirichlet(np.full(loss.K, 0.7), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name in ("price", "greedy", "ratio", "base"):
            try:
                oracle = udcp.make_oracle(name, loss)
            except OracleError:
                continue
            scores = oracle.scores(P, inputs=inputs)
            for i in range(3):
                one = loss if inputs is None else loss.at(inputs.row(i))
                np.testing.assert_array_equal(scores[i], udcp.make_oracle(name, one).scores(P[i : i + 1])[0])
                if name == "price" and loss.K <= 5:
                    exact = [float(x) for x in price_scores(one, P[i])]
                    np.testing.assert_allclose(scores[i], exact, rtol=1e-9, atol=1e-9)


@given(specs(inputs=True, max_labels=6, max_depth=4), seeds)
def test_rows_are_scored_by_their_own_loss_and_prices_are_those_of_brute_force(spec: GeneratedSpec, seed: int) -> None:
    assert_scored(spec, seed)


def test_every_kind_of_input_and_use_of_one_is_generated(seen_among: SeenAmong) -> None:
    """Numbers and costs per row; scaled, compared, chosen, gated; row numbers of row numbers."""
    nodes = {"InputNode", "RowLeaf", "RowScale", "RowChoice", "RowComparison", "RowArithmetic"}
    expected = {*nodes, "Input", "costs", "costs of a family", "Limit"}

    def features(spec: GeneratedSpec) -> set[str]:
        found: set[str] = set()
        for x in spec.tree.declarations:
            found.update({type(x).__name__} if isinstance(x, ast.Input | ast.Limit) else ())
            if isinstance(x, ast.Costs) and isinstance(x.body, ast.PerRow):
                found.add("costs" if x.of is None else "costs of a family")
        return found | {type(node).__name__ for node in spec.compile().expression.nodes}

    seen = seen_among(specs(inputs=True), features, expected)
    assert expected <= seen, sorted(expected - seen)


LINE = "labels { a, b, c }  input km in [0, 9]  input turn in [-2, 3]  costs fee per row in [1, 5]  loss l = "


def test_a_fact_that_fails_for_some_inputs_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from udcp_dsl.expression import inputs

    row_multiple = inputs.row_multiple

    def as_if_positive(factor: Interval, e: object) -> object:
        return row_multiple(Interval(max(factor.lo, 0.0), factor.hi), e)  # type: ignore[arg-type]

    monkeypatch.setattr(inputs, "row_multiple", as_if_positive)
    with pytest.raises(AssertionError, match=r"is not nonnegative, which is proved.*for the inputs turn = -"):
        assert_facts(udcp.loads(LINE + "turn * any({a, b})"))


def test_a_wrong_reading_of_inputs_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowLeaf, "read", lambda self, sets, inputs: sets.mask.sum(axis=1).astype(float))
    with pytest.raises(AssertionError, match="batch gives"):
        assert_meaning(udcp.loads(LINE + "sum(fee)"))
