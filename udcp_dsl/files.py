"""Formats by extension, and atomic writing: a file appears under its name only when it is complete."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, install_hint

PathLike: TypeAlias = str | os.PathLike[str]

_SLOTS = 8  # temporary files for one target at a time that a later process can find again

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
        with _made_beside(target) as temporary:
            temporary.unlink()
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def atomic_write(path: PathLike) -> Iterator[Path]:
    """A temporary file in the folder of `path`, renamed to it at the end of the block, or removed if that raises.

    A file that was there before keeps its permissions; a new one gets the usual ones. What killed processes left behind
    when they wrote the same file on this machine is removed.
    """
    target = Path(os.path.realpath(path))  # a symbolic link stays; the file that it points to is replaced
    if target.exists() and not target.is_file():
        raise InputError(f"{path}: cannot be written: it is not a regular file")
    try:
        with _made_beside(target) as temporary:
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
def _made_beside(target: Path) -> Iterator[Path]:
    """An empty temporary file in the folder of the target, locked in this block (except on Windows)."""
    slots = [] if os.name == "nt" else _slots(target)
    for path in slots:
        remove_abandoned(path)
    for path in [*slots, target.parent / f".udcp-{secrets.token_hex(8)}.tmp"]:
        descriptor = _created(path)
        if descriptor is not None:
            break
    else:
        raise FileExistsError(errno.EEXIST, "no name is free for a temporary file")
    if os.name == "nt":  # where an open file cannot be renamed
        os.close(descriptor)
        yield path
        return
    try:
        yield path
    finally:
        os.close(descriptor)


def _slots(target: Path) -> list[Path]:
    """The names that temporary files for this target get first. They differ between machines, since the locks of some
    shared folders hold on one machine only; a process on another one would take a file that is written for abandoned.
    """
    key = "\0".join([os.uname().nodename, _machine_id(), target.name])
    digest = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:16]
    return [target.with_name(f".udcp-{digest}-{slot}.tmp") for slot in range(_SLOTS)]


@cache
def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _created(path: Path) -> int | None:
    """A descriptor of the new, locked file; None if there is a file of this name, or somebody else has locked it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
    except FileExistsError:
        return None
    if try_lock(descriptor) is not False and _is_at(descriptor, path):
        return descriptor
    os.close(descriptor)  # another process took it for abandoned before it was locked, and removes it
    return None


def remove_abandoned(path: Path, *, unless_locked: bool = False) -> None:
    """Remove a temporary file whose writer is gone: it is ours, and not locked, since a lock ends with its process.

    Where files have no locks it stays; with `unless_locked`, it is removed.
    """
    if os.name == "nt":
        if unless_locked:
            path.unlink(missing_ok=True)
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)  # to write: NFS locks nothing else
    except OSError:
        return
    try:
        found, locked = os.fstat(descriptor), try_lock(descriptor)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        free = locked or (locked is None and unless_locked)
        if ours and free and _is_at(descriptor, path):  # else it has been replaced by a file of another writer
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether this open file is the one of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file or folder until it is closed: False if another process has locked it, None if the system or the
    file system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


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
