"""One colour and one marker for each oracle, the same in every figure, on light and on dark.

Figures are drawn in the light colours; in the page each becomes a CSS variable that has a dark value too. So no two
roles share a light colour. Hues stay apart for the colour-blind, and markers tell oracles apart without any colour.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """`variable` is the CSS variable that holds it."""

    variable: str
    light: str
    dark: str


@dataclass(frozen=True)
class Style:
    """How an oracle is drawn."""

    colour: Colour
    marker: str


INK = Colour("--ink", "#1c2024", "#e6e9ed")
MUTED = Colour("--muted", "#59626c", "#a2abb5")
GRID = Colour("--grid", "#dfe3e8", "#333a42")
PAPER = Colour("--paper", "#ffffff", "#14171a")

_ORACLES = {
    "price": Style(Colour("--oracle-price", "#0b62a8", "#5aa9e6"), "o"),
    "greedy": Style(Colour("--oracle-greedy", "#c8500a", "#f0894a"), "s"),
    "penalized": Style(Colour("--oracle-penalized", "#9a7200", "#d9b23c"), "^"),
    "ratio": Style(Colour("--oracle-ratio", "#0a7d5a", "#3fc79a"), "D"),
    "base": Style(Colour("--oracle-base", "#6a717a", "#9aa3ad"), "v"),
    "lac": Style(Colour("--oracle-lac", "#7a4fb5", "#b595e8"), "P"),
    "raps": Style(Colour("--oracle-raps", "#b8387e", "#ee82b8"), "X"),
    "ilp": Style(Colour("--oracle-ilp", "#2a3340", "#f4f1e6"), "h"),
}
# For oracles that are not ours, in turn.
_OTHERS = (
    Style(Colour("--oracle-a", "#157f8f", "#52c4d4"), "<"),
    Style(Colour("--oracle-b", "#5b7f1c", "#a4cf57"), ">"),
    Style(Colour("--oracle-c", "#8c3b2f", "#d98577"), "d"),
    Style(Colour("--oracle-d", "#4a5bd0", "#9aa6ff"), "p"),
)
TERMS = (
    Colour("--term-0", "#33507a", "#7fa3d6"),
    Colour("--term-1", "#c2a23a", "#e0c566"),
    Colour("--term-2", "#7a8f9c", "#8296a3"),
    Colour("--term-3", "#8a4f6d", "#cf8fb2"),
    Colour("--term-4", "#4f8a6d", "#86c7a6"),
    Colour("--term-5", "#b9714a", "#e3a581"),
)
OTHER_TERMS = Colour("--term-others", "#b9bec4", "#5f666e")

COLOURS: tuple[Colour, ...] = (
    INK,
    MUTED,
    GRID,
    PAPER,
    *(style.colour for style in (*_ORACLES.values(), *_OTHERS)),
    *TERMS,
    OTHER_TERMS,
)


def styles(oracles: Iterable[str]) -> dict[str, Style]:
    """The style of each oracle, in the order given; which others are there does not change those of our own.

    >>> [style.marker for style in styles(["price", "mine"]).values()]
    ['o', '<']
    """
    names = list(dict.fromkeys(oracles))
    strangers = sorted(set(names) - _ORACLES.keys())
    assigned = _ORACLES | {name: _OTHERS[i % len(_OTHERS)] for i, name in enumerate(strangers)}
    return {name: assigned[name] for name in names}


def variables(dark: bool) -> str:
    """The colours as CSS declarations."""
    return " ".join(f"{c.variable}: {c.dark if dark else c.light};" for c in COLOURS)
