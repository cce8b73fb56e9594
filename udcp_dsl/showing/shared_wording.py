"""Wording that all results share. Text from users (labels, file names) cannot control a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def visible(text: str) -> str:
    r"""The text on one line, with unprintable characters escaped.

    >>> visible("a" + chr(7))
    'a\\x07'
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def visible_lines(text: str) -> str:
    """The same for a text of several lines, with its tabs."""
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def counted(many: int, what: str) -> str:
    """
    >>> counted(1, "claim"), counted(2, "claim")
    ('1 claim', '2 claims')
    """
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def in_unit(what: str, unit: str | None) -> str:
    """
    >>> in_unit("cost", "hours"), in_unit("cost", None)
    ('cost in hours', 'cost')
    """
    return what if unit is None else f"{what} in {visible(unit)}"


def with_unit(amount: str, unit: str | None) -> str:
    """
    >>> with_unit("1.5", "hours"), with_unit("1.5", None)
    ('1.5 hours', '1.5')
    """
    return amount if unit is None else f"{amount} {visible(unit)}"


def listed(names: Sequence[str], most: int) -> str:
    """
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
