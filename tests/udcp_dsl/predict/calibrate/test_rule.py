"""The rank of `confidence`: known numbers, brute force in exact arithmetic, and the share of draws that keep it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import Rule, Strata, calibrate
from udcp_dsl.predict.calibrate.rule import confident_points, confident_rank
from udcp_dsl.predict.promise import Promise

if TYPE_CHECKING:
    from tests.conftest import Sizes

TENTH = Fraction(1, 10)
CONFIDENT = Rule(Fraction(19, 20))


@pytest.mark.parametrize(
    ("n", "confidence", "k"),
    [(1000, "0.95", 916), (100, "0.9", 95), (1000, "0.9", 913), (500, "0.95", 462), (50, "0.9", 49), (20, "0.9", 21)],
)
def test_known_ranks(n: int, confidence: str, k: int) -> None:
    assert confident_rank(n, TENTH, Fraction(confidence)) == k


def brute_rank(n: int, alpha: Fraction, confidence: Fraction) -> int:
    """The least k with P(Binomial(n, alpha) > n - k) >= confidence, by sums of fractions."""
    total = Fraction(0)
    k = n + 1
    for misses in range(n + 1):
        total += math.comb(n, misses) * alpha**misses * (1 - alpha) ** (n - misses)
        if total > 1 - confidence:
            break
        k = n - misses
    return k


@given(
    st.integers(0, 40),
    st.fractions(Fraction(1, 50), Fraction(3, 4), max_denominator=50),
    st.fractions(Fraction(1, 2), Fraction(99, 100), max_denominator=100),
)
def test_ranks_by_brute_force(n: int, alpha: Fraction, confidence: Fraction) -> None:
    k = brute_rank(n, alpha, confidence)
    assert confident_rank(n, alpha, confidence) == k
    assert (k <= n) == (n >= confident_points(alpha, confidence))


def test_equality_is_decided_in_whole_numbers() -> None:
    """P(Binomial(1, 1/10) <= 0) is 9/10 exactly, which floats put on either side."""
    for alpha in (Fraction(a, 10) for a in range(1, 10)):
        assert confident_rank(1, alpha, alpha) == 1
        assert confident_rank(1, alpha, alpha + Fraction(1, 10**20)) == 2
    half = Fraction(1, 2)
    assert confident_rank(60, half, 1 - half**60) == 60


def share_of_draws(n: int, draws: int, seed: int) -> float:
    """In how many draws of n uniform scores, whose coverage is the threshold itself, 0.9 is covered."""
    rng = np.random.default_rng(seed)
    taus = [calibrate(rng.random(n), alpha=0.1, rule=CONFIDENT).tau() for _ in range(draws)]
    return float((np.array(taus) >= 0.9).mean())


@pytest.mark.parametrize("n", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_share_of_draws(n: int, sizes: Sizes) -> None:
    """Beta(k, n + 1 - k): at least 0.95, and by the least such k not much more."""
    k = confident_rank(n, TENTH, Fraction(19, 20))
    exact = float(beta(k, n + 1 - k).sf(0.9))
    assert 0.95 <= exact < 0.97
    assert float(beta(k - 1, n + 2 - k).sf(0.9)) < 0.95
    assert abs(share_of_draws(n, sizes.draws, 0) - exact) < 4 * math.sqrt(exact * (1 - exact) / sizes.draws)


def test_all_at_once_is_a_higher_confidence_for_each() -> None:
    scores, strata, codes = np.arange(400.0), Strata("group", tuple("abcd")), np.repeat(range(4), 100)
    asked = [Promise(alpha=0.2, conditional="group", confidence=0.9, simultaneous=whole) for whole in (False, True)]
    rules = [promise.rule(4, None) for promise in asked]
    each, whole = (calibrate(scores, alpha=0.2, strata=strata, codes=codes, rule=rule) for rule in rules)
    assert each.rule == Rule(Fraction(9, 10))
    assert whole.rule == Rule(1 - Fraction(1, 40))
    ranks = [
        confident_rank(100, Fraction(1, 5), rule.confidence) for rule in (each.rule, whole.rule) if rule.confidence
    ]
    assert each.thresholds["a"] == ranks[0] - 1  # type: ignore[index]
    assert whole.thresholds["a"] == ranks[1] - 1  # type: ignore[index]


def test_what_n_cannot_reach_is_told() -> None:
    with pytest.warns(UserWarning, match=r"alpha 0.1 needs 29, but there are 28.*or ask for less confidence"):
        c = calibrate(np.arange(28.0), alpha=0.1, rule=CONFIDENT)
    assert c.tau() == math.inf
    assert calibrate(np.arange(29.0), alpha=0.1, rule=CONFIDENT).tau() == 28.0


def test_rules_are_saved() -> None:
    for rule in (Rule(), Rule(Fraction(19, 20)), Rule(None, Fraction(7, 2))):
        assert Rule.from_dict(rule.as_dict()) == rule
    for confidence, most in (("2", None), (None, "-1"), (1, None), ("1/2", "1"), (None, "x")):
        bad = {"confidence": confidence, "most": most}
        with pytest.raises(InputError):
            Rule.from_dict(bad)


@pytest.mark.parametrize("alpha", [Fraction(1, 100), Fraction(1, 3000)])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20), 1 - Fraction(1, 10**6)])
def test_points_that_are_not_counted_exactly_are_a_few_more(
    alpha: Fraction, confidence: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = confident_points.__wrapped__(alpha, confidence)
    monkeypatch.setattr("udcp_dsl.predict.calibrate.rule._EXACT_BITS", 0)
    assert exact <= confident_points.__wrapped__(alpha, confidence) <= exact + 10


def test_levels_of_any_size_are_counted() -> None:
    """An exact power would fill the memory at the first, and divides by 0 at the second."""
    assert Rule(Fraction(19, 20)).needed(Fraction(1, 10**9)) == 2995732275
    assert Rule(Fraction(19, 20)).needed(Fraction(1, 10**900)) > 10**900
    assert Rule(1 - Fraction(1, 10**500)).needed(TENTH) == 10928
