"""The data of the demo: a pretrained classifier of 140 languages (py3langid) on short strings (Django's catalogues)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from udcp_dsl.datasets.cache import Arrays, Cache, cached, packed, unpacked, version_of
from udcp_dsl.datasets.catalogues import entries
from udcp_dsl.datasets.langid import load_identifier
from udcp_dsl.diagnostics import InputError

_FORMAT = 1  # of the cached file, and of how it is made


@dataclass(frozen=True, eq=False)
class Languages:
    """n strings in random order, so that any slice is a fair sample; and those that were left over, for training.

    `labels` are the codes of the spec in specs/languages, in its order; `y` are positions in it. `catalogues` says
    where a string is from (`admin/pt_BR`), `origin` what classified what. The raw probabilities are so extreme that in
    float32 a third of them would be 0.
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
    """`rows` strings drawn by `seed`, classified twice: underconfident (normalised) and overconfident (raw).

    The result is kept in `cache`, a folder (None: the user's cache folder; False: nowhere), under the versions of both
    packages. Takes some seconds the first time.
    """
    if rows < 1 or seed < 0:
        raise InputError(f"rows is {rows} and seed is {seed}: give at least one row, and a seed of 0 or more")
    versions = [version_of(package, "the languages need", "demo") for package in ("py3langid", "Django")]
    name = f"languages-{_FORMAT}-py3langid-{versions[0]}-django-{versions[1]}-{rows}-{seed}.npz"
    held = cached(cache, name, lambda: _built(seed, rows))
    return Languages(
        probs_normalised=held["probs_normalised"],
        probs_raw=held["probs_raw"],
        y=held["y"],
        labels=unpacked(held["labels"]),
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
