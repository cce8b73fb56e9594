"""A classifier of icons: histograms of gradients and pixels, then softmax regression, by the name that an icon has.

Trained on the sets of some authors and judged on those of others, since an author's sets draw alike; pictures that
equal one of training, or an earlier one, to the pixel are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIZE, CELL, BINS = 48, 6, 9
TESTED = 6000  # about so many pictures are judged

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


def features(pictures: NDArray[np.uint8]) -> Floats:
    """(n, d): in cells of 6 x 6 the gradients by direction, each block of 2 x 2 cells at length 1, and the picture at a
    quarter of its size."""
    n = len(pictures)
    X = pictures.reshape(n, SIZE, SIZE).astype(np.float32) / 255
    down, right = np.gradient(X, axis=(1, 2))
    strength = np.hypot(down, right)
    turn = np.arctan2(down, right) % np.pi / np.pi * BINS
    low = np.floor(turn)
    part, low = turn - low, low.astype(np.int64) % BINS
    many = SIZE // CELL
    cells = np.zeros((n, many, many, BINS), np.float32)
    for b in range(BINS):
        share = strength * ((low == b) * (1 - part) + ((low + 1) % BINS == b) * part)
        cells[..., b] = share.reshape(n, many, CELL, many, CELL).sum(axis=(2, 4))
    blocks = np.concatenate([cells[:, i : many - 1 + i, j : many - 1 + j] for i in (0, 1) for j in (0, 1)], axis=3)
    blocks /= np.sqrt((blocks**2).sum(axis=3, keepdims=True)) + 0.1
    small = X.reshape(n, SIZE // 4, 4, SIZE // 4, 4).mean(axis=(2, 4))
    return np.concatenate([blocks.reshape(n, -1), small.reshape(n, -1)], axis=1)


def split(authors: list[str], pictures: NDArray[np.uint8], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Rows to train on and rows to judge, of different authors; the second in random order."""
    names = sorted(set(authors))
    rng.shuffle(names)
    chosen: set[str] = set()
    while sum(author in chosen for author in authors) < TESTED:
        chosen.add(names.pop())
    of_others = np.array([author not in chosen for author in authors])
    seen = {pictures[i].tobytes() for i in np.flatnonzero(of_others)}
    judged = []
    for i in np.flatnonzero(~of_others):
        picture = pictures[i].tobytes()
        if picture not in seen:
            seen.add(picture)
            judged.append(int(i))
    return np.flatnonzero(of_others), rng.permutation(judged)


def log_probabilities(train: Floats, y: Ints, judged: Floats, C: float = 30.0) -> NDArray[np.float64]:
    """What softmax regression on standardised features says of the judged."""
    from sklearn.linear_model import LogisticRegression

    mean, spread = train.mean(axis=0), train.std(axis=0) + 1e-3
    scale = spread * np.sqrt(train.shape[1])
    model = LogisticRegression(C=C, max_iter=60).fit((train - mean) / scale, y)
    return np.asarray(model.predict_log_proba((judged - mean) / scale), dtype=np.float64)
