"""Greedy orders against their formula, and the kernels that find them against one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import udcp_dsl as udcp
from tests.udcp_solvers.brute_force import greedy_order
from tests.udcp_solvers.greedy_orders.exact_losses import EXACT, exact_loss
from udcp_dsl.check import losses, probabilities
from udcp_dsl.check.oracles import greedy_fault
from udcp_dsl.check.samples import hard_rows
from udcp_dsl.loss import Loss
from udcp_solvers.greedy import Greedy, paths

Array = NDArray[Any]


def whole_orders(loss: Loss, P: Array, M: float, eps: float) -> dict[str, Array]:
    none, never = np.full(len(P), -1), np.full(len(P), -np.inf)
    return {name: path(P, none, never)[0] for name, path in paths(loss, M, eps).items()}


def kernel_rows(P: Array) -> Array:
    """As the public methods hand them on."""
    return np.ascontiguousarray(P, dtype=np.float64 if P.dtype == np.float64 else np.float32)


@pytest.mark.parametrize("body", EXACT)
@given(P=probabilities(7, max_rows=3), share=st.sampled_from([1.0, 1.0, 0.5]), eps=st.sampled_from([1e-6, 0.5]))
def test_orders_are_those_of_the_formula(body: str, P: Array, share: float, eps: float) -> None:
    loss = exact_loss(body)
    M = share * loss.facts.interval.hi
    expected = [greedy_order(loss, row.astype(np.float64).tolist(), M, eps) for row in P]
    for name, orders in whole_orders(loss, kernel_rows(P), M, eps).items():
        assert orders.tolist() == expected, name


@given(data=st.data())
def test_each_label_is_the_best_by_the_formula_on_generated_specs(data: st.DataObject) -> None:
    """By the interpreter, which adds in another order: where only rounding tells labels apart, either may be first."""
    loss = data.draw(losses())
    P = data.draw(probabilities(loss.K, max_rows=2))
    hi = loss.facts.interval.hi
    for p, order in zip(P.astype(np.float64).tolist(), Greedy(loss).scores(P).argsort(axis=1).tolist(), strict=True):
        assert greedy_fault(loss, p, order, hi, 1e-6) is None


@given(data=st.data())
def test_all_paths_give_the_same_orders_on_generated_specs(data: st.DataObject) -> None:
    loss = data.draw(losses())
    P = kernel_rows(data.draw(probabilities(loss.K)))
    M = data.draw(st.sampled_from([1.0, 1.0, 0.7, 0.2])) * loss.facts.interval.hi
    orders = whole_orders(loss, P, M, data.draw(st.sampled_from([1e-6, 1e-12, 0.5])))
    for name, found in orders.items():
        assert (found == orders["generic"]).all(), name


def test_all_paths_give_the_same_orders_with_many_labels(
    seed: int, random_loss: Callable[[np.random.Generator, int], Loss]
) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 150))
    loss = random_loss(rng, K)
    M = rng.choice([1.0, 1.0, 0.6]) * loss.facts.interval.hi
    P = kernel_rows(hard_rows(rng, 5, K))
    ways = paths(loss, M, 1e-6)
    y = rng.integers(K, size=5)
    none, never = np.full(5, -1), np.full(5, -np.inf)
    floor = rng.random(5)
    expected, _ = ways["generic"](P, none, never)
    for name, path in ways.items():
        assert (path(P, none, never)[0] == expected).all(), name
        for orders, counts in (path(P, y, never), path(P, none, floor)):
            for order, count, whole in zip(orders, counts, expected, strict=True):
                assert (order[:count] == whole[:count]).all(), name
        orders, counts = path(P, y, never)
        assert all(label in order[:count] for label, order, count in zip(y, orders, counts, strict=True))


@pytest.mark.parametrize("body", ["sum(c)", "sum(c) + size ^ 2", "sum(c) - 3 * count(F)", "sum(c) + count(F) + any(C)"])
def test_hundreds_of_costs_on_sure_and_unsure_rows(body: str) -> None:
    rng = np.random.default_rng(0)
    K = 300
    costs = ", ".join(f"{y}: {cost:.5f}" for y, cost in enumerate(rng.uniform(-0.2, 2, K)))
    families = ", ".join(f"f{j}: {{ {13 * j}..{13 * j + 12} }}" for j in range(23))
    declared = f"labels 0..{K - 1}  costs c {{ {costs} }}  categories F {{ {families} }}  category C {{ 90..200 }}"
    loss = udcp.loads(f"{declared}  loss l = {body}")
    scale = np.array([0.0, 0.1, 1.0, 3.0, 10.0, 30.0])
    odds = np.exp(scale[:, None] * rng.normal(size=(6, K)))
    orders = whole_orders(loss, kernel_rows(odds / odds.sum(axis=1, keepdims=True)), loss.facts.interval.hi, 1e-6)
    assert next(iter(orders)) == "steps"
    assert (orders["steps"] == orders["generic"]).all()


@pytest.mark.parametrize(
    ("body", "quickest"),
    [
        ("size", "steps"),
        ("sum(k) + 0.25 * size", "steps"),
        ("count(F) + 0.25 * size", "steps"),
        ("count(h.level(1)) + 2 * count(h.level(2))", "steps"),
        ("count(O) + any(C) + size ^ 2", "steps"),
        ("diameter(h) + count(F)", "steps"),
        ("diameter(d) + sum(k)", "steps"),
        ("max(k) + size", "steps"),
        ("sum(s)", "steps"),
        ("5 * (any(C) and count(F) >= 2)", "generic"),
        ("radius(d)", "generic"),
        ("diameter(h) * any(C)", "generic"),
    ],
)
def test_a_specialised_path_is_taken_where_facts_allow(body: str, quickest: str) -> None:
    loss = exact_loss(body)
    assert next(iter(paths(loss, loss.facts.interval.hi, 1e-6))) == quickest


def test_lists_are_looked_at_once_also_where_the_loss_is_no_sum() -> None:
    loss = udcp.loads(
        "labels 0..39  category C { 0..9 }  category D { 5..29 }  loss l = 5 * (any(C) and any(D)) + size"
    )
    assert next(iter(paths(loss, 45.0, 1e-6))) == "steps, no sum"
