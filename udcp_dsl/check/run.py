"""Run one validation: the stages in order, each with its own cases, all from one seed.

The answers about the spec are those that a user can judge; everything else in a validation tests this package.

A random split of the user's rows makes calibration and test rows exchangeable, whatever the file is, so the
distribution of coverage is known exactly. In use the split is not random: new rows come after old ones. If the scores
of true labels change along the file, a threshold set on its rows may not hold for those that follow (drift).
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.check import coverage, facts, fit_trials, meaning, oracles, promises
from udcp_dsl.check.cases import QUESTION, check_case
from udcp_dsl.check.coverage import Problem, Trials, coverage_trials, drawn_rows, judged, predictor_of
from udcp_dsl.check.verdicts import (
    CONSISTENT,
    COVERAGE,
    DRIFT,
    ON_YOUR_ROWS,
    CounterExample,
    MeanCost,
    Plan,
    Progress,
    Stage,
    Validation,
    Verdict,
)
from udcp_dsl.diagnostics import InputError
from udcp_dsl.fit.cases import Case, case_text, cases_of
from udcp_dsl.loss import Loss
from udcp_dsl.predict.calibrate import Level, levels_of, points_needed, show_level
from udcp_dsl.predict.oracle import Oracle
from udcp_dsl.predict.stages.stage import LimitError
from udcp_dsl.rows.rows import Rows, rows_of
from udcp_dsl.showing import counted, with_unit
from udcp_dsl.spec_warnings import some_rows, spec_warnings

if TYPE_CHECKING:
    from udcp_dsl.check.coverage import Source
    from udcp_dsl.check.oracles import Chosen
    from udcp_dsl.expression.domain import Floats

FAMILY_WISE = 1e-6
DEFAULT_BUDGET = 60.0
_NAMED = 3  # labels shown at each end
_SPLITS = 12
_MOST_ROWS = 2000  # rows of a split and of the drift test: more would only take longer
_PERMUTATIONS = 9999
_ENOUGH = 50  # permutations as extreme as the file: more only refine a large p (Besag and Clifford, 1991)
_SLOW = "it is slow: each row is solved separately"
DRIFT_ERROR = 1e-3  # the probability that a file without drift fails
COST_QUESTION = "what does each oracle's set cost?"
KINDS = ("calibrated", "overconfident", "long-tailed")
_ROWS = 200
_OWN = "yours"


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
    expectations of the spec's author (`udcp_dsl.check.cases`); those about this loss form the first stage.
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
    own = None if probs is None else OwnRows.of(loss, probs, y, levels, inputs)
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
    own: OwnRows | None,
    expected: Sequence[Case],
) -> Validation:
    chosen, left_out = oracles.chosen_oracles(loss, wanted)
    of_coverage = FAMILY_WISE if own is None else FAMILY_WISE / 2
    means: list[MeanCost] = []
    sound = list(chosen)  # without those that raise an error on generated rows

    def meanings() -> list[Verdict]:
        return [*meaning.meaning(loss, plan), *fit_trials.fits(loss, plan.seed)]

    def coverages() -> list[Verdict]:
        found = coverage.coverage(loss, sound, levels, plan, of_coverage / 2)
        found += promises.promises(loss, sound, max(levels), plan, of_coverage / 2)
        if own is not None:
            found += splits(loss, sound, levels, own, plan, of_coverage)
            found.append(drift(loss, sound, own, plan.seed))
        return found

    def mean_costs() -> list[Verdict]:
        verdicts, found = cost(loss, sound, levels, plan, own)
        means.extend(found)
        return verdicts

    stages = (
        *([_stage("cases", QUESTION, lambda: _cases(loss, expected), plan)] if expected else []),
        _stage("meaning", meaning.QUESTION, meanings, plan),
        _stage("facts", facts.QUESTION, lambda: facts.facts(loss, plan), plan),
        _stage("oracles", oracles.QUESTION, lambda: oracles.oracles(loss, chosen, plan), plan),
        _stage("coverage", coverage.QUESTION, coverages, plan),
        _stage("cost", COST_QUESTION, mean_costs, plan),
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
        spec=answers(loss, stages),
        findings=spec_warnings(loss, None if own is None else own.rows.take(some_rows(len(own.rows))).P),
    )


def _cases(loss: Loss, expected: Sequence[Case]) -> list[Verdict]:
    """A verdict per case; if some fail, also one per group of cases that no values of the parameters satisfy."""
    found = [check_case(loss, case) for case in expected]
    if all(verdict.holds for verdict in found):
        return found
    from udcp_dsl.fit import contradictions

    for group in contradictions(loss, expected) if loss.params else ():
        against = f"no values of the parameters satisfy all of: {'; '.join(map(case_text, group))}"
        found.append(Verdict(CONSISTENT, False, len(group), counter_example=CounterExample(against, ())))
    return found


def _stage(name: str, question: str, run: Callable[[], list[Verdict]], plan: Plan) -> Stage:
    began = time.monotonic()
    verdicts = tuple(run())
    return Stage(name, question, verdicts, None if plan.rounds is not None else time.monotonic() - began)


def answers(loss: Loss, stages: Sequence[Stage]) -> tuple[tuple[str, str], ...]:
    """Questions about the spec, each with its answer."""
    return tuple(_answers(loss, {stage.name: stage.verdicts for stage in stages}))


def _answers(loss: Loss, verdicts: dict[str, tuple[Verdict, ...]]) -> Iterator[tuple[str, str]]:
    costs = loss.example.batch(np.eye(loss.K, dtype=bool))
    order = np.argsort(costs, kind="stable")

    def shown(places: Sequence[int]) -> str:
        return ", ".join(f"{loss.labels[y]} {costs[y]:.4g}" for y in places)

    few = min(_NAMED, loss.K // 2)
    ends = loss.example.batch(np.array([[False] * loss.K, [True] * loss.K]))
    unit = "" if loss.unit is None else f" (in {loss.unit})"
    if few:
        yield f"cheapest single labels{unit}", shown(order[:few].tolist())
        yield f"most expensive single labels{unit}", shown(np.argsort(-costs, kind="stable")[:few].tolist())
    yield "the empty set, and all labels", f"{ends[0]:.4g}, {with_unit(f'{ends[1]:.4g}', loss.unit)}"
    if loss.free_labels:
        yield "labels that cost nothing", f"{counted(len(loss.free_labels), 'label')}: give them a small cost"
    cases = [v for v in verdicts.get("cases", ()) if v.claim != CONSISTENT]
    if cases:
        failed = [verdict.claim for verdict in cases if verdict.holds is False]
        which = f"; these fail: {'; '.join(failed)}" if failed else ""
        yield "your cases", f"{len(cases) - len(failed)} of {len(cases)} hold{which}"
    else:
        yield "your cases", "none: write what you expect into NAME.cases beside the spec"
    for verdict in verdicts.get("cases", ()):
        if verdict.claim == CONSISTENT and verdict.counter_example is not None:
            yield "contradictions", verdict.counter_example.text
    own = [v for v in verdicts["coverage"] if ON_YOUR_ROWS in v.claim]
    if not own:
        yield "coverage on your rows", "not tested: give --probs and --truth"
        return
    failed = [v.claim.partition(" ")[0] for v in own if v.holds is False]
    tested = [v.claim.partition(" ")[0] for v in own if v.holds]
    parts = [f"wrong for {', '.join(failed)}"] if failed else []
    parts += [f"as guaranteed for {', '.join(tested)}"] if tested else []
    yield "coverage on your rows", "; ".join(parts) or "not tested: these oracles solve each row separately"
    drift = [v for v in verdicts["coverage"] if v.claim == DRIFT]
    if drift and drift[0].holds is not None:
        yield "drift along your file", "none found" if drift[0].holds else "found: later rows differ from earlier ones"


@dataclass(frozen=True, eq=False)
class OwnRows:
    """The user's rows as a source that draws some of them without replacement."""

    rows: Rows

    @classmethod
    def of(cls, loss: Loss, probs: Any, y: Any, alphas: Sequence[Fraction], inputs: Any = None) -> OwnRows:
        """Raises InputError for invalid probabilities, labels or inputs, and for too few rows for these levels."""
        rows = rows_of(probs, loss.labels, y=y, loss=loss, inputs=inputs)
        need = 6 * max(points_needed(alpha) for alpha in alphas)  # two halves, each for three folds
        if len(rows.truth) < need:
            raise InputError(f"{len(rows)} rows are too few to split: give {need} or more, or a larger alpha")
        return cls(rows)

    @property
    def half(self) -> int:
        """The number of rows in one half of a split; at most `_MOST_ROWS` rows are split."""
        return min(len(self.rows), _MOST_ROWS) // 2

    def draw(self, n: int, rng: np.random.Generator) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        drawn = self.draw_rows(n, rng)
        return drawn.P, drawn.truth

    def draw_rows(self, n: int, rng: np.random.Generator) -> Rows:
        """Draw rows with their inputs."""
        return self.rows.take(rng.choice(len(self.rows), n, replace=False))


def splits(
    loss: Loss, chosen: Sequence[Chosen], alphas: Sequence[Fraction], own: OwnRows, plan: Plan, family_wise: float
) -> list[Verdict]:
    """Coverage of each oracle over repeated splits: calibrated on one half of the rows, tested on the other.

    If time is short there are fewer splits, at least one. Slow oracles are reported as not tried.
    """
    half = own.half
    rng = np.random.default_rng([plan.seed, len(own.rows)])
    pairs = [(item, alpha) for item in chosen if not item.slow for alpha in alphas]
    predictors = {(item.name, alpha): predictor_of(loss, item, alpha) for item, alpha in pairs}
    found: dict[tuple[str, Fraction], list[Trials]] = {key: [] for key in predictors}
    seconds = dict.fromkeys(predictors, 0.0)
    for _ in range(_SPLITS):
        for key, predictor in predictors.items():
            if found[key] and plan.late("own rows", seconds[key]):
                continue
            began = plan.now()
            trial = coverage_trials(predictor, own, n_cal=half, n_test=half, repeats=1, rng=rng)
            if trial.repeats:
                found[key].append(trial)
            seconds[key] = plan.now() - began
    trials: dict[str, list[Trials]] = {}
    for (name, _), each in found.items():
        about = f"{name} {ON_YOUR_ROWS}"
        covered, fair = sum(t.covered for t in each), sum(t.fair for t in each)
        whole = replace(each[0], repeats=len(each), covered=covered, fair=fair, name=about)
        trials.setdefault(about, []).append(whole)
    slow = [f"{item.name} {ON_YOUR_ROWS}: {COVERAGE}" for item in chosen if item.slow]
    return [*judged(trials, family_wise), *(Verdict(claim, None, 0, _SLOW) for claim in slow)]


def drift(loss: Loss, chosen: Sequence[Chosen], own: OwnRows, seed: int) -> Verdict:
    """Permutation test of whether the true labels' scores, under any oracle, depend on the place in the file.

    Two statistics, each the largest over the oracles: the rank correlation with the place, and the largest partial sum
    of centred ranks (CUSUM), which a sudden change makes large.
    """
    from scipy.stats import rankdata

    claim = DRIFT
    if all(item.slow for item in chosen):
        return Verdict(claim, None, 0, _SLOW)
    n = len(own.rows)
    rows = own.rows.take(np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.int64))
    asked = [item.oracle for item in chosen if not item.slow]
    ranks = np.array([rankdata(oracle.score_of(rows, rows.truth)) for oracle in asked])
    ranks -= ranks.mean(axis=1, keepdims=True)
    ranks /= np.maximum(ranks.std(axis=1, keepdims=True), 1e-12)  # all equal: there is nothing to drift
    seen = _statistics(ranks)
    rng = np.random.default_rng([seed, len(rows), 1])
    at_least, p = np.zeros(2), np.full(2, np.nan)
    for drawn in range(1, _PERMUTATIONS + 1):
        at_least += _statistics(ranks[:, rng.permutation(len(rows))]) >= seen - 1e-9
        p = np.where(np.isnan(p) & (at_least == _ENOUGH), _ENOUGH / drawn, p)
        if not np.isnan(p).any():
            break
    p = np.where(np.isnan(p), (at_least + 1) / (_PERMUTATIONS + 1), p)
    names = ("rank correlation with the position in the file", "CUSUM")
    values = ", ".join(f"{name}: p = {value:.4f}" for name, value in zip(names, p, strict=True))
    note = f"{values}; probability of a false alarm: at most {DRIFT_ERROR:g}"
    found = float(p.min()) <= DRIFT_ERROR / 2
    example = None
    if found:
        which = int(p.argmin())
        text = f"the scores of the true labels change along the file ({names[which]}, p = {p[which]:.4f})"
        example = CounterExample(f"{text}: later rows will not be covered like the calibration rows")
    return Verdict(claim, not found, len(rows), note, example)


def _statistics(ranks: Floats) -> Floats:
    """The largest |correlation with the place| and |partial sum| over the rows of `ranks`, one row per oracle."""
    n = ranks.shape[1]
    place = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
    return np.array([np.abs(ranks @ place).max(), np.abs(np.cumsum(ranks, axis=1)).max()])


def cost(
    loss: Loss, chosen: Sequence[Chosen], alphas: Sequence[Fraction], plan: Plan, own: OwnRows | None = None
) -> tuple[list[Verdict], list[MeanCost]]:
    """Mean costs over all rounds; in each round all oracles see the same rows. Slow oracles are left out.

    If time is short, as judged by the first few rows, there are fewer rows, and none for some classifiers.
    """
    quick = [item for item in chosen if not item.slow]
    least = max(3 * points_needed(alpha) for alpha in alphas)
    most = max(_ROWS, least)
    seen: dict[tuple[str, str, str], list[tuple[float, int, bool]]] = defaultdict(list)
    each = 0.0  # seconds per row, over all oracles and levels
    unseen = dict.fromkeys(KINDS if own is None else (*KINDS, _OWN))
    for number, rng in enumerate(plan.rounds_of("cost")):
        sources: dict[str, Source] = {kind: Problem.generated(loss.K, rng, kind=kind) for kind in KINDS}
        tasks = [(kind, source, most) for kind, source in sources.items()]
        if own is not None and number == 0:
            tasks.append((_OWN, own, own.half))
        if plan.rounds is None and number == 0:
            tasks.insert(0, (KINDS[0], sources[KINDS[0]], least))
        for place, (kind, source, wanted) in enumerate(tasks):
            share = max(0.0, plan.left("cost")) / (len(tasks) - place)
            rows = int(min(wanted, share / each)) if each else wanted
            if rows < min(least, wanted):
                continue
            unseen.pop(kind, None)
            began = plan.now()
            P, y, inputs = drawn_rows(source, loss.inputs, 2 * rows, rng)
            before, after = (None if inputs is None else inputs[part] for part in (slice(rows), slice(rows, None)))
            names = np.array(loss.labels)[y]
            for alpha in alphas:
                for item in quick:
                    try:
                        predictor = predictor_of(loss, item, alpha).calibrate(P[:rows], names[:rows], inputs=before)
                    except LimitError:  # a limit that cannot be reached with these probabilities
                        continue
                    sets = predictor.predict_set(P[rows:], inputs=after)
                    inside = sets.mask[np.arange(len(sets)), y[rows:]]
                    found = zip(sets.costs.tolist(), sets.sizes.tolist(), inside.tolist(), strict=True)
                    seen[item.name, show_level(alpha), kind].extend(found)
            each = (plan.now() - began) / rows
    means = [_mean(*key, rows) for key, rows in seen.items()]
    slow = ", ".join(item.name for item in chosen if item.slow)
    notes = [f"left out, because they solve each row separately: {slow}"] if slow else []
    measured = Verdict("mean costs were measured", bool(means) or None, sum(x.sets for x in means), "; ".join(notes))
    no_time = "there was no time: give a larger budget"
    missing = [Verdict(f"costs were measured, classifier {kind}", None, 0, no_time) for kind in unseen]
    return [measured, *missing], means


def _mean(oracle: str, alpha: str, kind: str, rows: Sequence[tuple[float, int, bool]]) -> MeanCost:
    costs, sizes, inside = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    error = float(costs.std(ddof=1) / np.sqrt(len(costs)))
    return MeanCost(
        oracle, alpha, kind, float(costs.mean()), error, float(sizes.mean()), float(inside.mean()), len(costs)
    )
