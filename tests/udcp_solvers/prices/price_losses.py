"""Losses over seven labels by the way that prices them, rows that are hard to price, and brute force to judge them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import udcp_dsl as udcp
from tests.specs import of_seven
from tests.udcp_solvers.brute_force import price_scores
from udcp_dsl.check import all_masks, assert_faces
from udcp_solvers.numeric.exact_costs import exact_costs
from udcp_solvers.price import Price

SEPARABLE = ["size", "sum(k)", "sum(s)", "sum(k) + 0.25 * size(h.node(x)) - 2", "- size", "0"]
LAMINAR = [
    "count(h.level(1)) + 0.5 * size",
    "count(h.level(1))",
    "2 * count(h.level(1)) + 0.5 * count(h.level(2)) + sum(s)",
    "any({ a, b, c }) + any({ c }) + any({ a, b, c, d, e }) + sum(s)",
    "sum(s) + 0.25 * any({ a, b, c, d, e, f, g })",
    "max(k) + 0.125 * size",
]
TREE = [
    "diameter(h)",
    "diameter(u)",
    "diameter(deep)",
    "diameter(u) + 0.125 * size",
    "diameter(h) + 0.125 * size",
    "diameter(deep) + 0.25 * size",
    "0.5 * diameter(u) + sum(k) + count(u.level(1))",
    "2 * diameter(h) + sum(s) + any({ a, e, f }) + 0.5 * any({ e, f })",
    "0.25 * diameter(u) + sum(s) + count(u.level(1)) + 0.5 * count(u.level(2))",
    "diameter(deep) + sum(s) + 0.5 * any({ a, g }) + 0.25 * any({ b, c, d })",
]
OF_SIZE = [
    "size ^ 2",
    "sqrt(size)",
    "log1p(size) - 0.25 * size",
    "max(size - 3, 0) ^ 2 + (if size >= 2 then 1 else 0)",
    "if size == 3 then 0 else 2",
    "0.5 * size ^ 2 + sum(k)",
    "sqrt(size) + sum(s)",
    "2 * min(size, 3) + sum(s) - (if size >= 5 then 1.5 else 0)",
    "(if size >= 2 and size <= 4 then 1 else 0) + sum(k)",
]
CUTS = [
    "count(over) + 0.25 * size",
    "count(over, w)",
    "count(over) + sum(s)",
    "min(count(over), 2) + 0.125 * size",
    "sqrt(count(over) + 1) + sum(k)",
    "sqrt(size({ a, b, c, d })) + count(over, w) + sum(s)",
    "log1p(size) + any({ a, b }) + any({ b, c, d })",
    "min(sum(k) + any({ a, g }), 1.5) + 0.125 * size",
    "max(k) + count(over)",
]
WHOLES = [
    "nodes(h)",
    "nodes(h) + 0.25 * size",
    "nodes(h) + sum(s)",
    "0.5 * nodes(h) + count(h.level(1)) + sum(k)",
    "size - 0.5 * all({ a, b, c })",
]
OTHER = [
    "within({ a, b })",
    "spread(h) * 0.25",
    "radius(h) + min(k)",
    "max(size - 3, 0) ^ 2 - count(over)",
    "if any({ a, b }) and any({ e }) then 3 else size",
]


class Remembered:
    """A loss whose values are computed once: in rationals of the floats that it is made of, as ties depend on them; the
    naive interpreter, which rounds, must agree."""

    def __init__(self, loss: udcp.Loss) -> None:
        self.K = loss.K
        high, low = exact_costs(loss, all_masks(loss.K))
        known = {
            tuple(np.flatnonzero(mask).tolist()): Fraction(float(x)) + Fraction(float(rest))
            for mask, x, rest in zip(all_masks(loss.K), high, low, strict=True)
        }
        near = 1e-12 * max(1.0, *map(abs, loss.facts.interval))
        for members in list(known)[:: max(1, len(known) // 16)]:
            assert abs(float(known[members]) - loss.interpret_positions(members)) <= near
        self.interpret_positions: Any = lambda members: known[tuple(sorted(members))]


class Rounded(Remembered):
    """The same to forty bits of the largest cost, so that sets of one cost are equal in whatever order it was added."""

    def __init__(self, loss: udcp.Loss) -> None:
        super().__init__(loss)
        exact, unit = self.interpret_positions, math.ldexp(1.0, math.frexp(max(map(abs, loss.facts.interval)))[1] - 40)
        self.interpret_positions = lambda members: round(exact(members) / unit) * unit


def rows(K: int, seed: int, n: int) -> np.ndarray:
    """Distributions with zeros, ones and ties, dyadic and decimal, and saturated ones."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        p = np.zeros(K)
        match i % 6:
            case 0:
                p = rng.dirichlet(np.full(K, 0.5))
            case 1:
                p = rng.integers(0, 4, K) + (np.arange(K) == 0)
                p = p / p.sum()
            case 2:
                p[rng.integers(K)] = 1.0
            case 3:
                p[1:] = rng.integers(0, 3, K - 1) / 16
                p[0] = 1 - p[1:].sum()
            case 4:
                p = rng.choice([0.05, 0.1, 0.15, 0.2, 0.3, 0.0], K)
                p[0] = 1 - p[1:].sum()
                p = np.abs(p) / np.abs(p).sum()
            case 5:
                p = rng.choice([1e-30, 3e-30, 2e-12, 0.0], K)
                p[rng.integers(K)] = 1.0
        found.append(p)
    return np.array(found)


def assert_prices(oracle: udcp.Oracle, *batches: np.ndarray, seeds: int = 1) -> None:
    """Scores as by brute force, and three faces that agree to the last bit."""
    remembered: Any = Remembered(oracle.loss)
    for P in batches:
        scores = oracle.scores(P)
        for i, p in enumerate(P):
            expected = np.array(price_scores(remembered, p))
            np.testing.assert_allclose(scores[i], expected, rtol=1e-12, atol=0, err_msg=f"p = {p.tolist()}")
        for seed in range(seeds):
            assert_faces(oracle, P, seed=seed)


def assert_priced_by(prices: type, text: str, cases: int) -> None:
    """On so many rows of each kind in double precision, and half as many in single; by the class that is to answer."""
    oracle = Price(of_seven(text))
    assert isinstance(oracle._prices, prices)
    K, single = oracle.loss.K, rows(oracle.loss.K, 1, 3 * cases)
    assert_prices(oracle, rows(K, 0, 6 * cases), single.astype(np.float32))
