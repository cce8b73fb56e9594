"""A folder of sets: one file per input file (several for a large one), and a manifest that describes them.

A file under its final name is complete, so resuming means skipping the files that exist. The manifest is written before
the first of them. It records the predictor, alpha, the columns, and the input files with size and modification time, so
a folder never contains sets of two kinds. It is next to the folder, since some programs read all files of a folder,
even hidden ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.files import atomic_write, remove_abandoned, try_lock
from udcp_dsl.predict.saved import digest
from udcp_dsl.rows.columns import sample_texts
from udcp_dsl.rows.parts import Part, naming_file_in_errors
from udcp_dsl.rows.source import Source, read_column

if TYPE_CHECKING:
    from udcp_dsl.predict.predictor import SetPredictor

NAME = ".udcp.json"  # after the folder's name; inside the folder if nothing can be written beside it
_OLD_NAME = "_udcp.json"  # of version 1, in the folder
_FORMAT = "udcp_dsl sets in parts"
_VERSION = 3  # 1 and 2 have one part for each file, however large
_PIECE = 16  # batches of rows in a part: minutes of work at most
_WHAT = {
    "predictor": "by another predictor",
    "alpha": "at another alpha",
    "ending": "in files of another kind",
    "columns": "with other columns",
}


@dataclass(frozen=True)
class ResultFolder:
    """The parts of a folder, in the order of the input; `done` says which of them existed before.

    `source` has one part per file of sets. `plain_ids`: the folder was begun by version 0.2, which wrote all ids as
    text, in a column `id`.
    """

    folder: Path
    source: Source
    files: tuple[Path, ...]
    done: tuple[bool, ...]
    manifest: Path
    content: str  # of the manifest
    plain_ids: bool = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder; refuse if another process has begun to write other sets to it since it was opened."""
        with locked(self.folder):
            if self.manifest.read_text(encoding="utf-8") != self.content:
                raise InputError(f"{self.folder}: another process writes other sets to it: give a new folder")
            yield

    @property
    def remaining(self) -> tuple[int, ...]:
        """The positions of the parts that are still to be written."""
        return tuple(i for i, done in enumerate(self.done) if not done)


def open_folder(
    folder: str | Path, ending: str, predictor: SetPredictor, source: Source, level: Fraction
) -> ResultFolder:
    """Make the folder, or continue in one that was begun with the same predictor, level, columns and parts.

    Refuses a folder that contains anything else, or that another process is writing to. Removes what a killed run left
    behind. If an input file has the same size, but another time of modification, its sets are made again.
    """
    folder = Path(folder)
    kind = {"predictor": digest(predictor), "alpha": str(level), "ending": ending, "columns": _columns(source)}
    parts = {part.name: part.identity for part in source.parts}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            file, before = _manifest(folder)
            touched = set[str]()
            if before is not None:
                touched = _refuse_other_sets(file, before, kind, parts)
                parts = {**before["parts"], **parts}
            elif any(folder.iterdir()):
                raise InputError(f"{folder}: is not empty, and contains no sets of this command: give a new folder")
            remove_leftovers(folder)
            version = _VERSION if before is None else before["format_version"]
            content: dict[str, Any] = {"format": _FORMAT, "format_version": version, **kind, "parts": parts}
            content |= {} if version == 1 else {"folder": folder.stat().st_ino}
            if version >= 3:
                content["rows"] = _PIECE * source.batch_rows if before is None else before["rows"]
                source = source.in_pieces(content["rows"])
            files = tuple(folder / _file_name(part, ending) for part in source.parts)
            for part, path in zip(source.parts, files, strict=True):
                path.parent.mkdir(parents=True, exist_ok=True)
                if part.name in touched:
                    path.unlink(missing_ok=True)
            text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
            with atomic_write(file) as temporary:
                temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return ResultFolder(
        folder, source, files, tuple(path.exists() for path in files), file, text, plain_ids=version == 1
    )


def _file_name(part: Part, ending: str) -> str:
    """The name of the file for the sets of a part; for a piece, it says at which row the piece begins."""
    name = Path(part.name).with_suffix(ending)
    return str(name if part.stop is None else name.with_name(f"{name.stem}.from-{part.start:09}{ending}"))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, or refuse it if another process has locked it; a lock ends with its process.

    Does nothing if the system or the file system has no such locks.
    """
    if os.name == "nt":  # where a folder cannot be opened
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if try_lock(descriptor) is False:
            why = "another process is writing sets to it: wait until that has ended, or give a new folder"
            raise InputError(f"{folder}: {why}")
        yield
    finally:
        os.close(descriptor)


def _manifest(folder: Path) -> tuple[Path, dict[str, Any] | None]:
    """The path of the manifest, and its content: None if there is none, or only that of another folder of this name.

    A manifest beside an empty folder is ignored: the folder may be a new one, and may be begun with anything.
    """
    place = folder.resolve()
    beside = place.parent / f".{place.name}{NAME}"
    if beside.exists() and any(folder.iterdir()):
        before = _read(beside)
        if before.get("folder") == folder.stat().st_ino:
            return beside, before
    for file in (folder / NAME, folder / _OLD_NAME):
        if file.exists():
            return file, _read(file)
    return beside if os.access(place.parent, os.W_OK) else folder / NAME, None


def remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of killed processes, on whichever machine; the caller has locked the folder."""
    for leftover in folder.rglob(".udcp-*.tmp"):
        remove_abandoned(leftover, unless_locked=True)


def _columns(source: Source) -> dict[str, Any]:
    columns, names = source.wanted.columns, source.wanted.class_names
    per_row = {called: column for called, column in columns.per_row.items() if called != "true labels"}
    lists = {"lists": columns.column, "carried": list(columns.carry)}
    return {**per_row, **lists, "class names": None if names is None else list(names)}


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != _FORMAT or not isinstance(content["parts"], dict):
            raise ValueError("another format")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: is not a manifest of prediction sets: give a new folder") from error
    if content["format_version"] not in range(1, _VERSION + 1):
        raise InputError(f"{file}: was written by another version: give a new folder")
    return dict(content)


def _refuse_other_sets(file: Path, before: dict[str, Any], kind: dict[str, Any], parts: dict[str, Any]) -> set[str]:
    """Refuse to continue with other sets; returns the parts of the same size that were modified since."""
    for key, what in _WHAT.items():
        if before.get(key) != kind[key]:
            raise InputError(f"{file}: the sets in this folder are {what}: give a new folder, or remove this one")
    known = {name: before["parts"].get(name, identity) for name, identity in parts.items()}
    for name, identity in parts.items():
        if known[name]["bytes"] != identity["bytes"]:
            raise InputError(
                f"{file}: {name} has changed since prediction began: give a new folder, or remove this one"
            )
    return {name for name, identity in parts.items() if known[name] != identity}


def refuse_shared_ids(source: Source) -> None:
    """Refuse an id that is in two parts, and name both places; warn of an id that is twice in one part.

    Results are joined by id. Only the column of ids is read, before prediction; eight bytes per row are kept.
    """
    if "ids" in source.beside:
        sample_texts(source.beside["ids"], len(source.beside["ids"]))
    column = source.wanted.columns.id_column
    if column is None or source.parts[0].stream is not None:
        return
    seen: list[npt.NDArray[np.int64]] = []
    for which in range(len(source.parts)):
        names = _ids(source, which, column)
        hashes = np.sort(np.fromiter(map(hash, names), np.int64, len(names)))
        if any(_meet(hashes, others) for others in seen):
            for earlier in range(which):
                _refuse(source, earlier, which, column)
        while seen and len(seen[-1]) <= len(hashes):  # merged, so that each part is looked up in few arrays
            hashes = np.sort(np.concatenate([seen.pop(), hashes]))
        seen.append(hashes)


def _meet(some: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> bool:
    """Whether two sorted arrays share an entry."""
    if not len(others):  # of a part without rows
        return False
    place = np.searchsorted(others, some)
    return bool((others[np.minimum(place, len(others) - 1)] == some).any())


def _ids(source: Source, which: int, column: str) -> list[str]:
    values = read_column(source.parts[which].path, column)
    with naming_file_in_errors(source.parts[which].path):
        return sample_texts(values, len(values))


def _refuse(source: Source, first: int, second: int, column: str) -> None:
    """Refuse an id that is in both parts; the ids themselves are compared, as two ids may share a hash."""
    place = {name: row for row, name in reversed(list(enumerate(_ids(source, first, column))))}
    for row, name in enumerate(_ids(source, second, column)):
        if name in place:
            raise InputError(
                f"{source.parts[second].path}: sample ids: row {row} (counted from 0) has the id {name!r}, as has row "
                f"{place[name]} of {source.parts[first].path}: a join by id would mix up their sets"
            )
