"""Levels (alpha) and ranks in exact rational arithmetic.

The threshold is the k-th smallest of n scores, k = ceil((n + 1)(1 - alpha)). In floats, (n + 1)(1 - alpha) often lands
just above or below a whole number, and k is then one off; so alpha is a Fraction, read as the decimal that was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from udcp_dsl.diagnostics import InputError

Level: TypeAlias = float | str | Decimal | Fraction | np.floating[Any]

DEFAULT_ALPHA = Fraction(1, 10)
_ONE = Fraction(1)

# At most three digits of exponent: Fraction("1e-999999999") would exhaust memory.
_NUMBER = re.compile(r"[+-]?(?:\d+/\d+|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)", re.ASCII | re.IGNORECASE)


def exact_level(alpha: Level, name: str = "alpha", below: Fraction | None = _ONE) -> Fraction:
    """The level as a fraction: a float means the decimal that it prints as, so that 0.1 is 1/10.

    Takes a float (numpy's too), a string ("0.1", "1/10"), a Decimal or a Fraction. Refuses anything else, and any value
    that is not strictly between 0 and `below`: 1, or the largest harm if harm is bounded; None if that is not known.

    >>> exact_level(0.1), exact_level("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    level = alpha if isinstance(alpha, Fraction) else _as_written(alpha)
    if level is None or not level > 0 or (below is not None and level >= below):
        if below is None:
            raise InputError(f"{name} is {alpha!r}: give a mean harm above 0, in the units of the harm")
        harm = "" if below == 1 else ", the largest harm of a label, as an empty set keeps it there"
        example = "0.1 or 1/10" if below == 1 else show_level(below / 20)
        shown = "1" if below == 1 else f"{float(below):g}"
        given = show_level(alpha) if isinstance(alpha, Fraction) else repr(alpha)
        meant = _meant(str(alpha).strip(), name) if below == 1 else None
        more = "" if meant is None else f"; {meant}"
        raise InputError(
            f"{name} is {given}: give a number strictly between 0 and {shown}{harm}, such as {example}{more}"
        )
    return level


def _meant(text: str, name: str) -> str | None:
    """The suggested fix for a level in percent or with a decimal comma; None if there is none.

    >>> _meant("90", "alpha"), _meant("5%", "alpha"), _meant("0,1", "alpha")
    ('for a coverage of 90 percent give 0.1', 'for 5 percent give 0.05', 'write 0.1, with a point')
    """
    if "," in text and (level := _as_written(text.replace(",", "."))) is not None and 0 < level < 1:
        return f"write {show_level(level)}, with a point"
    percent = _as_written(text.removesuffix("%"))
    if percent is None or not 2 <= percent < 100:
        return None
    if name == "alpha" and percent >= 50:
        return f"for a coverage of {float(percent):g} percent give {show_level(1 - percent / 100)}"
    return f"for {float(percent):g} percent give {show_level(percent / 100)}"


def _as_written(value: object) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal | np.floating):
        return None
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):  # more digits than Python parses, or a denominator of 0
        return None


def show_level(alpha: Fraction) -> str:
    """A level for messages: as a decimal if that is exact, else as a fraction.

    >>> show_level(Fraction(1, 10)), show_level(Fraction(1, 3))
    ('0.1', '1/3')
    """
    decimal = float(alpha)
    return str(decimal) if Fraction(str(decimal)) == alpha else str(alpha)


def levels_of(
    alpha: Level | Iterable[Level] | None = None, confidence_level: Level | None = None, below: Fraction | None = _ONE
) -> tuple[Fraction, ...]:
    """The miscoverage levels from whichever of alpha and confidence_level was given; 1/10 if neither was.

    Alpha may be one level or several, which stay in their order. Refuses an empty list, a level that appears twice,
    and whatever `exact_level` refuses.

    >>> levels_of([0.1, "1/20"]), levels_of(confidence_level=0.95)
    ((Fraction(1, 10), Fraction(1, 20)), (Fraction(1, 20),))
    """
    if alpha is not None and confidence_level is not None:
        raise InputError("alpha and confidence_level are both given: give one (confidence_level is 1 - alpha)")
    if confidence_level is not None:
        return (1 - exact_level(confidence_level, "confidence_level"),)
    if alpha is None:
        return (DEFAULT_ALPHA,)
    if isinstance(alpha, str | bytes) or not isinstance(alpha, Iterable) or getattr(alpha, "ndim", 1) == 0:
        return (exact_level(alpha, below=below),)  # type: ignore[arg-type]  # `exact_level` refuses what is not a level
    levels = tuple(exact_level(level, below=below) for level in alpha)
    if not levels or len(set(levels)) < len(levels):
        shown = ", ".join(map(show_level, levels)) or "an empty list"
        raise InputError(f"alpha is {shown}: give at least one level, each once")
    return levels


def rank(n: int, alpha: Level) -> int:
    """k = ceil((n + 1)(1 - alpha)), exactly: the rank of the threshold among n scores; n + 1 if n is too small.

    >>> rank(99, 0.1), rank(8, 0.1)
    (90, 9)
    """
    return math.ceil((_count(n, "n") + 1) * (1 - exact_level(alpha)))


def points_needed(alpha: Level) -> int:
    """The smallest n for which the threshold is finite: k <= n if and only if (n + 1) alpha >= 1.

    >>> points_needed(0.1), points_needed(0.05)
    (9, 19)
    """
    return math.ceil(1 / exact_level(alpha)) - 1


def coverage_law(n_cal: int, alpha: Level, n_test: int) -> Any:
    """The distribution of the number of covered points among n_test new ones, over the draw of calibration and test.

    For independent scores without ties, the mass below the k-th smallest of n_cal is Beta(k, n_cal + 1 - k), so the
    number covered is beta-binomial; with ties it is never stochastically smaller. If k > n_cal, all are covered.
    Returns a frozen scipy.stats distribution, with `pmf`, `cdf`, `sf`, `ppf`, `mean`.

    >>> float(coverage_law(9, 0.1, 50).mean())
    45.0
    """
    import scipy.stats  # slow to import, and only tests and validation need it

    n_test = _count(n_test, "n_test")
    k = rank(_count(n_cal, "n_cal"), alpha)
    if k > n_cal:
        return scipy.stats.binom(n_test, 1)
    return scipy.stats.betabinom(n_test, k, n_cal + 1 - k)


CONFIDENCE = 0.95  # the level of every confidence interval that is shown


def clopper_pearson(covered: ArrayLike, n: ArrayLike, confidence: float = CONFIDENCE) -> tuple[Any, Any]:
    """The exact confidence interval of a proportion: all p for which neither tail is below (1 - confidence) / 2.

    >>> [x.round(4).tolist() for x in clopper_pearson([0, 5], 10)]
    [[0.0, 0.1871], [0.3085, 0.8129]]
    """
    from scipy.stats import beta  # slow to import

    k, m, tail = np.asarray(covered), np.asarray(n), (1 - confidence) / 2
    # At k = 0 and k = n, a parameter of the beta distribution would be 0; that end of the interval is known.
    low = np.where(k == 0, 0.0, beta.ppf(tail, np.maximum(k, 1), m - k + 1))
    high = np.where(k == m, 1.0, beta.isf(tail, k + 1, np.maximum(m - k, 1)))
    return low, high


def _count(n: int, name: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InputError(f"{name} is {n!r}: give a whole number of rows, 0 or more")
    return int(n)
