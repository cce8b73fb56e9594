"""Where the probabilities of a table are, and what else is wanted of it: a column a label, or one column of lists.

Columns that are labels name themselves and are matched by name, so that one which is none of them is a mistake; a list
is in the order of the labels, or in that of class names, and what else the table holds is left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, did_you_mean
from udcp_dsl.expression.rows.declared import RowInput
from udcp_dsl.expression.rows.given import RowInputs, inputs_of
from udcp_dsl.prediction.rows.column_roles import INPUT, Columns
from udcp_dsl.prediction.rows.probability_matrix import check_class_names, match_columns


@dataclass(frozen=True)
class ColumnSelection:
    """Positions of a table's columns: those of numbers, or the one of lists; those of texts; those to carry along."""

    numbers: list[int]
    texts: list[int] = field(default_factory=list)
    carried: list[int] = field(default_factory=list)
    width: int | None = None  # of the lists, where the numbers are in one column
    ids: int | None = None  # the one of texts that holds the ids

    @property
    def columns(self) -> list[int]:
        """All of them, each once."""
        return list(dict.fromkeys((*self.numbers, *self.texts, *self.carried)))


@dataclass(frozen=True)
class Block:
    """Some rows as they are in a file: numbers (m, K), the columns of texts, and a RecordBatch of what is carried.

    `named`: the columns of numbers were matched by name, and are in the order of the labels. `ids`: as they are in the
    file, where it says of what type they are.
    """

    values: npt.NDArray[Any]
    texts: list[list[Any]]
    carried: Any = None
    named: bool = False
    ids: Any = None


@dataclass(frozen=True)
class Span:
    """Rows of a file from `start` on, in pieces of `length` rows.

    Blocks of them are counted from the beginning of a piece, so that they do not depend on which piece is read first.
    """

    start: int = 0
    length: int = sys.maxsize

    def block_end(self, row: int, most: int) -> int:
        """Where the block with this row ends, if blocks have `most` rows, and the last of a piece what is left."""
        into = (row - self.start) % self.length
        return row - into + min(self.length, (into // most + 1) * most)

    def cuts(self, first: int, stop: int, most: int) -> Iterator[tuple[int, int]]:
        """The rows `first` to `stop`, without those before the span, cut where blocks end.

        >>> list(Span(10, length=5).cuts(8, 18, most=4))
        [(10, 14), (14, 15), (15, 18)]
        """
        first = max(first, self.start)
        while first < stop:
            end = min(stop, self.block_end(first, most))
            yield first, end
            first = end


WHOLE = Span()


@dataclass(frozen=True)
class ColumnSpec:
    """What is read of every part: the columns by their roles, of a table over these labels."""

    labels: tuple[str, ...]
    class_names: tuple[str, ...] | None = None
    columns: Columns = field(default_factory=Columns)
    inputs: Mapping[str, RowInput] = field(default_factory=dict)  # what is declared of the inputs among the columns
    matrix: bool = True  # whether the numbers are wanted, and not only what is beside them

    @staticmethod
    def of(
        labels: Sequence[str],
        class_names: tuple[str, ...] | None,
        columns: Columns,
        inputs: Mapping[str, RowInput] | None = None,
        beside: Collection[str] = (),
    ) -> ColumnSpec:
        """With the columns of the inputs, but for those that are beside the table."""
        read = tuple(name for name in inputs or () if f"{INPUT}{name}" not in beside)
        return ColumnSpec(tuple(labels), class_names, replace(columns, inputs=read), inputs or {})

    def inputs_of(self, found: Mapping[str, Any], n: int) -> RowInputs | None:
        """The inputs among what was found of n rows, by role, checked."""
        given = {role.removeprefix(INPUT): column for role, column in found.items() if role.startswith(INPUT)}
        if not given:
            return None
        order = None if self.class_names is None else check_class_names(self.class_names, self.labels)
        return inputs_of(self.inputs, given, n, order=order)

    @property
    def numbers_alone(self) -> ColumnSpec:
        """The same without what is beside the numbers."""
        columns = self.columns
        unread = (*columns.ignore, *columns.per_row.values(), *columns.carry)
        return replace(self, columns=Columns(column=columns.column, ignore=unread, only_labels=columns.only_labels))

    @property
    def others_alone(self) -> ColumnSpec:
        """The same without the numbers, and what is carried along."""
        columns = self.columns
        unread = (*columns.ignore, *columns.carry)
        return replace(self, columns=replace(columns, ignore=unread, carry=()), matrix=False)

    def choose(self, names: Sequence[str], lists: Sequence[int] = ()) -> ColumnSelection:
        """Of a table with these columns; `lists` are the positions of those that hold lists."""
        at = self._list_column(list(names), lists)
        per_row, carry, ignore = self.columns.per_row, self.columns.carry, self.columns.ignore
        others = [*per_row.values(), *carry]
        if at is None:
            numbers = match_columns(names, self.labels, [*others, *ignore], self.columns.only_labels)
            width = None
        else:
            for other in (*others, *ignore):
                self._refuse_absent(other, names)
            numbers, width = [at], len(self.labels)
        position = {name: place for place, name in enumerate(names)}
        texts = [position[name] for name in per_row.values()]
        if not self.matrix:
            return ColumnSelection([], texts)
        ids = None if self.columns.id_column is None else position[self.columns.id_column]
        return ColumnSelection(numbers, texts, [position[name] for name in carry], width, ids)

    def _list_column(self, names: list[str], lists: Sequence[int]) -> int | None:
        columns = self.columns
        if columns.column is not None:
            self._refuse_absent(columns.column, names)
            if names.index(columns.column) not in lists:
                raise InputError(f"column {columns.column!r} holds no lists, which would be the probabilities of a row")
            return names.index(columns.column)
        spoken_for = {*columns.per_row.values(), *columns.carry, *columns.ignore}
        found = [position for position in lists if names[position] not in spoken_for]
        if not found or set(self.labels) <= set(names):
            return None
        if len(found) > 1:
            named = " and ".join(repr(names[position]) for position in found[:2])
            raise InputError(f"columns {named} hold lists: name the one of probabilities, by column= (--column)")
        return found[0]

    def _refuse_absent(self, name: str, names: Sequence[str]) -> None:
        if name not in names:
            raise InputError(f"there is no column {name!r}; {did_you_mean(name, list(names))}")
