"""The price oracle on generated losses, its sets and how it explains them; each way of pricing is tested in prices."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.specs import of_seven
from tests.udcp_solvers.brute_force import hull, price_scores
from tests.udcp_solvers.prices.price_losses import CUTS, LAMINAR, SEPARABLE, Remembered, assert_prices, rows
from udcp_dsl.check import losses, probabilities
from udcp_solvers.price import Price
from udcp_solvers.search.prices import SearchPrices


@given(st.data())
def test_generated_losses(data: st.DataObject) -> None:
    loss = data.draw(losses(max_labels=6))
    P = data.draw(probabilities(loss.K, max_rows=3))
    assert_prices(udcp.make_oracle("price", loss), np.asarray(P, dtype=np.float64))


@pytest.mark.parametrize("text", [*SEPARABLE, *LAMINAR, *CUTS, "sqrt(size) + sum(s)"])
def test_minimisers_of_submodular_losses_are_nested(text: str) -> None:
    loss = of_seven(text)
    assert loss.facts.submodular
    remembered: Any = Remembered(loss)
    oracle = Price(loss)
    for p in rows(loss.K, 2, 12):
        sets = hull(remembered, p)
        assert all(a <= b for (_, a), (_, b) in pairwise(sets))
        # Prices that differ by less than a float can tell may be one here, so a set lies between its neighbours.
        scores = oracle.scores(p[None])[0]
        for price, S in sets:
            below, above = (set(np.flatnonzero(scores <= float(price) * x)) for x in (1 - 1e-12, 1 + 1e-12))
            assert (below if price else S) <= S <= above


def test_thresholds_by_class() -> None:
    loss = of_seven("count(over) + 0.5 * size")
    P = rows(loss.K, 4, 30)
    oracle = udcp.make_oracle("price", loss)
    tau = np.linspace(0.5, 20, loss.K)[None, :]
    np.testing.assert_array_equal(oracle.sets(P, tau), oracle.scores(P) <= tau)


def test_explain_lists_the_sets_by_rising_price() -> None:
    loss = udcp.loads("labels { a, b, c, d } category wild { b, c } loss l = size + any(wild)")
    steps = Price(loss).explain([0.5, 0.25, 0.25, 0.0])
    assert [(s.price, s.entered, s.labels, s.mass, s.cost) for s in steps] == [
        (0.0, (), (), 0.0, 0.0),
        (2.0, ("a",), ("a",), 0.5, 1.0),
        (6.0, ("b", "c"), ("a", "b", "c"), 1.0, 4.0),
    ]


def test_many_labels_and_no_structure_go_to_the_search() -> None:
    labels = ", ".join(f"y{i}" for i in range(22))
    loss = udcp.loads(
        f"labels {{ {labels} }} hierarchy h {{ n {{ y0..y2 }} }} loss l = spread(h)".replace("y0..y2", labels)
    )
    oracle = Price(loss, exact=True)
    assert isinstance(oracle._prices, SearchPrices)
    P = np.zeros((1, 22))
    P[0, :3] = 0.5, 0.375, 0.125
    assert oracle.scores(P)[0, :3].tolist() == [0.0, pytest.approx(2 / 0.375), pytest.approx(4 / 0.125)]


@pytest.mark.parametrize(
    ("text", "p"),
    [
        # A mass below 2^-106 is a mass: what is free is bought at 0.
        ("costs c { a: 0, b: 1, c: 2, d: 0 }  loss l = 3 * (size >= 3) + sum(c)", [0.5, 0.3, 0.2, 1e-36]),
        # Categories of one label, and likeliest labels that tie.
        (
            "hierarchy h { x { a, b }, y { c }, z { d } }  loss l = diameter(h) + 0.1 * size + 0.2 * count(h.level(1))",
            [0.4, 0.4, 0.2, 0.0],
        ),
        (
            "hierarchy h { x { a }, y { b }, z { c, d } }  loss l = diameter(h) + 0.1 * size + 0.2 * count(h.level(1))",
            [0.4, 0.4, 0.2, 0.0],
        ),
    ],
)
def test_small_masses_and_ties(text: str, p: list[float]) -> None:
    loss = udcp.loads(f"labels {{ a, b, c, d }}  {text}")
    np.testing.assert_allclose(udcp.make_oracle("price", loss).scores([p])[0], price_scores(loss, p), rtol=1e-12)


@pytest.mark.parametrize(
    "text", ["size ^ 2 + sum(c)", "1e300 * diameter(h)", "1e300 * count(F) + 0.1 * size", "min(sum(c), 5) + size"]
)
def test_costs_too_large_to_compare_are_refused(text: str) -> None:
    """Their products overflow, and a search among them would not end."""
    families = "categories F { x: { 0, 1, 7 }, y: { 1, 2, 3 }, z: { 4, 5, 0 } } hierarchy h { u { 0..3 }, v { 4..15 } }"
    loss = udcp.loads(f"labels 0..15 costs c {{ 0: 1e300, default: 2e299 }} {families} loss l = {text}")
    with pytest.raises(udcp.OracleError, match="write costs in a larger unit"):
        Price(loss)
