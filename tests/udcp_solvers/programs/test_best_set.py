"""`Price.explain` names the labels that left: those of the union that the exact S_mu of the same price lacks."""

from __future__ import annotations

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.testing.brute import hull
from udcp_solvers.price import Price
from udcp_solvers.programs import best_set

DECLARED = """
labels 0..6
hierarchy tree { x { a { 0, 1 }, b { 2, 3 } }, y { c { 4, 5 }, 6 } }
costs c { 0: 0.1, 1: 2, 2: 0.7, 3: 0.2, 4: 1, 5: 0.4, 6: 3 }
"""
LOSSES = ["diameter(tree)", "diameter(tree) + 0.1 * size", "0.3 * size ^ 2 + sum(c)", "radius(tree) + 0.2 * sum(c)"]


# The heaviest label is far from the heaviest pair, so that it may have to leave; and rows of any kind.
TORN = np.array([0.3, 0.02, 0.02, 0.02, 0.3, 0.3, 0.04])


@pytest.mark.parametrize("most", [best_set.MOST, 0], ids=["all sets", "integer programs"])
@pytest.mark.parametrize("text", LOSSES)
def test_left_is_what_the_best_set_lacks(text: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_set, "MOST", most)
    loss = udcp.loads(f"{DECLARED} loss l = {text}")
    oracle = Price(loss)
    noise = np.random.default_rng(0).dirichlet(np.full(loss.K, 2.0), size=8)
    seen = 0
    for p in [*noise, *(0.9 * TORN + 0.1 * noise)]:
        sets = hull(loss, p.tolist())
        for step in oracle.explain(p):
            best = [S for price, S in sets if float(price) <= step.price * (1 + 1e-12)][-1]
            expected = set(step.labels) - {loss.labels[y] for y in best}
            assert set(step.left) == expected
            seen += bool(expected)
    assert seen > 0


@pytest.mark.parametrize("text", ["size + sum(c)", "sqrt(size)", "any(tree.node(a)) + size"])
def test_nothing_leaves_where_the_loss_is_submodular(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(best_set.BestSets, "at")  # not even asked for
    oracle = Price(udcp.loads(f"{DECLARED} loss l = {text}"))
    for p in np.random.default_rng(1).dirichlet(np.ones(7), size=50):
        assert not any(step.left for step in oracle.explain(p))
