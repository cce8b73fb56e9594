"""Facts of expressions with numbers that come with each row: a fact holds for every value in the range."""

from __future__ import annotations

from collections.abc import Sequence

from udcp_dsl.diagnostics import Span
from udcp_dsl.expression.facts import COMPOSED, TOLERANCE, Facts, Interval, Rules, at_least, equal, proved, scale, when


def row_number(interval: Interval) -> Rules:
    """A number that comes with each row and does not depend on the set."""
    return Rules(interval, {name: proved("no set changes it") for name in COMPOSED})


def row_multiple(factor: Interval, e: Facts) -> Rules:
    """e times a number from a range."""
    if factor.constant:
        return scale(factor.lo, e)
    products = [a * b for a in factor for b in e.interval]
    interval = Interval(min(products), max(products))
    up, down = scale(1.0, e).facts, scale(-1.0, e).facts
    if factor.lo >= 0 or factor.hi <= 0:
        return Rules(interval, up if factor.lo >= 0 else down)
    either_sign = {name: when("so are its multiples of either sign", up[name], down[name]) for name in COMPOSED}
    return Rules(interval, either_sign)


def row_choice(branches: Sequence[Facts]) -> Rules:
    """One of several branches; which one depends on the row alone."""
    interval = Interval(min(f.interval.lo for f in branches), max(f.interval.hi for f in branches))
    named = {name: [getattr(f, name) for f in branches] for name in COMPOSED}
    return Rules(interval, {name: when("every branch is", *needs) for name, needs in named.items()})


def row_comparison(gap: Facts, k: Interval, operator: str, span: Span | None) -> Rules:
    """Whether gap >= 0 or gap == 0, with a tolerance that grows with k."""
    slack = TOLERANCE * max(1.0, *map(abs, k))
    return (equal if operator == "==" else at_least)(gap, 0.0, slack, span)
