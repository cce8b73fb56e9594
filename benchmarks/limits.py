"""What limits come to on real classifiers: the table of docs/limits.md.

    python benchmarks/limits.py [--splits 5]

The repository's own classifiers and specs, each with one limit on its sets. Half of 4,000 rows calibrates, the other
half is judged; both are drawn anew for each split. Writes benchmarks/results/limits.json and the table. Exit status 1
if the mean over splits is above a limit, or coverage is off, by more than three standard errors over splits.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_dsl import datasets

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "limits.json"
PAGE = ROOT / "docs" / "limits.md"
ALPHA, ROWS = 0.1, 4000


@dataclass(frozen=True)
class Case:
    """A classifier, a loss of one of its specs, and a limit on the sets."""

    data: str
    spec: str
    loss: str
    limit: str

    def losses(self) -> tuple[udcp.Loss, udcp.Loss]:
        """Without the limit and with it."""
        file = ROOT / "specs" / self.spec
        text = file.read_text(encoding="utf-8")
        made = {"folder": file.parent, "loss": self.loss, "name": file.name}
        return udcp.loads(text, **made), udcp.loads(f"{text}\nlimit {self.limit}\n", **made)

    def rows(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        if self.data == "languages":
            found = datasets.languages()
            return found.probs_normalised, found.y
        kept = getattr(datasets, self.data)()
        return kept.probs, kept.y


CASES = (
    Case("languages", "languages/branches.loss", "branches", "slavic: any(langs.branch.Slavic) <= 0.17"),
    Case("languages", "languages/branches.loss", "branches", "long: (size >= 5) <= 0.15"),
    Case("source_code", "code/languages.loss", "parsers", "may_run: any(runs) <= 0.73"),
)


def measured(splits: int) -> Iterator[dict[str, Any]]:
    for case in CASES:
        P, y = case.rows()
        plain, limited = case.losses()
        (limit,) = limited.limits
        found: dict[str, list[float]] = {}
        for split in range(splits):
            some = np.random.default_rng(split).permutation(len(y))[:ROWS]
            fit, test = np.split(some, 2)
            for name, loss in (("without", plain), ("with", limited)):
                began = time.perf_counter()
                predictor = udcp.SetPredictor(loss, "price", alpha=ALPHA, seed=split).calibrate(P[fit], y[fit])
                seconds = time.perf_counter() - began
                masks = predictor.predict_set(P[test]).mask
                covered, inside = masks[np.arange(len(test)), y[test]], limit.inside(y[test])
                values = {
                    "mean": limit.batch(masks).mean(),
                    "cost": plain.batch(masks).mean(),
                    "coverage": covered.mean(),
                    "inside": covered[inside].mean() if inside.any() else math.nan,
                    "seconds": seconds,
                }
                if predictor.multipliers is not None:
                    (stage,) = predictor.multipliers.values()
                    values["multiplier"] = stage.effects.multipliers[0]
                for key, value in values.items():
                    found.setdefault(f"{name} {key}", []).append(float(value))
        yield {
            "classifier": case.data,
            "loss": case.loss,
            "limit": case.limit.split(":")[0],
            "text": limit.text,
            "at_most": limit.at_most,
            **{key: float(np.mean(values)) for key, values in found.items()},
            "spread": float(np.std(found["with mean"], ddof=1)),
            "coverage spread": float(np.std(found["with coverage"], ddof=1)),
            "splits": splits,
        }


def faults(results: list[dict[str, Any]]) -> list[str]:
    found = []
    for row in results:
        many = math.sqrt(row["splits"])
        if row["with mean"] - row["at_most"] > 3 * row["spread"] / many:
            found.append(f"{row['limit']}: {row['with mean']:.4f} on average, above the limit {row['at_most']:g}")
        if abs(row["with coverage"] - (1 - ALPHA)) > 3 * row["coverage spread"] / many:
            found.append(f"{row['limit']}: coverage {row['with coverage']:.4f}")
    return found


def table(results: list[dict[str, Any]]) -> str:
    heads = (
        *("classifier, loss", "limit", "mean without", "mean with", "spread", "multiplier"),
        *("cost without", "cost with", "coverage", "true labels inside", "seconds"),
    )
    lines = [list(heads), ["---"] * len(heads)]
    for row in results:
        inside = (
            "none" if math.isnan(row["with inside"]) else f"{row['without inside']:.3f} -> {row['with inside']:.3f}"
        )
        lines.append(
            [
                f"{row['classifier']}, {row['loss']}",
                f"`{row['text']} <= {row['at_most']:g}`",
                f"{row['without mean']:.3f}",
                f"{row['with mean']:.3f}",
                f"{row['spread']:.3f}",
                f"{row['with multiplier']:.3g}",
                f"{row['without cost']:.3f}",
                f"{row['with cost']:.3f}",
                f"{row['with coverage']:.3f}",
                inside,
                f"{row['with seconds']:.1f}",
            ]
        )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    results = list(measured(options.splits))
    write(RESULTS, json.dumps([{k: None if x != x else x for k, x in row.items()} for row in results], indent=1) + "\n")
    page = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- limits: made by benchmarks/limits.py -->", "<!-- end of limits -->"
    write(PAGE, between_markers(page, begin, end, table(results)))
    print(table(results))
    for fault in faults(results):
        print(fault)
    return 1 if faults(results) else 0


if __name__ == "__main__":
    sys.exit(main())
