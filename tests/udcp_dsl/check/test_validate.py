"""Correct specs validate; a broken loss, proof, oracle or calibrator is caught, each with a case of minimal size."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import udcp_dsl as udcp
import udcp_dsl.predict.calibrate.rule as rule
import udcp_dsl.predict.calibrate.thresholds as calibration
from udcp_dsl.check import Problem
from udcp_dsl.check import run as own_rows
from udcp_dsl.check.run import validate
from udcp_dsl.check.verdicts import CounterExample, Validation
from udcp_dsl.expression.atoms.any import Any as AnyAtom
from udcp_dsl.expression.atoms.count import Count
from udcp_dsl.expression.atoms.diameter import DiameterIncrement
from udcp_dsl.expression.atoms.max import Max
from udcp_dsl.expression.linear import Lowering
from udcp_dsl.predict.calibrate import rank
from udcp_dsl.predict.oracle import Oracle, make_oracle

if TYPE_CHECKING:
    from tests.conftest import Sizes

QUICK = ["base", "lac", "price"]
SMALL = """
labels { a, b, c, d }
costs k { a: 1, b: -2, c: 3, d: 0 }
hierarchy h { p { a, b }, q { c, d } }
loss l =
"""
LARGE = """
labels 0..29
costs k { 5: -1, default: 2 }
category C { 3..12 }
hierarchy h { x { 0..14 }, y { z { 15..20 }, 21..29 } }
loss l =
"""


def small(body: str) -> udcp.Loss:
    return udcp.loads(SMALL + body)


def large(body: str) -> udcp.Loss:
    return udcp.loads(LARGE + body)


def failed(validation: Validation) -> dict[str, CounterExample]:
    """The counter-examples by stage and claim."""
    assert not validation.ok
    found = {}
    for stage, verdict in validation.failures:
        assert verdict.counter_example is not None
        found[f"{stage.name}: {verdict.claim}"] = verdict.counter_example
    return found


# Correct specs


def all_losses(root: Path) -> list[tuple[str, str]]:
    return [(str(f.relative_to(root)), name) for f in sorted(root.glob("*/*.loss")) for name in udcp.load(f).losses]


SPECS = all_losses(Path(__file__).parents[3] / "specs")


@pytest.mark.usefixtures("promised", "every_classifier")
@pytest.mark.parametrize(
    "spec",
    [
        "hospital/tests",
        pytest.param("languages/branches", marks=pytest.mark.slow),
        pytest.param("grades/grades", marks=pytest.mark.slow),  # 2 ms a row by the search
    ],
)
def test_an_example_spec_holds(spec: str, pytestconfig: pytest.Config) -> None:
    check_holds(udcp.load(pytestconfig.rootpath / "specs" / f"{spec}.loss"), [*QUICK, "greedy"])


@pytest.mark.parametrize(
    ("spec", "oracles"), [("languages/branches", ["lac", "price"]), ("grades/grades", ["base", "greedy"])]
)
def test_others_hold(spec: str, oracles: list[str], pytestconfig: pytest.Config) -> None:
    """By few oracles, without promises, which do not depend on the loss."""
    check_holds(udcp.load(pytestconfig.rootpath / "specs" / f"{spec}.loss"), oracles)


def check_holds(loss: udcp.Loss, oracles: list[str]) -> None:
    validation = validate(loss, cases=1, oracles=oracles)
    assert validation.ok, validation.failures
    assert [stage.name for stage in validation.stages] == ["meaning", "facts", "oracles", "coverage", "cost"]
    assert all(stage.seconds is None for stage in validation.stages)
    assert {cost.oracle for cost in validation.costs} == set(oracles)


@pytest.mark.slow
@pytest.mark.usefixtures("every_classifier")
@pytest.mark.parametrize(("file", "name"), SPECS)
def test_every_example_spec_holds_within_the_default_budget(file: str, name: str, pytestconfig: pytest.Config) -> None:
    validation = validate(udcp.load(pytestconfig.rootpath / "specs" / file, loss=name))
    assert validation.ok, validation.failures
    assert all(stage.seconds is not None for stage in validation.stages)


@pytest.mark.slow
@pytest.mark.usefixtures("every_classifier")
def test_no_false_alarm_in_hundreds_of_validations(sizes: Sizes) -> None:
    """The family-wise error of each is 1e-6."""
    bodies = ["sum(k) + size", "count(h.level(1)) + 0.3 * size", "diameter(h) + max(k)", "2 * all({a, b}) + 0.1 * size"]
    for seed in range(sizes.problems):
        oracles = None if seed % 10 == 0 else ["base", "greedy", "lac", "price", "raps"]
        validation = validate(small(bodies[seed % 4]), cases=1, seed=seed, oracles=oracles)
        assert validation.ok, (seed, validation.failures)


def test_oracles_that_do_not_apply_are_listed_with_the_reason() -> None:
    validation = validate(small("count(h.level(1)) + size"), cases=1)
    assert set(validation.oracles) == {"base", "greedy", "ilp", "lac", "penalized", "price", "raps"}
    assert "needs a separable loss" in validation.left_out["ratio"]
    assert validation.slow == ("ilp",)


def test_prices_by_the_search_are_tried_on_as_many_rows_as_any_other() -> None:
    loss = udcp.loads("labels 0..21  category A { 0..5 }  category B { 6..9 }  loss l = 3 * (any(A) and any(B)) + size")
    validation = validate(loss, cases=1, oracles=["base", "price"])
    assert validation.ok, validation.failures
    assert validation.slow == ()


def test_the_same_seed_and_cases_give_the_same_answer() -> None:
    one, same, other = (
        validate(small("sum(k) + diameter(h)"), cases=1, oracles=["lac", "price"], seed=seed) for seed in (3, 3, 4)
    )
    assert json.dumps(one.as_dict()) == json.dumps(same.as_dict())
    assert one.as_dict()["costs"] != other.as_dict()["costs"]


def test_more_rounds_try_more_cases() -> None:
    one, two = (validate(large("size + any(C)"), cases=n, oracles=["base"]) for n in (1, 2))
    for few, many in zip(one.stages, two.stages, strict=True):
        assert few.cases < many.cases


# What is broken


def test_a_wrong_evaluator_is_caught_on_one_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Max, "batch", lambda self, sets: np.where(sets.mask, self.costs, 0.0).max(axis=1))
    validation = validate(large("max(k) + 0.5 * size"), cases=1, oracles=["base"])
    example = failed(validation)["meaning: all ways to compute the loss agree"]
    assert example.sets == (("5",),)
    assert "the interpreter gives -0.5 and batch gives 0.5" in example.text
    assert validation.counter_example == example


def test_a_wrong_increment_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiameterIncrement, "after", lambda self: self.far)  # forgets the diameter so far
    example = failed(validate(large("diameter(h)"), cases=1, oracles=["base"]))
    text = example["meaning: all ways to compute the loss agree"].text
    assert "increments(...).after()" in text
    assert len(example["meaning: all ways to compute the loss agree"].sets[0]) == 3


def test_a_wrong_linear_model_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Lowering.any_of
    monkeypatch.setattr(Lowering, "any_of", lambda self, members, push: right(self, members, push) * -1.0)
    example = failed(validate(large("size + 5 * any(C)"), cases=2, oracles=["base"]))
    assert example["meaning: the linear model agrees with the loss"].sets == ((),)


@pytest.mark.parametrize(
    ("atom", "body", "claim", "labels"),
    [(AnyAtom, "any(C) + size", "separable", 2), (Count, "count(h.level(1))", "antitone", 1)],
)
def test_a_false_proof_is_caught_on_the_smallest_sets(
    atom: type, body: str, claim: str, labels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atom, "proves", lambda self: {claim: "it is said so"})
    found = failed(validate(large(body), cases=1, oracles=["base"]))
    examples = [x for x in found.values() if f"is not {claim}, which is proved" in x.text]
    assert min(max(map(len, x.sets)) for x in examples) == labels


class Leaking(Oracle):
    """Takes the label that is asked for as the true one."""

    name = "leaking"

    def _scores(self, P: Any) -> Any:
        return -P.astype(float)

    def _score_of(self, P: Any, y: Any) -> Any:
        return -P[np.arange(len(P)), y].astype(float) - 0.25


class Stale(Oracle):
    """Keeps its last answer, and gives it again where as many rows are asked for."""

    name = "stale"

    def __init__(self, loss: Any) -> None:
        super().__init__(loss)
        self.last = np.zeros((0, 0))

    def _scores(self, P: Any) -> Any:
        if len(self.last) != len(P):
            self.last = -P.astype(float)
        return self.last


class Strict(Oracle):
    """Leaves out the label that meets the threshold."""

    name = "strict"

    def _scores(self, P: Any) -> Any:
        return -P.astype(float)

    def _sets(self, P: Any, tau: Any) -> Any:
        return self._scores(P) < tau


@pytest.mark.parametrize(("broken", "rows"), [(Leaking, 1), (Stale, 2), (Strict, 1)])
def test_a_wrong_oracle_is_caught_on_the_fewest_rows(broken: Callable[..., Oracle], rows: int) -> None:
    loss = small("size")
    found = failed(validate(loss, cases=1, oracles=[broken(loss)]))
    (example,) = {text: x for text, x in found.items() if text.startswith("oracles")}.values()
    assert len(example.rows) == rows


class Failing(Oracle):
    """Raises an error where a probability is 0."""

    name = "failing"

    def _scores(self, P: Any) -> Any:
        if (P == 0).any():
            raise ZeroDivisionError("division by zero")
        return -P.astype(float)


def test_an_oracle_that_raises_is_told_and_left_out_after() -> None:
    loss = small("size")
    found = failed(validate(loss, cases=1, oracles=[Failing(loss), make_oracle("lac", loss)]))
    assert list(found) == [
        "oracles: failing: scores and sets agree, and rows do not affect each other",
        "coverage: failing: it accepts all rows",
    ]
    assert all("it raises ZeroDivisionError: division by zero" in example.text for example in found.values())


class LastFirst(Oracle):
    """`base`, but of labels that tie the last one comes first."""

    name = "base"

    def _scores(self, P: Any) -> Any:
        turned = make_oracle("base", self.loss)
        return turned.scores(P[:, ::-1])[:, ::-1].copy()


def test_ties_in_the_wrong_order_are_caught() -> None:
    loss = small("size")
    found = failed(validate(loss, cases=3, oracles=[LastFirst(loss)]))
    (example,) = found.values()
    assert "where the formula gives" in example.text
    assert len(example.rows) == 1


class Dear(Oracle):
    """Called price, but every label costs twice what it should."""

    name = "price"

    def _scores(self, P: Any) -> Any:
        return 2 * make_oracle("price", self.loss).scores(P) + 1e-300


def test_wrong_prices_are_caught_by_brute_force() -> None:
    for loss in (small("any({a, b}) + size"), large("any(C) + size")):
        found = failed(validate(loss, cases=1, oracles=[Dear(loss), make_oracle("base", loss)]))
        example = found["oracles: price: prices agree with brute force over all sets"]
        assert "every set of least cost has it" in example.text
        assert "oracles: price: no other oracle has a better set at the same price" in found


@pytest.mark.usefixtures("every_classifier")
def test_a_wrong_rank_is_caught_with_the_fewest_points(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (calibration, rule):
        monkeypatch.setattr(module, "rank", lambda n, alpha: max(1, rank(n, alpha) - 1))
    found = failed(validate(small("size"), cases=4, oracles=["base"]))
    claim = "coverage: thresholds are the k-th smallest scores, k = ceil((n + 1)(1 - alpha))"
    assert found[claim].text.startswith("of the scores 1 to 1 at alpha 0.1 the threshold is 1.0, not infinite")
    assert "coverage: base: coverage is what theory predicts" in found


# The user's own rows


def drawn(K: int, n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return Problem.generated(K, rng, kind="overconfident").draw(n, rng)


def test_own_rows_are_split_and_do_not_drift() -> None:
    loss = small("size + any({a, b})")
    P, y = drawn(4, 300, 0)
    validation = validate(loss, cases=1, oracles=["base", "price"], probs=P, y=y)
    assert validation.ok, validation.failures
    verdicts = {v.claim: v for v in validation.stages[3].verdicts}
    assert verdicts["base on your rows: coverage is what theory predicts"].cases == 12 * 150
    assert "p = " in verdicts["your rows do not drift along the file"].note
    assert "yours" in {cost.classifier for cost in validation.costs}


@pytest.mark.parametrize("change", ["slow", "sudden"])
def test_drift_along_the_file_is_caught(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_rows, "_PERMUTATIONS", 3999)  # of which one as far out is no chance: p is 1/4000 at least
    loss = small("size")
    P, y = drawn(4, 400, 1)
    of_truth = P[np.arange(len(y)), y]
    order = np.argsort(of_truth + 0.3 * np.random.default_rng(0).normal(size=len(y)))
    if change == "sudden":  # a bad stretch in the middle
        shuffled = np.random.default_rng(1).permutation(200)
        order = np.concatenate([order[200:][shuffled][:100], order[:200][shuffled], order[200:][shuffled][100:]])
    found = failed(validate(loss, cases=1, oracles=["lac"], probs=P[order], y=y[order]))
    assert list(found) == ["coverage: your rows do not drift along the file"]
    assert "later rows will not be covered" in next(iter(found.values())).text


def test_the_test_for_drift_holds_its_error(sizes: Sizes) -> None:
    """P-values of files without drift are not smaller than uniform ones, by the binomial law."""
    from scipy.stats import binom

    from udcp_dsl.check.oracles import chosen_oracles
    from udcp_dsl.check.run import OwnRows, drift
    from udcp_dsl.rows.rows import Rows

    loss = small("size")
    chosen, _ = chosen_oracles(loss, ["lac"])
    small_p = 0
    for seed in range(sizes.repeats):
        P, y = drawn(4, 20, seed)
        note = drift(loss, chosen, OwnRows(Rows(loss.labels, P, y)), seed).note
        small_p += float(note.split("p = ")[1].split(",")[0]) <= 0.1
    assert binom(sizes.repeats, 0.1).sf(small_p - 1) > 1e-4


# Wrong input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"oracles": ["ratio"]}, "needs a separable loss"),
        ({"oracles": ["bass"]}, "did you mean 'base'"),
        ({"alphas": [1.5]}, "strictly between 0 and 1"),
        ({"alphas": []}, "at least one level"),
        ({"alphas": [0.1, "1/10"]}, "alpha is 0.1, 0.1: give at least one level, each once"),
        ({"cases": 0}, "cases is 0"),
        ({"budget": -1.0}, "budget is -1.0"),
        ({"cases": 1, "budget": 2.0}, "give budget or cases"),
        ({"seed": -1}, "seed is -1"),
        ({"probs": [[0.25] * 4]}, "belong together"),
        ({"probs": [[0.5] * 4], "y": ["a"]}, "row 0"),
        ({"probs": [[0.25] * 4], "y": ["a"], "cases": 1, "oracles": ["lac"]}, "too few to split"),
    ],
)
def test_wrong_input_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validate(small("any({a, b})"), **wrong)


def test_a_loss_is_asked_for() -> None:
    not_a_loss: Any = "pets.loss"
    with pytest.raises(TypeError, match=r"make one with udcp\.load"):
        validate(not_a_loss)


def test_several_levels() -> None:
    validation = validate(small("size"), cases=1, oracles=["lac"], alphas=["1/3", 0.1])
    assert validation.alphas == (Fraction(1, 3), Fraction(1, 10))
    assert validation.ok
