"""Bets: densities that integrate to 1, the mixture over starting rows by its definition, and Ville's bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from udcp_dsl.measure.betting import (
    MISS_BETS,
    RANK_BETS,
    BetState,
    miss_bets,
    rank_bets,
    unstaked_share,
)


@pytest.mark.parametrize("bet", range(RANK_BETS))
def test_each_bet_on_ranks_is_fair(bet: int) -> None:
    total = sum(
        quad(lambda p: float(np.exp(rank_bets(np.array([p]))[bet, 0])), a, b, limit=200)[0]
        for a, b in ((1e-300, 1e-6), (1e-6, 0.5), (0.5, 1 - 1e-6), (1 - 1e-6, 1 - 1e-16))
    )
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("chance", [0.0, 0.003, 0.1, 0.5, 1.0])
def test_each_bet_on_misses_is_fair(chance: float) -> None:
    missed, not_missed = (np.exp(miss_bets(np.array([hit]), np.array([chance])))[:, 0] for hit in (True, False))
    assert chance * missed + (1 - chance) * not_missed == pytest.approx(np.ones(MISS_BETS))


def test_what_begins_sums_to_one() -> None:
    held = unstaked_share(np.arange(0, 100_000))
    assert held[0] == 1
    assert (np.diff(held) < 0).all()
    assert unstaked_share(1e300) < 0.01


def test_wealth_is_the_mixture_over_starting_rows() -> None:
    rng = np.random.default_rng(0)
    factors = np.log(rng.uniform(0.5, 1.7, (2, 12)))
    state, log_wealth = BetState.empty(2).after(factors)
    for t in range(1, 13):
        begun = unstaked_share(np.arange(t)) - unstaked_share(np.arange(1, t + 1))
        mixture = [sum(w * np.exp(bet[u:t].sum()) for u, w in enumerate(begun)) for bet in factors]
        assert np.exp(log_wealth[t - 1]) == pytest.approx(np.mean(mixture) + unstaked_share(t))
    half, first = BetState.empty(2).after(factors[:, :5])
    rest, second = half.after(factors[:, 5:])
    assert np.concatenate([first, second]) == pytest.approx(log_wealth)
    assert rest.log_v == pytest.approx(state.log_v)
    assert rest.t == 12


def test_wealth_is_kept_on_average() -> None:
    """E[W_t] = 1: over all 2^8 courses of misses of chance 0.3, exactly."""
    total = 0.0
    for course in range(2**8):
        missed = np.array([course >> i & 1 for i in range(8)], dtype=bool)
        probability = np.prod(np.where(missed, 0.3, 0.7))
        total += probability * np.exp(BetState.empty(MISS_BETS).after(miss_bets(missed, np.full(8, 0.3)))[1][-1])
    assert total == pytest.approx(1)


def test_long_quiet_times_and_long_alarms_do_not_overflow() -> None:
    quiet = np.full((1, 200_000), np.log(0.9))
    state, log_wealth = BetState.empty(1).after(quiet)
    assert np.isfinite(log_wealth).all()
    _, after = state.after(-quiet)
    assert np.isfinite(after).all()
    assert after[-1] > 1000
