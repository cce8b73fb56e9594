"""The data of the demo: a pretrained classifier of 140 languages (py3langid) on short strings (Django's catalogues).

The true label is the language of the catalogue. A translation that equals its English source was not translated, and
is left out; the sources themselves are English. Placeholders and markup are removed.

py3langid is naive Bayes over byte n-grams: an automaton walks the bytes and counts features, z = log(1 + counts) W + b.
It calls softmax(z / sqrt(bytes)) normalised, which is underconfident; softmax(z) itself is overconfident. Two languages
have two columns each, one per script, whose probabilities are added.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.datasets.cache import Arrays, Cache, TrueRows, cached, version_of
from udcp_dsl.diagnostics import InputError, install_hint
from udcp_dsl.rows.columns import NamedPositions

# %(name)s, %s, %d, %%; {name}; <a href="...">, </a>; &nbsp;
_NO_LANGUAGE = re.compile(r"%\([^)]*\)[a-zA-Z]?|%[-#0-9.]*[a-zA-Z%]|\{[^}]*\}|<[^>]*>|&[a-z]+;")
_LITTLE_ENDIAN = b"\xde\x12\x04\x95"
_CODES = {"nb": "no"}  # Norwegian Bokmål, which the classifier knows as Norwegian


@dataclass(frozen=True)
class Entry:
    """One string: the code of its language, the text, and the catalogue that it is from, such as `admin/pt_BR`."""

    code: str
    text: str
    catalogue: str


def entries(codes: Collection[str]) -> list[Entry]:
    """Every distinct string of every language whose code is among `codes`, in the order of the catalogues' names.

    Dialects and scripts count as their language (pt_BR as pt, sr_Latn as sr); languages without a code are left out.
    """
    spec = find_spec("django")
    if spec is None or spec.origin is None:
        raise InputError(f"the catalogues come from Django: {install_hint('demo')}")
    root = Path(spec.origin).parent
    found: dict[tuple[str, str], str] = {}
    for file in sorted(root.rglob("locale/*/LC_MESSAGES/*.mo"), key=lambda file: file.relative_to(root).parts):
        locale, folder = file.parts[-3], file.parts[-5]
        language = locale.partition("_")[0]
        code = _CODES.get(language, language)
        for sources, translations in _messages(file.read_bytes()):
            english = {_text(source) for source in sources}
            for text in english:
                found.setdefault(("en", text), f"{folder}/en")
            for text in map(_text, translations):
                if text not in english and code in codes:
                    found.setdefault((code, text), f"{folder}/{locale}")
    return [
        Entry(code, text, catalogue)
        for (code, text), catalogue in found.items()
        if code in codes and any(ch.isalpha() for ch in text)
    ]


def _text(string: str) -> str:
    return " ".join(_NO_LANGUAGE.sub(" ", string).split())


def _messages(data: bytes) -> Iterator[tuple[list[str], list[str]]]:
    """The messages of a .mo file: the source (singular, perhaps plural) and its translation (in every form)."""
    order = "<" if data[:4] == _LITTLE_ENDIAN else ">"
    count, sources, translations = struct.unpack_from(f"{order}3I", data, 8)

    def string(table: int, i: int) -> str:
        length, start = struct.unpack_from(f"{order}2I", data, table + 8 * i)
        return data[start : start + length].decode("utf-8")

    for i in range(count):
        source = string(sources, i).rpartition("\x04")[2]  # the context before it distinguishes equal sources
        if source:  # the empty source has the header of the file
            yield source.split("\0"), string(translations, i).split("\0")


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


_FORMAT = 1  # version of the cached file and of how it is built


@dataclass(frozen=True, eq=False)
class Languages(TrueRows):
    """Strings in random order with the probabilities of a language identifier, and strings left over for training.

    Attributes
    ----------
    probs_normalised : array, shape (n, K)
        Underconfident probabilities.
    probs_raw : array, shape (n, K)
        Overconfident probabilities; a third of them are so small that they would be 0 in float32.
    y : array of int, shape (n,)
        True labels, as positions that know their names: `calibrate` and `evaluate` match them by name.
    labels : tuple of str
        Codes of the spec in specs/languages, in its order.
    texts, catalogues : tuple of str
        Each string, and where it is from, such as `admin/pt_BR`.
    training_texts, training_y
        Strings and labels that are left over for training.
    origin : str
        What classified what.
    """

    probs_normalised: npt.NDArray[np.float32]
    probs_raw: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    catalogues: tuple[str, ...]
    training_texts: tuple[str, ...]
    training_y: npt.NDArray[np.int64]
    origin: str


def languages(seed: int = 0, cache: Cache = None, *, rows: int = 30_000) -> Languages:
    """Language identification of Django's translated strings, by py3langid.

    The first call takes some seconds.

    Parameters
    ----------
    seed : int, default 0
        Random seed for the choice of strings.
    cache : path, bool or None, default None
        Folder to keep the result in; None means the user's cache folder, False nowhere.
    rows : int, default 30000
        Number of strings.

    Returns
    -------
    Languages
        Probabilities, true labels and texts.

    Raises
    ------
    InputError
        The extra `demo` is not installed, or a number is out of range.
    """
    if rows < 1 or seed < 0:
        raise InputError(f"rows is {rows} and seed is {seed}: give at least one row, and a seed of 0 or more")
    versions = [version_of(package, "the languages need", "demo") for package in ("py3langid", "Django")]
    name = f"languages-{_FORMAT}-py3langid-{versions[0]}-django-{versions[1]}-{rows}-{seed}.npz"
    held = cached(cache, name, lambda: _built(seed, rows))
    origin = f"py3langid {versions[0]} on the translation catalogues of Django {versions[1]}"
    return Languages(**{**held, "y": NamedPositions.of(held["y"], held["labels"])}, origin=origin)


def _built(seed: int, rows: int) -> Arrays:
    identifier = load_identifier()
    position = {label: i for i, label in enumerate(identifier.labels)}
    found = entries(position.keys())
    if rows > len(found):
        raise InputError(f"rows is {rows}, and the catalogues have {len(found)} strings")
    order = np.random.default_rng(seed).permutation(len(found))
    chosen, left = ([found[i] for i in part] for part in (order[:rows], order[rows:]))
    normalised, raw = identifier.probabilities([entry.text for entry in chosen])
    return {
        "probs_normalised": normalised,
        "probs_raw": raw,
        "y": np.array([position[entry.code] for entry in chosen], np.int64),
        "labels": tuple(identifier.labels),
        "texts": tuple(entry.text for entry in chosen),
        "catalogues": tuple(entry.catalogue for entry in chosen),
        "training_texts": tuple(entry.text for entry in left),
        "training_y": np.array([position[entry.code] for entry in left], np.int64),
    }
