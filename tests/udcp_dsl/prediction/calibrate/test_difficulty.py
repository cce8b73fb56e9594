"""Bins by rank among the n + 1 points: by definition, by enumeration, and by the exact law of coverage in every bin."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from udcp_dsl.prediction.calibrate import Calibration, Parts, calibrate
from udcp_dsl.prediction.calibrate.difficulty import bin_cells, bin_names, bins_needed, rank_bins

if TYPE_CHECKING:
    from tests.conftest import Sizes


def shared_bin(values: list[float], new: float, bins: int) -> list[int]:
    """The calibration points in the bin of the new one, by the definition: ranks among all n + 1 points."""
    every = [*values, new]
    n1 = len(every)
    ranks = [1 + sum(other < v for other in every) for v in every]
    bin_of = [next(b for b in range(1, bins + 1) if r <= b * n1 // bins) for r in ranks]
    return [i for i in range(len(values)) if bin_of[i] == bin_of[-1]]


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=14),
    st.integers(0, 6),
    st.integers(2, 5),
)
def test_cells_are_those_of_the_definition(values: list[int], new: int, bins: int) -> None:
    v = np.array(values, dtype=np.float64)
    edges, cells = rank_bins(v, bins)
    assert (len(edges), len(cells)) == (bins - 1, 2 * bins - 1)
    for x in (float(new), new + 0.5, new - 0.5):
        (cell,) = bin_cells(np.array([x]), edges)
        assert cells[cell].tolist() == shared_bin(v.tolist(), x, bins)


def test_only_the_points_at_the_borders_are_unused() -> None:
    v = np.random.default_rng(0).permutation(np.arange(39.0))
    edges, cells = rank_bins(v, 4)
    assert [len(cell) for cell in cells[::2]] == [9, 9, 9, 9]
    assert sorted(np.concatenate([v[cell] for cell in cells[::2]]).tolist() + list(edges)) == sorted(v.tolist())
    assert bins_needed(4, 9) == 39


def by_bin(n: int, repeats: int, difficulty: str, seed: int) -> tuple[np.ndarray, np.ndarray, Calibration]:
    """How often a new point of each bin is covered, over draws of calibration points and one new point each."""
    rng = np.random.default_rng(seed)
    hits, points = np.zeros(4), np.zeros(4)
    for _ in range(repeats):
        v = rng.random(n + 1) if difficulty == "smooth" else np.minimum(rng.integers(0, 8, n + 1) / 4, 1.0)
        scores = rng.normal(size=n + 1) - 3 * v  # hard rows have high scores
        c = calibrate(
            scores[:-1], alphas=0.2, parts=Parts("difficulty", difficulty=v[:-1], bins=4), already_warned=True
        )
        at = c.tau(difficulty=v[-1:], n=1)
        rank = 1 + int((v[:-1] < v[-1]).sum())
        b = next(b for b in range(4) if rank <= (b + 1) * (n + 1) // 4)
        points[b] += 1
        hits[b] += scores[-1] <= np.asarray(at)[0, 0]
    return hits, points, c


def check_bins(n: int, repeats: int, difficulty: str) -> None:
    hits, points, c = by_bin(n, repeats, difficulty, seed=n)
    assert points.sum() == repeats
    for b in np.flatnonzero(points):
        share, error = hits[b] / points[b], np.sqrt(0.16 / points[b])
        if difficulty == "smooth":  # the exact value: k / (m + 1) with m points in the bin
            m = c.cells[2 * b].n
            exact = min(1.0, float(np.ceil((m + 1) * Fraction(4, 5)) / (m + 1)))
            assert abs(share - exact) < 4 * error
        else:
            assert share > 0.8 - 4 * error


@pytest.mark.parametrize("difficulty", ["smooth", "tied"])
@pytest.mark.parametrize("n", [39, *(pytest.param(n, marks=pytest.mark.slow) for n in (23, 80, 203))])
def test_every_bin_is_covered(n: int, difficulty: str, sizes: Sizes) -> None:
    check_bins(n, sizes.draws, difficulty)


def test_coverage_in_a_bin_is_beta_binomial(sizes: Sizes) -> None:
    """Given the edges the points between them are independent: the number covered of m fresh ones has its law."""
    rng, n, m, repeats, total = np.random.default_rng(5), 39, 20, sizes.draws, 0
    for _ in range(repeats):
        v, scores = rng.random(n), rng.normal(size=n)
        c = calibrate(scores, alphas=0.2, parts=Parts("difficulty", difficulty=v), already_warned=True)
        fresh = rng.uniform(c.edges[0], c.edges[1], m)
        total += int((rng.normal(size=m) <= np.asarray(c.tau(difficulty=fresh, n=m))[:, 0]).sum())
    law = betabinom(m, 8, 2)  # 9 points: the 8th of them
    z = (total - repeats * law.mean()) / np.sqrt(repeats * law.var())
    assert abs(z) < 4


@pytest.mark.parametrize("values", [[0.5, 1.0, 1.0, 1.0, 1.0], [0.2], [0.90001, 0.90002, 0.90003, 0.90004]])
def test_names_of_bins_differ_and_say_which_are_empty(values: list[float]) -> None:
    edges, cells = rank_bins(np.array(values), 4)
    names = bin_names(edges)
    assert len(set(names)) == 4
    assert not any("-inf" in name for name in names)
    for name, inside in zip(names, cells[::2], strict=True):
        assert "empty" not in name or not len(inside)


def test_too_few_rows_are_told() -> None:
    v = np.arange(20.0)
    with pytest.warns(UserWarning, match="alpha 0.1 needs 9 in each bin, 39 in all, but the bin"):
        c = calibrate(v, alphas=0.1, parts=Parts("difficulty", difficulty=v))
    assert np.isinf(np.asarray(c.tau(difficulty=v))).all()


def test_it_is_saved_whole() -> None:
    v = np.random.default_rng(1).integers(0, 9, 60) / 8
    c = calibrate(
        np.arange(60.0), alphas=[0.2, 0.3], parts=Parts("difficulty", difficulty=v, bins=3), already_warned=True
    )
    d = Calibration.from_dict(c.as_dict())
    for alpha in (0.2, 0.3):
        np.testing.assert_array_equal(d.tau(alpha, difficulty=v), c.tau(alpha, difficulty=v))
    assert d.n == 60
    assert d.as_dict() == c.as_dict()
