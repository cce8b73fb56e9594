"""Arrays from files: .npy and .npz (`file.npz:key`), in blocks of rows; large ones are mapped. Nothing is unpickled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, did_you_mean
from udcp_dsl.prediction.rows.columns import WHOLE, Block, Span

_MMAP_BYTES = 1 << 26  # files from this size on are memory-mapped, not read
_UNPACKED_BYTES = 1 << 28  # a larger array in an .npz may be this many times its compressed size:
_MAX_EXPANSION = 100


def array_blocks(file: Path, key: str | None, most: int | None = None, span: Span = WHOLE) -> Iterator[Block]:
    """The blocks of an array, of `most` rows each; of a large .npy, only the current block takes memory."""
    array = read_array(file, key)
    if array.ndim == 0:
        yield Block(array, [])
        return
    mapped = isinstance(array.base, np.memmap)
    for first, stop in span.cuts(0, len(array), most or max(1, len(array))):
        yield Block(array[first:stop], [])
        if mapped:  # pages that were read count as memory until they are unmapped
            array = read_array(file, key)


def listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def read_array(file: Path, key: str | None) -> npt.NDArray[Any]:
    """The array of a .npy, or the one called `key` of an .npz."""
    ending = file.suffix.lower()
    with file.open("rb") as stream:
        magic = stream.read(6)
    if not magic.startswith(b"\x93NUMPY" if ending == ".npy" else b"PK"):
        raise InputError(f"is, despite its extension, not a numpy {ending} file")
    try:
        if ending == ".npy":
            return np.asarray(np.load(file, "c" if file.stat().st_size >= _MMAP_BYTES else None, allow_pickle=False))
        with np.load(file, allow_pickle=False) as archive:
            if key is None and len(archive.files) != 1:
                raise InputError(
                    f"contains {len(archive.files)} arrays ({listed(archive.files)}): name one, as in {file.name}:KEY"
                )
            key = archive.files[0] if key is None else key
            if key not in archive.files:
                raise InputError(f"there is no array {key!r}; {did_you_mean(key, archive.files)}")
            _refuse_zip_bomb(archive, key)
            return np.asarray(archive[key])
    except (InputError, OSError):
        raise
    except Exception as error:  # numpy may raise almost anything for a damaged header, even errors of tokenize
        if "pickle" in str(error) or "Python objects" in str(error):
            raise InputError("contains pickled Python objects, which are never loaded: save numbers or text") from error
        raise InputError(f"is damaged: {error}") from error


def _refuse_zip_bomb(archive: Any, key: str) -> None:
    """Refuse an array of gigabytes from a small file: real rows hardly compress that much."""
    names = archive.zip.namelist()
    member = archive.zip.getinfo(f"{key}.npy" if f"{key}.npy" in names else key)
    if member.file_size > max(_UNPACKED_BYTES, _MAX_EXPANSION * member.compress_size):
        raise InputError(
            f"{key!r} expands from {member.compress_size:,} bytes to {member.file_size:,}: if that is intended, "
            "save it uncompressed, with numpy.save"
        )
