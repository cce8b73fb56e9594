"""Limits: held on average, with coverage by its exact law, saved and loaded; and refused where they cannot be held."""

from __future__ import annotations

import itertools
import json
import math
import re
import warnings
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import norm, t

import udcp_dsl as udcp
from udcp_dsl.check.coverage import assert_coverage
from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.facts import Interval
from udcp_dsl.predict.calibrate import CalibrationWarning, coverage_law
from udcp_dsl.predict.chain import applying, deal
from udcp_dsl.predict.saved import _hash
from udcp_dsl.predict.stages.limits import Multipliers, clopper_pearson_above
from udcp_dsl.predict.stages.stage import FitContext, LimitError

if TYPE_CHECKING:
    from tests.conftest import Sizes

HEAD = "labels { a, b, c, d, e, f, g, h }  category C { b, e, g }  category D { a, b, c }\n"
NESTED = HEAD + "limit slots: any(C) <= 0.44  loss l in hours = size + 0.5 * any(C)"
TWO = HEAD + "limit slots: any(C) <= 0.46  limit near: size(D) <= 0.9  loss l = size + 0.5 * any(C)"
SIZES = HEAD + "limit big: (size >= 3) <= 0.2  loss l = size"
ANCHORED = HEAD + "limit slots: any(C) <= 0.44  loss l = size + 2 * (any(C) and any(D))"
# With confidence sets are larger, and hold less.
WIDER = NESTED.replace("0.44", "0.5")
TWO_WIDER = TWO.replace("0.46", "0.55").replace("0.9", "1.1")
HANDED_OVER = HEAD + "limit slots: any(C) <= 0.4  loss l = min(size + 0.5 * any(C), 3)"
SLACK = HEAD + "limit slots: any(C) <= 0.9  loss l = size"


class Rows:
    """Probabilities that are true, of rows that are easy and hard."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        q = 3 * rng.normal(size=(n, 8)) + np.linspace(0, -1, 8)
        P = np.exp(q - q.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        return P, (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def drawn(n: int, seed: int) -> tuple[Any, Any]:
    return Rows().draw(n, np.random.default_rng(seed))


def calibrated(text: str, n: int = 900, rows: int = 0, **asked: Any) -> udcp.SetPredictor:
    """On n rows, drawn by the seed `rows`."""
    asked = {"alpha": 0.1, "repair": None, **asked}
    return udcp.SetPredictor(udcp.loads(text), "price", **asked).calibrate(*drawn(n, rows))


def effects(predictor: udcp.SetPredictor) -> Any:
    assert predictor.multipliers is not None
    (found,) = predictor.multipliers.values()
    return found.effects


def bound_rows(predictor: udcp.SetPredictor, P: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the upper bounds, and those of the thresholds."""
    context, rows = FitContext(predictor.promise, predictor.oracle), predictor.rows(P, y)
    ((stage, (_, own)),), left = deal(context, rows, np.arange(len(rows)), applying(context, repairs=False))
    assert stage is Multipliers
    return own, left


def simulated(text: str, repeats: int, n: int, **asked: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of each calibration the means of the limits over fresh rows, and the multipliers."""
    means, multipliers = [], []
    for seed in range(repeats):
        predictor = calibrated(text, n, seed, seed=seed, **asked)
        P, _ = drawn(4000, 10_000 + seed)
        masks = predictor.predict_set(P).mask
        means.append([limit.batch(masks).mean() for limit in predictor.loss.limits])
        multipliers.append(effects(predictor).multipliers)
    return np.array(means), np.array(multipliers)


def assert_held(text: str, repeats: int, n: int, **asked: Any) -> None:
    """Within three Monte Carlo errors of each limit, as Student's law has them for so many repeats, or below it where
    its multiplier is 0."""
    means, multipliers = simulated(text, repeats, n, **asked)
    at_most = np.array([limit.at_most for limit in udcp.loads(text).limits])
    error = t(repeats - 1).isf(norm.sf(3)) * means.std(axis=0, ddof=1) / np.sqrt(repeats)
    assert (means.mean(axis=0) < at_most + error).all(), (means.mean(axis=0), error)
    assert (multipliers > 0).any()
    always = (multipliers > 0).all(axis=0)
    assert (means.mean(axis=0)[always] > at_most[always] - error[always]).all(), (means.mean(axis=0), error)


def test_the_mean_is_at_the_limit(sizes: Sizes) -> None:
    """One that every draw of so few tuning rows can reach."""
    assert_held(WIDER, sizes.problems, 900)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "asked"),
    [
        *((text, {}) for text in (NESTED, TWO, SIZES, ANCHORED)),
        *((NESTED, {name: True}) for name in ("nonempty", "randomize")),
        (NESTED, {"conditional": "difficulty", "bins": 3}),
    ],
)
def test_the_mean_is_at_the_limit_over_many_calibrations(text: str, asked: dict[str, Any], sizes: Sizes) -> None:
    repeats = sizes.seeds if text == ANCHORED else sizes.problems  # which takes two seconds each
    assert_held(text, repeats, 3000, **asked)


@pytest.mark.parametrize("text", [NESTED, TWO])
def test_coverage_follows_its_exact_law(text: str, sizes: Sizes) -> None:
    loss = udcp.loads(text.replace("0.44", "0.6").replace("0.46", "0.6").replace("0.9", "1.3"))
    predictor = udcp.SetPredictor(loss, alpha=0.2, repair=None)
    assert_coverage(predictor, Rows(), n_cal=120, repeats=sizes.repeats, n_test=30)


@pytest.mark.slow
@pytest.mark.parametrize("text", [NESTED, TWO, SIZES, ANCHORED])
def test_coverage_follows_its_exact_law_over_many_calibrations(text: str, sizes: Sizes) -> None:
    predictor = udcp.SetPredictor(udcp.loads(text), alpha=0.1, repair=None)
    repeats = sizes.seeds if text == ANCHORED else sizes.problems
    assert_coverage(predictor, Rows(), n_cal=1500, repeats=repeats, n_test=200)


def misses(text: str, repeats: int, n: int) -> float:
    """How often the bound at confidence 0.9 of any limit is below the mean over many fresh rows."""
    missed = 0
    for seed in range(repeats):
        predictor = calibrated(text, n, seed, seed=seed, confidence=0.9)
        masks = predictor.predict_set(drawn(20_000, 10_000 + seed)[0]).mask
        limits = zip(effects(predictor).limits, predictor.loss.limits, strict=True)
        missed += any(found.bound < limit.batch(masks).mean() for found, limit in limits)
    return missed / repeats


@pytest.mark.parametrize(
    ("text", "n"), [(WIDER, 1200), *(pytest.param(text, 3000, marks=pytest.mark.slow) for text in (WIDER, TWO_WIDER))]
)
def test_the_bound_is_seldom_below_the_mean(text: str, n: int, sizes: Sizes) -> None:
    """Beside the chance that the means over fresh rows are off, which is small."""
    assert misses(text, sizes.problems, n) <= 0.1 + 3 * np.sqrt(0.09 / sizes.problems)


def test_the_bound_is_of_rows_of_its_own() -> None:
    predictor = calibrated(WIDER, 1200, confidence=0.9)
    found = effects(predictor)
    assert predictor.multipliers is not None
    assert found.bound_rows == 200  # a quarter of the 800 that are no tuning rows
    assert predictor.calibrated.n == 600
    assert predictor.multipliers[Fraction(1, 10)].rows_used == 600
    P, y = drawn(1200, 0)
    own, left = bound_rows(predictor, P, y)
    assert not set(own.tolist()) & set(left.tolist())
    touched = predictor.predict_set(P[own]).mask[:, [1, 4, 6]].any(axis=1)
    assert found.limits[0].bound == clopper_pearson_above(int(touched.sum()), 200, 0.1)
    assert effects(calibrated(WIDER, 1200)).bound_rows == 0


def test_bounds_of_several_limits_share_the_error() -> None:
    """Each is of half of 0.2, so that it is as high as that of a limit alone at confidence 0.9."""
    predictor = calibrated(TWO_WIDER, 1200, alpha=0.2, confidence=0.8)
    P, y = drawn(1200, 0)
    own, _ = bound_rows(predictor, P, y)
    touched = predictor.predict_set(P[own]).mask[:, [1, 4, 6]].any(axis=1)
    assert effects(predictor).limits[0].bound == clopper_pearson_above(int(touched.sum()), len(own), 0.1)


def test_sets_are_the_best_under_cost_and_multiplier() -> None:
    """By brute force: no set has a lower L + nu E - tau p."""
    predictor = calibrated(NESTED)
    loss, (limit,) = predictor.loss, predictor.loss.limits
    (nu,), tau = effects(predictor).multipliers, predictor.calibrated.thresholds()
    assert nu > 0
    every = np.array(list(itertools.product([False, True], repeat=8)))
    values = loss.batch(every) + nu * limit.batch(every)
    P, _ = drawn(200, 5)
    masks = predictor.predict_set(P).mask
    reached = loss.batch(masks) + nu * limit.batch(masks) - tau * (P * masks).sum(axis=1)
    least = (values - tau * (P @ every.T)).min(axis=1)
    assert reached == pytest.approx(least, abs=1e-9)


def test_costs_that_are_shown_are_those_of_the_spec() -> None:
    predictor = calibrated(NESTED)
    P, y = drawn(500, 7)
    sets = predictor.predict_set(P)
    assert (sets.costs == predictor.loss.batch(sets.mask)).all()
    measured = udcp.evaluate(predictor, P, y)
    assert measured.mean_cost == sets.costs.mean()
    assert measured.mean_cost == pytest.approx(sum(measured.cost_by_term.values()))
    limited: Any = predictor.oracle.with_multipliers(effects(predictor).multipliers)
    for step in limited.explain(P[0]):
        assert step.cost == predictor.loss(step.labels)


def test_multipliers_are_from_tuning_rows_alone() -> None:
    """Other truths of the rows for thresholds change these, and no multiplier."""
    P, y = drawn(900, 0)
    predictor = udcp.SetPredictor(udcp.loads(NESTED), alpha=0.1, repair=None).calibrate(P, y)
    left = predictor.threshold_rows(predictor.rows(P, y))
    assert len(left) == 600
    other = y.copy()
    other[left] = (other[left] + 1) % 8
    again = udcp.SetPredictor(predictor.loss, alpha=0.1, repair=None).calibrate(P, other)
    assert effects(again) == effects(predictor)
    assert again.calibrated.thresholds() != predictor.calibrated.thresholds()


def test_a_limit_that_holds_changes_nothing() -> None:
    predictor = calibrated(SLACK)
    found = effects(predictor)
    assert found.multipliers == (0.0,)
    assert found.cost == found.cost_without
    P, _ = drawn(300, 3)
    tau = predictor.calibrated.thresholds()
    assert (predictor.predict_set(P).mask == udcp.make_oracle("price", predictor.loss).sets(P, tau)).all()


def test_a_limit_that_every_set_holds_gives_up_no_row() -> None:
    with pytest.warns(UserWarning, match="always holds"):
        loss = udcp.loads(HEAD + "limit slots: any(C) <= 1  loss l = size")
    predictor = udcp.SetPredictor(loss, alpha=0.1, repair=None).calibrate(*drawn(300, 0))
    assert predictor.multipliers is None
    assert predictor.calibrated.n == 300


def test_one_vector_per_alpha() -> None:
    predictor = calibrated(NESTED, alpha=[0.1, 0.3])
    assert predictor.multipliers is not None
    strict, loose = (found.effects for found in predictor.multipliers.values())
    assert strict.multipliers[0] > loose.multipliers[0]
    alone = calibrated(NESTED, alpha=0.1)
    assert effects(alone) == predictor.multipliers[Fraction(1, 10)].effects
    P, _ = drawn(100, 9)
    assert (alone.predict_set(P).mask == predictor.predict_set(P, alpha=0.1).mask).all()


def test_the_limit_is_over_all_rows_where_thresholds_are_by_group() -> None:
    loss = udcp.loads(NESTED)
    P, y = drawn(6000, 1)
    groups = np.where(P.max(axis=1) > 0.6, "easy", "hard")
    predictor = udcp.SetPredictor(loss, alpha=0.1, conditional="group", repair=None).calibrate(P, y, groups=groups)
    new, _ = drawn(6000, 2)
    masks = predictor.predict_set(new, groups=np.where(new.max(axis=1) > 0.6, "easy", "hard")).mask
    assert effects(predictor).limits[0].mean == pytest.approx(0.44, abs=0.002)
    assert loss.limits[0].batch(masks).mean() == pytest.approx(0.44, abs=0.045)


def test_limits_are_held_at_the_alpha_that_a_worth_of_a_miss_found(sizes: Sizes) -> None:
    """Alpha is found without the limits, and multipliers at it."""
    assert_held(WIDER, sizes.problems, 1800, alpha=None, miss=9)
    without = calibrated(NESTED.replace("limit slots: any(C) <= 0.44", ""), 1800, alpha=None, miss=9)
    predictor = calibrated(NESTED, 1800, alpha=None, miss=9)
    assert predictor.multipliers is not None
    assert list(predictor.multipliers) == list(predictor.alphas)
    assert effects(predictor).multipliers[0] > 0
    found, plain = predictor.fitted.find("alpha"), without.fitted.find("alpha")
    assert found is not None
    assert plain is not None
    assert (found.overall.cost, found.overall.missed) == (plain.overall.cost, plain.overall.missed)


@pytest.mark.parametrize("inputs", [False, True])
def test_a_limit_that_never_binds_does_not_change_the_search_for_alpha(inputs: bool) -> None:
    """Only because of the limit, `price` needs an anchor."""
    fee, read = ("costs fee per row in [0, 5]  ", "sum(fee)") if inputs else ("", "size")
    P, y = drawn(1800, 0)
    given = {"inputs": {"fee": np.random.default_rng(0).uniform(0, 5, P.shape)}} if inputs else {}
    found = []
    for limit in ("limit big: (size >= 3) <= 0.99", ""):
        loss = udcp.loads(f"{HEAD} {fee} {limit}  loss l = {read} + any(C)")
        predictor = udcp.SetPredictor(loss, miss=9, repair=None)
        assert predictor.oracle.wants_anchor == bool(limit)
        worth = predictor.calibrate(P, y, **given).fitted.find("alpha")
        assert worth is not None
        found.append((worth.overall.cost, worth.overall.missed))
    assert found[0] == found[1]


def test_a_worth_of_a_miss_at_which_a_limit_cannot_be_reached_is_refused() -> None:
    with pytest.raises(LimitError, match=r"cannot be reached at alpha 0\.0\d+.*raise the limit or give a smaller miss"):
        calibrated(NESTED, 1800, alpha=None, miss=60)


def test_limits_are_held_beside_decisions_and_each_decision_is_covered(sizes: Sizes) -> None:
    """Coverage of each decision by its beta-binomial law, within five standard deviations of the sum; the limit as
    elsewhere."""
    asked: dict[str, Any] = {"conditional": "decision", "alpha": 0.2}
    assert_held(HANDED_OVER, sizes.problems, 1600, **asked)
    gain, variance = dict.fromkeys(("kept", "handed over"), 0.0), dict.fromkeys(("kept", "handed over"), 0.0)
    for seed in range(sizes.problems):
        predictor = calibrated(HANDED_OVER, 600, seed, seed=seed, **asked)
        P, y = drawn(300, 20_000 + seed)
        sets = predictor.predict_set(P)
        covered = sets.mask[np.arange(len(y)), y]
        names = predictor.fitted.context.strata.names
        for name, cell in zip(names, predictor.calibrated.cells, strict=True):
            own = sets.handed_over == (name == "handed over")
            law = coverage_law(cell.n, 0.2, int(own.sum()))
            gain[name] += float(covered[own].sum() - law.mean())
            variance[name] += float(law.var())
    for name, sum_of in gain.items():
        assert variance[name] > 0
        assert abs(sum_of) < 5 * math.sqrt(variance[name])


def test_a_predictor_with_limits_is_not_adapted() -> None:
    own = drawn(600, 0)
    predictor = udcp.SetPredictor(udcp.loads(NESTED), alpha=0.1, repair=None).calibrate(*own)
    with pytest.raises(InputError, match=r"limits \('slots'\) are met on average over the label mix"):
        predictor.adapt(own[0], calibration=own)
    reporting = udcp.SetPredictor(udcp.loads(NESTED), "lac", alpha=0.1, repair=None).calibrate(*own)
    assert reporting.adapt(own[0], calibration=own).fitted.find("new mix") is not None


def test_the_limit_is_over_weighted_rows_where_rows_are_weighted() -> None:
    """New rows are harder: their weight falls with the highest probability."""
    loss = udcp.loads(NESTED.replace("0.44", "0.6"))
    P, y = drawn(9000, 1)

    def weights(P: np.ndarray) -> np.ndarray:
        return np.asarray(1.05 - P.max(axis=1))

    predictor = udcp.SetPredictor(loss, alpha=0.1, repair=None).calibrate(P, y, weights=weights(P))
    new, _ = drawn(20_000, 2)
    shifted = new[np.random.default_rng(0).random(len(new)) < weights(new)]
    masks = predictor.predict_set(shifted, weights=weights(shifted)).mask
    assert effects(predictor).limits[0].multiplier > 0
    assert loss.limits[0].batch(masks).mean() == pytest.approx(0.6, abs=0.05)
    assert loss.limits[0].batch(predictor.predict_set(new, weights=weights(new)).mask).mean() < 0.55


def test_a_limit_may_read_inputs_that_the_loss_does_not() -> None:
    loss = udcp.loads(HEAD + "input km in [0, 9]  limit far: km * any(C) <= 1.6  loss l = size")
    P, y = drawn(900, 0)
    inputs = {"km": np.random.default_rng(0).integers(0, 3, 900) * 3.0}
    predictor = udcp.SetPredictor(loss, alpha=0.1, repair=None).calibrate(P, y, inputs=inputs)
    found = effects(predictor)
    assert found.limits[0].mean == pytest.approx(1.6, abs=0.05)
    assert found.limits[0].without > 1.7
    near, far = (predictor.predict_set(P, inputs={"km": np.full(900, km)}).mask for km in (0.0, 9.0))
    assert loss.limits[0].batch(near, loss.inputs_of({"km": np.full(900, 0.0)}, 900)).sum() == 0
    assert far[:, [1, 4, 6]].sum() < near[:, [1, 4, 6]].sum()
    measured = udcp.evaluate(predictor, P, y, inputs=inputs)
    assert measured.limits[0].inside == int((np.isin(y, [1, 4, 6]) & (inputs["km"] > 0)).sum())


FAR = "limit far: km * any(C) <= 1.6  loss l = size + 0.1 * km * any(C)"


def test_the_loss_of_one_row_has_the_limits_of_that_row(tmp_path: Path) -> None:
    """As if the number were written into the spec, in scores, sets and reports; with bounds for that row."""
    of_row = udcp.loads(HEAD + f"input km in [0, 9]  {FAR}").at({"km": 4})
    constant = udcp.loads(HEAD + f"param km = 4  {FAR}")
    P, y = drawn(900, 0)
    assert of_row.limits[0].facts.interval == constant.limits[0].facts.interval == Interval(0.0, 4.0)
    made = [udcp.SetPredictor(loss, alpha=0.1, repair=None).calibrate(P, y) for loss in (of_row, constant)]
    assert effects(made[0]) == effects(made[1])
    assert effects(made[0]).limits[0].multiplier > 0
    np.testing.assert_array_equal(made[0].predict_set(P).mask, made[1].predict_set(P).mask)
    measured = [udcp.evaluate(predictor, P, y).limits for predictor in made]
    assert measured[0] == measured[1]
    made[0].save(tmp_path / "saved.json")
    again = udcp.SetPredictor.load(tmp_path / "saved.json")
    np.testing.assert_array_equal(again.predict_set(P).mask, made[0].predict_set(P).mask)
    reported = udcp.evaluate(udcp.SetPredictor(of_row, "lac", alpha=0.1).calibrate(P, y), P, y)
    assert reported.limits[0].inside == int(np.isin(y, [1, 4, 6]).sum())


def test_what_cannot_be_reached_is_refused_with_the_least_that_can() -> None:
    predictor = udcp.SetPredictor(udcp.loads(NESTED.replace("0.44", "0.05")), alpha=0.1, repair=None)
    with pytest.raises(LimitError, match=r"limit 'slots' \(any\(C\) <= 0.05\) cannot be reached at alpha 0.1") as told:
        predictor.calibrate(*drawn(900, 0))
    least = float(str(told.value).split("smallest reachable mean of any(C) is ")[1].split(" ")[0])
    assert 0.2 < least < 0.4
    assert not predictor.fits
    reached = udcp.SetPredictor(udcp.loads(NESTED.replace("0.44", f"{least + 0.01}")), alpha=0.1, repair=None)
    assert effects(reached.calibrate(*drawn(900, 0))).limits[0].mean <= least + 0.01
    assert isinstance(told.value, InputError)


def test_limits_that_exclude_each_other_are_refused() -> None:
    text = HEAD + "limit inner: any(C) <= 0.42  limit outer: any({ a, c, d, f, h }) <= 0.66  loss l = size"
    for one in ("limit inner: any(C) <= 0.42", "limit outer: any({ a, c, d, f, h }) <= 0.66"):
        assert effects(calibrated(text.replace(one, "")))
    with pytest.raises(LimitError, match=r"cannot be held together at alpha 0\.1, although each can alone") as told:
        calibrated(text)
    assert "smallest" not in str(told.value)
    assert "raise one of them or alpha" in str(told.value)
    third = "limit large: size <= 7.5  loss l"  # which holds by itself
    with pytest.raises(LimitError, match=r"^limits 'inner' \(any\(C\) <= 0.42\) and 'outer' \(\S.* <= 0.66\) cannot"):
        calibrated(text.replace("loss l", third))


@pytest.mark.parametrize("bounds", [(0.455, 0.235), (0.4, 0.7), (0.3, 0.2)])
def test_of_several_limits_the_least_is_what_each_allows_by_itself(bounds: tuple[float, float]) -> None:
    """The smallest mean that is named is above its limit; a little above it the limit alone can be reached, and a
    little below it cannot."""
    spec = "labels {{ a, b, c, d }}  category s {{ c, d }}  category u {{ a, d }}  {}  loss l = size + 0.7 * any(s)"
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(4, 0.5), 300)
    y = (P.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)

    def calibrate(*limits: str) -> None:
        udcp.SetPredictor(udcp.loads(spec.format("  ".join(limits))), alpha=0.2, repair=None).calibrate(P, y)

    texts = {"slots": "any(s)", "two": "any(u)"}
    with pytest.raises(LimitError) as told:
        calibrate(*(f"limit {name}: {texts[name]} <= {at_most}" for name, at_most in zip(texts, bounds, strict=True)))
    pattern = r"limit '(\w+)' \(\S+ <= (\S+)\) cannot be reached.*?, even without the others.*? of any\(.\) is ([\d.]+)"
    found = re.findall(pattern, str(told.value))
    assert found
    for name, at_most, least in found:
        assert float(least) > float(at_most)
        calibrate(f"limit {name}: {texts[name]} <= {float(least) + 0.01}")
        with pytest.raises(LimitError):
            calibrate(f"limit {name}: {texts[name]} <= {float(least) - 0.01}")


def test_a_mean_that_jumps_past_its_limit_is_warned_of() -> None:
    """At the multiplier 1, all sets cost nothing: no mean between 1 and 3 labels is reached, unless labels differ."""
    text = "labels {{ a, b, c }}  limit z: -size <= -1.6  loss l = size{}"
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(3, 0.5), 1500)
    y = (P.cumsum(axis=1) > rng.random((1500, 1))).argmax(axis=1)
    asked: dict[str, Any] = {"alpha": 0.3, "repair": None}
    told = r"limit 'z' \(-size <= -1.6\) is met by far more than needed at alpha 0.3: on 500 tuning rows, .* to -3 "
    with pytest.warns(CalibrationWarning, match=told):
        udcp.SetPredictor(udcp.loads(text.format("")), **asked).calibrate(P, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apart = udcp.SetPredictor(udcp.loads(text.format(" + 0.1 * any({ a })")), **asked).calibrate(P, y)
    assert effects(apart).limits[0].mean == pytest.approx(-1.6, abs=0.02)


def test_too_few_rows_and_classes_are_refused() -> None:
    with pytest.raises(LimitError, match="give more rows, or remove the limits"):
        calibrated(NESTED, 20)
    with pytest.raises(LimitError, match="limits are means over all rows"):
        udcp.SetPredictor(udcp.loads(NESTED), alpha=0.1, conditional="class")
    with pytest.raises(InputError, match="multipliers of limits for each alpha"):
        udcp.SetPredictor(udcp.loads(NESTED), alpha=[0.1, 0.2], randomize=True)
    udcp.SetPredictor(udcp.loads(NESTED), "lac", alpha=0.1, conditional="class")  # which only reports


def test_other_oracles_report_limits_and_give_up_no_row() -> None:
    predictor = udcp.SetPredictor(udcp.loads(NESTED), "lac", alpha=0.1, repair=None).calibrate(*drawn(900, 0))
    assert predictor.calibrated.n == 900
    P, y = drawn(2000, 1)
    (measured,) = udcp.evaluate(predictor, P, y).limits
    mask = predictor.predict_set(P).mask
    assert measured.multiplier is None
    assert measured.mean == mask[:, [1, 4, 6]].any(axis=1).mean() > 0.5
    assert measured.interval[0] < measured.mean < measured.interval[1]
    inside = np.isin(y, [1, 4, 6])
    assert (measured.inside, measured.inside_covered) == (inside.sum(), mask[np.arange(2000), y][inside].sum())


def test_what_is_said_of_it() -> None:
    predictor = calibrated(NESTED)
    P, y = drawn(2000, 1)
    measured = udcp.evaluate(predictor, P, y)
    (limit,), (nu,) = measured.limits, effects(predictor).multipliers
    text = str(measured)
    assert f"one more in a hundred rows is worth {nu:.3g} hours" in " ".join(text.split())
    assert "rows whose true label counts against the limit: coverage" in text
    assert measured.as_dict()["limits"][0]["multiplier"] == nu == limit.multiplier
    assert limit.inside_coverage is not None
    assert limit.inside_coverage < measured.coverage
    found = effects(predictor).limits[0]
    assert found.covered < found.covered_without
    assert "without limits" in found.line(None)


@pytest.mark.parametrize("text", [NESTED, TWO, ANCHORED])
def test_saved_and_loaded(text: str, tmp_path: Path) -> None:
    predictor = calibrated(text, 600, alpha=[0.15, 0.2], confidence=0.8)
    predictor.save(tmp_path / "p.json")
    loaded = udcp.SetPredictor.load(tmp_path / "p.json")
    assert loaded.multipliers == predictor.multipliers
    assert (loaded.anchors is not None) == (text == ANCHORED)
    P, _ = drawn(50, 4)
    for alpha in (0.15, 0.2):
        assert (loaded.predict_set(P, alpha=alpha).mask == predictor.predict_set(P, alpha=alpha).mask).all()


HOSTILE = {
    "a multiplier below 0": lambda s: s["effects"]["limits"][0].update(multiplier=-1.0),
    "a multiplier that is no number": lambda s: s["effects"]["limits"][0].update(multiplier="3"),
    "a multiplier beyond floats": lambda s: s["effects"]["limits"][0].update(multiplier=1e307),
    "a multiplier too few": lambda s: s["effects"].update(limits=[]),
    "another limit": lambda s: s["effects"]["limits"][0].update(name="other"),
    "a field too many": lambda s: s["effects"].update(more=1),
    "a list": lambda s: s.update(effects=[]),
    "rows below 0": lambda s: s.update(n=-3),
    "rows of a bound that are true": lambda s: s["effects"].update(bound_rows=True),
    "anchors that it has not": lambda s: s.update(anchor={"n": 5, "overall": 1.0, "by_stratum": {}}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_file_that_was_tampered_with_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    calibrated(NESTED, 300).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    HOSTILE[what](content["fits"][0]["stages"][0])
    content["sha256"] = _hash(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match="save"):
        udcp.SetPredictor.load(path)
