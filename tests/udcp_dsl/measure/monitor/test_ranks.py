"""Online ranks: against brute force, and independent and uniform by their exact law, ties and thinning included."""

from __future__ import annotations

from itertools import product
from math import factorial
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from udcp_dsl.measure import monitored as ranks_module
from udcp_dsl.measure.monitored import Ranks
from udcp_dsl.predict.calibrate.ranks import RankTable

if TYPE_CHECKING:
    from tests.conftest import Sizes


@given(
    st.lists(st.integers(0, 8), min_size=0, max_size=12),
    st.lists(st.integers(0, 8), min_size=1, max_size=12),
    st.integers(0, 3),
)
def test_p_and_the_chance_of_a_miss_are_those_of_brute_force(cal: list[int], new: list[int], seed: int) -> None:
    """By definition: among all rows so far, as (score, V); a miss is above the k-th smallest of calibration."""
    rng = np.random.default_rng(seed)
    n, k = len(cal), max(1, (2 * len(cal)) // 3)
    ranks = Ranks.among(RankTable.of(np.array(cal, dtype=float)), k if n else None, rng)
    assert ranks.counts.tolist() == [0] * (n + 1)  # all are edges
    v, u = rng.random(len(new)), rng.random(len(new))
    gaps = ranks.places(np.array(new, dtype=float), v)
    _, p, missed, chance = ranks.after(gaps, u)
    known = list(ranks.keys)  # position among distinct values, plus V: what they compare by
    distinct = sorted(set(cal))
    limit = sorted(known)[k - 1] if n else None
    # A new row lies in a gap of calibration scores; within it, its place among new rows is drawn with U.
    earlier: list[int] = []
    for t, s in enumerate(new):
        key = distinct.index(s) + v[t] if s in distinct else sum(d < s for d in distinct)
        gap = sum(edge < key for edge in known)
        assert gap == gaps[t]
        above = sum(edge > key for edge in known) + sum(g > gap for g in earlier)
        own = 1 + sum(g == gap for g in earlier)
        assert p[t] == pytest.approx((above + u[t] * own) / (n + 1 + t))
        if limit is not None:
            assert missed[t] == (key > limit)
            misses = sum(g >= k for g in earlier)
            assert chance[t] == pytest.approx((n + 1 - k + misses) / (n + 1 + t))  # as the issue has it
        earlier.append(gap)


def test_batches_and_single_rows_come_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    start = Ranks.among(RankTable.of(rng.random(50).round(1)), 40, rng)
    gaps, u = start.places(rng.random(300).round(1), rng.random(300)), rng.random(300)
    whole = start.after(gaps, u)
    monkeypatch.setattr(ranks_module, "_BLOCK", 7)
    assert all(np.array_equal(a, b) for a, b in zip(whole[1:], start.after(gaps, u)[1:], strict=True))
    at, found = start, []
    for i in range(len(u)):
        at, *one = at.after(gaps[i : i + 1], u[i : i + 1])
        found.append(one)
    assert np.array_equal(at.counts, whole[0].counts)
    for j in range(3):
        assert np.array_equal(np.concatenate([one[j] for one in found]), whole[1 + j])


@pytest.mark.parametrize("law", ["continuous", "ties", "one value"])
@pytest.mark.parametrize("edges", [4, 1001])
def test_p_values_are_independent_and_uniform(
    law: str, edges: int, sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law itself, over draws of 5 calibration rows and 3 new ones: each p by Kolmogorov and Smirnov, and the
    27 cells of (p_1, p_2, p_3) by chi-squared. Each of 24 tests fails with a chance of 1e-5. P-values against the
    *fixed* calibration rows fail the second: they share their luck."""
    monkeypatch.setattr(ranks_module, "MONITOR_PARTS", edges)
    rng = np.random.default_rng(11)
    draw = {
        "continuous": lambda m: rng.random(m),
        "ties": lambda m: rng.integers(0, 3, m) + (rng.random(m) < 0.3) * rng.random(m),
        "one value": lambda m: np.zeros(m),
    }[law]
    found = []
    for _ in range(sizes.draws):
        ranks = Ranks.among(RankTable.of(draw(5)), 3, rng)
        found.append(ranks.after(ranks.places(draw(3), rng.random(3)), rng.random(3))[1])
    p = np.array(found)
    assert all(kstest(p[:, t], "uniform").pvalue > 1e-5 for t in range(3))
    cells = np.bincount((p * 3).astype(int) @ [9, 3, 1], minlength=27)
    statistic = ((cells - len(p) / 27) ** 2 / (len(p) / 27)).sum()
    assert chi2(26).sf(statistic) > 1e-5


def test_misses_follow_their_urn_exactly() -> None:
    """All orders of 2 calibration rows and 3 new ones are as likely: misses by hand, against the product of chances."""
    found: dict[tuple[bool, ...], float] = {}
    chances: dict[tuple[bool, ...], float] = {}
    orders = np.array(list(product(range(5), repeat=5)))
    orders = orders[[len(set(o)) == 5 for o in orders.tolist()]].astype(float)
    assert len(orders) == factorial(5)
    for order in orders:
        ranks = Ranks.among(RankTable.of(order[:2]), 1, np.random.default_rng(0))
        _, _, missed, chance = ranks.after(ranks.places(order[2:], np.full(3, 0.5)), np.full(3, 0.5))
        key = tuple(missed.tolist())
        found[key] = found.get(key, 0) + 1 / len(orders)
        chances[key] = float(np.prod(np.where(missed, chance, 1 - chance)))
    assert found == pytest.approx(chances)
