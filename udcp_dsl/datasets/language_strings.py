"""The data of the demo: a pretrained classifier of 140 languages (py3langid) on short strings (Django's catalogues)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from udcp_dsl.datasets.cache import Arrays, Cache, cached, packed, unpacked, version_of
from udcp_dsl.datasets.catalogues import entries
from udcp_dsl.datasets.langid import load_identifier
from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.columns import NamedPositions

_FORMAT = 1  # version of the cached file and of how it is built


@dataclass(frozen=True, eq=False)
class Languages:
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

    def __len__(self) -> int:
        return len(self.y)


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
    labels = unpacked(held["labels"])
    return Languages(
        probs_normalised=held["probs_normalised"],
        probs_raw=held["probs_raw"],
        y=NamedPositions.of(held["y"], labels),
        labels=labels,
        texts=unpacked(held["texts"]),
        catalogues=unpacked(held["catalogues"]),
        training_texts=unpacked(held["training_texts"]),
        training_y=held["training_y"],
        origin=f"py3langid {versions[0]} on the translation catalogues of Django {versions[1]}",
    )


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
        "labels": packed(identifier.labels),
        "texts": packed([entry.text for entry in chosen]),
        "catalogues": packed([entry.catalogue for entry in chosen]),
        "training_texts": packed([entry.text for entry in left]),
        "training_y": np.array([position[entry.code] for entry in left], np.int64),
    }
