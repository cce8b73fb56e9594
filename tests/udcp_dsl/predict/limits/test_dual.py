"""The search for multipliers, on problems whose solution is known: by formula, or by a linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from udcp_dsl.predict.stages.dual import find_multipliers

NEAR, ONE = np.array([1e-6]), np.ones(1)


def test_a_root_that_is_known() -> None:
    found = find_multipliers(lambda nu: np.array([1 / (1 + nu[0])]), np.array([0.25]), NEAR, ONE)
    assert found.multipliers[0] == pytest.approx(3, rel=2e-3)
    assert 0.249 < found.means[0] <= 0.25
    assert not found.unreachable


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_a_scale_that_is_far_off(scale: float) -> None:
    found = find_multipliers(lambda nu: np.array([1 / (1 + nu[0])]), np.array([0.25]), NEAR, scale * ONE)
    assert found.multipliers[0] == pytest.approx(3, rel=2e-3)


def test_a_limit_that_holds_has_the_multiplier_0_and_is_asked_once() -> None:
    asked = []

    def means(nu: tuple[float, ...]) -> np.ndarray:
        asked.append(nu)
        return np.array([0.2])

    assert find_multipliers(means, np.array([0.25]), NEAR, ONE).multipliers == (0.0,)
    assert asked == [(0.0,)]


def test_of_two_sides_of_a_step_the_one_on_which_the_limit_holds() -> None:
    found = find_multipliers(lambda nu: np.array([0.5 if nu[0] < 2 else 0.1]), np.array([0.3]), NEAR, ONE)
    assert found.multipliers[0] == pytest.approx(2, rel=2e-3)
    assert found.multipliers[0] >= 2
    assert found.means == (0.1,)


def test_what_cannot_be_reached_and_the_least_that_can() -> None:
    found = find_multipliers(lambda nu: np.array([0.3 + 1 / (1 + nu[0])]), np.array([0.25]), NEAR, ONE)
    assert found.unreachable == (0,)
    assert found.least[0] == pytest.approx(0.3, abs=1e-4)


def test_two_limits_of_which_each_can_be_reached_and_not_both() -> None:
    """A share x of the rows is on one side, the others are on the other."""

    def means(nu: tuple[float, ...]) -> np.ndarray:
        x = 1 / (1 + np.exp(np.clip(nu[0] - nu[1], -50, 50)))
        return np.array([x, 1 - x])

    found = find_multipliers(means, np.array([0.4, 0.4]), np.full(2, 1e-6), np.ones(2))
    assert found.unreachable
    assert not find_multipliers(means, np.array([0.62, 0.4]), np.full(2, 1e-6), np.ones(2)).unreachable


def test_limits_together_cost_what_the_linear_program_says(seed: int) -> None:
    """Rows choose one of six sets each, by cost and multipliers; a linear program may mix sets."""
    rng = np.random.default_rng(seed)
    n, sets, J = 400, 6, 1 + seed % 3
    L, E = rng.random((n, sets)), rng.random((n, sets, J)) * (rng.random((n, sets, J)) < 0.7)
    rows = np.arange(n)

    def chosen(nu: tuple[float, ...]) -> np.ndarray:
        return (L + E @ np.array(nu)).argmin(axis=1)

    free = E[rows, chosen((0.0,) * J)].mean(axis=0)
    at_most = free * rng.uniform(0.55, 1.2, J)
    near = np.full(J, 1e-3)
    found = find_multipliers(lambda nu: E[rows, chosen(nu)].mean(axis=0), at_most, near, np.ones(J))
    best = linprog(
        L.ravel() / n,
        A_ub=np.moveaxis(E, 2, 0).reshape(J, -1) / n,
        b_ub=at_most,
        A_eq=np.repeat(np.eye(n), sets, axis=1),
        b_eq=np.ones(n),
    )
    assert best.success
    assert not found.unreachable
    means, nu = np.array(found.means), np.array(found.multipliers)
    assert (means <= at_most + 4 * near).all()
    assert ((nu == 0) | (means >= at_most - 4 * near - 1 / n)).all()  # complementary slackness
    assert L[rows, chosen(found.multipliers)].mean() == pytest.approx(best.fun, abs=0.01)
    assert nu == pytest.approx(-best.ineqlin.marginals, abs=0.05)


@pytest.mark.parametrize("coupling", [0.8, -0.7])
def test_limits_that_bear_on_each_other(coupling: float) -> None:
    """The means fall linearly, and each multiplier moves both of them."""
    H, free = np.array([[1.0, coupling], [coupling, 1.0]]), np.array([1.0, 0.9])
    found = find_multipliers(lambda nu: free - H @ np.array(nu), np.zeros(2), np.full(2, 1e-4), np.ones(2))
    assert found.multipliers == pytest.approx(np.linalg.solve(H, free), abs=0.01)
    assert not found.unreachable
