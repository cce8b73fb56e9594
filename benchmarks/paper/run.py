"""The experiments of *Utility-Directed Conformal Prediction* (arXiv 2410.01767), redone on data at hand.

    python benchmarks/paper/run.py EXPERIMENT... [--data NAME]... [--folder PATH] [--taxonomies PATH] [--splits N]

EXPERIMENT is one of tables (1 to 3), lambdas, sizes, conditional, softmax, accuracy, bayes, or all. --data names a data
set of problems.py, all of them by default; --folder is one in the authors' layout (published.py says which files). The
trees of --taxonomies, by default ../shared/data beside the repository, are real; without them they are made. Writes
EXPERIMENT.json and .md to benchmarks/results/paper, and the tables into docs/paper.md; data sets that were measured
before stay.
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

import experiments
import page
import problems
from published import published
from taxonomies import folder_of

from udcp_dsl import InputError, SpecWarning
from udcp_dsl.files import atomic_write

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "paper"
PAGE = ROOT / "docs" / "paper.md"

COMPARED = {
    "tables": experiments.tables,
    "sizes": experiments.sizes,
    "conditional": experiments.conditional,
    "softmax": experiments.softmax,
}
TRAINED = {"accuracy": experiments.accuracy, "bayes": experiments.bayes}
EXPERIMENTS = (*COMPARED, "lambdas", *TRAINED)


def measured(options: argparse.Namespace) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Experiment, data set and what was found, one after the other; a comparison is made once for all that read it."""
    wanted: list[str] = options.experiments
    names = options.data or ([] if options.folder else list(problems.NAMES))
    if set(wanted) - set(TRAINED):
        folder = folder_of(options.taxonomies)
        for name in [*names, *([options.folder] if options.folder else [])]:
            began = time.perf_counter()
            given = isinstance(name, Path)
            problem = published(name) if given else problems.problem(name, folder, quick=options.quick)
            n, K = problem.probs.shape
            about = {"about": problem.about, "n": n, "K": K, "accuracy": problem.accuracy}
            if set(wanted) & set(COMPARED):
                comparison = experiments.compared(problem, options.splits)
                for experiment in (x for x in wanted if x in COMPARED):
                    yield experiment, problem.name, {**about, "rows": COMPARED[experiment](comparison)}
            if "lambdas" in wanted:
                yield "lambdas", problem.name, {**about, "rows": experiments.lambdas(problem, options.splits)}
            print(f"{problem.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    for experiment in (x for x in wanted if x in TRAINED):
        began = time.perf_counter()
        rows = TRAINED[experiment](options.splits, options.quick)
        n, K = experiments.FEW if options.quick else experiments.ROWS, problems.language_tree().K
        yield experiment, "texts", {"about": experiments.ABOUT_TEXTS, "n": n, "K": K, "rows": rows}
        print(f"{experiment}: {time.perf_counter() - began:.1f} s", file=sys.stderr)


def held(folder: Path, experiment: str, splits: int) -> dict[str, Any]:
    """What is in an experiment's file, or a new start; refuses a file of other settings."""
    file = folder / f"{experiment}.json"
    fresh: dict[str, Any] = {"experiment": experiment, "alpha": float(experiments.ALPHA), "splits": splits, "data": {}}
    if not file.is_file():
        return fresh
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for key in ("alpha", "splits"):
        if found[key] != fresh[key]:
            raise InputError(f"{file} holds results of {key} = {found[key]}, not {fresh[key]}: give another --output")
    return found


def keep(folder: Path, data: dict[str, Any], name: str, found: dict[str, Any]) -> None:
    """Add a data set to an experiment's files, or replace it there."""
    data["data"][name] = found
    order = {known: i for i, known in enumerate(problems.NAMES)}
    data["data"] = dict(sorted(data["data"].items(), key=lambda item: order.get(item[0], len(order))))
    write(folder / f"{data['experiment']}.json", json.dumps(data, indent=1) + "\n")
    write(folder / f"{data['experiment']}.md", page.report(data))


def write(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="+", choices=(*EXPERIMENTS, "all"), metavar="EXPERIMENT")
    parser.add_argument("--data", action="append", choices=problems.NAMES, help="may be given several times")
    parser.add_argument("--folder", type=Path, help="softmax, labels and hierarchy, as the authors publish them")
    parser.add_argument("--taxonomies", type=Path, help="the folder of the real trees")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="a few rows; needs --output")
    parser.add_argument("--output", type=Path, help="a folder for the results; the page is then left as it is")
    options = parser.parse_args(arguments)
    if "all" in options.experiments:
        options.experiments = list(EXPERIMENTS)
    if options.quick and options.output is None:
        parser.error("--quick is no result to keep: give a folder, --output FOLDER")
    folder = options.output or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = {experiment: held(folder, experiment, options.splits) for experiment in options.experiments}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpecWarning)
            for experiment, name, found in measured(options):
                keep(folder, done[experiment], name, found)
    except InputError as error:
        parser.error(str(error))
    for data in done.values():
        print(page.report(data))
        if options.output is None:
            write(PAGE, page.between_markers(PAGE.read_text(encoding="utf-8"), data["experiment"], page.shown(data)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
