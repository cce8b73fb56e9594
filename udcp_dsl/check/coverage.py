"""Does coverage hold, for good classifiers and bad? Simulated coverage is compared with its exact distribution.

Take n_cal calibration points and n_test test points, all independent, and break ties among scores at random. Then the
number of covered test points is beta-binomial (`coverage_law`). A test point that ties with the threshold is in the set
{s <= tau}, but counts as covered only if the random order puts it below the threshold (`covered_with_random_ties`). So
the distribution is exact, with or without ties, and a count too high is as suspect as one too low. The sum over repeats
has the convolution power of this distribution. The probability that a correct predictor fails any of several trials is
at most their family-wise error; randomised sets have binomial counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.check.samples import drawn_inputs
from udcp_dsl.check.verdicts import COVERAGE, DEFAULT, CounterExample, Verdict, assert_verdicts, raised
from udcp_dsl.diagnostics import InputError, SpecWarning, keeping_warnings
from udcp_dsl.expression.given import RowInputs, inputs_of
from udcp_dsl.expression.inputs import RowInput
from udcp_dsl.predict.calibrate import CalibrationWarning, calibrate, coverage_law, points_needed, rank, show_level
from udcp_dsl.predict.predictor import SetPredictor
from udcp_dsl.predict.stages.stage import LimitError
from udcp_dsl.showing import counted

if TYPE_CHECKING:
    from udcp_dsl.check.oracles import Chosen
    from udcp_dsl.check.verdicts import Plan
    from udcp_dsl.loss import Loss

Floats: TypeAlias = npt.NDArray[np.float64]
# Maps log q(y|x), (n, K), to the classifier's log p(y|x) up to a constant; the second argument is `Problem.own`, (K,).
Classifier: TypeAlias = Callable[[Floats, Floats, np.random.Generator], Floats]

_POOL = 7  # distinct rows of a problem whose rows repeat
_DISTINCT = 8  # distinct inputs of rows, as each needs an oracle of its own

CLASSIFIERS: Mapping[str, Classifier] = {
    "calibrated": lambda q, own, rng: q,
    "overconfident": lambda q, own, rng: 3 * q,
    "underconfident": lambda q, own, rng: q / 3,
    "prior shifted": lambda q, own, rng: q + own,
    "labels confused": lambda q, own, rng: np.roll(q, 1, axis=1),
    "noisy": lambda q, own, rng: q + rng.normal(size=q.shape),
    "ignorant": lambda q, own, rng: np.zeros_like(q),
    "constant": lambda q, own, rng: np.broadcast_to(own, q.shape),
    "coarse": lambda q, own, rng: np.log(np.ceil(4 * np.exp(q))),
    "certain": lambda q, own, rng: np.where(q == q.max(axis=1, keepdims=True), 0.0, -np.inf),
    "saturated": lambda q, own, rng: 40 * q,
    "repeated": lambda q, own, rng: q,
    "long-tailed": lambda q, own, rng: q,
    "tied": lambda q, own, rng: np.where(q >= np.median(q, axis=1, keepdims=True), 0.0, -1.0),
    "top three": lambda q, own, rng: np.where(q >= np.sort(q, axis=1)[:, [-min(3, q.shape[1])]], q, -np.inf),
    "one label alive": lambda q, own, rng: np.broadcast_to(np.where(own == own.max(), 0.0, -np.inf), q.shape),
}


class Source(Protocol):
    """Anything that draws n independent rows of probabilities, (n, K), and their true labels, as positions."""

    def draw(self, n: int, rng: np.random.Generator, /) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]: ...


def drawn_rows(
    source: Source, declared: Mapping[str, RowInput], n: int, rng: np.random.Generator
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], RowInputs | None]:
    """Draw rows with the declared inputs: a user's rows have their own, others get random ones within the ranges."""
    own = getattr(source, "draw_rows", None)
    if own is not None:
        rows = own(n, rng)
        return rows.P, rows.truth, rows.inputs
    P, y = source.draw(n, rng)
    return P, y, inputs_of(declared, drawn_inputs(declared, n, rng, distinct=_DISTINCT), n)


@dataclass(frozen=True, eq=False)
class Problem:
    """A source of independent rows (probabilities, true label): a distribution of labels and a classifier of some kind.

    Parameters
    ----------
    kind : str
        Kind of classifier, such as "calibrated", "overconfident" or "tied".
    prior : array, shape (K,)
        Log-odds of the labels before noise.
    own : array, shape (K,)
        Log-odds that belong to the classifier.
    spread : float
        Scale of the noise per row.
    dtype : dtype, default float64
        Type of the probabilities.

    Examples
    --------
    >>> problem = Problem.generated(3, np.random.default_rng(0))
    >>> P, y = problem.draw(5, np.random.default_rng(1))
    >>> P.shape, y.shape
    ((5, 3), (5,))
    """

    kind: str
    prior: Floats
    own: Floats
    spread: float
    dtype: npt.DTypeLike = np.float64

    @classmethod
    def generated(
        cls, K: int, rng: np.random.Generator, *, kind: str | None = None, dtype: npt.DTypeLike = np.float64
    ) -> Problem:
        """A random problem: flat or long-tailed, easy or hard.

        Parameters
        ----------
        K : int
            Number of labels.
        rng : numpy.random.Generator
            Source of randomness.
        kind : str, optional
            Kind of classifier; by default any.
        dtype : dtype, default float64
            Type of the probabilities.

        Returns
        -------
        Problem
            The problem.
        """
        chosen = str(rng.choice(list(CLASSIFIERS))) if kind is None else kind
        steep = float(rng.choice([0.0, 1.0, 2.0]))
        tail = -(3.0 if chosen == "long-tailed" else steep) * np.log(np.arange(1, K + 1))
        return cls(chosen, rng.permutation(tail), rng.normal(size=K), float(rng.choice([0.5, 1.0, 3.0])), dtype)

    @cached_property
    def _pool(self) -> Floats:
        return self.prior + self.spread * np.random.default_rng(0).gumbel(size=(_POOL, self.prior.size))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Draw independent rows.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        tuple of arrays, shapes (n, K) and (n,)
            Probabilities and true labels.
        """
        K = self.prior.size
        if self.kind == "repeated":
            odds = self._pool[rng.integers(_POOL, size=n)]
        else:
            odds = self.prior + self.spread * rng.gumbel(size=(n, K))
        log_q = odds - np.logaddexp.reduce(odds, axis=1, keepdims=True)
        # The largest of log q + standard Gumbel noise is a draw from q.
        y = np.argmax(log_q + rng.gumbel(size=(n, K)), axis=1)
        log_p = CLASSIFIERS[self.kind](log_q, self.own, rng)
        p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return (p / p.sum(axis=1, keepdims=True)).astype(self.dtype), y


@lru_cache(maxsize=1000)
def _chances(n_cal: int, alpha: Fraction, n_test: int) -> Floats:
    """Probabilities that 0 to n_test points are covered; cached, as scipy takes milliseconds and sizes repeat."""
    found: Floats = coverage_law(n_cal, alpha, n_test).pmf(np.arange(n_test + 1))
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class Trials:
    """How many of `repeats` * n_test points were covered after calibration on n_cal points, and its distribution.

    `fair` counts the points that are covered if ties are broken at random. Trials with `randomize` have n_test 1.
    """

    n_cal: int
    n_test: int
    alpha: Fraction
    repeats: int
    covered: int
    fair: int
    randomize: bool = False
    name: str = ""

    @cached_property
    def law(self) -> Floats:
        """The probability of each value of `fair`, from 0 to repeats * n_test."""
        if self.randomize:
            one = np.array([float(self.alpha), float(1 - self.alpha)])
        else:
            one = _chances(self.n_cal, self.alpha, self.n_test)
        total = np.ones(1)
        for bit in bin(self.repeats)[2:]:
            total = np.convolve(total, total)
            if bit == "1":
                total = np.convolve(total, one)
        return total

    @property
    def chance(self) -> float:
        """The two-sided p-value: the probability of a total at least as extreme as `fair`."""
        return _chance(self.law, self.fair)

    def __str__(self) -> str:
        points = self.repeats * self.n_test
        expected = float(self.law @ np.arange(self.law.size)) / points
        ties = "" if self.fair == self.covered else f" ({self.covered / points:.4f} with ties)"
        return (
            f"{self.name or 'coverage'}: {self.fair / points:.4f}{ties} of {points} points, where {expected:.4f} is "
            f"expected (n_cal {self.n_cal}, alpha {show_level(self.alpha)}); the chance of this is {self.chance:.1e}"
        )


def coverage_trials(
    predictor: SetPredictor,
    problem: Source,
    *,
    n_cal: int,
    repeats: int,
    rng: np.random.Generator,
    n_test: int = 30,
    name: str = "",
) -> Trials:
    """Calibrate and predict `repeats` times on fresh draws; the predictor is left calibrated.

    The predictor must have one alpha, one threshold for all rows, and no class_names. If it is randomized, n_test is 1,
    since only then are the counts independent. If it tunes a lambda, fewer points set its threshold, which the
    distribution takes into account. A calibration that fails because a limit of the spec cannot be reached does not
    count as a repeat; rows that set no threshold decide that.
    """
    if not predictor.promise.is_marginal or len(predictor.alphas) > 1 or predictor.class_names is not None:
        raise InputError("give a predictor with one alpha, one threshold for all rows, and without class_names")
    if predictor.randomize:
        n_test = 1
    P, y, inputs = drawn_rows(problem, predictor.inputs, repeats * (n_cal + n_test), rng)
    names = np.array(predictor.loss.labels)[y]
    covered = fair = done = 0
    rows = np.arange(n_test)
    # Few points, p = 0 and labels that cost nothing are intended.
    with keeping_warnings(CalibrationWarning), keeping_warnings(SpecWarning):
        for rest in np.split(np.arange(len(P)), repeats):
            cal, test = rest[:n_cal], rest[n_cal:]
            own, new = (None if inputs is None else inputs[part] for part in (cal, test))
            try:
                predictor.calibrate(P[cal], names[cal], inputs=own)
            except LimitError:
                continue
            done += 1
            inside = predictor.predict_set(P[test], inputs=new).mask[rows, y[test]]
            covered += int(inside.sum())
            if not predictor.randomize:
                every = predictor.rows(P[cal], names[cal], inputs=own)
                scores = predictor.true_scores(every.take(predictor.threshold_rows(every)))
                fresh = predictor.true_scores(predictor.rows(P[test], names[test], inputs=new))
                tau = predictor.calibrated.thresholds()
                inside = covered_with_random_ties(inside, scores, fresh, tau, predictor.alphas[0], rng)
            fair += int(inside.sum())
    n = predictor.calibrated.n if done else n_cal
    return Trials(n, n_test, predictor.alphas[0], done, covered, fair, predictor.randomize, name)


def covered_with_random_ties(
    inside: npt.NDArray[np.bool_],
    calibration_scores: Floats,
    test_scores: Floats,
    tau: Any,
    alpha: Fraction,
    rng: np.random.Generator,
) -> npt.NDArray[np.bool_]:
    """Which of the test points `inside` their sets stay covered if ties with the threshold are broken at random.

    A uniform draw per point orders equal scores. Among the calibration points that tie with tau, the j-th is then the
    threshold, j = k - #{s_i < tau}. Its draw has the distribution Beta(j, ties + 1 - j); a test point that ties with
    tau is covered if its own draw is smaller.
    """
    k, tied = rank(calibration_scores.size, alpha), test_scores == tau
    if k > calibration_scores.size or not tied.any():
        return inside
    ties = int(np.count_nonzero(calibration_scores == tau))
    j = k - int(np.count_nonzero(calibration_scores < tau))
    # If j is not in 1 .. ties, tau is not the k-th score: a fault that the count should show.
    draw = rng.beta(j, ties + 1 - j) if 1 <= j <= ties else float(j > ties)
    return np.asarray(inside & (~tied | (rng.random(tied.size) < draw)))


def significant_trials(trials: Iterable[Trials], family_wise: float = 1e-4) -> list[Trials]:
    """The trials that speak against a predictor; a correct one has any with a chance of at most `family_wise`."""
    every = list(trials)
    return [t for t in every if t.chance < family_wise / len(every)]


def pooled_chance(trials: Iterable[Trials]) -> float:
    """The p-value of all trials pooled, which must be independent: far more sensitive than that of each trial."""
    from scipy.signal import fftconvolve  # slow to import; exact to 1e-12, where direct sums would take minutes

    every = list(trials)
    laws = [t.law for t in every]
    while len(laws) > 1:
        pairs = list(zip(laws[::2], laws[1::2], strict=False))
        laws = [fftconvolve(a, b) for a, b in pairs] + laws[2 * len(pairs) :]
    return _chance(laws[0], sum(t.fair for t in every))


def _chance(law: Floats, total: int) -> float:
    low, high = law[: total + 1].sum(), law[total:].sum()
    return min(1.0, max(0.0, 2 * float(min(low, high))))


def assert_coverage(
    predictor: SetPredictor,
    problem: Source,
    *,
    n_cal: int = 20,
    n_test: int = 30,
    repeats: int = 200,
    seed: int = 0,
    chance: float = 1e-6,
) -> None:
    """Fail if the coverage of a predictor is lower or higher than split conformal prediction gives.

    Coverage over repeated calibrations follows a known distribution; the test compares with it, without a tolerance.

    Parameters
    ----------
    predictor : SetPredictor
        The predictor; it is calibrated again and again.
    problem : Problem
        Where rows come from.
    n_cal, n_test : int, default 20 and 30
        Number of calibration rows and of test rows in each repeat.
    repeats : int, default 200
        Number of repeats.
    seed : int, default 0
        Random seed.
    chance : float, default 1e-6
        Probability that a correct predictor fails.

    Raises
    ------
    AssertionError
        Coverage is too low or too high.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels 0..3  loss l = size")
    >>> predictor = udcp.SetPredictor(loss, "lac", alpha=0.2)
    >>> assert_coverage(predictor, Problem.generated(4, np.random.default_rng(0)))
    """
    rng = np.random.default_rng(seed)
    trials = coverage_trials(predictor, problem, n_cal=n_cal, n_test=n_test, repeats=repeats, rng=rng)
    name = predictor.oracle.name
    assert_verdicts(name, judged({name: [trials]}, 2 * chance))  # half for the trials, half for them all pooled


# What a validation tries.

QUESTION = "does coverage hold, for good classifiers and bad?"
TRIED: Sequence[str] = tuple(CLASSIFIERS)
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
    untried = {(item.name, alpha): dict.fromkeys(TRIED) for item in chosen if not item.slow for alpha in alphas}
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
    alarming = significant_trials([t for every in trials.values() for t in every], family_wise / 2)
    for name, every in trials.items():
        claim = f"{name}: {COVERAGE}"
        if not every:
            why = "it is slow: this alpha needs too many rows, there was no time, or a limit is out of reach"
            yield Verdict(claim, None, 0, why)
            continue
        points = sum(t.repeats * t.n_test for t in every)
        own = [t for t in alarming if t in every]
        together = pooled_chance(every)
        note = f"{counted(len(every), 'trial')}, p = {together:.2g} together"
        example = None
        if own:
            example = CounterExample(str(min(own, key=lambda t: (t.n_cal, t.repeats * t.n_test, t.chance))))
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
    every = list(enumerate(TRIED))
    for place, kind in every[number % 3 :: 3] if item.tuned else every:  # tuning takes most of the time
        dtype = (np.float64, np.float32, np.float16)[int(rng.integers(3))]
        problem = Problem.generated(loss.K, rng, kind=kind, dtype=dtype)
        large = (place + number + 1) % len(TRIED) == 0  # in round 0 the last one: trial times are known then
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
