"""The floors of speed: calibrating plus predicting, as a ratio to `np.argsort` of the same two matrices, in one run.

    python benchmarks/floors.py [--n 25000] [--k 1000] [--only base,lac] [--repeats 5] [--memory]

One row per case and kind of matrix. Prints a table, writes benchmarks/results/floors.json and, unless with --only, the
table of docs/benchmarks.md. Exit status 1 if a floor is not met. To add an oracle, add a line to CASES.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from writing import between_markers, write

import udcp_dsl as udcp

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """An oracle under a loss, and the most times `np.argsort` that it may take.

    `unsure_at_most` is the limit on uniform-like rows, where it is another one (docs/decisions.md, "One plain kernel").
    """

    name: str
    oracle: str
    at_most: float
    loss: str = "size"
    options: dict[str, object] = field(default_factory=dict)
    unsure_at_most: float | None = None

    def limit(self, kind: str) -> float:
        return self.at_most if kind == "softmax" or self.unsure_at_most is None else self.unsure_at_most


# Losses over the declarations of `spec`: `cost` differs from label to label, a `family` has 20 labels, a `branch` 10
# families; `tree` is root > branch > family > label.
CASES = (
    Case("base", "base", 2.0),
    Case("lac", "lac", 2.0),
    Case("raps", "raps", 2.0),
    Case("ratio", "ratio", 2.0, "sum(cost)"),
    Case("greedy disjoint", "greedy", 3.0, "count(family) + 0.01 * size", unsure_at_most=15.0),
    Case("greedy laminar", "greedy", 3.0, "2 * count(branch) + count(family) + 0.01 * size", unsure_at_most=15.0),
    Case("greedy separable", "greedy", 3.0, "sum(cost)", unsure_at_most=80.0),
    Case("price separable", "price", 2.0, "sum(cost)"),
    Case("price disjoint", "price", 2.0, "count(family) + 0.01 * size"),
    Case("price laminar", "price", 2.0, "2 * count(branch) + count(family) + 0.01 * size"),
    Case("price tree diameter", "price", 1.0, "diameter(tree)"),
)

RESULTS = Path(__file__).parent / "results" / "floors.json"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- floors: made by benchmarks/floors.py -->", "<!-- end of floors -->"
ALPHA = 0.1
AT_LEAST = 1_000  # times as fast as the naive greedy rule
GIB = 1 << 30


def softmax_like(n: int, k: int, rng: np.random.Generator) -> Matrix:
    """A sure classifier: softmax of normal logits, a few labels hold most of the mass."""
    logits = rng.normal(scale=6.0, size=(n, k)).astype(np.float32)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def uniform_like(n: int, k: int, rng: np.random.Generator) -> Matrix:
    """An unsure classifier: all labels of one order of magnitude, so that sets are nearly full."""
    weights = rng.random((n, k), dtype=np.float32)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


KINDS: dict[str, Callable[[int, int, np.random.Generator], Matrix]] = {
    "softmax": softmax_like,
    "uniform": uniform_like,
}


def draw_labels(P: Matrix, rng: np.random.Generator) -> NDArray[np.int64]:
    """True labels drawn from p, a block of rows at a time."""
    y = np.empty(len(P), dtype=np.int64)
    for start in range(0, len(P), 1000):
        sums = P[start : start + 1000].cumsum(axis=1, dtype=np.float64)
        y[start : start + 1000] = (sums > rng.random((len(sums), 1)) * sums[:, -1:]).argmax(axis=1)
    return y


@dataclass(frozen=True)
class Result:
    case: str
    kind: str
    argsort_seconds: float
    calibrate_seconds: float
    predict_seconds: float
    ratio: float
    at_most: float
    mean_size: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.at_most


def spec(k: int, loss: str) -> str:
    """A spec of k labels, whose names are their numbers."""

    def by(name: str, category: Callable[[int], int]) -> str:
        members: dict[int, list[str]] = {}
        for y in range(k):
            members.setdefault(category(y), []).append(str(y))
        listed = ", ".join(f"c{c}: {{ {', '.join(of)} }}" for c, of in members.items())
        return f"categories {name} {{ {listed} }}"

    def of_branch(branch: int) -> str:
        inside = range(10 * branch, min(10 * branch + 10, families))
        return ", ".join(f"f{f} {{ {', '.join(map(str, range(f, k, families)))} }}" for f in inside)

    costs = ", ".join(f"{y}: {1 + 7919 * y % 1009 / 1009:.6f}" for y in range(k))
    families = -(-k // 20)
    branches = -(-families // 10)
    return f"""
    labels 0..{k - 1}
    {by("family", lambda y: y % families)}
    {by("branch", lambda y: y % families // 10)}
    hierarchy tree {{ {", ".join(f"b{b} {{ {of_branch(b)} }}" for b in range(branches))} }}
    costs cost {{ {costs} }}
    loss l = {loss}
    """


def oracle_of(case: Case, k: int) -> Any:
    return udcp.make_oracle(case.oracle, udcp.loads(spec(k, case.loss)), **case.options)


def threshold(scores: NDArray[np.float64]) -> float:
    """The split-conformal threshold at ALPHA."""
    rank = min(math.ceil((len(scores) + 1) * (1 - ALPHA)), len(scores))
    return float(np.partition(scores, rank - 1)[rank - 1])


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(case: Case, kind: str, calibration: Matrix, y: NDArray[np.int64], test: Matrix, repeats: int) -> Result:
    """Medians of alternating repetitions, after one that warms up (and compiles)."""
    oracle = oracle_of(case, calibration.shape[1])
    tau = threshold(oracle.score_of(calibration, y))
    size = float(oracle.sets(test, tau).sum(axis=1).mean())
    sorting, calibrating, predicting = [], [], []
    for _ in range(repeats):
        sorting.append(seconds(lambda: (np.argsort(calibration, axis=1), np.argsort(test, axis=1))))
        calibrating.append(seconds(lambda: threshold(oracle.score_of(calibration, y))))
        predicting.append(seconds(lambda: oracle.sets(test, tau)))
    argsort, calibrate, predict = (statistics.median(times) for times in (sorting, calibrating, predicting))
    return Result(case.name, kind, argsort, calibrate, predict, (calibrate + predict) / argsort, case.limit(kind), size)


def naive_greedy(p: list[float], distance: NDArray[np.float64], M: float, eps: float) -> list[int]:
    """The paper's greedy rule for the largest distance within a set, as its formula reads: a double loop."""
    order: list[int] = []
    while len(order) < len(p):
        best, best_ratio = -1, -math.inf
        for y in range(len(p)):
            if y not in order:
                S = [*order, y]
                ratio = max(M - distance[np.ix_(S, S)].max(), 0) / (max(1 - p[y], 0) + eps)
                if ratio > best_ratio or (ratio == best_ratio and p[y] > p[best]):
                    best, best_ratio = y, ratio
        order.append(best)
    return order


def times_faster_than_naive(k: int = 100, n: int = 4_000, naive_n: int = 3) -> float:
    """How many times as fast `greedy` is as the double loop, a row; the orders are checked to be the same."""
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((k, k)), 1)
    matrix = io.BytesIO()
    np.save(matrix, upper + upper.T)
    text = f'labels 0..{k - 1}  distance d from "d.npy"  loss l = diameter(d)'
    oracle = udcp.make_oracle("greedy", udcp.loads(text, files={"d.npy": matrix.getvalue()}))
    P = rng.dirichlet(np.ones(k), size=n)
    scores = oracle.scores(P)
    ours = statistics.median(seconds(lambda: oracle.scores(P)) for _ in range(5)) / n
    start = time.perf_counter()
    orders = [naive_greedy(row.tolist(), upper + upper.T, float(upper.max()), 1e-6) for row in P[:naive_n]]
    naive = (time.perf_counter() - start) / naive_n
    assert orders == scores[:naive_n].argsort(axis=1).tolist()
    return naive / ours


def peak_above_inputs(case: Case, n: int, k: int) -> int:
    """Bytes that a process of its own needs at its peak beyond itself and its two matrices."""
    command = [sys.executable, __file__, "--peak-of", case.name, "--n", str(n), "--k", str(k)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def report_peak(case: Case, n: int, k: int) -> None:
    def peak() -> int:
        # Linux only. Not getrusage, whose peak is handed down from the parent process.
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    rng = np.random.default_rng(0)
    # Made in float32 and in place, so that the peak before the work is the inputs and no more.
    calibration, test = (rng.random((n, k), dtype=np.float32) for _ in range(2))
    for P in (calibration, test):
        P /= P.sum(axis=1, keepdims=True)
    y = rng.integers(k, size=n)
    oracle = oracle_of(case, k)
    before = peak()
    oracle.sets(test, threshold(oracle.score_of(calibration, y)))
    print(peak() - before)


def show(results: list[Result], peaks: dict[str, int]) -> Table:
    table = Table(title="Calibrate + predict, against np.argsort of the same matrices")
    for column in ("case", "matrix"):
        table.add_column(column)
    for column in ("argsort s", "calibrate s", "predict s", "ratio", "at most", "mean size", "peak MiB"):
        table.add_column(column, justify="right")
    for r in results:
        times = (f"{t:.3f}" for t in (r.argsort_seconds, r.calibrate_seconds, r.predict_seconds))
        ratio = f"{r.ratio:.2f}" if r.met else f"[red]{r.ratio:.2f}[/red]"
        peak = f"{peaks[r.case] / 2**20:.0f}" if r.case in peaks else ""
        table.add_row(r.case, r.kind, *times, ratio, f"{r.at_most:g}", f"{r.mean_size:.1f}", peak)
    return table


def page_table(run: dict[str, Any]) -> str:
    """The ratios by case, for a sure and an unsure classifier, as text of the page."""
    ratio = {(x["case"], x["kind"]): x["ratio"] for x in run["results"]}
    rows = [
        f"| `{case.oracle}` | `{case.loss}` | " + " | ".join(f"{ratio[case.name, kind]:.2f}" for kind in KINDS) + " |"
        for case in CASES
    ]
    head = ["| oracle | loss | sure classifier | nearly uniform |", "|---|---|---|---|"]
    naive = f"With 100 labels, `greedy` is {run['greedy_times_faster']:,.0f} times as fast as a plain double loop."
    return "\n".join([*head, *rows, "", naive])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=25_000, help="rows of each of the two matrices")
    parser.add_argument("--k", type=int, default=1_000, help="labels")
    parser.add_argument("--only", default="", help="names of cases, with commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="also peak memory, each in a process of its own (Linux)")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    by_name = {case.name: case for case in CASES}
    chosen = options.only.split(",") if options.only else list(by_name)
    if unknown := set(chosen) - set(by_name):
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(by_name)}")
    n, k = options.n, options.k
    if options.peak_of:
        report_peak(by_name[options.peak_of], n, k)
        return 0

    rng = np.random.default_rng(0)
    results = []
    console = Console()
    with console.status("measuring") as status:
        for kind, make in KINDS.items():
            calibration, test = make(n, k, rng), make(n, k, rng)
            y = draw_labels(calibration, rng)
            for name in chosen:
                status.update(f"{name} on {kind}")
                results.append(measure(by_name[name], kind, calibration, y, test, options.repeats))
        peaks = {name: peak_above_inputs(by_name[name], n, k) for name in chosen} if options.memory else {}
        faster = times_faster_than_naive()
    console.print(show(results, peaks))
    console.print(f"greedy at K = 100: {faster:,.0f} times as fast as the double loop (at least {AT_LEAST:,})")
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    versions = {package: version(package) for package in ("numpy", "numba", "udcp_dsl")}
    rows = [asdict(r) for r in results]
    content = {
        "n": n,
        "k": k,
        **machine,
        **versions,
        "greedy_times_faster": faster,
        "peak_bytes_above_inputs": peaks,
        "results": rows,
    }
    write(RESULTS, json.dumps(content, indent=2) + "\n")
    if len(chosen) == len(CASES):
        write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, page_table(content)))
    return (
        0 if faster >= AT_LEAST and all(r.met for r in results) and all(peak <= GIB for peak in peaks.values()) else 1
    )


if __name__ == "__main__":
    sys.exit(main())
