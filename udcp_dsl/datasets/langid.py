"""The pretrained language classifier of py3langid, over many texts at once.

Naive Bayes over byte n-grams: an automaton walks the bytes and counts features, z = log(1 + counts) W + b. py3langid
calls softmax(z / sqrt(bytes)) normalised, which is underconfident; softmax(z) itself is overconfident. Two languages
have two columns each, one per script, whose probabilities are added.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, install_hint

_CHECKED = 32  # texts on which our probabilities are compared with the package's own
_TOLERANCE = 1e-4  # the package multiplies in half precision


@dataclass(frozen=True)
class Identifier:
    """The model of the installed py3langid."""

    model: Any

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The distinct codes, in the order of the model."""
        return tuple(dict.fromkeys(self.model.nb_classes))

    def probabilities(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
        """The normalised and the raw probabilities of the texts, each (n, K)."""
        encoded = [_encoded(text) for text in texts]
        scores = self._scores(encoded)
        lengths = np.array([max(1, len(text)) for text in encoded])
        normalised = self._merged_softmax(scores / np.sqrt(lengths)[:, None]).astype(np.float32)
        self._compare(texts[:_CHECKED], normalised[:_CHECKED])
        return normalised, self._merged_softmax(scores)

    def _scores(self, encoded: Sequence[bytes]) -> npt.NDArray[np.float64]:
        from scipy.sparse import csr_array

        moves, output = self.model.tk_nextmove, self.model.tk_output
        rows = [row << 8 for row in self.model.tk_row]  # states with equal transitions share a row of 256
        features, ends = array("q"), [0]
        for text in encoded:
            state = 0
            for byte in text:
                state = moves[rows[state] + byte]
                feature = output[state]
                if feature >= 0:
                    features.append(feature)
            ends.append(len(features))
        weights = self.model.nb_ptc.astype(np.float32)
        ones = np.ones(len(features), np.float32)
        counts = csr_array((ones, np.array(features), np.array(ends)), shape=(len(encoded), len(weights)))
        counts.sum_duplicates()
        counts.data = np.log1p(counts.data)
        scores = np.asarray(counts @ weights + self.model.nb_pc, dtype=np.float64)
        scores[np.diff(ends) == 0] = 0.0  # without a known feature, all columns are equally likely
        return scores

    def _merged_softmax(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        merge = np.array(self.model.nb_classes)[:, None] == np.array(self.labels)
        return np.asarray(p @ merge.astype(np.float64))

    def _compare(self, texts: Sequence[str], ours: npt.NDArray[np.float32]) -> None:
        for text, row in zip(texts, ours, strict=True):
            theirs = dict(self.model.rank(text))
            if max(abs(theirs[label] - p) for label, p in zip(self.labels, row, strict=True)) > _TOLERANCE:
                raise InputError(
                    "the installed py3langid scores texts differently from 0.4: pip install py3langid==0.4.0"
                )


def load_identifier() -> Identifier:
    """Load the classifier; InputError says how to install it if it is missing or too old."""
    try:
        from py3langid import langid
    except ImportError:
        raise InputError(f"the classifier comes from py3langid: {install_hint('demo')}") from None
    if not hasattr(langid.LanguageIdentifier, "from_model_file"):
        raise InputError("the installed py3langid is older than 0.4: pip install -U py3langid")
    return Identifier(langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True))


def _encoded(text: str) -> bytes:
    """The bytes of a text in the form that the model was trained on: composed, and not all in capitals."""
    return unicodedata.normalize("NFC", text.lower() if text.isupper() else text).encode("utf-8")
