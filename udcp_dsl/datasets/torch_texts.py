"""The strings of `languages` through a small torch network, trained on those that `languages` left over.

Hashed character n-grams -> mean of their embeddings -> dropout -> linear: quick to train, and stopped early on request,
for experiments in which the accuracy of the classifier varies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from udcp_dsl.datasets.cache import TrueRows
from udcp_dsl.datasets.language_strings import Languages, languages
from udcp_dsl.diagnostics import InputError
from udcp_dsl.torch import probabilities

_BITS = 15  # of the hash of an n-gram
_LONGEST_NGRAM = 4
_LONGEST_TEXT = 100  # characters of a text that are used
_WIDTH = 32  # of an embedding
_DROPOUT = 0.2
_RATE = 0.03
_BATCH = 256
_HELD_OUT = 0.1  # of the training strings, to tell when to stop
_CHECK_EVERY = 10  # steps


@dataclass(frozen=True, eq=False)
class TorchTexts(TrueRows):
    """A trained torch model, its batches, and its probabilities for the strings of a `Languages`, row for row.

    Attributes
    ----------
    model : torch.nn.Module
        The model.
    batches : tuple of Tensor
        Its inputs; `udcp.torch.probabilities(model, batches)` takes them as they are.
    probs : array, shape (n, K)
        Probabilities.
    y : array of int, shape (n,)
        True labels, as positions that know their names: `calibrate` and `evaluate` match them by name.
    labels : tuple of str
        The labels.
    """

    model: nn.Module
    batches: tuple[Tensor, ...]
    probs: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    labels: tuple[str, ...]


def texts_through_torch(
    data: Languages | None = None, *, epochs: float = 3, stop_at: float | None = None, seed: int = 0
) -> TorchTexts:
    """Train a small torch model to identify languages, and classify strings with it.

    On one machine the result depends on `data` and `seed` alone.

    Parameters
    ----------
    data : Languages, optional
        Training and test strings; by default `languages()`.
    epochs : float, default 3
        Number of passes over the training strings; a fraction is allowed.
    stop_at : float, optional
        Stop at this accuracy on a tenth of the training strings that is held out.
    seed : int, default 0
        Random seed.

    Returns
    -------
    TorchTexts
        Model, batches and probabilities.

    Raises
    ------
    InputError
        A number is out of range.
    """
    if not (math.isfinite(epochs) and epochs > 0) or (stop_at is not None and not 0 < stop_at <= 1):
        raise InputError(f"epochs is {epochs} and stop_at {stop_at}: epochs must be above 0, stop_at at most 1")
    data = languages() if data is None else data
    with _one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.EmbeddingBag((1 << _BITS) + 1, _WIDTH, mode="mean", padding_idx=0),
            nn.Dropout(_DROPOUT),
            nn.Linear(_WIDTH, len(data.labels)),
        )
        _train(model, data, epochs, stop_at, np.random.default_rng(seed))
        batches = _batches(_hashed_ngrams(data.texts))
        probs = probabilities(model, batches, "cpu", progress=False)
    return TorchTexts(model.eval(), batches, np.asarray(probs, np.float32), data.y, data.labels)


def _train(model: nn.Module, data: Languages, epochs: float, stop_at: float | None, rng: np.random.Generator) -> None:
    ngrams, y = _hashed_ngrams(data.training_texts), data.training_y
    held_out = int(len(y) * _HELD_OUT)
    watched = _batches(ngrams[:held_out])
    steps = math.ceil(epochs * (len(y) - held_out) / _BATCH)
    optimizer = torch.optim.Adam(model.parameters(), _RATE)
    for step, rows in zip(range(steps), _draws(held_out, len(y), rng)):  # noqa: B905  (the draws never end)
        if stop_at is not None and step % _CHECK_EVERY == 0:
            predicted = probabilities(model, watched, "cpu", progress=False).argmax(axis=1)
            if (predicted == y[:held_out]).mean() >= stop_at:
                return
        loss = nn.functional.cross_entropy(model(_padded([ngrams[i] for i in rows])), torch.from_numpy(y[rows]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def _draws(first: int, end: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.intp]]:
    """Batches of row numbers, in a new order for every pass."""
    while True:
        order = first + rng.permutation(end - first)
        for start in range(0, len(order), _BATCH):
            yield order[start : start + _BATCH]


def _hashed_ngrams(texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
    """For each text the hashes of its n-grams, 1 to 2^bits: polynomials of the code points, mixed by multiplication."""
    bounded = [f" {text[:_LONGEST_TEXT].lower()} " for text in texts]
    owner = np.repeat(np.arange(len(texts)), [len(text) for text in bounded])
    points = np.frombuffer("".join(bounded).encode("utf-32-le"), np.uint32).astype(np.uint64)
    rolling = np.zeros(len(points), np.uint64)
    owners, hashes = [], []
    for n in range(1, _LONGEST_NGRAM + 1):
        starts = len(points) - n + 1
        rolling = rolling[:starts] * np.uint64(1000003) + points[n - 1 :]
        inside = owner[:starts] == owner[n - 1 :]  # not across the end of a text
        mixed = (rolling[inside] + np.uint64(n)) * np.uint64(0x9E3779B97F4A7C15)
        owners.append(owner[:starts][inside])
        hashes.append((mixed >> np.uint64(64 - _BITS)).astype(np.int32) + 1)
    of = np.concatenate(owners)
    by_text = np.concatenate(hashes)[np.argsort(of, kind="stable")]
    return np.split(by_text, np.cumsum(np.bincount(of, minlength=len(texts)))[:-1])


def _batches(ngrams: Sequence[npt.NDArray[np.int32]]) -> tuple[Tensor, ...]:
    return tuple(_padded(ngrams[start : start + _BATCH]) for start in range(0, len(ngrams), _BATCH))


def _padded(ngrams: Sequence[npt.NDArray[np.int32]]) -> Tensor:
    """One row per text, padded with 0, which the model ignores."""
    rows = np.zeros((len(ngrams), max(map(len, ngrams))), np.int32)
    for row, hashes in zip(rows, ngrams, strict=True):
        row[: len(hashes)] = hashes
    return torch.from_numpy(rows)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch on one thread: steps take a millisecond, and on a busy machine several threads are ten times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
