"""Text from elsewhere (labels, file names) with control characters spelt out, so that it cannot steer a terminal."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""The text on one line, with what does not print spelt out.

    >>> visible("a" + chr(7))
    'a\\x07'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def visible_lines(text: str) -> str:
    """The same for a text of several lines, with its tabs."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))
