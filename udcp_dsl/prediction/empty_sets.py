"""Empty sets, which are often the cheapest: report their share, and how to avoid them."""

from __future__ import annotations

FEW = 0.01  # share of empty sets above which the way to avoid them is named


def way_out(share: float) -> str:
    """How to avoid empty sets, if their share is above `FEW`; otherwise an empty text.

    >>> way_out(0.14), way_out(0.001)
    ('calibrate with nonempty=True (--nonempty) to have none', '')
    """
    return "calibrate with nonempty=True (--nonempty) to have none" if share > FEW else ""


def share_text(share: float) -> str:
    """The share of empty sets and, above `FEW`, how to avoid them.

    >>> share_text(0.14), share_text(0.001)
    ('14.0%; calibrate with nonempty=True (--nonempty) to have none', '0.1%')
    """
    return "; ".join(filter(None, (f"{share:.1%}", way_out(share))))
