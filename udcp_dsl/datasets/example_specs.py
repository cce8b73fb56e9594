"""The losses of the demo's data: specs that are part of the package, so that they do not need the repository."""

from __future__ import annotations

import csv
from pathlib import Path

from udcp_dsl.diagnostics import InputError
from udcp_dsl.loss import Loss, load, loads

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
