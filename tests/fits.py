"""Calibrations of every kind, by the public interface alone: what fitting gave in one version, a later one must give.

Each case is a loss, an oracle, the options of the predictor, and what rows carry beside their probabilities.
`tests/test_stored_fits.py` compares them with what is stored.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import udcp_dsl as udcp

FILES = Path(__file__).parent / "corpus" / "fits"
HEAD = """
labels { ant, bee, cat, dog, eel, fox, gnu, hen }
hierarchy kin { insect { ant, bee }, beast { hunter { cat, dog, fox }, gnu }, other { eel, hen } }
costs work { ant: 1, bee: 0.5, cat: 2, dog: 0.25, eel: 3, default: 1.5 }
costs harm { ant: 4, bee: 2, cat: 1, default: 0.5 }
category g { ant, bee, cat, dog }
category h { eel, fox, gnu, hen }
category wild { eel, fox, gnu }
actions treat from "treat.csv"
"""
BODIES = {
    "costs": "loss l = sum(work)",
    "nested": "loss l = sum(work) + 2 * count(kin.level(1)) + 0.5 * count(kin.level(2))",
    "tree": "loss l = diameter(kin) + 0.05 * size",
    "mixed": "loss l = size + 3 * (any(g) and any(h))",
    "capped": "loss l = min(sum(work) + 0.5 * size, 6)",
    "actions": "loss l = worst(treat) + 0.1 * size",
    "limited": "limit calls: any(wild) <= 0.55  loss l = sum(work) + count(kin.level(1))",
    "limited, mixed": "limit calls: any(wild) <= 0.6  loss l = size + 3 * (any(g) and any(h))",
    "inputs": (
        "input km in [0, 100]  costs fee per row in [0, 5]  "
        "loss l = sum(fee) + (if km > 50 then 2 * count(kin.level(1)) else 0.02 * km * any(wild)) + 0.1 * size"
    ),
}


@dataclass(frozen=True)
class Case:
    """One calibration; `beside` says what its rows carry: groups, weights, inputs."""

    body: str
    oracle: str = "price"
    settings: Mapping[str, Any] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    n: int = 600
    probabilities: Callable[[np.ndarray], np.ndarray] | None = None  # instead of p as drawn
    reading: Mapping[str, Any] = field(default_factory=dict)  # further arguments of calibrate
    adapted: bool = False


PLAIN: dict[str, Any] = {"repair": None}
CASES: dict[str, Case] = {
    "base": Case("nested", "base", PLAIN),
    "base, random mass": Case("nested", "base", {**PLAIN, "options": {"mass": "random"}}),
    "lac": Case("nested", "lac", PLAIN),
    "raps": Case("nested", "raps", {**PLAIN, "options": {"lam": 0.1, "k": 2}}),
    "penalized": Case("nested", "penalized", {**PLAIN, "options": {"lam": 0.1}}),
    "penalized, tuned": Case("nested", "penalized", PLAIN),
    "penalized, tuned and repaired": Case("mixed", "penalized", {"alpha": 0.2}),
    "ratio": Case("costs", "ratio", PLAIN),
    "greedy": Case("mixed", "greedy", PLAIN),
    "ilp": Case("mixed", "ilp", {**PLAIN, "options": {"levels": [0.5, 0.9, 0.99]}}, n=80),
    "price, costs": Case("costs"),
    "price, nested": Case("nested", settings={"alpha": [0.05, 0.1, 0.3]}),
    "price, tree": Case("tree", settings={"alpha": [0.05, 0.2]}),
    "price, mixed": Case("mixed", settings={"alpha": [0.05, 0.1, 0.3]}),
    "price, few rows": Case("mixed", n=60),
    "temperature": Case("mixed", settings={"repair": "temperature"}),
    "repair given": Case("tree", settings={"repair": udcp.Repair(exponent=0.6)}),
    "class": Case("tree", settings={"conditional": "class", "alpha": 0.2}),
    "class, anchored": Case("mixed", settings={"conditional": "class", "alpha": 0.2, "pool": True}),
    "group": Case("tree", settings={"conditional": "group", "alpha": [0.1, 0.2]}, beside=("groups",)),
    "group, anchored": Case(
        "mixed", settings={"conditional": "group", "alpha": 0.1, "confidence": 0.8}, beside=("groups",)
    ),
    "group, pooled": Case("nested", "base", {"conditional": "group", "pool": True}, beside=("groups",), n=90),
    "difficulty": Case("tree", settings={"conditional": "difficulty", "bins": 3}),
    "difficulty, anchored": Case("mixed", settings={"conditional": "difficulty", "alpha": [0.1, 0.2]}),
    "decision, capped": Case("capped", settings={"conditional": "decision"}),
    "decision, actions": Case("actions", settings={"conditional": "decision", "alpha": 0.2}),
    "actions": Case("actions", settings={"alpha": 0.2}),
    "confidence": Case("tree", settings={"alpha": 0.1, "confidence": 0.95}),
    "simultaneous": Case(
        "nested",
        "lac",
        {"conditional": "group", "alpha": 0.1, "confidence": 0.9, "simultaneous": True},
        beside=("groups",),
    ),
    "risk": Case("mixed", settings={"risk": "harm", "alpha": [0.3, 0.6]}),
    "risk by group": Case(
        "nested", settings={"risk": "harm", "alpha": 0.3, "conditional": "group"}, beside=("groups",)
    ),
    "randomize": Case("tree", settings={"randomize": True}),
    "randomize, by group": Case("nested", "lac", {"randomize": True, "conditional": "group"}, beside=("groups",)),
    "nonempty": Case("mixed", settings={"nonempty": True, "alpha": 0.4}),
    "weights": Case("tree", "base", {"alpha": [0.1, 0.3]}, beside=("weights",)),
    "weights, anchored": Case("mixed", settings={"alpha": 0.2}, beside=("weights",)),
    "miss": Case("mixed", settings={"miss": 12.0}),
    "miss, nested": Case("nested", settings={"miss": 15.0}),
    "miss by group": Case("mixed", settings={"miss": 12.0, "conditional": "group"}, beside=("groups",)),
    "miss, tuned": Case("nested", "penalized", {"miss": 15.0}),
    "limits": Case("limited", settings={"alpha": [0.2, 0.3]}),
    "limits, anchored": Case("limited, mixed", settings={"alpha": 0.2}),
    "limits with bounds": Case("limited", settings={"alpha": 0.2, "confidence": 0.9}, n=1200),
    "limits by group": Case("limited", settings={"conditional": "group", "alpha": 0.2}, beside=("groups",)),
    "inputs": Case("inputs", beside=("inputs",)),
    "inputs, greedy": Case("inputs", "greedy", {"alpha": 0.2}, beside=("inputs",)),
    "inputs, penalized": Case("inputs", "penalized", {"alpha": 0.2, "options": {"lam": 0.1}}, beside=("inputs",)),
    "inputs by group": Case("inputs", settings={"conditional": "group", "alpha": 0.2}, beside=("inputs", "groups")),
    "logits": Case("tree", probabilities=lambda P: np.log(P) * 2, reading={"logits": True}),
    "normalize": Case("tree", "lac", probabilities=lambda P: P * 3, reading={"normalize": True}),
    "adapted": Case("mixed", settings={"alpha": 0.2}, adapted=True),
    "adapted, base": Case("nested", "base", adapted=True),
}
NEW = 120  # rows that are predicted


def drawn(case: Case) -> tuple[np.ndarray, np.ndarray, dict[str, Any], np.ndarray, dict[str, Any]]:
    """Probabilities, truth and what goes with them for calibration; the same without truth for new rows."""
    rng = np.random.default_rng(41)
    n = case.n + NEW
    true = rng.dirichlet(np.full(8, 0.4), n)
    y = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = 0.9 * true**0.6 / (true**0.6).sum(axis=1, keepdims=True) + 0.1 / 8  # too unsure
    P /= P.sum(axis=1, keepdims=True)
    P = P if case.probabilities is None else case.probabilities(P)
    names = np.array(["north", "south", "west"])
    every: dict[str, Any] = {
        "groups": names[rng.choice(3, n, p=[0.5, 0.4, 0.1])],
        "weights": 1 + true[:, 0],
        "inputs": {"km": rng.uniform(0, 100, n).round(1), "fee": rng.uniform(0, 5, (n, 8)).round(2)},
    }

    def part(rows: slice) -> dict[str, Any]:
        return {name: some_of(every[name], rows) for name in case.beside}

    old, new = slice(case.n), slice(case.n, None)
    return P[old], y[old], part(old), P[new], part(new)


def some_of(value: Any, rows: slice) -> Any:
    return {name: x[rows] for name, x in value.items()} if isinstance(value, dict) else value[rows]


def fitted(name: str) -> tuple[udcp.SetPredictor, np.ndarray, dict[str, Any]]:
    """The calibrated predictor of a case, and new rows with what goes with them."""
    case = CASES[name]
    P, y, beside, new, beside_new = drawn(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = udcp.loads(HEAD + BODIES[case.body], folder=FILES)
        predictor = udcp.SetPredictor(loss, case.oracle, **case.settings)
        predictor.calibrate(P, np.array(loss.labels)[y], **beside, **case.reading)
        if case.adapted:
            ratios = np.linspace(0.5, 1.5, 8)
            old = np.bincount(y, minlength=8) / len(y)
            shift = udcp.LabelShift(old, old * ratios / (old * ratios).sum())
            predictor = predictor.adapt(shift, calibration=(P, np.array(loss.labels)[y]))
    return predictor, new, beside_new


def outcome(predictor: udcp.SetPredictor, new: np.ndarray, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Sets, thresholds and p-values, by alpha, as plain data."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for alpha in predictor.alphas:
            sets = predictor.predict_set(new, alpha=alpha, **beside)
            found[str(alpha)] = {
                "sets": digest(np.packbits(sets.mask, axis=1)),
                "labels": int(sets.mask.sum()),
                "cost": float(sets.costs.sum()),
                "thresholds": numbers(predictor.calibrated.thresholds(alpha)),
            }
        found["p-values"] = np.round(predictor.p_values(new, **beside), 9).sum(axis=0).tolist()
    return found


def numbers(thresholds: Any) -> list[float]:
    """The thresholds of a marginal calibration, or of its groups, classes or bins in their order."""
    values = thresholds.values() if isinstance(thresholds, Mapping) else np.atleast_1d(thresholds)
    return [float(x) for x in values]


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def compared() -> dict[str, list[list[float]]]:
    """What `compare` finds with its defaults, and with coverage by difficulty, a miss, a bound on harm, and limits."""
    case = CASES["price, mixed"]
    P, y, _, _, _ = drawn(case)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, body, settings in (
            ("plain", "mixed", {"alphas": [0.1, 0.2]}),
            ("miss", "mixed", {"miss": 12.0}),
            ("risk", "nested", {"risk": "harm", "alphas": 0.4}),
            ("unrepaired", "tree", {"repair": None}),
            ("decision", "capped", {"conditional": "decision", "alphas": 0.2}),
        ):
            loss = udcp.loads(HEAD + BODIES[body], folder=FILES)
            comparison = udcp.compare(loss, P, np.array(loss.labels)[y], splits=3, **settings)
            found[name] = [[x.oracle, float(x.cost), float(x.coverage)] for x in comparison.summaries()]
    return found


def cross_validated() -> dict[str, Any]:
    """The sets of the scikit-learn class, with a held-out part and with cross-validation."""
    from sklearn.naive_bayes import GaussianNB

    from udcp_dsl.sklearn import UtilitySetClassifier

    rng = np.random.default_rng(5)
    loss = udcp.loads(HEAD + BODIES["mixed"], folder=FILES)
    y = rng.integers(0, 8, 700)
    X = rng.normal(size=(700, 8)) + 1.2 * np.eye(8)[y]
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cv in (None, 4):
            made = UtilitySetClassifier(GaussianNB(), loss, alpha=0.2, **({} if cv is None else {"cv": cv}))
            made.fit(X[:600], np.array(loss.labels)[y[:600]])
            sets = made.predict_set(X[600:])
            found[f"cv={cv}"] = {"sets": digest(np.packbits(sets.mask, axis=1)), "labels": int(sets.mask.sum())}
    return found
