"""First use: CPU seconds of a process that calibrates and predicts when no kernel has been compiled on this machine.

    python benchmarks/first_use.py [--repeats 3] [--only triage,counts] [--tree ~/udcp_dsl-0.2.0] [--as 0.2.0]

Each case runs in a process of its own with an empty NUMBA_CACHE_DIR: once to compile, and once more with what the first
process cached. User and system time of all threads, the least of the repeats; the row "imports" does nothing but
import. `--tree` measures another checkout of the project by the same script. Prints a table and writes
benchmarks/results/first_use.json, where results of other versions (`--as`) are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
from writing import write

import udcp_dsl as udcp

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "first_use.json"

FAMILIES = ", ".join(f"f{f}: {{ {', '.join(map(str, range(f, 200, 20)))} }}" for f in range(20))
BRANCHES = [f"b{b} {{ {20 * b}..{20 * b + 19} }}" for b in range(10)]
# Two hundred labels in families of ten, which cross branches of twenty, five in each half of a tree.
WIDE = f"""
labels 0..199
categories family {{ {FAMILIES} }}
hierarchy tree {{ h0 {{ {", ".join(BRANCHES[:5])} }}, h1 {{ {", ".join(BRANCHES[5:])} }} }}
loss l ="""
# name: the oracle, rows, and a spec or its file. For the first two `price` looks for an anchor.
CASES = {
    "ten labels": ("price", 400, "labels 0..9  loss l = 4 * (any({0..4}) and any({5..9})) + 0.1 * size"),
    "triage": ("price", 400, "specs/dermatology/triage.loss"),
    "tree diameter": ("price", 400, f"{WIDE} diameter(tree) + 0.01 * size"),
    "counts": ("price", 400, f"{WIDE} count(family) + 0.01 * size"),
    "crossing counts": ("price", 400, f"{WIDE} count(family) + count(tree.level(2)) + 0.01 * size"),
    "size and label costs": ("price", 400, "labels 0..49  costs c { 0: 2, default: 1 }  loss l = sqrt(size) + sum(c)"),
    "greedy": ("greedy", 400, f"{WIDE} count(family) + 0.01 * size"),
    "ilp": ("ilp", 40, f"{WIDE} count(family) + 0.01 * size"),
}
CHILD = """
import sys
import numpy as np
import udcp_dsl as udcp
oracle, n, spec = sys.argv[1], int(sys.argv[2]), sys.argv[3]
loss = udcp.load(spec) if spec.endswith(".loss") else udcp.loads(spec)
rng = np.random.default_rng(0)
P = rng.dirichlet(np.full(loss.K, 0.1), size=n)
y = [loss.labels[rng.choice(loss.K, p=p)] for p in P]
new = {} if not hasattr(udcp, "Repair") else {"repair": None}  # since 0.3, of no concern here
predictor = udcp.SetPredictor(loss, oracle, alpha=0.1, **new).calibrate(P, y)
predictor.predict_set(P[:50]).costs
"""
IMPORTS = "import numpy, udcp_dsl; udcp_dsl.SetPredictor, udcp_dsl.loads"


def cpu_seconds(code: list[str], tree: Path, cache: str) -> float:
    """User and system time of a process and its threads."""
    sources = (tree, tree / "solvers", tree / "grammars")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sources)), "NUMBA_CACHE_DIR": cache}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", *code],
        env={**environment, "UDCP_QUIET": "1"}, cwd=tree, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(code: list[str], tree: Path, repeats: int) -> dict[str, float]:
    first, again = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            first.append(cpu_seconds(code, tree, cache))
            again.append(cpu_seconds(code, tree, cache))
    return {"first": round(min(first), 2), "again": round(min(again), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", help="the beginnings of names, by commas")
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--as", dest="version", default=udcp.__version__)
    options = parser.parse_args()
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"versions": {}}
    found = kept["versions"].setdefault(options.version, {})
    print(f"CPU seconds, {options.version}, numba {numba.__version__}")
    print(f"{'case':<28} {'first use':>9} {'again':>7}")
    cases = {"imports": [IMPORTS]} | {name: [CHILD, o, str(n), spec] for name, (o, n, spec) in CASES.items()}
    for name, code in cases.items():
        if options.only and not name.startswith(tuple(options.only.split(","))):
            continue
        found[name] = measured(code, options.tree.resolve(), options.repeats)
        print(f"{name:<28} {found[name]['first']:>9.2f} {found[name]['again']:>7.2f}", flush=True)
    kept |= {"python": platform.python_version(), "numba": numba.__version__, "machine": platform.platform()}
    write(RESULTS, json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
