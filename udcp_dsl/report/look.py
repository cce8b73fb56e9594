"""One colour and one marker for each oracle, the same in every figure, on light and on dark.

Figures are drawn in the light colours; in the page each becomes a CSS variable that has a dark value too. So no two
roles share a light colour. Any two of our oracles, and any two terms, differ by at least 13 (CIEDE2000) as people with
protanopia, deuteranopia or tritanopia see them, which a test computes; and each oracle has a mark of its own, for those
who see no colours.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from html import escape
from importlib.resources import files

from udcp_dsl.predict.calibrate import show_level


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


def colour_rules() -> str:
    """The CSS rules for these variables, in light and dark."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(dark=True)} }} }}"
    return f":root {{ {variables(dark=False)} }}\n{dark}\n"


# The design of our pages: their head, with the colours in light and dark and one style sheet.


def head(title: str, script: str | None = None, css: str | None = None) -> str:
    """The page up to its content, with the colours and a style sheet, by default that of our reports.

    A content security policy forbids everything but the styles and this script.
    """
    run = ""
    if script is not None:
        run = f" script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}';"
    policy = f"default-src 'none'; style-src 'unsafe-inline';{run} img-src data:"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(shown(title))}</title>
<style>
{colour_rules()}{packaged("page.css") if css is None else css}</style>
</head>
<body>"""


@cache
def packaged(name: str) -> str:
    """A file of this package, as text."""
    return (files("udcp_dsl.report") / name).read_text(encoding="utf-8")


# Numbers and names as readers see them: in sentences, tables and figures alike.


_JOINERS = str.maketrans("", "", "\u200c\u200d")  # invisible, but part of how some scripts are written


def shown(text: str, longest: int | None = None) -> str:
    """A name as it can be shown: with characters that do not print escaped, and cut to a length.

    >>> shown("melanoma in situ", 9), shown("a" + chr(0x202e) + "b")
    ('melanoma…', "'a\\\\u202eb'")
    """
    printable = text if text.translate(_JOINERS).isprintable() else repr(text)
    if longest is None or len(printable) <= longest:
        return printable
    return printable[: longest - 1].rstrip() + "…"


def isolated(text: str) -> str:
    """A name from the user as safe HTML, in whichever direction its script runs.

    >>> isolated("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    """
    return f"<bdi>{escape(shown(text))}</bdi>"


def number(value: float) -> str:
    """Four digits, without an exponent for what people write without one.

    >>> number(12345.6), number(0.012345), number(0.0)
    ('12,346', '0.01235', '0')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def percent(fraction: float) -> str:
    """A share, with one decimal below 10, and never rounded to 0 or 100 when it is neither.

    >>> percent(0.312), percent(0.0421), percent(0.0001), percent(0.9999), percent(1.0), percent(19.87)
    ('31 %', '4.2 %', 'under 0.1 %', 'over 99.9 %', '100 %', '1,987 %')
    """
    value = 100 * fraction
    if value == 0:
        return "0 %"
    if 0 < value < 0.1:
        return "under 0.1 %"
    if 99.9 < value < 100:
        return "over 99.9 %"
    return f"{value:.1f} %" if value < 9.95 or 99 < value < 100 else f"{value:,.0f} %"


def target(alpha: Fraction) -> str:
    """The requested coverage.

    >>> target(Fraction(1, 10))
    '0.9'
    """
    return show_level(1 - alpha)


def seconds(value: float) -> str:
    """A time.

    >>> seconds(0.00001), seconds(0.00123), seconds(0.1234), seconds(4.56), seconds(123.4)
    ('under 0.1 ms', '1.2 ms', '123 ms', '4.6 s', '123 s')
    """
    if value < 0.0001:
        return "under 0.1 ms"
    scaled, unit = (value * 1000, "ms") if value < 0.9995 else (value, "s")
    return f"{scaled:.1f} {unit}" if scaled < 9.95 else f"{scaled:,.0f} {unit}"
