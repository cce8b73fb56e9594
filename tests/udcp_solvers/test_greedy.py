"""`greedy` against its formula, its paths against one another, its scores against rational arithmetic."""

from __future__ import annotations

import inspect
import io
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import udcp_dsl as udcp
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.loss import Loss
from udcp_dsl.testing import assert_faces, losses, probabilities
from udcp_dsl.testing.formulas import greedy_fault, greedy_order, order_scores, own_share
from udcp_dsl.testing.hard_rows import hard_rows
from udcp_solvers.greedy import Greedy, paths

Array = NDArray[Any]
MASSES = ("before", "through", "random")

DECLARED = """
labels { a, b, c, d, e, f, g }
hierarchy h { x { u { a, b }, v { c } }, y { d, e, w { f, g } } }
categories F { p: { a, c }, q: { b, d }, r: { e, f, g } }
categories O { p: { a, b, c, d }, q: { c, d, e }, r: { a, g } }
costs w of F { p: 0.5, q: 2, r: 1.25 }
category C { a, d, f }
costs k { a: 1, b: 0.5, c: 1, d: 2.25, e: 0, f: 0.5, g: 4 }
costs s { a: 1, b: -0.5, c: -1, d: 2.25, e: 0, f: 0.5, g: -4 }
distance d from "d.npy"
distance g of O from "g.csv"
actions u from "u.csv"
"""
# Binary fractions: every sum is exact, whatever its order, so that the formula has one value.
EXACT = [
    "size", "sum(k)", "sum(s)", "max(k)", "min(s)", "diameter(h)", "diameter(d)", "spread(h)", "radius(d)",
    "radius(h)", "count(F)", "count(F, w)", "count(O)", "count(O) + 0.25 * size", "any(C)", "all(C)", "within(C)",
    "4 * empty + size", "worst(u)", "count(h.level(1)) + 2 * count(h.level(2)) + 0.125 * size",
    "diameter(h) + sum(k) + count(F)", "diameter(d) + max(k) + 0.5 * count(O)", "size ^ 2 - 3 * size",
    "diameter(g)", "diameter(g) + sum(k) + count(F)", "diameter(g) + diameter(d) + diameter(h)",
    "5 * (any(C) and count(F) >= 2) + max(size - 2, 0)", "if any(C) then 3 else max(k)", "min(sum(k), 2)",
]  # fmt: skip


@cache
def exact_loss(body: str) -> Loss:
    rng = np.random.default_rng(7)
    distance = np.triu(rng.integers(1, 9, size=(7, 7)) / 2, 1)
    matrix = io.BytesIO()
    np.save(matrix, distance + distance.T)
    actions = "label,m,n\n" + "".join(f"{y},{rng.integers(8) / 4},{rng.integers(8) / 4}\n" for y in "abcdefg")
    apart = b"team,r,p,q\nq,2.5,1,0\np,3,0,1\nr,0,3,2.5\n"
    files = {"d.npy": matrix.getvalue(), "u.csv": actions.encode(), "g.csv": apart}
    return udcp.loads(f"{DECLARED} loss l = {body}", files=files)


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


@pytest.mark.parametrize("mass", MASSES)
@given(P=probabilities(7), body=st.sampled_from(EXACT))
def test_scores_are_minus_the_exact_mass_that_remains(mass: str, P: Array, body: str) -> None:
    loss = exact_loss(body)
    oracle = Greedy(loss, mass=mass)
    for row, found in zip(P, oracle.scores(P), strict=True):
        order = greedy_order(loss, row.astype(np.float64).tolist(), loss.facts.interval.hi, 1e-6)
        assert found.tolist() == order_scores(row, order, own_share(row, oracle.options))


def test_a_label_too_small_to_change_the_mass_still_has_its_place() -> None:
    loss = udcp.loads("labels { a, b, c, d, e }  category C { a, b, c }  loss l = any(C) + 0.25 * size")
    row = np.array([[0.5, 1e-40, 0.0, 0.25, 0.25]])
    scores = Greedy(loss).scores(row)
    assert scores.argsort(axis=1).tolist() == [[3, 4, 0, 1, 2]]
    assert np.sort(scores[0]).tolist() == [-1.0, -0.75, -0.5, -1e-40, 5e-300]
    through = Greedy(loss, mass="through").scores(row)
    assert np.sort(through[0]).tolist() == [-0.75, -0.5, -1e-40, 4e-300, 5e-300]
    tiny = np.array([[0.5, 1e-40, 1e-41, 0.25, 0.25]])
    loss = udcp.loads("labels { a, b, c, d, e }  category C { a, b, c }  loss l = 8 * (not within(C)) + 0.25 * size")
    steps = [np.nextafter(-0.5, 0), np.nextafter(np.nextafter(-0.5, 0), 0)]
    assert np.sort(Greedy(loss, mass="through").scores(tiny)[0])[:3].tolist() == [-0.5, *steps]
    assert np.sort(Greedy(loss).scores(tiny)[0])[:3].tolist() == [-1.0, -0.5, steps[0]]


def test_after_a_first_label_of_no_mass_the_order_goes_on_in_steps() -> None:
    """Of a row that sums to more than 1, too: there the second label leaves more than the 1 of the first."""
    loss = udcp.loads("labels { a, b, c }  category C { b, c }  loss l = 8 * any(C) + 0.25 * size")
    step = 2.0**-53
    for total in (1.0, 1.0 - 1e-9, 1.0 + 1e-9):
        scores = Greedy(loss).scores(np.array([[1e-40, total / 2, total / 2]]))[0]
        assert scores.tolist() == [-1.0, max(-total, step - 1.0), -total / 2]


@pytest.mark.parametrize("body", EXACT)
def test_no_set_is_empty_by_default(body: str) -> None:
    loss = exact_loss(body)
    P = np.random.default_rng(4).dirichlet(np.full(7, 0.1), size=60).astype(np.float32)
    oracle = Greedy(loss)
    assert (oracle.score_of(P, oracle.first(P)) == -1.0).all()
    assert oracle.sets(P, -1.0).sum(axis=1).tolist() == [1] * 60


def assert_distinct_faces(oracle: Greedy, P: Array, rng: np.random.Generator) -> None:
    assert_faces(oracle, P, seed=int(rng.integers(9)))
    assert all(len(set(row)) == P.shape[1] for row in oracle.scores(P).tolist())


@given(data=st.data())
def test_the_three_faces_agree_on_generated_specs(data: st.DataObject) -> None:
    loss = data.draw(losses())
    P = data.draw(probabilities(loss.K))
    mass = data.draw(st.sampled_from(MASSES))
    assert_distinct_faces(Greedy(loss, mass=mass), P, np.random.default_rng(data.draw(st.integers(0, 9))))


def test_the_three_faces_agree_with_many_labels(
    seed: int, random_loss: Callable[[np.random.Generator, int], Loss]
) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(50, 150))
    loss, P = random_loss(rng, K), hard_rows(rng, 6, K)
    for mass in MASSES:
        assert_distinct_faces(Greedy(loss, mass=mass), P, rng)


def test_the_label_whose_mass_meets_the_threshold_is_in() -> None:
    """The authors' code drops it."""
    loss = udcp.loads("loss l = size", labels=["a", "b", "c"])
    P = np.array([[0.5, 0.25, 0.25]])
    for mass, tau in (("through", -0.25), ("before", -0.5)):
        oracle = Greedy(loss, mass=mass)
        assert oracle.sets(P, tau).tolist() == [[True, True, False]]
        assert oracle.sets(P, np.nextafter(tau, -1)).tolist() == [[True, False, False]]


def test_no_true_label_enters_the_scores() -> None:
    """The authors' code takes the true label's row of the distance matrix, also for test points."""
    assert list(inspect.signature(Greedy.scores).parameters) == ["self", "P"]
    assert list(inspect.signature(Greedy.sets).parameters) == ["self", "P", "tau"]
    loss = exact_loss("diameter(d)")
    P = np.random.default_rng(0).dirichlet(np.ones(7), size=20)
    scores = Greedy(loss).scores(P)
    for y in range(7):
        assert (Greedy(loss).score_of(P, np.full(20, y)) == scores[:, y]).all()


def test_rows_do_not_depend_on_one_another() -> None:
    loss = exact_loss("count(O) + diameter(h) + 0.25 * size")
    P = np.random.default_rng(0).dirichlet(np.ones(7), size=12_000)
    scores = Greedy(loss).scores(P)
    assert (scores[7_000:7_003] == Greedy(loss).scores(P[7_000:7_003])).all()
    assert (scores[::-1] == Greedy(loss).scores(P[::-1])).all()
    assert Greedy(loss).scores(P[:0]).shape == (0, 7)


def test_options() -> None:
    loss = exact_loss("sum(k)")
    assert Greedy(loss).options == {"M": 9.25, "eps": 1e-6, "mass": "before"}
    drawn = {"M": 12.0, "eps": 0.5, "mass": "random", "seed": 7}
    assert Greedy(loss, M=12, eps=0.5, mass="random", seed=7).options == drawn
    with pytest.warns(UserWarning, match="M = 3 is below 9.25"):
        low = Greedy(loss, M=3)
    assert low.options["M"] == 3.0
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"M": math.inf}, "M must be a finite number"),
        ({"M": "3"}, "M must be a finite number"),
        ({"eps": 0.0}, "eps must be above 0"),
        ({"eps": math.nan}, "eps must be a finite number"),
        ({"eps": True}, "eps must be a finite number"),
        ({"mass": "after"}, "mass must be 'before', 'through' or 'random', not 'after'"),
    ]
    for options, message in wrong:
        with pytest.raises(OracleError, match=message):
            Greedy(loss, **options)


def test_where_every_set_costs_more_than_M_labels_come_by_falling_p() -> None:
    loss = exact_loss("diameter(d) + sum(k) + 20 * any({ a, b, c, d, e, f, g })")
    P = np.random.default_rng(0).dirichlet(np.ones(7), size=20)
    with pytest.warns(UserWarning, match="by falling p"):
        oracle = Greedy(loss, M=1.0)
    assert (oracle.scores(P).argsort(axis=1) == (-P).argsort(axis=1)).all()
