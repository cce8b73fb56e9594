"""Kept calibration scores: counts against brute force, thinning at fixed ranks, and as plain data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import ranks as calibration_scores
from udcp_dsl.predict.calibrate.checked import points_of_cells
from udcp_dsl.predict.calibrate.ranks import RankTable, fixed_ranks, tables_of, thinned

SCORES = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 0.5 + 1e-16, 1.0, 2.0, np.inf]), min_size=0, max_size=30)


@given(SCORES, SCORES, st.integers(2, 12))
def test_counts_are_those_of_brute_force_and_thinned_ones_no_smaller(
    a: list[float], b: list[float], parts: int
) -> None:
    scores, asked = np.array(a), np.array(b)
    counts = RankTable.of(scores)
    exact = [int((scores >= s).sum()) for s in asked]
    assert counts.at_least(asked).tolist() == exact
    thin = counts.thinned(parts, [1, 3, 10**6])
    assert all(rough >= n for rough, n in zip(thin.at_least(asked).tolist(), exact, strict=True))
    for rank in {*fixed_ranks(len(a), parts).tolist(), *(k for k in (1, 3) if k <= len(a))}:
        assert thin.values[thin.at_ranks(np.array([rank]))[0]] == np.sort(scores)[rank - 1]
    again = RankTable.from_dict(json.loads(json.dumps(thin.as_dict())))
    assert again.as_dict() == thin.as_dict()


@given(SCORES, st.integers(2, 12))
def test_harm_at_or_above_is_that_of_brute_force(a: list[float], parts: int) -> None:
    scores, harms = np.array(a), np.arange(len(a)) % 3 + 0.5
    asked = np.array([-np.inf, -0.5, 0.5, 3.0])
    exact = np.array([harms[scores >= s].sum() for s in asked])
    counts = RankTable.of(scores, harms)
    assert counts.harm_at_least(asked).tolist() == pytest.approx(exact.tolist())
    if len(a):
        assert (counts.thinned(parts, []).harm_at_least(asked) >= exact - 1e-9).all()


def test_ranks_of_a_monitor_are_among_those_of_a_file() -> None:
    """So that a predictor watches alike before and after it was saved."""
    for n in (30_000, 123_457):
        many = set(fixed_ranks(n, calibration_scores._MAX_RANK_PARTS).tolist())
        assert set(fixed_ranks(n, calibration_scores.MONITOR_PARTS).tolist()) <= many


def test_a_file_keeps_few_of_many_scores() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(60_000)
    codes = rng.integers(0, 3, len(scores)).astype(np.intp)
    parts = points_of_cells(codes, 3)
    whole = tables_of(scores, parts, None)
    thin = thinned(whole, [[5], [6], [7]])
    assert [table.n for table in thin] == np.bincount(codes).tolist()
    assert [table.ranks for table in thin] == [(5,), (6,), (7,)]
    for table, kept, rank, at in zip(whole, thin, (5, 6, 7), parts, strict=True):
        assert kept.values.size < 4_000
        assert kept.rank_parts is not None
        assert kept.rank_parts % calibration_scores.MONITOR_PARTS == 0
        assert table.values.tolist() == np.sort(scores[at]).tolist()
        assert kept.values[kept.at_ranks(np.array([rank]))[0]] == table.values[rank - 1]
    few = tables_of(scores[:100], points_of_cells(codes[:100], 3), None)
    assert all(a is b for a, b in zip(thinned(few, [[], [], []]), few, strict=True))


def test_tables_have_the_harm_of_their_own_points() -> None:
    scores, harms = np.array([3.0, 1.0, 2.0, 1.0]), np.array([0.5, 1.0, 2.0, 4.0])
    first, second = tables_of(scores, points_of_cells(np.array([0, 1, 0, 1]), 2), harms)
    assert first.harm_at_least(np.array([0.0, 2.5])).tolist() == [2.5, 0.5]
    assert second.harm_at_least(np.array([1.0, 2.5])).tolist() == [5.0, 0.0]
    (every,) = tables_of(scores, [slice(None)], harms)
    assert every.harm_at_least(np.array([2.0])).tolist() == [2.5]


BAD: list[dict[str, Any]] = [
    {"n": 5},
    {"n": True},
    {"values": [2.0, 1.0]},
    {"values": [1.0]},
    {"below": [0, 0]},
    {"upto": [1, 9]},
    {"below": [0.5, 1]},
    {"ranks": "x"},
    {"harm": [1.0, 2.0]},
    {"harm": [1.0]},
    {"parts": 2, "ranks": [2], "below": [0, 2], "upto": [1, 3]},
]


@pytest.mark.parametrize("change", BAD)
def test_what_no_scores_give_is_refused(change: dict[str, Any]) -> None:
    good = RankTable.of(np.array([1.0, 2.0, 2.0])).as_dict()
    with pytest.raises(InputError, match="calibrate and save again"):
        RankTable.from_dict({**good, **change})
