"""What a threshold guarantees, and how many points that needs.

For coverage, the threshold is the k-th smallest of n scores: k = ceil((n + 1)(1 - alpha)) covers 1 - alpha on average
over calibrations; with `confidence`, k is the least rank whose coverage, Beta(k, n + 1 - k) over the draw of the
scores, is at least 1 - alpha with that probability. For harm, the threshold bounds the mean harm of misses (`masses`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from udcp_dsl.diagnostics import InputError
from udcp_dsl.predict.calibrate.checked import RESAVE, fields
from udcp_dsl.predict.calibrate.levels import exact_level, points_needed, rank

# Probabilities whose relative difference is above this are compared as floats, others exactly, in whole numbers.
_CLOSE = 1e-9
# Powers with more bits are not computed: they take seconds and may exhaust memory.
_EXACT_BITS = 2_000_000


@dataclass(frozen=True)
class Rule:
    """`confidence` is that of each single threshold; `most` is the largest harm of any label, if harm is bounded."""

    confidence: Fraction | None = None
    most: Fraction | None = None

    @property
    def below(self) -> Fraction:
        """What alpha must be below: 1, or the largest harm."""
        return Fraction(1) if self.most is None else self.most

    def rank(self, n: int, alpha: Fraction) -> int:
        """The rank of the threshold among n scores, for coverage; n + 1 if n is too small."""
        return rank(n, alpha) if self.confidence is None else confident_rank(n, alpha, self.confidence)

    def needed(self, alpha: Fraction) -> int:
        """The fewest points with a finite threshold; if harm is bounded, this holds for any harms of the points."""
        if self.most is not None:
            return math.ceil(self.most / alpha) - 1
        return points_needed(alpha) if self.confidence is None else confident_points(alpha, self.confidence)

    def covered(self, n: int, alpha: Fraction, mean_harm: float = 1.0) -> float:
        """The share of n points that the threshold covers or, if harm is bounded, the share of their harm, whose mean
        is `mean_harm`."""
        if n == 0:
            return 1.0
        if self.most is None:
            return self.rank(n, alpha) / n
        missed = float((alpha * (n + 1) - self.most) / n)
        return 1 - missed / mean_harm if mean_harm > 0 else 0.0

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON, from which `from_dict` restores an equal rule."""
        return {name: None if x is None else str(x) for name, x in vars(self).items()}

    @classmethod
    def from_dict(cls, data: object) -> Rule:
        """Inverse of `as_dict`; refuses anything else."""
        d = fields(data, ("confidence", "most"), "rule")
        if not all(x is None or isinstance(x, str) for x in d.values()):
            raise InputError(f"rule: a number is damaged; {RESAVE}")
        confidence, most = d["confidence"], d["most"]
        try:
            bound = None if most is None else exact_level(str(most), "most", below=None)
        except (ValueError, ZeroDivisionError):
            bound = Fraction(0)
        if bound is not None and (bound <= 0 or confidence is not None):
            raise InputError(f"rule: {dict(d)} is damaged; {RESAVE}")
        return cls(None if confidence is None else exact_level(str(confidence), "confidence"), bound)


@cache
def confident_rank(n: int, alpha: Fraction, confidence: Fraction) -> int:
    """The least k with P(Beta(k, n + 1 - k) >= 1 - alpha) >= confidence; n + 1 if there is none.

    That is n - h for the most misses h with P(Binomial(n, alpha) <= h) <= 1 - confidence.

    >>> confident_rank(1000, Fraction(1, 10), Fraction(19, 20)), confident_rank(20, Fraction(1, 10), Fraction(9, 10))
    (916, 21)
    """
    if n < confident_points(alpha, confidence):
        return n + 1
    from scipy.stats import binom  # slow to import

    chance = 1 - confidence
    misses = int(binom.ppf(float(chance), n, float(alpha)))
    while not _likely_below(misses, n, alpha, chance):
        misses -= 1
    while _likely_below(misses + 1, n, alpha, chance):
        misses += 1
    return n - misses


@cache
def confident_points(alpha: Fraction, confidence: Fraction) -> int:
    """The fewest points with a finite rank: (1 - alpha)^n <= 1 - confidence, in exact arithmetic.

    If the power has too many digits for that, -log(1 - confidence) / alpha is returned, which is at most a few points
    more, since alpha < -log(1 - alpha).

    >>> confident_points(Fraction(1, 10), Fraction(19, 20)), confident_points(Fraction(1, 10**9), Fraction(19, 20))
    (29, 2995732275)
    """
    chance = 1 - confidence
    goal = math.log(chance.denominator) - math.log(chance.numerator)
    most = math.ceil(Fraction(goal) / alpha) + 1
    if most * alpha.denominator.bit_length() > _EXACT_BITS:
        return most
    n = max(1, math.floor(-goal / math.log(1 - alpha)) - 1)
    while (1 - alpha) ** n > 1 - confidence:
        n += 1
    return n


def _likely_below(misses: int, n: int, alpha: Fraction, chance: Fraction) -> bool:
    """Whether P(Binomial(n, alpha) <= misses) <= chance; computed in whole numbers if floats are too close."""
    from scipy.stats import binom

    found = float(binom.cdf(misses, n, float(alpha)))
    if abs(found - float(chance)) > _CLOSE * float(chance):
        return found <= float(chance)
    p, q = alpha.numerator, alpha.denominator
    term = (q - p) ** n  # q^n P(no miss); the divisions below leave no remainder
    total = term
    for h in range(misses):
        term = term * p * (n - h) // ((q - p) * (h + 1))
        total += term
    return bool(total * chance.denominator <= chance.numerator * q**n)
