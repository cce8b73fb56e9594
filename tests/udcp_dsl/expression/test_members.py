"""Costs of sets that are known by their members are those of their masks, to the last bit, in one block or several."""

from __future__ import annotations

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.expression.atoms import Sets

K = 600
SPEC = f"""
    labels 0..{K - 1}
    categories some {{ a: {{ 0..9 }}, b: {{ 5..99 }}, c: {{ 50..{K - 20} }}, d: {{ 7, 9, {K - 2} }} }}
    costs w of some {{ a: 0.1, b: 0.7, c: 1e-3, d: 3 }}
    costs each {{ default: 0.3, 1: 0.7 }}
"""


def drawn(sizes: list[int]) -> np.ndarray:
    rng = np.random.default_rng(0)
    masks = np.zeros((len(sizes), K), dtype=bool)
    for mask, size in zip(masks, sizes, strict=True):
        mask[rng.choice(K, size, replace=False)] = True
    return masks


@pytest.mark.parametrize(
    "text", ["count(some)", "count(some, w)", "size", "count(some) + max(each) + sum(each) * empty"]
)
def test_costs_by_members(text: str) -> None:
    loss = udcp.loads(f"{SPEC} loss l = {text}")
    masks = drawn([0, 1, 2, 0, 30] * 400)  # more than one block of them
    sets = Sets(masks)
    assert not sets.has_member_list
    assert np.array_equal(sets.members, np.nonzero(masks)[1])
    assert sets.has_member_list
    assert np.array_equal(loss.costs_of(sets), loss.batch(masks))
    some = [3, 4, 1999]
    assert loss.costs_of(sets)[some].tolist() == pytest.approx([loss.interpret(masks[i]) for i in some], abs=1e-12)


def test_members_that_are_many_are_left_alone() -> None:
    sets = Sets(drawn([K // 4 + 1] * 3))
    _ = sets.members
    assert not sets.has_member_list
    assert sets.size.tolist() == [K // 4 + 1] * 3


def test_no_sets() -> None:
    sets = Sets(np.zeros((0, K), dtype=bool))
    assert sets.members.shape == (0,)
    assert sets.offsets.tolist() == [0]
    assert udcp.loads(f"{SPEC} loss l = count(some)").costs_of(sets).shape == (0,)
