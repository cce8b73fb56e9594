"""Completion and hover in the editor: the one seam between the page and what knows the language.

Positions are counted as a browser counts them: characters beyond U+FFFF are two.
"""

from __future__ import annotations

from typing import Any

from udcp_dsl.diagnostics import InputError, Source
from udcp_dsl.language.parse import parse
from udcp_dsl.language.words import CALLED, KEYWORDS
from udcp_dsl.studio.place import Place
from udcp_dsl.studio.state import MOST_TEXT


def words() -> dict[str, Any]:
    """The words that the editor colours."""
    return {"keywords": sorted(KEYWORDS), "atoms": list(CALLED)}


def asked(body: Any) -> tuple[str, int]:
    """The text and the position, in characters of Python, that a page asks about."""
    text, at = (body.get("text"), body.get("at")) if isinstance(body, dict) else (None, None)
    if not isinstance(text, str) or len(text) > MOST_TEXT or isinstance(at, bool) or not isinstance(at, int) or at < 0:
        raise InputError("a question is an object with text and at, a position in it")
    return text, len(text.encode("utf-16-le", "surrogatepass")[: 2 * at].decode("utf-16-le", "replace"))


def complete(text: str, at: int, place: Place) -> list[dict[str, str]]:
    """What could stand at a position."""
    spec, _ = parse(Source(place.name, text))
    declared = [(name.text, type(x).__name__.lower()) for x in spec.declarations if (name := getattr(x, "name", None))]
    return [
        *({"label": name, "detail": kind, "type": "variable"} for name, kind in declared),
        *({"label": word, "detail": "atom", "type": "function"} for word in CALLED),
        *({"label": word, "detail": "", "type": "keyword"} for word in sorted(KEYWORDS)),
    ]


def hover(text: str, at: int, place: Place) -> str | None:
    """What is to be said of what stands at a position."""
    return None
