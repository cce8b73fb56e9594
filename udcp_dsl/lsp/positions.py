"""Places in a text as editors count them: lines from 0, and characters in units of UTF-16.

A line ends at CR LF, LF or CR, as in the protocol. Plain data: {"line": 0, "character": 4}, and ranges of two of these.
"""

from __future__ import annotations

import bisect
import re
from typing import Any

from udcp_dsl.diagnostics import Span

_LINE_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """The lines of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]
        self._plain = text.isascii()

    def position(self, offset: int) -> dict[str, int]:
        """
        >>> Lines("a\\n🙂x").position(3)
        {'line': 1, 'character': 2}
        """
        line = bisect.bisect_right(self._starts, offset) - 1
        return {"line": line, "character": self._units(self._text[self._starts[line] : offset])}

    def offset(self, line: int, character: int) -> int:
        """The nearest offset to a position, which may be outside of the text: an editor may have a newer one.

        >>> Lines("a\\n🙂x").offset(1, 2), Lines("a").offset(7, 0)
        (3, 1)
        """
        if line >= len(self._starts):
            return len(self._text)
        start, end = self._starts[max(line, 0)], self._ends[max(line, 0)]
        if self._plain:
            return min(start + max(character, 0), end)
        units = 0
        for at in range(start, end):
            if units >= character:
                return at
            units += self._units(self._text[at])
        return end

    def span(self, start: int, end: int) -> dict[str, Any]:
        """The range from one offset to another."""
        return {"start": self.position(start), "end": self.position(end)}

    def range(self, span: Span) -> dict[str, Any]:
        """The range of a span of the text."""
        return self.span(span.start, span.end)

    def length(self, text: str) -> int:
        """The length of a text in units of UTF-16."""
        return self._units(text)

    def _units(self, text: str) -> int:
        return len(text) if self._plain else len(text.encode("utf-16-le", "surrogatepass")) // 2
