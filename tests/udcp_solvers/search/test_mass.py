"""The cheapest set of a mass, by prices and branches, against all sets."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.specs import of_seven
from udcp_dsl.check import all_masks, losses
from udcp_solvers.search.prices import MassSearch, SearchPrices


def row(K: int, rng: np.random.Generator, exact: bool) -> np.ndarray:
    """A distribution; `exact`: in sixteenths, with ties and zeros."""
    if exact:
        return np.asarray(rng.multinomial(16, rng.dirichlet(np.full(K, 0.7))) / 16)
    return np.asarray(rng.dirichlet(np.full(K, rng.choice([0.2, 0.6, 3.0]))))


def against_all_sets(loss: udcp.Loss, rng: np.random.Generator, rows: int, budget: int) -> int:
    """Hold the search against every set; how many answers were proved."""
    masks = all_masks(loss.K)
    costs = loss.batch(masks)
    search = MassSearch(loss, SearchPrices(loss))
    proved = 0
    for i in range(rows):
        p = row(loss.K, rng, exact=i % 2 == 0)
        t = float(p.sum() * rng.choice([0.25, 0.5, 0.75, 0.9, 1 - 2**-12]))
        inside = rng.random(loss.K) < rng.choice([0.0, 0.3])
        fits = masks[:, inside].all(axis=1) & np.array([math.fsum([*p[m], -t]) >= 0 for m in masks])
        least = costs[fits].min()
        found = search.cheapest(p, t, inside, budget)
        near = 1e-9 * (1 + abs(least))
        assert found.mask[inside].all()
        assert math.fsum([*p[found.mask], -t]) >= 0
        assert found.cost == pytest.approx(loss.batch(found.mask[None])[0], rel=1e-12, abs=1e-12)
        assert found.cost - found.gap <= least + near
        assert found.cost >= least - near
        proved += found.gap == 0
    return proved


@given(losses(), st.integers(0, 2**32 - 1))
def test_no_set_that_has_the_mass_is_cheaper_whatever_the_loss(loss: udcp.Loss, seed: int) -> None:
    low, high = loss.facts.interval
    if loss.K > 8 or max(abs(low), abs(high)) > 1e6:
        return
    assert against_all_sets(loss, np.random.default_rng(seed), 3, 5_000) == 3


def test_no_set_that_has_the_mass_is_cheaper(
    seed: int, random_loss: Callable[[np.random.Generator, int], udcp.Loss]
) -> None:
    rng = np.random.default_rng(seed)
    loss = random_loss(rng, 10)
    assert against_all_sets(loss, rng, 8, 2_000) == 8
    against_all_sets(loss, rng, 4, 0)


@pytest.mark.parametrize("scale", [1e9, 1e-8])
def test_costs_may_be_large_or_small(scale: float) -> None:
    loss = of_seven(f"{scale!r} * (sum(k) + 8 * (any(A) and any(B)))")
    masks = all_masks(loss.K)
    costs = loss.batch(masks)
    search = MassSearch(loss, SearchPrices(loss))
    for p in np.random.default_rng(3).dirichlet(np.ones(loss.K), 20):
        fits = masks @ p >= 0.7
        found = search.cheapest(p, 0.7, np.zeros(loss.K, dtype=bool))
        assert found.gap == 0
        assert found.cost == pytest.approx(costs[fits].min(), rel=1e-9)


def test_a_gap_is_told_when_the_budget_is_used_up() -> None:
    """A knapsack whose prices leave a gap: forty labels, costs that follow p but for noise."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(40, 5.0))
    costs = ", ".join(f"{i}: {x!r}" for i, x in enumerate((p * (1 + 0.02 * rng.random(40)) * 100).tolist()))
    loss = udcp.loads(f"labels 0..39 costs k {{ {costs} }} loss l = sum(k)")
    search = MassSearch(loss, SearchPrices(loss))
    short, long = (search.cheapest(p, 0.6, np.zeros(40, dtype=bool), budget) for budget in (0, 200))
    assert short.gap > 0
    assert short.cost - short.gap <= long.cost - long.gap <= long.cost <= short.cost
