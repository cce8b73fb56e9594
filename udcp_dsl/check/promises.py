"""Do the promises beyond average coverage hold? Each trial is one calibration and one fresh row, so independent.

If a promise holds, each trial succeeds with a known probability of at least p. For rank k of the m calibration points
that set the threshold, p = k / (m + 1): in a difficulty bin, at the rank of a confidence, after the fold of a repair,
at the alpha found for the worth of a miss, or in a decision. Under weights that are the true ratio, p = 1 - alpha. So
the number of successes is at least Poisson binomial. Harm is bounded, and Chernoff's bound tests whether its mean is
above alpha. The mean p-value over folds has a known distribution if the scores of the folds are independent or equal.
A monitor raises no alarm with probability at least 1 - level. Its p-values are uniform and independent, so the number
below x is binomial; a Kolmogorov-Smirnov test checks this, with ties broken at random.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.check.coverage import Problem
from udcp_dsl.check.verdicts import CounterExample, Verdict
from udcp_dsl.diagnostics import InputError, SpecError
from udcp_dsl.loss import Loss, loads
from udcp_dsl.measure.monitor import Monitor
from udcp_dsl.measure.monitored import Ranks
from udcp_dsl.predict.calibrate import points_needed, rank, show_level
from udcp_dsl.predict.calibrate.cross import CrossCalibration, equal_folds
from udcp_dsl.predict.calibrate.ranks import RankTable
from udcp_dsl.predict.calibrate.rule import confident_points, confident_rank
from udcp_dsl.predict.calibrate.strata import bins_needed
from udcp_dsl.predict.predictor import SetPredictor
from udcp_dsl.predict.promise import Promise
from udcp_dsl.predict.stages.alpha_of_miss import AbstainingIsCheapest
from udcp_dsl.predict.stages.decision import MIN_ROWS, check_decides
from udcp_dsl.predict.stages.repair import MIN_ROWS_IN_ALL
from udcp_dsl.predict.stages.stage import LimitError

if TYPE_CHECKING:
    from udcp_dsl.check.oracles import Chosen
    from udcp_dsl.check.verdicts import Plan
    from udcp_dsl.predict.oracle import Oracle

_TRIALS = 80
_FEWEST = 20  # fewer could not reveal anything
_MOST_POINTS = 400  # calibration points of a trial; a smaller alpha is not tried
_BINS = 2
_CONFIDENCE = Fraction(4, 5)
_HARM = 3.0  # harm of the first label; all others have 1
_FOLDS = 3
_WATCHED = 96  # rows that a monitor sees
_TUNED = 60  # calibration rows with a limit, a third of them for its multiplier
_LEVEL = Fraction(1, 5)
_DECIDED = 400  # rows whose best sets the decision stage computes

# Per trial: the outcome, and the value that it is compared with.
_Outcomes = Sequence[tuple[float, float]]


def _success_chance(found: _Outcomes) -> float:
    """The probability of this few successes or fewer, by the Poisson binomial distribution of the trials' chances."""
    if any(x < p == 1 for x, p in found):  # a certain success did not occur
        return 0.0
    law = np.ones(1)
    for _, p in found:
        law = np.convolve(law, [1 - p, p])
    return float(min(1.0, law[: int(sum(x for x, _ in found)) + 1].sum()))


def _harm_chance(found: _Outcomes) -> float:
    """Chernoff's bound on the probability of a mean harm this large, if the expected harm is at most alpha.

    It is exp(-n KL(mean, alpha)), both as shares of the largest harm.
    """
    share, least = (sum(x) / len(found) / _HARM for x in zip(*found, strict=True))
    if share <= least:
        return 1.0
    divergence = share * math.log(share / least)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - least))
    return math.exp(-len(found) * divergence)


def _uniform_chance(found: _Outcomes) -> float:
    """The p-value of the Kolmogorov-Smirnov test that independent numbers are uniform."""
    from scipy.stats import kstest  # slow to import

    return float(kstest([x for x, _ in found], "uniform").pvalue)


@dataclass(frozen=True)
class _Claim:
    """A claim: a function that runs one trial, what its outcome measures, and the p-value of all outcomes."""

    trial: Callable[[np.random.Generator], tuple[float, float]]
    about: str = "share covered"
    chance: Callable[[_Outcomes], float] = _success_chance
    share: float = 1.0  # number of trials, relative to `_TRIALS`
    rows: int = 0  # rows that a trial scores in addition to those of a calibration


def promises(loss: Loss, chosen: list[Chosen], alpha: Fraction, plan: Plan, family_wise: float) -> Iterator[Verdict]:
    """A verdict per promise, tried with `lac` or another fast untuned oracle: promises do not depend on the oracle."""
    quick = [item for item in chosen if not item.slow and not item.tuned and not item.oracle.wants_anchor]
    claims: dict[str, _Claim] = {}
    if quick:
        one = min(quick, key=lambda item: item.name != "lac")
        trials = _PromiseTrials(loss.example, one.of(loss.example).oracle, alpha)  # nor do they depend on inputs
        claims = {
            "by difficulty: coverage is as guaranteed in every bin": _Claim(trials.difficulty),
            "confidence: coverage is as guaranteed": _Claim(trials.confidence),
            "risk: the mean harm stays below alpha": _Claim(trials.risk, "mean harm", _harm_chance),
            "weights: shifted rows are covered": _Claim(trials.weights),
            "temperature: coverage is as guaranteed": _Claim(trials.temperature),
            "repair: coverage is as guaranteed": _Claim(trials.repair),
            "cross-conformal: coverage is as guaranteed": _Claim(trials.cross, share=2.0),
            "monitor: no more false alarms than its level": _Claim(
                trials.monitor, "share without an alarm", share=0.5, rows=_WATCHED
            ),
            "monitor: ranks among all rows so far are uniform": _Claim(trials.ranks, "mean", _uniform_chance),
            "miss: coverage is that of the alpha it finds": _Claim(trials.miss),
            "decision: each decision is covered": _Claim(trials.decision, share=0.3, rows=_DECIDED),
        }
        if any(item.name == "price" and not item.slow for item in chosen):
            name = "limits: their multipliers do not reduce coverage"
            claims[name] = _Claim(trials.limits, share=0.3, rows=20 * _TUNED)
    for number, (name, claim) in enumerate(claims.items()):
        if plan.late("promises", _FEWEST * trials.seconds(plan, claim.rows)):
            yield Verdict(name, None, 0, "there was no time: give a larger budget")
            continue
        rng = np.random.default_rng([plan.seed, 77, number])
        found = list[tuple[float, float]]()
        why = ""
        try:
            for _ in range(int(claim.share * _TRIALS)):
                if len(found) >= _FEWEST and plan.late("promises"):
                    break
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append(claim.trial(rng))
        except (SpecError, InputError) as error:  # the spec uses the name of the added harm; alpha is too small
            why = str(error).splitlines()[0]
        if why:
            yield Verdict(name, None, 0, f"not tried: {why}", applies=False)
            continue
        chance = claim.chance(found)
        about = f"{claim.about} {sum(x for x, _ in found) / len(found):.3f} in {len(found)} calibrations"
        example = None
        if chance < family_wise / len(claims):
            example = CounterExample(f"{name}, at alpha {show_level(alpha)}: {about}: p = {chance:.1e}")
        yield Verdict(name, example is None, len(found), f"{about}, p = {chance:.2g}", example)


class _PromiseTrials:
    """The trials: each is one calibration and one fresh row of a generated classifier."""

    def __init__(self, loss: Loss, oracle: Oracle, alpha: Fraction) -> None:
        self._loss, self._oracle, self._alpha = loss, oracle, alpha
        self._names = np.array(loss.labels)

    def seconds(self, plan: Plan, more: int) -> float:
        """Estimated seconds per trial; once kernels are compiled, scoring rows dominates."""
        if plan.rounds is not None:
            return 0.0
        rows = self._problem(np.random.default_rng(0)).draw(2, np.random.default_rng(0))
        self._oracle.score_of(*rows)
        began = plan.now()
        self._oracle.score_of(*rows)
        return (points_needed(self._alpha) * 3 + more) * (plan.now() - began) / 2

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
        predictor, P, y = self._calibrated(rng, n, repair="temperature")
        left = n - n // 5
        return self._covers(predictor, P, y), rank(left, self._alpha) / (left + 1)

    def repair(self, rng: np.random.Generator) -> tuple[float, float]:
        n = MIN_ROWS_IN_ALL + int(rng.integers(50))
        predictor, P, y = self._calibrated(rng, n, repair="auto")
        return self._at_rank(predictor, P, y)

    def miss(self, rng: np.random.Generator) -> tuple[float, float]:
        """`miss` is a random multiple of the range of the loss, and is raised until an alpha is found for it."""
        n = 60 + int(rng.integers(40))
        self._check_size(n)
        P, y = self._problem(rng).draw(n + 1, rng)
        lo, hi = self._loss.facts.interval
        worth, seed = max(hi - lo, 1e-9) * float(rng.uniform(0.5, 2)), int(rng.integers(1 << 31))
        while True:
            predictor = SetPredictor(self._loss, self._oracle, miss=worth, repair=None, seed=seed)
            try:
                predictor.calibrate(P[:-1], self._names[y[:-1]])
            except AbstainingIsCheapest:  # decided by the rows of alpha alone
                worth *= 4
                continue
            return self._at_rank(predictor, P, y)

    def decision(self, rng: np.random.Generator) -> tuple[float, float]:
        """The decision for the fresh row tells how many rows set its threshold; with too few, all sets are full."""
        check_decides(self._loss)
        n = max(MIN_ROWS * 4, 4 * points_needed(self._alpha)) + int(rng.integers(20))
        predictor, P, y = self._calibrated(rng, n, conditional="decision")
        prepared = predictor.fitted.prepare(predictor.rows(P[-1:]))
        assert prepared.stratum is not None
        m = predictor.fitted.thresholds.calibration.cells[prepared.stratum[0]].n
        return self._covers(predictor, P, y), min(1.0, rank(m, self._alpha) / (m + 1))

    def weights(self, rng: np.random.Generator) -> tuple[float, float]:
        """The density ratio of new rows is their highest probability: a draw is accepted with that probability."""
        problem, n = self._problem(rng), 2 * points_needed(self._alpha)
        self._check_size(n)
        P, y = problem.draw(n, rng)
        predictor = SetPredictor(self._loss, self._oracle, alpha=self._alpha, repair=None)
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
        self._check_size(n)
        P, y = self._problem(rng).draw(n + 1, rng)
        predictor = SetPredictor(loss, "lac", alpha=self._alpha, risk="udcp_harm", repair=None).calibrate(
            P[:-1], self._names[y[:-1]]
        )
        missed = 1.0 - self._inside(predictor.predict_set(P[-1:]).mask, y[-1:])
        return missed * (_HARM if y[-1] == 0 else 1.0), float(self._alpha)

    def limits(self, rng: np.random.Generator) -> tuple[float, float]:
        """The spec's limits, or one on the set size, with random bounds that are raised until they can be reached.

        Rows that set no threshold decide whether a limit can be reached.
        """
        n, share = max(_TUNED, 2 * points_needed(self._alpha)), float(rng.uniform(0.0, 1.0))
        self._check_size(n)
        problem = self._problem(rng)
        while True:
            loss = self._with_scaled_limits(share)
            P, y = problem.draw(n + 1, rng)
            asked = Promise(alpha=self._alpha, repair=None, seed=int(rng.integers(1 << 31)))
            try:
                predictor = SetPredictor(loss, "price", promise=asked).calibrate(P[:-1], self._names[y[:-1]])
            except LimitError:
                share = 1.0 if share > 1 - 1e-3 else (share + 1) / 2
                continue
            return self._at_rank(predictor, P, y)

    def _with_scaled_limits(self, share: float) -> Loss:
        """The loss with the bound of each limit at this share of the range of its expression."""
        own = self._loss if self._loss.limits else self._with_declarations(f"limit udcp_limit: size <= {self._loss.K}")
        ends = [(limit, limit.facts.interval) for limit in own.limits]
        limits = tuple(replace(limit, at_most=x.lo + share * (x.hi - x.lo)) for limit, x in ends)
        return Loss(replace(own._compiled, limits=limits))

    def cross(self, rng: np.random.Generator) -> tuple[float, float]:
        """Folds with independent scores, with equal scores, or with scores that are learnt from the other folds."""
        m = 1 + int(rng.integers(min(2 * points_needed(self._alpha), _MOST_POINTS // _FOLDS)))
        kind = rng.choice(3, p=[0.3, 0.5, 0.2])
        if kind == 2:
            return self._cross_learnt(rng, m), max(0.0, float(1 - 2 * self._alpha))
        if kind == 0:
            scores, new = [rng.random(m) for _ in range(_FOLDS)], [rng.random((1, 1)) for _ in range(_FOLDS)]
            law = np.ones(1)
            for _ in range(_FOLDS):
                law = np.convolve(law, np.full(m + 1, 1 / (m + 1)))
        else:
            scores, new = [rng.random(m)] * _FOLDS, [rng.random((1, 1))] * _FOLDS
            law = np.zeros(_FOLDS * m + 1)
            law[::_FOLDS] = 1 / (m + 1)
        left_out = math.floor(self._alpha * _FOLDS * (m + 1)) - _FOLDS  # largest sum of counts that leaves a label out
        mask = CrossCalibration.of(scores).sets(new, self._alpha)
        return float(mask[0, 0]), max(0.0, float(1 - law[: max(0, left_out + 1)].sum()))

    def _cross_learnt(self, rng: np.random.Generator, m: int) -> float:
        """Scores of the oracle on probabilities that each fold reweights by the label counts of the other folds."""
        n, K = _FOLDS * m, self._loss.K
        P, y = self._problem(rng).draw(n + 1, rng)
        scores, new = [], []
        for fold in equal_folds(n, _FOLDS, rng):
            others = np.setdiff1d(np.arange(n), fold)
            learnt = P * (1 + np.bincount(y[others], minlength=K))
            learnt = learnt / learnt.sum(axis=1, keepdims=True)
            scores.append(self._oracle.score_of(learnt[fold], y[fold]))
            new.append(self._oracle.scores(learnt[-1:]))
        return self._inside(CrossCalibration.of(scores).sets(new, self._alpha), y[-1:])

    def monitor(self, rng: np.random.Generator) -> tuple[float, float]:
        """Few calibration rows: the monitor must not mistake their random error for a change."""
        n = bins_needed(_BINS, points_needed(self._alpha)) + int(rng.integers(8))
        self._check_size(n)
        P, y = self._problem(rng).draw(n + _WATCHED, rng)
        settings: dict[str, Any] = {"conditional": "difficulty", "bins": _BINS} if rng.random() < 0.5 else {}
        predictor = SetPredictor(self._loss, self._oracle, alpha=self._alpha, **{"repair": None, **settings})
        predictor.calibrate(P[:n], self._names[y[:n]])
        monitor = Monitor(predictor, level=_LEVEL, seed=int(rng.integers(1 << 31)))
        for part in np.array_split(np.arange(n, len(P)), 2):
            monitor.update(P[part], self._names[y[part]])
        return float(not monitor.alarms), float(1 - _LEVEL)

    def ranks(self, rng: np.random.Generator) -> tuple[float, float]:
        """A uniform number from the ranks of scores with or without ties; 1 if `missed` is not p <= chance."""
        from scipy.special import bdtr  # slow to import

        n = points_needed(self._alpha) + int(rng.integers(4))
        self._check_size(n)
        scores = rng.random(n + _WATCHED) if rng.random() < 0.5 else rng.integers(0, 3, n + _WATCHED).astype(float)
        ranks = Ranks.among(RankTable.of(scores[:n]), rank(n, self._alpha), rng)
        x, below = rng.uniform(0.2, 0.8), 0
        for part in np.array_split(scores[n:], _WATCHED // 8):
            ranks, p, missed, chance = ranks.after(ranks.places(part, rng.random(len(part))), rng.random(len(part)))
            below += int((p < x).sum())
            if not np.array_equal(missed, p <= chance):
                return 1.0, 0.5
        low, high = (float(bdtr(k, _WATCHED, x)) if k >= 0 else 0.0 for k in (below - 1, below))
        return abs(2 * (low + rng.random() * (high - low)) - 1), 0.5  # near 1 for too many and too few alike

    @cached_property
    def _with_harm(self) -> Loss:
        first = json.dumps(self._loss.labels[0])
        return self._with_declarations(f"costs udcp_harm {{ {first}: {_HARM:g}, default: 1 }}")

    def _with_declarations(self, declarations: str) -> Loss:
        """The loss, compiled from its spec with further declarations."""
        loss = self._loss
        text = f"{loss.source.text}\n{declarations}\n"
        more: dict[str, Any] = {"params": dict(loss.params), "files": dict(loss.files), "name": loss.source.name}
        return loads(text, labels=list(loss.labels), loss=loss.name, **more).example

    def _calibrated(
        self, rng: np.random.Generator, n: int, **settings: Any
    ) -> tuple[SetPredictor, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        self._check_size(n)
        P, y = self._problem(rng).draw(n + 1, rng)
        asked = {"repair": None, "seed": int(rng.integers(1 << 31)), **settings}
        predictor = SetPredictor(self._loss, self._oracle, promise=Promise(alpha=self._alpha, **asked))
        return predictor.calibrate(P[:-1], self._names[y[:-1]]), P, y

    def _problem(self, rng: np.random.Generator) -> Problem:
        return Problem.generated(self._loss.K, rng)

    def _check_size(self, n: int) -> None:
        if n > _MOST_POINTS:
            raise InputError(f"alpha {show_level(self._alpha)} needs {n} calibration rows in each of many trials")

    def _at_rank(
        self, predictor: SetPredictor, P: np.ndarray[Any, Any], y: np.ndarray[Any, Any]
    ) -> tuple[float, float]:
        """Whether the last row is covered, and the chance of that by the rank among the rows that set the threshold."""
        left = predictor.calibrated.n
        return self._covers(predictor, P, y), min(1.0, rank(left, predictor.alphas[0]) / (left + 1))

    def _covers(self, predictor: SetPredictor, P: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
        return self._inside(predictor.predict_set(P[-1:]).mask, y[-1:])

    @staticmethod
    def _inside(mask: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
        return float(mask[0, y[0]])
