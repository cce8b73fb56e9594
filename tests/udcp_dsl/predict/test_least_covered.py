"""Parts that are covered too little are named, chance is not; nothing important is left unsaid about the sets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import binom

import udcp_dsl as udcp
from udcp_dsl.measure.coverage import LeastCovered, Stratum, hardest_quarter, strata_of

if TYPE_CHECKING:
    from tests.conftest import Sizes

TENTH = Fraction(1, 10)


def parts(*covered: int, n: int = 100) -> list[Stratum]:
    return [Stratum(str(i), n, c, c / n, kind="class") for i, c in enumerate(covered)]


def least(classes: list[Stratum], hardest: Stratum | None = None, **more: str) -> LeastCovered:
    n, covered = sum(part.n for part in classes), sum(part.covered for part in classes)
    return LeastCovered.of(TENTH, Stratum("", n, covered, covered / n), classes, hardest, **more)


def test_the_test_is_exact_and_one_sided() -> None:
    """The largest count that is named is the largest whose lower tail is at most 5 percent."""
    limit = max(c for c in range(101) if binom.cdf(c, 100, 0.9) <= 0.05)
    assert [part.name for part in least(parts(limit)).short] == ["0"]
    assert least(parts(limit + 1)).short == ()
    assert least(parts(100)).short == ()


def test_several_parts_are_tested_by_holm() -> None:
    """The lesser of two p-values stands against half of 5 percent and, where it passes, the other against all of it."""
    half, whole = (max(c for c in range(101) if binom.cdf(c, 100, 0.9) <= 0.05 / left) for left in (2, 1))
    assert half < whole  # so that the second is named by Holm, and would not be by Bonferroni
    assert [part.name for part in least(parts(half, whole)).short] == ["0", "1"]
    assert [part.name for part in least(parts(half, whole + 1)).short] == ["0"]
    assert least(parts(whole, whole)).short == ()


def test_parts_with_too_few_rows_are_left_out() -> None:
    few, enough = Stratum("few", 19, 0, 0.0, kind="class"), Stratum("enough", 20, 10, 0.5, kind="class")
    found = least([few, enough])
    assert found.worst == enough
    assert found.short == (enough,)
    many_ties = Stratum("hardest quarter", 60, 0, 0.0, kind="quarter")
    assert least(parts(95), many_ties).short == ()
    quarter = Stratum("hardest quarter", 25, 0, 0.0, kind="quarter")
    assert least(parts(95), quarter).short == (quarter,)


def test_ways_out_are_those_that_are_left() -> None:
    quarter = Stratum("hardest quarter", 25, 5, 0.2, kind="quarter")
    assert 'conditional="class" or "difficulty"' in least(parts(50), quarter).ways_out
    assert 'conditional="difficulty"' in least(parts(95), quarter).ways_out
    by_class = least(parts(50), conditional="class").ways_out
    assert "conditional" not in by_class
    assert "more calibration rows" in by_class
    assert least(parts(95)).ways_out == ""


def test_difficulty_can_be_why_a_class_falls_short() -> None:
    hint = "coverage by difficulty can lower that of classes: compare with none"
    assert hint in least(parts(50), conditional="difficulty").ways_out
    assert hint not in least(parts(50)).ways_out
    assert least(parts(95), conditional="difficulty").ways_out == ""


def test_the_hardest_quarter_keeps_equal_values_together() -> None:
    assert hardest_quarter(np.array([0.4, 0.1, 0.3, 0.2])).tolist() == [False, True, False, False]
    assert hardest_quarter(np.array([0.1, 0.1, 0.3, 0.2])).tolist() == [True, True, False, False]


def test_chance_is_seldom_named(sizes: Sizes) -> None:
    """Each row is covered with probability 0.9, whatever its class and its difficulty: at most 5 percent of
    draws name somebody. The test fails with a chance of 1e-5 at most."""
    named = 0
    for seed in range(sizes.draws):
        rng = np.random.default_rng(seed)
        covered, y, highest = rng.random(1000) < 0.9, rng.integers(10, size=1000), rng.random(1000)
        (overall,) = strata_of("all", [""], np.zeros(1000, dtype=int), covered)
        classes = strata_of("class", [str(k) for k in range(10)], y, covered)
        (quarter, _) = strata_of("quarter", ["hardest", "easier"], (~hardest_quarter(highest)).astype(int), covered)
        named += bool(LeastCovered.of(TENTH, overall, classes, quarter).short)
    assert named <= binom(sizes.draws, 0.05).isf(1e-5)


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sure and unsure rows over four labels, and truths that follow them."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([0.3] * 4, n)
    return P, np.array([rng.choice(4, p=p) for p in P])


SKEWED = "labels {a, b, c, d}\ncosts c {a: 1, b: 1, c: 1, d: 6}\nloss l = sum(c)"


@pytest.mark.parametrize("conditional", [None, "class"])
def test_calibration_rows_tell_it_before_fresh_ones_do(conditional: str | None) -> None:
    P, y = drawn(1200, 0)
    promise = udcp.Promise(alpha=0.1, conditional=conditional, repair=None)  # so that all rows are for the thresholds
    predictor = udcp.SetPredictor(udcp.loads(SKEWED), "price", promise=promise).calibrate(P, y)
    found = predictor.least_covered()
    assert found is not None
    mask = predictor.predict_set(P).mask
    covered = mask[np.arange(len(y)), y]
    assert found.overall.covered == covered.sum()
    told = "worst class 'd' 0." if conditional is None else "no class of 20 rows or more below 0.9"
    assert found.line().startswith(f"coverage {covered.mean():.3f} on the calibration rows (target 0.9); {told}")
    if conditional is None:
        assert found.worst is not None
        assert (found.worst.name, found.worst.coverage) == ("d", covered[y == 3].mean())
        assert found.worst in found.short
    else:
        assert [part for part in found.short if part.kind == "class"] == []


def test_it_is_known_at_every_alpha_and_not_where_coverage_is_not_promised(tmp_path: object) -> None:
    P, y = drawn(300, 1)
    loss = udcp.loads(SKEWED)
    several = udcp.SetPredictor(loss, "price", alpha=[0.1, 0.3]).calibrate(P, y)
    first, second = several.least_covered(0.1), several.least_covered("0.3")
    assert first is not None
    assert second is not None
    assert first.overall.coverage > second.overall.coverage
    assert udcp.SetPredictor(loss, "price", alpha=0.5, risk="c").calibrate(P, y).least_covered() is None
    weighted = udcp.SetPredictor(loss, "price", alpha=0.1).calibrate(P, y, weights=np.ones(300))
    assert weighted.least_covered() is None
    file = f"{tmp_path}/saved.json"
    several.save(file)
    assert udcp.SetPredictor.load(file).least_covered(0.1) is None


def test_empty_sets_are_counted_and_none_is_where_none_may_be() -> None:
    P, y = drawn(300, 2)
    free = udcp.SetPredictor(udcp.loads(SKEWED), "price", alpha=0.3, repair=None).calibrate(P, y)
    assert "nonempty=True (--nonempty)" in str(udcp.evaluate(free, *drawn(300, 3)))
    empty = (free.predict_set(P).sizes == 0).mean()
    assert free.fitted.in_sample.empty == pytest.approx(empty)
    assert empty > 0.01
    held = udcp.SetPredictor(udcp.loads(SKEWED), "price", alpha=0.3, nonempty=True).calibrate(P, y)
    assert "nonempty=True" not in str(udcp.evaluate(held, *drawn(300, 3)))
    assert held.fitted.in_sample.empty == 0


def test_every_row_is_accounted_for() -> None:
    P, y = drawn(400, 4)
    loss = udcp.loads(SKEWED)
    plain = udcp.SetPredictor(loss, "lac", alpha=0.1, repair=None).calibrate(P, y)
    assert repr(plain).endswith("calibrated on 400 rows)")
    given = udcp.SetPredictor(loss, "lac", alpha=0.1, repair=udcp.Repair(exponent=0.5)).calibrate(P, y)
    assert repr(given).endswith("calibrated on 400 rows)")
    tuned = udcp.SetPredictor(loss, "penalized", alpha=0.1).calibrate(P, y)
    repair, lam = (stage.rows_used for stage in tuned.fitted.stages)
    rows = f"400 rows: {400 - repair - lam} for thresholds, {repair} for repair, {lam} for lambda"
    assert repr(tuned).endswith(f"calibrated on {rows})")
