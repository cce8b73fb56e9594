"""The picture and the table at the top of the README: one real row with and without a cost, and mean costs.

    python benchmarks/idea.py [--splits 10] [--again]

Three real classifiers with the losses of specs/, alpha 0.1, sets of `base` (APS), `lac` (LAC) and `price`, each in its
default form. Writes benchmarks/results/idea.json, docs/figures/idea.svg and the table in README.md; the figures for
languages are those of benchmarks/languages.py. Rows are split 50-25-25 at random, as `udcp compare` does.
"""

from __future__ import annotations

import argparse
import json
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from writing import between_markers, write

import udcp_dsl as udcp

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "idea.json"
LANGUAGES = ROOT / "benchmarks" / "results" / "languages.json"
FIGURE = ROOT / "docs" / "figures" / "idea.svg"
README = ROOT / "README.md"
BEGIN, END = "<!-- idea: made by benchmarks/idea.py -->", "<!-- end of idea -->"
ORACLES = ("base", "lac", "price")
CALIBRATION = 2500  # rows of the README's example: the first 2,500 calibrate
ROW = 2051  # and this one of the others is drawn
SPECS = {"code": "specs/code/languages.loss", "icons": "specs/icons/icons.loss"}
# What a set costs, in the words of the table.
CASES = {
    "code": ("programming language of a snippet, 54 labels", "parsers to start, people to ask"),
    "icons": ("name of an icon, 320 labels", "meanings to try, people to ask"),
    "languages": ("language of a short text, 140 labels", "branches of the language tree"),
}


def measured(splits: int) -> dict[str, Any]:
    found: dict[str, Any] = {"splits": splits, "alpha": 0.1, "results": {}}
    for name, data in (("code", udcp.datasets.source_code()), ("icons", udcp.datasets.icons())):
        loss = udcp.load(ROOT / SPECS[name])
        comparison = udcp.compare(
            loss, data.probs, data.y, alphas=["0.1"], oracles=ORACLES, splits=splits, class_names=list(data.labels)
        )
        found["results"][name] = {
            summary.oracle: {"cost": round(summary.cost_mean, 4), "coverage": round(summary.coverage, 4)}
            for summary in comparison.summaries()
        }
    found["results"]["languages"] = {
        row["oracle"]: {"cost": row["cost"], "coverage": row["coverage"]}
        for row in json.loads(LANGUAGES.read_text(encoding="utf-8"))["results"]
        if (row["loss"], row["probabilities"], row["alpha"]) == ("branches", "normalised", "0.1")
        and row["oracle"] in ORACLES
    }
    return found | {"row": one_row()}


def one_row() -> dict[str, Any]:
    """The row of the picture: its likeliest labels, and its set by `lac` and by `price`."""
    loss, data = udcp.load(ROOT / SPECS["code"]), udcp.datasets.source_code()
    p = data.probs[CALIBRATION + ROW]
    likely = [(data.labels[i], round(float(p[i]), 2)) for i in np.argsort(-p)[:5]]
    found: dict[str, Any] = {"likely": likely, "truth": data.labels[data.y[CALIBRATION + ROW]], "sets": {}}
    for oracle in ("lac", "price"):
        predictor = udcp.SetPredictor(loss, oracle=oracle, alpha=0.1)
        predictor.calibrate(data.probs[:CALIBRATION], data.y[:CALIBRATION])
        labels = predictor.predict_set(data.probs[CALIBRATION:]).labels[ROW]
        terms = {text: round(value, 4) for text, value in loss.terms(set(labels)).items()}
        found["sets"][oracle] = {"labels": sorted(labels, key=[name for name, _ in likely].index), "terms": terms}
    return found


def table(data: dict[str, Any]) -> str:
    lines = [
        "| what is classified | what a set costs | `base` (APS) | `lac` (LAC) | `price` | saved |",
        "|---|---|---|---|---|---|",
    ]
    for name, (what, cost) in CASES.items():
        costs = {oracle: data["results"][name][oracle]["cost"] for oracle in ORACLES}
        saved = 1 - costs["price"] / min(costs["base"], costs["lac"])
        shown = " | ".join(f"{costs[oracle]:.2f}" for oracle in ORACLES)
        lines.append(f"| {what} | {cost} | {shown} | {saved:.0%} |")
    return "\n".join(lines)


STYLE = """
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 15px }
  text { fill: #1c2024 }
  .head { font-weight: 600; font-size: 16px } .small { font-size: 13px; fill: #59626c }
  .code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 13px }
  .card { fill: #ffffff; stroke: #dfe3e8 } .bar { fill: #9aa3ad } .track { fill: #eef1f4 }
  .arrow { stroke: #59626c; fill: none }
  .tip { fill: #59626c } .out { fill: #7a4fb5 } .in { fill: #0b62a8 } .chip { fill: #eef1f4 } .odd { fill: #ffe1d3 }
  .pay { font-weight: 600; font-size: 20px }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ed } .small { fill: #a2abb5 } .card { fill: #14171a; stroke: #333a42 } .bar { fill: #6f7984 }
    .track { fill: #22272d } .arrow { stroke: #a2abb5 } .tip { fill: #a2abb5 }
    .out { fill: #b595e8 } .in { fill: #5aa9e6 }
    .chip { fill: #262c33 } .odd { fill: #5a2f1c }
  }
"""


def drawn(row: dict[str, Any]) -> str:
    """The picture as SVG text, on a card of its own, in light or dark by the reader's setting."""
    lac, price = row["sets"]["lac"], row["sets"]["price"]
    likely = ", ".join(f"{name} {p:.2f}" for name, p in row["likely"])
    said = (
        f"A classifier's probabilities for one snippet ({likely}), a cost written as text,"
        f" and two prediction sets: without the cost {', '.join(lac['labels'])}, which costs"
        f" {sum(lac['terms'].values()):.1f}; with it {', '.join(price['labels'])}, which costs"
        f" {sum(price['terms'].values()):.1f}."
    )
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 300" role="img" aria-labelledby="t">',
        f'<title id="t">{escape(said)}</title>',
        f"<style>{STYLE}</style>",
        '<rect class="card" x="1" y="1" width="958" height="298" rx="12"/>',
        _text(28, 40, "1. Probabilities", "head"),
        *_bars(row["likely"]),
        _text(28, 262, f"The truth: {row['truth']}", "small"),
        _arrow(268, 140),
        _text(318, 40, "2. Your cost of a set", "head"),
        *(_text(318, 84 + 28 * i, line, "code") for i, line in enumerate(_COST)),
        _text(318, 232, "Is it code or only data?", "small"),
        _text(318, 250, "If the set leaves that open,", "small"),
        _text(318, 268, "a person has to look: 3 more.", "small"),
        _arrow(600, 140),
        _text(650, 40, "3. A set that covers", "head"),
        *_set(650, 72, "without your cost (LAC)", "out", lac, {"sh"}),
        *_set(650, 184, "with your cost (price)", "in", price, set()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


_COST = ("loss languages =", "    count(code.family)", "  + 0.2 * size", "  + 3 * open_question")


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    shown = escape(words).replace("  ", "\u00a0\u00a0")
    return f'<text x="{x}" y="{y}" class="{kind}">{shown}</text>'


def _bars(likely: list[tuple[str, float]]) -> list[str]:
    parts = []
    for i, (name, p) in enumerate(likely):
        y = 72 + 34 * i
        parts += [
            _text(28, y + 15, name),
            f'<rect class="track" x="82" y="{y}" width="120" height="20" rx="4"/>',
            f'<rect class="bar" x="82" y="{y}" width="{max(3.0, 120 * p):.1f}" height="20" rx="4"/>',
            _text(210, y + 15, f"{p:.2f}"),
        ]
    return parts


def _arrow(x: float, y: float) -> str:
    return (
        f'<path class="arrow" stroke-width="2" d="M{x} {y} h24"/>'
        f'<path class="tip" d="M{x + 32} {y} l-10 -6 v12 z"/>'
    )  # fmt: skip


def _set(x: float, y: float, name: str, kind: str, found: dict[str, Any], odd: set[str]) -> list[str]:
    parts = [_text(x, y + 12, name, kind)]
    at = x
    for label in found["labels"]:
        width = 22 + 9 * len(label)
        shape = "odd" if label in odd else "chip"
        parts.append(f'<rect class="{shape}" x="{at}" y="{y + 24}" width="{width}" height="30" rx="15"/>')
        parts.append(_text(at + 11, y + 44, label))
        at += width + 8
    families, size, person = found["terms"].values()
    parts.append(
        f'<text x="930" y="{y + 46}" text-anchor="end" class="pay {kind}">{families + size + person:.1f}</text>'
    )
    told = f"{families:.0f} {'parser' if families == 1 else 'parsers'} + {size:.1f}" + (
        f" + {person:.0f} for a person" if person else ""
    )
    parts.append(_text(x, y + 76, told, "small"))
    return parts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10, help="Number of random splits.")
    parser.add_argument("--again", action="store_true", help="Redraw the picture and the table from stored results.")
    options = parser.parse_args()
    if not options.again:
        write(RESULTS, json.dumps(measured(options.splits), indent=1) + "\n")
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    write(FIGURE, drawn(data["row"]))
    write(README, between_markers(README.read_text(encoding="utf-8"), BEGIN, END, table(data)))
    Console().print(table(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
