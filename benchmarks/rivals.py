"""Published rivals and libraries, compared with `price`: cost at matched coverage, coverage by quarter, time; on real
classifiers, and on each rival's own kind of loss.

    python benchmarks/rivals.py [--rows N] [--only NAME] [--without-libraries] [--busy] [--environments FOLDER]

Every method is given the same rows to tune on, chooses its own options there by the cost that it is judged by, and is
judged on others, at the level at which it covers 1 - alpha of them (two neighbouring levels mixed). `price` has p as
the product repairs them by default, on a fifth of the rows to tune on, at most 1,000. Rivals and libraries have p at a
temperature fitted on all of these rows; rivals are judged a second time with the p of `price`. A standard error is that
of the paired difference to `price`, by row, each row's cost less what its coverage costs at that method's own rate.
MAPIE, TorchCP, crepes and puncc run in environments that are made at the first run and kept. Writes rivals.json and
rivals.md to benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rivals import (
    ByScore,
    Family,
    Floats,
    Ints,
    Masks,
    clustered,
    fargion,
    frequencies,
    pas,
    rac,
    socop,
    stratcp,
    structured,
)
from rivals.libraries import METHODS as LIBRARY_METHODS
from rivals.libraries import Asked, Library, Refused, versions
from rivals_cases import Problem, problems
from rivals_page import LIBRARIES, METHODS, cell, report, table, verdict
from writing import write

import udcp_dsl as udcp
from udcp_dsl.datasets.cache import cache_folder
from udcp_solvers.price import takes_anchor

RESULTS = Path(__file__).parent / "results"
ALPHAS = (0.05, 0.1)
NOISE, ROUNDING = 2.0, 1e-9


class ByPrice(Family):
    """The best sets at a price of mass: what `price` gives at its anchor, also where they are not nested."""

    def __init__(self, oracle: Any, P: Floats) -> None:
        self.oracle, self.P = oracle, P

    def at(self, level: float) -> Masks:
        return np.asarray(self.oracle.best(self.P, np.full(len(self.P), level)))

    def levels(self, y: Ints) -> Floats:
        return np.append(0.0, np.geomspace(1e-2, 1e5, 220))


# Methods ------------------------------------------------------------------------------------------------------------


def price(problem: Problem) -> Family:
    case = problem.repaired
    oracle: Any = udcp.make_oracle("price", case.loss)
    if takes_anchor(case.loss):
        return ByPrice(oracle, case.P)
    return ByScore(oracle.scores(case.P))


class Made:
    """Families that depend on neither loss nor alpha, made once for all problems of a classifier, with their time."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, bool, Any], tuple[Family, float]] = {}
        self.spent = 0.0

    def __call__(self, key: tuple[str, bool, Any], make: Callable[[], Family]) -> Family:
        if key in self.held:
            self.spent += self.held[key][1]
        else:
            start = time.perf_counter()
            self.held[key] = make(), 0.0
            self.held[key] = self.held[key][0], time.perf_counter() - start
        return self.held[key][0]


def method(name: str, problem: Problem, alpha: float, made: Made) -> Family | None:
    """One of METHODS on the rows of a problem; None where it does not apply."""
    case = problem.case

    def tuned(make: Callable[[Floats, Any], Family], grid: tuple[Any, ...]) -> Family:
        """The family with the option that is cheapest on the rows of tuning, at the coverage asked."""
        assert case.tuning_y is not None
        costs = []
        for option in grid:
            found = made((name, True, option), lambda option=option: make(case.tuning, option))  # type: ignore[misc]
            costs.append(matched(found, case.loss, case.tuning_y, 1 - alpha).cost)
        best = grid[int(np.argmin(costs))]
        return made((name, False, best), lambda: make(case.P, best))

    match name:
        case "lac":
            return ByScore(-np.asarray(case.P, dtype=np.float64))
        case "socop":
            return tuned(socop.family, (0.01, 0.03, 0.1, 0.3, 1.0))
        case "pas":
            assert case.tuning_y is not None
            return pas.family(case.P, frequencies(case.tuning_y, case.loss.K))
        case "rac":
            return None if problem.losses is None else rac.Rac(case.P, problem.losses)
        case "fargion":
            return tuned(lambda P, lam: fargion.family(P, problem.similarity, lam), fargion.GRID)
        case "structured":
            if problem.tree is None:
                return None
            return tuned(lambda P, m: structured.Structured(P, problem.tree, m), (1, 2, 4))
        case "stratcp":
            return made((name, False, None), lambda: stratcp.family(case.P, problem.similarity))
        case _:
            assert case.tuning_y is not None
            return clustered.Clustered(case.P, case.tuning, case.tuning_y, alpha, np.random.default_rng(0))


# At matched coverage ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Matched:
    """By row, coverage and cost at the level of a mean coverage; `rate`: what more coverage costs there."""

    covered: Floats
    costs: Floats
    rate: float

    @property
    def cost(self) -> float:
        return float(self.costs.mean())

    @property
    def adjusted(self) -> Floats:
        return self.costs - self.rate * self.covered


def matched(found: Family, loss: Any, y: Ints, target: float) -> Matched:
    """The two levels around a coverage, mixed to it; where it is never reached, the last level."""
    levels, rows, known = found.levels(y), np.arange(len(y)), dict[int, Masks]()

    def sets(i: int) -> Masks:
        if i not in known:
            known[i] = found.at(float(levels[i]))
        return known[i]

    def around(goal: float) -> tuple[int, int]:
        low, high = -1, len(levels) - 1  # the first level is not held to cover less
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if sets(middle)[rows, y].mean() < goal else (low, middle)
        return max(high - 1, 0), high

    def mean(i: int) -> tuple[float, float]:
        return float(sets(i)[rows, y].mean()), float(loss.batch(sets(i)).mean())

    low, high = around(target)
    covers = [sets(i)[rows, y].astype(np.float64) for i in (low, high)]
    costs = [loss.batch(sets(i)) for i in (low, high)]
    gap = covers[1].mean() - covers[0].mean()
    part = 1.0 if gap <= 0 else float(np.clip((target - covers[0].mean()) / gap, 0.0, 1.0))
    (c0, v0), (c1, v1) = mean(around(target - 0.02)[0]), mean(around(min(target + 0.02, 0.999))[1])
    rate = (v1 - v0) / (c1 - c0) if c1 > c0 else 0.0
    mix = [(1 - part) * a + part * b for a, b in (covers, costs)]
    return Matched(mix[0], mix[1], rate)


@dataclass(frozen=True, eq=False)
class Judge:
    """What methods cost at coverage 1 - alpha on the rows of a problem, beside `price`."""

    problem: Problem
    alpha: float
    ours: Matched

    def judged(self, name: str, reached: Matched, ms_a_row: float) -> dict[str, Any]:
        P = self.problem.case.P
        hard = np.argsort(np.argsort(P.max(axis=1), kind="stable"), kind="stable") * 4 // len(P)
        error = float((reached.adjusted - self.ours.adjusted).std() / np.sqrt(len(P)))
        noise = NOISE * error + ROUNDING * abs(self.ours.cost)
        more = reached.cost - self.ours.cost
        return {
            "method": name,
            "cost": reached.cost,
            "error": error,
            "verdict": "equal" if abs(more) <= noise else "dearer" if more > 0 else "cheaper",
            "coverage": float(reached.covered.mean()),
            "by_quarter": [float(reached.covered[hard == q].mean()) for q in range(4)],
            "ms_a_row": ms_a_row,
        }

    def published(self, problem: Problem, made: Made) -> list[dict[str, Any]]:
        """The rivals, with the p of this problem."""
        found = []
        for name in METHODS:
            start, made.spent = time.perf_counter(), 0.0
            family = method(name, problem, self.alpha, made)
            if family is not None:
                reached = matched(family, problem.case.loss, problem.case.y, 1 - self.alpha)
                spent = 1000 * (time.perf_counter() - start + made.spent) / len(problem.case.P)
                found.append(self.judged(name, reached, spent))
        return found


def judge(problem: Problem, alpha: float, made: tuple[Made, Made], asked: Asked | None) -> dict[str, Any]:
    """What every method costs at coverage 1 - alpha, beside `price`; rivals also with the p of `price`."""
    case, refused = problem.case, []
    start = time.perf_counter()
    ours = matched(price(problem), case.loss, case.y, 1 - alpha)
    by = Judge(problem, alpha, ours)
    methods = [by.judged("price", ours, 1000 * (time.perf_counter() - start) / len(case.P))]
    methods += by.published(problem, made[0])
    for library, score in LIBRARY_METHODS if asked is not None else ():
        assert asked is not None
        try:
            reached = matched(Library(asked, library, score), case.loss, case.y, 1 - alpha)
        except Refused as error:
            refused.append(str(error))
            continue
        methods.append(by.judged(f"{library} {score}", reached, asked.ms_a_row(library, score)))
    return {
        "case": case.name,
        "classifier": problem.classifier,
        "about": case.about,
        "own": problem.own,
        "alpha": alpha,
        "n": len(case.P),
        "temperature": problem.temperature,
        "repair": str(problem.repaired.repair),
        "methods": methods,
        "repaired": by.published(problem.all_repaired(), made[1]),
        "refused": refused,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000, help="to judge on, and as many to tune on")
    parser.add_argument("--only", help="cases whose name holds this; the others stay as they were measured before")
    parser.add_argument("--environments", type=Path, default=cache_folder() / "libraries", help="of the libraries")
    parser.add_argument("--without-libraries", action="store_true")
    parser.add_argument("--busy", action="store_true", help="say that the machine had other work")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # labels that cost nothing, rows beyond the budget of the search
    chosen = [make() for name, make in problems(arguments.rows) if not arguments.only or arguments.only in name]
    rows = []
    for classifier in dict.fromkeys(problem.classifier for problem in chosen):
        of_it = [problem for problem in chosen if problem.classifier == classifier]
        case, made = of_it[0].case, (Made(), Made())
        with ExitStack() as open_until:
            asked = None
            if not arguments.without_libraries:
                assert case.tuning_y is not None
                asked = open_until.enter_context(Asked(arguments.environments, case.tuning, case.tuning_y, case.P))
            for problem in of_it:
                for alpha in ALPHAS:
                    rows.append(judge(problem, alpha, made, asked))
                    row = rows[-1]
                    found = [*row["methods"], *row["repaired"]]
                    shown = " ".join(f"{m['method']} {cell(m, row['methods'][0]['cost'])}" for m in found)
                    print(f"{row['case']}, alpha {alpha:g}: {shown}", file=sys.stderr, flush=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    file = arguments.output / "rivals.json"
    before = json.loads(file.read_text(encoding="utf-8"))["rows"] if arguments.only and file.is_file() else []
    fresh = {(row["case"], row["alpha"]): row for row in [*before, *rows]}
    order = [(name, alpha) for name, _ in problems(arguments.rows) for alpha in ALPHAS]
    data = {
        "versions": versions(),
        "busy": arguments.busy,
        "rows": [fresh[key] for key in order if key in fresh],
    }
    write(file, json.dumps(data, indent=1) + "\n")
    write(arguments.output / "rivals.md", report(data))
    print(table(data), table(data, with_repair=True), table(data, LIBRARIES), verdict(data), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
