"""`evaluate`: every number against its definition, on cases small enough to count by hand and on random ones."""

from __future__ import annotations

import json
import math
import re
import warnings
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import udcp_dsl as udcp
from udcp_dsl import Evaluation, InputError, SetPredictor, evaluate
from udcp_dsl.measure.evaluate import Stratum
from udcp_dsl.predict.calibrate.levels import clopper_pearson

K = 120
LOSS = udcp.loads(f"labels 0..{K - 1}  category low {{ 0..9 }}  loss l = size + 3 * any(low) + 0.5")


def rows(*spans: tuple[int, int]) -> Any:
    """Probabilities spread evenly over the labels from `start` on, `size` of them."""
    P = np.zeros((len(spans), K))
    for row, (start, size) in zip(P, spans, strict=True):
        row[start : start + size] = 1 / size
    return P


# The sets of this predictor are the labels with p >= 1/110: all those that have any, or none of 120.
PREDICTOR = SetPredictor(LOSS, "lac", alpha=0.5).calibrate(rows((0, 110)), [0])

SPANS = [(0, 1), (1, 1), (20, 1), (5, 2), (5, 4), (30, 9), (30, 10), (0, 49), (0, 50), (0, 100), (0, 110), (0, 120)]
TRUTH = [0, 2, 20, 6, 9, 30, 41, 48, 0, 99, 110, 0]  # covered where it lies in the span
COVERED = [True, False, True, True, False, True, False, True, True, True, False, False]


def test_by_hand() -> None:
    report = evaluate(PREDICTOR, rows(*SPANS), TRUTH)
    assert (report.n, report.covered, report.empty, report.oracle, report.loss) == (12, 7, 1, "lac", "l")
    assert report.coverage == 7 / 12
    sizes = [1, 1, 1, 2, 4, 9, 10, 49, 50, 100, 110, 0]
    assert report.sets.sizes.tolist() == sizes
    assert report.mean_size == pytest.approx(sum(sizes) / 12)
    assert report.size_counts == {0: 1, 1: 3, 2: 1, 4: 1, 9: 1, 10: 1, 49: 1, 50: 1, 100: 1, 110: 1}
    assert report.size_quantiles == {0.0: 0, 0.05: 0, 0.25: 1, 0.5: 4, 0.75: 49, 0.95: 110, 1.0: 110}
    low = [0, 1, 3, 4, 7, 8, 9, 10]  # the sets that touch labels 0 to 9
    costs = [size + 3 * (i in low) + 0.5 for i, size in enumerate(sizes)]
    assert report.mean_cost == pytest.approx(np.mean(costs))
    assert report.cost_error == pytest.approx(np.std(costs, ddof=1) / math.sqrt(12))
    assert report.cost_by_term == pytest.approx({"size": sum(sizes) / 12, "3 * any(low)": 2.0, "0.5": 0.5})
    found = [(s.name, s.n, s.covered) for s in report.by_size]
    assert found == [
        ("0", 1, 0), ("1", 3, 2), ("2-4", 2, 1), ("5-9", 1, 1), ("10-49", 2, 1), ("50-99", 1, 1), ("100+", 2, 1),
    ]  # fmt: skip
    assert report.by_size[1].mean_true_probability == pytest.approx(2 / 3)
    assert report.by_size[2].mean_true_probability == pytest.approx(1 / 4)
    assert report.by_size[6].mean_cost == pytest.approx(105 + 3.5)
    assert [(s.name, s.n, s.covered) for s in report.by_class][:2] == [("0", 3, 2), ("2", 1, 0)]
    assert report.by_group == ()
    assert report.size_violation is None


@given(st.integers(1, 60), st.data(), st.sampled_from([0.5, 0.9, 0.95]))
def test_clopper_pearson_by_its_definition(n: int, data: st.DataObject, confidence: float) -> None:
    """At the ends of the interval the tail of the binomial is just (1 - confidence) / 2."""
    from scipy.stats import binom

    covered = data.draw(st.integers(0, n))
    low, high = (float(x) for x in clopper_pearson(covered, n, confidence))
    assert 0 <= low <= covered / n <= high <= 1
    assert low == 0 if covered == 0 else binom.sf(covered - 1, n, low) == pytest.approx((1 - confidence) / 2)
    assert high == 1 if covered == n else binom.cdf(covered, n, high) == pytest.approx((1 - confidence) / 2)


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_strata_are_what_their_names_say(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    spans = [(int(rng.integers(0, K - m + 1)), int(m)) for m in rng.choice([1, 2, 3, 7, 30, 70, 105, 120], n)]
    truth = [int(rng.integers(max(0, a - 1), min(K, a + m + 1))) for a, m in spans]
    sites = rng.choice(["x", "y", "z"], n)
    P = rows(*spans)
    report = evaluate(PREDICTOR, P, truth, groups=sites)
    mask = np.array([[m <= 110 and a <= y < a + m for y in range(K)] for a, m in spans])
    inside = mask[np.arange(n), truth]
    top = P.max(axis=1)
    cuts = np.quantile(top, [0.25, 0.5, 0.75], method="inverted_cdf")
    expected = {
        "by_class": {str(y): np.array(truth) == y for y in truth},
        "by_group": {site: sites == site for site in sites},
        "by_difficulty": {
            "to": top <= cuts[0],
            "low": (cuts[0] < top) & (top <= cuts[1]),
            "high": (cuts[1] < top) & (top <= cuts[2]),
            "above": top > cuts[2],
        },
    }
    for name, members in expected.items():
        strata: tuple[Stratum, ...] = getattr(report, name)
        held = {key: rows_in for key, rows_in in members.items() if rows_in.any()}
        assert sum(s.n for s in strata) == n
        if name != "by_difficulty":
            assert {s.name for s in strata} == set(held)
        in_order = held.values() if name == "by_difficulty" else [held[s.name] for s in strata]
        for s, rows_in in zip(strata, in_order, strict=True):
            assert (s.n, s.covered) == (rows_in.sum(), inside[rows_in].sum())
            assert s.coverage == s.covered / s.n
            assert s.mean_size == pytest.approx(mask[rows_in].sum(axis=1).mean())
            assert s.mean_cost == pytest.approx(LOSS.batch(mask[rows_in]).mean())
            assert s.mean_true_probability == pytest.approx(P[np.arange(n), truth][rows_in].mean())
            assert s.interval == tuple(float(x) for x in clopper_pearson(s.covered, s.n))
    assert sum(s.n for s in report.by_size) == n
    assert report.mean_cost == pytest.approx(sum(report.cost_by_term.values()))


def test_difficulty_keeps_equal_values_together() -> None:
    saturated = evaluate(PREDICTOR, rows(*[(0, 1)] * 10), [0] * 10)
    assert [(s.name, s.n) for s in saturated.by_difficulty] == [("to 1", 10)]
    report = evaluate(PREDICTOR, rows((0, 1), (0, 2), (0, 4), (0, 8)), [0] * 4)
    names = [s.name for s in report.by_difficulty]
    assert names == ["to 0.125", "above 0.125 to 0.25", "above 0.25 to 0.5", "above 0.5"]
    assert [s.mean_size for s in report.by_difficulty] == [8, 4, 2, 1]


def test_size_violation() -> None:
    """Bin 1: 20 of 50 covered, 0.1 short of 1/2; bin 2-4: 49 points, too few to count; empty sets do not count."""
    spans = [(0, 1)] * 50 + [(0, 3)] * 49 + [(0, 120)] * 60
    truth = [0] * 20 + [5] * 30 + [5] * 49 + [0] * 60
    assert evaluate(PREDICTOR, rows(*spans), truth).size_violation == pytest.approx(0.1)
    more = evaluate(PREDICTOR, rows(*spans, (0, 3)), [*truth, 0])
    assert more.size_violation == pytest.approx(0.5 - 1 / 50)
    assert evaluate(PREDICTOR, rows(*[(0, 1)] * 50), [0] * 50).size_violation == 0


def test_a_single_point_has_no_standard_error() -> None:
    report = evaluate(PREDICTOR, rows((0, 1)), [0])
    assert report.cost_error is None
    assert report.interval[1] == 1


def test_as_plain_data_and_as_text() -> None:
    report = evaluate(PREDICTOR, rows(*SPANS), TRUTH, groups=["site \x1b[31m"] * 12)
    data = report.as_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["interval"] == list(report.interval)
    assert data["by_size"][0] == {
        "name": "0", "n": 1, "covered": 0, "coverage": 0.0, "interval": [0.0, pytest.approx(0.975)],
        "mean_size": 0.0, "mean_cost": 0.5, "mean_true_probability": pytest.approx(1 / 120),
    }  # fmt: skip
    text = str(report)
    for part in ("l by lac, alpha 0.5, 12 rows", "coverage", "0.5833", "for 3 * any(low)", "10-49", "highest p"):
        assert part in text
    assert "\x1b" not in text
    assert max(map(len, text.split("\n"))) <= 100
    many = evaluate(PREDICTOR, rows(*[(0, 20)] * 15), list(range(5)) * 3, groups=list(range(15)))
    assert "by group, the 10 of 15 that are covered least" in str(many)


def test_groups_and_levels() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(K), 300)
    y = rng.integers(0, K, 300)
    sites = np.arange(300) % 2
    predictor = SetPredictor(LOSS, "lac", alpha=[0.1, 0.4], conditional="group").calibrate(P, y, groups=sites)
    with pytest.raises(InputError, match="calibrated by group, so the evaluation needs the group of each row"):
        evaluate(predictor, P, y, alpha=0.1)
    with pytest.raises(InputError, match="several alphas"):
        evaluate(predictor, P, y, groups=sites)
    report = evaluate(predictor, P, y, alpha=0.4, groups=sites)
    assert [s.name for s in report.by_group] == ["0", "1"]
    assert np.array_equal(report.sets.mask, predictor.predict_set(P, alpha=0.4, groups=sites).mask)
    marginal = SetPredictor(LOSS, "lac").calibrate(P, y)
    assert [s.n for s in evaluate(marginal, P, y, groups=sites).by_group] == [150, 150]


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="predictor is a str"):
        evaluate("predictor", rows((0, 1)), [0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not calibrated"):
        evaluate(SetPredictor(LOSS, "lac"), rows((0, 1)), [0])
    with pytest.raises(InputError, match="2 entries for 1 rows"):
        evaluate(PREDICTOR, rows((0, 1)), [0, 1])
    with pytest.raises(InputError, match="groups: 2 entries for 1 rows"):
        evaluate(PREDICTOR, rows((0, 1)), [0], groups=[1, 2])
    with pytest.raises(InputError, match="row 0 sums to 2"):
        evaluate(PREDICTOR, 2 * rows((0, 2)), [0])
    assert isinstance(evaluate(PREDICTOR, rows((0, 1)), [0]), Evaluation)


@pytest.mark.parametrize("steps", [False, True])
def test_the_share_of_sets_that_are_proved_to_be_the_best(steps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from udcp_solvers.search.prices import SearchPrices

    monkeypatch.setattr(SearchPrices.__init__, "__defaults__", (10,))  # branches: too few for many rows
    draw = np.random.default_rng(6)
    K, n = 14, 120
    fees = ", ".join(f"{y}: {0.05 + 0.9 * x:.3f}" for y, x in enumerate(draw.random(K)))
    families = ", ".join(f"f{i}: {{ {i}, {i + 1}, {(i + 7) % K} }}" for i in range(0, K - 1, 2))
    loss = udcp.loads(
        f"labels 0..{K - 1}  costs c {{ {fees} }}  categories F {{ {families} }}  "
        "loss l = max(sum(c), count(F)) + 0.01 * size"
    )
    P = draw.dirichlet(np.full(K, 0.3), n)
    y = [str(draw.choice(K, p=p)) for p in P]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor = SetPredictor(loss, "price").calibrate(P, y)
    assert predictor.anchors is not None
    told: list[tuple[int, int]] = []
    with warnings.catch_warnings(record=True) as caught, ExitStack() as listening:
        warnings.simplefilter("always")
        if steps:
            listening.enter_context(predictor.oracle.on_progress(lambda *rows: told.append(rows)))
        found = udcp.evaluate(predictor, P, y)
    assert len(told) > 2 or not steps
    (text,) = (str(x.message) for x in caught)  # of all rows, in however many steps they were searched
    match = re.search(r"(\d+) of 120 rows used up their search budget", text)
    assert match is not None
    assert found.certified == pytest.approx(1 - int(match[1]) / n)
    assert 0 < found.certified < 1
    assert found.as_dict()["certified"] == found.certified
    assert f"{found.certified:.1%}" in str(found)
    assert udcp.evaluate(SetPredictor(loss, "lac").calibrate(P, y), P, y).certified is None
