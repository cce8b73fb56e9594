"""Does coverage hold, for classifiers like the user's and worse? Counts are compared with their exact distribution.

Ties are broken at random (`udcp_dsl.testing.coverage`), so that the number covered is beta-binomial, or binomial for
randomised sets. The probability that a correct predictor fails any test is at most the printed family-wise error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.prediction.calibrate import calibrate, points_needed, show_level
from udcp_dsl.prediction.predictor import SetPredictor
from udcp_dsl.showing import counted
from udcp_dsl.testing.coverage import CLASSIFIERS, Problem, Trials, coverage_trials, drawn_rows, pooled_chance
from udcp_dsl.validation.plan import DEFAULT
from udcp_dsl.validation.verdicts import COVERAGE, CounterExample, Verdict, raised

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.validation.oracles import Chosen
    from udcp_dsl.validation.plan import Plan

QUESTION = "does coverage hold, for good classifiers and bad?"
_QUICK = ("top three", "certain", "one label alive")  # few labels have mass, so that a row is solved quickly
_SLOW_POINTS = 39  # most calibration points for one that solves row by row
_LARGE = 300


def predictor_of(loss: Loss, item: Chosen, alpha: Fraction, **settings: bool | int) -> SetPredictor:
    """A predictor with the oracle; a tuned oracle gets its weight on cost when it is calibrated."""
    return SetPredictor(loss, item.name if item.tuned else item.oracle, alpha=alpha, **settings)  # type: ignore[arg-type]


def coverage(
    loss: Loss, chosen: list[Chosen], alphas: Sequence[Fraction], plan: Plan, family_wise: float
) -> list[Verdict]:
    """Trials of every oracle at every level with every kind of classifier, judged one by one and pooled.

    If time is short, the oracles take turns as long as another trial is likely to fit; each that is not slow has at
    least one, and the classifiers that it was not tried with are named. Oracles that raise an error are removed from
    `chosen`.
    """
    trials: dict[str, list[Trials]] = {item.name: [] for item in chosen}
    untried = {(item.name, alpha): dict.fromkeys(CLASSIFIERS) for item in chosen if not item.slow for alpha in alphas}
    longest: dict[tuple[str, Fraction], float] = {}
    broken: dict[str, CounterExample] = {}
    in_turn = sorted(chosen, key=lambda item: (item.name != DEFAULT, item.slow))
    pairs = [(item, alpha) for item in in_turn for alpha in alphas]
    predictors = {(item.name, alpha): predictor_of(loss, item, alpha) for item, alpha in pairs}
    for number, rng in enumerate(plan.rounds_of("coverage")):
        going = {
            (item.name, alpha): (item, _trials(loss, predictors[item.name, alpha], item, number, own, plan))
            for (item, alpha), own in zip(pairs, rng.spawn(len(pairs)), strict=True)
        }
        while going:
            for key, (item, every) in list(going.items()):
                optional = (item.slow and item.name != DEFAULT) or key in longest
                if item.name in broken or (optional and plan.late("coverage", longest.get(key, 0.0))):
                    del going[key]
                    continue
                began = plan.now()
                try:
                    kind, trial = next(every, ("", None))
                except Exception as error:  # a third-party oracle may raise anything
                    broken[item.name] = raised(error)
                    continue
                if trial is None:
                    del going[key]
                    continue
                untried.get(key, {}).pop(kind, None)
                if trial.repeats:
                    trials[item.name].append(trial)
                longest[key] = max(longest.get(key, 0.0), plan.now() - began)
    whole = {name: every for name, every in trials.items() if name not in broken}
    chosen[:] = [item for item in chosen if item.name not in broken]
    raising = [Verdict(f"{name}: it accepts all rows", False, 1, "", example) for name, example in broken.items()]
    left = [] if plan.rounds is not None else [_no_time(*key, kinds) for key, kinds in untried.items() if kinds]
    return [*_thresholds(alphas), *judged(whole, family_wise), *left, *raising]


def _no_time(name: str, alpha: Fraction, kinds: Iterable[str]) -> Verdict:
    claim = f"{name}: {COVERAGE}, alpha {show_level(alpha)}, for these classifiers: {', '.join(kinds)}"
    return Verdict(claim, None, 0, "there was no time: give a larger budget")


def judged(trials: dict[str, list[Trials]], family_wise: float) -> Iterator[Verdict]:
    """A verdict per name: neither one trial nor all of them pooled may deviate more than chance allows."""
    many = sum(map(len, trials.values()))
    for name, every in trials.items():
        claim = f"{name}: {COVERAGE}"
        if not every:
            why = "it is slow: this alpha needs too many rows, there was no time, or a limit is out of reach"
            yield Verdict(claim, None, 0, why)
            continue
        points = sum(t.repeats * t.n_test for t in every)
        alarming = [t for t in every if t.chance < family_wise / 2 / many]
        together = pooled_chance(every)
        note = f"{counted(len(every), 'trial')}, p = {together:.2g} together"
        example = None
        if alarming:
            example = CounterExample(str(min(alarming, key=lambda t: (t.n_cal, t.repeats * t.n_test, t.chance))))
        elif together < family_wise / 2 / len(trials):
            fair = sum(t.fair for t in every)
            expected = sum(float(t.law @ np.arange(t.law.size)) for t in every)
            text = f"{fair} of {points} rows are covered, {expected:.1f} expected: p = {together:.1e}"
            example = CounterExample(f"{name}, all classifiers together: {text}")
        yield Verdict(claim, example is None, points, note, example)


def _trials(
    loss: Loss, predictor: SetPredictor, item: Chosen, number: int, rng: np.random.Generator, plan: Plan
) -> Iterator[tuple[str, Trials]]:
    """Kinds of classifiers with the trials of each; "" for those of randomised sets."""
    if item.slow:
        yield from _slow_trials(loss, predictor, number, rng, plan)
        return
    alpha = predictor.alphas[0]
    need = points_needed(alpha)
    if plan.rounds is None and number == 0:  # a small one, to see how long trials take
        problem, sizes = Problem.generated(loss.K, rng), {"n_cal": 3 * need if item.tuned else need, "n_test": need}
        about = f"{item.name}, {problem.kind} classifier"
        yield problem.kind, coverage_trials(predictor, problem, repeats=1, rng=rng, name=about, **sizes)
    every = list(enumerate(CLASSIFIERS))
    for place, kind in every[number % 3 :: 3] if item.tuned else every:  # tuning takes most of the time
        dtype = (np.float64, np.float32, np.float16)[int(rng.integers(3))]
        problem = Problem.generated(loss.K, rng, kind=kind, dtype=dtype)
        large = (place + number + 1) % len(CLASSIFIERS) == 0  # in round 0 the last one: trial times are known then
        n_cal = max(_LARGE, 2 * need) if large else int(rng.choice([need, 2 * need, 3 * need + 1]))
        sizes = {"n_cal": 3 * n_cal if item.tuned else n_cal, "n_test": 100 if large else 30}
        about = f"{item.name}, {kind} classifier, {np.dtype(dtype)}"
        yield kind, coverage_trials(predictor, problem, repeats=1 if large else 3, rng=rng, name=about, **sizes)
    if not item.tuned:
        yield "", _randomized(loss, item, alpha, need, rng)


def _randomized(loss: Loss, item: Chosen, alpha: Fraction, n_cal: int, rng: np.random.Generator) -> Trials:
    """Trials with one test point per calibration, so that the number covered is binomial, with or without ties."""
    problem = Problem.generated(loss.K, rng)
    repeats = 10
    covered = done = 0
    for _ in range(repeats):
        predictor = predictor_of(loss, item, alpha, randomize=True, seed=int(rng.integers(2**31)))
        one = coverage_trials(predictor, problem, n_cal=n_cal, repeats=1, rng=rng)
        covered, done = covered + one.covered, done + one.repeats
    about = f"{item.name} randomized, {problem.kind} classifier"
    return Trials(n_cal, 1, alpha, done, covered, covered, True, about)


def _slow_trials(
    loss: Loss, predictor: SetPredictor, number: int, rng: np.random.Generator, plan: Plan
) -> Iterator[tuple[str, Trials]]:
    need = points_needed(predictor.alphas[0])
    if need > _SLOW_POINTS:
        return
    kind = _QUICK[number % len(_QUICK)]
    problem = Problem.generated(loss.K, rng, kind=kind)
    sizes = {"n_cal": need, "n_test": 3}
    if plan.rounds is None:
        began = plan.now()
        P, y, inputs = drawn_rows(problem, loss.inputs, 1, rng)
        predictor.oracle.score_of(P, y, inputs=inputs)
        if plan.late("coverage", 2 * sum(sizes.values()) * (plan.now() - began)):  # scored twice: sets and ties
            return
    about = f"{predictor.oracle.name}, {kind} classifier"
    yield kind, coverage_trials(predictor, problem, repeats=1, rng=rng, name=about, **sizes)


def _thresholds(alphas: Sequence[Fraction]) -> Iterator[Verdict]:
    """Whether thresholds follow their definition, for up to 120 points."""
    cases = 0
    example = None
    levels = dict.fromkeys([*alphas, Fraction(1, 3), Fraction(1, 10)])
    for n in range(1, 121):
        scores = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
        for alpha in levels:
            k = math.ceil((n + 1) * (1 - alpha))
            expected = float(k) if k <= n else math.inf
            got = calibrate(scores, alpha=alpha, already_warned=True).thresholds
            cases += 1
            if got != expected and example is None:
                which = f"{k}, the {k}-th smallest" if k <= n else "infinite, as no score is high enough"
                text = f"of the scores 1 to {n} at alpha {show_level(alpha)} the threshold is {got!r}, not {which}"
                example = CounterExample(text, rows=(tuple(scores.tolist()),))
    yield Verdict("thresholds are the k-th smallest scores, k = ceil((n + 1)(1 - alpha))", example is None, cases,
                  "", example)  # fmt: skip
