"""Inputs per row in calibration and prediction: scores by brute force per row, constant columns, coverage, tables."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from tests.specs import size_of
from tests.udcp_dsl.inputs.test_language import DECLARED, draw, loss_of, row_of
from tests.udcp_solvers.brute_force import price_scores
from udcp_dsl.check.coverage import Problem, coverage_trials
from udcp_dsl.diagnostics import InputError, OracleError
from udcp_dsl.rows.rows import Rows, rows_of

LOSSES = {
    "laminar": "sum(fee) + 0.8 * km * any({ a, b }) + km * any({ a, b, c, d, e })",
    "separable": "sum(fee) + 0.1 * km * size",
    "cut": "sum(fee) + count(team, queue)",
    "tree": "km * diameter(tree) + sum(fee)",
    "search": "sum(fee) + km * (any({ a }) and any({ d, e })) + count(team, queue)",
    "size": "km * max(size - 1, 0) ^ 2 + sum(fee)",
    "capped": "min(km, sum(fee) + 3 * size)",
    "largest": "max(fee) + 0.5 * size",
    "by row": "if km > 100 then sum(fee) else 3 * size + 2 * any({ a, b })",
}
ORACLES = ("base", "lac", "raps", "greedy", "price")


def rows(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(5, 0.6), n)
    return P, np.array([rng.choice(5, p=p) for p in P])


@pytest.mark.parametrize("kind", LOSSES)
def test_prices_are_those_of_brute_force_in_rationals(kind: str) -> None:
    loss, (P, _) = loss_of(LOSSES[kind]), rows(6)
    inputs = draw(loss, len(P), 3)
    scores = udcp.make_oracle("price", loss).scores(P, inputs=inputs)
    for i, p in enumerate(P):
        expected = price_scores(loss.at(row_of(inputs, i)), p)
        np.testing.assert_allclose(scores[i], [float(x) for x in expected], rtol=1e-9)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("oracle", ORACLES)
def test_rows_are_scored_by_their_own_loss_whatever_the_batch(kind: str, oracle: str) -> None:
    """With bits that depend neither on the rows beside them nor on which face is asked."""
    loss, (P, y) = loss_of(LOSSES[kind]), rows(8)
    given = loss.inputs_of(draw(loss, len(P), 5), len(P))
    assert given is not None
    made = udcp.make_oracle(oracle, loss)
    scores = made.scores(P, inputs=given)
    for i in range(len(P)):
        one = udcp.make_oracle(oracle, loss.at(given.row(i)))
        np.testing.assert_array_equal(scores[i], one.scores(P[i : i + 1])[0])
    part = [5, 2, 7]
    np.testing.assert_array_equal(made.scores(P[part], inputs=given[part]), scores[part])
    np.testing.assert_array_equal(made.score_of(P, y, inputs=given), scores[np.arange(len(P)), y])
    np.testing.assert_array_equal(made.sets(P, float(np.median(scores)), inputs=given), scores <= np.median(scores))


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("oracle", [*ORACLES, "ratio", "penalized", "ilp"])
def test_constant_columns_give_the_bits_of_the_constant_loss(kind: str, oracle: str) -> None:
    loss, (P, _) = loss_of(LOSSES[kind]), rows(40)
    row = row_of(draw(loss, 1, 7), 0)
    numbers = {name: np.atleast_1d(value) for name, value in row.items()}
    text = DECLARED
    for name, line in (("km", "input km in [0, 200]"), ("fee", "costs fee per row in [0.5, 50]"),
                       ("queue", "costs queue of team per row in [0, 60]")):  # fmt: skip
        if name in numbers:
            keys = {"fee": "abcde", "queue": "xyz"}.get(name)
            listed = ", ".join(f"{k}: {float(v)!r}" for k, v in zip(keys or "", numbers[name], strict=False))
            of = " of team" if name == "queue" else ""
            text = text.replace(
                line, f"param km = {float(numbers[name][0])!r}" if keys is None else f"costs {name}{of} {{ {listed} }}"
            )
    constant = udcp.loads(f"{text}loss l = {LOSSES[kind]}")
    differ = [name for name, fact in constant.facts if bool(fact) != bool(getattr(loss.facts, name))]
    if set(differ) - {"normalized"}:
        pytest.skip(f"more is proved of the constant loss: {differ}")
    options: dict[str, Any] = {"penalized": {"lam": 0.1}}.get(oracle, {})
    few = P[:4] if oracle == "ilp" else P
    inputs = {name: np.repeat(np.asarray(value)[None], len(few), axis=0) for name, value in row.items()}
    try:
        plain = udcp.make_oracle(oracle, constant, **options)
    except OracleError:
        with pytest.raises(OracleError):
            udcp.make_oracle(oracle, loss, **options)
        return
    found = udcp.make_oracle(oracle, loss, **options).scores(few, inputs=inputs)
    np.testing.assert_array_equal(found, plain.scores(few))


def test_greedy_takes_the_bound_of_the_row() -> None:
    loss, (P, _) = loss_of(LOSSES["laminar"]), rows(3)
    made = udcp.make_oracle("greedy", loss)
    assert "M" not in made.options
    given = loss.inputs_of(draw(loss, 3), 3)
    assert given is not None
    bounds = [loss.at(given.row(i)).facts.interval.hi for i in range(3)]
    assert len(set(bounds)) == 3
    expected = [
        udcp.make_oracle("greedy", loss.at(given.row(i)), M=bounds[i]).scores(P[i : i + 1])[0] for i in range(3)
    ]
    np.testing.assert_array_equal(made.scores(P, inputs=given), expected)


def test_ratio_needs_costs_from_0_over_the_whole_range() -> None:
    with pytest.raises(OracleError, match=r"costs of at least 0"):
        udcp.make_oracle("ratio", loss_of("sum(gain)"))
    assert udcp.make_oracle("ratio", loss_of(LOSSES["separable"])).name == "ratio"


@pytest.mark.parametrize("oracle", ["price", "ratio", "penalized", "lac"])
def test_calibrating_predicting_and_judging(oracle: str, tmp_path: Path) -> None:
    loss, (P, y) = loss_of(LOSSES["separable"]), rows(240)
    inputs = draw(loss, 240)
    first, last = ({name: x[part] for name, x in inputs.items()} for part in (slice(140), slice(140, None)))
    predictor = udcp.SetPredictor(loss, oracle, alpha=0.2).calibrate(P[:140], y[:140], inputs=first)
    sets = predictor.predict_set(P[140:], inputs=last)
    expected = [loss(mask, inputs=row_of(last, i)) for i, mask in enumerate(sets.mask)]
    np.testing.assert_allclose(sets.costs, expected, rtol=1e-12)
    np.testing.assert_allclose(sets[[3, 1]].costs, [expected[3], expected[1]], rtol=1e-12)
    report = udcp.evaluate(predictor, P[140:], y[140:], inputs=last)
    assert report.mean_cost == pytest.approx(np.mean(expected))
    assert sum(report.cost_by_term.values()) == pytest.approx(report.mean_cost)
    alphas = predictor.p_values(P[140:], inputs=last)
    np.testing.assert_array_equal(alphas > 0.2, sets.mask)
    predictor.save(tmp_path / "p.json")
    again = udcp.SetPredictor.load(tmp_path / "p.json")
    assert list(again.loss.inputs) == list(loss.inputs)
    np.testing.assert_array_equal(again.predict_set(P[140:], inputs=last).mask, sets.mask)
    watched = udcp.Monitor(predictor)
    watched.update(P[140:], y[140:], inputs=last)
    assert watched.rows == 100


@pytest.mark.parametrize(
    ("kind", "oracle", "settings"),
    [
        ("separable", "price", {}),
        ("separable", "ratio", {}),
        ("laminar", "greedy", {}),
        ("laminar", "price", {"repair": "temperature"}),
        ("separable", "penalized", {}),
        ("separable", "price", {"randomize": True}),
    ],
)
def test_coverage_follows_its_exact_law(kind: str, oracle: str, settings: Any) -> None:
    """Inputs that are drawn with the rows change nothing of it: the number covered is beta-binomial, too many counting
    as much as too few. All six fail by chance in 6 of 100,000 runs of other seeds."""
    loss, rng = loss_of(LOSSES[kind]), np.random.default_rng(11)
    predictor = udcp.SetPredictor(loss, oracle, alpha=Fraction(1, 5), **settings)
    n_cal = 60 if oracle == "penalized" or settings.get("repair") else 24
    problem = Problem.generated(5, rng, kind="overconfident")
    repeats = 60 if settings.get("randomize") else 20
    found = coverage_trials(predictor, problem, n_cal=n_cal, n_test=30, repeats=repeats, rng=rng)
    assert found.chance > 1e-5, str(found)


class CheapTruths:
    """Rows whose truth is cheap: with their inputs they are still exchangeable, which is all it takes."""

    def __init__(self, loss: udcp.Loss) -> None:
        self.loss = loss

    def draw_rows(self, n: int, rng: np.random.Generator) -> Rows:
        seed = int(rng.integers(1 << 30))
        P, y = rows(n, seed)
        inputs = draw(self.loss, n, seed)
        inputs["km"] = np.where(np.arange(n) % 2 == 0, 3.0, 90.0)[rng.permutation(n)]
        inputs["fee"] = np.full((n, 5), 40.0)
        inputs["fee"][np.arange(n), y] = 2.0
        return rows_of(P, self.loss.labels, y=y, loss=self.loss, inputs=inputs)


def test_coverage_holds_where_inputs_tell_of_the_truth() -> None:
    loss, rng = loss_of(LOSSES["separable"]), np.random.default_rng(12)
    predictor = udcp.SetPredictor(loss, "ratio", alpha=Fraction(1, 5), repair=None)
    source: Any = CheapTruths(loss)
    found = coverage_trials(predictor, source, n_cal=24, n_test=30, repeats=20, rng=rng)
    assert found.chance > 1e-5, str(found)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "give inputs="),
        ({"km": np.zeros(3), "fee": np.ones((3, 5))}, "shape (3,), expected (40,)"),
        ({"km": np.full(40, 500.0), "fee": np.ones((40, 5))}, "row 0: input 'km' is 500, outside"),
        ({"km": np.zeros(40)}, "input 'fee' is missing"),
    ],
)
def test_wrong_inputs_are_refused_by_predictors(given: Any, says: str) -> None:
    loss, (P, y) = loss_of(LOSSES["separable"]), rows(40)
    with pytest.raises(InputError) as error:
        udcp.SetPredictor(loss, alpha=0.2).calibrate(P, y, inputs=given)
    assert says in str(error.value)


def test_inputs_are_refused_where_the_loss_has_none() -> None:
    loss, (P, y) = size_of("a b c d e"), rows(40)
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.2)
    with pytest.raises(InputError, match="declares none"):
        predictor.calibrate(P, y, inputs={"km": np.zeros(40)})
    with pytest.raises(InputError, match="declares none"):
        predictor.calibrate(P, y).predict_set(P, inputs={"km": np.zeros(40)})


def test_costs_of_labels_follow_class_names() -> None:
    loss, (P, y) = loss_of("sum(fee)"), rows(60)
    inputs, order, names = draw(loss, 60), [3, 1, 4, 0, 2], np.array(list("abcde"))
    plain = udcp.SetPredictor(loss, alpha=0.2).calibrate(P, names[y].tolist(), inputs=inputs)
    turned = udcp.SetPredictor(loss, alpha=0.2, class_names=names[order].tolist())
    turned.calibrate(P[:, order], names[y].tolist(), inputs={"fee": inputs["fee"][:, order]})
    expected = plain.predict_set(P, inputs=inputs)
    found = turned.predict_set(P[:, order], inputs={"fee": inputs["fee"][:, order]})
    np.testing.assert_array_equal(found.mask, expected.mask)
    np.testing.assert_array_equal(found.costs, expected.costs)


def test_comparing_and_sweeping() -> None:
    loss = udcp.loads(f"{DECLARED}loss l = sum(fee) + k * km * (any({{ a }}) and any({{ d, e }}))")
    P, y = rows(160)
    inputs = draw(loss, 160)
    found = udcp.compare(loss, P, y, inputs=inputs, oracles=["lac", "price", "penalized"], splits=2, alphas=0.2)
    assert {x.oracle for x in found.summaries()} == {"lac", "price", "penalized"}
    swept = udcp.sweep(loss, P, y, param="k", values=[0, 1], oracles=["lac"], splits=2, alphas=0.2, inputs=inputs)
    (_, none), (_, some) = swept.summaries()
    assert none.cost < some.cost
    with pytest.raises(InputError, match="give inputs="):
        udcp.compare(loss, P, y, oracles=["lac"], splits=2)


@pytest.mark.parametrize("other", ["loss m = size", "input wait in [0, 5]  loss m = wait * size"])
def test_comparing_losses_of_several_specs(other: str) -> None:
    """Each reads its own inputs; those of the other are not its business."""
    loss, plain = loss_of("sum(fee) + km * size"), udcp.loads(f"labels {{ a, b, c, d, e }}  {other}")
    P, y = rows(160)
    inputs = {**draw(loss, 160), **draw(plain, 160, 1)}
    asked: dict[str, Any] = {"oracles": ["lac", "price"], "splits": 2, "alphas": 0.2}
    both = udcp.compare([plain, loss], P, y, inputs=inputs, **asked)
    assert [example.row for example in both.examples["l"]]
    for one in (plain, loss):
        own = {name: inputs[name] for name in one.inputs} or None
        alone = udcp.compare(one, P, y, inputs=own, **asked).summaries()
        assert [x.cost for x in both.summaries() if x.loss == one.name] == [x.cost for x in alone]
    with pytest.raises(InputError, match="no input 'kn'"):
        udcp.compare([plain, loss], P, y, inputs={**inputs, "kn": np.zeros(160)}, **asked)


def test_the_command_compares_losses_of_several_specs(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from click.testing import CliRunner

    from udcp_dsl.cli import main

    P, y = rows(160)
    loss = loss_of("sum(fee) + km * size")
    parquet.write_table(pa.table(table(P, y, draw(loss, 160))), tmp_path / "rows.parquet")
    (tmp_path / "s.loss").write_text(f"{DECLARED}loss l = sum(fee) + km * size", encoding="utf-8")
    (tmp_path / "m.loss").write_text("labels { a, b, c, d, e }  loss m = size", encoding="utf-8")
    ask = [str(tmp_path / "m.loss"), str(tmp_path / "s.loss"), "--probs", str(tmp_path / "rows.parquet")]
    done = CliRunner().invoke(
        main, ["compare", *ask, "--truth", "truth", "--oracle", "price", "--splits", "2", "--alpha", "0.2"]
    )
    assert done.exit_code == 0, done.output


def table(P: Any, y: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    named = {label: P[:, i] for i, label in enumerate("abcde")}
    listed = {name: x.tolist() for name, x in inputs.items()}
    return {**named, "truth": np.array(list("abcde"))[y].tolist(), **listed}


def test_tables_streams_and_the_command_line_give_the_same(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from click.testing import CliRunner
    from pyarrow import parquet

    from udcp_dsl.cli import main
    from udcp_dsl.rows.source import read_rows

    loss, (P, y) = loss_of(LOSSES["separable"]), rows(120)
    inputs = draw(loss, 120)
    parquet.write_table(pa.table(table(P, y, inputs)), tmp_path / "rows.parquet")
    read = read_rows(tmp_path / "rows.parquet", loss.labels, truth_column="truth", inputs=loss.inputs)
    predictor = udcp.SetPredictor(loss, alpha=0.2).calibrate(read)
    expected = udcp.SetPredictor(loss, alpha=0.2).calibrate(P, y, inputs=inputs).predict_set(P, inputs=inputs)
    np.testing.assert_array_equal(predictor.predict_set(read).mask, expected.mask)
    batches = pa.table(table(P, y, inputs)).to_batches(max_chunksize=50)
    found = list(predictor.predict_batches(batches, ignore=["truth"]))
    assert [labels for batch in found for labels in batch["labels"].to_pylist()] == expected.to_lists()
    assert np.concatenate([batch["cost"].to_numpy() for batch in found]).tolist() == expected.costs.tolist()
    (tmp_path / "s.loss").write_text(f"{DECLARED}loss l = {LOSSES['separable']}", encoding="utf-8")
    run = CliRunner()
    rows_file, saved, out = (str(tmp_path / name) for name in ("rows.parquet", "p.json", "sets.jsonl"))
    spec = str(tmp_path / "s.loss")
    for command in (
        ["calibrate", spec, "--probs", rows_file, "--truth", "truth", "--alpha", "0.2", "-o", saved],
        ["predict", saved, "--probs", rows_file, "--ignore", "truth", "-o", out],
        ["evaluate", saved, "--probs", rows_file, "--truth", "truth"],
        ["show", saved],
        ["check", spec],
        ["order", spec, "--probs", rows_file, "--ignore", "truth", "--row", "3"],
    ):
        done = run.invoke(main, command)
        assert done.exit_code == 0, (command, done.output, done.stderr)
    lines = [json.loads(line) for line in Path(out).read_text(encoding="utf-8").splitlines()]
    assert [line["labels"] for line in lines] == expected.to_lists()
    np.savez(tmp_path / "inputs.npz", **inputs)
    np.save(tmp_path / "p.npy", P)
    np.save(tmp_path / "y.npy", y)
    apart = ["--probs", str(tmp_path / "p.npy"), "--inputs", str(tmp_path / "inputs.npz")]
    done = run.invoke(main, ["predict", saved, *apart, "-o", str(tmp_path / "other.jsonl")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "other.jsonl").read_text(encoding="utf-8") == Path(out).read_text(encoding="utf-8")
    done = run.invoke(main, ["predict", saved, "--probs", str(tmp_path / "p.npy"), "-o", str(tmp_path / "no.jsonl")])
    assert done.exit_code == 2
    wrong = {**inputs, "km": np.where(np.arange(120) == 77, 999.0, inputs["km"])}
    parquet.write_table(pa.table(table(P, y, wrong)), tmp_path / "wrong.parquet")
    done = run.invoke(
        main, ["predict", saved, "--probs", str(tmp_path / "wrong.parquet"), "--ignore", "truth", "-o", out]
    )
    assert done.exit_code == 2
    assert "row 77: input 'km' is 999, outside [0, 200]" in done.stderr


def test_one_set_on_the_command_line(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from udcp_dsl.cli import main

    (tmp_path / "s.loss").write_text(f"{DECLARED}loss l = sum(fee) + km * size", encoding="utf-8")
    spec = str(tmp_path / "s.loss")
    done = CliRunner().invoke(main, ["eval", spec, "a", "b", "--input", "km=12", "--input", "fee=1,2,3,4,5", "--json"])
    assert json.loads(done.stdout)["total"] == 27
    done = CliRunner().invoke(
        main, ["eval", spec, "b", "--input", "km=12", "--input", "fee=a:1,b:2,c:3,d:4,e:5", "--json"]
    )
    assert json.loads(done.stdout)["total"] == 14
    for wrong, says in (
        (["--input", "km=900"], "outside"),
        ([], "give --input km=NUMBER"),
        (["--input", "km=x"], "not a number"),
        (["--input", "km"], "name=value"),
    ):
        done = CliRunner().invoke(main, ["eval", spec, "a", *wrong, *(["--input", "fee=1,2,3,4,5"] if wrong else [])])
        assert done.exit_code == 2
        assert says in done.stderr
