"""The paper's experiments: what is measured, as plain data.

Four of them read one comparison (`udcp_dsl.compare`, splits of 50-25-25 as in the paper); `lambdas` fixes
lambda; `accuracy` and `bayes` train small networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from typing import Any

import losses
import numpy as np
from numpy.typing import NDArray
from problems import Problem, language_tree

import udcp_dsl as udcp
from udcp_dsl import Comparison, Loss, datasets
from udcp_dsl.measure.compare import FRACTIONS, compare, deal
from udcp_dsl.measure.comparison import Run, median_of_means
from udcp_dsl.measure.evaluate import SIZE_BINS
from udcp_dsl.predict.calibrate import DEFAULT_GRID, threshold

ALPHA = Fraction(1, 10)
ABOUT_TEXTS = "hashed n-grams through torch"
THROUGH = {"mass": "through"}  # the paper's scores; the names alone are the default, by the mass before a label
ORACLES: dict[str, tuple[str, dict[str, object]]] = {
    "base through": ("base", THROUGH),
    "penalized through": ("penalized", THROUGH),
    "greedy through": ("greedy", THROUGH),
    "ratio": ("ratio", {}),
    "base": ("base", {}),
    "penalized": ("penalized", {}),
    "greedy": ("greedy", {}),
    "price": ("price", {}),
}
STOPS = (0.3, 0.5, 0.65)  # accuracies at which training stops
ROWS, FEW = 6000, 400  # of strings; few for a quick run
MC_SAMPLES = 30
MEMBERS = 3

Rows = list[dict[str, Any]]


def compared(problem: Problem, splits: int, wanted: Sequence[str] = losses.NAMES) -> Comparison:
    """Every oracle of the paper and ours, on the problem's losses."""
    chosen = [loss for loss in losses.paper_losses(problem.tree, problem.blocks) if loss.name in wanted]
    names = np.array(problem.tree.labels, dtype=object)[problem.y]
    return compare(chosen, problem.probs, names, alphas=[ALPHA], oracles=ORACLES, splits=splits)


def tables(comparison: Comparison) -> Rows:
    """Tables 1 to 3: coverage, and the cost by the paper's own measure, the loss's first term."""
    return [
        {
            "loss": loss,
            "oracle": oracle,
            "coverage": float(np.mean([run.evaluation.coverage for run in runs])),
            "coverage_sd": _sd(run.evaluation.coverage for run in runs),
            "cost": median_of_means([_paid(run) for run in runs]),
            "cost_sd": _sd(map(_paid, runs)),
            "total": median_of_means([run.evaluation.mean_cost for run in runs]),
        }
        for (loss, oracle), runs in _by_oracle(comparison)
    ]


def sizes(comparison: Comparison) -> Rows:
    """How many labels the sets have: mean, quantiles (the median over the splits), and the share of empty ones."""
    return [
        {
            "loss": loss,
            "oracle": oracle,
            "mean": float(np.mean([run.evaluation.mean_size for run in runs])),
            **{
                f"q{q:g}": float(np.median([run.evaluation.size_quantiles[q] for run in runs]))
                for q in (0.05, 0.5, 0.95)
            },
            "empty": sum(run.evaluation.empty for run in runs) / sum(run.evaluation.n for run in runs),
        }
        for (loss, oracle), runs in _by_oracle(comparison)
    ]


def conditional(comparison: Comparison) -> Rows:
    """Coverage within the paper's bins of set sizes, and the share of points in each, over all splits."""
    return [
        {
            "loss": summary.loss,
            "oracle": summary.oracle,
            "bins": {name: {"coverage": c, "share": share} for name, (c, share) in summary.by_size.items()},
        }
        for summary in comparison.summaries()
    ]


def softmax(comparison: Comparison) -> Rows:
    """The mean probability that the classifier gives the true label, by set size: large sets are for hard points."""
    found = []
    for (loss, oracle), runs in _by_oracle(comparison):
        strata = [stratum for run in runs for stratum in run.evaluation.by_size]
        bins = {}
        for name in SIZE_BINS:
            held = [stratum for stratum in strata if stratum.name == name]
            if held:
                bins[name] = sum(s.n * s.mean_true_probability for s in held) / sum(s.n for s in held)
        found.append({"loss": loss, "oracle": oracle, "bins": bins})
    return found


def lambdas(problem: Problem, splits: int) -> Rows:
    """The paper's `penalized` at each lambda of the grid: what it costs on the test rows, and how it covers."""
    found = []
    for loss in losses.paper_losses(problem.tree, problem.blocks):
        for lam in DEFAULT_GRID:
            scores = udcp.make_oracle("penalized", loss, lam=lam, mass="through").scores(problem.probs)
            measured = [_judged(loss, scores, problem.y, *rows) for rows in _folds(len(problem.y), splits)]
            coverage, cost, size = np.mean(measured, axis=0).tolist()
            found.append({"loss": loss.name, "lam": lam, "coverage": coverage, "cost": cost, "size": size})
    return found


# Networks of our own ------------------------------------------------------------------------------------------------


def accuracy(splits: int, quick: bool) -> Rows:
    """The same strings through the same network, stopped earlier or later: how cost follows accuracy."""
    data = _strings(quick)
    runs: list[dict[str, Any]] = [{"stop_at": stop} for stop in STOPS] + [{"epochs": 2}]
    found = []
    for options in runs[:1] if quick else runs:
        network = datasets.texts_through_torch(data, **options)
        problem = _texts(network.probs, network.y)
        for row in tables(compared(problem, splits, losses.NAMES[1:])):
            found.append({"stopped": options.get("stop_at"), "accuracy": problem.accuracy, **row})
    return found


def bayes(splits: int, quick: bool) -> Rows:
    """Sets from a posterior taken at its word, against the same sets calibrated.

    At its word: the threshold is that at which the sets' mean mass is 1 - alpha by the posterior's own probabilities,
    for which no label is needed and nothing is guaranteed. The posteriors are one network, the mean of its passes with
    dropout on, and the mean of several networks.
    """
    from udcp_dsl.torch import mc_probabilities

    data = _strings(quick)
    epochs = 0.05 if quick else 1
    members = [datasets.texts_through_torch(data, epochs=epochs, seed=seed) for seed in range(2 if quick else MEMBERS)]
    first, samples = members[0], 3 if quick else MC_SAMPLES
    posteriors: dict[str, NDArray[np.floating[Any]]] = {
        "one network": first.probs,
        f"dropout, {samples} passes": mc_probabilities(first.model, first.batches, samples, "cpu", progress=False),
        f"{len(members)} networks": np.stack([one.probs for one in members]).mean(axis=0, dtype=np.float64),
    }
    found = []
    for name, probs in posteriors.items():
        problem = _texts(probs, first.y)
        for loss in losses.paper_losses(problem.tree, problem.blocks)[1:]:
            for oracle in ("base through", "greedy through", "base", "greedy", "price"):
                name_of, options = ORACLES[oracle]
                scores = udcp.make_oracle(name_of, loss, **options).scores(probs)
                for kind in ("at its word", "calibrated"):
                    measured = [
                        _judged(loss, scores, first.y, rows, test, probs if kind == "at its word" else None)
                        for rows, test in _folds(len(first.y), splits)
                    ]
                    coverage, cost, size = np.mean(measured, axis=0).tolist()
                    row = {"posterior": name, "accuracy": problem.accuracy, "loss": loss.name, "oracle": oracle}
                    found.append({**row, "sets": kind, "coverage": coverage, "cost": cost, "size": size})
    return found


def own_word(scores: NDArray[np.float64], probs: NDArray[np.floating[Any]]) -> float:
    """The least threshold at which the mean mass of the sets is 1 - alpha."""
    order = np.argsort(scores, axis=None)
    mass = np.cumsum(probs.ravel()[order], dtype=np.float64) / len(probs)
    place = min(int(np.searchsorted(mass, float(1 - ALPHA))), len(order) - 1)
    return float(scores.ravel()[order[place]])


def _judged(
    loss: Loss,
    scores: NDArray[np.float64],
    y: NDArray[np.int64],
    rows: NDArray[np.intp],
    test: NDArray[np.intp],
    posterior: NDArray[np.floating[Any]] | None = None,
) -> tuple[float, float, float]:
    """Coverage, cost (the first term) and size on the test rows, the threshold being from other rows."""
    tau = threshold(scores[rows, y[rows]], ALPHA) if posterior is None else own_word(scores[rows], posterior[rows])
    masks = scores[test] <= tau
    cost = next(iter(loss.terms_batch(masks).values()))
    return float(masks[np.arange(len(test)), y[test]].mean()), float(cost.mean()), float(masks.sum(axis=1).mean())


def _folds(n: int, splits: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows for the threshold and rows to judge on: those that `compare` takes."""
    return [(fold.calibration, fold.test) for fold in deal(n, FRACTIONS, 0, splits)]


def _strings(quick: bool) -> datasets.Languages:
    data = datasets.languages(rows=ROWS)
    if not quick:
        return data
    return replace(
        data,
        texts=data.texts[:FEW],
        y=data.y[:FEW],
        training_texts=data.training_texts[:4000],
        training_y=data.training_y[:4000],
    )


def _texts(probs: NDArray[Any], y: NDArray[np.int64]) -> Problem:
    return Problem("texts", ABOUT_TEXTS, language_tree(), probs, y)


def _by_oracle(comparison: Comparison) -> Iterable[tuple[tuple[str, str], list[Run]]]:
    for key, runs in groupby(comparison.runs, key=lambda run: (run.loss, run.oracle)):
        yield key, list(runs)


def _paid(run: Run) -> float:
    terms: Mapping[str, float] = run.evaluation.cost_by_term
    return next(iter(terms.values()))


def _sd(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(np.std(found, ddof=1)) if len(found) > 1 else None
