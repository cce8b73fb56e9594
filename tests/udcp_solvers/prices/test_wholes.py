"""Closing prices against all 2^K sets, on rows with ties and labels without mass; and where they do not apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.udcp_solvers.prices.price_losses import WHOLES, assert_priced_by
from udcp_solvers.price import choose_algorithm
from udcp_solvers.prices.enumeration import Enumeration
from udcp_solvers.prices.wholes import WholePrices
from udcp_solvers.search.prices import SearchPrices

if TYPE_CHECKING:
    from tests.conftest import Sizes

SPEC = """
labels 0..7
hierarchy h {{ A {{ 0, 1, B {{ 2, 3 }} }}, C {{ D {{ 4, 5 }} }}, 6, 7 }}
hierarchy flat {{ 0..7 }}
categories f {{ x: {{ 0, 1 }}, y: {{ 4, 5, 6 }} }}
costs c {{ 0: 0.31, 4: -0.2, default: 0.107 }}
loss l = {}
"""
TAKEN = [
    "nodes(h)",
    "nodes(flat)",
    "nodes(h) + 0.01 * size",
    "0.1 * nodes(h) + sum(c)",
    "0.3 * nodes(h) + count(h.level(1)) + sum(c)",
    "nodes(h) + 2 * count(f) + any({ 0..7 })",
    "nodes(h) + nodes(flat)",
    "2 * size - all({ 0, 1 }) - 0.5 * all({ 0..3 })",
    "sum(c) - all({ 4 }) - 3 * all({ 6, 7 })",
]
NOT_TAKEN = {
    "a gain that is a cost": "nodes(h) + 5 * all({ 0, 1, 2, 3 })",
    "wholes that cross": "nodes(h) - all({ 3, 4 })",
    "a category across the nodes": "nodes(h) + any({ 3, 4 })",
    "a negative weight on a category": "nodes(h) - 0.5 * any({ 2, 3 })",
    "a diameter": "nodes(h) + diameter(h)",
    "a step": "nodes(h) + (nodes(h) >= 3)",
}


def rows(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(8, rng.choice([0.2, 0.5, 3.0])), size=24)
    P[:6] = np.where(P[:6] < 0.08, 0.0, P[:6])
    P[6:12] = np.maximum(np.round(P[6:12] * 8), 1.0)  # ties
    P[12] = 1.0
    P[13] = np.eye(8)[3]
    return P / P.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("expression", TAKEN)
@given(seed=st.integers(0, 2**32 - 1))
def test_scores_are_those_of_all_sets(expression: str, seed: int) -> None:
    loss = udcp.loads(SPEC.format(expression))
    made, judge = WholePrices.of(loss), Enumeration.of(loss)
    assert made is not None
    assert judge is not None
    P = rows(seed)
    np.testing.assert_allclose(made().scores(P), judge().scores(P), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("expression", NOT_TAKEN.values(), ids=NOT_TAKEN)
def test_other_losses_are_left_alone(expression: str) -> None:
    assert WholePrices.of(udcp.loads(SPEC.format(expression))) is None


def test_it_is_the_way_of_price_and_takes_no_anchor() -> None:
    loss = udcp.loads(SPEC.format("nodes(h) + 0.01 * size"))
    algorithm, make = choose_algorithm(loss)
    assert isinstance(make(), WholePrices)
    assert algorithm.exact
    P = np.full((24, 8), 0.125)
    assert udcp.SetPredictor(loss, alpha=0.2).calibrate(P, np.arange(24) % 8).anchors is None


@pytest.mark.parametrize("expression", [*NOT_TAKEN.values(), "nodes(h) + sqrt(count(f))"])
def test_price_is_exact_by_another_way(expression: str) -> None:
    """The search reads a whole as a table of how many of its labels are in."""
    loss = udcp.loads(SPEC.format(expression))
    searched, judge = SearchPrices.of(loss), Enumeration.of(loss)
    assert searched is not None
    assert judge is not None
    P = rows(1)
    np.testing.assert_allclose(searched().scores(P), judge().scores(P), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("text", WHOLES)
def test_losses_of_each_kind_are_those_of_brute_force(text: str, sizes: Sizes) -> None:
    assert_priced_by(WholePrices, text, sizes.cases)
