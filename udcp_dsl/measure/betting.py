"""Bets against "the p-values are independent and uniform": wealth that grows if they are not.

A bet is a density f on [0, 1]: a stake V before a p-value becomes V f(p) after it, which is V on average if p is
uniform. A bet may begin at any row: with weights w_1 + w_2 + ... = 1 for the row at which it begins, the wealth is

    W_t = V_t + (w_{t+1} + w_{t+2} + ...),   V_t = (V_{t-1} + w_t) f(p_t),   V_0 = 0,

and the mean of several bets is a bet again. W_0 = 1, W >= 0, and E[W_t | past] = W_{t-1}: so the probability that W
*ever* reaches 1 / level is at most level (Ville), however often one looks. V is stored as its logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]

# The share of the stake that is not staked on the first row, and the scale, in rows, on which the rest is staked.
_LATER, _SCALE = 1 / 2, 200.0

# Bets that misses are more frequent: factors on their odds.
_ODDS = np.array([1.5, 2.5, 5.0])

# Bets on ranks: slopes (scores larger, smaller), powers (more at one end), bends (more or less spread).
_SLOPES = np.array([-0.9, -0.5, 0.5, 0.9])
_POWERS = np.array([0.6, 0.8])
_BENDS = np.array([-0.4, 0.6])

MISS_BETS = len(_ODDS)
RANK_BETS = len(_SLOPES) + 2 * len(_POWERS) + len(_BENDS)


def rank_bets(p: Floats) -> Floats:
    """The logarithm of the density of each bet at p-values in (0, 1), (bets, n). Each density integrates to 1.

    >>> grid = (np.arange(100_000) + 0.5) / 100_000
    >>> np.allclose(np.exp(rank_bets(grid)).mean(axis=1), 1, atol=0.005)
    True
    """
    slopes = np.log1p(_SLOPES[:, None] * (2 * p - 1))
    powers = _POWERS[:, None]
    low, high = (np.log(powers) + (powers - 1) * np.log(q) for q in (p, 1 - p))
    bends = np.log1p(_BENDS[:, None] * (12 * (p - 0.5) ** 2 - 1))
    return np.concatenate([slopes, low, high, bends])


def miss_bets(missed: Bools, chance: Floats) -> Floats:
    """The logarithms of the factors of the bets on misses, (bets, n). `chance` is the probability of each miss given
    the past; a miss multiplies the wealth by more than 1, any other row by less."""
    odds = _ODDS[:, None]
    return np.where(missed, np.log(odds), 0.0) - np.log1p((odds - 1) * chance)


def unstaked_share(t: npt.ArrayLike) -> Floats:
    """w_{t+1} + w_{t+2} + ...: the share that has not been staked after t rows. It falls like 1 / log t, so that a
    change after a long quiet time is also found soon.

    >>> unstaked_share([0, 1, 10_000]).round(2).tolist()
    [1.0, 0.5, 0.13]
    """
    rows = np.asarray(t, dtype=np.float64)
    return np.where(rows < 1, 1.0, _LATER / np.log(np.e + np.maximum(rows - 1, 0.0) / _SCALE))


@dataclass(frozen=True)
class BetState:
    """The state of several bets after t rows: log V of each."""

    t: int
    log_v: Floats

    @classmethod
    def empty(cls, bets: int) -> BetState:
        """The state before the first row: nothing is staked."""
        return cls(0, np.full(bets, -np.inf))

    def after(self, log_factors: Floats) -> tuple[BetState, Floats]:
        """The purse after n more rows with the given log factors, (bets, n), and log W after each row."""
        n = log_factors.shape[1]
        held = unstaked_share(np.arange(self.t, self.t + n + 1))
        with np.errstate(divide="ignore"):
            begun = np.log(held[:-1] - held[1:])
        # V_t = F_t (V_0 + sum over u <= t of w_u / F_{u-1}), F_t the product of the factors up to t.
        total = np.cumsum(log_factors, axis=1)
        before = total - log_factors
        staked = np.logaddexp.accumulate(np.concatenate([self.log_v[:, None], begun - before], axis=1), axis=1)[:, 1:]
        log_v = staked + total
        mean = np.logaddexp.reduce(log_v, axis=0) - np.log(len(self.log_v))
        return BetState(self.t + n, log_v[:, -1] if n else self.log_v), np.logaddexp(mean, np.log(held[1:]))
