"""A budget is kept, whatever a row takes, and what it leaves untried is named."""

from __future__ import annotations

import math
import re
import time
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
import udcp_dsl.check.coverage as trials
from udcp_dsl.check import Problem
from udcp_dsl.check import verdicts as plan
from udcp_dsl.check.coverage import CLASSIFIERS, coverage_trials
from udcp_dsl.check.run import validate
from udcp_dsl.predict.oracle import Declaration, Oracle, Way

LARGE = """
labels 0..29
costs k { 5: -1, default: 2 }
category C { 3..12 }
loss l =
"""


def large(body: str) -> udcp.Loss:
    return udcp.loads(LARGE + body)


def test_a_budget_is_kept_and_told() -> None:
    told: list[tuple[str, float]] = []
    validation = validate(
        udcp.loads("labels { a, b, c }  loss l = size"),
        budget=0.5,
        oracles=["lac"],
        progress=lambda stage, part: told.append((stage, part)),
    )
    assert validation.ok
    assert validation.rounds is None
    assert list(dict.fromkeys(stage for stage, _ in told)) == ["meaning", "facts", "oracles", "coverage", "cost"]
    assert all(0 <= part <= 1 for _, part in told)
    begun = [plan.share_done(stage, 0.0) for stage in dict.fromkeys(stage for stage, _ in told)]
    assert begun == sorted(begun)
    assert begun[0] == 0.0
    assert plan.share_done("cost", 1.0) == 1.0


class Clock:
    """Time that passes only where a `Costly` oracle scores rows."""

    def __init__(self) -> None:
        self.began = self.time = time.monotonic()

    def monotonic(self) -> float:
        return self.time


class Costly(Oracle):
    """lac, at so many seconds a row."""

    name = "lac"

    def __init__(self, loss: udcp.Loss, *, clock: Clock, seconds: float) -> None:
        super().__init__(loss, clock=clock, seconds=seconds)
        self.clock, self.seconds = clock, seconds

    def _scores(self, P: Any) -> Any:
        self.clock.time += self.seconds * len(P)
        return -P.astype(np.float64)


@pytest.mark.usefixtures("every_classifier")
@pytest.mark.parametrize("seconds", [1e-4, 0.02, 0.05])
def test_a_budget_is_kept_whatever_a_row_takes(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(plan, "time", clock)
    monkeypatch.setattr(plan, "_MOST_ROUNDS", 2)
    loss = large("size + any(C)")
    validation = validate(loss, budget=30, oracles=[Costly(loss, clock=clock, seconds=seconds)])
    assert validation.ok, validation.failures
    assert clock.time - clock.began <= 1.2 * 30
    cases = {stage.name: stage.cases for stage in validation.stages}
    assert min(cases.values()) > 0
    verdicts = {verdict.claim: verdict for stage in validation.stages for verdict in stage.verdicts}
    assert verdicts["lac: coverage is what theory predicts"].cases >= 9
    assert {cost.classifier for cost in validation.costs} >= {"calibrated"}
    # What is not tried is said not to be.
    defined = verdicts["lac: scores follow the definition"]
    assert defined.holds or (defined.holds is None and "there was no time: give a larger budget" in defined.note)


@pytest.mark.usefixtures("every_classifier")
@pytest.mark.parametrize(("seconds", "alphas"), [(1e-4, (0.1,)), (0.02, (0.1,)), (0.02, (0.1, 0.2)), (0.05, (0.1,))])
def test_classifiers_that_the_budget_leaves_untried_are_named(
    seconds: float, alphas: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, tried = Clock(), set[tuple[str, float]]()
    monkeypatch.setattr(plan, "time", clock)
    monkeypatch.setattr(plan, "_MOST_ROUNDS", 2)

    def recorded(predictor: Any, problem: Problem, **how: Any) -> Any:
        if not predictor.randomize:
            tried.add((problem.kind, float(predictor.alphas[0])))
        return coverage_trials(predictor, problem, **how)

    monkeypatch.setattr(trials, "coverage_trials", recorded)
    loss = large("size + any(C)")
    validation = validate(loss, alphas=alphas, budget=30, oracles=[Costly(loss, clock=clock, seconds=seconds)])
    left = {(kind, alpha) for kind in CLASSIFIERS for alpha in alphas} - tried
    named = [v for _, v in validation.untried if v.claim.startswith("lac: coverage is what theory predicts, ")]
    of = {
        (kind, alpha): v
        for v in named
        for kind in CLASSIFIERS
        for alpha in alphas
        if f"alpha {alpha}," in v.claim and re.search(rf"[:,] {kind}(,|$)", v.claim)
    }
    assert set(of) == left
    assert bool(left) == (seconds > 0.01)
    assert all("there was no time: give a larger budget" in v.note for v in named)


def test_a_budget_is_kept_with_own_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(plan, "time", clock)
    monkeypatch.setattr(plan, "_MOST_ROUNDS", 2)
    loss = large("size + any(C)")
    rng = np.random.default_rng(1)
    P, y = Problem.generated(loss.K, rng, kind="calibrated").draw(400, rng)
    costly = Costly(loss, clock=clock, seconds=0.004)
    validation = validate(loss, budget=30, oracles=[costly], probs=P, y=np.array(loss.labels)[y])
    assert clock.time - clock.began <= 1.2 * 30
    claims = {verdict.claim: verdict for stage in validation.stages for verdict in stage.verdicts}
    assert 200 <= claims["lac on your rows: coverage is what theory predicts"].cases < 12 * 200


def test_a_slow_oracle_that_would_take_too_long_is_said_not_to_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    class Solving(Costly):
        name = "solving"
        declaration = Declaration("programs", "few rows", lambda loss: Way("a program", True, math.inf), solves=True)

    clock = Clock()
    monkeypatch.setattr(plan, "time", clock)
    monkeypatch.setattr(plan, "_MOST_ROUNDS", 2)
    loss = large("size + any(C)")
    validation = validate(loss, budget=30, oracles=["base", Solving(loss, clock=clock, seconds=3.0)])
    assert validation.slow == ("solving",)
    assert clock.time - clock.began <= 1.2 * 30
    (verdict,) = (v for stage in validation.stages for v in stage.verdicts if v.claim.startswith("solving: coverage"))
    assert verdict.holds is None
    assert "there was no time" in verdict.note


def test_cases_come_in_parts_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(plan, "time", clock)

    def taken(budget: float | None, seconds: float, rounds: int | None = None) -> list[int]:
        taken = []
        for part in plan.Plan(0, rounds, budget, began=clock.time).parts("cost", 20, 4):
            taken.append(part.stop - part.start)
            clock.time += seconds * taken[-1]
        return taken

    assert taken(10.0, 0.1) == [4, 16]
    assert taken(10.0, 1.0) == [4, 6]
    assert taken(10.0, 4.0) == [4]
    assert taken(None, 4.0, rounds=1) == [4, 16]
