"""Deprecation of public names: until they are removed, they work, with a warning that says what to use instead."""

from __future__ import annotations

import warnings


def deprecated(old: str, new: str, *, as_of: str, removed_in: str, level: int = 3) -> None:
    """Warn that `old` is deprecated; `level` is the `stacklevel` of the user's own line."""
    warnings.warn(
        f"{old} is deprecated since udcp_dsl {as_of} and will be removed in {removed_in}: use {new}",
        DeprecationWarning,
        stacklevel=level,
    )
