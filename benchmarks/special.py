"""What the special algorithms of `price` gain over the search that scores any loss: the factor in time per row.

    python benchmarks/special.py [--k 20,50,100,200,500,1000] [--n 2]

CPU time of all scores of a row, by the special algorithm and by the search, on rows of an unsure classifier, compiling
aside. `*`: the search used up its budget, so that its sets may cost more. Prints a table and writes it to
docs/decisions.md and benchmarks/results/special.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_solvers.price import choose_algorithm
from udcp_solvers.search.prices import SearchPrices

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "special.json", ROOT / "docs" / "decisions.md"
BEGIN, END = "<!-- special: made by benchmarks/special.py -->", "<!-- end of special -->"
LOSSES = {
    "cuts": (
        "count(F) + count(G) + 0.01 * size",
        "count(F) + 2 * count(G) + sum(c)",
        "max(d) + count(F) + 0.01 * size",
        "min(count(F), 3) + count(G) + 0.01 * size",
        "min(sum(c), 4) + count(F)",
        "2 * sqrt(size) + count(F)",
        "sqrt(count(F)) + sqrt(count(G)) + 0.01 * size",
    ),
    "sizes": ("0.02 * size ^ 2 + sum(c)", "3 * (size >= 3) + sum(c)", "3 * sqrt(size) + sum(c)"),
    "sizes, equal costs": ("0.1 * size ^ 2", "sqrt(size)"),
}


def made(K: int, text: str) -> udcp.Loss:
    """Two partitions of the labels that cross, in categories of ten, and costs."""
    rng = np.random.default_rng(0)

    def partition(name: str) -> str:
        parts = np.array_split(rng.permutation(K), max(2, K // 10))
        return ", ".join(f"{name}{i}: {{ {', '.join(map(str, sorted(part)))} }}" for i, part in enumerate(parts))

    def costs(most: float) -> str:
        return ", ".join(f"{y}: {x:.2f}" for y, x in enumerate(rng.uniform(0.05, most, K)))

    return udcp.loads(f"""
    labels 0..{K - 1}
    categories F {{ {partition("F")} }}
    categories G {{ {partition("G")} }}
    costs c {{ {costs(1)} }}
    costs d {{ {costs(5)} }}
    loss l = {text}
    """)


def measured(loss: udcp.Loss, n: int) -> dict[str, float]:
    """Milliseconds per row, and the largest gap that the search leaves."""
    _, make = choose_algorithm(loss)
    special, search = make(), SearchPrices(loss)
    logits = np.random.default_rng(1).normal(scale=1.5, size=(n, loss.K))
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    gaps, found = np.zeros(n), {}
    for name, score in (("special", lambda: special.scores(P)), ("search", lambda: search.scores(P, None, gaps))):
        score()  # compiles
        began, turns = time.process_time(), 0
        while turns == 0 or time.process_time() < began + 0.1:
            score()
            turns += 1
        found[name] = 1e3 * (time.process_time() - began) / turns / n
    return found | {"gap": float(gaps.max())}


def table(cases: list[dict[str, Any]]) -> str:
    sizes = sorted({case["K"] for case in cases})
    lines = [f"| algorithm | loss | {' | '.join(f'K = {K}' for K in sizes)} |", "|---|---|" + "---|" * len(sizes)]
    for algorithm, loss in dict.fromkeys((case["algorithm"], case["loss"]) for case in cases):
        of = {case["K"]: case for case in cases if case["loss"] == loss}
        factors = [of[K]["search"] / of[K]["special"] for K in sizes]
        cells = [
            f"{x:{',.0f' if x >= 10 else '.1f'}}{'*' * (of[K]['gap'] > 0)}" for x, K in zip(factors, sizes, strict=True)
        ]
        lines.append(f"| {algorithm} | `{loss}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", default="20,50,100,200,500,1000")
    parser.add_argument("--n", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    cases = []
    for K in map(int, options.k.split(",")):
        for algorithm, losses in LOSSES.items():
            for loss in losses:
                cases.append({"algorithm": algorithm, "loss": loss, "K": K, **measured(made(K, loss), options.n)})
                print(cases[-1], flush=True)
    about = {"n": options.n, "python": platform.python_version(), "machine": platform.platform()}
    write(RESULTS, json.dumps({**about, "cases": cases}, indent=1) + "\n")
    write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, table(cases)))


if __name__ == "__main__":
    main()
