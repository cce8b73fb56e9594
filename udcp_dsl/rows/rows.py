"""`Rows`, and `rows_of`, which makes them.

Rows are the probabilities of n instances over K labels, checked and in the order of the labels, with the attributes of
each instance. If they do not fit into memory, the probabilities stay in their files (`BlockedMatrix`), or the rows come
in batches, each of which is a `Rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, warn
from udcp_dsl.expression.domain import WHOLE_NUMBER
from udcp_dsl.expression.given import RowInputs, possible_columns, table_columns
from udcp_dsl.loss import Loss
from udcp_dsl.rows.columns import (
    BlockedMatrix,
    NamedPositions,
    Names,
    Positions,
    apply_by_rows,
    are_positions,
    groups_of,
    is_frame,
    listed,
    refuse_another_index,
    sample_ids,
    some_rows_of,
    truth,
    weights_of,
)
from udcp_dsl.rows.matrix import Matrix, check_class_names, columns_of, names_of_classes, probabilities, refuse_no_rows
from udcp_dsl.threads import over_blocks, thread_count

if TYPE_CHECKING:
    from udcp_dsl.expression.decisions import Decided

S = TypeVar("S", bound=np.generic)

# Columns that stages of calibration add.
ADDED_BY_STAGES = ("top", "stratum", "anchor", "decided", "place")
NOT_PER_ROW = ("labels", "columns", "counted")  # the fields of `Rows` that hold for all rows together


@dataclass(frozen=True, eq=False)
class Rows:
    """All that is known of n rows, as columns; a column that is not given is None.

    `P` is (n, K), in the order of `labels`: as given, then as each stage of calibration hands it on (repaired, weighted
    by harm). `y` has positions in `labels`, even if labels are numbers. The `P` of `Source.stored` is a
    `BlockedMatrix`, though it is typed as the array that it stands for. Rows are checked where they are made
    (`rows_of`, `read_rows`), and never again. Every field but those in `NOT_PER_ROW` has one entry per row: `columns`
    are the labels in the order in which their columns were given, None if these had no names; `counted` says that the
    true labels were given as positions, and no class names beside them.
    """

    labels: tuple[str, ...]
    P: Matrix
    y: Positions | None = None
    groups: Names | None = None
    ids: Names | None = None
    weights: npt.NDArray[np.float64] | None = None
    inputs: RowInputs | None = None
    columns: tuple[str, ...] | None = None
    counted: bool = False
    # Added by stages:
    top: npt.NDArray[np.float64] | None = None  # the highest repaired probability: how easy a row is
    stratum: Positions | None = None  # the code of the part of the rows that shares a threshold; -1 for none
    anchor: npt.NDArray[np.float64] | None = None  # the price at which scores are anchored; NaN for none
    decided: Decided | None = None  # what is done with the row, with conditional="decision"
    place: Positions | None = None  # the position among the rows of a comparison

    def __len__(self) -> int:
        return len(self.P)

    def take(self, part: slice | npt.NDArray[np.integer[Any]]) -> Rows:
        """Some of the rows, by their positions, in that order; a slice copies nothing."""
        rows = some_rows_of(self, part, *NOT_PER_ROW)
        if "_likeliest_and_true" in vars(self):
            vars(rows)["_likeliest_and_true"] = self._likeliest_and_true[part]
        return rows

    def with_columns(self, **columns: Any) -> Rows:
        """The same rows with other or further columns."""
        return replace(self, **columns)

    def apply(self, function: Callable[..., npt.NDArray[S]], *names: str) -> npt.NDArray[S]:
        """Call `function(P, **columns)` with the columns of these names that the rows have, and return one entry per
        row: at once or, if `P` is a `BlockedMatrix`, block by block, where the blocks are."""
        own = {name: column for name in names if (column := getattr(self, name)) is not None}
        return apply_by_rows(self.P, _Named(function, tuple(own)), *own.values())

    def blocks(self) -> Iterator[Rows]:
        """The same rows in order: at once or, if `P` is a `BlockedMatrix`, in blocks that are in memory."""
        if not isinstance(self.P, BlockedMatrix):
            yield self
            return
        others = replace(self, P=np.empty((len(self), 0)))
        for at, block in self.P.blocks():
            yield replace(others.take(at), P=block)

    @property
    def truth(self) -> Positions:
        """The true labels; InputError if there are none."""
        if self.y is None:
            raise InputError("the true labels are missing: give y")
        return self.y

    @property
    def likeliest(self) -> Positions:
        """The label with the highest p; the first of several."""
        return self._likeliest_and_true[:, 0].astype(np.int64)

    @property
    def highest_probabilities(self) -> npt.NDArray[np.float64]:
        """p of the likeliest labels."""
        return highest(self.P) if self.y is None else self._likeliest_and_true[:, 1]

    @property
    def true_probabilities(self) -> npt.NDArray[np.float64]:
        """p of the true labels."""
        _ = self.truth
        return self._likeliest_and_true[:, 2]

    @property
    def hits(self) -> int:
        """In how many rows the likeliest label is the true one."""
        return int((self.likeliest == self.truth).sum())

    @property
    def untied(self) -> npt.NDArray[np.bool_]:
        """In which rows a single label has the highest p; reads all probabilities."""
        return apply_by_rows(self.P, _find_untied, self.highest_probabilities)

    @cached_property
    def _likeliest_and_true(self) -> npt.NDArray[np.float64]:
        """Three columns, found in one pass: the likeliest label, its p, and p of the true label (NaN without truth)."""
        return apply_by_rows(self.P, _find_likeliest_and_true, *(() if self.y is None else (self.y,)))


@dataclass(frozen=True)
class _Named:
    """A function of P and columns by position, which calls one of columns by name; it can be sent to other
    processes."""

    function: Callable[..., npt.NDArray[Any]]
    names: tuple[str, ...]

    def __call__(self, P: Matrix, *columns: Any) -> npt.NDArray[Any]:
        return self.function(P, **dict(zip(self.names, columns, strict=True)))


def _find_untied(P: Matrix, highest: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.count_nonzero(highest[:, None] > P, axis=1) == P.shape[1] - 1)


def highest(P: Matrix) -> npt.NDArray[np.float64]:
    """The highest probability of each row."""
    return apply_by_rows(P, _highest)


def _highest(P: Matrix) -> npt.NDArray[np.float64]:
    # Nonnegative floats are ordered as their bits are, and integers are compared in half the time.
    bits: npt.NDArray[Any] = P.view(f"i{P.dtype.itemsize}")
    found = np.empty(len(P))

    def look(start: int, stop: int) -> None:
        found[start:stop] = bits[start:stop].max(axis=1).view(P.dtype)

    over_blocks(look, len(P), P.size, thread_count())
    return found


def _find_likeliest_and_true(P: Matrix, y: Positions | None = None) -> npt.NDArray[np.float64]:
    rows, likeliest = np.arange(len(P)), P.argmax(axis=1)
    found = np.full((len(P), 3), np.nan, order="F")  # it is read by columns
    found[:, 0], found[:, 1] = likeliest, P[rows, likeliest]
    if y is not None:
        found[:, 2] = P[rows, y]
    return found


def rows_of(
    given: Any,
    labels: Sequence[str],
    *,
    y: Any = None,
    groups: Any = None,
    ids: Any = None,
    weights: Any = None,
    inputs: Any = None,
    loss: Loss | Sequence[Loss] = (),
    class_names: Any = None,
    logits: bool = False,
    normalize: bool = False,
    ignore: Sequence[str] = (),
    empty: bool = False,
) -> Rows:
    """Rows from a user's data; every command, `calibrate`, `predict_set`, `evaluate` and `compare` use this function.

    `given` is what `probabilities` takes (an array, a tensor, a frame, lists); `ignore` names columns of a frame to
    leave unread. Or it is `Rows`, such as `read_rows` returns: they hold probabilities already, and the arguments
    `y`, `groups`, `ids`, `weights` and `inputs` replace their fields. `inputs` are those that `loss` (or any of several
    losses) reads. Refuses whatever `probabilities`, `truth`, `groups_of` and `sample_ids` refuse, rows for other labels
    and, unless `empty=True`, zero rows.

    >>> rows = rows_of([[0.7, 0.3], [0.5, 0.5]], ["ham", "spam"], y=["spam", "ham"], groups=[1, 2.0])
    >>> rows.y, rows.groups, rows.take(slice(1, 2)).P, rows.true_probabilities
    (array([1, 0]), array(['1', '2'], dtype='<U1'), array([[0.5, 0.5]]), array([0.3, 0.5]))
    """
    losses = (loss,) if isinstance(loss, Loss) else tuple(loss)
    if isinstance(ignore, str):
        raise InputError(f"ignore is one string, {ignore!r}: give a list of the columns to leave unread")
    if class_names is not None:
        class_names = names_of_classes(class_names)
    beside = {"the true labels": y, "the groups": groups, "the ids": ids, "the weights": weights}
    refuse_another_index({"the probabilities": given, **beside, **indexed_inputs(inputs)})
    if isinstance(given, Rows):
        if ignore:
            raise InputError(f"{ignore[0]!r} names a column of a frame; these rows have already been read")
        if given.labels != tuple(labels):
            raise InputError(
                "the rows were made for other labels, or for another order of the labels: make them for these"
            )
        if not empty:
            refuse_no_rows(given.P)
        rows = given.with_columns(**dict.fromkeys(ADDED_BY_STAGES))
        if class_names is not None:
            rows = replace(rows, columns=rows.columns or class_names, counted=False)
    else:
        others = (*ignore, *input_columns(given, losses, ignore))
        P = probabilities(
            given, labels, class_names=class_names, logits=logits, normalize=normalize, others=others, empty=empty
        )
        rows = Rows(tuple(labels), P, columns=columns_of(given, labels, class_names))
    n = len(rows)
    order = None if class_names is None else check_class_names(class_names, labels)
    if y is not None and y is not rows.y:  # rows.y has positions, which could be read as names
        entries = listed(y.names if isinstance(y, NamedPositions) else y, "true labels")
        rows = replace(
            rows, y=truth(entries, labels, n), counted=class_names is None and are_positions(entries, labels)
        )
        if order not in (None, list(range(len(labels)))) and entries and isinstance(entries[0], int):
            _warn_of_another_order(labels)
    if groups is not None:
        rows = replace(rows, groups=groups_of(groups, n))
    if ids is not None:
        rows = replace(rows, ids=sample_ids(ids, n))
    if weights is not None:
        rows = replace(rows, weights=weights_of(weights, n))
    if losses:
        if inputs is None:  # a frame of probabilities may have inputs, too
            inputs = _inputs_in_frame(given, losses, ignore) if is_frame(given) else rows.inputs
        known = [name for one in losses for name in one.declared_inputs]
        read = [x for one in losses if (x := one.inputs_of(inputs, n, order=order, others=known)) is not None]
        rows = replace(rows, inputs=RowInputs({k: x for some in read for k, x in some.items()}, n) if read else None)
    return rows


def input_columns(frame: Any, losses: Sequence[Loss], ignore: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns of a frame that hold inputs of the specs of these losses, without those in `ignore`."""
    if not losses or not is_frame(frame):
        return ()
    declared = {name: x for loss in losses for name, x in loss.declared_inputs.items()}
    labels = set(losses[0].labels)
    names = [name for name in map(str, frame.columns) if name not in ignore and name not in labels]
    return tuple(column for x in declared.values() for column in possible_columns(x, names))


def _inputs_in_frame(frame: Any, losses: Sequence[Loss], ignore: Sequence[str]) -> Any:
    """The columns of a frame that hold inputs which these losses read, as a frame; None if there are none."""
    names, labels = list(map(str, frame.columns)), set(losses[0].labels)
    inputs = {name: x for loss in losses for name, x in loss.inputs.items()}
    found = [column for x in inputs.values() for column in table_columns(x, names, ignore=ignore, labels=labels)]
    return frame[found] if found else None


def indexed_inputs(inputs: Any) -> dict[str, Any]:
    """The inputs that may have an index of their own: each column of a mapping, or the whole object."""
    if isinstance(inputs, Mapping) and not isinstance(inputs, RowInputs):
        return {f"input {name!r}": column for name, column in inputs.items()}
    return {"the inputs": inputs}


def _warn_of_another_order(labels: Sequence[str]) -> None:
    """Warn that integers in `y` are positions in `labels` (or names, if all labels are numbers), not in class_names."""
    if not all(WHOLE_NUMBER.fullmatch(label) for label in labels):
        warn(
            "y contains integers, taken as positions in loss.labels; class_names are in another order. If y counts in "
            "that order, give names: np.asarray(class_names)[y]"
        )
