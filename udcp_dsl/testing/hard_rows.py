"""Random rows of probabilities that are hard for an oracle, drawn without hypothesis."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Probabilities = npt.NDArray[np.floating[Any]]


def hard_rows(rng: np.random.Generator, n: int, K: int) -> Probabilities:
    """Rows (n, K) of one kind, such as ties, zeros and ones, or tiny values, in float16, float32 or float64.

    >>> hard_rows(np.random.default_rng(0), 2, 3).shape
    (2, 3)
    """
    kinds = _kinds(rng, n, K)
    return _distributions(kinds[rng.integers(len(kinds))], rng)


def varied_rows(rng: np.random.Generator, n: int, K: int) -> Probabilities:
    """Rows (n, K) of all kinds of `hard_rows` in turn, in one of its types."""
    kinds, first = _kinds(rng, n, K), rng.integers(6)
    return _distributions(np.array([kinds[(first + i) % len(kinds)][i] for i in range(n)]), rng)


def _kinds(rng: np.random.Generator, n: int, K: int) -> tuple[npt.NDArray[Any], ...]:
    return (
        rng.integers(0, 3, size=(n, K)) + 1e-9,
        rng.random((n, K)),
        np.exp(20 * rng.normal(size=(n, K))),
        np.ones((n, K)),
        np.where(rng.random((n, K)) < 0.1, 1.0, 1e-30),
        np.eye(K)[rng.integers(K, size=n)],
    )


def _distributions(weights: npt.NDArray[Any], rng: np.random.Generator) -> Probabilities:
    P = weights / weights.sum(axis=1, keepdims=True)
    return np.asarray(P.astype((np.float16, np.float32, np.float64)[rng.integers(3)]))


def rows_on(live: npt.NDArray[np.int64], rng: np.random.Generator, n: int, K: int) -> npt.NDArray[np.float64]:
    """Rows (n, K) with all mass on the labels `live`: arbitrary, from few values that often tie, or equal."""
    P = np.zeros((n, K))
    for i in range(n):
        weights = (
            rng.dirichlet(np.full(len(live), 0.7)),
            1.0 + rng.multinomial(16, np.full(len(live), 1 / len(live))),
            np.ones(len(live)),
        )[(i + int(rng.integers(2))) % 3]
        P[i, live] = weights / weights.sum()
    return P
