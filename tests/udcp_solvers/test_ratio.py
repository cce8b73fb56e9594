"""`ratio` against its formula, its three faces against one another, and against all other sets of one coverage."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import udcp_dsl as udcp
from udcp_dsl.check import assert_faces, losses, probabilities
from udcp_dsl.check.oracles import ratio
from udcp_dsl.diagnostics import OracleError
from udcp_solvers.ratio import Ratio

Array = NDArray[Any]


@given(data=st.data())
def test_the_score_is_the_cost_of_a_label_over_its_probability(data: st.DataObject) -> None:
    K = data.draw(st.integers(1, 8))
    costs = data.draw(st.lists(st.sampled_from(["0", "0.1", "1", "2.5", "1e-300", "1e300"]), min_size=K, max_size=K))
    labels = [f"y{y}" for y in range(K)]
    listed = ", ".join(f"{y}: {c}" for y, c in zip(labels, costs, strict=True))
    loss = udcp.loads(f"costs c {{ {listed} }}  loss l = 3 + sum(c)", labels=labels)
    P = data.draw(probabilities(K))
    oracle = Ratio(loss)
    of_sum = udcp.loads(f"costs c {{ {listed} }}  loss l = sum(c)", labels=labels)  # 3 + 1e-300 is 3
    assert oracle.scores(P).tolist() == [ratio(of_sum, row, {}) for row in P.astype(np.float64)]
    assert_faces(oracle, P, seed=data.draw(st.integers(0, 9)))


def test_free_labels_and_labels_without_mass() -> None:
    loss = udcp.loads("labels { a, b, c, d }  costs c { a: 0, b: 0, c: 2, d: 2 }  loss l = sum(c)")
    P = np.array([[0.5, 0.0, 0.5, 0.0]])
    assert Ratio(loss).scores(P).tolist() == [[0.0, math.inf, 4.0, math.inf]]
    assert Ratio(loss).sets(P, 0.0).tolist() == [[True, False, False, False]]
    assert Ratio(loss).sets(P, math.inf).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_division_is_in_float64(dtype: type[np.floating[Any]]) -> None:
    loss = udcp.loads("labels { a, b, c }  costs k { default: 0.1 }  loss l = sum(k)")
    P = np.array([[0.1, 0.3, 0.6]], dtype=dtype)
    assert Ratio(loss).scores(P).tolist() == [[0.1 / float(p) for p in P[0]]]


@given(data=st.data())
def test_it_takes_generated_losses_that_are_separable_and_no_others(data: st.DataObject) -> None:
    loss = data.draw(losses(max_depth=3))
    nothing = loss.interpret_positions([])
    costs = [loss.interpret_positions([y]) - nothing for y in range(loss.K)]
    if not loss.facts.separable:
        with pytest.raises(OracleError, match="needs a separable loss"):
            Ratio(loss)
    elif min(costs) < -1e-9:
        with pytest.raises(OracleError, match="needs costs of at least 0"):
            Ratio(loss)
    elif min(costs) >= 0:
        scores = Ratio(loss).scores(np.full((1, loss.K), 1 / loss.K))
        assert scores[0].tolist() == pytest.approx([c * loss.K for c in costs], rel=1e-12, abs=1e-12)


def test_refusals_name_the_fact_its_reason_and_another_oracle() -> None:
    text = "labels { a, b }  category C { a, b }  costs k { a: 1, b: -0.5 }  "
    with pytest.raises(OracleError, match=r"separable is refuted for 'l': .*L\(.*'price'") as refused:
        Ratio(udcp.loads(text + "loss l = any(C)"))
    assert isinstance(refused.value, ValueError)
    with pytest.raises(OracleError, match=r"label 'b' costs -0.5: .*'greedy'"):
        Ratio(udcp.loads(text + "loss l = sum(k)"))


def test_no_other_sets_of_the_same_coverage_cost_less_where_p_is_true() -> None:
    """Neyman and Pearson, by brute force over every choice of sets for three instances."""
    rng = np.random.default_rng(0)
    loss = udcp.loads("labels { a, b, c }  costs k { a: 1, b: 0.5, c: 2 }  loss l = sum(k)")
    P = rng.integers(1, 9, size=(3, 3)) / 16.0
    exact = [[Fraction(float(p)) for p in row] for row in P]
    subsets = list(itertools.product([False, True], repeat=3))
    choices = list(itertools.product(subsets, repeat=3))

    def mass(sets: Any) -> Fraction:
        return sum(
            (p for row, S in zip(exact, sets, strict=True) for p, x in zip(row, S, strict=True) if x), Fraction()
        )

    def cost(sets: Any) -> float:
        return sum(loss(np.array(S)) for S in sets)

    oracle = Ratio(loss)
    for tau in np.unique(oracle.scores(P)):
        sets = oracle.sets(P, tau).tolist()
        assert cost(sets) == min(cost(other) for other in choices if mass(other) >= mass(sets))
