"""Actions and ceilings: the best action against brute force, and which losses are of the form min(L, c)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl.expression.decisions import best_actions
from udcp_dsl.expression.domain import Actions

VALUES = st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0])


@st.composite
def tables(draw: st.DrawFn) -> tuple[Actions, np.ndarray]:
    K, A, n = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(0, 4))
    losses = draw(st.lists(st.lists(VALUES, min_size=A, max_size=A), min_size=K, max_size=K))
    sets = draw(st.lists(st.lists(st.booleans(), min_size=K, max_size=K), min_size=n, max_size=n))
    actions = Actions("u", tuple(f"a{i}" for i in range(A)), np.array(losses))
    return actions, np.array(sets, dtype=bool).reshape(n, K)


@given(tables())
def test_the_best_action_is_that_of_brute_force(given: tuple[Actions, np.ndarray]) -> None:
    actions, mask = given
    chosen, worst = best_actions(actions, mask)
    for row, action, cost in zip(mask, chosen.tolist(), worst.tolist(), strict=True):
        labels = np.flatnonzero(row).tolist() or range(len(row))
        losses = [max(actions.values[y, a] for y in labels) for a in range(actions.values.shape[1])]
        assert cost == min(losses)
        assert action == losses.index(cost)  # of equal ones the first


HEAD = "labels 0..9  costs c { default: 1 }  param p = 2.5 in [0, 5]  "
CEILINGS = [
    ("loss l = min(sum(c), 4)", 4.0),
    ("loss l = min(4, sum(c), 7)", 4.0),
    ("loss l = min(size, 3)", 3.0),  # a function of a count, folded into a table
    ("loss l = min(2 * p, sum(c))", 5.0),
    ("let capped = min(sum(c) + size, 6)  loss l = capped", 6.0),
    ("loss inner = min(sum(c), 4)  loss l = inner", 4.0),
    ("loss l = max(sum(c), 4)", None),
    ("loss l = max(size, 3)", None),
    ("loss l = min(sum(c), 4) + size", None),
    ("loss l = 2 * min(sum(c), 4)", None),
    ("loss l = min(sum(c), size ^ 2)", None),
    ("loss l = min(c)", None),
    ("loss l = sum(c)", None),
]


@pytest.mark.parametrize(("text", "ceiling"), CEILINGS)
def test_the_ceiling_of_a_loss(text: str, ceiling: float | None) -> None:
    assert udcp.loads(HEAD + text).ceiling == ceiling


def test_a_parameter_moves_the_ceiling() -> None:
    assert udcp.loads(HEAD + "loss l = min(sum(c), p)", params={"p": 4.5}).ceiling == 4.5
