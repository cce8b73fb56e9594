"""Convert the arguments of calibration to arrays (scores, groups, classes, weights); errors name the row."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from udcp_dsl.diagnostics import InputError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]


def points_of_cells(codes: IntArray, cells: int) -> list[IntArray]:
    """The indices of the points in each cell, rising, from the cell of each point.

    >>> [cell.tolist() for cell in points_of_cells(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    ends = np.cumsum(np.bincount(codes, minlength=cells))[:-1]
    small = codes.astype(np.uint16) if cells <= 1 << 16 else codes  # numpy radix-sorts 16-bit integers
    return np.split(np.argsort(small, kind="stable"), ends)


def as_scores(scores: ArrayLike) -> FloatArray:
    """The scores of the true labels as (n,) float64; infinite ones are legal."""
    try:
        given = np.asarray(scores)
    except ValueError as e:
        raise InputError(f"scores are ragged: give one number per calibration row ({e})") from e
    if given.dtype.kind not in "iuf" or given.ndim != 1:
        raise InputError(
            f"scores are an array of {given.dtype}, shape {given.shape}: "
            "give the scores of the true labels, one number per row"
        )
    values = given.astype(np.float64, copy=False)
    if bool(np.isnan(values).any()):
        raise InputError(
            f"row {int(np.argmax(np.isnan(values)))}: the score is NaN; fix the probabilities or the oracle"
        )
    return values


def as_classes(
    y: ArrayLike | None, n_classes: int | None, n: int, *, what: str = "y", of: str = "true label"
) -> tuple[int, IntArray]:
    """The number of classes, and the class of each of the n rows; `what` names `y` in messages, `of` what it counts."""
    if isinstance(n_classes, bool) or not isinstance(n_classes, int | np.integer) or n_classes < 1:
        raise InputError(f"n_classes is {n_classes!r}: give the number of labels")
    codes = np.asarray(y)
    if codes.dtype.kind not in "iu" or codes.shape != (n,):
        raise InputError(
            f"{what} is an array of {codes.dtype}, shape {codes.shape}: give the index of the {of} of each of the {n} "
            "scores"
        )
    outside = (codes < 0) | (codes >= n_classes)
    if bool(outside.any()):
        row = int(np.argmax(outside))
        raise InputError(f"row {row}: {what} is {codes[row]}, outside 0 to {n_classes - 1}: give the index of the {of}")
    return int(n_classes), codes.astype(np.intp, copy=False)


# Floats as JSON values, without loss.
#
# A finite float prints as the shortest decimal that reads back as itself; JSON has no infinity, so infinities are text.


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
