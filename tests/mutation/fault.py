"""A fault to plant: a small change to one file, and what is to catch it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """`old`, which the file holds once, becomes `new`. `by` are arguments of pytest, or after "validate" of udcp."""

    name: str
    file: str
    old: str
    new: str
    by: tuple[str, ...]
