"""Rows for specs/tickets: what a classifier of tickets might say, and where they belonged. Made up, from a seed.

A ticket is a point in a plane of words: near its queue, which lies near its team. The classifier knows where the queues
lie, and is surer of itself than it should be. So it mixes up queues of one team most, neighbouring teams next.

    python benchmarks/tickets.py rows        writes rows/probs.npy (2,000 x 30, float32) and rows/truth.npy
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import udcp_dsl as udcp
from udcp_dsl.files import atomic_write

SPEC = Path(__file__).parent.parent / "specs" / "tickets" / "tickets.loss"
ROWS, SEED = 2000, 0
_WORDS = 8  # dimensions
_TEAMS_APART, _QUEUES_APART, _SURER = 1.2, 0.7, 1.5

Matrix = NDArray[np.float32]
Labels = NDArray[np.int64]


def rows(n: int = ROWS, seed: int = SEED) -> tuple[Matrix, Labels]:
    """Probabilities (n, 30) in the order of the spec's labels, and the true queues as positions."""
    rng = np.random.default_rng(seed)
    teams = np.repeat(rng.normal(0, _TEAMS_APART, (6, _WORDS)), 5, axis=0)  # the spec lists queues team by team
    queues = teams + rng.normal(0, _QUEUES_APART, (30, _WORDS))
    often = rng.dirichlet(np.full(30, 2.0))
    y = rng.choice(30, size=n, p=often)
    tickets = queues[y] + rng.normal(0, 1, (n, _WORDS))
    logits = np.log(often) - 0.5 * _SURER * ((tickets[:, None] - queues) ** 2).sum(axis=2)
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (P / P.sum(axis=1, keepdims=True)).astype(np.float32), y.astype(np.int64)


def main(folder: Path) -> None:
    P, y = rows()
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (("probs", P), ("truth", y)):
        with atomic_write(folder / f"{name}.npy") as temporary, temporary.open("wb") as file:
            np.save(file, array)
    labels = udcp.load(SPEC).labels
    right = (P.argmax(axis=1) == y).mean()
    print(f"{len(P)} rows over {len(labels)} queues in {folder}; the likeliest is right in {right:.0%}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "rows"))
