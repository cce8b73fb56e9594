"""The numbers of a comparison are those of SetPredictor and evaluate, by hand, on the same folds; nothing leaks."""

from __future__ import annotations

import csv
import doctest
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl import InputError, Loss, OracleError, SetPredictor, compare, evaluate, loads
from udcp_dsl.measure import compare as running
from udcp_dsl.measure import compare as splits
from udcp_dsl.measure import comparison as results
from udcp_dsl.measure.compare import CURVE, deal
from udcp_dsl.measure.comparison import Comparison, Run, median_of_means, write_runs
from udcp_dsl.predict.calibrate import DEFAULT_GRID, CalibrationWarning
from udcp_dsl.predict.stages.repair import RepairStage
from udcp_dsl.rows.columns import NamedPositions

SPEC = """
labels { cat, dog, wolf, lynx, emu, rhea }
hierarchy kinds { feline { cat, lynx }, canine { dog, wolf }, bird { emu, rhea } }
costs fees { emu: 3, default: 1 }
loss fees_only = sum(fees)
loss kinds_touched = count(kinds.level(1)) + 0.01 * size
"""
KINDS, FEES = loads(SPEC), loads(SPEC, loss="fees_only")
RNG = np.random.default_rng(7)
P = RNG.dirichlet(np.full(6, 0.4), 400)
Y = NamedPositions.of([RNG.choice(6, p=0.8 * p + 0.2 / 6) for p in P], KINDS.labels)
SITES = RNG.choice(["north", "south"], 400, p=[0.3, 0.7])
ALPHAS = (Fraction(1, 10), Fraction(1, 5))
FOLDS = deal(400, (0.5, 0.25, 0.25), 3, 3)
ORACLES = ("base", "greedy", "lac", "penalized", "price")


def compared(**settings: Any) -> Comparison:
    return compare(
        [KINDS, FEES],
        P,
        Y,
        **{"alphas": ALPHAS, "splits": 3, "seed": 3, "oracles": ORACLES, "repair": None, **settings},
    )


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compared(groups=SITES)


def untimed(runs: Sequence[Run]) -> list[Run]:
    return [replace(run, seconds=0.0) for run in runs]


def by_hand(run: Run, loss: Loss) -> dict[str, Any]:
    """The run again, with lambda chosen by a plain loop."""
    folds = FOLDS[run.split]
    options = {}
    if run.oracle == "penalized":
        first, second = folds.halves
        costs = []
        for lam in DEFAULT_GRID:
            tried = SetPredictor(loss, "penalized", options={"lam": lam}, alpha=run.alpha).calibrate(P[first], Y[first])
            costs.append((float(np.mean([loss(set(s)) for s in tried.predict_set(P[second]).labels])), lam))
        # Means that are added up in another order may differ in the last digit.
        options = {"lam": run.lam}
        assert {lam: cost for cost, lam in costs}[run.lam] == pytest.approx(min(costs)[0], rel=1e-12)
    else:
        assert run.lam is None
    predictor = SetPredictor(loss, run.oracle, options=options, alpha=run.alpha)
    predictor.calibrate(P[folds.calibration], Y[folds.calibration])
    found = evaluate(predictor, P[folds.test], Y[folds.test], groups=SITES[folds.test]).as_dict()
    return {**found, "certified": None}  # which comparisons do not count


def test_every_run_is_that_of_a_predictor_on_the_same_folds(comparison: Comparison) -> None:
    losses = {"kinds_touched": KINDS, "fees_only": FEES}
    assert len(comparison.runs) == 2 * len(ORACLES) * 2 * 3
    for run in comparison.runs:
        assert run.evaluation.as_dict() == by_hand(run, losses[run.loss])
        assert run.seconds > 0
    lambdas = {run.lam for run in comparison.runs if run.oracle == "penalized"}
    assert len(lambdas) > 1  # or the choice is not tested


def test_the_runs_are_in_the_order_of_losses_oracles_alphas_splits(comparison: Comparison) -> None:
    found = [(run.loss, run.oracle, run.alpha, run.split) for run in comparison.runs]
    assert found == list(itertools.product(("kinds_touched", "fees_only"), ORACLES, ALPHAS, range(3)))


def test_the_same_seed_gives_the_same_result(comparison: Comparison) -> None:
    again = compared(groups=SITES, workers=3)
    assert untimed(again.runs) == untimed(comparison.runs)
    assert (again.curves, again.examples) == (comparison.curves, comparison.examples)
    assert untimed(compared(groups=SITES, seed=4).runs) != untimed(comparison.runs)


def test_a_split_does_not_depend_on_how_many_there_are(comparison: Comparison) -> None:
    one = compared(groups=SITES, splits=1)
    assert untimed(one.runs) == untimed([run for run in comparison.runs if run.split == 0])


def test_scores_that_are_not_kept(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "_MAX_SCORES_IN_MEMORY", 0)
    again = compared(groups=SITES)
    assert untimed(again.runs) == untimed(comparison.runs)
    assert again.curves == comparison.curves


def test_the_test_fold_does_not_see_its_truth() -> None:
    """Nor does the half of the tuning fold on which mean costs are taken."""
    usual = compared(splits=1)
    for rows in (FOLDS[0].test, FOLDS[0].halves[1]):
        y = Y.copy()
        y[rows] = (y[rows] + 1 + np.arange(len(rows)) % 5) % 6
        other = compare([KINDS, FEES], P, y, alphas=ALPHAS, splits=1, seed=3, oracles=ORACLES, repair=None)
        for a, b in zip(usual.runs, other.runs, strict=True):
            assert a.lam == b.lam
            for measure in ("mean_cost", "size_counts", "cost_by_term", "empty"):
                assert getattr(a.evaluation, measure) == getattr(b.evaluation, measure)
        for name in usual.names:
            before, after = ({e.row: e.sets for e in x.examples[name]} for x in (usual, other))
            both = before.keys() & after.keys()  # truths decide which of them are shown first, and nothing else
            assert len(both) >= 30
            assert all(before[row] == after[row] for row in both)
    assert other.runs[0].evaluation.coverage == usual.runs[0].evaluation.coverage


def test_the_truth_of_the_other_folds_matters() -> None:
    usual = compared(splits=1)
    for rows in (FOLDS[0].calibration, FOLDS[0].halves[0]):
        y = Y.copy()
        y[rows] = P[rows].argmin(axis=1)
        other = compare([KINDS, FEES], P, y, alphas=ALPHAS, splits=1, seed=3, oracles=ORACLES, repair=None)
        assert untimed(other.runs) != untimed(usual.runs)


@given(st.integers(16, 300), st.integers(0, 5), st.integers(0, 2**40))
def test_folds_are_disjoint_and_hold_every_row(n: int, splits: int, seed: int) -> None:
    for split, folds in enumerate(deal(n, (0.5, 0.25, 0.25), seed, splits)):
        parts = (folds.calibration, *folds.halves, folds.test)
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        assert all((np.diff(part) > 0).all() for part in parts)
        assert abs(len(folds.calibration) - n / 2) <= 1
        assert abs(len(folds.test) - n / 4) <= 1
        assert abs(len(folds.halves[0]) - len(folds.halves[1])) <= 1
        assert folds.split == split


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_median_of_means(values: list[float]) -> None:
    found = median_of_means(values)
    assert min(values) - 1e-6 <= found <= max(values) + 1e-6
    if len(values) <= 5:
        assert found == pytest.approx(median(values))
    if len(values) == 10:
        assert found == pytest.approx(median([mean(values[i : i + 2]) for i in range(0, 10, 2)]))


def test_summaries(comparison: Comparison) -> None:
    summaries = comparison.summaries()
    found = [(x.loss, x.alpha, x.oracle) for x in summaries]
    assert found == list(itertools.product(("kinds_touched", "fees_only"), ALPHAS, ORACLES))
    for x in summaries:
        runs = [r for r in comparison.runs if (r.loss, r.alpha, r.oracle) == (x.loss, x.alpha, x.oracle)]
        measures = [run.evaluation for run in runs]
        coverages, costs = [m.coverage for m in measures], [m.mean_cost for m in measures]
        assert x.coverage == pytest.approx(mean(coverages))
        low, high = x.coverage_interval
        reach = 4.302653 * stdev(coverages) * (4 / 3) ** 0.5  # the quantile of Student's t for 2
        assert high == pytest.approx(min(1, mean(coverages) + reach), rel=1e-6)
        assert low == pytest.approx(mean(coverages) - reach, rel=1e-6)
        assert x.cost == pytest.approx(median(costs))
        assert x.cost_mean == pytest.approx(mean(costs))
        assert x.cost_error == pytest.approx(stdev(costs) / 3**0.5)
        assert sum(x.cost_by_term.values()) == pytest.approx(x.cost_mean)
        assert x.size == pytest.approx(mean([m.mean_size for m in measures]))
        assert x.empty == pytest.approx(sum(m.empty for m in measures) / 300)
        for strata, kept in ((x.by_size, "by_size"), (x.by_group, "by_group")):
            pooled = [s for m in measures for s in getattr(m, kept)]
            assert sum(share for _, share in strata.values()) == pytest.approx(1)
            for name, (covered, share) in strata.items():
                own = [s for s in pooled if s.name == name]
                assert covered == sum(s.covered for s in own) / sum(s.n for s in own)
                assert share == sum(s.n for s in own) / 300
        assert list(x.by_group) == ["north", "south"]


def test_a_single_split_has_the_exact_interval() -> None:
    one = compared(splits=1, oracles=["lac"])
    assert one.summaries()[0].coverage_interval == one.runs[0].evaluation.interval
    assert one.summaries()[0].cost_error is None


def test_curves(comparison: Comparison) -> None:
    # The smallest half for tuning has 50 rows, so that alphas below 1/51 have no finite threshold there.
    alphas = [float(alpha) for alpha in CURVE if alpha >= Fraction(1, 51)]
    for (loss, oracle), points in comparison.curves.items():
        assert [alpha for alpha, _, _ in points] == alphas
        for alpha in ALPHAS:
            run = next(r for r in comparison.runs if (r.loss, r.oracle, r.alpha) == (loss, oracle, alpha))
            (point,) = (point for point in points if point[0] == float(alpha))
            assert point[1] == run.evaluation.coverage
            assert point[2] == pytest.approx(run.evaluation.mean_cost, rel=1e-12)


def test_examples(comparison: Comparison) -> None:
    predictor = SetPredictor(KINDS, "price", alpha=0.1).calibrate(P[FOLDS[0].calibration], Y[FOLDS[0].calibration])
    examples = comparison.examples["kinds_touched"]
    assert len(examples) == 40
    assert len({x.row for x in examples}) == 40
    for x in examples:
        assert x.row in FOLDS[0].test
        assert x.truth == KINDS.labels[Y[x.row]]
        assert set(x.sets) == set(ORACLES)
        assert set(x.sets["price"]) == set(predictor.predict_set(P[[x.row]]).labels[0])
        for oracle, labels in x.sets.items():
            assert x.costs[oracle] == pytest.approx(KINDS(set(labels)))
            assert x.terms[oracle] == KINDS.terms(set(labels))
        assert x.probabilities == {KINDS.labels[y]: P[x.row, y] for y in np.argsort(-P[x.row])}
        assert x.name is None
    named = compared(splits=1, oracles=["lac"], ids=[f"photo {i}" for i in range(400)])
    assert all(x.name == f"photo {x.row}" for x in named.examples["fees_only"])


def test_the_first_examples_teach(comparison: Comparison) -> None:
    """First price cheaper and right, then price missing a truth that its rival holds; each with the reason."""
    for name, loss in (("kinds_touched", KINDS), ("fees_only", FEES)):
        right, missed, *others = comparison.examples[name]
        for x in (right, missed):
            assert x.pair is not None
            ours, rival = x.pair
            assert ours == "price"
            assert x.costs[ours] < x.costs[rival]
            assert x.truth in x.sets[rival]
        assert right.truth in right.sets["price"]
        assert "Both contain the true label" in right.why
        assert missed.truth not in missed.sets["price"]
        fuller = loss({*missed.sets["price"], missed.truth})
        probability = missed.probabilities[missed.truth]
        told = f"price misses the true label, {missed.truth}: its probability is {probability:.2g}"
        assert missed.why.startswith(f"{told}, and with it the set would cost {fuller:.4g} instead of ")
        for x in others:
            if x.pair is None:
                assert (len({frozenset(labels) for labels in x.sets.values()}), x.why) == (1, "")
            else:
                means = {s.oracle: s.cost_mean for s in comparison.summaries() if s.loss == name}
                assert x.pair[1] in means
                assert set(x.sets["price"]) != set(x.sets[x.pair[1]])


def test_without_price_the_cheapest_teaches() -> None:
    found = compared(oracles=["base", "lac"], splits=1)
    for examples in found.examples.values():
        assert {x.pair[0] for x in examples if x.pair is not None} <= {"base", "lac"}
    alone = compared(oracles=["lac"], splits=1)
    assert all(x.pair is None and len(examples) == 40 for examples in alone.examples.values() for x in examples)


def test_labels_have_names_for_readers() -> None:
    found = compared(oracles=["lac", "price"], splits=1, label_names={"cat": "Felis catus"})
    assert (found.called("cat"), found.called("dog")) == ("Felis catus", "dog")
    whys = [x.why for examples in found.examples.values() for x in examples]
    assert any("Felis catus" in why for why in whys)
    assert not any(re.search(r"\bcat\b", why) for why in whys)
    assert all(x.truth in KINDS.labels for x in found.examples["fees_only"])
    with pytest.raises(InputError, match="label_names: 'cta' is not a label; did you mean 'cat'"):
        compared(label_names={"cta": "x"})


def test_those_that_do_not_apply_are_named_with_the_reason() -> None:
    found = compare([KINDS, FEES], P, Y, splits=1)
    assert ("kinds_touched", "ratio") in found.skipped
    assert "needs a separable loss" in found.skipped["kinds_touched", "ratio"]
    assert ("fees_only", "ratio") not in found.skipped
    assert "only if it is named among the oracles" in found.skipped["fees_only", "ilp"]
    oracles = {(run.loss, run.oracle) for run in found.runs}
    assert ("fees_only", "ratio") in oracles
    assert not {("kinds_touched", "ratio"), ("kinds_touched", "ilp")} & oracles
    text = _text(found)
    assert "ratio is left out for kinds_touched: oracle 'ratio' needs a separable loss" in text
    assert "price *" in text
    with pytest.raises(OracleError, match="no oracle is left for the loss 'kinds_touched': oracle 'ratio' needs"):
        compare(KINDS, P, Y, oracles=["ratio"])
    with pytest.raises(OracleError, match="there is no oracle 'pirce': did you mean 'price'"):
        compare(KINDS, P, Y, oracles=["pirce"])
    with pytest.raises(OracleError, match="none is named"):
        compare(KINDS, P, Y, oracles=[])


def test_the_exact_oracle_takes_part_where_it_is_named() -> None:
    found = compare(KINDS, P[:60], Y[:60], oracles=["ilp", "price"], splits=2, alphas="0.4")
    assert [x.oracle for x in found.summaries()] == ["ilp", "price"]
    assert not found.skipped


def test_columns_are_matched_by_class_names() -> None:
    order = [3, 0, 5, 1, 2, 4]
    names = [KINDS.labels[i] for i in order]
    found = compare(
        [KINDS, FEES],
        P[:, order],
        [KINDS.labels[y] for y in Y],
        class_names=names,
        alphas=ALPHAS,
        splits=1,
        seed=3,
        oracles=ORACLES,
        repair=None,
    )
    assert untimed(found.runs) == untimed(compared(splits=1).runs)


def test_losses_of_one_name_are_told_apart() -> None:
    a, b = (loads("labels {x, y}  loss l = " + text, name=f"{name}.loss") for name, text in (("a", "size"), ("b", "1")))
    p, y = np.tile([0.6, 0.4], (40, 1)), [0, 1] * 20
    assert compare([a, b], p, y, oracles=["lac"], splits=1).names == ("a.loss:l", "b.loss:l")
    with pytest.raises(InputError, match=r"the loss 'a\.loss:l' is given twice"):
        compare([a, a], p, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"splits": 0}, "splits is 0: give a whole number, 1 or more"),
        ({"splits": True}, "splits is True"),
        ({"splits": 1.5}, "splits is 1.5"),
        ({"seed": -1}, "seed is -1: give a whole number, 0 or more"),
        ({"workers": 0}, "workers is 0"),
        ({"alphas": []}, "alpha is an empty list: give at least one level"),
        ({"alphas": [0.1, "1/10"]}, "alpha is 0.1, 0.1: give at least one level, each once"),
        ({"alphas": 1.5}, "strictly between 0 and 1"),
        ({"fractions": (0.5, 0.5)}, "give three above 0 that sum to 1"),
        ({"fractions": (0.5, 0.25, 0.3)}, "give three above 0 that sum to 1"),
        ({"fractions": (0.997, 0.001, 0.002)}, "400 rows are too few"),
        ({"groups": ["a"]}, "groups"),
        ({"class_names": ["cat"]}, "class"),
    ],
)
def test_mistakes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compared(**settings)


def test_more_mistakes() -> None:
    with pytest.raises(InputError, match="no loss is given"):
        compare([], P, Y)
    with pytest.raises(TypeError, match="not a Loss"):
        compare(["kinds.loss"], P, Y)  # type: ignore[list-item]
    with pytest.raises(InputError, match="different labels, or the same in another order"):
        compare([KINDS, loads("loss l = size", labels=KINDS.labels[::-1])], P, Y)
    with pytest.raises(InputError, match="row 3"):
        compare(KINDS, np.where(np.arange(400)[:, None] == 3, np.nan, P), Y)
    with pytest.raises(InputError, match="399"):
        compare(KINDS, P, Y[:-1])


def test_too_few_rows_are_told_once() -> None:
    with pytest.warns(CalibrationWarning) as told:
        found = compare(KINDS, P[:60], Y[:60], oracles=["lac", "penalized"], splits=3, alphas="0.01")
    messages = [str(warning.message) for warning in told]
    assert len(messages) == 2
    assert "the fold for thresholds has 30 rows, and alpha 0.01 needs 99, so all sets contain all labels" in messages[0]
    assert "half the fold for tuning has 8 rows, and alpha 0.01 needs 99, so lambda cannot be tuned" in messages[1]
    assert all(run.evaluation.mean_size == 6 for run in found.runs)


def test_as_data(comparison: Comparison) -> None:
    data = json.loads(json.dumps(comparison.as_dict(), allow_nan=False))
    assert (data["n"], data["K"], data["splits"], data["alphas"]) == (400, 6, 3, ["0.1", "0.2"])
    assert data["accuracy"] == (P.argmax(axis=1) == Y).mean()
    assert len(data["runs"]) == len(comparison.runs)
    assert data["runs"][0]["mean_cost"] == comparison.runs[0].evaluation.mean_cost
    assert data["summaries"][0]["by_group"]["north"]["coverage"] == comparison.summaries()[0].by_group["north"][0]
    assert data["runs"][0]["term_1"] == "count(kinds.level(1))"
    assert data["runs"][-1]["term_2_cost"] is None


def test_the_worth_of_a_miss_names_its_oracle(comparison: Comparison) -> None:
    data = comparison.as_dict()["worth of a miss"]
    found = {(x["loss"], x["oracle"], x["alpha"]): x["worth"] for x in data}
    assert len(found) == len(data)
    curves = comparison.along.items()
    assert found == {(*key, x.alpha): x.worth for key, curve in curves for x in curve.points if x.worth is not None}
    assert {oracle for _, oracle, _ in found} == {"price"}


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_runs_as_a_file(comparison: Comparison, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"runs.{ending}"
    write_runs(file, comparison)
    columns = comparison.table()
    if ending == "csv":
        with file.open(newline="") as text:
            rows = list(csv.DictReader(text))
        assert [float(row["mean_cost"]) for row in rows] == pytest.approx(columns["mean_cost"], rel=5e-12)
        assert max(len(row["mean_cost"].strip("0.")) for row in rows) <= 13  # twelve digits and a point
        assert [row["lam"] for row in rows] == ["" if lam is None else str(lam) for lam in columns["lam"]]
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import feather, parquet

        table: Any = parquet.read_table(file) if ending == "parquet" else feather.read_table(file)
        assert table.to_pydict() == columns
        assert table.schema.field("lam").type == pa.float64()
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_an_unknown_ending(comparison: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown extension '\.xls'; known: \.parquet"):
        write_runs(tmp_path / "runs.xls", comparison)


def test_progress_is_told_of_every_oracle_and_split() -> None:
    seen = []

    def progress(tasks: Sequence[Any], doing: str) -> Any:
        for task in tasks:
            yield task
            seen.append((doing, len(tasks)))

    compared(progress=progress, oracles=["lac", "price"])
    assert seen == [("comparing over 3 splits", 12)] * 12


def test_documented_examples() -> None:
    assert [doctest.testmod(module).failed for module in (running, results)] == [0, 0]


def _text(comparison: Comparison) -> str:
    from io import StringIO

    from rich.console import Console

    text = StringIO()
    Console(file=text, width=200, color_system=None).print(comparison)
    return text.getvalue()


@pytest.mark.parametrize("how", ["auto", "temperature"])
def test_a_repair_is_fitted_on_rows_that_are_in_no_fold(how: Any) -> None:
    flat = np.sqrt(P) / np.sqrt(P).sum(axis=1, keepdims=True)
    found = compare(KINDS, flat, Y, oracles=["base"], splits=2, seed=3, repair=how)
    (stage,) = found.repairs
    assert isinstance(stage, RepairStage)
    predictor = SetPredictor(KINDS, "base", repair=how, seed=3).calibrate(flat, [KINDS.labels[k] for k in Y])
    assert predictor.repair is not None
    assert predictor.repair.as_dict() == stage.repair.as_dict()
    rest = predictor.threshold_rows(predictor.rows(flat, [KINDS.labels[k] for k in Y]))
    assert found.n == len(rest)
    assert found.as_dict()["repair"] == found.about_p == str(stage)
    given = compare(KINDS, stage.repair.apply(flat)[rest], Y[rest], oracles=["base"], splits=2, seed=3, repair=None)
    assert [run.evaluation.mean_cost for run in found.runs] == [run.evaluation.mean_cost for run in given.runs]
    with pytest.raises(InputError, match="repair is 'warm'"):
        compare(KINDS, P, Y, oracles=["base"], repair="warm")  # type: ignore[arg-type]


def test_examples_say_from_which_alpha_on_a_label_is_left_out() -> None:
    loss = loads("labels { a, b, c }  category two { a, b }  loss l = size + 3 * all(two)")
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 300)
    y = (P.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    found = compare(loss, P, y, alphas="0.2", oracles=["lac", "penalized", "price"], splits=2)
    for example in found.examples["l"]:
        for oracle, p in example.p_values.items():
            assert {label for label in p if p[label] > 0.2} == set(example.sets[oracle])
        assert set(example.p_values) == {"lac", "penalized", "price"}
