"""What the repair of p does to the cost of each oracle: real classifiers of the repository, and six of scikit-learn.

    python benchmarks/repair.py [--quick] [--splits 10] [--only TEXT] [--again]

Mean cost at alpha 0.1 and 0.05 over random splits into calibration and test rows, by predictors with `repair="auto"`,
the default, and with `repair=None`, which calibrates with all rows; and coverage of the labels that the rows of the
repair lack. Two verdicts, by paired standard errors over the splits: (a) `price` with the repair is lowest, or equal
within two standard errors, against every oracle with and without, in all rows but at most two, none of them a forest;
(b) it is nowhere more than 3 percent above `price` without the repair by more than two standard errors. Drawn classes
have fresh rows in every split; in the other cases the splits share one pool of rows, so that their standard errors are
too small. Exit status 0 only if both verdicts hold. Writes benchmarks/results/repair.json and repair.md, and a shorter
table into docs/repair.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from repair_cases import Case, Ints, cases
from rich.console import Console
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_dsl.diagnostics import OracleError

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "repair.md"
BEGIN, END = "<!-- repair: made by benchmarks/repair.py -->", "<!-- end of repair -->"
ALPHAS = (0.1, 0.05)
ORACLES = ("price", "lac", "penalized", "base", "ratio", "greedy")
MOST_ABOVE = 0.03
MOST_LOST = 2


# What is measured -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Split:
    """Calibration and test rows of a case; a predictor deals its own rows to the repair."""

    case: Case
    seed: int
    calibration: Ints
    test: Ints


@dataclass(frozen=True, eq=False)
class Result:
    """Mean cost, whether each test row is covered, and the repair, None where none was asked for."""

    cost: float
    covered: NDArray[np.bool_]
    repair: udcp.Repair | None


def split_of(case: Case, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(len(case.y))
    if case.test is not None:  # rows of its own
        size = case.calibration + case.test
        order = np.arange(seed * size, (seed + 1) * size)
        if order[-1] >= len(case.y):
            raise SystemExit(f"{case.name} has rows for {len(case.y) // size} splits")
    return Split(case, seed, order[: case.calibration], order[case.calibration :])


def result_of(split: Split, oracle: str, alpha: float, *, repair: bool) -> Result:
    """A predictor as users get it, or with `repair=None`, on the test rows. The one place where a predictor is made."""
    P, y, asked = split.case.P, split.case.y, "auto" if repair else None
    predictor = udcp.SetPredictor(split.case.loss, oracle, alpha=alpha, repair=asked, seed=split.seed)  # type: ignore[arg-type]
    sets = predictor.calibrate(P[split.calibration], y[split.calibration]).predict_set(P[split.test])
    covered = sets.mask[np.arange(len(split.test)), y[split.test]]
    return Result(float(sets.costs.mean()), covered, predictor.repair)


def measure(case: Case, splits: int) -> Iterator[dict[str, Any]]:
    """One row per alpha."""
    made = [split_of(case, seed) for seed in range(splits)]
    for alpha in ALPHAS:
        found: dict[str, list[Result]] = {}
        for oracle in ORACLES:
            for repair in (True, False):
                try:
                    found[name_of(oracle, repair)] = [result_of(split, oracle, alpha, repair=repair) for split in made]
                except OracleError:  # does not apply to this loss
                    continue
        repairs = [one.repair for one in found[name_of("price", True)] if one.repair is not None]
        lacking = [np.isin(case.y[split.test], one.absent) for split, one in zip(made, repairs, strict=True)]
        row: dict[str, Any] = {
            "case": case.name,
            "alpha": alpha,
            "is_forest": case.is_forest,
            "repairs": [str(one) for one in repairs],
            "costs": {key: [one.cost for one in results] for key, results in found.items()},
            "coverage": {key: _mean([one.covered for one in results]) for key, results in found.items()},
            "absent_coverage": {},
            "absent_rows": round(sum(int(rows.sum()) for rows in lacking) / splits, 1),
        }
        for repair in (True, False):
            key = name_of("price", repair)
            row["absent_coverage"][key] = _mean([r.covered[rows] for r, rows in zip(found[key], lacking, strict=True)])
        yield row


def _mean(covered: list[NDArray[np.bool_]]) -> float | None:
    rows = np.concatenate(covered)
    return round(float(rows.mean()), 4) if len(rows) else None


def name_of(oracle: str, repair: bool) -> str:
    return f"{oracle}, repaired" if repair else oracle


# What is concluded ------------------------------------------------------------------------------------------------


def lead(row: dict[str, Any], other: str) -> tuple[float, float]:
    """How much dearer repaired `price` is than another, and the paired standard error of that over the splits."""
    difference = np.array(row["costs"][name_of("price", True)]) - np.array(row["costs"][other])
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def cheaper(row: dict[str, Any]) -> list[str]:
    """What is cheaper than repaired `price` by more than two standard errors."""
    leads = {other: lead(row, other) for other in row["costs"]}
    return [other for other, (mean, error) in leads.items() if mean > 2 * error]


def harmed(row: dict[str, Any]) -> bool:
    mean, error = lead(row, "price")
    return mean > 2 * error and mean > MOST_ABOVE * float(np.mean(row["costs"]["price"]))


def verdicts(rows: list[dict[str, Any]]) -> tuple[bool, list[str]]:
    lost = [row for row in rows if cheaper(row)]
    worse = [row for row in rows if harmed(row)]
    first = len(lost) <= MOST_LOST and not any(row["is_forest"] for row in lost)
    lines = [
        "Repaired `price` is the cheapest, or within two standard errors of it, in "
        f"{f'{len(rows) - len(lost)} of' if lost else 'all'} {len(rows)} rows.",
        f"In {len(worse) or 'no'} row{'s' if len(worse) > 1 else ''} of this table is it more than 3 percent (and two "
        "standard errors) above `price` without repair.",
    ]
    for row in lost:
        for other in cheaper(row):
            mean, error = lead(row, other)
            share = mean / float(np.mean(row["costs"][name_of("price", True)]))
            lines.append(
                f"`{other}` is cheaper on {row['case']} at alpha {row['alpha']:g}: by {mean:.3g} ({share:.1%}, "
                f"standard error {error:.2g})."
            )
    lines += [f"Worse than without repair: {row['case']} at alpha {row['alpha']:g}." for row in worse]
    return first and not worse, lines


def table(rows: list[dict[str, Any]]) -> str:
    keys = [name_of(oracle, repair) for oracle in ORACLES for repair in (True, False)]
    lines = [
        f"| classifier: loss | alpha | {' | '.join(f'`{key}`' for key in keys)} | coverage of `price` | labels absent "
        "from the repair's rows |",
        "|---" * (len(keys) + 4) + "|",
    ]
    for row in rows:
        means = mean_costs(row)
        lowest = min(means.values())
        shown = [
            "" if key not in means else f"**{means[key]:.4g}**" if means[key] == lowest else f"{means[key]:.4g}"
            for key in keys
        ]
        covered, lacking = coverages(row)
        lines.append(f"| {row['case']} | {row['alpha']:g} | {' | '.join(shown)} | {covered} | {lacking} |")
    return "\n".join(lines)


def mean_costs(row: dict[str, Any]) -> dict[str, float]:
    return {key: float(np.mean(costs)) for key, costs in row["costs"].items()}


def coverages(row: dict[str, Any]) -> tuple[str, str]:
    """Of `price`, with the repair and without: of all rows, and of those whose label the repair's rows lack."""
    keys = [name_of("price", repair) for repair in (True, False)]
    all_rows, absent = ([row[of][key] for key in keys] for of in ("coverage", "absent_coverage"))
    lacking = "none" if absent[0] is None else f"{absent[0]:.2f}, {absent[1]:.2f} ({row['absent_rows']:g} rows)"
    return f"{all_rows[0]:.3f}, {all_rows[1]:.3f}", lacking


def report(data: dict[str, Any]) -> str:
    legend = (
        "Mean cost over the splits, with the repair of p and without; the lowest in bold. The last columns: with "
        "the repair, without."
    )
    return "\n\n".join(["# Repair of p", legend, table(data["rows"]), *verdicts(data["rows"])[1]]) + "\n"


def page(data: dict[str, Any]) -> str:
    """What stands between the markers of the page: `price` beside the cheapest of the other oracles."""
    lines = [
        "| classifier: loss | alpha | `price`, default | `price`, `repair=None` | cheapest other oracle | coverage of "
        "`price` | coverage of labels that the repair has not seen |",
        "|---" * 7 + "|",
    ]
    for row in data["rows"]:
        means = mean_costs(row)
        ours, without = (means.pop(name_of("price", repair)) for repair in (True, False))
        best = min(means, key=lambda key: means[key])
        covered, lacking = coverages(row)
        start = f"| {row['case']} | {row['alpha']:g} | {ours:.4g} | {without:.4g}"
        lines.append(f"{start} | {means[best]:.4g}, `{best}` | {covered} | {lacking} |")
    return "\n\n".join(["\n".join(lines), *verdicts(data["rows"])[1], least_covered(data["rows"])])


def least_covered(rows: list[dict[str, Any]]) -> str:
    """Where labels that the fold lacks are covered least, among the rows of the table that have any."""
    with_repair, without = (name_of("price", repair) for repair in (True, False))
    row = min((r for r in rows if r["absent_rows"]), key=lambda r: float(r["absent_coverage"][with_repair]))
    covered = row["absent_coverage"]
    return (
        "The lowest coverage of labels that do not occur in the rows of the repair is "
        f"{covered[with_repair]:.2f}, compared with {covered[without]:.2f} without the repair "
        f"({row['case']}, alpha {row['alpha']:g})."
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few classifiers, three splits; writes nothing")
    parser.add_argument("--splits", type=int, default=10, help="number of random splits, two or more")
    parser.add_argument("--only", default="", help="cases whose name contains this; writes nothing")
    parser.add_argument("--again", action="store_true", help="write the tables from the results that are there")
    options = parser.parse_args(arguments)
    splits = 3 if options.quick else options.splits
    if splits < 2:
        parser.error("--splits must be 2 or more: standard errors are over the splits")
    if options.again:
        data = json.loads((RESULTS / "repair.json").read_text(encoding="utf-8"))
    else:
        data = measured(splits, quick=options.quick, only=options.only)
        Console(width=200).print(table(data["rows"]), markup=False, soft_wrap=True)
    held, lines = verdicts(data["rows"])
    Console(width=200).print(*lines, f"{data['seconds']} s", sep="\n", markup=False, soft_wrap=True)
    if not options.quick and not options.only:
        write(RESULTS / "repair.json", json.dumps(data, indent=1) + "\n")
        write(RESULTS / "repair.md", report(data))
        write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, page(data)))
    return 0 if held else 1


def measured(splits: int, *, quick: bool, only: str) -> dict[str, Any]:
    progress, start, rows = Console(stderr=True), time.perf_counter(), list[dict[str, Any]]()
    for name, make in cases(quick):
        if only in name:
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows += measure(make(), splits)
            progress.print(f"{name}: {time.perf_counter() - began:.1f} s; {rows[-1]['repairs'][0]}")
    seconds = round(time.perf_counter() - start, 1)
    return {"seconds": seconds, "splits": splits, "holds": verdicts(rows)[0], "rows": rows}


if __name__ == "__main__":
    sys.exit(main())
