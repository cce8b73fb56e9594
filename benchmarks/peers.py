"""Prediction sets by ours and by other libraries on the same rows: time as a ratio to np.argsort, size, coverage, cost.

    python benchmarks/peers.py [--n 4000] [--k 1000]

MAPIE, puncc, crepes and TorchCP are measured where they are installed (`pip install mapie puncc crepes torchcp`); each
gets the same float32 probabilities, n rows to calibrate on and n rows to predict. Two problems: drawn probabilities of
k labels with true labels drawn from them, and the classifier of languages, where p is not the truth. No library but
ours knows of the cost. Times are the least of some runs, each method beside an argsort of its own moment. Writes
benchmarks/results/peers.json and peers.svg, and, where all are installed, the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rivals.library_worker import Given
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_dsl.datasets.kept_rows import language_losses
from udcp_dsl.files import atomic_write

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- peers: made by benchmarks/peers.py -->", "<!-- end of peers -->"
ALPHA = 0.1

Masks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to calibrate on and rows to predict, with their true labels, and what a set costs."""

    name: str
    loss: udcp.Loss
    P: NDArray[np.float32]
    y: NDArray[np.int64]
    Q: NDArray[np.float32]
    z: NDArray[np.int64]


# Calibrates and predicts; then what it gave is made into masks, which is not timed.
Job = tuple[Callable[[], Any], Callable[[Any], Masks]]
Peer = Callable[[Problem], Job]


def drawn(n: int, k: int) -> Problem:
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3.0, size=(2 * n, k)).astype(np.float32)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    P = weights / weights.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(k, p=p / p.sum()) for p in P.astype(np.float64)])
    families = ", ".join(f"f{i}: {{ {10 * i}..{min(10 * i + 9, k - 1)} }}" for i in range(-(-k // 10)))
    loss = udcp.loads(f"labels 0..{k - 1}  categories F {{ {families} }}  loss families = count(F) + 0.01 * size")
    return Problem(f"drawn, K = {k}", loss, P[:n], y[:n], P[n:], y[n:])


def languages(n: int) -> Problem:
    data = udcp.datasets.languages()
    rows = np.random.default_rng(0).permutation(len(data.y))[: 2 * n]
    P, y = data.probs_normalised[rows].astype(np.float32), data.y[rows]
    return Problem("languages, K = 140", language_losses()[0], P[:n], y[:n], P[n:], y[n:])


def ours(oracle: str, **options: object) -> Peer:
    def peer(on: Problem) -> Job:
        def job() -> Masks:
            predictor = udcp.SetPredictor(on.loss, oracle, options=options, alpha=ALPHA, repair=None)  # as its peers
            return predictor.calibrate(on.P, on.y).predict_set(on.Q).mask

        return job, np.asarray

    return peer


def mapie(score: str, last: bool | str = True) -> Peer:
    def peer(on: Problem) -> Job:
        from mapie.classification import SplitConformalClassifier
        from sklearn.base import ClassifierMixin

        class Estimator(Given, ClassifierMixin): ...

        def job() -> Any:
            model = SplitConformalClassifier(
                Estimator(on.P.shape[1]), confidence_level=1 - ALPHA, conformity_score=score, prefit=True
            )
            fitted = model.conformalize(on.P, on.y)
            return fitted.predict_set(on.Q, conformity_score_params={"include_last_label": last})[1]

        return job, lambda sets: np.asarray(sets[:, :, 0])

    return peer


def puncc(score: str) -> Peer:
    def peer(on: Problem) -> Job:
        import deel.puncc.classification as methods
        from deel.puncc.api.prediction import BasePredictor

        class Identity(BasePredictor):  # type: ignore[misc]  # untyped
            def predict(self, X: NDArray[np.float32], **_: Any) -> NDArray[np.float32]:
                return X

        def job() -> Any:
            drawing = {} if score == "LAC" else {"rand": False}
            model = getattr(methods, score)(Identity(None, is_trained=True), train=False, **drawing)
            model.fit(X_calib=on.P, y_calib=on.y)
            return model.predict(on.Q, alpha=ALPHA)[1]

        def masks(sets: Any) -> Masks:
            found = np.zeros(on.Q.shape, dtype=bool)
            for row, labels in zip(found, sets, strict=True):
                row[np.asarray(labels, dtype=np.int64)] = True
            return found

        return job, masks

    return peer


def crepes(on: Problem) -> Job:
    from crepes import ConformalClassifier
    from crepes.extras import hinge

    def job() -> Any:
        model = ConformalClassifier()
        model.fit(hinge(on.P, np.arange(on.P.shape[1]), on.y))
        return model.predict_set(hinge(on.Q), confidence=1 - ALPHA, smoothing=False)

    return job, lambda sets: np.asarray(sets, dtype=bool)


def torchcp(score: str) -> Peer:
    def peer(on: Problem) -> Job:
        import torch
        import torchcp.classification.score as methods
        from torchcp.classification.predictor import SplitPredictor

        logits, truth, new = (
            torch.log(torch.from_numpy(on.P)),
            torch.from_numpy(on.y),
            torch.log(torch.from_numpy(on.Q)),
        )

        def job() -> Any:
            made = methods.LAC() if score == "LAC" else methods.APS(randomized=False, score_type="softmax")
            model = SplitPredictor(made)
            model.calculate_threshold(logits, truth, ALPHA)
            return model.predict_with_logits(new)

        return job, lambda sets: np.asarray(sets, dtype=bool)

    return peer


# Library, method, package, how.
PEERS: tuple[tuple[str, str, str, Peer], ...] = (
    ("udcp_dsl", "`lac`", "udcp_dsl", ours("lac")),
    ("MAPIE", "LAC", "mapie", mapie("lac")),
    ("crepes", "hinge (LAC)", "crepes", crepes),
    ("puncc", "LAC", "puncc", puncc("LAC")),
    ("TorchCP", "LAC", "torchcp", torchcp("LAC")),
    ("udcp_dsl", "`base` (APS)", "udcp_dsl", ours("base")),
    ("MAPIE", "APS, last label in", "mapie", mapie("aps")),
    ("puncc", "APS", "puncc", puncc("APS")),
    ("TorchCP", "APS", "torchcp", torchcp("APS")),
    ("udcp_dsl", "`base`, random (APS as published)", "udcp_dsl", ours("base", mass="random")),
    ("MAPIE", "APS, randomized", "mapie", mapie("aps", "randomized")),
    ("udcp_dsl", "`base`, through (the paper's)", "udcp_dsl", ours("base", mass="through")),
    ("udcp_dsl", "`greedy`", "udcp_dsl", ours("greedy")),
    ("udcp_dsl", "`price`", "udcp_dsl", ours("price")),
)


def seconds(job: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least time of some runs, after one that is not counted, and what the job gave."""
    result, least = job(), float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = job()
        least = min(least, time.perf_counter() - start)
    return least, result


def measured(on: Problem, repeats: int) -> Iterator[dict[str, Any]]:
    """What each library came to; those that are not installed are left out."""
    for library, method, package, peer in PEERS:
        try:
            number = version(package)
            job, as_masks = peer(on)
        except (ImportError, PackageNotFoundError):
            continue
        floor, _ = seconds(lambda: (np.argsort(on.P, axis=1), np.argsort(on.Q, axis=1)), repeats)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            taken, found = seconds(job, repeats)
        masks = as_masks(found)
        yield {
            "problem": on.name,
            "library": library,
            "version": number,
            "method": method,
            "ratio": round(taken / floor, 2),
            "size": round(float(masks.sum(axis=1).mean()), 3),
            "empty": round(float((~masks.any(axis=1)).mean()), 4),
            "coverage": round(float(masks[np.arange(len(on.z)), on.z].mean()), 4),
            "cost": round(float(on.loss.batch(masks).mean()), 3),
        }


def shown(content: dict[str, Any]) -> str:
    """The table of docs/benchmarks.md: the classifier's sets, and the time on the drawn rows."""
    drawn_name, real_name = dict.fromkeys(row["problem"] for row in content["rows"])
    times = {(row["library"], row["method"]): row["ratio"] for row in content["rows"] if row["problem"] == drawn_name}
    lines = ["| library, method | mean size | empty | coverage | mean cost | time |", "|---|---|---|---|---|---|"]
    for row in content["rows"]:
        if row["problem"] == real_name:
            number = "" if row["library"] == "udcp_dsl" else f" {row['version']}"
            figures = f"{row['size']:.2f} | {row['empty']:.1%} | {row['coverage']:.3f} | {row['cost']:.2f}"
            taken = f"{times[row['library'], row['method']]:.2f}"
            lines.append(f"| {row['library']}{number}, {row['method']} | {figures} | {taken} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--k", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for on in (drawn(options.n, options.k), languages(options.n)):
        table = Table(title=f"{on.name}, {options.n} + {options.n} rows, alpha {ALPHA}, loss {on.loss.name}")
        for column in ("library", "method", "x argsort", "size", "empty", "coverage", "cost"):
            table.add_column(column, justify="left" if column in ("library", "method") else "right")
        for row in measured(on, options.repeats):
            rows.append(row)
            figures = (f"{row['ratio']:.2f}", f"{row['size']:.2f}", f"{row['empty']:.1%}", f"{row['coverage']:.3f}")
            table.add_row(f"{row['library']} {row['version']}", row["method"], *figures, f"{row['cost']:.2f}")
        Console().print(table)
    content = {"n": options.n, "k": options.k, "alpha": ALPHA, "rows": rows}
    write(RESULTS / "peers.json", json.dumps(content, indent=1) + "\n")
    if len(rows) == 2 * len(PEERS):
        write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, shown(content)))
    aps = [row for row in rows if "APS" in row["method"] and row["problem"] == f"drawn, K = {options.k}"]
    plot({f"{row['library']} {row['method']}": float(row["ratio"]) for row in aps}, options.n, options.k)


def plot(ratios: dict[str, float], n: int, k: int) -> None:
    """A bar a library, into results/peers.svg."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 0.6 + 0.5 * len(ratios)), layout="constrained")
    colours = ["#1b6ca8" if name.startswith("udcp_dsl") else "#b0b7bf" for name in ratios]
    bars = axes.barh(list(ratios), list(ratios.values()), color=colours)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(f"time of calibrate + predict, x np.argsort ({n} + {n} rows, K = {k})")
    axes.spines[["top", "right"]].set_visible(False)
    with atomic_write(RESULTS / "peers.svg") as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
