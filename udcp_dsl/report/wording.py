"""Numbers and names as readers see them: in sentences, tables and figures alike."""

from __future__ import annotations

from fractions import Fraction
from html import escape

from udcp_dsl.prediction.calibrate import show_level

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
