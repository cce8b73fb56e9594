"""Completion, hover and quick fixes from the language server, for the page's editor.

Positions are those of the protocol: {"line": from 0, "character": in units of UTF-16}, as a browser counts.
"""

from __future__ import annotations

import threading
from typing import Any

from udcp_dsl.diagnostics import InputError
from udcp_dsl.language.words import CALLED, KEYWORDS
from udcp_dsl.lsp import Document, Reader, code_actions, completion, hover
from udcp_dsl.studio.spec_folder import SpecFolder
from udcp_dsl.studio.state import MOST_TEXT

_URI = "studio:spec.loss"
# What CodeMirror calls the kinds of the protocol.
_KINDS = {3: "function", 6: "variable", 13: "enum", 14: "keyword", 17: "text", 20: "constant", 21: "constant"}


def words() -> dict[str, Any]:
    """The words that the editor colours."""
    return {"keywords": sorted(KEYWORDS), "atoms": list(CALLED)}


class Assistant:
    """Answers questions about a text at a position, one at a time."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._lock = threading.Lock()

    def complete(self, body: Any, place: SpecFolder) -> dict[str, Any]:
        """The completions at a position: items, and the range that they replace."""
        with self._lock:
            document, position = self._asked(body, place)
            found = completion(document, position)["items"]
        items = [
            {
                "label": item["label"],
                "apply": item["textEdit"]["newText"],
                "detail": item.get("detail", ""),
                "type": _KINDS.get(item["kind"], "variable"),
                "info": item.get("documentation", {}).get("value", ""),
            }
            for item in found
        ]
        return {"items": items, "range": found[0]["textEdit"]["range"] if found else None}

    def hover(self, body: Any, place: SpecFolder) -> dict[str, Any]:
        """The explanation of what is at a position, as Markdown."""
        with self._lock:
            found = hover(*self._asked(body, place))
        return {} if found is None else {"text": found["contents"]["value"], "range": found["range"]}

    def fixes(self, body: Any, place: SpecFolder) -> dict[str, Any]:
        """The fixes for errors at a position: titles and edits."""
        with self._lock:
            document, position = self._asked(body, place)
            found = code_actions(document, position, position)
        return {
            "fixes": [
                {"title": x["title"], "edits": [e for edits in x["edit"]["changes"].values() for e in edits]}
                for x in found
                if "edit" in x
            ]
        }

    def _asked(self, body: Any, place: SpecFolder) -> tuple[Document, dict[str, int]]:
        text, at = (body.get("text"), body.get("at")) if isinstance(body, dict) else (None, None)
        if not isinstance(text, str) or len(text) > MOST_TEXT or not isinstance(at, dict):
            raise InputError("a question is an object with text and at, a position in it")
        position: dict[str, int] = {}
        for key in ("line", "character"):
            number = at.get(key)
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_TEXT:
                raise InputError("a position has line and character, whole numbers from 0")
            position[key] = number
        return self._reader.read(text, place.data_folder, _URI), position
