"""What every oracle's sets cost on the classifier of languages: the table and the figure of docs/benchmarks.md.

    python benchmarks/languages.py [--rows 30000] [--splits 10] [--again]

Both kinds of probabilities (normalised: underconfident; raw: overconfident), both losses, alpha 0.1 and 0.05, ten
splits of 50-25-25, p repaired as by default. Writes benchmarks/results/languages.json,
docs/figures/languages.svg, and the table into docs/benchmarks.md. Exit status 1 if `price` is not at least 15 percent
below the best of the others, each by the mass before a label.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_dsl.datasets import languages
from udcp_dsl.datasets.kept_rows import language_losses
from udcp_dsl.report.drawing import rendered
from udcp_dsl.report.figures import figures_over_alpha

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "languages.json"
FIGURE = ROOT / "docs" / "figures" / "languages.svg"
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- languages: made by benchmarks/languages.py -->", "<!-- end of languages -->"
ORACLES = ("base", "lac", "penalized", "greedy", "price")
ALPHAS = ("0.1", "0.05")
LEAST_SAVING = 0.15


def measured(rows: int, splits: int) -> dict[str, Any]:
    data = languages(rows=rows)
    found = []
    for kind in ("normalised", "raw"):
        probs = data.probs_normalised if kind == "normalised" else data.probs_raw
        comparison = udcp.compare(language_losses(), probs, data.y, alphas=list(ALPHAS), oracles=ORACLES, splits=splits)
        if kind == "normalised":
            _draw(comparison)
        for summary in comparison.summaries():
            found.append(
                {
                    "probabilities": kind,
                    "loss": summary.loss,
                    "alpha": str(float(summary.alpha)),
                    "oracle": summary.oracle,
                    "cost": round(summary.cost_mean, 4),
                    "coverage": round(summary.coverage, 4),
                    "interval": [round(end, 4) for end in summary.coverage_interval],
                }
            )
    return {"rows": len(data.y), "splits": splits, "accuracy": round(comparison.accuracy, 3), "results": found}


def _draw(comparison: udcp.Comparison) -> None:
    (curves,) = figures_over_alpha(comparison, "branches")
    FIGURE.parent.mkdir(exist_ok=True)
    FIGURE.write_bytes(rendered(curves, "svg")["svg"])


def cases(data: dict[str, Any]) -> list[dict[str, Any]]:
    """A case a kind of probabilities, loss and alpha: the cost of every oracle, and what `price` saves."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in data["results"]:
        case = found.setdefault((row["loss"], row["probabilities"], row["alpha"]), {"costs": {}})
        case["costs"][row["oracle"]] = row["cost"]
        if row["oracle"] == "price":
            case["coverage"] = row["coverage"]
    rows = []
    for (loss, kind, alpha), case in found.items():
        best = min(cost for oracle, cost in case["costs"].items() if oracle != "price")
        saving = 1 - case["costs"]["price"] / best
        rows.append({"loss": loss, "probabilities": kind, "alpha": alpha, **case, "saving": saving})
    return rows


def table(data: dict[str, Any]) -> str:
    lines = [
        f"| loss, probabilities, alpha | {' | '.join(f'`{oracle}`' for oracle in ORACLES)} | saved | coverage |",
        "|---|" + "---|" * (len(ORACLES) + 2),
    ]
    for case in cases(data):
        costs = " | ".join(f"{case['costs'][oracle]:.2f}" for oracle in ORACLES)
        name = f"{case['loss']}, {case['probabilities']}, {case['alpha']}"
        lines.append(f"| {name} | {costs} | {case['saving']:.0%} | {case['coverage']:.3f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--again", action="store_true", help="table from the results that are there")
    options = parser.parse_args()
    if not options.again:
        write(RESULTS, json.dumps(measured(options.rows, options.splits), indent=1) + "\n")
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, table(data)))
    console = Console()
    missed = [case for case in cases(data) if case["saving"] < LEAST_SAVING]
    console.print(table(data))
    for case in missed:
        name = f"{case['loss']}, {case['probabilities']}, alpha {case['alpha']}"
        console.print(f"{name}: saves {case['saving']:.0%}, less than {LEAST_SAVING:.0%}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
