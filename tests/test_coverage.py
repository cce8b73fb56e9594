"""Coverage of every oracle on generated problems, held to its exact law; broken predictors fail the same test."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
import udcp_dsl.calibrate.calibration as calibration
from udcp_dsl.calibrate import rank
from udcp_dsl.oracle import Oracle
from udcp_dsl.testing.coverage import CLASSIFIERS, Problem, Trials, alarms, coverage_trials, pooled_chance

pytestmark = pytest.mark.filterwarnings("ignore::udcp_dsl.calibrate.CalibrationWarning")

N_PROBLEMS = 204
FAMILY_WISE = 1e-5  # for each of the tests below, of which there are fewer than ten an oracle

# Every oracle with its defaults, and `penalized` with a lambda that is not tuned.
VARIANTS: list[tuple[str, dict[str, object]]] = [
    *((name, {}) for name in udcp.oracle_names()),
    ("penalized", {"lam": 0.3}),
]
every_oracle = pytest.mark.parametrize(("oracle", "options"), VARIANTS, ids=[f"{n}{o or ''}" for n, o in VARIANTS])


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

    def trials(self, predictor: udcp.SetPredictor, *, repeats: int, n_cal: int | None = None) -> Trials:
        rng = np.random.default_rng(self.seed)
        n = self.n_cal if n_cal is None else n_cal
        return coverage_trials(predictor, self.problem, n_cal=n, repeats=repeats, rng=rng, name=self.name)


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
    found = [str(t) for t in alarms(every, FAMILY_WISE / 2)]
    pooled = pooled_chance(every)
    return found + (
        [f"all {len(every)} together: the chance of this is {pooled:.1e}"] if pooled < FAMILY_WISE / 2 else []
    )


@every_oracle
def test_coverage_follows_its_law(oracle: str, options: dict[str, object]) -> None:
    """A tuned lambda takes eleven times the work, and leaves a third of the points for the threshold."""
    tuned = oracle == "penalized" and not options
    every = [
        case.trials(
            case.predictor(oracle, options=options), repeats=3 if tuned else 20, n_cal=3 * case.n_cal if tuned else None
        )
        for case in cases(N_PROBLEMS)
    ]
    assert len(every) >= 200
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


def authors(n: int, alpha: Any) -> int:
    """The rank of the separable quantile in the paper's public code: ceil((n + 1) alpha), rounded up once more."""
    low = math.ceil(math.ceil((n + 1) * alpha) * (n - 1) / n)
    return max(1, n - low)


@pytest.mark.parametrize("broken", [shifted(-1), shifted(+1), authors], ids=["k - 1", "k + 1", "authors' k"])
def test_a_wrong_rank_is_caught(broken: Callable[[int, Any], int], monkeypatch: pytest.MonkeyPatch) -> None:
    few = cases(N_PROBLEMS)[:60]
    assert not faults([case.trials(case.predictor("base"), repeats=20) for case in few])
    monkeypatch.setattr(calibration, "rank", broken)
    assert faults([case.trials(case.predictor("base"), repeats=20) for case in few])


@pytest.mark.parametrize("broken", [Peeking, Strict])
def test_a_wrong_oracle_is_caught(broken: Callable[[Any], Oracle]) -> None:
    few = cases(N_PROBLEMS)[:60]
    assert faults([case.trials(case.predictor(broken), repeats=20) for case in few])


def test_an_oracle_that_knows_the_truth_is_caught() -> None:
    """Its sets are small and cover too much: no honest score could do it."""
    rng = np.random.default_rng(0)
    case = cases(N_PROBLEMS)[0]
    oracle = Knowing(case.losses[0])

    class Watched(Problem):
        def draw(self, n: int, rng: np.random.Generator) -> Any:
            P, y = super().draw(n, rng)
            oracle.known.update({row.tobytes(): label for row, label in zip(P, y, strict=True)})
            return P, y

    problem = Watched(**vars(case.problem))
    predictor = udcp.SetPredictor(case.losses[0], oracle, alpha=0.2)
    assert faults([coverage_trials(predictor, problem, n_cal=20, repeats=20, rng=rng)])


@every_oracle
def test_nonempty_sets_cover_and_are_never_empty(oracle: str, options: dict[str, object]) -> None:
    every = []
    for case in cases(N_PROBLEMS)[:24]:
        predictor = case.predictor(
            oracle, options=options or ({"lam": 0.1} if oracle == "penalized" else {}), nonempty=True
        )
        every.append(case.trials(predictor, repeats=10))
        assert predictor.predict_set(case.problem.draw(40, np.random.default_rng(1))[0]).sizes.min() > 0
    assert not faults(every)


@every_oracle
def test_randomized_coverage_is_exact(oracle: str, options: dict[str, object]) -> None:
    """One test point for each calibration, so that the number covered is binomial, ties or none."""
    few = [case for case in cases(N_PROBLEMS) if case.problem.kind != "repeated"][:24]
    settings = {"options": options or ({"lam": 0.1} if oracle == "penalized" else {}), "randomize": True}
    every = []
    for case in few:
        # Rows that are the same have the same draw, so a fresh seed is needed where the classifier repeats itself.
        if case.problem.kind in ("ignorant", "constant", "certain", "coarse"):
            one = [case.trials(case.predictor(oracle, seed=seed, **settings), repeats=1) for seed in range(30)]
        every.append(case.trials(case.predictor(oracle, **settings), repeats=60))
    assert not faults(every)
