"""What is promised within bins by difficulty stands beside what is promised of all rows; and both are a predictor's."""

from __future__ import annotations

import json
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from udcp_dsl import InputError, Loss, SetPredictor, compare, evaluate, loads, sweep
from udcp_dsl.measure.compare import Folds, deal
from udcp_dsl.measure.comparison import Comparison, Run, write_runs
from udcp_dsl.measure.evaluate import QUARTERS
from udcp_dsl.predict.calibrate import CalibrationWarning
from udcp_dsl.predict.stages.anchor import Anchor
from udcp_dsl.predict.stages.bins import Bins
from udcp_dsl.report.figures import figures
from udcp_dsl.report.page import finding
from udcp_dsl.rows.columns import NamedPositions
from udcp_dsl.rows.rows import Rows

SPEC = """
labels { cat, dog, wolf, lynx, emu, rhea }
hierarchy kinds { feline { cat, lynx }, canine { dog, wolf }, bird { emu, rhea } }
costs harm { wolf: 4, lynx: 2.5, default: 0.5 }
param fear = 1 in [0, 5]
loss kinds_touched = count(kinds.level(1)) + 0.01 * size
loss together = size + 3 * all({ cat, dog })
loss far = fear * diameter(kinds) + 0.01 * size
"""
KINDS, FAR, TOGETHER = (loads(SPEC, loss=name) for name in ("kinds_touched", "far", "together"))
RNG = np.random.default_rng(11)
P = np.array([RNG.dirichlet(np.full(6, 3.0 if i % 4 == 0 else 0.04)) for i in range(800)])  # a quarter is hard
Y = NamedPositions.of([RNG.choice(6, p=p) for p in P], KINDS.labels)
FOLDS = deal(800, (0.5, 0.25, 0.25), 3, 2)
ORACLES = ("base", "greedy", "lac", "penalized", "price")
FIT_BINS = Bins.fit
PROMISES: tuple[dict[str, Any], ...] = (
    {"alphas": ("0.1", "0.2"), "conditional": "difficulty", "bins": 3},
    {"alphas": "0.1", "conditional": "difficulty", "confidence": "0.9"},
    {"alphas": ("0.3", "1.5"), "conditional": "difficulty", "risk": "harm"},
)


def compared(*losses: Loss, **settings: Any) -> Comparison:
    return compare(losses or (KINDS,), P, Y, **{"splits": 2, "seed": 3, "oracles": ORACLES, "repair": None, **settings})


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compared(KINDS, FAR, oracles=["lac", "price"], conditional="difficulty")


def take_edges_from(folds: Folds, monkeypatch: pytest.MonkeyPatch) -> None:
    """As compare does: bins by difficulty have the edges of the tuning rows."""
    tuning = P[np.concatenate(folds.halves)]
    rows = Rows(KINDS.labels, tuning, top=tuning.max(axis=1))
    monkeypatch.setattr(Bins, "draw_folds", lambda context, budget: ())
    monkeypatch.setattr(Bins, "fit", lambda context, folds: FIT_BINS(context, [rows]))


def by_hand(run: Run, within: str | None, settings: dict[str, Any]) -> dict[str, Any]:
    """The run again, by a predictor that is asked for the same."""
    asked = {key: value for key, value in settings.items() if key in ("confidence", "risk")}
    asked |= {"conditional": within, "bins": settings.get("bins")} if within else {}
    options = {} if run.lam is None else {"lam": run.lam}
    predictor = SetPredictor(KINDS, run.oracle, options=options, alpha=run.alpha, repair=None, **asked)
    folds = FOLDS[run.split]
    predictor.calibrate(P[folds.calibration], Y[folds.calibration])
    return evaluate(predictor, P[folds.test], Y[folds.test]).as_dict()


@pytest.mark.parametrize("settings", PROMISES, ids=["coverage", "confidence", "risk"])
def test_both_are_those_of_predictors_on_the_same_folds(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = compared(**settings)
    assert both.beside is not None
    for kept, within in ((both, None), (both.beside, "difficulty")):
        assert len(kept.runs) == len(ORACLES) * 2 * len(both.alphas)
        for run in kept.runs:
            with monkeypatch.context() as patched:
                take_edges_from(FOLDS[run.split], patched)
                expected = by_hand(run, within, settings)
            assert {**run.evaluation.as_dict(), "certified": expected["certified"]} == expected
    assert [run.lam for run in both.runs] == [run.lam for run in both.beside.runs]  # tuned at one threshold for all
    costs = [[run.evaluation.mean_cost for run in kept.runs] for kept in (both, both.beside)]
    assert costs[0] != costs[1]


@pytest.mark.parametrize("settings", PROMISES, ids=["coverage", "confidence", "risk"])
def test_anchors_are_those_of_a_predictor_on_the_fold_for_tuning(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = compared(TOGETHER, oracles=["price"], splits=1, **settings)
    assert both.beside is not None
    folds = FOLDS[0]
    rows = np.concatenate([*folds.halves, folds.calibration])
    many = sum(map(len, folds.halves))
    take_edges_from(folds, monkeypatch)
    monkeypatch.setattr(Anchor, "draw_folds", lambda context, budget: (np.arange(many),))
    asked = {key: value for key, value in settings.items() if key in ("confidence", "risk")}
    by_bins: dict[str, Any] = {"conditional": "difficulty", "bins": settings.get("bins")}
    for kept, within in ((both, dict[str, Any]()), (both.beside, by_bins)):
        for run in kept.runs:
            predictor = SetPredictor(TOGETHER, "price", alpha=run.alpha, repair=None, **asked, **within).calibrate(
                P[rows], Y[rows]
            )
            assert predictor.anchors is not None
            by_hand = evaluate(predictor, P[folds.test], Y[folds.test]).as_dict()
            assert {**run.evaluation.as_dict(), "certified": by_hand["certified"]} == by_hand


def test_what_stands_beside_changes_nothing_else(found: Comparison) -> None:
    alone = compared(KINDS, FAR, oracles=["lac", "price"])
    assert alone.beside is None
    assert [r.evaluation for r in alone.runs] == [r.evaluation for r in found.runs]
    assert (alone.curves, alone.examples) == (found.curves, found.examples)
    assert found.beside is not None
    assert (found.beside.curves, found.beside.examples, found.beside.beside) == ({}, {}, None)
    assert (found.within, found.beside.within) == ("", ", within each of 4 bins by difficulty")


def test_hard_rows_are_covered_beside_and_not_otherwise(found: Comparison) -> None:
    assert found.beside is not None
    for marginal, beside in zip(found.summaries(), found.beside.summaries(), strict=True):
        assert (marginal.loss, marginal.oracle) == (beside.loss, beside.oracle)
        assert list(marginal.by_difficulty) == list(beside.by_difficulty) == list(QUARTERS)
        least, least_beside = (min(covered for covered, _ in s.by_difficulty.values()) for s in (marginal, beside))
        # 100 test rows a quarter and 100 calibration rows a bin: a deviation is about 0.04.
        assert least < 0.79 < least_beside
        assert sum(share for _, share in marginal.by_difficulty.values()) == pytest.approx(1)
        runs = [r for r in found.runs if (r.loss, r.oracle) == (marginal.loss, marginal.oracle)]
        hardest = [r.evaluation.by_difficulty[0] for r in runs]
        assert marginal.by_difficulty["hardest"][0] == sum(s.covered for s in hardest) / sum(s.n for s in hardest)


@pytest.mark.parametrize("promise", [{"alphas": "0.2", "confidence": "0.9"}, {"alphas": "0.4", "risk": "harm"}])
def test_examples_say_from_which_alpha_on_a_label_is_left_out(promise: dict[str, Any]) -> None:
    both = compared(KINDS, FAR, splits=1, **promise)
    level = float(promise["alphas"])
    for examples in both.examples.values():
        for example in examples:
            for oracle, p in example.p_values.items():
                assert {label for label in p if p[label] > level} == set(example.sets[oracle])


def test_a_bound_on_harm(found: Comparison) -> None:
    both = compared(oracles=["price"], alphas=("0.3", "3"), risk="harm")
    first, second = both.summaries()
    assert first.risk == pytest.approx(np.mean([r.evaluation.risk.mean for r in both.runs[:2] if r.evaluation.risk]))
    assert first.risk is not None
    assert second.risk is not None
    assert 0 < first.risk < second.risk
    assert found.summaries()[0].risk is None
    assert "mean harm" in finding(both, "kinds_touched", Fraction(3, 10))
    assert "target" not in finding(both, "kinds_touched", Fraction(3, 10))
    levels = [alpha for alpha, _, _ in both.curves["kinds_touched", "price"]]
    assert max(levels) == pytest.approx(0.4 * 4)  # shares of the largest harm
    text = str(both)
    assert "keeps the mean of 'harm' over missed true labels at most 0.3" in text
    assert "compare costs at equal harm only" in text


def test_as_data_and_as_a_table(found: Comparison, tmp_path: Path) -> None:
    assert found.beside is not None
    data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert (data["confidence"], data["risk"]) == (None, None)
    assert (data["beside"]["conditional"], data["beside"]["bins"]) == ("difficulty", 4)
    covered = found.beside.summaries()[0].by_difficulty["hardest"][0]
    assert data["beside"]["summaries"][0]["by_difficulty"]["hardest"]["coverage"] == covered
    columns = found.table()
    many = len(found.runs)
    assert columns["conditional"] == [None] * many + ["difficulty"] * many
    costs = [run.evaluation.mean_cost for run in (*found.runs, *found.beside.runs)]
    assert columns["mean_cost"] == costs
    assert [row["mean_cost"] for row in data["runs"]] == costs
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    write_runs(tmp_path / "runs.parquet", found)
    assert parquet.read_table(tmp_path / "runs.parquet").to_pydict() == columns


def test_shown_one_above_the_other(found: Comparison) -> None:
    assert found.beside is not None
    text = str(found)
    headings = [
        "kinds_touched, alpha 0.1\n",
        "kinds_touched, alpha 0.1, within each of 4 bins by difficulty\n",
        "far, alpha 0.1\n",
        "far, alpha 0.1, within each of 4 bins by difficulty\n",
    ]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    for kept in (found, found.beside):
        covered, share = kept.summaries()[0].by_difficulty["hardest"]
        assert f"{covered:.3f} ({share:.0%})" in text


@pytest.mark.usefixtures("undrawn")
def test_in_the_report(found: Comparison, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert found.beside is not None
    names = [figure.name for figure in figures(found)]
    assert len(names) == len(set(names))
    for loss in found.names:
        assert f"{loss}-within-bins-coverage-by-difficulty-alpha-0.1" in names
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h3>At alpha 0.1, within each of 4 bins by difficulty</h3>" in page
    assert "Coverage by difficulty, within each of 4 bins by difficulty" in page
    for kept in (found, found.beside):
        assert escape(finding(kept, "far", kept.alphas[0])) in page
        for summary in kept.summaries():
            quarters = ", ".join(f"{covered:.2f}" for covered, _ in summary.by_difficulty.values())
            assert f'<br><span class="range">{quarters}</span></span></td>' in page
    assert "and beside that in 4 bins by difficulty" in page


@pytest.mark.usefixtures("undrawn")
def test_harm_in_the_report(tmp_path: Path) -> None:
    """No line is drawn, and nothing is said, of a coverage that was not asked for."""
    pytest.importorskip("matplotlib")
    both = compared(oracles=["lac", "price"], alphas="0.3", risk="harm", conditional="difficulty")
    assert not [figure.name for figure in figures(both) if "target" in figure.caption + figure.text]
    both.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "target" not in page
    assert "alpha bounds the mean of <b><bdi>harm</bdi></b>" in page
    assert '<th scope="col">harm <span class="range">at most 0.3</span></th>' in page
    assert "<b>Harm is bounded on average over all rows</b>" in page


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"conditional": "group"}, "conditional is 'group': give None, \"difficulty\""),
        ({"conditional": "difficulty", "bins": 1}, "bins is 1: give a whole number from 2"),
        ({"bins": 4}, "bins= needs conditional="),
        ({"confidence": 2}, "confidence is 2: give a number strictly between 0 and 1"),
        ({"risk": "harm"}, "risk needs alpha"),
        ({"risk": "hram", "alphas": "0.1"}, "did you mean 'harm'"),
        ({"risk": "harm", "alphas": "4"}, "strictly between 0 and 4, the largest harm"),
        ({"risk": "harm", "alphas": "0.1", "confidence": "0.9"}, "risk and confidence exclude each other"),
    ],
)
def test_mistakes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compared(**settings)


def test_a_sweep_shows_one_promise() -> None:
    values: dict[str, Any] = {"param": "fear", "values": [1, 2], "oracles": ["lac"], "splits": 1}
    with pytest.raises(InputError, match="a sweep shows one guarantee"):
        sweep(FAR, P, Y, conditional="difficulty", **values)
    swept = sweep(FAR, P, Y, risk="harm", alphas="0.3", **values)
    assert all(summary.risk is not None for _, summary in swept.summaries())
    pytest.importorskip("matplotlib")
    assert len(swept.plot().axes[1].lines) == 1  # the oracle; no line of a coverage that is asked for


def test_too_few_rows_in_a_bin_are_told() -> None:
    with pytest.warns(CalibrationWarning) as told:
        compare(KINDS, P[:100], Y[:100], oracles=["lac", "penalized"], splits=2, conditional="difficulty", bins=8)
    (message,) = [str(warning.message) for warning in told]
    assert "the fold for thresholds has 50 rows, and alpha 0.1 needs 9 in each of 8 bins by difficulty, 144" in message
    assert "so bins are merged: give more rows or a larger alpha, or fewer bins" in message


def test_too_few_rows_for_the_harm_of_any_loss_are_told() -> None:
    graver = loads(SPEC.replace("wolf: 4", "wolf: 40"), loss="far")
    with pytest.warns(CalibrationWarning) as told:
        compare([KINDS, graver], P[:100], Y[:100], oracles=["lac"], splits=1, risk="harm", alphas="0.5")
    (message,) = [str(warning.message) for warning in told]
    assert message.startswith("the fold for thresholds has 50 rows, and alpha 0.5 needs 79, so all sets contain")
