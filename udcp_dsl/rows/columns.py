"""Columns of rows, from what users pass (arrays, tensors, frames, series, lists): true labels as positions, groups and
ids as strings, weights.

torch, pandas and polars are recognised without importing them. A matrix that is too large for memory is a
`BlockedMatrix`, which is read in blocks of rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, RowFault, did_you_mean, warn
from udcp_dsl.expression.domain import WHOLE_NUMBER

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound=np.generic)
C = TypeVar("C", bound="DataclassInstance")
Positions: TypeAlias = npt.NDArray[np.int64]
Names: TypeAlias = npt.NDArray[np.str_]
Groups: TypeAlias = npt.ArrayLike | Sequence[object]  # names or numbers, mixed or not

_WHOLE_FLOAT = re.compile(r"(?:0|-?[1-9][0-9]*)\.0+")


class BlockedMatrix:
    """A matrix (n, K) that is not in memory: its rows are read in blocks, in order, at each use.

    `read` returns an iterator over the blocks, from the first one each time it is called. A selection of rows in rising
    order is a `BlockedMatrix` again; so is the result of `map`.

    >>> P = BlockedMatrix((4, 2), lambda: iter([np.eye(2), np.ones((2, 2))]))
    >>> apply_by_rows(P[1:3], lambda block: block.sum(axis=1)), to_array(P[np.array([0, 3])]).tolist()
    (array([1., 2.]), [[1.0, 0.0], [1.0, 1.0]])
    """

    is_remote = False  # whether functions of rows run in other processes, so that they must be picklable

    def __init__(self, shape: tuple[int, int], read: Callable[[], Iterator[npt.NDArray[Any]]]) -> None:
        self.shape = shape
        self._read = read

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
        """The blocks, each with the slice of rows that it holds."""
        at = 0
        for block in self._read():
            yield slice(at, at + len(block)), block
            at += len(block)

    def map(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> BlockedMatrix:
        """The matrix with `change` applied to each block; the result for a row must not depend on the other rows."""
        return BlockedMatrix(self.shape, lambda: map(change, self._read()))

    def __getitem__(self, rows: slice | npt.NDArray[np.integer[Any]]) -> BlockedMatrix:
        chosen = np.arange(len(self))[rows]
        if (np.diff(chosen) <= 0).any():
            raise IndexError("rows that are read in blocks are taken in rising order")

        def read() -> Iterator[npt.NDArray[Any]]:
            first = 0
            for at, block in self.blocks():
                last = int(np.searchsorted(chosen, at.stop))
                if last > first:
                    yield block[chosen[first:last] - at.start]
                first = last
                if last == len(chosen):
                    return

        return BlockedMatrix((len(chosen), self.shape[1]), read)

    def apply(self, function: Callable[..., npt.NDArray[S]], *columns: npt.NDArray[Any]) -> npt.NDArray[S]:
        """Call `function` on each block and its part of the columns; return its results for all rows as one array."""
        out: npt.NDArray[S] | None = None
        for at, block in self.blocks():
            answer = function(block, *(column[at] for column in columns))
            out = np.empty((len(self), *answer.shape[1:]), dtype=answer.dtype) if out is None else out
            out[at] = answer
        if out is None:
            return function(np.empty((0, self.shape[1])), *(column[:0] for column in columns))
        return out


def apply_by_rows(
    P: npt.NDArray[Any] | BlockedMatrix, function: Callable[..., npt.NDArray[S]], *columns: npt.NDArray[Any]
) -> npt.NDArray[S]:
    """Apply a function of rows to a matrix: at once to an array, block by block to a `BlockedMatrix`.

    `function` takes some rows and their entries of each column, and returns one entry per row.
    """
    return P.apply(function, *columns) if isinstance(P, BlockedMatrix) else function(P, *columns)


def changed(P: Any, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Any:
    """The matrix with `change` applied to its rows, at once or, for a `BlockedMatrix`, when a block is read."""
    return P.map(change) if isinstance(P, BlockedMatrix) else change(P)


def to_array(P: npt.NDArray[Any] | BlockedMatrix) -> npt.NDArray[Any]:
    """The matrix as an array."""
    if not isinstance(P, BlockedMatrix):
        return P
    blocks = [block for _, block in P.blocks()]
    return np.concatenate(blocks) if blocks else np.empty(P.shape)


def some_rows_of(columns: C, rows: Any, *others: str) -> C:
    """A dataclass of columns with some of its rows. Fields that are None, and the fields `others`, stay as they are.

    >>> from dataclasses import make_dataclass
    >>> some_rows_of(make_dataclass("Columns", ["name", "x", "y"])("A", np.arange(3), None), slice(2), "name")
    Columns(name='A', x=array([0, 1]), y=None)
    """
    found = {x.name: getattr(columns, x.name) for x in fields(columns) if x.name not in others}
    return replace(columns, **{name: None if column is None else column[rows] for name, column in found.items()})


def joined_columns(parts: Iterable[Iterable[Any]]) -> list[Any]:
    """The columns of several parts, joined; one that is None in the first part stays None."""
    return [None if own[0] is None else np.concatenate(own) for own in zip(*parts, strict=True)]


def flag(value: object, name: str) -> bool:
    """True or False; refuses anything else, as "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {value!r}: give True or False")
    return bool(value)


def comes_from(value: object, package: str) -> bool:
    return any(base.__module__.partition(".")[0] == package for base in type(value).__mro__)


def is_tensor(value: object) -> bool:
    return comes_from(value, "torch") and hasattr(value, "layout")


def tensor_array(tensor: Any) -> npt.NDArray[Any]:
    if str(tensor.layout) != "torch.strided":
        raise InputError("the tensor is sparse: pass tensor.to_dense()")
    if tensor.is_floating_point() and tensor.element_size() < 4 and str(tensor.dtype) != "torch.float16":
        tensor = tensor.float()  # numpy has no bfloat16
    try:
        array: npt.NDArray[Any] = tensor.numpy(force=True)
    except (RuntimeError, TypeError) as error:  # such as a tensor on the device "meta", which has only a shape
        raise InputError(
            f"the tensor (device {tensor.device}, {tensor.dtype}) has no values that can be read: {error}"
        ) from error
    return array


def is_frame(value: object) -> bool:
    named = hasattr(type(value), "columns") and hasattr(type(value), "to_numpy")
    return named and (comes_from(value, "pandas") or comes_from(value, "polars"))


def frame_array(frame: Any, positions: list[int]) -> npt.NDArray[Any]:
    pandas = comes_from(frame, "pandas")
    part = frame.iloc[:, positions] if pandas else frame[:, positions]
    for name, dtype in zip(part.columns, part.dtypes, strict=True):
        if not (dtype.kind in "fiu" if pandas else dtype.is_float() or dtype.is_integer()):
            raise InputError(f"column {str(name)!r} has dtype {dtype}, not a type of real numbers")
    array: npt.NDArray[Any] = part.to_numpy()
    if array.dtype.kind == "O":  # pandas returns nullable numbers as objects
        array = part.to_numpy(dtype=np.float64, na_value=np.nan)
    return array


def frame_index(value: Any) -> Any:
    """The index of a pandas frame; None for everything else."""
    return value.index if is_frame(value) and comes_from(value, "pandas") else None


def refuse_another_index(columns: Mapping[str, Any]) -> None:
    """Refuse pandas objects with different indexes: rows are matched by position, so they could be mixed up.

    Objects without an index (arrays, lists, polars frames) and objects with another number of rows are not checked.
    """
    indexed = {
        what: value.index for what, value in columns.items() if comes_from(value, "pandas") and hasattr(value, "iloc")
    }
    if not indexed:
        return
    first, *others = indexed
    for other in others:
        if len(indexed[first]) == len(indexed[other]) and not indexed[first].equals(indexed[other]):
            raise InputError(
                f"{first} and {other} have different indexes, but rows are matched by position: put both in one order "
                "(.loc), or, if they are, drop the indexes (.reset_index(drop=True) of both, or .to_numpy())"
            )


def label_names(values: Any, noun: str) -> tuple[str, ...]:
    """Names of labels as texts; refuses a set or a dict (they have no order), a single string, and entries such as
    None."""
    names = listed(values, noun)
    for position, name in enumerate(names):
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise InputError(f"{noun}: number {position + 1} is {name!r}: names are strings or whole numbers")
    return tuple(map(str, names))


def positions_of_labels(names: Sequence[str], labels: Sequence[str], noun: str) -> list[int]:
    """The position of each label in `names`, which must be the same labels in any order.

    >>> positions_of_labels(["cold", "flu"], ["flu", "cold"], "class_names")
    [1, 0]
    """
    if len(names) != len(labels):
        raise InputError(f"{noun} has {len(names)} names, but there are {len(labels)} labels")
    index = {name: position for position, name in enumerate(names)}
    if len(index) < len(names):
        raise InputError(f"{noun}: {first_repeated(names)!r} appears twice")
    known = set(labels)
    for name in names:
        if name not in known:
            raise InputError(f"{noun}: {name!r} is not a label; {did_you_mean(name, labels)}")
    return [index[label] for label in labels]


def first_repeated(names: Sequence[str]) -> str:
    """The first of the names that appears twice; at least one does."""
    return next(name for name, many in Counter(names).items() if many > 1)


def listed(values: Any, noun: str) -> list[Any]:
    """The entries of a column (array, tensor, series, list) as Python values."""
    if is_tensor(values):
        values = tensor_array(values)
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise TypeError(f"{noun}: expected a sequence, not {type(values).__name__}")
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{noun}: a masked array; drop the masked rows and pass the rest as .data")
    if hasattr(type(values), "columns"):
        raise InputError(f"{noun}: a frame; pass one of its columns")
    shape = getattr(values, "shape", (0,))
    if len(shape) != 1:
        help = (
            "pass .ravel()"
            if shape[1:] == (1,)
            else "pass one column (of one-hot rows, .argmax(axis=1)); were probabilities given in its place?"
        )
        raise InputError(f"{noun}: the shape is {tuple(shape)}, expected one dimension; {help}")
    listing = next((m for m in ("tolist", "to_list", "to_pylist") if hasattr(values, m)), None)
    entries = list(values) if listing is None else getattr(values, listing)()
    if _all_of(entries, str, int, float):
        return entries
    return [e.item() if hasattr(e, "item") and getattr(e, "ndim", 0) == 0 else e for e in entries]


def _all_of(entries: Iterable[object], *types: type) -> bool:
    """Whether the type of every entry is one of `types`; faster than to check each entry."""
    return set(map(type, entries)) <= set(types)


def entries_of(values: Any, noun: str, n: int | None) -> list[Any]:
    """The entries of a column, none of them missing; n entries, unless n is None."""
    entries = listed(values, noun)
    if n is not None and len(entries) != n:
        raise InputError(f"{noun}: {len(entries)} entries for {n} rows")
    if not _all_of(entries, str, int):
        for row, entry in enumerate(entries):
            if _is_missing(entry):
                raise RowFault(row, f"{noun}: ", " (counted from 0) is missing")
    return entries


def texts_of(values: Any, noun: str, n: int | None) -> list[str]:
    """The entries of a column as texts: numbers as the shortest decimal, whole numbers without a point.

    Refuses empty texts and entries that are not single values. Tuples are allowed: they name combinations of columns.

    >>> texts_of([7, 7.0, "7", 1.5, True, ("north", 7.0)], "groups", 6)
    ['7', '7', '7', '1.5', 'True', "('north', 7)"]
    """
    listing = isinstance(values, list) and len(values) == n and _all_of(values, str)  # from a file: checked at once
    texts: list[str] = values if listing else entries_of(values, noun, n)
    if not listing and not _all_of(texts, str):
        texts = [_text(entry, noun, row) for row, entry in enumerate(texts)]
    if "" in texts:
        raise RowFault(texts.index(""), f"{noun}: ", " (counted from 0) is missing")
    joined = "".join(texts)
    if not _is_writable(joined):
        row = next(row for row, text in enumerate(texts) if not _is_writable(text))
        what = f"has half a character, which no file can hold: {texts[row]!r}"
        raise RowFault(row, f"{noun}: ", f" (counted from 0) {what}: decode its source as UTF-8")
    if "\0" not in joined:
        return texts
    for row, text in enumerate(texts):
        if text[-1] == "\0":  # numpy drops it, so that "a" and "a\0" would become equal
            raise RowFault(row, f"{noun}: ", " (counted from 0) ends in the character NUL: strip it, .rstrip('\\0')")
    return texts


def _is_writable(text: str) -> bool:
    """Whether UTF-8 can write the text; it cannot write a surrogate, which is half of a character of UTF-16."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(entry: Any, noun: str, row: int) -> str:
    if isinstance(entry, list | dict | set | np.ndarray | bytes):
        raise RowFault(row, f"{noun}: ", f" (counted from 0) is a {type(entry).__name__}, not a single value")
    if isinstance(entry, float) and math.isinf(entry):
        raise RowFault(row, f"{noun}: ", f" (counted from 0) is {entry}, not a finite number: pass texts, or integers")
    return str(_plain(entry))


def _plain(entry: Any) -> Any:
    """The entry as a plain Python value; equal values have equal texts."""
    if isinstance(entry, tuple):
        return tuple(_plain(part) for part in entry)
    if isinstance(entry, np.generic):
        return _plain(entry.item())
    if not isinstance(entry, float):
        return entry
    if entry.is_integer():  # frames store whole numbers as floats if some are missing
        return int(entry)
    with np.errstate(over="ignore"):
        single = np.float32(entry)  # float32 0.1 becomes 0.1, not 0.10000000149
    return float(str(single)) if single == entry else entry


def _is_missing(entry: object) -> bool:
    # pandas' NA and NaT are recognised by type name, since NA cannot be compared.
    nan = isinstance(entry, float) and math.isnan(entry)
    return nan or entry is None or type(entry).__name__ in ("NAType", "NaTType")


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
    """One group per row, as strings, by the rule for all groups: `group_names`.

    >>> groups_of([1, "north", 1.0], 3)
    array(['1', 'north', '1'], dtype='<U5')
    """
    return np.array(group_names(values, n), dtype=np.str_)


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


def as_weights(weights: npt.ArrayLike | None, n: int, what: str = "weights") -> npt.NDArray[np.float64]:
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
