"""Masses of sets in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from udcp_solvers.numeric.arrays import Floats, Masks


def has_mass(p: Floats, mask: Masks, t: float) -> bool:
    """Whether the set has mass t. (fsum rounds once, which never changes a sign.)"""
    return t <= 0 or math.fsum([*p[mask].tolist(), -t]) >= 0


def mass_below(p: Floats, mask: Masks) -> float:
    """The mass of a set, rounded down, so that the set has it."""
    mass = math.fsum(p[mask].tolist())
    return mass if has_mass(p, mask, mass) else math.nextafter(mass, 0.0)


def units(p: Sequence[float]) -> int:
    """The exact sum in multiples of 2^-1074, which divides every float."""
    # A denominator is 2^k, and has k + 1 bits.
    return sum(a << (1075 - b.bit_length()) for a, b in map(float.as_integer_ratio, p))
