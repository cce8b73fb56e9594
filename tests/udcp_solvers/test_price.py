"""The price oracle against the lower hull of all 2^K sets in exact rationals, class by class."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.testing import all_masks, assert_faces, losses, probabilities
from udcp_dsl.testing.brute import hull, price_scores
from udcp_solvers.price import Price
from udcp_solvers.prices.cuts import CutPrices
from udcp_solvers.prices.enumeration import Enumeration
from udcp_solvers.prices.laminar import LaminarPrices
from udcp_solvers.prices.regions import runs_of, tree_of
from udcp_solvers.prices.sizes import SizePrices
from udcp_solvers.prices.trees import TreePrices
from udcp_solvers.prices.wholes import WholePrices
from udcp_solvers.search.prices import SearchPrices

if TYPE_CHECKING:
    from tests.conftest import Sizes

DECLARED = """
labels { a, b, c, d, e, f, g }
hierarchy h { x { a, b, q { c, d } }, y { e, f }, g }
hierarchy u { x { p1 { a, b }, p2 { c, d } }, y { p3 { e, f }, p4 { g } } }
hierarchy deep { a, x { b, y { c, z { d, w { e, f, v { g } } } } } }
costs k { a: 1, b: 0.5, c: 0.25, d: 0, e: 2, f: 0.5, g: 0.75 }
costs s { a: 1, b: 0.5, c: -0.25, d: 0, e: 2, f: -0.5, g: 0.75 }
categories over { m: { a, b, c }, n: { c, d, e }, o: { e, f, a }, r: { g, d } }
costs w of over { m: 1, n: 0.5, o: 0.25, r: 2 }
distance dense = path(h, edge: 1.5)
"""

SEPARABLE = ["size", "sum(k)", "sum(s)", "sum(k) + 0.25 * size(h.node(x)) - 2", "- size", "0"]
LAMINAR = [
    "count(h.level(1)) + 0.5 * size",
    "count(h.level(1))",
    "2 * count(h.level(1)) + 0.5 * count(h.level(2)) + sum(s)",
    "any({ a, b, c }) + any({ c }) + any({ a, b, c, d, e }) + sum(s)",
    "sum(s) + 0.25 * any({ a, b, c, d, e, f, g })",
    "max(k) + 0.125 * size",
]
TREE = [
    "diameter(h)",
    "diameter(u)",
    "diameter(deep)",
    "diameter(u) + 0.125 * size",
    "diameter(h) + 0.125 * size",
    "diameter(deep) + 0.25 * size",
    "0.5 * diameter(u) + sum(k) + count(u.level(1))",
    "2 * diameter(h) + sum(s) + any({ a, e, f }) + 0.5 * any({ e, f })",
    "0.25 * diameter(u) + sum(s) + count(u.level(1)) + 0.5 * count(u.level(2))",
    "diameter(deep) + sum(s) + 0.5 * any({ a, g }) + 0.25 * any({ b, c, d })",
]
OF_SIZE = [
    "size ^ 2",
    "sqrt(size)",
    "log1p(size) - 0.25 * size",
    "max(size - 3, 0) ^ 2 + (if size >= 2 then 1 else 0)",
    "if size == 3 then 0 else 2",
    "0.5 * size ^ 2 + sum(k)",
    "sqrt(size) + sum(s)",
    "2 * min(size, 3) + sum(s) - (if size >= 5 then 1.5 else 0)",
    "(if size >= 2 and size <= 4 then 1 else 0) + sum(k)",
]
CUTS = [
    "count(over) + 0.25 * size",
    "count(over, w)",
    "count(over) + sum(s)",
    "min(count(over), 2) + 0.125 * size",
    "sqrt(count(over) + 1) + sum(k)",
    "sqrt(size({ a, b, c, d })) + count(over, w) + sum(s)",
    "log1p(size) + any({ a, b }) + any({ b, c, d })",
    "min(sum(k) + any({ a, g }), 1.5) + 0.125 * size",
    "max(k) + count(over)",
]
WHOLES = [
    "nodes(h)",
    "nodes(h) + 0.25 * size",
    "nodes(h) + sum(s)",
    "0.5 * nodes(h) + count(h.level(1)) + sum(k)",
    "size - 0.5 * all({ a, b, c })",
]
OTHER = [
    "within({ a, b })",
    "spread(h) * 0.25",
    "radius(h) + min(k)",
    "max(size - 3, 0) ^ 2 - count(over)",
    "if any({ a, b }) and any({ e }) then 3 else size",
]
CLASSES = {
    "separable": SEPARABLE,
    "laminar": LAMINAR,
    "tree": TREE,
    "wholes": WHOLES,
    "of_size": OF_SIZE,
    "cuts": CUTS,
    "other": OTHER,
}


# The class that must answer each class of losses.
WAYS = {
    "separable": LaminarPrices,
    "laminar": LaminarPrices,
    "tree": TreePrices,
    "wholes": WholePrices,
    "of_size": SizePrices,
    "cuts": CutPrices,
    "other": Enumeration,
}


def loss_of(text: str) -> udcp.Loss:
    return udcp.loads(f"{DECLARED} loss l = {text}")


class Remembered:
    """A loss whose values, by the naive interpreter, are computed once."""

    def __init__(self, loss: udcp.Loss) -> None:
        self.K = loss.K
        self.interpret_positions = cache(loss.interpret_positions)


def rows(K: int, seed: int, n: int) -> np.ndarray:
    """Distributions with zeros, ones and ties, dyadic and decimal, and saturated ones."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        p = np.zeros(K)
        match i % 6:
            case 0:
                p = rng.dirichlet(np.full(K, 0.5))
            case 1:
                p = rng.integers(0, 4, K) + (np.arange(K) == 0)
                p = p / p.sum()
            case 2:
                p[rng.integers(K)] = 1.0
            case 3:
                p[1:] = rng.integers(0, 3, K - 1) / 16
                p[0] = 1 - p[1:].sum()
            case 4:
                p = rng.choice([0.05, 0.1, 0.15, 0.2, 0.3, 0.0], K)
                p[0] = 1 - p[1:].sum()
                p = np.abs(p) / np.abs(p).sum()
            case 5:
                p = rng.choice([1e-30, 3e-30, 2e-12, 0.0], K)
                p[rng.integers(K)] = 1.0
        found.append(p)
    return np.array(found)


def assert_prices(oracle: udcp.Oracle, *batches: np.ndarray, seeds: int = 1) -> None:
    """Scores as by brute force, and three faces that agree to the last bit."""
    remembered: Any = Remembered(oracle.loss)
    for P in batches:
        scores = oracle.scores(P)
        for i, p in enumerate(P):
            expected = np.array(price_scores(remembered, p))
            np.testing.assert_allclose(scores[i], expected, rtol=1e-12, atol=0, err_msg=f"p = {p.tolist()}")
        for seed in range(seeds):
            assert_faces(oracle, P, seed=seed)


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in CLASSES.items() for text in texts])
def test_scores_are_those_of_brute_force(kind: str, text: str, sizes: Sizes) -> None:
    """On some rows of each kind in double precision, and half as many in single."""
    oracle = Price(loss_of(text))
    assert isinstance(oracle._prices, WAYS[kind])
    K, single = oracle.loss.K, rows(oracle.loss.K, 1, 3 * sizes.cases)
    assert_prices(oracle, rows(K, 0, 6 * sizes.cases), single.astype(np.float32))


@pytest.mark.parametrize("text", [TREE[0], TREE[3], LAMINAR[2], OF_SIZE[5], CUTS[5]])
def test_enumeration_agrees(text: str) -> None:
    """The way for any loss of few labels, where a quicker one answers."""
    loss = loss_of(text)
    P = rows(loss.K, 7, 60)
    np.testing.assert_allclose(Enumeration(loss).scores(P), Price(loss).scores(P), rtol=1e-12, atol=0)


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
    tree = tree_of(metric.hierarchy)
    apart = metric.edges(np.arange(loss.K))
    found = {frozenset({y}): 0 for y in range(loss.K)}
    runs = np.empty((len(tree.nodes), 2), np.int64)
    for b, ball in enumerate(tree.balls):
        listed = [y for low, high in runs[: runs_of(b, tree, runs)] for y in tree.labels[low:high].tolist()]
        members = frozenset(listed)
        assert len(members) == len(listed) == ball.many
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
    assert together._areas.shared
    apart._areas = apart._areas._replace(shared=False)
    P = np.concatenate([rows(K, seed, 24), rng.dirichlet(np.full(K, 0.1), 20)])
    P = P[(P >= 0).all(axis=1)]  # the dyadic rows are for fewer labels
    np.testing.assert_array_equal(together.scores(P), apart.scores(P))
    assert_faces(Price(loss), P, seed=seed)


@given(st.data())
def test_generated_losses(data: st.DataObject) -> None:
    loss = data.draw(losses(max_labels=6))
    P = data.draw(probabilities(loss.K, max_rows=3))
    assert_prices(udcp.make_oracle("price", loss), np.asarray(P, dtype=np.float64))


@pytest.mark.parametrize("text", [*SEPARABLE, *LAMINAR, *CUTS, "sqrt(size) + sum(s)"])
def test_minimisers_of_submodular_losses_are_nested(text: str) -> None:
    loss = loss_of(text)
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


def test_separable_prices_are_ratios_to_the_last_bit() -> None:
    loss = loss_of("sum(k) + 0.1 * size")
    P = rows(loss.K, 3, 60)
    price, ratio = (udcp.make_oracle(name, loss) for name in ("price", "ratio"))
    np.testing.assert_array_equal(price.scores(P), ratio.scores(P))


def test_thresholds_by_class() -> None:
    loss = loss_of("count(over) + 0.5 * size")
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
