"""`risk` on costs per row: a harm that differs by row, at most the upper end of its range."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import InputError

if TYPE_CHECKING:
    from tests.conftest import Sizes

TEXT = """labels { a, b, c, d }
costs harm per row in [0, 8]
costs loss_of_life { a: 3, b: 1, c: 8, d: 0 }
costs below per row in [-1, 8]
input km in [0, 10]
loss l = size + 0.1 * km * any({ a, b })
loss plain = size
"""


def rows(n: int, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(4, 0.7), n)
    y = np.array([rng.choice(4, p=p) for p in P])
    return P, y, {"km": rng.uniform(0, 10, n), "harm": rng.uniform(0, 8, (n, 4)).round(1)}


@pytest.mark.parametrize("oracle", ["lac", "price", "base"])
@pytest.mark.parametrize("loss", ["l", "plain"])
def test_constant_columns_are_the_harm_of_the_spec(oracle: str, loss: str) -> None:
    """With the largest harm at the upper end of the range, thresholds and sets agree to the bit."""
    made = udcp.loads(TEXT, loss=loss)
    P, y, inputs = rows(200, 0)
    constant = np.tile(made.costs[1].values, (200, 1))
    given = {**inputs, "harm": constant}
    by_row = udcp.SetPredictor(made, oracle, alpha=0.9, risk="harm", repair=None).calibrate(P, y, inputs=given)
    fixed = udcp.SetPredictor(made, oracle, alpha=0.9, risk="loss_of_life", repair=None).calibrate(P, y, inputs=given)
    np.testing.assert_array_equal(by_row.predict_set(P, inputs=given).mask, fixed.predict_set(P, inputs=given).mask)
    assert by_row.calibrated.thresholds() == fixed.calibrated.thresholds()
    assert udcp.evaluate(by_row, P, y, inputs=given).risk.mean == udcp.evaluate(fixed, P, y, inputs=given).risk.mean


def test_the_threshold_is_the_least_that_the_upper_end_allows() -> None:
    """sum of h_i over s_i > tau, + hi, at most alpha (n + 1): with hi the end of the range, not the largest seen."""
    loss, alpha = udcp.loads(TEXT, loss="plain"), Fraction(9, 10)
    P, y, inputs = rows(60, 1)
    inputs["harm"] = (inputs["harm"] / 2).round(1)  # nothing above 4
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.9, risk="harm", repair=None).calibrate(P, y, inputs=inputs)
    harms = [Fraction(str(h)) for h in inputs["harm"][np.arange(60), y]]
    scores = predictor.true_scores(predictor.rows(P, y, inputs=inputs))
    tau = predictor.calibrated.thresholds()

    def missed(at: float) -> Fraction:
        return sum((h for h, s in zip(harms, scores, strict=True) if s > at), Fraction(0))

    assert missed(tau) + 8 <= alpha * 61
    below = max(s for s in scores if s < tau)
    assert missed(below) + 8 > alpha * 61


def test_the_mean_harm_of_new_rows_stays_below_alpha(sizes: Sizes) -> None:
    """One new row per calibration: harms lie in [0, 8], so that Hoeffding's bound holds their mean to alpha."""
    loss, alpha, suffered = udcp.loads(TEXT, loss="plain"), 1.0, []
    for seed in range(sizes.draws):
        P, y, inputs = rows(41, seed)
        own, new = ({k: x[part] for k, x in inputs.items()} for part in (slice(40), slice(40, None)))
        predictor = udcp.SetPredictor(loss, "lac", alpha=alpha, risk="harm", repair=None)
        sets = predictor.calibrate(P[:40], y[:40], inputs=own).predict_set(P[40:], inputs=new)
        suffered.append(0.0 if sets.mask[0, y[40]] else inputs["harm"][40, y[40]])
    chance_of_false_alarm = 1e-6
    assert np.mean(suffered) <= alpha + 8 * np.sqrt(np.log(1 / chance_of_false_alarm) / (2 * sizes.draws))
    assert np.mean(suffered) > 0.3 * alpha  # it is not that nothing is ever missed


def test_a_harm_that_the_loss_does_not_read_is_asked_for_and_saved(tmp_path: Path) -> None:
    loss = udcp.loads(TEXT, loss="plain")
    P, y, inputs = rows(80, 2)
    predictor = udcp.SetPredictor(loss, "lac", alpha=2, risk="harm", repair=None)
    assert list(predictor.inputs) == ["harm"]
    with pytest.raises(InputError, match="harm: 4 costs of labels per row"):
        predictor.calibrate(P, y)
    predictor.calibrate(P, y, inputs=inputs)
    predictor.save(tmp_path / "p.json")
    again = udcp.SetPredictor.load(tmp_path / "p.json")
    np.testing.assert_array_equal(
        again.predict_set(P, inputs=inputs).mask, predictor.predict_set(P, inputs=inputs).mask
    )
    with pytest.raises(InputError, match="harm: 4 costs of labels per row"):
        again.predict_set(P)
    found = udcp.compare(loss, P, y, inputs=inputs, oracles=["lac"], splits=2, alphas=2, risk="harm")
    assert found.summaries()[0].risk is not None


def test_a_harm_below_0_and_costs_of_a_family_are_refused() -> None:
    loss = udcp.loads(TEXT, loss="l")
    with pytest.raises(InputError, match=r"'below' has the range \[-1, 8\], but a harm cannot be below 0"):
        udcp.SetPredictor(loss, alpha=1, risk="below")
    with pytest.raises(InputError, match="8"):
        udcp.SetPredictor(loss, alpha=9, risk="harm")


def test_the_command_line_bounds_it_too(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from click.testing import CliRunner
    from pyarrow import parquet

    from udcp_dsl.cli import main

    P, y, inputs = rows(300, 3)
    named = {label: P[:, i] for i, label in enumerate("abcd")}
    columns = {**named, "truth": np.array(list("abcd"))[y], "harm": inputs["harm"].tolist(), "km": inputs["km"]}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    (tmp_path / "s.loss").write_text(TEXT, encoding="utf-8")
    read, saved = ["--probs", str(tmp_path / "rows.parquet")], str(tmp_path / "p.json")
    asked = ["--loss", "plain", "--oracle", "lac", "--risk", "harm", "--alpha", "1"]
    for command in (
        ["calibrate", str(tmp_path / "s.loss"), *read, "--truth", "truth", *asked, "-o", saved],
        ["evaluate", saved, *read, "--truth", "truth"],
        ["predict", saved, *read, "--truth", "truth", "-o", str(tmp_path / "sets.parquet")],
    ):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
    assert "mean harm" in done.stdout
    predictor = udcp.SetPredictor.load(saved)
    risk = udcp.evaluate(predictor, P, y, inputs=inputs).risk
    assert risk is not None
    assert f"mean harm {risk.mean:.4g} (at most 1 guaranteed" in done.stdout
