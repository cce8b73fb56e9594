"""Calibrate and predict APS sets with ours and with other libraries, in one run, as ratios to np.argsort.

    python benchmarks/peers.py [--n 5000] [--k 1000]

MAPIE, puncc and TorchCP are measured where they are installed (`pip install mapie puncc torchcp`); each gets the same
float32 probabilities, n rows to calibrate on and n rows to predict, and computes the deterministic APS score.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import udcp_dsl as udcp
from udcp_dsl.prediction.files import atomic_write

RESULTS = Path(__file__).parent / "results"
ALPHA = 0.1

Job = Callable[[], NDArray[np.bool_]]


def problem(n: int, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """Probabilities with true labels drawn from them, and as many again to predict."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3.0, size=(2 * n, k)).astype(np.float32)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    P = weights / weights.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(k, p=p / p.sum()) for p in P[:n].astype(np.float64)])
    return P[:n], y, P[n:]


def ours(P: NDArray[np.float32], y: NDArray[np.int64], Q: NDArray[np.float32]) -> Job:
    loss = udcp.loads(f"labels 0..{P.shape[1] - 1}  loss l = size")
    return lambda: udcp.SetPredictor(loss, "base", alpha=ALPHA).calibrate(P, y).predict_set(Q).mask


class Given:
    """A fitted classifier whose input is its probabilities."""

    def __init__(self, k: int) -> None:
        self.classes_ = np.arange(k)
        self.n_features_in_ = k

    def fit(self, X: Any, y: Any) -> Given:
        return self

    def predict_proba(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return X

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.asarray(X.argmax(axis=1))

    def __sklearn_is_fitted__(self) -> bool:
        return True


def mapie(P: NDArray[np.float32], y: NDArray[np.int64], Q: NDArray[np.float32]) -> Job:
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import ClassifierMixin

    class Estimator(Given, ClassifierMixin): ...

    def job() -> NDArray[np.bool_]:
        model = SplitConformalClassifier(
            Estimator(P.shape[1]), confidence_level=1 - ALPHA, conformity_score="aps", prefit=True
        )
        sets = model.conformalize(P, y).predict_set(Q, conformity_score_params={"include_last_label": True})[1]
        return np.asarray(sets[:, :, 0])

    return job


def puncc(P: NDArray[np.float32], y: NDArray[np.int64], Q: NDArray[np.float32]) -> Job:
    from deel.puncc.api.prediction import BasePredictor
    from deel.puncc.classification import APS

    class Identity(BasePredictor):  # type: ignore[misc]  # untyped
        def predict(self, X: NDArray[np.float32], **_: Any) -> NDArray[np.float32]:
            return X

    def job() -> NDArray[np.bool_]:
        model = APS(Identity(None, is_trained=True), train=False, rand=False)
        model.fit(X_calib=P, y_calib=y)
        return np.asarray([len(s) > 0 for s in model.predict(Q, alpha=ALPHA)[1]])

    return job


def torchcp(P: NDArray[np.float32], y: NDArray[np.int64], Q: NDArray[np.float32]) -> Job:
    import torch
    from torchcp.classification.predictor import SplitPredictor
    from torchcp.classification.score import APS

    logits, truth, new = torch.log(torch.from_numpy(P)), torch.from_numpy(y), torch.log(torch.from_numpy(Q))

    def job() -> NDArray[np.bool_]:
        model = SplitPredictor(APS(randomized=False, score_type="softmax"))
        model.calculate_threshold(logits, truth, ALPHA)
        return np.asarray(model.predict_with_logits(new))

    return job


PEERS: dict[str, tuple[str, Callable[..., Job]]] = {
    "udcp_dsl `base`": ("udcp_dsl", ours),
    "MAPIE": ("mapie", mapie),
    "puncc": ("puncc", puncc),
    "TorchCP": ("torchcp", torchcp),
}


def seconds(job: Callable[[], object], repeats: int) -> float:
    job()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--k", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    P, y, Q = problem(options.n, options.k)
    floor = seconds(lambda: (np.argsort(P, axis=1), np.argsort(Q, axis=1)), options.repeats)
    table = Table("library", "version", "x argsort", title=f"APS, {options.n} + {options.n} rows, K = {options.k}")
    rows: dict[str, dict[str, object]] = {}
    for name, (package, make) in PEERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ratio = seconds(make(P, y, Q), options.repeats) / floor
            rows[name] = {"version": version(package), "ratio": round(ratio, 2)}
            table.add_row(name, version(package), f"{ratio:.2f}")
        except (ImportError, PackageNotFoundError) as error:
            table.add_row(name, "not installed", str(error)[:40])
    Console().print(table)
    content = {"n": options.n, "k": options.k, "alpha": ALPHA, "rows": rows}
    with atomic_write(RESULTS / "peers.json") as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")
    plot({name: float(str(row["ratio"])) for name, row in rows.items()}, options.n, options.k)


def plot(ratios: dict[str, float], n: int, k: int) -> None:
    """A bar a library, into results/peers.svg."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 0.6 + 0.5 * len(ratios)), layout="constrained")
    bars = axes.barh(list(ratios), list(ratios.values()), color=["#1b6ca8"] + ["#b0b7bf"] * (len(ratios) - 1))
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
