"""What calibration is given, made into arrays: scores, levels, groups and classes; a fault is named by its row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.calibrate.levels import Level, exact_level, show_level

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
Groups: TypeAlias = ArrayLike | Sequence[object]  # names or whole numbers, mixed or not


def as_scores(scores: ArrayLike) -> FloatArray:
    """The scores of the true labels as (n,) float64; infinite ones are legal."""
    try:
        given = np.asarray(scores)
    except ValueError as e:
        raise InputError(f"scores are ragged: give one number a calibration point ({e})") from e
    if given.dtype.kind not in "iuf" or given.ndim != 1:
        raise InputError(
            f"scores are an array of {given.dtype}, shape {given.shape}: "
            "give the scores of the true labels, one number a row"
        )
    values = given.astype(np.float64, copy=False)
    if bool(np.isnan(values).any()):
        raise InputError(
            f"row {int(np.argmax(np.isnan(values)))}: the score is NaN; mend the probabilities or the oracle"
        )
    return values


def as_levels(alphas: Level | Iterable[Level]) -> tuple[Fraction, ...]:
    """One level or several, exactly, in the order given."""
    several = alphas if isinstance(alphas, Iterable) and not isinstance(alphas, str) else [alphas]
    levels = tuple(exact_level(alpha) for alpha in several)
    if not levels or len(set(levels)) < len(levels):
        raise InputError(f"alphas are {list(map(show_level, levels))}: give at least one, and each only once")
    return levels


def group_names(groups: Groups | None, n: int | None) -> list[str]:
    """The name of each row's group; n, where given, is how many rows there must be."""
    # A plain list is not made an array first: numpy would turn a missing value among texts into the text "nan".
    values = np.asarray(groups).tolist() if hasattr(groups, "__array__") else groups
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(f"groups are {values!r}: give one name or whole number a row")
    if n is not None and len(values) != n:
        raise InputError(f"groups have {len(values)} rows, the scores {n}: give one group a row")
    return [_group_name(value, row) for row, value in enumerate(values)]


def _group_name(value: object, row: int) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():  # frames hold whole numbers as floats where some are missing
        value = int(value)
    if isinstance(value, str | int):
        return str(value)
    raise InputError(
        f"row {row}: the group is {value!r}; give a name or a whole number (a name of its own for what is missing)"
    )


def as_classes(y: ArrayLike | None, n_classes: int | None, n: int) -> tuple[int, IntArray]:
    """The number of classes, and the class of each of the n rows."""
    if isinstance(n_classes, bool) or not isinstance(n_classes, int | np.integer) or n_classes < 1:
        raise InputError(f"n_classes is {n_classes!r}: give the number of labels")
    codes = np.asarray(y)
    if codes.dtype.kind not in "iu" or codes.shape != (n,):
        raise InputError(
            f"y is an array of {codes.dtype}, shape {codes.shape}: "
            f"give the index of the true label of each of the {n} scores"
        )
    outside = (codes < 0) | (codes >= n_classes)
    if bool(outside.any()):
        row = int(np.argmax(outside))
        raise InputError(
            f"row {row}: y is {codes[row]}, outside 0 to {n_classes - 1}: give indices of the {n_classes} labels"
        )
    return int(n_classes), codes.astype(np.intp, copy=False)
