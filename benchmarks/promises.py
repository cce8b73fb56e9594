"""What each oracle costs under each guarantee, on the real classifiers of the repository, and which rows are covered.

    python benchmarks/promises.py [--rows 12000] [--splits 5]

Languages (normalised: underconfident; raw: overconfident), digits, source code and icons, p repaired as by default:
coverage on average, by difficulty, with confidence 0.95, and a bound on harm; each on random halves. Mean cost with its
standard error over the splits, coverage in each quarter of the rows by their highest probability, the hardest first.
Also the time of conditional="difficulty" beside that of none. Writes benchmarks/results/promises.json, the table into
docs/guarantees.md and docs/figures/promises.svg. Exit status 1 if `price` is not lowest, or within two standard errors
of it, in a row.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_dsl.datasets import digits, icons, languages, source_code
from udcp_dsl.datasets.kept_rows import digit_losses, language_losses

ROOT = Path(__file__).parent.parent
SPECS = ROOT / "specs"
RESULTS = ROOT / "benchmarks" / "results" / "promises.json"
FIGURE = ROOT / "docs" / "figures" / "promises.svg"
PAGE = ROOT / "docs" / "guarantees.md"
BEGIN, END = "<!-- promises: made by benchmarks/promises.py -->", "<!-- end of promises -->"
ORACLES = ("base", "lac", "greedy", "penalized", "price")
HARM = 5  # what it costs to miss one of the rarest fifth of the labels; any other costs 1
PROMISES: dict[str, dict[str, Any]] = {
    "marginal": {"alpha": 0.1},
    "difficulty": {"alpha": 0.1, "conditional": "difficulty"},
    "confidence": {"alpha": 0.1, "confidence": 0.95},
    "risk": {"alpha": 0.2, "risk": "harm"},
}
TIMED = ("lac", "base", "price")


def with_harm(loss: udcp.Loss, y: np.ndarray) -> udcp.Loss:
    """The same loss in a spec that says what it costs to miss a label."""
    counts = np.bincount(y, minlength=loss.K)
    rare = np.argsort(counts, kind="stable")[: loss.K // 5]
    listed = ", ".join(f"{json.dumps(loss.labels[i])}: {HARM}" for i in sorted(rare.tolist()))
    text = f"{loss.source.text}\ncosts harm {{ {listed}, default: 1 }}\n"
    return udcp.loads(text, labels=loss.labels, loss=loss.name, files=loss.files, name=loss.source.name)


def classifiers(rows: int) -> Iterator[tuple[str, udcp.Loss, np.ndarray, np.ndarray]]:
    data = languages(rows=rows)
    for kind, P in (("normalised", data.probs_normalised), ("raw", data.probs_raw)):
        for loss in language_losses():
            yield f"languages, {kind}", with_harm(loss, data.y), P, data.y
    held = digits()
    for loss in digit_losses():
        yield "digits", with_harm(loss, held.y), held.probs, held.y
    snippets, drawings = source_code(), icons()
    yield "source code", with_harm(udcp.load(SPECS / "code" / "languages.loss"), snippets.y), snippets.probs, snippets.y
    yield "icons", with_harm(udcp.load(SPECS / "icons" / "icons.loss"), drawings.y), drawings.probs, drawings.y


def measured(rows: int, splits: int) -> dict[str, Any]:
    found = []
    for name, loss, P, y in classifiers(rows):
        names = np.array(loss.labels)[y]
        for promise, settings in PROMISES.items():
            for oracle in ORACLES:
                runs = [one_split(loss, oracle, settings, P, y, names, seed) for seed in range(splits)]
                costs = np.array([run["cost"] for run in runs])
                found.append(
                    {
                        "classifier": name,
                        "loss": loss.name,
                        "promise": promise,
                        "oracle": oracle,
                        "costs": [round(float(c), 5) for c in costs],
                        "cost": round(float(costs.mean()), 4),
                        "coverage": round(float(np.mean([run["coverage"] for run in runs])), 4),
                        "harm": round(float(np.mean([run["harm"] for run in runs])), 4),
                        "quarters": np.mean([run["quarters"] for run in runs], axis=0).round(4).tolist(),
                    }
                )
                Console(stderr=True).print(name, loss.name, promise, oracle, found[-1]["cost"], found[-1]["quarters"])
    return {"rows": rows, "splits": splits, "results": found, "times": times()}


def one_split(
    loss: udcp.Loss, oracle: str, settings: dict[str, Any], P: np.ndarray, y: np.ndarray, names: np.ndarray, seed: int
) -> dict[str, Any]:
    half, other = np.array_split(np.random.default_rng(seed).permutation(len(P)), 2)
    predictor = udcp.SetPredictor(loss, oracle, seed=seed, **settings)
    sets = predictor.calibrate(P[half], names[half]).predict_set(P[other])
    covered = sets.mask[np.arange(len(other)), y[other]]
    order = np.argsort(predictor.repaired(P[other]).max(axis=1), kind="stable")
    (harm,) = [costs.values for costs in loss.costs if costs.name == "harm"]
    return {
        "cost": sets.costs.mean(),
        "coverage": covered.mean(),
        "harm": np.where(covered, 0.0, harm[y[other]]).mean(),
        "quarters": [covered[quarter].mean() for quarter in np.array_split(order, 4)],
    }


def times(n: int = 50_000, K: int = 100) -> list[dict[str, Any]]:
    """Calibrating and predicting with conditional="difficulty", as a multiple of the time without.

    The median of turns, in each of which one is timed after the other: a machine's speed changes from second to second.
    Without the repair of p, whose time is the same in both.
    """
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(K, 0.3), 2 * n).astype(np.float32)
    y = np.argmax(P, axis=1)
    loss = udcp.loads("loss l = size", labels=[f"l{i}" for i in range(K)])
    found = []
    for oracle in TIMED:
        ratios = []
        for _ in range(60):
            taken = []
            for conditional in (None, "difficulty"):
                began = time.perf_counter()
                predictor = udcp.SetPredictor(loss, oracle, conditional=conditional, repair=None)  # type: ignore[arg-type]
                predictor.calibrate(P[:n], y[:n]).predict_set(P[n:])
                taken.append(time.perf_counter() - began)
            ratios.append(taken[1] / taken[0])
        found.append({"oracle": oracle, "ratio": round(float(np.median(ratios)), 3)})
    return found


def cases(data: dict[str, Any]) -> list[dict[str, Any]]:
    """A case a classifier, loss and promise; `price` holds if the best other is not below it by two standard errors."""
    grouped: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in data["results"]:
        grouped.setdefault((row["classifier"], row["loss"], row["promise"]), {})[row["oracle"]] = row
    found = []
    for (classifier, loss, promise), rows in grouped.items():
        price = np.array(rows["price"]["costs"])
        others = {name: np.array(row["costs"]) for name, row in rows.items() if name != "price"}
        best = min(others, key=lambda name: float(others[name].mean()))
        lead = price - others[best]
        error = float(lead.std(ddof=1) / np.sqrt(len(lead))) if len(lead) > 1 else 0.0
        found.append(
            {
                "classifier": classifier,
                "loss": loss,
                "promise": promise,
                "rows": rows,
                "best": best,
                "holds": float(lead.mean()) <= 2 * error,
            }
        )
    return found


def table(data: dict[str, Any]) -> str:
    names = " | ".join(f"`{name}`" for name in ORACLES)
    lines = [
        f"| classifier, loss | guarantee | {names} | covered by `price`, by quarter |",
        "|---" * (len(ORACLES) + 3) + "|",
    ]
    for case in cases(data):
        costs = [f"{case['rows'][name]['cost']:.3f}" for name in ORACLES]
        quarters = ", ".join(f"{q:.3f}" for q in case["rows"]["price"]["quarters"])
        lines.append(
            f"| {case['classifier']}, `{case['loss']}` | {case['promise']} | {' | '.join(costs)} | {quarters} |"
        )
    ratios = ", ".join(f"`{row['oracle']}` {row['ratio']:.2f}" for row in data["times"])
    lines.append(
        f"\nCosts are means over {data['splits']} random halves; languages have {data['rows']:,} rows. With "
        f'`conditional="difficulty"`, calibration and prediction take longer by these factors: {ratios}.'
    )
    return "\n".join(lines)


def draw(data: dict[str, Any]) -> None:
    """Coverage in each quarter under the marginal promise and by difficulty, for `price`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, promise in zip(axes, ("marginal", "difficulty"), strict=True):
        for case in cases(data):
            if case["promise"] == promise:
                label = f"{case['classifier']}, {case['loss']}"
                ax.plot(range(1, 5), case["rows"]["price"]["quarters"], marker="o", markersize=3, label=label)
        ax.axhline(0.9, color="0.5", linewidth=0.8)
        ax.set(title=promise, xticks=range(1, 5), xlabel="quarter by highest p, hardest first")
    axes[0].set_ylabel("covered")
    axes[0].legend(fontsize=6)
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--again", action="store_true", help="table and figure from the results that are there")
    parser.add_argument("--times", action="store_true", help="as --again, but the times, which are measured anew")
    arguments = parser.parse_args()
    if arguments.times:
        data = json.loads(RESULTS.read_text(encoding="utf-8")) | {"times": times()}
        RESULTS.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    elif not arguments.again:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = measured(arguments.rows, arguments.splits)
        RESULTS.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    draw(data)
    write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, table(data)))
    lost = [case for case in cases(data) if not case["holds"]]
    for case in lost:
        Console().print(f"{case['classifier']}, {case['loss']}, {case['promise']}: {case['best']} is below price")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
