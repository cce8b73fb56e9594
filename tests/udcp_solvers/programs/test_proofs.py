"""No answer of a solver is called proved that a set known without it beats; and a limit leaves no room for chance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.check import all_masks, losses
from udcp_dsl.diagnostics import OracleError
from udcp_solvers.ilp import Ilp
from udcp_solvers.programs import exact as module
from udcp_solvers.programs.exact import Exact, Tally
from udcp_solvers.programs.solver import Answer, Question, open_solver

SPEC = """
labels { a, b, c, d, e, f, g, h, i, j, k, l, m, n }
category A { a, b, c }  category B { d, e, f, g }
costs w { a: 1, b: 2, c: 0.5, d: 0.7, e: 3, f: 1, g: 1.5, h: 2, i: 0.25, j: 1, k: 2, l: 0.1, m: 0.9, n: 1.7 }
loss l = SCALE * (sum(w) + 5 * (any(A) and any(B)) + max(size - 4, 0))
"""


def loss_of(scale: float) -> udcp.Loss:
    return udcp.loads(SPEC.replace("SCALE", repr(scale)))


class Lies:
    """A solver that calls the set of all labels the best, always or with presolve alone."""

    name = "HiGHS"

    def __init__(self, honest: Any, always: bool) -> None:
        self._honest, self._always = honest, always

    def ask(self, question: Question) -> Answer:
        if not (self._always or question.presolve):
            return self._honest.ask(question)
        loss, everything = loss_of(1.0), np.ones(14, dtype=bool)
        value = float(loss.batch(everything[None])[0]) - loss.linear_model.constant
        if question.costs is not None:
            value += float((question.costs - loss.linear_model.objective)[:14].sum())
        return Answer("optimal", everything, value)


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("price", [False, True])
def test_a_false_optimum_is_asked_again_without_presolve(
    always: bool, price: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = loss_of(1.0)
    p = np.random.default_rng(0).dirichlet(np.ones(loss.K))
    nothing = np.zeros(loss.K, dtype=bool)
    exact = Exact(loss, loss.linear_model, "HiGHS", canonical=False)

    def ask(tally: Tally) -> module.Found:
        return exact.at_price(tally, p, 8.0, nothing) if price else exact.cheapest(tally, p, 0.8, nothing)

    right = ask(Tally())
    assert right.proved
    monkeypatch.setattr(module, "open_solver", lambda model, wanted: Lies(open_solver(model, wanted), always))
    exact = Exact(loss, loss.linear_model, "HiGHS", canonical=False)
    tally = Tally()
    found = ask(tally)
    assert found.cost == pytest.approx(right.cost)
    assert found.proved != always
    report = tally.report()
    assert (report.proved, report.doubtful) == ((0, 1) if always else (1, 0))
    assert report.retried == 1


@pytest.mark.parametrize("scale", [1e9, 1.0, 1e-8])
@pytest.mark.parametrize("solver", ["HiGHS", "auto"])
def test_costs_of_any_scale_are_optimised(scale: float, solver: str) -> None:
    loss = loss_of(scale)
    masks = all_masks(loss.K)
    costs = loss.batch(masks)
    P = np.random.default_rng(1).dirichlet(np.full(loss.K, 0.7), 8)
    oracle = Ilp(loss, levels=[0.7], solver=solver)
    found, proved = oracle.optimal(P)
    assert proved.all()
    for p, mask in zip(P, found, strict=True):
        least = costs[masks @ p >= 0.7 * p.sum() + 1e-12].min()
        assert loss.batch(mask[None])[0] == pytest.approx(least, rel=1e-9)


def hard(K: int) -> udcp.Loss:
    """A knapsack of costs that follow p but for noise: a solver looks at thousands of nodes."""
    rng = np.random.default_rng(5)
    costs = ", ".join(f"{i}: {x!r}" for i, x in enumerate((50 + rng.random(K)).tolist()))
    return udcp.loads(f"labels 0..{K - 1} costs c {{ {costs} }} loss l = sum(c)")


def test_a_limit_in_nodes_leaves_nothing_to_chance(tmp_path: Path) -> None:
    """Distances that are all much the same: a solver looks at hundreds of nodes."""
    rng = np.random.default_rng(2)
    d = np.triu(1 + rng.random((18, 18)), 1)
    np.save(tmp_path / "d.npy", d + d.T)
    loss = udcp.loads('labels 0..17  distance d from "d.npy"  loss l = spread(d) + size', folder=tmp_path)
    P = rng.dirichlet(np.full(18, 20.0), 3)
    with pytest.warns(UserWarning, match="coverage does not depend on it"):
        scores = Ilp(loss, solver="HiGHS", node_limit=1).scores(P)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = Ilp(loss, solver="HiGHS", node_limit=1)
        np.testing.assert_array_equal(again.scores(P), scores)
        assert again.report.hit_limit > 0
        y = np.array([3, 11, 16])
        np.testing.assert_array_equal(again.score_of(P, y), scores[np.arange(3), y])
        tau = float(np.median(scores))
        np.testing.assert_array_equal(again.sets(P, tau), scores <= tau)


def test_a_limit_in_time_withdraws_the_promise_in_words() -> None:
    P = np.full((1, 60), 1 / 60) + 1e-4 * np.random.default_rng(0).random((1, 60))
    with pytest.warns(UserWarning, match="coverage is not guaranteed.*node_limit"):
        Ilp(hard(60), solver="HiGHS", time_limit=1e-3).scores(P / P.sum())


@pytest.mark.parametrize("nodes", [0, -1, 1.5, True, "3"])
def test_a_limit_in_nodes_is_a_whole_number(nodes: Any) -> None:
    with pytest.raises(OracleError, match="node_limit must be a whole number"):
        Ilp(loss_of(1.0), node_limit=nodes)


@pytest.mark.slow
@given(losses(), st.integers(0, 2**32 - 1))
def test_a_named_solver_proves_nothing_false(loss: udcp.Loss, seed: int) -> None:
    """Two of 50,000 such specs have made a presolve cut off the optimum."""
    check(loss, np.random.default_rng(seed), lambda one: one)


@pytest.mark.slow
@given(losses(), st.integers(0, 2**32 - 1), st.sampled_from([1e9, 1e-8]))
def test_a_named_solver_proves_nothing_false_of_any_scale(loss: udcp.Loss, seed: int, scale: float) -> None:
    def scaled(one: udcp.Loss) -> udcp.Loss:
        text = f"{one.source.text}\nloss scaled = {scale!r} * {one.name}"
        return udcp.loads(text, labels=one.labels, loss="scaled", files=one.files)

    check(loss, np.random.default_rng(seed), scaled)


def check(loss: udcp.Loss, rng: np.random.Generator, change: Callable[[udcp.Loss], udcp.Loss]) -> None:
    low, high = loss.facts.interval
    if loss.K > 8 or max(abs(low), abs(high)) > 1e6:
        return
    loss = change(loss)
    masks = all_masks(loss.K)
    costs = loss.batch(masks)
    exact = Exact(loss, loss.linear_model, "HiGHS", canonical=False)
    for p in rng.dirichlet(np.ones(loss.K), 3):
        found = exact.cheapest(Tally(), p, 0.6, np.zeros(loss.K, dtype=bool))
        fits = np.array([math.fsum([*p[m], -0.6]) >= 0 for m in masks])
        least = costs[fits].min()
        if found.proved:
            assert found.cost <= least + 1e-7 * max(abs(least), np.abs(costs).max())
