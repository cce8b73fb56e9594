"""The hull over prices, by integer programs, against brute force over all sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from tests.specs import TWELVE
from tests.udcp_solvers.brute_force import price_scores as brute_price_scores
from udcp_dsl.check import GeneratedSpec, specs
from udcp_solvers.ilp import Ilp


@given(specs(max_labels=6), st.integers(0, 10**6), st.booleans())
def test_prices_are_those_of_the_hull(spec: GeneratedSpec, seed: int, ties: bool) -> None:
    loss = spec.compile()
    rng = np.random.default_rng(seed)
    p = rng.multinomial(16, np.full(loss.K, 1 / loss.K)) / 16 if ties else rng.dirichlet(np.full(loss.K, 0.5))
    oracle = Ilp(loss, program="price", canonical=True)
    np.testing.assert_allclose(oracle.scores(p[None])[0], brute_price_scores(loss, p.tolist()), rtol=1e-9, atol=1e-9)
    assert oracle.report.proved == 1


@pytest.mark.slow
def test_prices_with_cbc() -> None:
    loss = TWELVE
    p = np.random.default_rng(2).dirichlet(np.full(12, 0.4))
    scores = Ilp(loss, program="price", solver="CBC").scores(p[None])[0]
    np.testing.assert_allclose(scores, brute_price_scores(loss, p.tolist()), rtol=1e-9)


def test_prices_keep_their_digits_where_labels_weigh_next_to_nothing() -> None:
    loss = udcp.loads("labels 0..5  category C {0..2}  loss l = 3 * any(C) + size + 2 * any({3, 4})")
    p = np.array([0.6, 0.4, 1e-12, 1e-20, 1e-100, 1e-300])
    oracle = Ilp(loss, program="price")
    np.testing.assert_allclose(oracle.scores(p[None])[0], brute_price_scores(loss, p.tolist()), rtol=1e-12)
    assert oracle.report.proved == 1


def test_masses_below_what_a_solver_sees_do_not_end_in_a_division_by_zero() -> None:
    """Corners of the hull that differ by such a mass alone come to one set when ties are settled."""
    loss = udcp.loads("labels 0..15  category C { 0, 1 }  category D { 2..9 }  loss l = all(C) + 0.5 * all(D) + size")
    p = np.where(np.arange(16) < 4, 0.25, 2.5e-31)[None, :]
    scores = Ilp(loss, program="price").scores(p)
    assert np.isfinite(scores[0, :4]).all()
    assert not np.isnan(scores).any()
