"""Formats by extension, and atomic writing: a file appears under its name only when it is complete."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, install_hint

PathLike: TypeAlias = str | os.PathLike[str]

ARROW = (".parquet", ".arrow", ".feather")


def known_ending(file: Path, known: Sequence[str]) -> str:
    """The ending of a file, in lower case; refuses an unknown one."""
    ending = file.suffix.lower()
    if ending not in known:
        raise InputError(f"{file}: unknown extension {ending!r}; known: {', '.join(known)}")
    return ending


def require_pyarrow(ending: str) -> Any:
    """pyarrow, which reads and writes files with this ending; if it is missing, the error says how to install it."""
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f"{ending} files need pyarrow: {install_hint('tables')}") from error
    return pyarrow


def check_writable(path: PathLike) -> None:
    """Raise the error that `atomic_write` would raise, before there is anything to write."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise InputError(f"{path}: cannot be written: it is not a regular file")
    try:
        _made_beside(target).unlink()
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _made_beside(target: Path) -> Path:
    """Create an empty temporary file in the folder of the target."""
    temporary = target.parent / f".udcp-{secrets.token_hex(8)}.tmp"
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return temporary


@contextmanager
def atomic_write(path: PathLike) -> Iterator[Path]:
    """A temporary file in the folder of `path`, renamed to it at the end of the block, or removed if that raises.

    A file that was there before keeps its permissions; a new one gets the usual ones.
    """
    target = Path(os.path.realpath(path))  # a symbolic link stays; the file that it points to is replaced
    if target.exists() and not target.is_file():
        raise InputError(f"{path}: cannot be written: it is not a regular file")
    try:
        temporary = _made_beside(target)
        try:
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            yield temporary
            descriptor = os.open(temporary, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def growing_array(file: Path, dtype: np.dtype[Any]) -> Iterator[Callable[[npt.NDArray[Any]], None]]:
    """A new .npy file of this dtype, with a function that appends a block of rows."""
    with file.open("wb") as out:
        rows, K = 0, 0

        def header() -> None:
            # numpy pads the header so that the first dimension can grow, so it can be overwritten at the end.
            out.seek(0)
            np.lib.format.write_array_header_1_0(out, {"descr": dtype.str, "fortran_order": False, "shape": (rows, K)})

        def append(block: npt.NDArray[Any]) -> None:
            nonlocal rows, K
            K = block.shape[1]
            if not rows:
                header()
            out.write(np.ascontiguousarray(block, dtype=dtype).data)
            rows += len(block)

        yield append
        header()
