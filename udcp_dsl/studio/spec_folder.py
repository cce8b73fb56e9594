"""The place of a studio's spec, and the only files that the studio reads and writes: those below one folder.

An example of the gallery is held in memory, with the data it reads, until it is saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from udcp_dsl.diagnostics import InputError
from udcp_dsl.files import atomic_write


@dataclass(frozen=True)
class SpecFolder:
    """`folder` holds the spec; for an example, it is the folder in which saving would create a folder for it.

    `carried` holds the data of an example (path -> bytes) from `origin`, a folder of this package; both are None for a
    spec on disk. `crlf`: lines end in CR LF. `content` is what the file held when it was last read or written here.
    """

    folder: Path
    name: str
    carried: Mapping[str, bytes] | None = None
    origin: Path | None = None
    crlf: bool = False
    content: bytes | None = field(default=None, compare=False, repr=False)

    @property
    def stem(self) -> str:
        return self.name.removesuffix(".loss")

    @property
    def data_folder(self) -> Path:
        """The folder from which data files are read."""
        return self.folder if self.origin is None else self.origin

    @property
    def shown(self) -> str:
        return str(self.folder / self.name) if self.carried is None else f"an example, {self.name}"

    def save(self, text: str) -> tuple[SpecFolder, list[str]]:
        """Write the spec, and for an example its data; returns its new place and the names of the files written.

        Raises InputError if somebody else has changed the file since.
        """
        if self.carried is None:
            path, content = self.inside(self.name), self._ended(text).encode("utf-8")
            if self.content is not None and path.exists() and path.read_bytes() not in (self.content, content):
                raise InputError(
                    f"{self.name} was changed on disk since it was opened, and is not written over: "
                    "move that file away and save again, or keep your text and open the file anew"
                )
            self._write(self.name, content)
            return replace(self, content=content), [self.name]
        folder = self.folder / self.stem
        if folder.exists():
            raise InputError(f"{folder} exists already: move it away, or open the spec in it (udcp studio {folder})")
        files = {self.name: text.encode("utf-8"), **self.carried}
        own = replace(self, folder=folder, carried=None, origin=None, content=files[self.name])
        for name in files:
            own.inside(name)
        for name, content in files.items():
            own._write(name, content)
        return own, [f"{self.stem}/{name}" for name in files]

    def write_beside(self, ending: str, content: bytes) -> str:
        """Write NAME.ending beside the spec; raises InputError for an example, which has to be saved first."""
        if self.carried is not None:
            raise InputError("this is an example, held in memory: save it first, and it has a folder of its own")
        name = self.stem + ending
        self._write(name, content)
        return name

    def read_beside(self, ending: str) -> str | None:
        """The text of NAME.ending beside the spec, if there is one."""
        if self.carried is not None:
            return None
        path = self.inside(self.stem + ending)
        if not path.is_file():
            return None
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8: {error.reason}") from None

    def inside(self, name: str) -> Path:
        """The path of a file below the folder; raises InputError if it leads out of it, even by a link."""
        from udcp_dsl.compile.sources import resolved

        try:
            there, folder = resolved(self.folder / name.replace("\0", "/")), resolved(self.folder)
        except OSError as error:
            raise InputError(f"{name!r}: {error.strerror}") from None
        if "\0" in name or not there.is_relative_to(folder):
            raise InputError(f"{name!r} is outside the folder of the spec, {self.folder}")
        return there

    def _write(self, name: str, content: bytes) -> None:
        path = self.inside(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)

    def _ended(self, text: str) -> str:
        return text.replace("\n", "\r\n") if self.crlf else text


def open_spec(path: str | Path) -> tuple[SpecFolder, str]:
    """The place and the text, with lines that end in LF, of a spec on disk; for a folder, of its only spec."""
    from udcp_dsl.language.parse import read_source

    file = Path(path)
    if file.is_dir():
        found = sorted(file.glob("*.loss"))
        if len(found) != 1:
            many = f"{len(found)} specs: give one of them" if found else "no spec (a file that ends in .loss)"
            raise InputError(f"{file}: the folder holds {many}")
        file = found[0]
    if file.suffix != ".loss":
        raise InputError(f"{file}: a spec is a file that ends in .loss")
    content = file.read_bytes() if file.is_file() else None
    text = read_source(file).text
    place = SpecFolder(file.absolute().parent, file.name, crlf="\r\n" in text, content=content)
    return place, text.replace("\r\n", "\n")


def example(path: Path, folder: Path) -> tuple[SpecFolder, str]:
    """An example of the gallery, held in memory with the data files beside it."""
    text = path.read_text(encoding="utf-8")
    data = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.suffix in (".csv", ".json", ".npy")}
    return SpecFolder(folder, path.name, carried=data, origin=path.parent), text
