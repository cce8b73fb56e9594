"""Costs to 106 bits, against sums in rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.check import all_masks
from udcp_solvers.numeric.exact_costs import exact_costs

COSTS = {"a": -0.1, "b": 0.3, "c": 1.7, "d": 0.2}
HEAD = "labels {a, b, c, d} costs c {a: -0.1, b: 0.3, c: 1.7, d: 0.2} categories F {x: {a, b}, y: {b, c}, z: {d}}"


def _of(S: set[str]) -> tuple[Fraction, Fraction, Fraction]:
    """sum(c), count(F) and size, in rationals."""
    families = [{"a", "b"}, {"b", "c"}, {"d"}]
    touched = sum(not S.isdisjoint(family) for family in families)
    return sum((Fraction(COSTS[y]) for y in S), Fraction(0)), Fraction(touched), Fraction(len(S))


TENTH, THIRD = Fraction(0.1), Fraction(0.3)
CASES = {
    "sum(c) + 0.1 * size - 0.3": lambda s, f, n: s + TENTH * n - THIRD,
    "0.3 * (sum(c) + 0.1 * count(F))": lambda s, f, n: THIRD * (s + TENTH * f),
    "max(sum(c), 0.1 * count(F)) - 0.1 * size": lambda s, f, n: max(s, TENTH * f) - TENTH * n,
    "min(sum(c) + 0.1, 0.3) + 0.1 * count(F)": lambda s, f, n: min(s + TENTH, THIRD) + TENTH * f,
    "if any(F.x) then sum(c) else 0.1 * size": None,
    "any(F.y) * (sum(c) - 0.1) + 0.3 * (size >= 2)": None,
}


@pytest.mark.parametrize("text", CASES)
def test_costs_are_those_of_rationals(text: str) -> None:
    loss, masks = udcp.loads(f"{HEAD} loss l = {text}"), all_masks(4)
    high, low = exact_costs(loss, masks)
    judge = CASES[text]
    for mask, h, rest in zip(masks, high, low, strict=True):
        S = {"abcd"[y] for y in np.flatnonzero(mask)}
        s, f, n = _of(S)
        if judge is not None:
            want = judge(s, f, n)
        elif text.startswith("if"):
            want = s if S & {"a", "b"} else TENTH * n
        else:
            want = (s - TENTH if S & {"b", "c"} else 0) + (THIRD if n >= 2 else 0)
        assert abs(Fraction(float(h)) + Fraction(float(rest)) - want) <= Fraction(1, 2**100)


def test_sets_of_one_cost_are_equal_in_whatever_order_it_is_added() -> None:
    loss = udcp.loads("labels {a, b, c} costs c {a: -1, b: 1, c: -1} loss l = size - 0.1 + sum(c)")
    sets = np.array([[True, False, False], [True, False, True]])
    assert loss.interpret({"a", "c"}) != loss.interpret({"a"})
    high, low = exact_costs(loss, sets)
    assert high[0] == high[1]
    assert low[0] == low[1]
