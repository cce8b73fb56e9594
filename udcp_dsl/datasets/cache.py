"""Arrays that took seconds to build, kept in the user's cache folder as .npz. A damaged file is built again."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, install_hint
from udcp_dsl.files import atomic_write

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any] | tuple[str, ...]]
Cache: TypeAlias = str | os.PathLike[str] | bool | None  # a folder; None: the user's cache folder; False: nowhere


class TrueRows:
    """Rows with their true labels `y`."""

    y: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/udcp_dsl, or the cache folder of the platform."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "udcp_dsl"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "udcp_dsl" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "udcp_dsl"


def cached(cache: Cache, name: str, build: Callable[[], Arrays]) -> dict[str, Any]:
    """The arrays and texts of a file in `cache`; if it is missing or damaged, the arrays are built and written to it.

    If the folder cannot be written to, they are built again each time.
    """
    if cache is False:
        return dict(build())
    file = (cache_folder() if cache is None or cache is True else Path(cache)) / name
    try:
        with np.load(file, allow_pickle=False) as held:
            return {key: _unpacked(held[key]) for key in held.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        arrays = dict(build())
    content: dict[str, Any] = {key: _packed(value) for key, value in arrays.items()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as temporary, temporary.open("wb") as out:
            np.savez(out, **content)
    except (OSError, InputError):
        pass
    return arrays


def _packed(value: npt.NDArray[Any] | tuple[str, ...]) -> npt.NDArray[Any]:
    """Texts as bytes of JSON, because numpy would store each with the length of the longest."""
    return np.frombuffer(json.dumps(value).encode("ascii"), np.uint8) if isinstance(value, tuple) else value


def _unpacked(data: npt.NDArray[Any]) -> npt.NDArray[Any] | tuple[str, ...]:
    return tuple(json.loads(data.tobytes())) if data.dtype == np.uint8 else data


def version_of(package: str, needed_by: str, extra: str) -> str:
    """The version of an installed package; InputError says how to install it if it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise InputError(f"{needed_by} {package}: {install_hint(extra)}") from None
