"""Softmax regression on tf-idf features of short texts: log counts of words, weighted by rarity.

It takes a few lines of numpy and scipy and is the same on every machine up to rounding: a fixed number of full-batch
steps of Adam from zero. Besides a word, its first letters are a feature, so that endings matter less.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_WORD = re.compile(r"[a-z0-9]+")
_STEM = 5

Floats = npt.NDArray[np.float32]


class TextClassifier:
    """Trained by `fit`: the words it knows, how rare they are, and a weight for each word and class."""

    def __init__(self, words: dict[str, int], rarity: Floats, weights: Floats, bias: Floats) -> None:
        self._words = words
        self._rarity = rarity
        self._weights = weights
        self._bias = bias

    @staticmethod
    def fit(
        texts: Sequence[str], y: npt.NDArray[np.int64], classes: int, *, steps: int = 60, penalty: float = 1e-5
    ) -> TextClassifier:
        """Softmax regression with a squared penalty, on the texts and their classes 0 .. classes - 1."""
        words: dict[str, int] = {}
        for text in texts:
            for token in _tokens(text):
                words.setdefault(token, len(words))
        n, d = len(texts), len(words)
        seen = np.zeros(d)
        for text in texts:
            seen[[words[token] for token in set(_tokens(text))]] += 1
        rarity = (np.log((1 + n) / (1 + seen)) + 1).astype(np.float32)
        found = TextClassifier(words, rarity, np.zeros((d, classes), np.float32), np.zeros(classes, np.float32))
        A = found._features(texts)
        back = A.T.tocsr()
        truth = np.zeros((n, classes), np.float32)
        truth[np.arange(n), y] = 1
        rate, first, second = np.float32(0.3), np.float32(0.9), np.float32(0.99)
        moments = [[np.zeros_like(w), np.zeros_like(w)] for w in (found._weights, found._bias)]
        for step in range(1, steps + 1):
            left = (_softmax(A @ found._weights + found._bias) - truth) / np.float32(n)
            slopes = (back @ left + np.float32(penalty) * found._weights, left.sum(axis=0))
            fade = np.float32(np.sqrt(1 - second**step) / (1 - first**step))
            for w, slope, (mean, square) in zip((found._weights, found._bias), slopes, moments, strict=True):
                mean += (1 - first) * (slope - mean)
                square += (1 - second) * (slope * slope - square)
                w -= rate * fade * mean / (np.sqrt(square) + np.float32(1e-8))
        return found

    def probabilities(self, texts: Sequence[str]) -> Floats:
        """Probabilities, (n, classes); those of a text without a known word depend on the bias alone."""
        return _softmax((self._features(texts) @ self._weights + self._bias).astype(np.float64))

    def _features(self, texts: Sequence[str]) -> Any:
        from scipy.sparse import csr_matrix

        rows, columns, values = [], [], []
        for i, text in enumerate(texts):
            at, many = np.unique([self._words[t] for t in _tokens(text) if t in self._words], return_counts=True)
            weights = (1 + np.log(many)) * self._rarity[at.astype(np.int64)]
            rows += [i] * len(at)
            columns += at.tolist()
            values += (weights / max(float(np.sqrt((weights**2).sum())), 1e-12)).tolist()
        shape = (len(texts), len(self._words))
        return csr_matrix((np.array(values, np.float32), (rows, columns)), shape=shape)


def _tokens(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return words + [f"{word[:_STEM]}*" for word in words]


def _softmax(scores: npt.NDArray[Any]) -> Floats:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)
