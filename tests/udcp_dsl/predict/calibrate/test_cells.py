"""Cells as plain data: each reads back as itself, whatever its scores, weights and harms; no other data do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate import Calibration, Cell, Rule, Strata, calibrate, make_cell
from udcp_dsl.predict.calibrate.thresholds import cell_as_dict, cell_from_dict

INF = math.inf
LEVELS = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(19, 20), max_denominator=50)
WEIGHTS = st.sampled_from([0.0, 0.1, 1 / 3, 1.0, 1e-300, 7e8])
HARMS = st.sampled_from([0.0, 0.1, 0.3, 1.0])
# Scores are infinite for labels that cost infinitely much, and minus infinity for those that no set leaves out.
POINTS = st.lists(st.tuples(st.sampled_from([-INF, -1.0, 0.0, 0.1, 2.0, INF]), WEIGHTS, HARMS), max_size=12)


def plain(cell: Cell) -> Any:
    return json.loads(json.dumps(cell_as_dict(cell), allow_nan=False))


@given(POINTS, LEVELS, st.booleans())
@example([(INF, 1.0, 1.0)], Fraction(1, 2), False)
@example([(1.0, 1.0, 0.1), (INF, 1.0, 0.3)], Fraction(1, 2), True)
@example([(-INF, 0.0, 1.0), (1.0, 0.0, 1.0)], Fraction(1, 2), False)  # weights that are all 0 in one cell
@example([(-INF, 1.0, 0.0), (INF, 1.0, 0.0)], Fraction(1, 2), True)  # no harm, so the empty set will do
@example([], Fraction(1, 10), False)
def test_a_weighted_cell_reads_back_as_itself(
    points: list[tuple[float, float, float]], level: Fraction, by_harm: bool
) -> None:
    scores, weights, harms = (np.array([p[i] for p in points], dtype=np.float64) for i in range(3))
    rule = Rule(None, Fraction(1)) if by_harm else Rule()
    cell = make_cell(scores, level, rule, weights=weights, harms=harms if by_harm else None)
    again = cell_from_dict(plain(cell), level, rule, randomize=False, weighted=True)
    assert plain(again) == plain(cell)
    assert cell.steps is not None
    assert again.steps is not None
    new = np.array([0.0, 1e-300, 0.1, 1.0, 2.5, 1e9])
    assert again.steps.tau(new).tobytes() == cell.steps.tau(new).tobytes()


@pytest.mark.filterwarnings("ignore::udcp_dsl.predict.calibrate.CalibrationWarning")
@given(POINTS.filter(lambda points: any(w > 0 for _, w, _ in points)), LEVELS, st.booleans(), st.booleans())
def test_a_weighted_calibration_reads_back_as_itself(
    points: list[tuple[float, float, float]], level: Fraction, by_harm: bool, pool: bool
) -> None:
    """With strata, some of which have no point, and weights that may be all 0 in one of them."""
    scores, weights, harms = ([p[i] for p in points] for i in range(3))
    rule, strata = Rule(None, Fraction(1)) if by_harm else Rule(), Strata("group", ("a", "b", "c"))
    codes = np.arange(len(points)) % 2
    c = calibrate(
        scores,
        alpha=level,
        strata=strata,
        codes=codes,
        rule=rule,
        weights=weights,
        harms=harms if by_harm else None,
        pool=pool,
    )
    data = json.loads(json.dumps(c.as_dict(), allow_nan=False))
    loaded = Calibration.from_dict(data, c.alpha, strata, rule, randomize=False)
    assert loaded.as_dict() == c.as_dict()
    new, at = np.array([0.0, 0.5, 2.0]), np.array([0, 1, 2])
    assert np.asarray(loaded.tau(at, weights=new)).tobytes() == np.asarray(c.tau(at, weights=new)).tobytes()


@given(POINTS, LEVELS, st.booleans())
def test_a_cell_whose_harm_is_bounded_reads_back_as_itself(
    points: list[tuple[float, float, float]], level: Fraction, keep: bool
) -> None:
    scores, _, harms = (np.array([p[i] for p in points], dtype=np.float64) for i in range(3))
    cell = make_cell(scores, level, Rule(None, Fraction(1)), harms=harms)
    again = cell_from_dict(plain(cell), level, Rule(None, Fraction(1)), randomize=False, weighted=False)
    assert plain(again) == plain(cell)
    assert again.scores is None


def weighted_cell() -> Any:
    scores, ones = np.arange(9.0), np.ones(9)
    return plain(make_cell(scores, Fraction(1, 2), Rule(), weights=ones))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(n=8),
        lambda d: d["scores"].reverse(),
        lambda d: d["weights"].pop(),
        lambda d: d["weights"].__setitem__(0, -1.0),
        lambda d: d["weights"].__setitem__(0, "inf"),
        lambda d: d.update(weights=None),
        lambda d: d.update(harms=[1.0] * 9),
        lambda d: d.update(steps=None),
        lambda d: d["steps"].pop("taus"),
        lambda d: d["steps"]["taus"].pop(),
        lambda d: d["steps"]["taus"].__setitem__(0, 100.0),
        lambda d: d["steps"]["taus"].__setitem__(-1, 100.0),
        lambda d: d["steps"]["taus"].__setitem__(0, math.nan),
        lambda d: d["steps"]["limits"].reverse(),
        lambda d: d["steps"]["limits"].__setitem__(0, math.nan),
        lambda d: d["steps"].update(limits=[], taus=[]),
    ],
)
def test_damaged_weighted_cells_are_refused(change: Callable[[Any], object]) -> None:
    def load(data: Any) -> Cell:
        return cell_from_dict(data, Fraction(1, 2), Rule(), randomize=False, weighted=True)

    data = weighted_cell()
    assert plain(load(data)) == data
    change(data)
    with pytest.raises(InputError, match="calibrate and save again"):
        load(data)


def test_what_a_cell_keeps_is_refused_where_nothing_is_kept() -> None:
    for name in ("scores", "weights", "harms", "steps"):
        data = plain(make_cell(np.arange(9.0), Fraction(1, 2), Rule()))
        cell_from_dict(data, Fraction(1, 2), Rule(), randomize=False, weighted=False)
        with pytest.raises(InputError, match="scores are kept only for randomize and weights"):
            cell_from_dict({**data, name: []}, Fraction(1, 2), Rule(), randomize=False, weighted=False)
