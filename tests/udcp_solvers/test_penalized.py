"""`penalized` against its formula, its paths and faces against one another."""

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

from tests.udcp_solvers.greedy_orders.exact_losses import EXACT, exact_loss
from udcp_dsl.check import assert_faces, losses, probabilities
from udcp_dsl.check.oracles import own_share, penalized
from udcp_dsl.check.samples import hard_rows
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.loss import Loss
from udcp_solvers.base import Base
from udcp_solvers.penalized import Penalized, paths

Array = NDArray[Any]
MASSES = ("before", "through", "random")


@pytest.mark.parametrize("body", EXACT)
@given(P=probabilities(7), lam=st.sampled_from([0.0, 0.001, 0.1, 10.0]), mass=st.sampled_from(MASSES))
def test_the_score_is_that_of_base_and_lam_times_the_cost(body: str, P: Array, lam: float, mass: str) -> None:
    oracle = Penalized(exact_loss(body), lam=lam, mass=mass)
    assert oracle.scores(P).tolist() == [penalized(oracle.loss, row, oracle.options) for row in P]


@given(data=st.data())
def test_with_no_weight_on_the_cost_it_is_base(data: st.DataObject) -> None:
    loss = data.draw(losses(max_depth=2))
    P = data.draw(probabilities(loss.K))
    for mass in MASSES:
        assert (Penalized(loss, lam=0, mass=mass).scores(P) == Base(loss, mass=mass).scores(P)).all()


def assert_paths_and_faces_agree(loss: Loss, P: Array, lam: float, rng: np.random.Generator) -> None:
    n, K = P.shape
    oracle = Penalized(loss, lam=lam, mass=str(rng.choice(MASSES)))
    scores = oracle.scores(P)
    rows: Array = np.ascontiguousarray(P, dtype=np.float64 if P.dtype == np.float64 else np.float32)
    shares = np.array([own_share(row, oracle.options) for row in rows])
    for name, path in paths(loss, lam).items():
        orders, found, counts = path(rows, shares, np.full(n, -1), np.full(n, np.inf))
        assert (found == np.take_along_axis(scores, orders, axis=1)).all(), name
        assert (counts == K).all()
        y: Array = np.asarray(rng.integers(K, size=n))
        tau = rng.choice(scores.ravel(), size=n)
        orders, found, counts = path(rows, shares, y, np.full(n, np.inf))
        assert (orders[np.arange(n), counts - 1] == y).all()
        assert (found[np.arange(n), counts - 1] == scores[np.arange(n), y]).all(), name
        orders, found, counts = path(rows, shares, np.full(n, -1), tau)
        assert ((counts == K) | (found[np.arange(n), counts - 1] > tau)).all(), name
    # Along falling p scores rise, so that sets are prefixes.
    falling = np.argsort(-P.astype(np.float64), axis=1, kind="stable")
    assert (np.diff(np.take_along_axis(scores, falling, axis=1)) > 0).all()
    assert_faces(oracle, P, seed=int(rng.integers(9)))


@given(data=st.data(), lam=st.sampled_from([0.001, 0.3, 10.0]))
def test_paths_and_faces_agree_on_generated_specs(data: st.DataObject, lam: float) -> None:
    loss = data.draw(losses())
    P = data.draw(probabilities(loss.K))
    assert_paths_and_faces_agree(loss, P, lam, np.random.default_rng(data.draw(st.integers(0, 9))))


def test_paths_and_faces_agree_with_many_labels(
    seed: int, random_loss: Callable[[np.random.Generator, int], Loss]
) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(40, 140))
    assert_paths_and_faces_agree(random_loss(rng, K), hard_rows(rng, 6, K), float(rng.choice([0.01, 0.3])), rng)


def test_without_lam_it_says_who_tunes_it() -> None:
    loss = exact_loss("size")
    oracle = Penalized(loss)
    assert oracle.options == {"lam": None, "mass": "before"}
    P = np.full((2, 7), 1 / 7)
    for use in (
        lambda: oracle.scores(P),
        lambda: oracle.score_of(P, [0, 1]),
        lambda: oracle.sets(P, 0.0),
        lambda: oracle.sets(P, np.zeros((1, 7))),
    ):
        with pytest.raises(OracleError, match="SetPredictor tunes it"):
            use()


@pytest.mark.parametrize("lam", [-1.0, math.inf, math.nan, "0.1", True])
def test_lam_must_be_a_number_from_0(lam: Any) -> None:
    with pytest.raises(OracleError, match="lam must be a finite number of at least 0"):
        Penalized(exact_loss("size"), lam=lam)


def test_no_true_label_enters_the_scores() -> None:
    """The authors' non-separable score takes the true label's row of the distance matrix, also for test points."""
    assert list(inspect.signature(Penalized.scores).parameters) == ["self", "P", "inputs"]
    assert list(inspect.signature(Penalized.sets).parameters) == ["self", "P", "tau", "inputs"]
