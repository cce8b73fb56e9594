"""`ilp` on every spec of specs/ against an earlier version of itself, in one run.

    git worktree add --detach ../before 0.1.0-commit
    python benchmarks/ilp_before.py ../before [--n 8]

Each loss is compiled and scored by a process of either version, one row by each in turn, so that a busy machine slows
both: milliseconds of the processor for `score_of` at a label drawn from p, by the mass through it, which both know.
The languages are rows of the real classifier, the others drawn. Prints a table and writes
benchmarks/results/ilp_before.json; exit status 1 if the mean over the losses is more than a fifth of what it was.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from writing import write

import udcp_dsl as udcp

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "ilp_before.json"
AT_MOST = 0.2
# What a process of either version does: a spec, a loss of it and rows come in, a line of JSON goes out for each row.
WORKER = """
import json, sys, time, warnings
import numpy as np
import udcp_dsl as udcp
from udcp_solvers.ilp import Ilp
warnings.simplefilter("ignore")
for line in sys.stdin:
    asked = json.loads(line)
    if "spec" in asked:
        loss = udcp.load(asked["spec"], loss=asked["loss"])
        oracle = Ilp(loss, **({"mass": "through"} if udcp.__version__ >= "0.2" else {}))
        oracle.score_of(np.full((1, loss.K), 1 / loss.K), np.array([0]))
        print(json.dumps({"version": udcp.__version__}), flush=True)
        continue
    p, y = np.array([asked["p"]]), np.array([asked["y"]])
    start = time.process_time()
    score = float(oracle.score_of(p, y)[0])
    took = time.process_time() - start
    print(json.dumps({"ms": 1000 * took, "score": score, "proved": oracle.report.proved}), flush=True)
"""


class Version:
    """One checkout, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join(str(folder / part) for part in (".", "solvers", "grammars"))
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER], cwd=folder, env={**os.environ, "PYTHONPATH": path}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, **asked: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a version of udcp_dsl ended while it was asked {list(asked)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def rows_of(spec: Path, loss: udcp.Loss, n: int) -> np.ndarray[Any, Any]:
    if spec.parent.name == "languages":
        from udcp_dsl.datasets import languages

        data = languages()
        picked = np.random.default_rng(0).choice(len(data), n, replace=False)
        return np.asarray(data.probs_normalised[picked], dtype=np.float64)
    return np.random.default_rng(0).dirichlet(np.full(loss.K, 0.3), n)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the earlier version")
    parser.add_argument("--n", type=int, default=8, help="rows of each loss")
    options = parser.parse_args()
    now, before = Version(ROOT), Version(options.before.resolve())
    found = []
    for spec in sorted(ROOT.glob("specs/*/*.loss")):
        if not (options.before / spec.relative_to(ROOT)).exists():
            continue
        loss = udcp.load(spec)
        versions = [v.ask(spec=str(spec), loss=loss.name)["version"] for v in (now, before)]
        rng, took, differ = np.random.default_rng(1), [], 0
        for p in rows_of(spec, loss, options.n):
            y = int(rng.choice(loss.K, p=p / p.sum()))
            one, other = (v.ask(p=p.tolist(), y=y) for v in (now, before))
            took.append((one["ms"], other["ms"]))
            differ += one["score"] != other["score"]
        ms = np.array(took).mean(axis=0)
        found.append({"spec": str(spec.relative_to(ROOT)), "K": loss.K, "rows": options.n, "ms": ms[0],
                      "ms_before": ms[1], "ratio": ms[0] / ms[1], "scores_that_differ": differ})  # fmt: skip
        print(f"{spec.parent.name}/{spec.stem:10} K {loss.K:4}  {ms[1]:9.2f} -> {ms[0]:8.2f} ms  "
              f"{ms[0] / ms[1]:.3f}  {differ} of {options.n} scores differ", flush=True)  # fmt: skip
    for version in (now, before):
        version.close()
    whole = sum(r["ms"] for r in found) / sum(r["ms_before"] for r in found)
    print(f"{versions[1]} -> {versions[0]}: mean time a row over the losses {whole:.3f} of what it was")
    write(RESULTS, json.dumps({"at_most": AT_MOST, "ratio": whole, "versions": versions, "results": found}, indent=2))
    return 0 if whole <= AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
