"""Inputs per row: the CPU time of a loss with inputs against that of the same loss with constants, in one run.

    python benchmarks/inputs.py [--n 1000] [--k 100] [--repeats 3] [--only search]

Every row has inputs of its own; the loss without inputs has the numbers of one of them. A ratio is the median over
repeats, each of both one after the other; building what the rows need is part of the time. Writes
benchmarks/results/inputs.json. Exit status 1 if the floor is not met: 2 x for `price` by the search.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from writing import write

import udcp_dsl as udcp

LOSSES = {
    "search, a number": "size + 0.1 * km * (any(A) and any(B)) + count(team)",
    "search, label costs": "sum(fee) + km * (any(A) and any(B)) + count(team)",
    "search, category costs": "sum(fee) + km * (any(A) and any(B)) + count(team, queue)",
    "cut": "sum(fee) + count(team, queue) + count(cross)",
    "size": "0.01 * km * max(size - 1, 0) ^ 2 + sum(fee)",
    "laminar": "sum(fee) + count(team, queue) + 0.1 * km * any(A)",
    "label costs": "sum(fee) + 0.1 * km * size",
}
ORACLES: dict[str, dict[str, Any]] = {"price": {}, "ratio": {}, "penalized": {"lam": 0.1}, "greedy": {}}
FLOOR = 2.0


@dataclass(frozen=True)
class Result:
    """Microseconds of CPU time per row with inputs and without, and their ratio."""

    loss: str
    oracle: str
    with_inputs: float
    without: float
    ratio: float


def declared(K: int, row: dict[str, Any] | None) -> str:
    """The declarations; with the numbers of a row, constants in place of inputs."""
    tens = [f"t{i}: {{ {', '.join(map(str, range(10 * i, min(K, 10 * i + 10))))} }}" for i in range(-(-K // 10))]
    sevens = [f"c{i}: {{ {', '.join(str(y) for y in range(K) if y // 3 % 7 == i)} }}" for i in range(7)]
    fixed = [
        f"labels 0..{K - 1}",
        f"categories team {{ {', '.join(tens)} }}",
        f"categories cross {{ {', '.join(sevens)} }}",
        "category A { 0..19 }",
        "category B { 20..39 }",
    ]
    if row is None:
        own = [
            "input km in [0, 200]",
            "costs fee per row in [0.5, 50]",
            "costs queue of team per row in [0, 60]",
        ]
    else:
        fee = ", ".join(f"{y}: {float(cost)!r}" for y, cost in enumerate(row["fee"]))
        queue = ", ".join(f"t{i}: {float(cost)!r}" for i, cost in enumerate(row["queue"]))
        own = [f"param km = {float(row['km'])!r}", f"costs fee {{ {fee} }}", f"costs queue of team {{ {queue} }}"]
    return "\n".join([*fixed, *own, ""])


def measured(K: int, n: int, repeats: int, only: str | None) -> list[Result]:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(K, 0.1), n)
    inputs = {
        "km": rng.uniform(0, 200, n),
        "fee": rng.uniform(0.5, 50, (n, K)),
        "queue": rng.uniform(0, 60, (n, -(-K // 10))),
    }
    found = []
    for name, text in LOSSES.items():
        if only is not None and only not in name:
            continue
        by_row = udcp.loads(f"{declared(K, None)}loss l = {text}")
        constant = udcp.loads(f"{declared(K, {key: x[0] for key, x in inputs.items()})}loss l = {text}")
        given = by_row.inputs_of({key: x for key, x in inputs.items() if key in by_row.inputs}, n)
        assert given is not None
        for oracle, options in ORACLES.items():
            try:
                plain = udcp.make_oracle(oracle, constant, **options)
                plain.scores(P[:32])
                udcp.make_oracle(oracle, by_row, **options).scores(P[:32], inputs=given[:32])
            except udcp.OracleError:
                continue
            pairs = []
            for _ in range(repeats):
                made = udcp.make_oracle(oracle, by_row, **options)  # nothing is kept from the repeat before
                with_inputs = seconds(partial(made.scores, inputs=given), P)
                pairs.append((with_inputs, seconds(plain.scores, P)))
            slow, quick = (statistics.median(side) / n * 1e6 for side in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            found.append(Result(name, oracle, slow, quick, ratio))
    return found


def seconds(score: Callable[[Any], object], P: Any) -> float:
    began = time.process_time()
    score(P)
    return time.process_time() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="losses whose name holds this")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    results = measured(given.k, given.n, given.repeats, given.only)
    table = Table("loss", "oracle", "with, us/row", "without, us/row", "ratio")
    for x in results:
        table.add_row(x.loss, x.oracle, f"{x.with_inputs:.1f}", f"{x.without:.1f}", f"{x.ratio:.2f}")
    Console().print(table)
    if given.only is None:
        path = Path(__file__).parent / "results" / "inputs.json"
        content = {"n": given.n, "K": given.k, "floor": FLOOR, "results": [asdict(x) for x in results]}
        write(path, json.dumps(content, indent=1) + "\n")
    missed = [x for x in results if x.oracle == "price" and x.loss.startswith("search") and x.ratio > FLOOR]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
