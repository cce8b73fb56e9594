"""Empty sets, which are often the cheapest answer: how many there are, and how to have none."""

from __future__ import annotations

FEW = 0.01  # share of the sets from which on the way out is named


def way_out(share: float) -> str:
    """How to have no empty sets, where they are more than a few; else empty.

    >>> way_out(0.14), way_out(0.001)
    ('nonempty=True (--nonempty) gives none', '')
    """
    return "nonempty=True (--nonempty) gives none" if share > FEW else ""


def told(share: float, rows: str = "") -> str:
    """
    >>> told(0.14, "on the calibration rows"), told(0.0)
    ('empty sets: 14.0% on the calibration rows; nonempty=True (--nonempty) gives none', 'empty sets: 0.0%')
    """
    where, way = f" {rows}" if rows else "", way_out(share)
    return f"empty sets: {share:.1%}{where}{f'; {way}' if way else ''}"
