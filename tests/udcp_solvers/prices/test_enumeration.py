"""All sets of few labels, against rationals: prices, prices with an anchor, best sets; and that nothing is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.specs import of_seven
from tests.udcp_solvers.brute_force import anchored_scores, price_scores
from tests.udcp_solvers.prices.price_losses import (
    CUTS,
    LAMINAR,
    OF_SIZE,
    OTHER,
    TREE,
    Remembered,
    assert_priced_by,
)
from tests.udcp_solvers.prices.price_losses import rows as hard_rows
from udcp_dsl.check import losses
from udcp_solvers.price import Price
from udcp_solvers.prices.enumeration import MOST, Enumeration

if TYPE_CHECKING:
    from tests.conftest import Sizes

LOSSES = [
    "sum(k) + 8 * (any(A) and any(B))",
    "3 * diameter(h) + sum(k)",
    "if any(A) then 3 * count(over) else sum(k)",
    "min(sum(s) + count(over), 1.5)",
    "0.25 * spread(h) + 0.5 * size - any(A)",
    "max(size - 3, 0) ^ 2 - count(over)",
    "within(A) + min(s) + sqrt(size)",
    "1e12 * sum(k) + size",
    "0",
]


def rows(K: int, rng: np.random.Generator, n: int) -> np.ndarray:
    """Distributions, half of them in sixteenths, so that there are ties and zeros; one label sure, and all alike."""
    drawn = [rng.dirichlet(np.full(K, rng.choice([0.2, 0.6, 3.0]))) for _ in range(n)]
    dyadic = [rng.multinomial(16, p) / 16 for p in drawn]
    return np.concatenate([drawn, dyadic, np.eye(K)[[K // 2]], np.full((1, K), 1 / K)])


def judge(loss: udcp.Loss, P: np.ndarray, mu: np.ndarray, *, rtol: float) -> None:
    """What rationals say, for the same costs."""
    few, known = Enumeration(loss), Remembered(loss)
    plain, anchored, best = few.scores(P), few.scores(P, mu), few.best(P, mu)
    for i, p in enumerate(P):
        wanted, star = anchored_scores(known, p, mu[i])  # type: ignore[arg-type]  # it asks for no more
        np.testing.assert_allclose(plain[i], price_scores(known, p), rtol=rtol, atol=0)  # type: ignore[arg-type]
        np.testing.assert_allclose(anchored[i], wanted, rtol=rtol, atol=0)
        assert set(np.flatnonzero(best[i])) == star


@pytest.mark.parametrize("text", LOSSES)
def test_to_the_last_bit(text: str) -> None:
    loss = of_seven(text)
    rng = np.random.default_rng(len(text))
    P = rows(loss.K, rng, 6)
    scale = 1e12 if "1e12" in text else 1.0
    judge(loss, P, scale * np.ceil(4 * np.exp(rng.uniform(-2, 3, len(P)))) / 4, rtol=0)


@pytest.mark.parametrize("text", ["min(s) + max(k)", "min(s) + 0.5 * any(A)", "min(s)", "min(s) + 0.1 * size"])
def test_a_label_of_tiny_mass_that_costs_nothing_is_bought(text: str) -> None:
    """Beside a large mass its own is below 106 bits: it is free all the same, so that its price is that of the set."""
    loss = of_seven(text)
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.ones(7), 20)
    for p in P:
        p[rng.choice(7, rng.integers(1, 4), replace=False)] = 10.0 ** rng.uniform(-260, -20, 1)
        p /= p.sum()
    P[:4, 3] = 1e-40 * P[:4, 5]  # beside another tiny one, too
    judge(loss, P, np.full(len(P), 0.3), rtol=1e-9)
    judge(loss, P, np.zeros(len(P)), rtol=1e-9)


@given(losses(), st.integers(0, 2**32 - 1))
def test_on_generated_losses(loss: udcp.Loss, seed: int) -> None:
    low, high = loss.facts.interval
    if loss.K > 6 or max(abs(low), abs(high)) > 1e6:
        return
    rng = np.random.default_rng(seed)
    P = rows(loss.K, rng, 1)
    every = Enumeration(loss)
    values = np.array([loss.interpret_positions(np.flatnonzero(members)) for members in every.members])
    if not np.array_equal(values, every.costs[0]):  # sums in another order: ties in one need not be ties in the other
        return
    judge(loss, P, (high - low + 0.125) * np.exp2(rng.integers(-2, 4, len(P)).astype(float)), rtol=1e-12)


def test_blocks_and_threads_do_not_change_a_bit() -> None:
    labels = ", ".join(f"l{i}" for i in range(MOST))
    text = (
        f"labels {{ {labels} }} category A {{ l0, l1 }} category B {{ l2, l5 }} loss l = size + 4 * (any(A) and any(B))"
    )
    few = Enumeration(udcp.loads(text))
    P = np.random.default_rng(0).dirichlet(np.full(MOST, 0.4), 100)
    anchor = np.full(100, 9.0)
    together = few.scores(P, anchor)
    assert np.array_equal(together, np.concatenate([few.scores(P[i : i + 1], anchor[:1]) for i in range(100)]))


def test_single_precision_is_taken_as_it_is() -> None:
    few = Enumeration(of_seven(LOSSES[0]))
    P = np.random.default_rng(0).dirichlet(np.ones(7), 20).astype(np.float32)
    assert np.array_equal(few.scores(P), few.scores(P.astype(np.float64)))


def test_more_labels_are_left_to_the_search() -> None:
    text = "category A { 1, 3 } category B { 2 } loss l = size + 4 * (any(A) and any(B))"
    assert Enumeration.of(udcp.loads(f"labels 0..{MOST} {text}")) is None
    assert isinstance(Price(udcp.loads(f"labels 1..{MOST} {text}"))._prices, Enumeration)


def test_up_to_so_many_labels_nothing_is_compiled() -> None:
    """Calibrating with an anchor and predicting: numba is not even imported."""
    code = f"""
import sys, numpy as np, udcp_dsl as udcp
loss = udcp.loads("labels 1..{MOST} category A {{1}} category B {{2, 3}} loss l = size + 4 * (any(A) and any(B))")
rng = np.random.default_rng(0)
P = rng.dirichlet(np.full({MOST}, 0.4), 200)
y = np.array([1 + rng.choice({MOST}, p=p) for p in P])
predictor = udcp.SetPredictor(loss, alpha=0.1).calibrate(P, y)
assert predictor.predict_set(P).mask[np.arange(200), y - 1].mean() >= 0.85
assert predictor.anchors is not None and "numba" not in sys.modules, sorted(x for x in sys.modules if "numba" in x)[:3]
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env={**os.environ, "UDCP_QUIET": "1"})


@pytest.mark.parametrize("least", [1e-300, 1e-310, 5e-324])
@pytest.mark.filterwarnings("error")
def test_probabilities_near_the_smallest_number(least: float) -> None:
    """Prices near the largest number, or beyond it: labels of such a p come last, and every row has its sets."""
    loss = of_seven(LOSSES[0])
    P = np.full((4, 7), least)
    P[np.arange(4), [0, 2, 3, 5]] = 1.0
    few = Enumeration(loss)
    scores = few.scores(P)
    anchored = few.scores(P, np.array([0.5, 1e10, 1e305, 1.7e308]))
    for i, likely in enumerate([0, 2, 3, 5]):
        assert scores[i, likely] <= 1.0
        assert (np.delete(scores[i], [likely, 3]) > 1e299).all()  # label 3 costs nothing
        assert anchored[i, likely] <= 1.0
    assert few.best(P, np.full(4, 1.7e308)).any(axis=1).all()


@pytest.mark.parametrize("text", OTHER)
def test_losses_of_no_other_kind_are_those_of_brute_force(text: str, sizes: Sizes) -> None:
    assert_priced_by(Enumeration, text, sizes.cases)


@pytest.mark.parametrize("text", [TREE[0], TREE[3], LAMINAR[2], OF_SIZE[5], CUTS[5]])
def test_enumeration_agrees(text: str) -> None:
    """The way for any loss of few labels, where a quicker one answers."""
    loss = of_seven(text)
    P = hard_rows(loss.K, 7, 60)
    np.testing.assert_allclose(Enumeration(loss).scores(P), Price(loss).scores(P), rtol=1e-12, atol=0)


def test_sets_of_one_cost_are_ties_in_whatever_order_it_is_added() -> None:
    """Label c costs nothing and has no mass, but floats find {a, c} cheaper than {a}."""
    costs = "costs c { a: -1, b: 1, c: -1 }"
    loss = udcp.loads(f"labels {{ a, b, c }} {costs} loss l = size - 0.1 + sum(c) + max(0, all({{ a, b }}))")
    assert isinstance(Price(loss)._prices, Enumeration)
    assert Price(loss).scores(np.array([[0.6, 0.4, 0.0]]))[0, 2] == np.inf
