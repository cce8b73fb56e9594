"""Short strings in some eighty languages: the translation catalogues (.mo files) inside the Django package.

The true label is the language of the catalogue. A translation that equals its English source was not translated, and
is left out; the sources themselves are English. Placeholders and markup are removed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from udcp_dsl.diagnostics import InputError, install_hint

# %(name)s, %s, %d, %%; {name}; <a href="...">, </a>; &nbsp;
_NO_LANGUAGE = re.compile(r"%\([^)]*\)[a-zA-Z]?|%[-#0-9.]*[a-zA-Z%]|\{[^}]*\}|<[^>]*>|&[a-z]+;")
_LITTLE_ENDIAN = b"\xde\x12\x04\x95"
_CODES = {"nb": "no"}  # Norwegian Bokmål, which the classifier knows as Norwegian


@dataclass(frozen=True)
class Entry:
    """One string: the code of its language, the text, and the catalogue that it is from, such as `admin/pt_BR`."""

    code: str
    text: str
    catalogue: str


def entries(codes: Collection[str]) -> list[Entry]:
    """Every distinct string of every language whose code is among `codes`, in the order of the catalogues' names.

    Dialects and scripts count as their language (pt_BR as pt, sr_Latn as sr); languages without a code are left out.
    """
    spec = find_spec("django")
    if spec is None or spec.origin is None:
        raise InputError(f"the catalogues come from Django: {install_hint('demo')}")
    root = Path(spec.origin).parent
    found: dict[tuple[str, str], str] = {}
    for file in sorted(root.rglob("locale/*/LC_MESSAGES/*.mo"), key=lambda file: file.relative_to(root).parts):
        locale, folder = file.parts[-3], file.parts[-5]
        language = locale.partition("_")[0]
        code = _CODES.get(language, language)
        for sources, translations in _messages(file.read_bytes()):
            english = {_text(source) for source in sources}
            for text in english:
                found.setdefault(("en", text), f"{folder}/en")
            for text in map(_text, translations):
                if text not in english and code in codes:
                    found.setdefault((code, text), f"{folder}/{locale}")
    return [
        Entry(code, text, catalogue)
        for (code, text), catalogue in found.items()
        if code in codes and any(ch.isalpha() for ch in text)
    ]


def _text(string: str) -> str:
    return " ".join(_NO_LANGUAGE.sub(" ", string).split())


def _messages(data: bytes) -> Iterator[tuple[list[str], list[str]]]:
    """The messages of a .mo file: the source (singular, perhaps plural) and its translation (in every form)."""
    order = "<" if data[:4] == _LITTLE_ENDIAN else ">"
    count, sources, translations = struct.unpack_from(f"{order}3I", data, 8)

    def string(table: int, i: int) -> str:
        length, start = struct.unpack_from(f"{order}2I", data, table + 8 * i)
        return data[start : start + length].decode("utf-8")

    for i in range(count):
        source = string(sources, i).rpartition("\x04")[2]  # the context before it distinguishes equal sources
        if source:  # the empty source has the header of the file
            yield source.split("\0"), string(translations, i).split("\0")
