"""What scoring by the mass before a label, through it, or between by a draw comes to: the tables of docs/mass.md.

    python benchmarks/mass.py [--rows 4000]

The repository's own classifiers, each at a temperature fitted on rows of its own and not repaired beyond it; as many
rows to calibrate on as to predict, alpha 0.1. Writes benchmarks/results/mass.json and the tables. Exit status 1 if
`greedy` by the mass before does not cost at most half of what it costs by the mass through a label (classifiers of a
hundred labels and more), or if another oracle's sets cost less than those of `price` by more than two standard errors.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_dsl import Loss, datasets
from udcp_dsl.datasets.kept_rows import digit_losses, language_losses
from udcp_dsl.torch import fit_temperature

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "mass.json"
PAGE = ROOT / "docs" / "mass.md"
ALPHA = 0.1
MANY = 100  # labels; with fewer a set cannot be many times too large
SHOWN = {
    "`base` through": ("base", {"mass": "through"}),
    "`base`": ("base", {}),
    "`base` random": ("base", {"mass": "random"}),
    "`greedy` through": ("greedy", {"mass": "through"}),
    "`greedy`": ("greedy", {}),
    "`greedy` random": ("greedy", {"mass": "random"}),
    "`penalized` through": ("penalized", {"mass": "through"}),
    "`penalized`": ("penalized", {}),
    "`raps` random": ("raps", {"mass": "random"}),
    "`lac`": ("lac", {}),
    "`price`": ("price", {}),
}

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Classifier:
    """Probabilities and true labels of rows that it was not trained on, and losses of its labels."""

    name: str
    probs: Array
    y: Array
    losses: tuple[Loss, ...]


def classifiers(rows: int) -> Iterator[Classifier]:
    data = datasets.languages(rows=30_000)
    some = np.random.default_rng(0).permutation(len(data.y))[: 2 * rows + 1000]
    yield Classifier("languages, normalised", data.probs_normalised[some], data.y[some], language_losses())
    yield Classifier("languages, raw", data.probs_raw[some], data.y[some], language_losses())
    network = datasets.texts_through_torch(datasets.languages(rows=2 * rows + 1000))
    yield Classifier("languages, network", network.probs, network.y, language_losses())
    numbers = datasets.digits()
    yield Classifier("digits", numbers.probs, numbers.y, digit_losses())


def measured(rows: int) -> Iterator[dict[str, Any]]:
    for classifier in classifiers(rows):
        fit = len(classifier.y) // 9
        temperature, logits = _temperature(classifier, fit)
        half = fit + (len(classifier.y) - fit) // 2
        P, y = _softmax(logits / temperature), classifier.y
        for loss in classifier.losses:
            for shown, (oracle, options) in SHOWN.items():
                predictor = udcp.SetPredictor(loss, oracle, options=dict(options), alpha=ALPHA, repair=None)
                report = udcp.evaluate(predictor.calibrate(P[fit:half], y[fit:half]), P[half:], y[half:])
                costs = predictor.predict_set(P[half:]).costs
                yield {
                    "classifier": classifier.name,
                    "loss": loss.name,
                    "K": loss.K,
                    "temperature": round(temperature, 3),
                    "rows": [half - fit, len(y) - half],
                    "oracle": shown,
                    "cost": float(np.mean(costs)),
                    "error": float(np.std(costs, ddof=1) / math.sqrt(len(costs))),
                    "size": report.mean_size,
                    "empty": report.empty / report.n,
                    "coverage": report.coverage,
                    "quarters": [stratum.coverage for stratum in report.by_difficulty],
                }


def _temperature(classifier: Classifier, fit: int) -> tuple[float, Array]:
    logits = np.log(np.maximum(classifier.probs.astype(np.float64), 1e-300))
    return float(fit_temperature(logits[:fit], classifier.y[:fit])), logits


def _softmax(logits: Array) -> Array:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def cases(results: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """By classifier and loss, what each oracle came to."""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in results:
        found.setdefault((row["classifier"], row["loss"]), {})[row["oracle"]] = row
    return found


def faults(results: list[dict[str, Any]]) -> list[str]:
    found = []
    for (classifier, loss), by in cases(results).items():
        name = f"{classifier}, {loss}"
        half = by["`greedy` through"]["cost"] / 2
        if by["`price`"]["K"] >= MANY and by["`greedy`"]["cost"] > half:
            found.append(f"{name}: greedy costs {by['`greedy`']['cost']:.3f}, more than {half:.3f}, half of through")
        price = by["`price`"]
        for oracle, row in by.items():
            slack = 2 * math.hypot(price["error"], row["error"])
            if row["coverage"] >= price["coverage"] and row["cost"] < price["cost"] - slack:
                found.append(f"{name}: {oracle} costs {row['cost']:.3f}, price {price['cost']:.3f}")
    return found


def costs_table(results: list[dict[str, Any]]) -> str:
    shown = [
        "`base`",
        "`greedy`",
        "`penalized`",
        "`base` random",
        "`greedy` random",
        "`raps` random",
        "`lac`",
        "`price`",
    ]
    lines = [["classifier, loss", *shown], ["---"] * (len(shown) + 1)]
    for (classifier, loss), by in cases(results).items():
        cells = []
        for oracle in shown:
            through = by.get(f"{oracle} through")
            was = "" if through is None else f"{through['cost']:.2f} -> "
            cells.append(f"{was}{by[oracle]['cost']:.2f}")
        lines.append([f"{classifier}, {loss}", *cells])
    return _markdown(lines)


def coverage_table(results: list[dict[str, Any]]) -> str:
    heads = ["classifier, loss", "oracle", "size", "empty", "coverage", "hardest quarter", "second", "third", "easiest"]
    lines = [heads, ["---"] * len(heads)]
    for (classifier, loss), by in cases(results).items():
        for oracle, row in by.items():
            quarters = [f"{coverage:.3f}" for coverage in row["quarters"]]
            start = [f"{classifier}, {loss}", oracle, f"{row['size']:.2f}", f"{row['empty']:.1%}"]
            lines.append([*start, f"{row['coverage']:.3f}", *quarters])
    return _markdown(lines)


def _markdown(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    options = parser.parse_args()
    results = list(measured(options.rows))
    write(RESULTS, json.dumps(results, indent=1) + "\n")
    page = PAGE.read_text(encoding="utf-8")
    for name, table in (("costs", costs_table(results)), ("coverage", coverage_table(results))):
        page = between_markers(page, f"<!-- {name}: made by benchmarks/mass.py -->", f"<!-- end of {name} -->", table)
    write(PAGE, page)
    print(costs_table(results))
    for fault in faults(results):
        print(fault)
    return 1 if faults(results) else 0


if __name__ == "__main__":
    sys.exit(main())
