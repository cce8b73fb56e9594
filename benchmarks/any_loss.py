"""`price` on losses without structure: milliseconds a row, the share proved, and the chain of programs beside it.

    python benchmarks/any_loss.py [--k 30,100,300,1000] [--n 20] [--solved 5] [--seconds 4] [--only NAME]

Forms that users write, and the specs of specs/ that read no inputs, on sure and unsure rows (`--n`, fewer from 200
labels on, four of dense diameters, radii and spreads; unsure rows under spreads of 1,000 labels take some ten seconds
each, for a truth that is bought after hundreds of others, and are left out).
Each is anchored where 9 of 10 rows are covered; `score_of` and `sets` are timed at that anchor and the threshold, CPU
time of one core, compiling aside. Up to 100 labels, `--solved` rows are scored by `ilp` with `program="price",
solver="HiGHS"`, the plain chain of integer programs, each in `--seconds`, and by `price` without an anchor, which gives
the same scores, ten times over, since a call for one row is mostly Python: the ratio is that of the times a row (`>`:
the chain did not end in time). Writes benchmarks/results/any_loss.json, any_loss.md and any_loss.svg; with `--only` the
losses whose name begins so are measured anew, and the other results kept.
"""

from __future__ import annotations

import argparse
import io
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from writing import write

import udcp_dsl as udcp
from udcp_dsl.predict.stages.anchor import find_anchor
from udcp_dsl.rows.rows import Rows

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FORMS = {
    "diameter of a matrix": "diameter(d) + 0.01 * size",
    "diameter of a matrix + count": "diameter(d) + count(F) + 0.01 * size",
    "radius of a matrix": "radius(d) + 0.01 * size",
    "spread of a hierarchy": "spread(h) + 0.01 * size",
    "spread of a matrix": "spread(d) + 0.01 * size",
    "mixed, count, tree diameter": "sum(c) + count(F) + 10 * (any(A) and any(B)) + diameter(h)",
    "radius of a hierarchy + count": "radius(h) + count(F)",
    "nodes of a hierarchy": "nodes(h) + 0.01 * size",
    "nodes of a hierarchy + count": "nodes(h) + count(h.level(1)) + 0.01 * size",
    "worst of four actions": "worst(acts) + 0.01 * size",
    "if": "if any(A) then 3 * count(F) else sum(c)",
    "max": "max(sum(c), 3 * count(F))",
    "all": "count(F) + 4 * all(few) + 0.01 * size",
    "size squared + count": "count(F) + 0.02 * size ^ 2",
    "step": "count(F) + 5 * (size > 5) + 0.01 * size",
    "convex of a count": "max(count(F) - 2, 0) ^ 2 + 0.1 * size",
    "handing over": "min(sum(c) + 2 * count(F) + diameter(h), 12)",
}
REPEATS = 10
KINDS = {"sure": 4.0, "unsure": 1.5}  # the scale of normal logits


def made(K: int, text: str) -> udcp.Loss:
    """A loss over K labels with a hierarchy, families, costs, a matrix and actions drawn once."""
    rng = np.random.default_rng(0)
    groups = np.array_split(np.arange(K), max(2, K // 10))
    tops = np.array_split(np.arange(len(groups)), max(2, len(groups) // 3))
    inner = [", ".join(f"g{g} {{ {groups[g][0]}..{groups[g][-1]} }}" for g in top) for top in tops]
    order = rng.permutation(K)
    family = [", ".join(map(str, sorted(part))) for part in np.array_split(order, len(groups))]
    points = rng.normal(size=(K, 3))
    matrix = np.round(np.sqrt(((points[:, None] - points) ** 2).sum(axis=-1)), 6)
    data = io.BytesIO()
    np.save(data, np.maximum(matrix, matrix.T))
    losses = "\n".join(f"{y},{','.join(f'{x:.2f}' for x in row)}" for y, row in enumerate(rng.uniform(0, 5, (K, 4))))
    spec = f"""
    labels 0..{K - 1}
    hierarchy h {{ {", ".join(f"t{i} {{ {part} }}" for i, part in enumerate(inner))} }}
    categories F {{ {", ".join(f"f{i}: {{ {part} }}" for i, part in enumerate(family))} }}
    costs c {{ {", ".join(f"{y}: {x:.2f}" for y, x in enumerate(rng.uniform(0.05, 1, K)))} }}
    category A {{ {", ".join(map(str, sorted(order[: K // 5])))} }}
    category B {{ {", ".join(map(str, sorted(order[K // 5 : 2 * K // 5])))} }}
    category few {{ {", ".join(map(str, sorted(order[:4])))} }}
    distance d from "d.npy"
    actions acts from "a.csv"
    loss l = {text}
    """
    files = {"d.npy": data.getvalue(), "a.csv": f"label,a,b,c,d\n{losses}".encode()}
    return udcp.loads(spec, files=files)


def losses(sizes: list[int]) -> Iterator[tuple[str, udcp.Loss]]:
    for path in sorted((ROOT / "specs").glob("*/*.loss")):
        loss = udcp.load(path)
        if not loss.inputs:
            yield f"specs/{path.parent.name}/{path.name}", loss
    for K in sizes:
        for name, text in FORMS.items():
            yield name, made(K, text)


def rows(K: int, kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose probabilities are true, and their labels."""
    rng = np.random.default_rng(1)
    logits = KINDS[kind] * rng.normal(size=(n, K))
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return P, np.array([rng.choice(K, p=p) for p in P])


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    answer = call()
    return answer, time.process_time() - began


def measured(loss: udcp.Loss, kind: str, n: int, solved: int, seconds: float) -> dict[str, Any]:
    """Milliseconds a row of both faces, the share proved, and how many times as long the programs take."""
    oracle: Any = udcp.make_oracle("price", loss)
    P, y = rows(loss.K, kind, n)
    anchor = find_anchor(oracle, Rows(loss.labels, P, y), 0.9) if oracle.wants_anchor else None
    at = oracle if anchor is None else udcp.make_oracle("price", loss, anchor=anchor)
    at.score_of(P[:1], y[:1])  # compiles
    at.sets(P[:1], 0.0 if anchor is None else anchor)
    scores, scoring = timed(lambda: at.score_of(P, y))
    proved = at.report.proved / at.report.rows if at.report.rows else 1.0
    tau = float(np.sort(scores)[int(0.9 * n) - 1])
    _, setting = timed(lambda: at.sets(P, tau))
    found = {"score_of": 1e3 * scoring / n, "sets": 1e3 * setting / n, "proved": proved, "ratio": None, "over": False}
    if solved and loss.K <= 100:
        program: Any = udcp.make_oracle("ilp", loss, program="price", solver="HiGHS", time_limit=seconds)
        again = np.tile(np.arange(solved), REPEATS)
        _, mine = timed(lambda: oracle.score_of(P[again], y[again]))
        _, theirs = timed(lambda: program.score_of(P[:solved], y[:solved]))
        found |= {"ratio": REPEATS * theirs / max(mine, 1e-9), "over": program.report.hit_limit > 0}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--k", default="30,100,300,1000")
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--solved", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", help="the beginning of a loss's name")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    kept: dict[tuple[str, int, str], dict[str, Any]] = {}
    if options.only:
        before = json.loads((options.out / "any_loss.json").read_text(encoding="utf-8"))["cases"]
        kept = {(case["loss"], case["K"], case["rows"]): case for case in before}
    found = []
    lines = [
        "| loss | K | rows | `score_of`, ms | `sets`, ms | proved | chain of programs, x |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, loss in losses([int(k) for k in options.k.split(",")]):
        for kind in KINDS:
            dense = loss.K >= 300 and ("matrix" in name or name.startswith("spread"))
            if loss.K >= 1000 and name.startswith("spread") and kind == "unsure":
                continue
            n = 4 if dense else max(4, min(options.n, 200 * options.n // loss.K))
            again = not options.only or name.startswith(options.only)
            case = {"loss": name, "K": loss.K, "rows": kind}
            case |= measured(loss, kind, n, options.solved, options.seconds) if again else kept[name, loss.K, kind]
            found.append(case)
            ratio = "" if case["ratio"] is None else f"{'> ' if case['over'] else ''}{case['ratio']:,.0f}"
            lines.append(
                f"| {name} | {loss.K} | {kind} | {case['score_of']:.3f} | {case['sets']:.3f} "
                f"| {case['proved']:.0%} | {ratio} |"
            )
            print(lines[-1], flush=True)
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    told = {"machine": machine, "n": options.n, "solved": options.solved, "seconds": options.seconds, "cases": found}
    write(options.out / "any_loss.json", json.dumps(told, indent=1) + "\n")
    write(options.out / "any_loss.md", "\n".join(lines) + "\n")
    drawn(found, options.out / "any_loss.svg")


def drawn(found: list[dict[str, Any]], path: Path) -> None:
    """Milliseconds a row of `score_of` on unsure rows, by form and number of labels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    forms = list(FORMS)[::-1]
    fig, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for K in sorted({case["K"] for case in found if case["loss"] in FORMS}):
        times = {case["loss"]: case["score_of"] for case in found if case["K"] == K and case["rows"] == "unsure"}
        known = [form for form in forms if form in times]
        axes.plot([times[form] for form in known], [forms.index(form) for form in known], "o", label=f"K = {K:,}")
    axes.set_yticks(range(len(forms)), forms)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds a row, score_of, unsure rows")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    fig.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
