"""Convert the arguments of calibration to arrays (scores, groups, classes, weights); errors name the row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from udcp_dsl.diagnostics import InputError, RowFault
from udcp_dsl.prediction.containers import texts_of

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
Groups: TypeAlias = ArrayLike | Sequence[object]  # names or numbers, mixed or not

_WHOLE_FLOAT = re.compile(r"(?:0|-?[1-9][0-9]*)\.0+")


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


def group_names(groups: Groups | None, n: int | None) -> list[str]:
    """The name of each row's group, as used everywhere; n, if given, is the required number of rows.

    A group is a single value, identified by its text. 7, 7.0, "7" and "7.0" are one group, because a column of whole
    numbers turns into floats as soon as one is missing. Missing values and empty text are refused.

    >>> group_names([7, 7.0, "7", "7.0", 1.5, "north"], 6)
    ['7', '7', '7', '7', '1.5', 'north']
    """
    texts = texts_of(groups, "groups", n)
    names = {text: text.partition(".")[0] if _WHOLE_FLOAT.fullmatch(text) else text for text in set(texts)}
    return [names[text] for text in texts]


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


def as_weights(weights: ArrayLike | None, n: int, what: str = "weights") -> FloatArray:
    """Finite numbers from 0, one per row; `what` names them in messages."""
    try:
        given = np.asarray(weights)
    except ValueError as e:
        raise InputError(f"{what} are ragged: give one number per row ({e})") from e
    if given.dtype.kind not in "iuf" or given.shape != (n,):
        raise InputError(
            f"{what} are an array of {given.dtype}, shape {given.shape}: give a number for each of {n} rows"
        )
    values = given.astype(np.float64, copy=False)
    bad = ~((values >= 0) & (values < np.inf))  # NaN too
    if bool(bad.any()):
        row = int(np.argmax(bad))
        raise RowFault(row, f"{what}: ", f" (counted from 0) is {values[row]:g}; give finite numbers from 0")
    return values
