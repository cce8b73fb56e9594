"""Rows of a loss with inputs are scored together, with the bits of the oracle of each row's own loss."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.diagnostics import OracleError
from udcp_dsl.prediction.oracle import AnchoredOracle, Oracle
from udcp_dsl.prediction.stages import oracle_by_row
from udcp_dsl.prediction.stages.oracle_by_row import OracleByRow
from udcp_dsl.testing.generated.row_inputs import row_inputs, specs_with_inputs
from udcp_solvers import price

OPTIONS: dict[str, dict[str, Any]] = {"penalized": {"lam": 0.1}}
ORACLES = ("base", "lac", "raps", "penalized", "ratio", "greedy", "price")
_SLOWNESS = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
default_run = settings(max_examples=25, deadline=None, suppress_health_check=_SLOWNESS)
slow_run = settings(max_examples=1500, deadline=None, suppress_health_check=_SLOWNESS)


def rows(K: int, n: int, seed: int) -> Any:
    """Rows with ties and zeros among them."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.6), n)
    P[: n // 3] = np.eye(K)[rng.integers(0, K, n // 3)] * 0.5 + 0.5 / K
    return P


def together(loss: udcp.Loss, name: str) -> OracleByRow | None:
    try:
        made = udcp.make_oracle(name, loss, **OPTIONS.get(name, {}))
    except OracleError:
        return None
    return made if isinstance(made, OracleByRow) else None


def assert_bits(loss: udcp.Loss, name: str, inputs: Any, P: Any, seed: int) -> int:
    """All faces of the rows together against the oracle of each row's own loss; how many rows were scored together."""
    made = together(loss, name)
    if made is None:
        return 0
    n, K = P.shape
    checked = loss.inputs_of(inputs, n)
    assert checked is not None
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    many = made.with_inputs(checked)
    assert isinstance(many, OracleByRow)
    singles = [udcp.make_oracle(name, loss._at(checked.row(i)), **OPTIONS.get(name, {})) for i in range(n)]
    assert_faces(many, singles, P, y)
    if isinstance(many, AnchoredOracle):
        anchors = np.where(rng.random(n) < 0.2, np.nan, rng.uniform(0, 6, n))
        anchored = [
            one.anchored(anchors[i : i + 1]) for i, one in enumerate(singles) if isinstance(one, AnchoredOracle)
        ]
        assert_faces(many.anchored(anchors), anchored, P, y)
        mu = rng.uniform(0, 6, n)
        best = [one.best(P[i : i + 1], mu[i : i + 1])[0] for i, one in enumerate(anchored)]
        np.testing.assert_array_equal(many.best(P, mu), best)
    return sum(len(some) for some, oracle in many._made() if len(some) > 1 and oracle is not None)


def assert_faces(many: Oracle, singles: Any, P: Any, y: Any) -> None:
    scores = np.array([one.scores(P[i : i + 1])[0] for i, one in enumerate(singles)])
    np.testing.assert_array_equal(many.scores(P), scores)
    np.testing.assert_array_equal(many.score_of(P, y), scores[np.arange(len(P)), y])
    tau = float(np.median(scores[np.isfinite(scores)])) if np.isfinite(scores).any() else 0.0
    np.testing.assert_array_equal(many.sets(P, tau), scores <= tau)
    np.testing.assert_array_equal(many.first(P), [one.first(P[i : i + 1])[0] for i, one in enumerate(singles)])


def check(spec: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_by_row, "_FEW", 2)
    loss = spec.compile()
    inputs, P = row_inputs(loss, 10, seed), rows(loss.K, 10, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ORACLES:
            assert_bits(loss, name, inputs, P, seed)
        monkeypatch.setattr(price, "_FEW", 0)  # by the search, where all sets of few labels were looked at
        assert_bits(loss, "price", inputs, P, seed)
        monkeypatch.setattr(price, "_FEW", 10)


@default_run
@given(spec=specs_with_inputs(max_labels=5, max_depth=3, max_losses=1), seed=st.integers(0, 99))
def test_rows_together_have_the_bits_of_rows_alone(spec: Any, seed: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(spec, seed, monkeypatch)


@pytest.mark.slow
@slow_run
@given(spec=specs_with_inputs(), seed=st.integers(0, 99))
def test_many_more_rows_together_have_the_bits_of_rows_alone(spec: Any, seed: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(spec, seed, monkeypatch)
