"""One colour and one marker for each oracle, the same in every figure, on light and on dark.

Figures are drawn in the light colours; in the page each becomes a CSS variable that has a dark value too. So no two
roles share a light colour. Any two of our oracles, and any two terms, differ by at least 13 (CIEDE2000) as people with
protanopia, deuteranopia or tritanopia see them, which a test computes; and each oracle has a mark of its own, for those
who see no colours.
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

    @property
    def path(self) -> str:
        """The marker as an SVG path around the origin, about 9 units across."""
        return _PATHS[self.marker]


# matplotlib's markers, as pages draw them.
_PATHS = {
    "o": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "s": "M-3.6-3.6h7.2v7.2h-7.2z",
    "^": "M0-4.6L4.4 3.4H-4.4z",
    "D": "M0-5L4.4 0L0 5L-4.4 0z",
    "v": "M0 4.6L4.4-3.4H-4.4z",
    "P": "M-1.4-4.4h2.8v3h3v2.8h-3v3h-2.8v-3h-3v-2.8h3z",
    "X": "M-4.4-2.4L-2.4-4.4L0-2L2.4-4.4L4.4-2.4L2 0L4.4 2.4L2.4 4.4L0 2L-2.4 4.4L-4.4 2.4L-2 0z",
    "h": "M0-4.6L4-2.3V2.3L0 4.6L-4 2.3V-2.3z",
    "<": "M-4.6 0L3.4-4.4V4.4z",
    ">": "M4.6 0L-3.4-4.4V4.4z",
    "d": "M0-5L2.8 0L0 5L-2.8 0z",
    "p": "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4z",
}


INK = Colour("--ink", "#1c2024", "#e6e9ed")
MUTED = Colour("--muted", "#59626c", "#a2abb5")
GRID = Colour("--grid", "#dfe3e8", "#333a42")
PAPER = Colour("--paper", "#ffffff", "#14171a")

_ORACLES = {
    "price": Style(Colour("--oracle-price", "#074a8c", "#6cb5f4"), "o"),
    "greedy": Style(Colour("--oracle-greedy", "#8e4715", "#e49059"), "s"),
    "penalized": Style(Colour("--oracle-penalized", "#9b7b07", "#f4dc8c"), "^"),
    "ratio": Style(Colour("--oracle-ratio", "#0e7a55", "#438028"), "D"),
    "base": Style(Colour("--oracle-base", "#3f404a", "#a3a6b4"), "v"),
    "lac": Style(Colour("--oracle-lac", "#7552d8", "#906ff4"), "P"),
    "raps": Style(Colour("--oracle-raps", "#c54c84", "#e54586"), "X"),
    "ilp": Style(Colour("--oracle-ilp", "#0e1f16", "#f9f7ea"), "h"),
}
# For third-party oracles, in turn.
_OTHERS = (
    Style(Colour("--oracle-a", "#157f8f", "#52c4d4"), "<"),
    Style(Colour("--oracle-b", "#5b7f1c", "#a4cf57"), ">"),
    Style(Colour("--oracle-c", "#8c3b2f", "#d98577"), "d"),
    Style(Colour("--oracle-d", "#4a5bd0", "#9aa6ff"), "p"),
)
TERMS = (
    Colour("--term-0", "#333d7a", "#7ea0ef"),
    Colour("--term-1", "#aa8d20", "#e0c566"),
    Colour("--term-2", "#858f9c", "#87949d"),
    Colour("--term-3", "#865470", "#a655ae"),
    Colour("--term-4", "#4f8a6d", "#87debc"),
    Colour("--term-5", "#b4453b", "#da8a7d"),
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
    """The style of each oracle, in the order given; the styles of our own oracles are always the same.

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
