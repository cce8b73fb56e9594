"""The exact oracle against a hand-written HiGHS model of the same loss, kept from instance to instance, in one run.

    python benchmarks/ilp.py [--n 20] [--repeats 3] [--only "tree diameter"] [--large]

One row a loss and a number of labels: milliseconds of the processor an instance for the cheapest set of mass 0.9, by
hand, by `ilp` as it comes (solver="auto", which knows losses that need no solver) and by `ilp` with HiGHS. All prove
optimality with gap 0, and their costs are compared. Prints a table and writes benchmarks/results/ilp.json; exit status
1 if `ilp` takes more than 1.5 times as long as the model by hand. --large adds K = 1000, where overlapping groups take
seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from writing import write

import udcp_dsl as udcp

RESULTS = Path(__file__).parent / "results" / "ilp.json"
MASS, AT_MOST = 0.9, 1.5
SIZES, LARGE = (10, 50, 114), 1000

Row = NDArray[np.float64]


class ByHand:
    """What one would write: variables, rows, and one row of mass that is replaced for each instance."""

    def __init__(self, K: int) -> None:
        self.K = K
        self._highs = highspy.Highs()
        for name, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0)):
            self._highs.setOptionValue(name, value)
        self._labels = np.arange(K, dtype=np.int32)
        for _ in range(K):
            self.binary(0.0)
        self._rows = 0

    def binary(self, cost: float) -> int:
        column = int(self._highs.getNumCol())
        self._highs.addVar(0.0, 1.0)
        self._highs.changeColCost(column, cost)
        self._highs.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        return column

    def cost(self, column: int, cost: float) -> None:
        self._highs.changeColCost(column, cost)

    def row(self, low: float, high: float, terms: dict[int, float]) -> None:
        columns = np.array(list(terms), dtype=np.int32)
        self._highs.addRow(low, high, len(terms), columns, np.array(list(terms.values())))
        self._rows += 1

    def at_most(self, smaller: int, *larger: int) -> None:
        """One variable is at most the sum of others."""
        self.row(-highspy.kHighsInf, 0.0, {smaller: 1.0, **dict.fromkeys(larger, -1.0)})

    def solve(self, p: Row) -> float:
        """The least cost of a set of mass MASS."""
        if int(self._highs.getNumRow()) > self._rows:
            self._highs.deleteRows(1, np.array([self._rows], dtype=np.int32))
        self._highs.addRow(1e6 * MASS * p.sum(), highspy.kHighsInf, self.K, self._labels, 1e6 * p)
        self._highs.run()
        assert self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return float(self._highs.getInfo().objective_function_value)


Made = tuple[str, ByHand]


def groups_of(K: int, size: int) -> list[range]:
    return [range(start, min(start + size, K)) for start in range(0, K, size)]


def count(K: int, rng: np.random.Generator) -> Made:
    """Disjoint categories of about 5 labels."""
    groups, model = groups_of(K, 5), ByHand(K)
    for group in groups:
        g = model.binary(1.0)
        for y in group:
            model.at_most(y, g)
    family = ", ".join(f"g{i}: {{ {group[0]}..{group[-1]} }}" for i, group in enumerate(groups))
    return f"labels 0..{K - 1}  categories F {{ {family} }}  loss l = count(F)", model


def count_and_costs(K: int, rng: np.random.Generator) -> Made:
    text, model = count(K, rng)
    costs = np.round(rng.gamma(2.0, 0.2, size=K), 3)
    for y in range(K):
        model.cost(y, float(costs[y]) + 0.01)
    listed = ", ".join(f"{y}: {cost}" for y, cost in enumerate(costs.tolist()))
    return f"costs c {{ {listed} }}  {text} + sum(c) + 0.01 * size", model


def tree_diameter(K: int, rng: np.random.Generator) -> Made:
    """Leaves at depth 3. At each depth one touched node is free; a second one makes the diameter longer by 2."""
    model = ByHand(K)
    inner = groups_of(K, 5)
    outer = groups_of(len(inner), 4)
    node = [model.binary(0.0) for _ in inner]
    above = [model.binary(0.0) for _ in outer]
    for group, g in zip(inner, node, strict=True):
        for y in group:
            model.at_most(y, g)
    for group, g in zip(outer, above, strict=True):
        for i in group:
            model.at_most(node[i], g)
    for touched in (list(range(K)), node, above):
        second = model.binary(2.0)
        free = [model.binary(0.0) for _ in touched]
        model.row(1.0, 1.0, dict.fromkeys(free, 1.0))
        for v, w in zip(touched, free, strict=True):
            model.at_most(v, w, second)
    parts = []
    for i, group in enumerate(outer):
        nodes = ", ".join(f"m{j} {{ {inner[j][0]}..{inner[j][-1]} }}" for j in group)
        parts.append(f"n{i} {{ {nodes} }}")
    return f"labels 0..{K - 1}  hierarchy h {{ {', '.join(parts)} }}  loss l = diameter(h)", model


def overlapping(K: int, rng: np.random.Generator) -> Made:
    """30 groups of a tenth of the labels each, at least 2."""
    model, parts = ByHand(K), []
    for i in range(30):
        members = sorted(rng.choice(K, max(2, K // 10), replace=False).tolist())
        g = model.binary(1.0)
        for y in members:
            model.at_most(y, g)
        parts.append(f"g{i}: {{ {', '.join(map(str, members))} }}")
    for y in range(K):
        model.cost(y, 0.01)
    return f"labels 0..{K - 1}  categories F {{ {', '.join(parts)} }}  loss l = count(F) + 0.01 * size", model


CASES: dict[str, Callable[[int, np.random.Generator], Made]] = {
    "disjoint count": count,
    "count + costs + size": count_and_costs,
    "tree diameter": tree_diameter,
    "30 overlapping groups": overlapping,
}


@dataclass(frozen=True)
class Result:
    case: str
    K: int
    n: int
    by_hand_ms: float
    auto_ms: float
    highs_ms: float

    @property
    def ratio(self) -> float:
        return self.auto_ms / self.by_hand_ms

    @property
    def highs_ratio(self) -> float:
        return self.highs_ms / self.by_hand_ms


def measure(case: str, K: int, n: int, repeats: int) -> Result:
    """Means over instances of the quickest of some passes over all of them, after an instance that warms up.

    No instance comes twice in a row: the model by hand would remember its solution. Time of the processor, since all
    three run in this process on one thread, and a busy machine would tell more of itself than of them.
    """
    rng = np.random.default_rng(K)
    text, model = CASES[case](K, rng)
    loss = udcp.loads(text)
    auto, highs = (udcp.make_oracle("ilp", loss, levels=[MASS], solver=solver) for solver in ("auto", "HiGHS"))
    ways: list[Callable[[Row], float]] = [model.solve, partial(least, auto), partial(least, highs)]
    P = rng.dirichlet(np.full(K, 0.3), size=n + 1)
    took = np.empty((repeats, n + 1, len(ways)))
    for times in took:
        for p, row in zip(P, times, strict=True):
            costs = []
            for i, way in enumerate(ways):
                start = time.process_time()
                costs.append(way(p))
                row[i] = time.process_time() - start
            if max(costs) - min(costs) > 1e-5:
                raise SystemExit(f"{case}, K = {K}: the costs differ: {costs}")
    return Result(case, K, n, *(1000 * took[:, 1:].min(axis=0).mean(axis=0)).tolist())


def least(oracle: Any, p: Row) -> float:
    """The least cost by an oracle, which must be proved."""
    masks, proved = oracle.optimal(p[None])
    assert proved.all()
    return float(oracle.loss.batch(masks)[0])


def show(results: list[Result]) -> Table:
    table = Table(title="Cheapest set of mass 0.9, milliseconds an instance")
    table.add_column("loss")
    for column in ("K", "by hand", "ilp", "ilp, HiGHS", "ratio", "ratio, HiGHS"):
        table.add_column(column, justify="right")
    for r in results:
        times = (f"{t:.2f}" for t in (r.by_hand_ms, r.auto_ms, r.highs_ms))
        ratio = f"{r.ratio:.2f}" if r.ratio <= AT_MOST else f"[red]{r.ratio:.2f}[/red]"
        table.add_row(r.case, str(r.K), *times, ratio, f"{r.highs_ratio:.2f}")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=20, help="instances of each case")
    parser.add_argument("--repeats", type=int, default=3, help="passes over them, of which the quickest counts")
    parser.add_argument("--only", default="", help="names of cases, with commas")
    parser.add_argument("--large", action="store_true", help=f"also K = {LARGE}, 3 instances of each case")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(CASES)
    if unknown := set(chosen) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    results = []
    console = Console()
    with console.status("measuring") as status:
        for case in chosen:
            for K in (*SIZES, *([LARGE] if options.large else [])):
                status.update(f"{case}, K = {K}")
                results.append(measure(case, K, *((3, 1) if K == LARGE else (options.n, options.repeats))))
    console.print(show(results))
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    versions = {package: version(package) for package in ("numpy", "pulp", "highspy", "udcp_dsl")}
    rows = [{**asdict(r), "ratio": r.ratio, "highs_ratio": r.highs_ratio} for r in results]
    content = {"mass": MASS, "at_most": AT_MOST, **machine, **versions, "results": rows}
    write(RESULTS, json.dumps(content, indent=2) + "\n")
    return 0 if all(r.ratio <= AT_MOST for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
