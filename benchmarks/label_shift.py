"""What `adapt` does where the mix of labels has moved: coverage and mean cost with and without, on real classifiers.

    python benchmarks/label_shift.py [--splits 7] [--quick]

Rows of source code and of medicine are resampled to another mix (each label's share times exp(s z), z normal), so that
nothing but the mix has moved; old titles of medicine are a real shift, of words as well as of the mix. The mix is
estimated on the rows that are then judged, without their truth; beside it, the ratios that were drawn are given. Splits
share rows, so that their standard errors are too small. Mean cost is also given at matched coverage: the p-value above
which labels are kept is chosen, with the truth, such that 1 - alpha of the rows are covered.

Writes benchmarks/results/label_shift.json (not with --quick). Exit status 1 if, in a row that was resampled, sets by
the true ratios cover less than 1 - alpha, or sets by estimated ones are further from 1 - alpha than those without, by
more than two standard errors and half a percent.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from writing import write

import udcp_dsl as udcp
from udcp_dsl import datasets

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "label_shift.json"
ALPHA = 0.1
ORACLES = ("lac", "price")
HOW = ("without", "adapted", "true ratios")
_TEST, _SMALL = 2000, 0.005


@dataclass(frozen=True, eq=False)
class Draw:
    """Calibration rows, rows in use, and the true shift, if only the mix has moved."""

    calibration: tuple[NDArray[Any], NDArray[Any]]
    P: NDArray[Any]
    y: NDArray[Any]
    shift: udcp.LabelShift | None


def resampled(P: Any, y: Any, K: int, n: int, strength: float, rng: np.random.Generator) -> Draw:
    """n rows to calibrate with, and others, drawn with replacement, in another mix."""
    order = rng.permutation(len(y))
    own, rest = order[:n], order[n:]
    ratios = np.exp(strength * rng.normal(size=K))
    weights = ratios[y[rest]]
    used = rng.choice(rest, size=_TEST, p=weights / weights.sum())
    old = (np.bincount(y, minlength=K) + 0.5) / (len(y) + 0.5 * K)
    new = old * ratios
    return Draw((P[own], y[own]), P[used], y[used], udcp.LabelShift(old, new / new.sum()))


def old_titles(rng: np.random.Generator) -> Draw:
    data = datasets.medicine()
    own, used = rng.permutation(len(data.y))[:4000], rng.permutation(len(data.shifted_y))[:_TEST]
    return Draw((data.probs[own], data.y[own]), data.shifted_probs[used], data.shifted_y[used], None)


def cases(quick: bool) -> dict[str, tuple[udcp.Loss, Callable[[np.random.Generator], Draw]]]:
    code, parsers = datasets.source_code(), udcp.load(ROOT / "specs/code/languages.loss", loss="parsers")
    found: dict[str, tuple[udcp.Loss, Callable[[np.random.Generator], Draw]]] = {
        f"source code, s = {s:g}": (parsers, lambda rng, s=s: resampled(code.probs, code.y, parsers.K, 2000, s, rng))
        for s in ((1.5,) if quick else (0.0, 0.75, 1.5))
    }
    if not quick:
        terms, blocks = datasets.medicine(), udcp.load(ROOT / "specs/medicine/blocks.loss", loss="departments")
        for s in (0.0, 1.5):
            found[f"medicine, s = {s:g}"] = (
                blocks,
                lambda rng, s=s: resampled(terms.probs, terms.y, blocks.K, 4000, s, rng),
            )
        found["medicine, old titles"] = (blocks, old_titles)
    return found


def judge(loss: udcp.Loss, oracle: str, draw: Draw, seed: int) -> dict[str, list[float]]:
    """Coverage, mean cost, and mean cost at matched coverage, of each way."""
    without = udcp.SetPredictor(loss, oracle, alpha=ALPHA, seed=seed).calibrate(*draw.calibration)
    ways = {"without": without, "adapted": without.adapt(draw.P, calibration=draw.calibration)}
    if draw.shift is not None:
        ways["true ratios"] = without.adapt(draw.shift, calibration=draw.calibration)
    found, each = {}, np.arange(len(draw.y))
    for how, predictor in ways.items():
        mask, values = predictor.predict_set(draw.P).mask, predictor.p_values(draw.P)
        cut = np.sort(values[each, draw.y])[int(ALPHA * len(each))]
        found[how] = [mask[each, draw.y].mean(), loss.batch(mask).mean(), loss.batch(values >= cut).mean()]
    return found


def measured(name: str, oracle: str, runs: list[dict[str, list[float]]]) -> dict[str, Any]:
    row: dict[str, Any] = {"case": name, "oracle": oracle, "splits": len(runs)}
    for how in HOW:
        if how in runs[0]:
            values = np.array([run[how] for run in runs], dtype=np.float64)
            error = values.std(axis=0, ddof=1) / len(runs) ** 0.5
            row[how] = {
                key: {"mean": float(values[:, i].mean()), "error": float(error[i])}
                for i, key in enumerate(("coverage", "cost", "matched"))
            }
            row[how]["off"] = float(np.abs(values[:, 0] - (1 - ALPHA)).mean())
            row[how]["lowest"] = float(values[:, 0].min())
    return row


def faults(row: dict[str, Any]) -> list[str]:
    if "true ratios" not in row:
        return []
    found, true = [], row["true ratios"]["coverage"]
    if true["mean"] < 1 - ALPHA - 2 * true["error"] - _SMALL:
        found.append(f"{row['case']}, {row['oracle']}: true ratios cover {true['mean']:.3f}")
    off = row["adapted"]["off"] - row["without"]["off"]
    if off > 2 * row["adapted"]["coverage"]["error"] + _SMALL:
        found.append(f"{row['case']}, {row['oracle']}: adapted is further from {1 - ALPHA:g} by {off:.3f}")
    return found


def shown(rows: list[dict[str, Any]]) -> Table:
    table = Table("rows", "oracle", "", "coverage", "lowest", "off by", "mean cost", "at matched coverage")
    for row in rows:
        for how in HOW:
            if how in row:
                own = row[how]
                texts = [f"{own[key]['mean']:.3f} ± {own[key]['error']:.3f}" for key in ("coverage", "cost", "matched")]
                first = (row["case"], row["oracle"]) if how == HOW[0] else ("", "")
                table.add_row(*first, how, texts[0], f"{own['lowest']:.3f}", f"{own['off']:.3f}", *texts[1:])
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="one case and four splits; writes nothing")
    options = parser.parse_args()
    splits, start, rows = 4 if options.quick else options.splits, time.perf_counter(), []
    for name, (loss, draw) in cases(options.quick).items():
        drawn = [draw(np.random.default_rng([seed, 7])) for seed in range(splits)]
        for oracle in ORACLES:
            rows.append(measured(name, oracle, [judge(loss, oracle, own, i) for i, own in enumerate(drawn)]))
    console = Console(width=120)
    console.print(shown(rows))
    found = [fault for row in rows for fault in faults(row)]
    console.print(*found, f"{time.perf_counter() - start:.0f} s", sep="\n")
    if not options.quick:
        write(RESULTS, json.dumps({"alpha": ALPHA, "rows": rows}, indent=1) + "\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
