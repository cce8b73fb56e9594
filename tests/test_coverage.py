"""Coverage of every oracle on generated problems, held to its exact law; broken predictors fail the same test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import udcp_dsl as udcp
import udcp_dsl.predict.calibrate.rule as rule
import udcp_dsl.predict.calibrate.thresholds as calibration
from udcp_dsl import InputError
from udcp_dsl.check.coverage import (
    CLASSIFIERS,
    Problem,
    Source,
    Trials,
    assert_coverage,
    coverage_trials,
    covered_with_random_ties,
    pooled_chance,
    significant_trials,
)
from udcp_dsl.predict.calibrate import coverage_law, rank
from udcp_dsl.predict.oracle import Oracle

if TYPE_CHECKING:
    from tests.conftest import Sizes

pytestmark = pytest.mark.filterwarnings("ignore::udcp_dsl.predict.calibrate.CalibrationWarning")

FAMILY_WISE = 1e-5  # for each of the tests below, of which there are fewer than ten an oracle

Options = dict[str, object]
SLOW = "ilp"  # solves a program for every row, so that it is tried on fewer
NAMES = [name for name in udcp.oracle_names() if name != SLOW]
# Every other oracle with its defaults; the lambda of `penalized` is given, and in one test tuned.
ORACLES: list[tuple[str, Options]] = [(name, {"lam": 0.3} if name == "penalized" else {}) for name in NAMES]
every_oracle = pytest.mark.parametrize(("oracle", "options"), ORACLES, ids=NAMES)
# The calibrator asks every oracle in one way, so that each kind of calibration is tried with three of them: one that
# goes by mass, one whose sets are no prefixes by p, and one that takes anchors; or with two.
KINDS_OF_ORACLE = ("base", "greedy", "price")


def these_or_every_oracle(*names: str) -> pytest.MarkDecorator:
    quick = [pytest.param(*x, marks=() if x[0] in names else pytest.mark.slow) for x in ORACLES]
    return pytest.mark.parametrize(("oracle", "options"), quick, ids=NAMES)


three_or_every_oracle = these_or_every_oracle(*KINDS_OF_ORACLE)


@dataclass(frozen=True)
class Case:
    """A problem, two losses on its labels (the second separable), a level, and a number of calibration points."""

    name: str
    problem: Problem
    losses: tuple[udcp.Loss, udcp.Loss]
    alpha: Fraction
    n_cal: int
    seed: int

    def predictor(self, oracle: str | Callable[[udcp.Loss], Oracle], **settings: Any) -> udcp.SetPredictor:
        """With the general loss if the oracle takes it, else with the separable one."""
        general, separable = self.losses
        if not isinstance(oracle, str):
            return udcp.SetPredictor(general, oracle(general), alpha=self.alpha, **settings)
        try:
            return udcp.SetPredictor(general, oracle, alpha=self.alpha, **settings)
        except udcp.OracleError:
            return udcp.SetPredictor(separable, oracle, alpha=self.alpha, **settings)

    def trials(self, predictor: udcp.SetPredictor, **sizes: int) -> Trials:
        rng = np.random.default_rng(self.seed)
        return coverage_trials(predictor, self.problem, rng=rng, name=self.name, **{"n_cal": self.n_cal, **sizes})


def losses(K: int, rng: np.random.Generator) -> tuple[udcp.Loss, udcp.Loss]:
    """A loss of up to three terms of any kind, and a separable one, over labels 0 to K - 1."""
    labels = rng.permutation(K)
    half = int(rng.integers(1, K))
    one, two = (", ".join(map(str, part)) for part in (labels[:half], labels[half:]))
    costs = ", ".join(f"{y}: {c}" for y, c in enumerate(rng.choice([0.0, 0.5, 1.0, 2.5], K)))
    table = "label,act,wait\n" + "".join(f"{y},{a},{b}\n" for y, (a, b) in enumerate(rng.integers(0, 4, (K, 2))))
    declared = f"""
        labels 0..{K - 1}
        costs c {{ {costs} }}
        categories f {{ one: {{ {one} }}, two: {{ {two} }}, all: {{ 0..{K - 1} }} }}
        hierarchy h {{ one {{ {one} }}, two {{ {two} }} }}
        actions u from "u.csv"
    """
    separable = ["sum(c)", "size", "size(f.one)", "2 * size + sum(c)"]
    terms = [
        *separable, "count(f)", "diameter(h)", "spread(h)", "radius(h)", "max(c)", "min(c)", "any(f.two)", "all(f.two)",
        "worst(u)", "empty", "max(size - 2, 0) ^ 2", "sqrt(size)", "if any(f.one) then max(c) else count(h.level(1))",
    ]  # fmt: skip
    chosen = rng.choice(terms, int(rng.integers(1, 4)), replace=False)
    general = " + ".join(f"{rng.choice([0.1, 1, 3])} * ({term})" for term in chosen)
    return tuple(
        udcp.loads(f"{declared} loss l = {body}", files={"u.csv": table.encode()})
        for body in (general, str(rng.choice(separable)))
    )  # type: ignore[return-value]  # two of them


@cache
def cases(count: int, *, kind: str | None = None, **settings: Any) -> list[Case]:
    """Problems with 2 to 9 labels, classifiers of every kind in turn, and 5 calibration points or more."""
    rng = np.random.default_rng(2410_01767)
    found = []
    for i in range(count):
        K = int(rng.integers(2, 10))
        kind_of = list(CLASSIFIERS)[i % len(CLASSIFIERS)] if kind is None else kind
        problem = Problem.generated(K, rng, kind=kind_of, **settings)
        alpha = Fraction(str(rng.choice(["0.05", "0.1", "0.2", "1/3", "0.5"])))
        n_cal = int(rng.choice([5, 6, 9, 12, 19, 27, 40]))
        found.append(Case(f"problem {i} ({kind_of})", problem, losses(K, rng), alpha, n_cal, i))
    return found


def faults(every: list[Trials]) -> list[str]:
    """What is wrong with the coverage in these trials, each by itself and all together."""
    found = [str(t) for t in significant_trials(every, FAMILY_WISE / 2)]
    pooled = pooled_chance(every)
    return found + (
        [f"all {len(every)} together: the chance of this is {pooled:.1e}"] if pooled < FAMILY_WISE / 2 else []
    )


@every_oracle
def test_coverage_follows_its_law(oracle: str, options: Options, sizes: Sizes) -> None:
    every = [case.trials(case.predictor(oracle, options=options), repeats=8) for case in cases(sizes.problems)]
    assert not faults(every)


@pytest.mark.parametrize("mass", ["through", "random"])
@pytest.mark.parametrize("oracle", ["base", "raps", "penalized", "greedy"])
def test_coverage_by_another_mass(oracle: str, mass: str, sizes: Sizes) -> None:
    """Not the default. With randomize=True and the same seed, too: its draws are others than those of the scores."""
    options: Options = {"mass": mass, **dict(ORACLES)[oracle]}
    few = cases(sizes.problems)
    assert not faults([case.trials(case.predictor(oracle, options=options), repeats=8) for case in few])
    drawn = [case.predictor(oracle, options=options, randomize=True) for case in few]
    assert not faults([case.trials(predictor, repeats=4) for case, predictor in zip(few, drawn, strict=True)])


def test_coverage_with_a_tuned_lambda(sizes: Sizes) -> None:
    """Of the calibration points a third is left for the threshold; the rest chose lambda."""
    tried = cases(sizes.problems)
    every = [case.trials(case.predictor("penalized"), repeats=1, n_cal=3 * case.n_cal) for case in tried]
    assert [t.n_cal for t in every] == [case.n_cal for case in tried]
    assert not faults(every)


@pytest.mark.parametrize("mass", ["before", "through", "random"])
def test_coverage_of_a_slow_oracle(sizes: Sizes, mass: str) -> None:
    few = cases(sizes.problems)
    predictors = [case.predictor(SLOW, options={"mass": mass}) for case in few]
    every = [
        case.trials(predictor, n_cal=min(case.n_cal, 9), n_test=4, repeats=2)
        for case, predictor in zip(few, predictors, strict=True)
    ]
    assert not faults(every)


class Peeking(Oracle):
    """A label leak: asked for the score of one label, it takes that for the true one and measures distance to it."""

    name = "peeking"

    def _scores(self, P: Any) -> Any:
        labels = np.arange(P.shape[1])
        return -P.astype(float) + 0.5 * (labels != P.argmax(axis=1)[:, None])

    def _score_of(self, P: Any, y: Any) -> Any:
        return -P[np.arange(len(P)), y].astype(float)


class Strict(Oracle):
    """Leaves out the label that meets the threshold exactly."""

    name = "strict"

    def _scores(self, P: Any) -> Any:
        return -P.astype(float)

    def _sets(self, P: Any, tau: Any) -> Any:
        return self._scores(P) < tau


class Knowing(Strict):
    """Knows the true labels of the rows it is shown, and puts them into the sets."""

    name = "knowing"

    def __init__(self, loss: Any) -> None:
        super().__init__(loss)
        self.known: dict[bytes, int] = {}

    def _sets(self, P: Any, tau: Any) -> Any:
        mask = self._scores(P) <= tau
        mask[np.arange(len(P)), [self.known[row.tobytes()] for row in P]] = True
        return mask


def shifted(by: int) -> Callable[[int, Any], int]:
    return lambda n, alpha: max(1, rank(n, alpha) + by)


def authors(n: int, alpha: Fraction) -> int:
    """The rank of the separable quantile in the paper's public code: ceil((n + 1) alpha), rounded up once more."""
    low = math.ceil(math.ceil((n + 1) * alpha) * (n - 1) / n)
    return max(1, n - low)


@pytest.mark.parametrize(
    ("wrong", "by"),
    [(False, shifted(0)), (True, shifted(-1)), (True, shifted(+1)), (True, authors)],
    ids=["k", "k - 1", "k + 1", "authors' k"],
)
def test_a_wrong_rank_is_caught(wrong: bool, by: Callable[[int, Any], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """And a right one, put in its place in the same way, is not."""
    for module in (calibration, rule):
        monkeypatch.setattr(module, "rank", by)
    found = faults([case.trials(case.predictor("base"), repeats=20) for case in cases(16)])
    assert bool(found) == wrong, found


@pytest.mark.parametrize("broken", [Peeking, Strict])
def test_a_wrong_oracle_is_caught(broken: Callable[[Any], Oracle]) -> None:
    few = cases(12)
    assert faults([case.trials(case.predictor(broken), repeats=20) for case in few])


def test_an_oracle_that_knows_the_truth_is_caught() -> None:
    """Its sets are small and cover too much: no honest score could do it."""
    rng = np.random.default_rng(0)
    case = cases(1)[0]
    oracle = Knowing(case.losses[0])

    class Watched:
        def draw(self, n: int, rng: np.random.Generator) -> Any:
            P, y = case.problem.draw(n, rng)
            oracle.known.update({row.tobytes(): label for row, label in zip(P, y, strict=True)})
            return P, y

    predictor = udcp.SetPredictor(case.losses[0], oracle, alpha=0.2)
    assert faults([coverage_trials(predictor, Watched(), n_cal=20, repeats=20, rng=rng)])


def test_the_assertion_for_other_suites() -> None:
    case = cases(1)[0]
    assert_coverage(case.predictor("base"), case.problem)
    with pytest.raises(AssertionError, match=r"of 6000 points, where 0\.\d+ is expected .n_cal 20, alpha 0\.2.*e-\d"):
        assert_coverage(case.predictor(Peeking), case.problem)
    for settings in ({"conditional": "class"}, {"class_names": case.losses[0].labels}):
        with pytest.raises(InputError, match="one alpha, one threshold for all rows, and without class_names"):
            assert_coverage(case.predictor("base", **settings), case.problem)
    # Labels that are numbers, but not positions.
    loss = udcp.loads("labels {2, 0, 1}  loss l = size")
    assert_coverage(udcp.SetPredictor(loss, "base"), Problem.generated(3, np.random.default_rng(1), kind="calibrated"))


@pytest.mark.parametrize("values", [1, 2, 3])
def test_ties_broken_by_chance_give_the_law_exactly(values: int, sizes: Sizes) -> None:
    """The mean over the draws, for two test points, summed over all equally likely scores."""
    n, alpha = 4, Fraction(2, 5)
    counts = np.zeros(3)
    rng = np.random.default_rng(values)
    for scores in itertools.product(range(values), repeat=n + 2):
        cal, test = np.array(scores[:n], float), np.array(scores[n:], float)
        tau = np.sort(cal)[rank(n, alpha) - 1]
        for _ in range(1 + sizes.draws // values ** (n + 2)):
            counts[covered_with_random_ties(test <= tau, cal, test, tau, alpha, rng).sum()] += 1
    law = coverage_law(n, alpha, 2).pmf([0, 1, 2])
    total = counts.sum()
    assert np.abs(counts / total - law).max() < 5 * np.sqrt(0.25 / total)


@three_or_every_oracle
def test_nonempty_sets_cover_and_are_never_empty(oracle: str, options: Options, sizes: Sizes) -> None:
    every = []
    for case in cases(sizes.problems):
        predictor = case.predictor(oracle, options=options, nonempty=True)
        every.append(case.trials(predictor, repeats=10))
        assert predictor.predict_set(case.problem.draw(40, np.random.default_rng(1))[0]).sizes.min() > 0
    assert not faults(every)


@these_or_every_oracle("base", "price")
def test_randomized_coverage_is_exact(oracle: str, options: Options, sizes: Sizes) -> None:
    """One test point and a fresh seed for each calibration, so that the number covered is binomial, ties or none."""
    repeats = sizes.draws // sizes.problems
    every = []
    for case in cases(sizes.problems):
        made = case.predictor(oracle, options=options).oracle
        rng = np.random.default_rng(case.seed)
        covered = 0
        for seed in range(repeats):
            predictor = udcp.SetPredictor(made.loss, made, alpha=case.alpha, randomize=True, seed=seed)
            covered += coverage_trials(predictor, case.problem, n_cal=case.n_cal, repeats=1, rng=rng).covered
        every.append(Trials(case.n_cal, 1, case.alpha, repeats, covered, covered, True, case.name))
    assert not faults(every)


@these_or_every_oracle("base", "price")
def test_coverage_within_groups(oracle: str, options: Options, sizes: Sizes) -> None:
    """Two groups of different problems over the same labels, with different numbers of calibration points."""
    every = []
    for case in cases(sizes.problems):
        predictor = case.predictor(oracle, options=options, conditional="group")
        rng = np.random.default_rng(case.seed)
        other = Problem.generated(case.problem.prior.size, rng)
        sources: dict[str, tuple[Source, int]] = {"a": (case.problem, case.n_cal), "b": (other, 20)}
        every += conditional_trials(predictor, sources, case, rng)
    assert not faults(every)


@these_or_every_oracle("greedy", "price")
def test_coverage_within_classes(oracle: str, options: Options, sizes: Sizes) -> None:
    """As many calibration points of each class as are wanted, by choosing among many."""
    every = []
    for case in cases(sizes.problems):
        predictor = case.predictor(oracle, options=options, conditional="class")
        rng = np.random.default_rng(case.seed)
        sources: dict[int, tuple[Source, int]] = {y: (OneClass(case.problem, y), case.n_cal + y) for y in (0, 1)}
        every += conditional_trials(predictor, sources, case, rng)
    assert not faults(every)


@dataclass(frozen=True)
class OneClass:
    """The points of a problem whose true label is `label`."""

    problem: Problem
    label: int

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        found: list[Any] = []
        while len(found) < n:
            P, y = self.problem.draw(20 * n, rng)
            found.extend(P[y == self.label])
        return np.array(found[:n]), np.full(n, self.label)


def conditional_trials(
    predictor: udcp.SetPredictor, sources: Mapping[Any, tuple[Source, int]], case: Case, rng: np.random.Generator
) -> list[Trials]:
    """Trials of one group or class after the other, all calibrated together."""
    repeats, n_test = 20, 20
    names = np.array(predictor.loss.labels)
    by_group = predictor.conditional == "group"
    covered, fair = dict.fromkeys(sources, 0), dict.fromkeys(sources, 0)
    for _ in range(repeats):
        calibration = {name: problem.draw(n, rng) for name, (problem, n) in sources.items()}
        P, y = (np.concatenate(part) for part in zip(*calibration.values(), strict=True))
        of_rows = [name for name, (problem, n) in sources.items() for _ in range(n)]
        predictor.calibrate(P, y, groups=of_rows if by_group else None)
        thresholds: Any = predictor.calibrated.thresholds()
        for name, (problem, _) in sources.items():
            P, y = problem.draw(n_test, rng)
            inside = predictor.predict_set(P, groups=[name] * n_test if by_group else None).mask[np.arange(n_test), y]
            covered[name] += int(inside.sum())
            every = (calibration[name], (P, y))
            scores = [predictor.true_scores(predictor.rows(P, names[y])) for P, y in every]
            fair[name] += int(covered_with_random_ties(inside, *scores, thresholds[name], case.alpha, rng).sum())
    return [
        Trials(n, n_test, case.alpha, repeats, covered[name], fair[name], name=f"{case.name}, {name}")
        for name, (_, n) in sources.items()
    ]


@three_or_every_oracle
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_coverage_of_saturated_classifiers(oracle: str, options: Options, dtype: Any, sizes: Sizes) -> None:
    """Probabilities that run to 1 - 1e-30 and, in half and single precision, to exactly 0 and 1."""
    every = []
    for case in cases(sizes.problems, kind="saturated", dtype=dtype):
        P, _ = case.problem.draw(500, np.random.default_rng(0))
        assert (P.max(axis=1) == 1).any()
        every.append(case.trials(case.predictor(oracle, options=options), repeats=10))
    assert not faults(every)


class RunningSum(Oracle):
    """APS as it is usually written: the running float32 sum of the sorted probabilities, which runs out of digits."""

    name = "running sum"

    def _scores(self, P: Any) -> Any:
        order = np.argsort(-P, axis=1, kind="stable")
        sums = np.cumsum(np.take_along_axis(P, order, axis=1).astype(np.float32), axis=1)
        scores = np.empty(P.shape)
        np.put_along_axis(scores, order, sums.astype(float), axis=1)
        return scores


def test_a_running_float32_sum_covers_too_much(sizes: Sizes) -> None:
    """Nothing ties in `base` here, so its coverage is the law's; the sums tie at 1, and cover everything."""
    K = 40
    loss = udcp.loads(f"labels 0..{K - 1}  loss l = size")
    # Wrong with near certainty in a fifth of all cases: no probability is 0, but most are below 2^-24.
    problem = Problem("saturated", np.zeros(K), np.zeros(K), spread=2.0)

    def run(oracle: Any) -> Trials:
        predictor = udcp.SetPredictor(loss, oracle(loss) if callable(oracle) else oracle, alpha=0.1)
        return coverage_trials(predictor, problem, n_cal=40, repeats=sizes.repeats, rng=np.random.default_rng(0))

    ours, naive = run("base"), run(RunningSum)
    assert ours.fair == ours.covered
    assert not faults([ours])
    assert naive.covered == naive.repeats * naive.n_test
    assert naive.law[naive.covered] < FAMILY_WISE
