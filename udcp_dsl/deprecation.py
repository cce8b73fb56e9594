"""Deprecation of public names: until they are removed, they work, with a warning that says what to use instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module


def deprecated(old: str, new: str, *, as_of: str, removed_in: str, level: int = 3) -> None:
    """Warn that `old` is deprecated; `level` is the `stacklevel` of the user's own line."""
    warnings.warn(
        f"{old} is deprecated since udcp_dsl {as_of} and will be removed in {removed_in}: use {new}",
        DeprecationWarning,
        stacklevel=level,
    )


def forwarding(old: str, new: str, *, as_of: str, removed_in: str) -> Callable[[str], object]:
    """The `__getattr__` of a module that has moved: its names are those of the new one, with a warning."""

    def get(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        found: object = getattr(import_module(new), name)
        deprecated(old, new, as_of=as_of, removed_in=removed_in)
        return found

    return get
