"""Which columns of a table are read: the probabilities (one column per label, or one column of lists), and others.

If each label has a column, columns are matched by name, and any other column is an error. A list is in the order of the
labels or of the class names, and other columns of the table are ignored.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, did_you_mean, worded
from udcp_dsl.expression.given import EntryColumns, RowInputs, inputs_of, possible_columns, table_columns
from udcp_dsl.expression.inputs import RowInput
from udcp_dsl.rows.matrix import check_class_names, in_order_of_columns, match_columns
from udcp_dsl.rows.roles import INPUT, Columns


@dataclass(frozen=True)
class ColumnSelection:
    """Positions of the columns to read: numbers, or one column of lists; texts; columns to copy to the output."""

    numbers: list[int]
    texts: list[int] = field(default_factory=list)
    carried: list[int] = field(default_factory=list)
    width: int | None = None  # length of the lists, if the numbers are in one column
    ids: int | None = None  # the column of ids, one of `texts`
    grouped: tuple[tuple[str, ...], ...] = ()  # per role, its entries, if each has a column
    labels: tuple[str, ...] | None = None  # in the order of their columns, if each label has one

    def by_role(self, texts: list[list[Any]]) -> list[Any]:
        """The texts of each role; `EntryColumns` if each entry of costs has its own column."""
        parts, left = list[Any](), iter(texts)
        for entries in self.grouped or ((),) * len(texts):
            parts.append(EntryColumns({entry: next(left) for entry in entries}) if entries else next(left))
        return parts

    @property
    def columns(self) -> list[int]:
        """All positions, each once."""
        return list(dict.fromkeys((*self.numbers, *self.texts, *self.carried)))


@dataclass(frozen=True)
class Block:
    """Some rows as they are in a file: numbers (m, K), the columns of texts, and a RecordBatch of columns to copy.

    `columns`: the labels in the order of their columns in the file, if the numbers were matched by name; they are then
    in the order of the labels. `ids`: in the type of the file, if its columns have types.
    """

    values: npt.NDArray[Any]
    texts: list[Any]
    carried: Any = None
    columns: tuple[str, ...] | None = None
    ids: Any = None


@dataclass(frozen=True)
class Span:
    """Rows of a file from `start` on, in pieces of `length` rows.

    Blocks are counted from the beginning of each piece, so they do not depend on which piece is read first.
    """

    start: int = 0
    length: int = sys.maxsize

    def block_end(self, row: int, most: int) -> int:
        """Where the block with this row ends; blocks have `most` rows, and the last one of a piece has the rest."""
        into = (row - self.start) % self.length
        return row - into + min(self.length, (into // most + 1) * most)

    def cuts(self, first: int, stop: int, most: int) -> Iterator[tuple[int, int]]:
        """The rows `first` to `stop` without those before the span, as ranges that are cut where blocks end.

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
    """What is read from every part: the labels, and the columns by role."""

    labels: tuple[str, ...]
    class_names: tuple[str, ...] | None = None
    columns: Columns = field(default_factory=Columns)
    inputs: Mapping[str, RowInput] = field(default_factory=dict)  # the declared inputs, by name
    read_probabilities: bool = True  # whether the probabilities are read
    read_attributes: bool = True  # whether the other columns are read
    unread: Mapping[str, RowInput] = field(default_factory=dict)  # inputs of the spec whose columns are ignored

    @staticmethod
    def of(
        labels: Sequence[str],
        class_names: tuple[str, ...] | None,
        columns: Columns,
        inputs: Mapping[str, RowInput] | None = None,
        beside: Collection[str] = (),
        unread: Mapping[str, RowInput] | None = None,
    ) -> ColumnSpec:
        """The spec with the columns of the inputs, except those that are given `beside` the table."""
        inputs = inputs or {}
        read = tuple(name for name in inputs if f"{INPUT}{name}" not in beside)
        others = {name: x for name, x in {**(unread or {}), **inputs}.items() if name not in read}
        return ColumnSpec(tuple(labels), class_names, replace(columns, inputs=read), inputs, unread=others)

    def roles(self, texts: Sequence[Any]) -> dict[str, Any]:
        """The columns of a block that are not probabilities, by role."""
        return dict(zip(self.columns.per_row if self.read_attributes else (), texts, strict=True))

    def inputs_of(self, found: Mapping[str, Any], n: int) -> RowInputs | None:
        """The inputs among these columns (by role) of n rows, checked."""
        given = {role.removeprefix(INPUT): column for role, column in found.items() if role.startswith(INPUT)}
        if not given:
            return None
        order = None if self.class_names is None else check_class_names(self.class_names, self.labels)
        return inputs_of(self.inputs, given, n, order=order)

    @property
    def probabilities_only(self) -> ColumnSpec:
        """The same with the probabilities only."""
        columns = self.columns
        unread = (*columns.ignore, *replace(columns, inputs=()).per_row.values(), *self._only_carried)
        alone = Columns(column=columns.column, ignore=unread, only_labels=columns.only_labels, inputs=columns.inputs)
        return replace(self, columns=alone, read_attributes=False)

    @property
    def attributes_only(self) -> ColumnSpec:
        """The same without the probabilities and the columns to copy."""
        columns = self.columns
        unread = (*columns.ignore, *self._only_carried)
        return replace(self, columns=replace(columns, ignore=unread, carry=()), read_probabilities=False)

    @property
    def _only_carried(self) -> tuple[str, ...]:
        """The columns to copy that are not inputs."""
        read = {column for name in self.columns.inputs for column in (name, *self.inputs[name].entry_columns)}
        return tuple(column for column in self.columns.carry if column not in read)

    def choose(self, names: Sequence[str], lists: Sequence[int] = ()) -> ColumnSelection:
        """Select columns of a table with these names; `lists` are the positions of the columns that hold lists."""
        at = self._list_column(list(names), lists)
        carry = self.columns.carry
        others = (c for x in self.unread.values() for c in possible_columns(x, names) if c not in self.labels)
        ignore = tuple(dict.fromkeys((*self.columns.ignore, *(name for name in others if name not in carry))))
        per_row = [self._columns_of(role, column, names) for role, column in self.columns.per_row.items()]
        attributes = [name for own, _ in per_row for name in own]
        read = [*attributes, *carry]
        if at is None:
            numbers = match_columns(names, self.labels, [*read, *ignore], self.columns.only_labels)
            width, labels = None, in_order_of_columns(self.labels, numbers)
        else:
            for other in (*read, *ignore):
                self._refuse_absent(other, names)
            numbers, width, labels = [at], len(self.labels), None
        position = {name: place for place, name in enumerate(names)}
        texts = [position[name] for name in attributes] if self.read_attributes else []
        wide = tuple(entries for _, entries in per_row) if self.read_attributes else ()
        if not self.read_probabilities:
            return ColumnSelection([], texts, grouped=wide, labels=labels)
        ids = None if self.columns.id_column is None else position[self.columns.id_column]
        return ColumnSelection(numbers, texts, [position[name] for name in carry], width, ids, wide, labels)

    def _columns_of(self, role: str, column: str, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The column of a role, or those of the entries of costs per row (fee.gp, fee.nurse), with these entries."""
        x = self.inputs.get(role.removeprefix(INPUT)) if role.startswith(INPUT) else None
        if x is None:
            return (column,), ()
        found = table_columns(x, names, ignore=self.columns.ignore, labels=self.labels)
        if not found:
            lists = f", of lists, or {x.entry_columns[0]!r} and so on" if x.entry_columns else ""
            raise InputError(f"there is no column {x.name!r}{lists}, which the loss reads for each row: {x}")
        taken = [name for name in found if name in self.labels]
        if taken:
            raise InputError(f"column {taken[0]!r} is a label and an entry of input {x.name!r}: give a column of lists")
        return found, () if found == (x.name,) else x.entries or ()

    def _list_column(self, names: list[str], lists: Sequence[int]) -> int | None:
        columns = self.columns
        if columns.column is not None:
            self._refuse_absent(columns.column, names)
            if names.index(columns.column) not in lists:
                raise InputError(f"column {columns.column!r} must contain one list of probabilities per row")
            return names.index(columns.column)
        spoken_for = {*columns.per_row.values(), *columns.carry, *columns.ignore, *self.unread}
        found = [position for position in lists if names[position] not in spoken_for]
        if not found or set(self.labels) <= set(names):
            return None
        if len(found) > 1:
            named = " and ".join(repr(names[position]) for position in found[:2])
            way_out = worded("column=", "--column")
            raise InputError(f"columns {named} contain lists: name the column of probabilities with {way_out}")
        return found[0]

    def _refuse_absent(self, name: str, names: Sequence[str]) -> None:
        if name not in names:
            raise InputError(f"there is no column {name!r}; {did_you_mean(name, list(names))}")
