"""Names that differ although they look alike, and characters that change the order in which a text is shown.

Two names look alike if they are equal once accents are composed (NFC), invisible characters are left out, letters of
full width and special spaces are made plain, and Greek and Cyrillic letters that are drawn as Latin ones are replaced.
Names in ASCII are not compared: l and 1, O and 0 are told apart by most fonts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from udcp_dsl.compile.declare.declared import Declared
from udcp_dsl.diagnostics import Span
from udcp_dsl.language import ast

_MOST = 20  # warnings of each kind
_MOST_CHARACTERS = 500_000  # of names that are not ASCII, compared at about a microsecond each

_DRAWN_ALIKE = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"  # Cyrillic, small
        "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408"  # and capital
        "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"  # Greek, capital
        "\u03bf\u03bd\u03c1\u0131\u0261"  # and small; Latin dotless i and script g
        "\u2010\u2011\u2012\u2013\u2014\u2212\u2018\u2019\u201c\u201d",
        "aeopcyxijshdqwABEKMHOPCTXSIJABEZHIKMNOPTYXovpig------''\"\"",
        strict=True,
    )
)
_DRAWN = str.maketrans(_DRAWN_ALIKE)
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def warn_of_look_alikes(d: Declared, spec: ast.Spec) -> None:
    """W131 for characters that change the order of a text, W208 for labels, or declared names, that look alike."""
    source = spec.span.source
    if not source.text.isascii():
        found = [at for at, character in enumerate(source.text) if character in _REORDERING]
        for at in found[:_MOST]:
            message = f"{_point(source.text[at])} changes the order in which this text is shown"
            d.warn("W131", Span(source, at, at + 1), message, "remove it, unless the text is read from right to left")
    in_place = {
        item.text: item.span
        for x in spec.declarations
        if isinstance(x, ast.Labels) and not isinstance(x.body, ast.File)
        for item in x.body
        if isinstance(item, ast.Name)
    }
    whole = next((x.span for x in spec.declarations if isinstance(x, ast.Labels)), Span(source, 0, 0))
    names = {x.name.text: x.name.span for x in spec.declarations if not isinstance(x, ast.Labels)}
    for what, places, known in (("labels", in_place, d.labels), ("names", names, tuple(names))):
        for first, second in _pairs(known):
            message = f"the {what} {_shown(first, second)} and {_shown(second, first)} look alike"
            d.warn(
                "W208", places.get(second, whole), message, "is one of them a slip? Write the same name in both places"
            )


def _pairs(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of different names that look alike, each name with the first that looks so."""
    others = [name for name in names if not name.isascii()]
    if not others:
        return
    first: dict[str, str] = {name: name for name in names if name.isascii()}
    found, room = 0, _MOST_CHARACTERS
    for name in others:
        room -= len(name)
        if room < 0:
            return
        like = first.setdefault(_drawn(name), name)
        if like != name and found < _MOST:
            found += 1
            yield like, name


def _drawn(name: str) -> str:
    """How a name is drawn, as a key."""
    kept = (c for c in unicodedata.normalize("NFC", name) if unicodedata.category(c) != "Cf")
    plain = (unicodedata.normalize("NFKC", c) if "\uff01" <= c <= "\uff5e" else c for c in kept)
    return "".join(" " if unicodedata.category(c) == "Zs" else c for c in plain).translate(_DRAWN)


def _shown(name: str, other: str) -> str:
    """A name, with the code points of the characters that the other lacks."""
    own = [c for c in dict.fromkeys(name) if c not in other]
    return repr(name) + (f" ({', '.join(map(_point, own[:3]))}{', ...' * (len(own) > 3)})" if own else "")


def _point(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
