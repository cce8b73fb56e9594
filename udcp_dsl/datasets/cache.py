"""Arrays that took seconds to build, kept in the user's cache folder as .npz. A file that is damaged is built anew."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.files import atomic_write

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/udcp_dsl, or the platform's own place for what can be built again."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "udcp_dsl"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "udcp_dsl" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "udcp_dsl"


def cached(file: Path | None, build: Callable[[], Arrays]) -> Arrays:
    """The arrays of the file, or, if it is absent or damaged, those that are built, which are then written to it.

    A folder that cannot be written to costs time and nothing else.
    """
    if file is None:
        return build()
    try:
        with np.load(file, allow_pickle=False) as held:
            return {key: held[key] for key in held.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        arrays = build()
    content: dict[str, Any] = dict(arrays)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as temporary, temporary.open("wb") as out:
            np.savez(out, **content)
    except (OSError, InputError):
        pass
    return arrays
