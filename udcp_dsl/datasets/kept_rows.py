"""Classifiers that come with the package as arrays: their outputs for many rows, stored as logits in steps of 1/64.

A softmax in float64 turns these into probabilities, so that every row sums to 1; they are within one percent of the
classifier's own. Built by benchmarks/classifiers, which needs Node; reading them needs nothing.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from udcp_dsl.datasets.cache import TrueRows
from udcp_dsl.diagnostics import InputError
from udcp_dsl.loss import Loss, load, loads
from udcp_dsl.rows.columns import NamedPositions

_HERE = Path(__file__).parent
# A wheel has the examples of the repository's specs/ in this package; a checkout has them at its root.
_FOLDERS = (_HERE / "spec_files", _HERE.parents[1] / "specs")

_DIGITS = """
# Digits by the strokes that they are written with: those of a kind are easily taken for each other.
labels 0..9
hierarchy strokes { round { 0, 6, 8, 9 }, open { 2, 3, 5 }, straight { 1, 4, 7 } }
loss kinds = count(strokes.level(1)) + 0.01 * size
loss apart = diameter(strokes) + 0.01 * size
"""


def language_losses() -> tuple[Loss, Loss]:
    """For `languages`: the number of branches of the language tree in a set, and the diameter of the set in it.

    >>> [loss.name for loss in language_losses()]
    ['branches', 'spread_out']
    """
    folder = next((folder / "languages" for folder in _FOLDERS if (folder / "languages").is_dir()), None)
    if folder is None:
        raise InputError("the specs of the languages are not part of this installation: install udcp_dsl again")
    return load(folder / "branches.loss"), load(folder / "diameter.loss")


def language_names() -> dict[str, str]:
    """The names of the languages, by their codes, which are the labels.

    >>> language_names()["sq"]
    'Albanian'
    """
    table = language_losses()[0].files["languages.csv"].decode("utf-8")
    return {row["code"]: row["name"] for row in csv.DictReader(table.splitlines())}


def digit_losses() -> tuple[Loss, Loss]:
    """For `digits`: the kinds of strokes in a set, and how far apart its digits are.

    >>> [loss.name for loss in digit_losses()]
    ['kinds', 'apart']
    """
    return loads(_DIGITS, loss="kinds", name="digits.loss"), loads(_DIGITS, loss="apart", name="digits.loss")


def example_specs() -> dict[str, Path]:
    """The worked examples that come with the package, by name: `folder/spec`.

    >>> "dermatology/triage" in example_specs()
    True
    """
    folder = next((folder for folder in _FOLDERS if (folder / "languages").is_dir()), None)
    found = [] if folder is None else sorted(folder.glob("*/*.loss"))
    return {f"{path.parent.name}/{path.stem}": path for path in found}


_FOLDER = Path(__file__).parent / "arrays"
_STEPS = 64


@dataclass(frozen=True, eq=False)
class KeptRows(TrueRows):
    """Rows that come with the package, in random order, so that any slice is a fair sample.

    Attributes
    ----------
    probs : array, shape (n, K)
        Probabilities.
    y : array of int, shape (n,)
        True labels, as positions that know their names: `calibrate` and `evaluate` match them by name.
    labels : tuple of str
        The labels, in the order of the example's spec.
    origin : str
        What classified what.
    """

    probs: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    origin: str


def source_code(seed: int = 0) -> KeptRows:
    """VS Code's language detector on 4,905 snippets in 54 languages; it is right for 81 % of them.

    There are at most 5 snippets per file and 200 per language. The package holds the network's probabilities, not the
    snippets.

    Parameters
    ----------
    seed : int, default 0
        Random seed for the order of the rows.

    Returns
    -------
    KeptRows
        Probabilities and true labels.

    Examples
    --------
    >>> data = source_code()
    >>> data.probs.shape, data.labels[data.y[0]] in data.labels
    ((4905, 54), True)
    """
    origin = "@vscode/vscode-languagedetection 1.0.23 on snippets of 25 lines"
    return _load("source_code", "code/languages", origin, seed)


def icons(seed: int = 0) -> KeptRows:
    """A softmax regression on 5,736 drawings of icons under 320 names; it is right for 73 % of them.

    It was trained on icons by other authors. The truth is the name that the author gave, so that `mail` for an
    `envelope` is a mistake.

    Parameters
    ----------
    seed : int, default 0
        Random seed for the order of the rows.

    Returns
    -------
    KeptRows
        Probabilities and true labels.

    Examples
    --------
    >>> data = icons()
    >>> data.probs.shape, data.labels[0]
    ((5736, 320), 'edit')
    """
    origin = "softmax regression on icons of @iconify/json 2.2.535, on sets of other authors"
    return _load("icons", "icons/icons", origin, seed)


def _load(name: str, spec: str, origin: str, seed: int) -> KeptRows:
    """Load the stored outputs of a classifier, with the labels of an example; `seed` sets the order of the rows."""
    if seed < 0:
        raise InputError(f"seed is {seed}: give 0 or more")
    labels = load(example_specs()[spec]).labels
    try:
        with np.load(_FOLDER / f"{name}.npz", allow_pickle=False) as held:
            logits, y = (256.0 * held["high"] + held["low"]) / -_STEPS, held["y"]
    except OSError:
        raise InputError(f"the rows of {name} are not part of this installation: install udcp_dsl again") from None
    if logits.shape[1] != len(labels):
        raise InputError(
            f"the rows of {name} have {logits.shape[1]} labels, its spec has {len(labels)}: install udcp_dsl again"
        )
    powers = np.exp(logits)
    order = np.random.default_rng(seed).permutation(len(y))
    probs = (powers / powers.sum(axis=1, keepdims=True))[order]
    return KeptRows(probs, NamedPositions.of(y[order], labels), labels, origin)
