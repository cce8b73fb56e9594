"""Attributes of rows: true labels as positions, groups and sample ids as strings, weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, RowFault, did_you_mean, warn
from udcp_dsl.expression.domain import WHOLE_NUMBER
from udcp_dsl.prediction.calibrate.checked_arrays import as_weights, group_names
from udcp_dsl.prediction.containers import entries_of, listed, texts_of

Positions: TypeAlias = npt.NDArray[np.int64]
Names: TypeAlias = npt.NDArray[np.str_]


class NamedPositions(npt.NDArray[np.int64]):
    """True labels as positions that know their names, so that no order of labels has to be guessed.

    They are integers for everything but this package, which reads their names. What is computed from them is an
    ordinary array to it, unless it consists of positions again.

    >>> y = NamedPositions.of([1, 0, 1], ["spam", "ham"])
    >>> y[1:].names, int(y.sum())
    (['spam', 'ham'], 2)
    """

    labels: tuple[str, ...]

    @classmethod
    def of(cls, positions: npt.ArrayLike, labels: Sequence[str]) -> NamedPositions:
        found = np.asarray(positions, np.int64).view(cls)
        found.labels = tuple(labels)
        return found

    def __array_finalize__(self, made_from: Any) -> None:
        self.labels = getattr(made_from, "labels", ())

    @property
    def names(self) -> Any:
        """The name of each entry; the array as it is, if some entry is no position."""
        if self.ndim != 1 or self.dtype.kind not in "iu" or not ((self >= 0) & (self < len(self.labels))).all():
            return np.asarray(self)
        return [self.labels[position] for position in self.tolist()]


def truth(y: Any, labels: Sequence[str], n: int | None = None) -> Positions:
    """The positions of true labels: strings are names; integers are positions, or names if all labels are numbers.

    Refuses missing values, floats, booleans, one-hot rows, names and positions that do not exist, and, if `n` is
    given, any other number of entries.

    >>> truth(["spam", "ham"], ["ham", "spam"])
    array([1, 0])
    >>> truth([30, 10], ["10", "20", "30"])
    array([2, 0])
    """
    entries = entries_of(y, "true labels", n)
    if not entries and n != 0:
        raise InputError("true labels: empty")
    index = {label: position for position, label in enumerate(labels)}
    numeric = sum(WHOLE_NUMBER.fullmatch(label) is not None for label in labels)
    kinds = set(map(type, entries))
    if not numeric and kinds == {int} and min(entries) >= 0 and max(entries) < len(labels):
        return np.array(entries, np.int64)
    if kinds == {str} or (kinds == {int} and numeric == len(labels)):  # all of one type: look up at once
        named: dict[Any, int] = index if kinds == {str} else {int(label): at for label, at in index.items()}
        found = list(map(named.get, entries))
        if None not in found:
            return np.array(found, np.int64)
    positions = np.empty(len(entries), np.int64)
    for row, entry in enumerate(entries):
        if isinstance(entry, str) or (_is_integer(entry) and numeric == len(labels)):
            position = index.get(str(entry))
        else:
            position = entry if _is_integer(entry) and not numeric and 0 <= entry < len(labels) else None
        if position is None:
            raise RowFault(row, "true labels: ", f" (counted from 0) {_fault_of_truth(entry, labels, numeric)}")
        positions[row] = position
    return positions


def are_positions(entries: Sequence[Any], labels: Sequence[str]) -> bool:
    """Whether true labels that `truth` accepts are positions, not names."""
    return bool(entries) and _is_integer(entries[0]) and not all(map(WHOLE_NUMBER.fullmatch, labels))


def labels_as_given(labels: Sequence[str], y: Any = None, class_names: Any = None) -> tuple[Any, ...] | None:
    """The labels in the type in which the user gave them; None if that is text, as in the spec.

    True labels that are names decide: integers if all labels are numbers, else texts. If true labels are positions or
    are not given, `class_names` decide. Iterators are ignored, as they can be read only once.

    >>> labels_as_given(["10", "20"], y=[20, 10]), labels_as_given(["10", "20"], y=["10"], class_names=[20, 10])
    ((10, 20), None)
    >>> labels_as_given(["b", "7"], class_names=[7, "b"]), labels_as_given(["a", "b"], y=[0, 1])
    (('b', 7), None)
    """
    kinds = set() if y is None or isinstance(y, Iterator) else set(map(type, listed(y, "true labels")))
    if kinds == {str}:
        return None
    if kinds == {int} and all(WHOLE_NUMBER.fullmatch(label) for label in labels):
        return tuple(map(int, labels))
    if class_names is None or isinstance(class_names, Iterator):
        return None
    given = {str(name): name for name in listed(class_names, "class_names")}
    return None if all(isinstance(name, str) for name in given.values()) else tuple(given[label] for label in labels)


def groups_of(values: Any, n: int) -> Names:
    """One group per row, as strings, by the rule for all groups: `calibrate.checked_arrays.group_names`.

    >>> groups_of([1, "north", 1.0], 3)
    array(['1', 'north', '1'], dtype='<U5')
    """
    return np.array(group_names(values, n), dtype=np.str_)


def id_texts(values: Any, n: int) -> Names:
    """One id per row, as strings; refuses missing values."""
    return np.array(texts_of(values, "sample ids", n), dtype=np.str_)


def sample_ids(values: Any, n: int) -> Names:
    """One id per row, as strings; refuses missing values, and warns if rows share an id.

    Only their ids distinguish rows in the output.
    """
    return np.array(sample_texts(values, n), dtype=np.str_)


def sample_texts(values: Any, n: int) -> list[str]:
    """`sample_ids` as a list."""
    names = texts_of(values, "sample ids", n)
    if len(set(names)) < len(names):
        repeated = {name: count for name, count in Counter(names).items() if count > 1}
        name = next(iter(repeated))
        first = names.index(name)
        warn(
            f"sample ids: {name!r} is the id of rows {first} and {names.index(name, first + 1)} (counted from 0), and "
            f"{sum(repeated.values())} of {len(names)} rows share an id: a join by id would mix up their sets"
        )
    return names


def weights_of(values: Any, n: int) -> npt.NDArray[np.float64]:
    """One weight per row: finite nonnegative numbers, or their texts, as read from files.

    >>> weights_of([1, 0.5, "0.25"], 3)
    array([1.  , 0.5 , 0.25])
    """
    weights = np.empty(n)
    for row, entry in enumerate(entries_of(values, "weights", n)):
        try:
            weights[row] = np.nan if isinstance(entry, bool) else entry
        except (TypeError, ValueError):
            raise RowFault(row, "weights: ", f" (counted from 0) is {entry!r}, not a number") from None
    return as_weights(weights, n)


def _is_integer(entry: object) -> bool:
    return isinstance(entry, int) and not isinstance(entry, bool)


def _fault_of_truth(entry: Any, labels: Sequence[str], numeric: int) -> str:
    if isinstance(entry, str) or (_is_integer(entry) and numeric == len(labels)):
        if WHOLE_NUMBER.fullmatch(str(entry)) and not numeric:
            return (
                f"is the string {entry!r}, which is not a label; positions must be integers: pass [int(i) for i in y]"
            )
        names = "; the labels are numbers, so integers are names, not positions" if _is_integer(entry) else ""
        return f"is {entry!r}, which is not a label; {did_you_mean(str(entry), labels)}{names}"
    if _is_integer(entry) and numeric:
        return (
            f"is the integer {entry}; some labels are numbers and some are not, so it may be a name or a "
            "position: pass names, as strings"
        )
    if _is_integer(entry):
        what = "negative" if entry < 0 else "out of range"
        return f"is {entry}, which is {what}; positions run from 0 to {len(labels) - 1}"
    if isinstance(entry, bool):
        return f"is {entry}, a truth value; pass names, or positions as integers: y.astype(int)"
    if isinstance(entry, float):
        way_out = "integers" if numeric == len(labels) else "names, or positions as integers"
        return f"is {entry}, a float; pass {way_out}: y.astype(int)"
    if isinstance(entry, list | tuple | np.ndarray):
        return "is a sequence; of one-hot rows or scores pass np.argmax(y, axis=1)"
    return f"is a {type(entry).__name__}; pass names or positions"
