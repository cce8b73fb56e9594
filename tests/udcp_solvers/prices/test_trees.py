"""Prices of tree diameters with laminar parts: against brute force, and balls together against one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.udcp_solvers.prices.price_losses import TREE, assert_priced_by, assert_prices, rows
from udcp_dsl.check import all_masks, assert_faces
from udcp_solvers.price import Price
from udcp_solvers.prices.regions import runs_of, tree_of
from udcp_solvers.prices.trees import TreePrices

if TYPE_CHECKING:
    from tests.conftest import Sizes


@pytest.mark.parametrize("text", TREE)
def test_scores_are_those_of_brute_force(text: str, sizes: Sizes) -> None:
    assert_priced_by(TreePrices, text, sizes.cases)


def trees(labels: list[str], depth: int) -> st.SearchStrategy[str]:
    """Nodes in place over the labels, leaves at any depth."""
    if len(labels) == 1 or depth == 0:
        return st.just(", ".join(labels))

    def nested(cuts: set[int]) -> st.SearchStrategy[str]:
        ends = [0, *sorted(cuts), len(labels)]
        parts = [labels[a:b] for a, b in pairwise(ends)]
        inner = [st.one_of(st.just(x[0]), st.just(f"n{x[0]} {{ {x[0]} }}")) if len(x) == 1 else named(x) for x in parts]
        return st.tuples(*inner).map(", ".join)

    def named(part: list[str]) -> st.SearchStrategy[str]:
        return trees(part, depth - 1).map(lambda text: f"n{part[0]} {{ {text} }}")

    return st.sets(st.integers(1, len(labels) - 1), max_size=3).flatmap(nested)


@st.composite
def tree_losses(draw: st.DrawFn) -> udcp.Loss:
    """Diameters of uneven trees with laminar parts; costs are dyadic, so that sums in any order are the same."""
    labels = draw(st.permutations("abcdef"))
    costs = [f"{y}: {draw(st.sampled_from((0, 0.125, 0.25, 0.5, 1, -0.25)))}" for y in labels]
    terms = ["diameter(h)"]
    terms += draw(
        st.lists(st.sampled_from(["sum(k)", "0.125 * size", "count(h.level(1))", "any({ a, b, c })"]), unique=True)
    )
    text = " + ".join(f"{draw(st.sampled_from((0.25, 1, 2)))} * {term}" for term in terms)
    return udcp.loads(
        f"labels {{ a, b, c, d, e, f }} hierarchy h {{ {draw(trees(list(labels), 3))} }} "
        f"costs k {{ {', '.join(costs)} }} loss l = {text}"
    )


@given(tree_losses(), st.integers(0, 1000))
def test_generated_trees(loss: udcp.Loss, seed: int) -> None:
    assert_prices(udcp.make_oracle("price", loss), rows(loss.K, seed, 6))


@pytest.mark.parametrize(
    ("text", "p", "expected"),
    [
        ("diameter(h) + any({ b, c })", [1, 1e-320, 2e-308], [0, np.inf, np.inf]),  # prices beyond all floats
        ("diameter(h) + size", [1, 1e-300, 0], [1, 4e300, np.inf]),
        ("diameter(even)", [1e-302, 1, 0], [2e302, 0, np.inf]),
        ("0.25 * diameter(even) + sum(k)", [0.75, 0.25, 2.7e-36], [0.75, 0.5, 0]),  # free, though so unlikely
    ],
)
def test_extreme_probabilities_on_trees(text: str, p: list[float], expected: list[float]) -> None:
    loss = udcp.loads(
        "labels { a, b, c } hierarchy h { n { b, c }, a } hierarchy even { a, b, c } "
        f"costs k {{ a: 0.5, b: 0.125, c: 0 }} loss l = {text}"
    )
    oracle = Price(loss)
    assert isinstance(oracle._prices, TreePrices)
    P = np.array([p] * 3)
    np.testing.assert_allclose(oracle.scores(P), [expected] * 3, rtol=1e-15)
    assert_faces(oracle, P, seed=0)


@given(trees(list("abcdefgh"), 4))
def test_regions_are_the_widest_balls(nodes: str) -> None:
    """Each has its diameter, no two are the same, and every ball around a label's pair lies in one as wide."""
    loss = udcp.loads(f"labels {{ a, b, c, d, e, f, g, h }} hierarchy t {{ {nodes} }} loss l = diameter(t)")
    assert loss.form is not None
    ((_, metric),) = loss.form.diameters.values()
    tree = tree_of(metric)
    apart = metric.edges(np.arange(loss.K))
    found = {frozenset({y}): 0 for y in range(loss.K)}
    runs = np.empty((len(tree.nodes), 2), np.int64)
    for b, ball in enumerate(tree.balls):
        listed = [y for low, high in runs[: runs_of(b, tree, runs)] for y in tree.labels[low:high].tolist()]
        members = frozenset(listed)
        assert len(members) == len(listed) == ball.label_count
        assert members not in found
        found[members] = int(ball.diameter)
        assert apart[np.ix_(list(members), list(members))].max() == found[members]
    for mask in all_masks(loss.K)[1:]:
        S = np.flatnonzero(mask)
        diameter = apart[np.ix_(S, S)].max()
        assert any(set(S.tolist()) <= members and wide == diameter for members, wide in found.items())


@pytest.mark.parametrize("text", ["size", "count(h.level(1)) + 0.5 * count(h.level(2)) + 0.1 * size", "sum(k)"])
def test_values_of_all_balls_together_and_one_by_one(text: str, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def nodes(labels: list[int], depth: int) -> str:
        if len(labels) < 3 or depth == 4 or rng.random() < 0.15:
            return ", ".join(map(str, labels))
        ends = [0, *sorted(rng.choice(np.arange(1, len(labels)), 2, replace=False).tolist()), len(labels)]
        return ", ".join(f"n{depth}x{labels[a]} {{ {nodes(labels[a:b], depth + 1)} }}" for a, b in pairwise(ends))

    K = 60
    costs = ", ".join(f"{y}: {cost:.2f}" for y, cost in enumerate(rng.normal(0.2, 0.2, K)))
    tree = f"top {{ {nodes(rng.permutation(K - 1).tolist(), 0)} }}, {K - 1}"
    loss = udcp.loads(f"labels 0..{K - 1} hierarchy h {{ {tree} }} costs k {{ {costs} }} loss l = diameter(h) + {text}")
    make = TreePrices.of(loss)
    assert make is not None
    together, apart = make(), make()
    assert isinstance(together, TreePrices)
    assert isinstance(apart, TreePrices)
    assert together._model.shared
    apart._model = apart._model._replace(shared=False)
    P = np.concatenate([rows(K, seed, 24), rng.dirichlet(np.full(K, 0.1), 20)])
    P = P[(P >= 0).all(axis=1)]  # the dyadic rows are for fewer labels
    np.testing.assert_array_equal(together.scores(P), apart.scores(P))
    assert_faces(Price(loss), P, seed=seed)


def test_labels_of_one_cost_are_ties_whether_or_not_they_share_a_category() -> None:
    """Label 0 is a category of its own, so that its two costs are one number, which was rounded."""
    loss = udcp.loads("""
    labels 0..2
    hierarchy h { n1 { 0 }, n2 { 1, 2 } }
    loss l = 2 * diameter(h) + 0.03 * size + 1.1 * count(h.level(1))
    """)
    oracle = Price(loss)
    assert isinstance(oracle._prices, TreePrices)
    assert_prices(oracle, np.array([[0.4, 0.4, 0.2], [0.3, 0.4, 0.3], [0.4, 0.2, 0.4]]))
    assert oracle.scores(np.array([[0.4, 0.4, 0.2]])).argmin() == 0
