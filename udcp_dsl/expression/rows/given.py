"""The inputs of rows as they are given, checked once: names, shapes, numbers, ranges.

They are given as a mapping from names to arrays, or as a frame with a column for each: (n,) for a number per row, and
(n, K) or a column of lists for costs of labels, in the order of the labels or of class names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import InputError, RowFault, did_you_mean
from udcp_dsl.expression.domain import Floats
from udcp_dsl.expression.rows.declared import RowInput

Declared = Mapping[str, RowInput]


@dataclass(frozen=True, eq=False)
class RowInputs(Mapping[str, Floats]):
    """The inputs of n rows, by name: (n,) or (n, entries), float64, within their ranges. Made by `inputs_of`."""

    columns: Mapping[str, Floats]
    n: int

    def __getitem__(self, part: Any) -> Any:
        """The column of a name; or, by a slice or positions, the inputs of some rows."""
        if isinstance(part, str):
            return self.columns[part]
        taken = {name: column[part] for name, column in self.columns.items()}
        return RowInputs(taken, len(np.empty(self.n, dtype=np.bool_)[part]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def row(self, i: int) -> dict[str, Any]:
        """The inputs of one row."""
        return {name: column[i] for name, column in self.columns.items()}

    @staticmethod
    def joined(parts: Sequence[RowInputs]) -> RowInputs:
        """The inputs of rows that came in parts."""
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return RowInputs(columns, sum(part.n for part in parts))

    def nearly_distinct(self) -> int:
        """How many combinations of inputs there are, quickly: some that differ may count as one."""
        rng = np.random.default_rng(0)
        flat = [column.reshape(self.n, -1) for column in self.columns.values()]
        return len(np.unique(sum(column @ rng.random(column.shape[1]) for column in flat)))

    def distinct(self) -> tuple[np.typing.NDArray[np.int64], np.typing.NDArray[np.int64]]:
        """A row for each distinct combination of inputs, and of every row which of these it has."""
        table = np.concatenate([column.reshape(self.n, -1) for column in self.columns.values()], axis=1)
        _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)


def inputs_of(
    declared: Declared,
    given: Any,
    n: int,
    *,
    known: Sequence[str] = (),
    order: Sequence[int] | None = None,
) -> RowInputs | None:
    """The inputs of n rows, checked; None where the loss takes none.

    `known` are the names of all inputs of the spec: those that this loss does not read may be given. `order` says at
    which place of an array each label is, where that is not the order of the labels.
    """
    if not declared:
        if given is not None and not (isinstance(given, RowInputs) or known):
            raise InputError(
                "inputs= are given, but the spec declares none: leave them out, or declare `input NAME in [low, high]`"
            )
        return None
    if isinstance(given, RowInputs):
        if given.n != n or set(declared) - set(given):
            raise InputError(f"the inputs are those of {given.n} other rows: give those of these {n}")
        return given
    if given is None:
        wanted = ", ".join(f"{name!r}: ..." for name in declared)
        raise InputError(f"the loss reads inputs: give inputs={{{wanted}}} ({_listed(declared)})")
    columns = _by_name(given, declared, known)
    return RowInputs({name: _column(x, columns[name], n, order) for name, x in declared.items()}, n)


def one_row(declared: Declared, given: Any, known: Sequence[str] = ()) -> RowInputs | None:
    """The inputs of one row, checked: numbers, and a list or a mapping from names for costs."""
    if not isinstance(given, Mapping) or isinstance(given, RowInputs):
        return inputs_of(declared, given, 1, known=known)
    single: dict[str, Any] = {}
    for name, value in given.items():
        x = declared.get(name)
        if x is not None and x.entries is not None and isinstance(value, Mapping):
            value = _named_entries(x, value)
        single[name] = (
            np.asarray(value)[None] if np.ndim(value) < 1 + (x is not None and x.width is not None) else value
        )
    return inputs_of(declared, single, 1, known=known)


def _named_entries(x: RowInput, value: Mapping[str, Any]) -> list[Any]:
    assert x.entries is not None
    for entry in value:
        if entry not in x.entries:
            raise InputError(f"input {x.name!r} has no entry {entry!r}; {did_you_mean(str(entry), x.entries)}")
    missing = [entry for entry in x.entries if entry not in value]
    if missing:
        raise InputError(f"input {x.name!r} has no number for {missing[0]!r}: give one for each of {len(x.entries)}")
    return [value[entry] for entry in x.entries]


def _by_name(given: Any, declared: Declared, known: Sequence[str]) -> dict[str, Any]:
    """The columns of a mapping, all of which must be inputs, or of a frame, which may have others too."""
    if isinstance(given, Mapping):
        for name in given:
            if name not in declared and name not in known:
                raise InputError(f"the loss has no input {name!r}; {did_you_mean(str(name), list(declared))}")
        found = dict(given)
    elif hasattr(given, "columns") and hasattr(given, "__getitem__"):
        found = {name: given[name] for name in declared if name in list(given.columns)}
    else:
        raise InputError(f"inputs are a {type(given).__name__}: give a mapping from names to arrays, or a frame")
    for name, x in declared.items():
        if found.get(name) is None:
            raise InputError(f"input {name!r} is missing: the loss reads {x}")
    return found


def _column(x: RowInput, given: Any, n: int, order: Sequence[int] | None) -> Floats:
    array = _numbers(x, given)
    by_name = x.entries is not None and hasattr(given, "columns")
    shape = (n,) if x.width is None else (n, x.width)
    if array.shape != shape:
        raise InputError(f"input {x.name!r} has shape {array.shape}, expected {x.shape(n)}: {x}")
    if order is not None and x.entries is not None and x.of is None and not by_name:
        array = array[:, list(order)]
    array = np.ascontiguousarray(array)
    wrong = ~((array >= x.low) & (array <= x.high))  # NaN is nowhere
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0].tolist())
        entry = "" if x.entries is None else f" of {x.entries[at[1]]!r}"
        value = float(array[at])
        what = (
            f"is {value:g}, outside [{x.low:g}, {x.high:g}]"
            if np.isfinite(value)
            else f"is not a finite number: {value}"
        )
        raise RowFault(at[0], "", f": input {x.name!r}{entry} {what}")
    array.setflags(write=False)
    return array


def _numbers(x: RowInput, given: Any) -> Floats:
    """An array, a tensor, a frame by the names of its columns, a column of lists, or lists, as float64."""
    if x.entries is not None and hasattr(given, "columns"):
        names = [str(column) for column in given.columns]
        if sorted(names) != sorted(x.entries):
            raise InputError(
                f"the columns of input {x.name!r} are not its entries: {did_you_mean(names[0], x.entries)}"
            )
        given = given[[given.columns[names.index(entry)] for entry in x.entries]]
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    elif hasattr(given, "to_numpy"):
        given = given.to_numpy()
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype == object and array.ndim == 1 and x.width is not None:
        array = _stacked(x, given)
    if array.dtype == object or array.dtype.kind in "US":
        array = _scalars(x, array)
    if array.dtype.kind not in "fiub":
        raise InputError(f"input {x.name!r} holds {array.dtype}, not numbers")
    return array.astype(np.float64)


def _stacked(x: RowInput, given: Any) -> Any:
    for i, entry in enumerate(given):
        if entry is None or np.ndim(entry) != 1 or len(entry) != x.width:
            has = "nothing" if entry is None else f"{np.size(entry)}"
            raise RowFault(i, "", f": input {x.name!r} has {has}, expected {x.width} numbers")
    return np.array([np.asarray(entry, dtype=np.float64) for entry in given]).reshape(len(given), -1)


def _scalars(x: RowInput, array: Any) -> Any:
    """Objects as numbers; what is missing is a fault of its row."""
    out = np.empty(array.shape)
    for at, value in np.ndenumerate(array):
        try:
            out[at] = np.nan if value is None else float(value)
        except (TypeError, ValueError):
            raise RowFault(int(at[0]), "", f": input {x.name!r} is {str(value)!r}, not a number") from None
    return out


def _listed(declared: Declared) -> str:
    return "; ".join(map(str, declared.values()))
