"""The numbers of many rows in place of one: code that compiles the loss of one row then compiles those of all rows.

A `PerRow` stands where a number, or an array of numbers, of a single row would. Arithmetic is done row by row and entry
by entry, so every row gets the same bits as if it were alone. If a number determines the structure (`if factor == 0`),
rows that agree remain together; otherwise `Split` is raised, and each part is compiled by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray


class Split(Exception):
    """The rows differ in a condition; `holds` (n,) says for which rows it holds."""

    def __init__(self, holds: NDArray[np.bool_]) -> None:
        super().__init__("rows differ in structure")
        self.holds = holds


class NotVectorised(Exception):
    """An operation works for one row at a time only, so the rows must be compiled one by one."""


T = TypeVar("T")


def first_way(ways: Mapping[str, T]) -> T:
    """The first of several ways; NotVectorised if there is none, as then none takes the numbers of many rows."""
    for way in ways.values():
        return way
    raise NotVectorised("no way takes the numbers of many rows")


@dataclass(frozen=True, eq=False)
class AsBytes:
    """The bytes of an array as part of a key, without a copy; equal if the arrays are equal."""

    values: NDArray[Any]

    def __hash__(self) -> int:
        return hash((self.values.shape, self.values[:1].tobytes()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsBytes) and (self.values is other.values or np.array_equal(self.values, other.values))


class PerRow(NDArrayOperatorsMixin):
    """One number, or one array of numbers, for each row: `values` is (n,) or (n, ...).

    >>> km = PerRow(np.array([2.0, 3.0]))
    >>> (km * np.array([1.0, 10.0]) + 1.0).values.tolist(), bool(km > 0)
    ([[3.0, 21.0], [4.0, 31.0]], True)
    """

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value of one row."""
        return self.values.shape[1:]

    def row(self, i: int) -> Any:
        """The value of one row."""
        return self.values[i] if self.values.ndim > 1 else self.values[i].item()

    def take(self, rows: Any) -> PerRow:
        """The values of some of the rows."""
        return PerRow(self.values[rows])

    # As a number or an array of one row

    def __array__(self, *how: Any, **more: Any) -> NDArray[Any]:
        raise NotVectorised("an array of one row is asked for")

    def __float__(self) -> float:
        raise NotVectorised("a number of one row is asked for")

    __int__ = __index__ = __float__  # none of them returns

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise NotVectorised(f"{name} of one row is asked for")
        raise AttributeError(name)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **how: Any) -> Any:
        if method != "__call__" or how:
            raise NotVectorised(f"{ufunc.__name__}.{method} of one row is asked for")
        return PerRow(ufunc(*aligned(*inputs)))

    def __array_function__(self, f: Callable[..., Any], types: Any, arguments: Any, how: Any) -> Any:
        made = _FUNCTIONS.get(f)
        if made is None or how:
            raise NotVectorised(f"{f.__name__} of one row is asked for")
        return made(*arguments)

    def __bool__(self) -> bool:
        holds = self.values.astype(np.bool_)
        if holds.ndim > 1:
            raise NotVectorised("an array has no truth value: use any() or all()")
        if holds.all() or not holds.any():
            return bool(holds[0])
        raise Split(holds)

    def __getitem__(self, index: Any) -> PerRow:
        if isinstance(index, PerRow):
            raise NotVectorised("rows choose different entries")
        return PerRow(self.values[(slice(None), *index)] if isinstance(index, tuple) else self.values[:, index])

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[PerRow]:
        return (self[i] for i in range(len(self)))

    def __format__(self, form: str) -> str:
        return "a number of the row"

    def tolist(self) -> list[PerRow]:
        return list(self)

    def tobytes(self) -> AsBytes:
        return AsBytes(self.values)

    def astype(self, kind: Any) -> PerRow:
        return PerRow(self.values.astype(kind, copy=False))

    def copy(self) -> PerRow:
        return PerRow(self.values.copy())

    def ravel(self) -> PerRow:
        return PerRow(self.values.reshape(self.n, -1))

    def any(self, **how: Any) -> PerRow:
        return self._reduced(np.any, how)

    def all(self, **how: Any) -> PerRow:
        return self._reduced(np.all, how)

    def min(self, **how: Any) -> PerRow:
        return self._reduced(np.min, how)

    def max(self, **how: Any) -> PerRow:
        return self._reduced(np.max, how)

    def sum(self, **how: Any) -> PerRow:
        return self._reduced(np.sum, how)

    def _reduced(self, f: Callable[..., Any], how: Mapping[str, Any]) -> PerRow:
        if how:
            raise NotVectorised(f"{f.__name__} along an axis is asked for")
        return PerRow(f(np.ascontiguousarray(self.values), axis=1))  # summed in the same order as a single row


@dataclass(frozen=True, eq=False)
class Patched:
    """An array per row, equal in most entries: each row is `base` with its row of `values` (n, m) at `places` (m,)."""

    base: NDArray[Any]
    places: NDArray[np.int64]
    values: NDArray[Any]

    @property
    def n(self) -> int:
        return len(self.values)

    def __len__(self) -> int:
        return len(self.base)

    def row(self, i: int) -> NDArray[Any]:
        found = self.base.copy()
        found[self.places] = self.values[i]
        return found

    def astype(self, kind: Any) -> Patched:
        return Patched(self.base.astype(kind), self.places, self.values.astype(kind))

    def take(self, rows: Any) -> Patched:
        return Patched(self.base, self.places, self.values[rows])


def joined(parts: Sequence[Any]) -> Any:
    """Arrays (m,) joined end to end; some of them may differ by row."""
    differ = [_patched(part) for part in parts]
    base = np.concatenate([part if own is None else own.base for part, own in zip(parts, differ, strict=True)])
    starts = np.cumsum([0, *map(len, parts)])
    places = [start + own.places for start, own in zip(starts, differ, strict=False) if own is not None]
    values = [own.values for own in differ if own is not None]
    return Patched(base, np.concatenate(places), np.concatenate(values, axis=1)) if values else base


def _patched(part: Any) -> Patched | None:
    """The part as a `Patched`, in which every entry of a `PerRow` may differ; None if it is the same for all rows."""
    if isinstance(part, PerRow):
        return Patched(part.values[0], np.arange(len(part)), part.values)
    return part if isinstance(part, Patched) else None


def some_rows(x: Any, rows: Any) -> Any:
    """The values of some of the rows; x itself if it does not differ by row."""
    return x.take(rows) if isinstance(x, PerRow | Patched) else x


def aligned(*arrays: Any) -> list[Any]:
    """The arrays with rows as the first axis wherever they differ by row, so that numpy broadcasts them."""
    deepest = max(len(x.shape) if isinstance(x, PerRow) else np.ndim(x) for x in arrays)

    def deep(x: Any) -> Any:
        if not isinstance(x, PerRow):
            return x
        return x.values.reshape(x.n, *(1,) * (deepest - len(x.shape)), *x.shape)

    return [deep(x) for x in arrays]


def of_rows(f: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a broadcasting function of numpy arrays to numbers and arrays, some of which may differ by row."""
    n = next((x.n for x in arrays if isinstance(x, PerRow)), None)
    if n is None:
        return f(*(np.float64(x) if isinstance(x, float) else x for x in arrays))
    shape = np.broadcast_shapes(*(x.shape if isinstance(x, PerRow) else np.shape(x) for x in arrays))
    rows = [x if isinstance(x, PerRow) else PerRow(np.broadcast_to(x, (n, *np.shape(x)))) for x in arrays]
    found = f(*aligned(*rows, np.empty(shape))[:-1])
    return PerRow(np.broadcast_to(found, (n, *shape)).copy())


def as_number(x: Any) -> Any:
    """A float, or one for each row."""
    return x if isinstance(x, PerRow) else float(x)


def array_of(numbers: Sequence[Any]) -> Any:
    """An array of numbers, or of arrays of one shape, some of which may differ by row."""
    n = next((x.n for x in numbers if isinstance(x, PerRow)), None)
    if n is None:
        return np.array(numbers, dtype=np.float64)
    rows = [x.values if isinstance(x, PerRow) else np.broadcast_to(x, (n, *np.shape(x))) for x in numbers]
    return PerRow(np.stack(rows, axis=1).astype(np.float64))


def as_rows(x: Any) -> Any:
    """The numbers with rows as the first axis; one row if x does not differ by row."""
    return x.values if isinstance(x, PerRow) else np.asarray(x)[None]


def from_rows(rows: Any) -> Any:
    """The inverse of `as_rows`."""
    return rows[0] if len(rows) == 1 else PerRow(rows)


def add_at(x: Any, places: Any, amount: Any) -> Any:
    """A copy of an array with an amount added at some places."""
    if not isinstance(x, PerRow) and not isinstance(amount, PerRow):
        more = x.copy()
        more[places] += amount
        return more
    mine, theirs = aligned(x, amount)
    values = np.array(np.broadcast_to(mine, (len(theirs) if isinstance(amount, PerRow) else len(mine), len(x))))
    values[:, np.atleast_1d(places)] += theirs
    return PerRow(values)


def sum_where(x: Any, where: Any) -> Any:
    """The sum of the entries in a mask, which may differ by row."""
    if not isinstance(x, PerRow):
        return float(x[where].sum())
    first = where.values[0]
    if (where.values == first).all():
        return x[first].sum()
    return PerRow(np.array([row[some].sum() for row, some in zip(x.values, where.values, strict=True)]))


def weighted_sums(sets: Any, weights: Any) -> Any:
    """sets @ weights, for sets (m, K)."""
    if not isinstance(weights, PerRow):
        return sets @ weights
    return PerRow(np.array([sets @ row for row in weights.values]))  # summed in the same order as a single row


def smaller(*numbers: Any) -> Any:
    """The smallest of some numbers, row by row: `min`."""
    return _fold(numbers, lambda a, b: np.where(b < a, b, a), min)


def larger(*numbers: Any) -> Any:
    """The largest of some numbers, row by row: `max`."""
    return _fold(numbers, lambda a, b: np.where(b > a, b, a), max)


def _fold(numbers: Sequence[Any], of_two: Callable[[Any, Any], Any], of_floats: Callable[..., float]) -> Any:
    if not any(isinstance(x, PerRow) for x in numbers):
        return of_floats(numbers)
    found = numbers[0]
    for x in numbers[1:]:
        of_rows = isinstance(found, PerRow) or isinstance(x, PerRow)
        found = PerRow(of_two(*aligned(found, x))) if of_rows else of_floats((found, x))
    return found


def _flatnonzero(x: PerRow) -> NDArray[np.intp]:
    there = x.values != 0
    same = (there == there[0]).all(axis=1)
    if not same.all():
        raise Split(same)
    return np.flatnonzero(there[0])


def _concatenate(parts: Sequence[Any]) -> PerRow:
    n = next(x.n for x in parts if isinstance(x, PerRow))
    rows = [x.values if isinstance(x, PerRow) else np.broadcast_to(x, (n, *np.shape(x))) for x in parts]
    return PerRow(np.concatenate(rows, axis=1))


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: lambda i, a, b: PerRow(np.where(*aligned(i, a, b))),
    np.diff: lambda x: x[1:] - x[:-1],
    np.flatnonzero: _flatnonzero,
    np.concatenate: _concatenate,
    np.ptp: lambda x: x.max() - x.min(),
    np.broadcast_to: lambda x, shape: PerRow(
        np.broadcast_to(aligned(x, np.empty(shape))[0], (x.n, *np.atleast_1d(shape)))
    ),
}
