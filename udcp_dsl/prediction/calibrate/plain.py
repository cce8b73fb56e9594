"""Floats as JSON values, without loss.

A finite float prints as the shortest decimal that reads back as itself; JSON has no infinity, so infinities are text.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from udcp_dsl.diagnostics import InputError

PlainFloat: TypeAlias = float | str

RESAVE = "the saved calibration is damaged: calibrate and save again"


def encode(values: Iterable[float]) -> list[PlainFloat]:
    """Floats (none of them NaN) for JSON: infinities become "inf" and "-inf"."""
    return [x if math.isfinite(x) else str(x) for x in map(float, values)]


def decode(values: object, what: str) -> list[float]:
    """Inverse of `encode`; refuses anything else, including NaN."""
    if not isinstance(values, list):
        raise InputError(f"{what}: expected a list of numbers, found {values!r}; {RESAVE}")
    return [_decode_one(x, what) for x in values]


def _decode_one(x: object, what: str) -> float:
    if x in ("inf", "-inf") and isinstance(x, str):
        return float(x)
    # Another JSON writer may turn a whole float into an int; `encode` never gives one too large for a float.
    if isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= sys.float_info.max and float(x) == x:
        return float(x)
    raise InputError(f'{what}: expected a number, "inf" or "-inf", found {x!r}; {RESAVE}')


def fields(data: object, names: Collection[str], what: str) -> Mapping[str, object]:
    """Return the data if it is a mapping with exactly these keys; raise an error otherwise."""
    if not isinstance(data, Mapping) or set(data) != set(names):
        found = sorted(map(str, data)) if isinstance(data, Mapping) else repr(data)
        raise InputError(f"{what}: expected the keys {sorted(names)}, found {found}; {RESAVE}")
    return data
