"""Run one validation: the stages in order, each with its own cases, all from one seed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from udcp_dsl.diagnostics import InputError
from udcp_dsl.loss import Loss
from udcp_dsl.prediction.calibrate import Level, levels_of
from udcp_dsl.prediction.oracle import Oracle
from udcp_dsl.prediction.rows import Rows
from udcp_dsl.spec_warnings import some_rows, spec_warnings
from udcp_dsl.validation import cost as costs
from udcp_dsl.validation import (
    coverage_trials,
    fact_attacks,
    fit_trials,
    meaning_checks,
    oracles,
    own_rows,
    own_spec,
    promises,
)
from udcp_dsl.validation.cases import QUESTION, Case, case_text, cases_of, check_case
from udcp_dsl.validation.plan import Plan, Progress
from udcp_dsl.validation.verdicts import CONSISTENT, CounterExample, MeanCost, Stage, Validation, Verdict

FAMILY_WISE = 1e-6
DEFAULT_BUDGET = 60.0


def validate(
    loss: Loss,
    *,
    oracles: Sequence[str | Oracle] | None = None,
    alphas: Level | Sequence[Level] = (0.1,),
    budget: float | None = None,
    cases: int | None = None,
    seed: int = 0,
    probs: Any = None,
    y: Any = None,
    progress: Progress | None = None,
    own_cases: Sequence[Case] = (),
    inputs: Any = None,
) -> Validation:
    """Check whether a loss is safe to use: its meaning, its proved facts, its oracles, coverage, and mean costs.

    `oracles` are names, or oracles made for this loss; by default all that apply. Give either `cases`, the rounds of
    generated cases per stage (the same seed then gives the same result), or `budget`, an approximate time in seconds
    (60 if neither is given). Your own `probs` and true labels `y` (with `inputs`, if the loss reads any) add coverage
    on repeated splits of them and a test for drift along their order. Inputs of generated rows are drawn from their
    ranges. `progress` is called with the name of a stage and the fraction of it that is done. `own_cases` are the
    expectations of the spec's author (`udcp_dsl.validation.cases`); those about this loss form the first stage.
    Raises an error if an oracle does not apply, an alpha is invalid, both `cases` and `budget` are given, or only one
    of `probs` and `y`.

    >>> import udcp_dsl as udcp
    >>> validation = validate(udcp.loads("labels {a, b, c}  loss l = size + any({a, b})"), oracles=["base"], cases=1)
    >>> validation.ok, [stage.name for stage in validation.stages]
    (True, ['meaning', 'facts', 'oracles', 'coverage', 'cost'])
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"loss is a {type(loss).__name__}, not a Loss: make one with udcp.load or udcp.loads")
    levels = levels_of(alphas)
    holds_truth = isinstance(probs, Rows) and probs.y is not None
    if (probs is None) != (y is None) and not holds_truth:
        raise InputError("probs and y belong together: give both, or neither")
    _check_amounts(budget, cases, seed)
    seconds = DEFAULT_BUDGET if budget is None and cases is None else budget
    own = None if probs is None else own_rows.OwnRows.of(loss, probs, y, levels, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few points, p = 0 and slow oracles are intended
        return _run(loss, oracles, levels, Plan(seed, cases, seconds, progress), own, cases_of(loss, own_cases))


def _check_amounts(budget: float | None, cases: int | None, seed: int) -> None:
    if budget is not None and cases is not None:
        raise InputError("give budget or cases, not both: cases makes the result repeatable, budget limits the time")
    if budget is not None and (isinstance(budget, bool) or not 0 < budget < float("inf")):
        raise InputError(f"budget is {budget!r}: give a number of seconds above 0")
    for name, value, least in (("cases", cases, 1), ("seed", seed, 0)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise InputError(f"{name} is {value!r}: give a whole number from {least}")


def _run(
    loss: Loss,
    wanted: Sequence[str | Oracle] | None,
    levels: Any,
    plan: Plan,
    own: own_rows.OwnRows | None,
    expected: Sequence[Case],
) -> Validation:
    chosen, left_out = oracles.chosen_oracles(loss, wanted)
    of_coverage = FAMILY_WISE if own is None else FAMILY_WISE / 2
    means: list[MeanCost] = []
    sound = list(chosen)  # without those that raise an error on generated rows

    def meanings() -> list[Verdict]:
        return [*meaning_checks.meaning(loss, plan), *fit_trials.fits(loss, plan.seed)]

    def coverages() -> list[Verdict]:
        found = coverage_trials.coverage(loss, sound, levels, plan, of_coverage / 2)
        found += promises.promises(loss, sound, max(levels), plan, of_coverage / 2)
        if own is not None:
            found += own_rows.splits(loss, sound, levels, own, plan, of_coverage)
            found.append(own_rows.drift(loss, sound, own, plan.seed))
        return found

    def mean_costs() -> list[Verdict]:
        verdicts, found = costs.cost(loss, sound, levels, plan, own)
        means.extend(found)
        return verdicts

    stages = (
        *([_stage("cases", QUESTION, lambda: _cases(loss, expected), plan)] if expected else []),
        _stage("meaning", meaning_checks.QUESTION, meanings, plan),
        _stage("facts", fact_attacks.QUESTION, lambda: fact_attacks.facts(loss, plan), plan),
        _stage("oracles", oracles.QUESTION, lambda: oracles.oracles(loss, chosen, plan), plan),
        _stage("coverage", coverage_trials.QUESTION, coverages, plan),
        _stage("cost", costs.QUESTION, mean_costs, plan),
    )
    return Validation(
        loss=loss.name,
        source=loss.source.name,
        labels=loss.K,
        seed=plan.seed,
        rounds=plan.rounds,
        budget=plan.budget,
        alphas=levels,
        oracles=tuple(item.name for item in chosen),
        slow=tuple(item.name for item in chosen if item.slow),
        left_out=left_out,
        family_wise=FAMILY_WISE,
        stages=stages,
        costs=tuple(means),
        spec=own_spec.answers(loss, stages),
        findings=spec_warnings(loss, None if own is None else own.rows.take(some_rows(len(own.rows))).P),
    )


def _cases(loss: Loss, expected: Sequence[Case]) -> list[Verdict]:
    """A verdict per case; if some fail, also one per group of cases that no values of the parameters satisfy."""
    found = [check_case(loss, case) for case in expected]
    if all(verdict.holds for verdict in found):
        return found
    from udcp_dsl.validation.fitting import contradictions

    for group in contradictions(loss, expected) if loss.params else ():
        against = f"no values of the parameters satisfy all of: {'; '.join(map(case_text, group))}"
        found.append(Verdict(CONSISTENT, False, len(group), counter_example=CounterExample(against, ())))
    return found


def _stage(name: str, question: str, run: Callable[[], list[Verdict]], plan: Plan) -> Stage:
    began = time.monotonic()
    verdicts = tuple(run())
    return Stage(name, question, verdicts, None if plan.rounds is not None else time.monotonic() - began)
