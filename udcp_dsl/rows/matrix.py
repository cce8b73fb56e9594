"""Turn a matrix of numbers into checked probabilities, or raise an error that names the row and a fix.

Arrays, tensors, frames and lists turn into an (n, K) matrix whose columns are in the order of the labels and whose rows
are distributions; logits and unnormalised scores are converted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, RowFault, did_you_mean, warn, worded
from udcp_dsl.rows.columns import (
    first_repeated,
    flag,
    frame_array,
    is_frame,
    is_tensor,
    label_names,
    positions_of_labels,
    tensor_array,
)

Matrix: TypeAlias = npt.NDArray[np.floating[Any]]
Mask: TypeAlias = npt.NDArray[np.bool_]

_INDEX = re.compile(r"__index_level_\d+__")  # a column that pandas writes for an index without a name
_MAX_NAMED = 30  # unexpected columns that a message names
_PIECE = 1 << 19  # entries checked at a time, which stay in the cache between two passes
_BITS = {"bfloat16": 8, "float16": 11}  # significant bits; all other dtypes count as float32
_FLOAT32_BITS = 24
_MAX_FLOAT32_SUM = 1 << 18  # longest row whose sum is checked in float32 first


def probabilities(
    probs: Any,
    labels: Sequence[str],
    *,
    class_names: Any = None,
    logits: bool = False,
    normalize: bool = False,
    others: Sequence[str] = (),
    empty: bool = False,
) -> Matrix:
    """Check the probabilities of n instances over K labels and put their columns into the order of `labels`.

    Takes numpy arrays, torch tensors and nested lists, whose columns are in the order of `labels` or, if given, of
    `class_names`; and pandas or polars frames, whose columns are matched by name (`others` are those that are not
    labels). A float32 or float64 array in order is passed through without a copy. `logits=True` takes the softmax and
    `normalize=True` divides by the row sums, both in float64. `empty=True` allows zero rows. Returns a C-contiguous
    float32 or float64 matrix. Raises `InputError` unless each row is a distribution.

    >>> probabilities([[0.7, 0.3], [0.5, 0.5]], ["ham", "spam"], class_names=["spam", "ham"])
    array([[0.3, 0.7],
           [0.5, 0.5]])
    """
    logits, normalize = flag(logits, "logits"), flag(normalize, "normalize")
    if logits and normalize:
        both = worded("logits=True and normalize=True", "--logits and --normalize")
        raise InputError(f"{both} exclude each other: a softmax is already normalized")
    if is_frame(probs):
        raw = _frame_in_order(probs, labels, class_names, others)
    elif others:
        raise InputError(f"{others[0]!r} names a column of a frame; an array has no named columns")
    else:
        raw = arrange(_array(probs), labels, class_names)
    if not empty:
        refuse_no_rows(raw)
    dtype = str(probs.dtype).removeprefix("torch.") if is_tensor(probs) else raw.dtype.name
    bits = _BITS.get(dtype, _FLOAT32_BITS)
    values: Matrix = np.require(raw, np.float32 if raw.dtype in (np.float16, np.float32) else np.float64, ["C", "A"])
    if logits:
        return _softmax(values, labels, bits)
    return _normalized(values, labels) if normalize else _checked(values, labels, bits)


def arrange(array: npt.NDArray[Any], labels: Sequence[str], class_names: Any = None) -> npt.NDArray[Any]:
    """A numeric (n, K) array, with columns moved from the order of `class_names` to that of `labels`."""
    K = len(labels)
    if array.ndim == 1 and array.size:
        way_out = "for one instance pass a (1, K) matrix: probs[None, :]"
        if array.size != K:
            way_out = f"expected a matrix, (n, {K}); are probabilities and true labels swapped?"
        raise InputError(f"the probabilities are a vector of {array.size}; {way_out}")
    if array.ndim not in (1, 2):
        raise InputError(f"the probabilities have shape {array.shape}; expected two dimensions, (n, {K})")
    if array.shape == (0,):
        array = array.reshape(0, K)
    if array.shape[1] != K:
        help = ""
        if len(array) == K:
            help = f"; they look transposed: {worded('pass probs.T', 'save the transposed array')}"
        elif (array.shape[1], K) == (1, 2):
            help = "; pass both columns: np.hstack([1 - p, p])"
        raise InputError(f"the probabilities have {array.shape[1]} columns, but there are {K} labels{help}")
    if array.dtype.kind not in "fiu" and array.dtype.name != "bfloat16":
        raise InputError(_not_numbers_message(array, labels))
    if class_names is None:
        return array
    positions = check_class_names(class_names, labels)
    return array if positions == list(range(K)) else np.take(array, positions, axis=1)


def refuse_no_rows(array: npt.NDArray[Any]) -> None:
    if len(array) == 0:
        raise InputError("the probabilities are empty: there are no rows")


def match_columns(
    columns: Iterable[object], labels: Sequence[str], others: Sequence[str] = (), only_labels: bool = False
) -> list[int]:
    """The position of each label's column. `others` are the columns that are not labels; all of them must exist.

    Any further column is refused, except the index that pandas writes into files, unless `only_labels` is true.
    """
    names = [str(column) for column in columns]
    index = {name: position for position, name in enumerate(names)}
    if len(index) < len(names):
        raise InputError(f"column {first_repeated(names)!r} appears twice")
    for other in others:
        if other not in index:
            raise InputError(f"there is no column {other!r}; {did_you_mean(other, names)}")
        if other in labels:
            raise InputError(f"column {other!r} is a label and cannot contain ids, groups or true labels as well")
    known = {*labels, *others}
    unknown = [name for name in names if name not in known and not _INDEX.fullmatch(name)]
    missing = [label for label in labels if label not in index]
    if missing and names == [str(i) for i in range(len(names))]:
        raise InputError(
            f"the columns are named 0 to {len(names) - 1}, not by label: name them, or pass an array whose columns "
            "are in the order of the labels"
        )
    if missing:
        raise InputError(
            f"no column for label {missing[0]!r} ({len(missing)} of {len(labels)} labels have none); "
            + did_you_mean(missing[0], unknown or names)
        )
    if unknown and not only_labels:
        raise InputError(_unexpected_message(unknown))
    return [index[label] for label in labels]


def in_order_of_columns(labels: Sequence[str], positions: Sequence[int]) -> tuple[str, ...]:
    """The labels in the order of their columns, from the position of each label's column.

    >>> in_order_of_columns(["ham", "spam"], [3, 1])
    ('spam', 'ham')
    """
    return tuple(labels[at] for at in sorted(range(len(labels)), key=positions.__getitem__))


def columns_of(probs: Any, labels: Sequence[str], class_names: Any = None) -> tuple[str, ...] | None:
    """The labels in the order of the columns of `probs`, if these have names, or are named by `class_names`."""
    if is_frame(probs):
        names = {str(column): position for position, column in enumerate(probs.columns)}
        if set(labels) <= set(names):
            return in_order_of_columns(labels, [names[label] for label in labels])
    return None if class_names is None else names_of_classes(class_names)


def _unexpected_message(unknown: Sequence[str]) -> str:
    *most, last = map(repr, unknown[:_MAX_NAMED])
    if len(unknown) > _MAX_NAMED:
        most, last = [*most, last], f"{len(unknown) - _MAX_NAMED} more"
    named = f"{', '.join(most)} and {last}" if most else last
    subject = f"columns {named} are not labels; name them" if most else f"column {named} is not a label; name it"
    s, it = ("s", "them") if most else ("", "it")
    return f"{subject} as the column{s} of ids, groups or true labels, or have {it} ignored" + worded(
        ", by ignore=[...]", " (--id, --group, --truth, --ignore, or --only-labels)"
    )


def names_of_classes(class_names: Any) -> tuple[str, ...]:
    """Class names as texts; refuses a set or a dict (they have no order), a single string, and entries such as None."""
    return label_names(class_names, worded("class_names", "--class-names"))


def check_class_names(class_names: Any, labels: Sequence[str]) -> list[int]:
    """The position of each label in `class_names`."""
    return positions_of_labels(names_of_classes(class_names), labels, worded("class_names", "--class-names"))


def sum_tolerance(K: int, bits: int) -> float:
    """How far from 1 the rounded probabilities of one row may sum, when `bits` significant bits are held.

    Let u = 2^-bits. Exponentials, their sum and the quotients are each rounded once: an error of at most 3u(1 + 2u).
    Every library computes the sum in float32 or better, at worst term by term: K 2^-24. A probability below the normal
    range of float16 is off by up to 2^-25: K 2^-25. Text with six decimals needs about 1e-5.
    """
    u = 2.0**-bits
    return 3 * u * (1 + 2 * u) + 1.5 * K * 2.0**-24 + 1e-5


def _array(probs: Any) -> npt.NDArray[Any]:
    if is_tensor(probs):
        return tensor_array(probs)
    if isinstance(probs, np.ma.MaskedArray):
        raise InputError("the probabilities are a masked array: drop the masked rows and pass the rest as .data")
    if hasattr(probs, "toarray") or hasattr(probs, "todense"):
        raise InputError("the probabilities are a sparse matrix: pass probs.toarray()")
    if hasattr(type(probs), "columns") or hasattr(type(probs), "column_names"):
        raise InputError(
            f"the probabilities are a {type(probs).__name__} of {type(probs).__module__.partition('.')[0]}: pass a "
            "pandas or polars DataFrame, whose columns are matched by name (.collect() makes one of a lazy frame)"
        )
    try:
        array = np.asarray(probs)
    except (ValueError, TypeError, RuntimeError) as error:
        rows = probs if isinstance(probs, list | tuple) else []
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in rows]
        ragged = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
        if ragged is None:
            raise InputError(f"the probabilities cannot be read as a matrix: {error}") from error
        raise InputError(
            f"the probabilities are ragged: row {ragged} has {lengths[ragged]} entries, row 0 has {lengths[0]}"
        ) from error
    if array.ndim == 0:
        raise TypeError(f"the probabilities are a {type(probs).__name__}; expected a matrix of n rows and K columns")
    return array


def _not_numbers_message(array: npt.NDArray[Any], labels: Sequence[str]) -> str:
    """The message about an array whose dtype is not a type of real numbers."""
    if array.dtype.kind in "OUS":
        for (row, column), entry in np.ndenumerate(array):
            try:
                float(entry)
            except (TypeError, ValueError, OverflowError):  # OverflowError: an integer with hundreds of digits
                shown = entry.item() if isinstance(entry, np.generic) else entry
                return f"the probabilities: row {row}, label {labels[column]!r}, is {shown!r}, not a number"
        return f"the probabilities have dtype {array.dtype}: pass np.asarray(probs, dtype=float)"
    kinds = {"c": "complex numbers", "b": "true or false"}
    return f"the probabilities are {kinds.get(array.dtype.kind, array.dtype)}, not real numbers"


def _frame_in_order(frame: Any, labels: Sequence[str], class_names: Any, others: Sequence[str]) -> npt.NDArray[Any]:
    columns = list(frame.columns)
    if class_names is not None and columns == list(range(len(columns))):  # a pandas frame whose columns have no names
        positions = check_class_names(class_names, labels)
        if {str(column) for column in columns} == set(labels) and [str(p) for p in positions] != list(labels):
            raise InputError("class_names and the names of the frame's columns disagree: leave class_names out")
        return arrange(frame_array(frame, list(range(len(columns)))), labels, class_names)
    return arrange(frame_array(frame, match_columns(columns, labels, others)), labels)


def _pieces(values: Matrix) -> Iterator[slice]:
    step = max(1, _PIECE // values.shape[1])
    return (slice(start, start + step) for start in range(0, len(values), step))


def _row_sums(piece: Matrix) -> npt.NDArray[np.float64]:
    with np.errstate(invalid="ignore", over="ignore"):
        sums: npt.NDArray[np.float64] = piece @ np.ones(piece.shape[1])
    return sums


def _checked(values: Matrix, labels: Sequence[str], bits: int) -> Matrix:
    """The same matrix if its rows are distributions (a copy only to turn -0.0 into 0.0)."""
    tolerance = sum_tolerance(len(labels), bits)
    if all(_passes_quick_check(values[rows], tolerance) for rows in _pieces(values)):
        return values
    refuse, logits = _Refusal(values, labels, "probabilities"), worded("logits=True", "--logits")
    refuse.if_not_finite()
    refuse(lambda p: p < 0, "is {:.8g}, which is negative", f"for logits pass {logits}")
    help = f"for scores that are not normalized pass {worded('normalize=True', '--normalize')}, for logits {logits}"
    refuse(lambda p: p > 1 + tolerance, "is {:.8g}, which is greater than 1", help)
    refuse(lambda p: _wrong_sums(p, bits), "sums to {:.8g}, not to 1", help)
    return values + 0.0 if any(np.signbit(values[rows]).any() for rows in _pieces(values)) else values


def _passes_quick_check(piece: Matrix, tolerance: float) -> bool:
    """Whether no entry is negative or -0.0 and all rows sum to 1: a fast check that nearly always succeeds."""
    # Read as an integer, every float with a minus sign is negative, also -0.0; NaN and infinity fail the row sums.
    if piece.view(np.int32 if piece.dtype == np.float32 else np.int64).min() < 0:
        return False
    # einsum and not BLAS, which would start threads for a piece of this size. The float32 sum of K nonnegative numbers
    # that sum to about 1 is off, in any order, by at most K 2^-24 / (1 - K 2^-24)^2, here 1.04 K 2^-24.
    K = piece.shape[1]
    single = piece.dtype == np.float32
    slack = 1.1 * K * 2.0**-24 if single else 0.0
    if not single or K <= _MAX_FLOAT32_SUM:
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(np.einsum("ij->i", piece) - 1).max()
        if error <= tolerance - slack:
            return True
    return bool(np.abs(_row_sums(piece) - 1).max() <= tolerance)


def _wrong_sums(piece: Matrix, bits: int) -> Mask:
    """The rows that do not sum to 1 at the precision that their values show: float16 is often cast to a wider type."""
    error = np.abs(_row_sums(piece) - 1)
    off: Mask = error > sum_tolerance(piece.shape[1], bits)
    for coarse in _BITS.values():
        if coarse < bits and off.any():
            mantissa = np.ldexp(np.frexp(piece[off])[0], coarse)
            fits = (mantissa == np.floor(mantissa)).all(axis=1)
            off[off] = ~fits | (error[off] > sum_tolerance(piece.shape[1], coarse))
    return off


def _softmax(values: Matrix, labels: Sequence[str], bits: int) -> Matrix:
    out = np.empty(values.shape, np.float64)
    tolerance = sum_tolerance(len(labels), bits)
    distributions = True
    for rows in _pieces(values):
        piece = values[rows].astype(np.float64)
        top = piece.max(axis=1, keepdims=True)
        if not np.isfinite(top).all():
            refuse = _Refusal(values, labels, "logits")
            refuse(np.isnan, "is NaN", "drop the row or repair the classifier")
            refuse(lambda p: p == np.inf, "is infinite", "only -inf is allowed, for a label that is ruled out")
            refuse(lambda p: (p == -np.inf).all(axis=1), "is -inf for every label", "no label is left to choose")
        with np.errstate(over="ignore"):  # logits near the largest float
            sums = piece.sum(axis=1)
            distributions = bool(distributions and piece.min() >= 0 and np.abs(sums - 1).max() <= tolerance)
            piece = np.exp(piece - top)
        out[rows] = piece / piece.sum(axis=1, keepdims=True)
    if distributions and len(values):
        given = worded("logits=True", "--logits")
        warn(f"{given}, but every row is a distribution already: were probabilities passed?")
    return out


def _normalized(values: Matrix, labels: Sequence[str]) -> Matrix:
    out = np.empty(values.shape, np.float64)
    for rows in _pieces(values):
        piece = values[rows].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = piece.sum(axis=1, keepdims=True)
        if not (piece.min() >= 0 and sums.min() > 0 and np.isfinite(sums).all()):
            refuse, logits = _Refusal(values, labels, "scores"), worded("logits=True", "--logits")
            refuse.if_not_finite()
            refuse(lambda p: p < 0, "is {:.8g}, which is negative", f"for logits pass {logits}")
            refuse(lambda p: (p == 0).all(axis=1), "is zero for every label", "it has no sum to divide by")
            refuse(lambda p: np.isinf(_row_sums(p)), "sums to more than float64 can represent", "scale the scores down")
        out[rows] = piece / sums + 0.0  # 0.0 and not -0.0
    return out


@dataclass(frozen=True)
class _Refusal:
    """Raises an error about the first row that a test marks, with the number of such rows."""

    values: Matrix
    labels: Sequence[str]
    noun: str

    def if_not_finite(self) -> None:
        self(np.isnan, "is NaN", "drop the row or repair the classifier")
        self(np.isinf, "is infinite", "drop the row or repair the classifier")

    def __call__(self, test: Callable[[Matrix], Mask], what: str, help: str) -> None:
        """`test` marks entries or rows of a piece as wrong; `what` may show the entry or the row's sum."""
        first, count, place = -1, 0, ""
        for rows in _pieces(self.values):
            found = test(self.values[rows])
            bad = np.flatnonzero(found if found.ndim == 1 else found.any(axis=1))
            if bad.size and first < 0:
                first = rows.start + int(bad[0])
                row = self.values[first]
                if found.ndim == 1:
                    place, what = "", what.format(float(_row_sums(row[None, :])[0]))
                else:
                    column = int(np.argmax(found[bad[0]]))
                    place, what = f", label {self.labels[column]!r},", what.format(float(row[column]))
            count += bad.size
        if count:
            fault, others = f"{place} {what}", f"in {count} of {len(self.values)} rows; rows are "
            raise RowFault(
                first,
                f"{self.noun}: ",
                f"{fault} ({others}counted from 0); {help}",
                moved_after=f"{fault} (counted from 0); {help}",
            )
