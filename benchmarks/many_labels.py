"""The search at a hundred to ten thousand labels: CPU time per row, the share proved, and what has changed since.

    python benchmarks/many_labels.py [--before TREE] [--k 100,1000,10000] [--only mixed] [--rows 200]

Rows are float32, from a gamma distribution of shape 0.05; categories are sqrt(K) in number, `hot` is the first tenth of
the labels. The anchor of each loss lies where 9 of 10 rows are covered. Measured are, per row and apart from compiling,
in one thread: the price of the row's label (`one`), the set at a threshold 2 percent from the anchor (`near`), the set
at twice the anchor (`far`), and all prices (`all`, on a tenth of the rows); proved is a row whose every search ended
within its budget.

`--before` measures another checkout of the project by this script, too, in a process of its own, on the same rows and
anchors: prices and sets of rows that both proved must be equal to the bit. Writes benchmarks/results/many_labels.json
and the table of docs/price-oracle.md.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import udcp_dsl as udcp
from udcp_solvers.search.prices import SearchPrices

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "price-oracle.md"
BEGIN, END = "<!-- many labels: made by benchmarks/many_labels.py -->", "<!-- end of many labels -->"
FORMS = {
    "mixed": "count(f) + 3 * (any(hot) and not within(hot)) + 0.1 * size",
    "radius + count": "radius(h) + count(f)",
    "if": "if any(hot) then 3 * count(f) else sum(c)",
    "dense diameter": "diameter(d) + 0.01 * size",
    "worst": "worst(acts) + 0.01 * size",
}
KINDS = ("one", "near", "far", "all")
# Losses of which the search has a table with a row per label, and the most labels for these.
TABLES, _MAX_TABLE = ("dense diameter", "radius + count"), 1000


def made(K: int, text: str) -> udcp.Loss:
    """A loss over K labels, with categories, a tree that crosses them, costs, and what else its form reads."""
    rng, root = np.random.default_rng(0), int(np.sqrt(K))
    order = rng.permutation(K)
    parts = [", ".join(map(str, sorted(part))) for part in np.array_split(order, root)]
    groups = [f"g{i} {{ {part[0]}..{part[-1]} }}" for i, part in enumerate(np.array_split(np.arange(K), root))]
    tops = [f"t{i} {{ {', '.join(part)} }}" for i, part in enumerate(np.array_split(groups, max(2, root // 5)))]
    files = {}
    head = f"""
    labels 0..{K - 1}
    categories f {{ {", ".join(f"f{i}: {{ {part} }}" for i, part in enumerate(parts))} }}
    category hot {{ 0..{K // 10 - 1} }}
    hierarchy h {{ {", ".join(tops)} }}
    costs c {{ {", ".join(f"{y}: {x:.2f}" for y, x in enumerate(rng.uniform(0.05, 1, K)))} }}
    """
    if "(d)" in text:
        points, data = rng.normal(size=(K, 3)), io.BytesIO()
        matrix = np.round(np.sqrt(((points[:, None] - points) ** 2).sum(axis=-1)), 6)
        np.save(data, np.maximum(matrix, matrix.T))
        files["d.npy"] = data.getvalue()
        head += 'distance d from "d.npy"'
    if "(acts)" in text:
        lines = [f"{y},{','.join(f'{x:.2f}' for x in row)}" for y, row in enumerate(rng.uniform(0, 5, (K, 4)))]
        files["a.csv"] = "\n".join(["label,a,b,c,d", *lines]).encode()
        head += 'actions acts from "a.csv"'
    return udcp.loads(f"{head} loss l = {text}", files=files)


def rows(K: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in float32, and a label of each, drawn from it."""
    rng = np.random.default_rng(1)
    P = rng.gamma(0.05, size=(n, K)).astype(np.float32)
    P /= P.sum(axis=1, keepdims=True)
    of_row = P.astype(np.float64)
    return P, np.array([rng.choice(K, p=p / p.sum()) for p in of_row])


def numbers_of_rows(name: str, K: int, most: int) -> int:
    slow = 5 if name == "dense diameter" else 1
    return max(10, min(most, 20_000 * most // (200 * K * slow)))


def measured(name: str, K: int, most: int, anchor: float | None, out: Path) -> float:
    """Measure one loss, and write times and answers to a file; returns the anchor."""
    n = numbers_of_rows(name, K, most)
    loss, (P, y) = made(K, FORMS[name]), rows(K, n)
    search = SearchPrices(loss)
    if anchor is None:
        anchor = float(np.quantile(search.score_of(P, y), 0.9, method="higher"))
    search.score_of(P[:1], y[:1], np.array([anchor]))  # compiles
    near = anchor * np.where(np.arange(n) % 2, 0.98, 1.02)
    few, found = max(2, n // 10), {"anchor": np.array(anchor)}
    for kind in KINDS:
        m = few if kind == "all" else n
        gaps, at = np.zeros(m), np.full(m, anchor)
        began = time.process_time()
        if kind == "one":
            answer = search.score_of(P, y, at, gaps)
        elif kind == "all":
            answer = search.scores(P[:m], at, gaps)
        else:
            answer = search.sets(P, near if kind == "near" else 2.0 * at, at, gaps)
        found[f"{kind} ms"] = np.array(1e3 * (time.process_time() - began) / m)
        found[kind], found[f"{kind} proved"] = answer, gaps == 0.0
    np.savez(out, **found)
    return anchor


def child(tree: Path, arguments: list[str]) -> None:
    """Measure one loss in a process of its own, with the code of a checkout."""
    sources = (tree, tree / "solvers", tree / "grammars")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sources)), "UDCP_QUIET": "1"}
    command = [sys.executable, "-W", "ignore", __file__, "--measure", *arguments]
    subprocess.run(command, env={**environment, "NUMBA_NUM_THREADS": "1"}, cwd=tree, check=True)


def compared(name: str, K: int, most: int, before: Path | None) -> dict[str, Any]:
    """One loss by this checkout and, if given, by the one before."""
    with tempfile.TemporaryDirectory() as folder:
        new, old = Path(folder) / "new.npz", Path(folder) / "old.npz"
        child(ROOT, [name, str(K), str(most), "", str(new)])
        now = dict(np.load(new))
        if before is not None:
            child(before, [name, str(K), str(most), repr(float(now["anchor"])), str(old)])
        then = dict(np.load(old)) if before is not None else None
    found: dict[str, Any] = {"loss": name, "K": K, "rows": numbers_of_rows(name, K, most)}
    for kind in KINDS:
        proved = now[f"{kind} proved"]
        own = {"ms": round(float(now[f"{kind} ms"]), 4), "proved": round(float(proved.mean()), 4)}
        if then is not None:
            both = proved & then[f"{kind} proved"]
            same = np.array([np.array_equal(a, b) for a, b in zip(now[kind], then[kind], strict=True)])
            own |= {
                "before ms": round(float(then[f"{kind} ms"]), 4),
                "before proved": round(float(then[f"{kind} proved"].mean()), 4),
                "both": int(both.sum()),
                "differ": int((both & ~same).sum()),
            }
        found[kind] = own
    return found


def table(cases: list[dict[str, Any]]) -> str:
    """Milliseconds per row and the share proved, before and now."""
    lines = ["| loss | K | one label | set near | set far | all prices |", "|---|---|---|---|---|---|"]
    for case in cases:
        cells = []
        for kind in KINDS:
            own = case[kind]
            was = f"{_shown(own['before ms'])} ({own['before proved']:.0%}) → " if "before ms" in own else ""
            cells.append(f"{was}{_shown(own['ms'])} ({own['proved']:.0%})")
        lines.append(f"| {case['loss']} | {case['K']:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shown(ms: float) -> str:
    """Two digits, and all of those before the point."""
    return f"{float(f'{ms:.2g}'):,.0f}" if ms >= 10 else f"{ms:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout of the project")
    parser.add_argument("--k", default="100,1000,10000")
    parser.add_argument("--rows", type=int, default=200, help="at K = 100; fewer with more labels")
    parser.add_argument("--only", help="the beginnings of names, by commas")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, K, most, anchor, out = options.measure
        measured(name, int(K), int(most), float(anchor) if anchor else None, Path(out))
        return
    cases = []
    for name in FORMS:
        for K in map(int, options.k.split(",")):
            wanted = not options.only or name.startswith(tuple(options.only.split(",")))
            if wanted and (K <= _MAX_TABLE or name not in TABLES):
                cases.append(compared(name, K, options.rows, options.before and options.before.resolve()))
                differ = sum(cases[-1][kind].get("differ", 0) for kind in KINDS)
                print(table(cases[-1:]).splitlines()[-1], f"{differ} differ", flush=True)
    from writing import between_markers, write  # not in the child, which may run the code of another checkout

    machine = {"python": platform.python_version(), "machine": platform.machine()}
    told = {"machine": machine, "cases": cases}
    write(options.out / "many_labels.json", json.dumps(told, indent=1) + "\n")
    if options.out == RESULTS and not options.only:
        write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, table(cases).rstrip()))


if __name__ == "__main__":
    main()
