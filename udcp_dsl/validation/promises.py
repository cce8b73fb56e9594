"""Do the promises hold, beyond coverage on average? One fresh row a calibration, so that trials are independent.

Given what is promised each trial succeeds with a chance of at least p, known exactly: k / (m + 1) by rank k of the m
calibration points that count, in a bin by difficulty, at the rank of a confidence or after a temperature's fold;
1 - alpha under weights that are the true ratio. So the number of successes is never below a binomial one. Harm is
bounded, and its mean is held to alpha by Chernoff's bound for what lies between 0 and the largest harm.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.diagnostics import InputError, SpecError
from udcp_dsl.loss import loads
from udcp_dsl.prediction.calibrate import points_needed, rank, show_level
from udcp_dsl.prediction.calibrate.difficulty import bins_needed
from udcp_dsl.prediction.calibrate.rule import confident_points, confident_rank
from udcp_dsl.prediction.predictor import SetPredictor
from udcp_dsl.testing.coverage import Problem
from udcp_dsl.validation.verdicts import CounterExample, Verdict

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.prediction.oracle import Oracle
    from udcp_dsl.validation.oracles import Chosen
    from udcp_dsl.validation.plan import Plan

_TRIALS = 80
_FEWEST = 20  # with fewer nothing would ever be found
_MOST_POINTS = 400  # calibration points of a trial; a smaller alpha is not tried
_BINS = 2
_CONFIDENCE = Fraction(4, 5)
_HARM = 3.0  # of the first label; all others have 1

# Of a generator, one trial: what was reached, and what it is held to.
_Trial = Callable[[np.random.Generator], tuple[float, float]]


def promises(loss: Loss, chosen: list[Chosen], alpha: Fraction, plan: Plan, family_wise: float) -> Iterator[Verdict]:
    """A verdict for each promise, with the quickest oracle that is not tuned: promises do not depend on the oracle."""
    quick = [item for item in chosen if not item.slow and not item.tuned and not item.oracle.wants_anchor]
    claims: dict[str, tuple[_Trial, bool]] = {}
    if quick:
        tried = _Tried(loss, min(quick, key=lambda item: item.name != "lac").oracle, alpha)
        claims = {
            "by difficulty: every bin is covered": (tried.difficulty, False),
            "confidence: coverage is that of its rank": (tried.confidence, False),
            "risk: the mean harm stays below alpha": (tried.risk, True),
            "weights: shifted rows are covered": (tried.weights, False),
            "temperature: its rows take nothing from coverage": (tried.temperature, False),
        }
    for number, (claim, (trial, bounded)) in enumerate(claims.items()):
        if plan.late("coverage", _FEWEST * tried.seconds(plan)):
            yield Verdict(claim, None, 0, "no time was left")
            continue
        rng = np.random.default_rng([plan.seed, 77, number])
        found = list[tuple[float, float]]()
        why = ""
        try:
            for _ in range(_TRIALS):
                if len(found) >= _FEWEST and plan.late("coverage"):
                    break
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append(trial(rng))
        except (SpecError, InputError) as error:  # a risk that the spec leaves no name for; an alpha too small to try
            why = str(error).splitlines()[0]
        if why:
            yield Verdict(claim, None, 0, f"not tried: {why}", applies=False)
            continue
        chance = _harm_chance(found, alpha) if bounded else _success_chance(found)
        mean = sum(x for x, _ in found) / len(found)
        about = f"{'mean harm' if bounded else 'share covered'} {mean:.3f} in {len(found)} calibrations"
        example = None
        if chance < family_wise / len(claims):
            example = CounterExample(f"{claim}, at alpha {show_level(alpha)}: {about}; the chance is {chance:.1e}")
        yield Verdict(claim, example is None, len(found), f"{about}, p = {chance:.2g}", example)


class _Tried:
    """One calibration and one fresh row of a generated classifier a trial."""

    def __init__(self, loss: Loss, oracle: Oracle, alpha: Fraction) -> None:
        self._loss, self._oracle, self._alpha = loss, oracle, alpha
        self._names = np.array(loss.labels)

    def seconds(self, plan: Plan) -> float:
        """What a trial takes, roughly: once kernels are compiled, most of it is scoring rows."""
        if plan.rounds is not None:
            return 0.0
        rows = self._problem(np.random.default_rng(0)).draw(2, np.random.default_rng(0))
        self._oracle.score_of(*rows)
        began = plan.now()
        self._oracle.score_of(*rows)
        return points_needed(self._alpha) * 3 * (plan.now() - began) / 2

    def difficulty(self, rng: np.random.Generator) -> tuple[float, float]:
        n = bins_needed(_BINS, points_needed(self._alpha)) + int(rng.integers(8))
        predictor, P, y = self._calibrated(rng, n, conditional="difficulty", bins=_BINS)
        highest = P.max(axis=1)
        below = 1 + int((highest[:-1] < highest[-1]).sum())
        ends = [b * (n + 1) // _BINS for b in range(_BINS + 1)]
        b = next(b for b in range(_BINS) if below <= ends[b + 1])
        m = ends[b + 1] - ends[b] - 1
        ties = len(np.unique(highest)) <= n
        exact = float(1 - self._alpha) if ties else min(1.0, rank(m, self._alpha) / (m + 1))
        return self._covers(predictor, P, y), exact

    def confidence(self, rng: np.random.Generator) -> tuple[float, float]:
        n = confident_points(self._alpha, _CONFIDENCE) + int(rng.integers(20))
        predictor, P, y = self._calibrated(rng, n, confidence=_CONFIDENCE)
        return self._covers(predictor, P, y), confident_rank(n, self._alpha, _CONFIDENCE) / (n + 1)

    def temperature(self, rng: np.random.Generator) -> tuple[float, float]:
        n = max(50, 2 * points_needed(self._alpha))
        predictor, P, y = self._calibrated(rng, n, temperature="fit")
        left = n - n // 5
        return self._covers(predictor, P, y), rank(left, self._alpha) / (left + 1)

    def weights(self, rng: np.random.Generator) -> tuple[float, float]:
        """New rows have the highest probability as their ratio: a draw is taken with that chance."""
        problem, n = self._problem(rng), 2 * points_needed(self._alpha)
        self._check(n)
        P, y = problem.draw(n, rng)
        predictor = SetPredictor(self._loss, self._oracle, alpha=self._alpha)
        predictor.calibrate(P, self._names[y], weights=P.max(axis=1))
        while True:
            new, truth = problem.draw(1, rng)
            if rng.random() < new.max():
                return self._inside(predictor.predict_set(new, weights=new.max(axis=1)).mask, truth), float(
                    1 - self._alpha
                )

    def risk(self, rng: np.random.Generator) -> tuple[float, float]:
        loss = self._with_harm
        n = 2 * math.ceil(_HARM / self._alpha) + int(rng.integers(20))
        self._check(n)
        P, y = self._problem(rng).draw(n + 1, rng)
        predictor = SetPredictor(loss, "lac", alpha=self._alpha, risk="udcp_harm").calibrate(
            P[:-1], self._names[y[:-1]]
        )
        missed = 1.0 - self._inside(predictor.predict_set(P[-1:]).mask, y[-1:])
        return missed * (_HARM if y[-1] == 0 else 1.0), float(self._alpha)

    @property
    def _with_harm(self) -> Loss:
        loss = self._loss
        text = f"{loss.source.text}\ncosts udcp_harm {{ {json.dumps(loss.labels[0])}: {_HARM:g}, default: 1 }}\n"
        more: dict[str, Any] = {"params": dict(loss.params), "files": dict(loss.files), "name": loss.source.name}
        return loads(text, labels=list(loss.labels), loss=loss.name, **more)

    def _calibrated(
        self, rng: np.random.Generator, n: int, **settings: Any
    ) -> tuple[SetPredictor, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        self._check(n)
        P, y = self._problem(rng).draw(n + 1, rng)
        predictor = SetPredictor(
            self._loss, self._oracle, alpha=self._alpha, seed=int(rng.integers(1 << 31)), **settings
        )
        return predictor.calibrate(P[:-1], self._names[y[:-1]]), P, y

    def _problem(self, rng: np.random.Generator) -> Problem:
        return Problem.generated(self._loss.K, rng)

    def _check(self, n: int) -> None:
        if n > _MOST_POINTS:
            raise InputError(f"alpha {show_level(self._alpha)} needs {n} calibration points in each of many trials")

    def _covers(self, predictor: SetPredictor, P: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
        return self._inside(predictor.predict_set(P[-1:]).mask, y[-1:])

    @staticmethod
    def _inside(mask: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
        return float(mask[0, y[0]])


def _success_chance(found: list[tuple[float, float]]) -> float:
    """The chance of so few successes or fewer, where each has at least its own chance: a Poisson binomial law."""
    law = np.ones(1)
    for _, p in found:
        law = np.convolve(law, [1 - p, p])
    return float(min(1.0, law[: int(sum(x for x, _ in found)) + 1].sum()))


def _harm_chance(found: list[tuple[float, float]], alpha: Fraction) -> float:
    """A bound of the chance of so large a mean, of independent numbers from 0 to the largest harm whose mean is at most
    alpha: exp(-n KL(mean, alpha)), both as shares of the largest."""
    share, least = sum(x for x, _ in found) / len(found) / _HARM, float(alpha) / _HARM
    if share <= least:
        return 1.0
    divergence = share * math.log(share / least)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - least))
    return math.exp(-len(found) * divergence)
