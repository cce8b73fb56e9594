"""The strings of `languages` through a small torch network, trained on those that `languages` left over.

Hashed character n-grams -> mean of their embeddings -> dropout -> linear: quick to train, and stopped early on request,
for experiments in which the accuracy of the classifier varies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from udcp_dsl.datasets.language_strings import Languages, languages
from udcp_dsl.diagnostics import InputError
from udcp_dsl.torch import probabilities

_BUCKETS = 1 << 16
_SIZES = (1, 2, 3, 4)  # characters of an n-gram
_LONGEST = 100  # characters of a text that are looked at
_WIDTH = 64  # of an embedding
_DROPOUT = 0.2
_BATCH = 256
_RATE = 0.01
_HELD_OUT = 0.1  # of the training strings, to tell when to stop
_CHECK_EVERY = 10  # batches


@dataclass(frozen=True, eq=False)
class TorchTexts:
    """A trained model, its batches, and its probabilities for the strings of a `Languages`, row for row.

    `mc_probabilities(model, batches)` and `probabilities(model, batches)` take them as they are.
    """

    model: nn.Module
    batches: tuple[Tensor, ...]
    probs: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)


def texts_through_torch(
    data: Languages | None = None, *, epochs: float = 4, stop_at: float | None = None, seed: int = 0
) -> TorchTexts:
    """Train on `data.training_texts`, then classify `data.texts` (`languages()` by default).

    Training goes through the strings `epochs` times, a fraction allowed, or until a tenth of them that is held out is
    classified with an accuracy of `stop_at`. The result depends on `seed` and on the machine's arithmetic alone.
    """
    if not (math.isfinite(epochs) and epochs > 0) or (stop_at is not None and not 0 < stop_at <= 1):
        raise InputError(f"epochs is {epochs} and stop_at {stop_at}: give epochs above 0, and an accuracy up to 1")
    data = languages() if data is None else data
    ngrams, y = hashed_ngrams(data.training_texts), torch.from_numpy(data.training_y)
    held_out = slice(0, int(len(y) * _HELD_OUT))
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.EmbeddingBag(_BUCKETS + 1, _WIDTH, mode="mean", padding_idx=0, sparse=True),
            nn.Dropout(_DROPOUT),
            nn.Linear(_WIDTH, len(data.labels)),
        )
        optimizers = torch.optim.SparseAdam(list(model[0].parameters()), _RATE), torch.optim.Adam(model[2].parameters(), _RATE)
        checked = _batches(ngrams[held_out])
        for step, rows in enumerate(_training_rows(len(y), held_out.stop, epochs, rng)):
            if stop_at is not None and step % _CHECK_EVERY == 0 and _accuracy(model, checked, y[held_out]) >= stop_at:
                break
            loss = nn.functional.cross_entropy(model(_padded([ngrams[i] for i in rows])), y[rows])
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
    model.eval()
    batches = _batches(hashed_ngrams(data.texts))
    return TorchTexts(model, batches, probabilities(model, batches, "cpu", progress=False), data.y, data.labels)
