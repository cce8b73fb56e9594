"""The greedy oracle: its scores against rational arithmetic, its sets, its options. Its orders: greedy_orders."""

from __future__ import annotations

import inspect
import math
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
from udcp_dsl.check import assert_faces, losses, probabilities
from udcp_dsl.check.oracles import order_scores, own_share
from udcp_dsl.check.samples import hard_rows
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.loss import Loss
from udcp_solvers.greedy import Greedy

Array = NDArray[Any]
MASSES = ("before", "through", "random")


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
    assert list(inspect.signature(Greedy.scores).parameters) == ["self", "P", "inputs"]
    assert list(inspect.signature(Greedy.sets).parameters) == ["self", "P", "tau", "inputs"]
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
    with pytest.warns(UserWarning, match="by decreasing p"):
        oracle = Greedy(loss, M=1.0)
    assert (oracle.scores(P).argsort(axis=1) == (-P).argsort(axis=1)).all()
