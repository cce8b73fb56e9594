"""Check the inputs of rows as users give them: names, shapes, numbers, ranges.

Inputs are a mapping from names to arrays, or a frame or table with one column per input. A number per row is (n,);
costs of labels are (n, K) or a column of lists, in the order of the labels or of class names. Costs may also name their
entries: a frame or a mapping from names to columns, a column of mappings, or columns fee.gp, fee.nurse.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import InputError, RowFault, did_you_mean, worded
from udcp_dsl.expression.domain import Bools, Floats
from udcp_dsl.expression.inputs import RowInput

Declared = Mapping[str, RowInput]


@dataclass(frozen=True, eq=False)
class RowInputs(Mapping[str, Floats]):
    """The inputs of n rows, by name: (n,) or (n, entries), float64, within their ranges. Made by `inputs_of`."""

    columns: Mapping[str, Floats]
    n: int

    def __getitem__(self, part: Any) -> Any:
        """The column of a name; for a slice or positions, the inputs of those rows."""
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
        """Concatenate the inputs of several blocks of rows."""
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return RowInputs(columns, sum(part.n for part in parts))

    def copy(self) -> RowInputs:
        """A copy that does not keep the larger arrays alive whose rows these may be."""
        return RowInputs({name: column.copy() for name, column in self.columns.items()}, self.n)

    def equals(self, other: RowInputs) -> bool:
        """Whether the numbers are equal; comparing the first row rules out most that differ."""
        if self.n != other.n or list(self.columns) != list(other.columns):
            return False
        pairs = [(mine, other.columns[name]) for name, mine in self.columns.items()]
        return all(np.array_equal(a[:1], b[:1]) for a, b in pairs) and all(
            a is b or np.array_equal(a, b) for a, b in pairs
        )

    def estimate_distinct(self) -> int:
        """A fast estimate of the number of distinct rows of inputs: some that differ may count as one."""
        rng = np.random.default_rng(0)
        flat = [_as_matrix(column) for column in self.columns.values()]
        return len(np.unique(sum(column @ rng.random(column.shape[1]) for column in flat)))

    def group_rows(self) -> tuple[np.typing.NDArray[np.int64], np.typing.NDArray[np.int64]]:
        """The first row of each distinct combination of inputs, and for every row the index of its combination."""
        table = np.concatenate([_as_matrix(column) for column in self.columns.values()], axis=1)
        _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)


def _as_matrix(column: Floats) -> Floats:
    return column if column.ndim == 2 else column[:, None]


@dataclass(frozen=True, eq=False)
class EntryColumns:
    """Costs per row with one column per entry, by name; sliced by rows, like a single column."""

    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return min(map(len, self.columns.values()))

    def __getitem__(self, rows: slice) -> EntryColumns:
        return EntryColumns({entry: column[rows] for entry, column in self.columns.items()})


def inputs_of(
    declared: Declared,
    given: Any,
    n: int,
    *,
    known: Sequence[str] = (),
    order: Sequence[int] | None = None,
) -> RowInputs | None:
    """Check the inputs of n rows; None if the loss takes none.

    `known` are the names of all inputs of the spec: those that this loss does not read may be given, too. `order` has
    the column of each label in arrays of costs, if that is not the order of the labels.
    """
    if not declared:
        if given is not None and not isinstance(given, RowInputs):
            _refuse_undeclared(given, known)
        return None
    if isinstance(given, RowInputs):
        if given.n != n or set(declared) - set(given):
            raise InputError(f"the inputs belong to {given.n} other rows: give the inputs of these {n} rows")
        return given
    if given is None:
        wanted = ", ".join(f"{name!r}: ..." for name in declared)
        raise InputError(f"the loss reads inputs: give inputs={{{wanted}}} ({_listed(declared)})")
    columns = _by_name(given, declared, known)
    return RowInputs({name: _column(x, columns[name], n, order) for name, x in declared.items()}, n)


def one_row(declared: Declared, given: Any, known: Sequence[str] = ()) -> RowInputs | None:
    """Check the inputs of one row: numbers, and for costs a list or a mapping from entries to numbers."""
    if not isinstance(given, Mapping) or isinstance(given, RowInputs):
        return inputs_of(declared, given, 1, known=known)
    single: dict[str, Any] = {}
    for name, value in given.items():
        x = declared.get(name)
        if x is not None and x.entries is not None and isinstance(value, Mapping):
            value = _named_entries(x, value)
        many = np.ndim(value) >= 1 + (x is not None and x.width is not None)
        single[name] = value if many else np.asarray(value if x is None else _readable(x, value))[None]
    return inputs_of(declared, single, 1, known=known)


def _named_entries(x: RowInput, value: Mapping[str, Any], what: str = "number") -> list[Any]:
    """The values of a mapping from entries, in the order of the entries; `what` each is."""
    assert x.entries is not None
    value = {str(entry): found for entry, found in value.items()}
    unknown = next((entry for entry in value if entry not in x.entries), None)
    if unknown is not None:
        raise InputError(f"input {x.name!r} has no entry {unknown!r}; {did_you_mean(unknown, x.entries)}")
    lacking = next((entry for entry in x.entries if entry not in value), None)
    if lacking is not None:
        raise InputError(f"input {x.name!r} has no {what} for {lacking!r}: give one for each of {x.width}")
    return [value[entry] for entry in x.entries]


def _by_name(given: Any, declared: Declared, known: Sequence[str]) -> dict[str, Any]:
    """The columns of the inputs. A mapping may not have unknown columns; a frame or table may."""
    names = _checked_names(given, declared, known)
    found = {}
    for name, x in declared.items():
        columns = columns_of(x, names)
        if columns == (name,):
            found[name] = given[name]
        elif columns:
            found[name] = dict(zip(x.entries or (), (given[column] for column in columns), strict=True))
        if found.get(name) is None:
            raise InputError(f"input {name!r} is missing: the loss reads {x}")
    return found


def _checked_names(given: Any, declared: Declared, known: Sequence[str]) -> list[str]:
    """The names of the columns; those of a mapping must be of inputs of the spec, or of their entries."""
    names = column_names(given)
    if names is None:
        raise InputError(f"inputs are a {type(given).__name__}: give a mapping from names to arrays, or a frame")
    entries = {column for x in declared.values() for column in x.entry_columns}
    unread = set(known) - set(declared)
    for name in given if isinstance(given, Mapping) else ():
        if name not in declared and name not in entries and str(name).partition(".")[0] not in unread:
            close = did_you_mean(str(name), dict.fromkeys((*declared, *known)))
            raise InputError(f"the loss has no input {name!r}; {close}")
    return names


def _refuse_undeclared(given: Any, known: Sequence[str]) -> None:
    """Refuse inputs for a loss that reads none, unless the spec declares them for its other losses."""
    if not known:
        raise InputError(
            "inputs= are given, but the spec declares none: leave them out, or declare `input NAME in [low, high]`"
        )
    _checked_names(given, {}, known)


def _refuse_lazy(what: str, given: Any) -> None:
    if type(given).__name__ == "LazyFrame":
        raise InputError(f"{what} a LazyFrame: call .collect() first")


def column_names(given: Any) -> list[str] | None:
    """The names of the columns of a mapping, a frame of pandas or polars, or a table of pyarrow; else None."""
    _refuse_lazy("inputs are", given)
    if isinstance(given, Mapping):
        return list(given)
    if hasattr(given, "schema") and hasattr(given, "column") and hasattr(given, "num_rows"):
        return list(given.schema.names)
    if hasattr(given, "columns") and hasattr(given, "__getitem__"):
        return list(given.columns)
    return None


def columns_of(x: RowInput, names: Sequence[str]) -> tuple[str, ...]:
    """The columns among `names` that hold an input: the one of its name, or one per entry; () if there are none."""
    inside = possible_columns(x, names)
    if not inside or inside == (x.name,):
        return inside
    if x.name in inside:
        raise InputError(f"input {x.name!r} has columns {x.name!r} and {inside[1]!r}: give either lists or entries")
    if len(inside) < len(x.entry_columns):
        lacking = next(column for column in x.entry_columns if column not in inside)
        raise InputError(
            f"input {x.name!r} has a column {inside[0]!r} but no {lacking!r}: give one for each of {x.width} entries"
        )
    return x.entry_columns


def possible_columns(x: RowInput, names: Sequence[str]) -> tuple[str, ...]:
    """All columns among `names` that may hold an input, or an entry of it."""
    present = set(names)
    return tuple(column for column in (x.name, *x.entry_columns) if column in present)


def table_columns(
    x: RowInput, names: Sequence[str], *, ignore: Sequence[str], labels: Collection[str]
) -> tuple[str, ...]:
    """`columns_of` for a table that also has columns of labels; refuses to ignore all columns of the input."""
    possible = possible_columns(x, names)
    left = [column for column in possible if column not in ignore]
    if possible and not left:
        raise InputError(
            f"column {possible[0]!r} is an input, which the loss reads, and cannot be ignored: leave it out of "
            + worded("ignore=", "--ignore")
        )
    labelled = set(labels) if x.name in left else set()
    return columns_of(x, [column for column in left if column not in labelled])


def _column(x: RowInput, given: Any, n: int, order: Sequence[int] | None) -> Floats:
    array, by_name, dtype = _numbers(x, given)
    shape = (n,) if x.width is None else (n, x.width)
    if array.shape != shape:
        raise InputError(f"input {x.name!r} has shape {array.shape}, expected {x.shape(n)}: {x}")
    if order is not None and x.entries is not None and x.of is None and not by_name:
        array = array[:, list(order)]
    array = np.ascontiguousarray(array)
    wrong = ~((array >= x.low) & (array <= x.high))  # NaN is nowhere
    if wrong.any():
        array = _with_exact_ends(x, array, wrong, dtype)
        wrong = ~((array >= x.low) & (array <= x.high))
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0].tolist())
        entry = "" if x.entries is None else f" of {x.entries[at[1]]!r}"
        value = float(array[at])
        what = (
            f"is {_outside(x, value)}: correct it, or widen the range in the spec"
            if np.isfinite(value)
            else f"is not a finite number: {value}; give one in [{x.low:g}, {x.high:g}]"
        )
        raise RowFault(at[0], "", f": input {x.name!r}{entry} {what}")
    array.setflags(write=False)
    return array


def _with_exact_ends(x: RowInput, array: Floats, wrong: Bools, dtype: str) -> Floats:
    """The array with an end of the range in place of `wrong` values that are this end, rounded to a shorter float.

    The end 0.1 is 0.100000001 as float32, which is outside the range. Lists in files are read as Python numbers, so it
    is not known whether they were float32.
    """
    if dtype.startswith(("int", "uint", "bool")):
        return array
    for end in (x.low, x.high):
        with np.errstate(over="ignore"):
            rounded = [float(np.float32(end))]
            rounded += [float(np.float16(end))] if dtype == "float16" else []
        if dtype == "bfloat16":
            mantissa, exponent = np.frexp(end)
            rounded.append(float(np.ldexp(np.round(np.ldexp(mantissa, 8)), exponent - 8)))
        near = [value for value in rounded if value != 0.0 and np.isfinite(value)]
        array = np.where(wrong & np.isin(array, near), end, array)
    return array


def _outside(x: RowInput, value: float) -> str:
    """A value and the range, with digits enough to tell it from the ends."""
    digits = next((d for d in (6, 9, 12) if f"{value:.{d}g}" not in (f"{x.low:.{d}g}", f"{x.high:.{d}g}")), 17)
    return f"{value:.{digits}g}, outside [{x.low:g}, {x.high:g}]"


def _numbers(x: RowInput, given: Any) -> tuple[Floats, bool, str]:
    """Convert an array, tensor, column of lists, or lists to float64; also, whether its entries were given by name, and
    the type of its numbers."""
    _refuse_lazy(f"input {x.name!r} is", given)
    if isinstance(given, EntryColumns):
        given = given.columns
    elif str(getattr(given, "dtype", "")).startswith("Struct"):  # of polars, whose arrays lose the names
        given = given.struct.unnest()
    by_name = x.entries is not None and (isinstance(given, Mapping) or hasattr(given, "columns"))
    if by_name:
        array: Any = _of_entries(x, given)
    else:
        array, by_name = _array(x, given)
    if array.dtype == object or array.dtype.kind in "US":
        array = _scalars(x, array)
    if array.dtype.kind not in "fiub":
        raise InputError(f"input {x.name!r} contains {array.dtype}, not numbers")
    dtype = "bfloat16" if "bfloat16" in str(getattr(given, "dtype", "")) else array.dtype.name
    return array.astype(np.float64), by_name, dtype


def _of_entries(x: RowInput, given: Any) -> Any:
    """Stack the columns of a mapping or frame, one per entry, in the order of the entries."""
    columns = {name: given[name] for name in (given if isinstance(given, Mapping) else given.columns)}
    found = [_plain(x, column) for column in _named_entries(x, columns, "column")]
    if len({column.shape for column in found}) > 1 or found[0].ndim != 1:
        raise InputError(f"the columns of input {x.name!r} differ in shape: give one number per row in each")
    return np.stack(found, axis=1)


def _readable(x: RowInput, given: Any) -> Any:
    """A column of torch, pandas, polars or pyarrow as a numpy array, another as it is; refuses what numpy misreads."""
    parts = given if isinstance(given, list | tuple) else ()
    if isinstance(given, np.ma.MaskedArray) or any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise InputError(f"input {x.name!r} is a masked array: drop the masked rows and pass the rest as .data")
    layout = str(getattr(given, "layout", ""))
    if hasattr(given, "toarray") or (layout.startswith("torch.") and layout != "torch.strided"):
        way_out = "toarray" if hasattr(given, "toarray") else "to_dense"
        raise InputError(f"input {x.name!r} is a sparse {type(given).__name__}: pass its .{way_out}()")
    if hasattr(given, "detach"):
        given = given.detach().cpu()
        return (given.float() if "bfloat16" in str(given.dtype) else given).numpy()  # numpy has no bfloat16
    if hasattr(given, "to_pylist"):  # of pyarrow
        return given.to_numpy(zero_copy_only=False)
    return given.to_numpy() if hasattr(given, "to_numpy") else given


def _plain(x: RowInput, given: Any) -> Any:
    """A column as a numpy array; if its rows differ in length, an empty array of objects."""
    readable = _readable(x, given)
    try:
        array = np.asarray(readable)
    except ValueError:
        return np.empty(0, dtype=object)
    if array.ndim == 0 and array.dtype.kind not in "fiub":
        raise InputError(
            f"input {x.name!r} has type {type(given).__name__}: give an array or a list, of shape {x.shape()}"
        )
    return array


def _array(x: RowInput, given: Any) -> tuple[Any, bool]:
    array = _plain(x, given)
    if array.ndim == 1 and x.width is not None and array.dtype.kind in "OUS":
        rows = [
            _row(x, i, entry) for i, entry in enumerate(given.to_pylist() if hasattr(given, "to_pylist") else given)
        ]
        _refuse_missing(x, rows)
        by_name = {isinstance(entry, Mapping) for entry in rows}
        if len(by_name) > 1:
            raise InputError(f"input {x.name!r} has lists in some rows and names in others: give one of the two")
        return _stacked(x, rows), by_name == {True}
    if array.shape == (0,) and x.width is not None:  # no rows: nothing says what they would hold
        array = array.reshape(0, x.width)
    return array, False


def _refuse_missing(x: RowInput, rows: Sequence[Any]) -> None:
    for i, entry in enumerate(rows):
        nan = isinstance(entry, float) and np.isnan(entry)
        if nan or entry is None or type(entry).__name__ == "NAType":  # NA of pandas
            raise RowFault(i, "", f": input {x.name!r} is missing: give {x.width} numbers")


def _row(x: RowInput, i: int, entry: Any) -> Any:
    """The costs of one row: a list or a mapping, parsed from JSON if they are text."""
    if not isinstance(entry, str):
        return entry
    try:
        found = json.loads(entry)
    except ValueError:
        found = None
    if not isinstance(found, list | dict):
        wide = ", ".join(x.entry_columns[:2])
        raise RowFault(i, "", f": input {x.name!r} is {entry!r}: give [1, 2, ...], or columns {wide}, ...")
    return found


def _stacked(x: RowInput, rows: Sequence[Any]) -> Any:
    with suppress(TypeError, ValueError, OverflowError):  # the usual case: lists of numbers, all of one length
        quick = np.array([np.asarray(entry, dtype=np.float64) for entry in rows])
        if quick.shape == (len(rows), x.width):
            return quick
    out = np.empty((len(rows), x.width or 0), dtype=object)
    for i, entry in enumerate(rows):
        if isinstance(entry, Mapping):
            try:
                entry = _named_entries(x, entry)
            except InputError as error:
                raise RowFault(i, "", f": {error}") from None
        if np.ndim(entry) != 1 or len(entry) != x.width:
            raise RowFault(i, "", f": input {x.name!r} has {np.size(entry)}, expected {x.width} numbers")
        out[i] = list(entry)
    return out


def _scalars(x: RowInput, array: Any) -> Any:
    """Convert objects to numbers; a missing one becomes NaN, any other that is not a number raises RowFault."""
    out = np.empty(array.shape)
    for at, value in np.ndenumerate(array):
        try:
            out[at] = np.nan if value is None or value == "" else float(value)
        except (TypeError, ValueError):
            raise RowFault(int(at[0]), "", f": input {x.name!r} is {str(value)!r}, not a number: give one") from None
        except OverflowError:  # of a whole number
            raise RowFault(
                int(at[0]), "", f": input {x.name!r} is too large; give one in [{x.low:g}, {x.high:g}]"
            ) from None
    return out


def _listed(declared: Declared) -> str:
    return "; ".join(map(str, declared.values()))
