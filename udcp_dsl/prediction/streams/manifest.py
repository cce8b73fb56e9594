"""A folder of sets: one part for each part of the input, and a manifest of what they are the sets of.

A part is whole as soon as it is there under its name, so that all there is to resuming is to leave out those that are.
The manifest is written before the first of them: it names the predictor, the level, the columns, and by size and time
of change the parts of the input, so that a folder never holds sets of two kinds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.files import atomic_write
from udcp_dsl.prediction.rows.source import Source
from udcp_dsl.prediction.saved import digest

if TYPE_CHECKING:
    from udcp_dsl.prediction.predictor import SetPredictor

NAME = "_udcp.json"
_FORMAT = "udcp_dsl sets in parts"
_VERSION = 1
_WHAT = {
    "predictor": "by another predictor",
    "alpha": "at another alpha",
    "ending": "in files of another kind",
    "columns": "with other columns",
}


@dataclass(frozen=True)
class Parts:
    """The parts of a folder, in the order of the input; `done` says which of them were there before."""

    folder: Path
    files: tuple[Path, ...]
    done: tuple[bool, ...]

    @property
    def left(self) -> tuple[int, ...]:
        """The positions of those that are still to be written."""
        return tuple(i for i, done in enumerate(self.done) if not done)


def open_folder(folder: str | Path, ending: str, predictor: SetPredictor, source: Source, level: Fraction) -> Parts:
    """Make the folder, or go on in one that was begun with the same predictor, level, columns and parts.

    Refuses a folder with anything else in it. What a run that was killed left behind is taken away.
    """
    folder = Path(folder)
    names = [str(Path(part.name).with_suffix(ending)) for part in source.parts]
    kind = {
        "predictor": digest(predictor),
        "alpha": str(level),
        "ending": ending,
        "columns": _columns(source),
    }
    parts = {part.name: part.identity for part in source.parts}
    file = folder / NAME
    try:
        if file.exists():
            before = _read(file)
            _refuse_another(file, before, kind, parts)
            parts = {**before["parts"], **parts}
        elif folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder}: is not empty, and holds no sets that were begun here: give a new folder")
        remove_leftovers(folder)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content = {"format": _FORMAT, "format_version": _VERSION, **kind, "parts": parts}
        with atomic_write(file) as temporary:
            temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    files = tuple(folder / name for name in names)
    return Parts(folder, files, tuple(path.exists() for path in files))


def remove_leftovers(folder: Path) -> None:
    """Take away what was being written by who was killed."""
    for leftover in folder.rglob(".udcp-*.tmp"):
        leftover.unlink(missing_ok=True)


def _columns(source: Source) -> dict[str, Any]:
    columns, names = source.wanted.columns, source.wanted.class_names
    lists = {"lists": columns.column, "carried": list(columns.carry)}
    return {**columns.per_row, **lists, "class names": None if names is None else list(names)}


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT or not isinstance(content["parts"], dict):
            raise ValueError("another format")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: is not the manifest of sets in parts: give a new folder") from error
    if content["format_version"] != _VERSION:
        raise InputError(f"{file}: was written by another version: give a new folder")
    return dict(content)


def _refuse_another(file: Path, before: dict[str, Any], kind: dict[str, Any], parts: dict[str, Any]) -> None:
    for key, what in _WHAT.items():
        if before.get(key) != kind[key]:
            raise InputError(f"{file}: the sets in this folder are {what}: give a new folder, or remove this one")
    for name, identity in parts.items():
        known = before["parts"].get(name)
        if known is not None and known != identity:
            raise InputError(
                f"{file}: {name} has changed since its sets were begun: give a new folder, or remove this one"
            )
