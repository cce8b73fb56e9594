"""Prediction sets and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.atoms import Sets
from udcp_dsl.expression.atoms.nodes import Nodes
from udcp_dsl.expression.decisions import Decided, best_actions, worst_of
from udcp_dsl.expression.domain import Hierarchy
from udcp_dsl.loss import Loss
from udcp_dsl.rows.columns import some_rows_of
from udcp_dsl.showing import MARKS, STATES, Column, Description, Line, Shown, Styled, Table, in_unit, listed
from udcp_dsl.showing.data import as_pandas, as_polars

_SHOWN = 10  # sets shown in a notebook
_LABELS = 9  # labels shown of each
_BLOCK = 1 << 20  # mask entries at a time when actions are chosen

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from udcp_dsl.expression.domain import Actions
    from udcp_dsl.expression.given import RowInputs


class MadeSets(NamedTuple):
    """Sets as a mask (n, K), and how they were made.

    `full`: number of sets that are full because no threshold is high enough for the weight of the row. `unproved`:
    number of sets not proved to be best for the oracle's p; None if it proves nothing. `decided`: what was decided
    about the rows before the sets were made.
    """

    mask: npt.NDArray[np.bool_]
    full: int
    unproved: int | None
    decided: Decided | None = None


@dataclass(frozen=True, eq=False)
class PredictionSets(Shown):
    """Prediction sets of n rows, with their costs.

    `sets[i]` gives the labels of one set, and iteration gives them one by one; a slice, a list of positions or a mask
    of rows gives prediction sets again.

    Labels have the type in which they were given. They are integers if the labels of the spec are numbers and the true
    labels of calibration were integers, so that `truth in sets[i]` works; otherwise they follow `class_names`, or are
    strings. `loss.labels`, `nodes` and files always hold strings.

    Attributes
    ----------
    loss : Loss
        What the sets cost.
    mask : boolean array, shape (n, K)
        One row per set, columns in the order of `loss.labels`.
    ids : array of str or None
        Names of the rows, if they were given.
    index : pandas.Index or None
        Index of the frame that the probabilities came in.
    given_labels : tuple or None
        The labels in the type in which they were given; None means strings.
    inputs : RowInputs or None
        Inputs of the rows, if the loss reads any.
    decided : Decided or None
        What was decided about the rows beforehand, with `conditional="decision"`.
    truth : array of int or None
        Positions of the true labels, where they are known.

    Examples
    --------
    >>> import numpy as np, udcp_dsl as udcp
    >>> loss = udcp.loads("labels {a, b}  loss l = size")
    >>> sets = PredictionSets(loss, np.array([[True, True], [False, True]]))
    >>> sets
    PredictionSets(2 sets of 2 labels, loss 'l': mean size 1.5, 0 empty)
    >>> sets[0], list(sets[1:])
    (('a', 'b'), [('b',)])
    """

    loss: Loss
    mask: npt.NDArray[np.bool_]
    ids: npt.NDArray[np.str_] | None = None
    index: pd.Index[Any] | None = field(default=None, kw_only=True)
    given_labels: tuple[Any, ...] | None = field(default=None, kw_only=True)
    inputs: RowInputs | None = field(default=None, kw_only=True)  # that the loss reads per row
    decided: Decided | None = field(default=None, kw_only=True)  # before the sets, with conditional="decision"
    truth: npt.NDArray[np.integer[Any]] | None = field(default=None, kw_only=True)  # positions of labels, if known

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        text = f"{len(self):,} sets of {self.loss.K:,} labels, loss {self.loss.name!r}"
        if len(self):
            empty = np.count_nonzero(self.sizes == 0)
            text += f": mean size {self.sizes.mean():.4g}, {empty:,} empty"
        return f"PredictionSets({text})"

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.labels)

    @overload
    def __getitem__(self, which: int | np.integer[Any]) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | npt.NDArray[Any]) -> PredictionSets: ...
    def __getitem__(
        self, which: int | np.integer[Any] | slice | Sequence[int] | npt.NDArray[Any]
    ) -> tuple[Any, ...] | PredictionSets:
        if isinstance(which, int | np.integer):
            place = int(which)
            if not -len(self) <= place < len(self):
                raise IndexError(f"there is no set {place}: there are {len(self):,}")
            return tuple(self._names[self.mask[place]])
        if not isinstance(which, slice):
            which = _as_row_index(which)
        return some_rows_of(self, which, "loss", "given_labels")

    @cached_property
    def _names(self) -> npt.NDArray[np.object_]:
        given: Sequence[Any] = self.loss.labels if self.given_labels is None else self.given_labels
        return np.fromiter(given, dtype=object, count=self.loss.K)

    @cached_property
    def labels(self) -> list[tuple[Any, ...]]:
        """Labels of each set, in the order of the spec."""
        return [tuple(self._names[row]) for row in self.mask]

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of labels in each set."""
        return np.asarray(np.count_nonzero(self.mask, axis=1), dtype=np.int64)

    @cached_property
    def nodes(self) -> list[tuple[str, ...]]:
        """Each set as the fewest nodes of a hierarchy that have exactly its labels.

        The hierarchy is the one in `nodes(h)` of the loss, or else the only one of the spec; InputError if there is no
        such hierarchy. Labels are nodes, and the root has the name of the hierarchy. Where several nodes share a name,
        it is preceded by the node above, as in `kind/family`.

        Examples
        --------
        >>> import numpy as np, udcp_dsl as udcp
        >>> loss = udcp.loads(
        ...     "labels {cat, dog, trout}  hierarchy life { mammals {cat, dog}, trout }"
        ...     "  loss l = size"
        ... )
        >>> mask = np.array([[True, True, False], [False, True, True], [True] * 3])
        >>> PredictionSets(loss, mask).nodes
        [('mammals',), ('dog', 'trout'), ('life',)]
        """
        tree = _describing_hierarchy(self.loss)
        names = np.array(tree.node_names, dtype=object)
        return [tuple(names[row]) for row in tree.topmost(self.mask)]

    @cached_property
    def views(self) -> Sets:
        """The sets in the form that losses take; what is computed from them is cached and shared."""
        return Sets(self.mask)

    @cached_property
    def costs(self) -> npt.NDArray[np.float64]:
        """Cost of each set, in the unit of the loss (`loss.unit`).

        With `conditional="decision"`, a row that was handed over beforehand costs c. Other rows have the loss of the
        final set: `min(L, c)` is at most c although the row is kept, and `worst(u)` counts the best action for the set,
        not the decided one, whose worst-case cost is in `certificates`.
        """
        found = self.loss.costs_of(self.views, self.inputs)
        if self.decided is None or self.decided.handed_over is None or self.loss.ceiling is None:
            return found
        return np.where(self.decided.handed_over, self.loss.ceiling, found)

    @property
    def paid(self) -> dict[str, npt.NDArray[np.float64]]:
        """Cost of each set by summand of the loss; they add up to `costs`."""
        if self.decided is not None and self.decided.handed_over is not None:  # min(L, c) is one summand
            return dict.fromkeys(self.loss.summands, self.costs)
        return self.loss.terms_batch(self.mask, inputs=self.inputs)

    @property
    def actions(self) -> npt.NDArray[np.str_] | dict[str, npt.NDArray[np.str_]]:
        """For a loss with `worst(u)`, the best action for each set: the one with the smallest worst-case loss.

        For an empty set, the best action over all labels. If the loss has several `worst`, a mapping by the name of the
        actions. With `conditional="decision"`, it is the action that was decided before the set was computed.
        InputError if the loss has no `worst`.
        """
        found = {
            name: np.array(self._tables_of_actions[name].actions)[chosen] for name, (chosen, _) in self._decided.items()
        }
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def certificates(self) -> npt.NDArray[np.float64] | dict[str, npt.NDArray[np.float64]]:
        """What the action of each set costs at worst, over the labels of the set (over all labels if it is empty).

        If the truth is in the set, the action costs no more; that holds with probability at least 1 - alpha.
        """
        found = {name: worst for name, (_, worst) in self._decided.items()}
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def _tables_of_actions(self) -> Mapping[str, Actions]:
        if not self.loss.actions:
            raise InputError(
                f"loss {self.loss.name!r} has no actions: declare actions in the spec, and add worst(...) to the loss"
            )
        return self.loss.actions

    @cached_property
    def _decided(self) -> dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
        step = max(1, _BLOCK // max(1, self.loss.K))
        blocks = [slice(start, start + step) for start in range(0, max(1, len(self)), step)]
        found = {name: [self._decided_in(name, block) for block in blocks] for name in self._tables_of_actions}
        return {
            name: (np.concatenate([chosen for chosen, _ in parts]), np.concatenate([worst for _, worst in parts]))
            for name, parts in found.items()
        }

    def _decided_in(self, name: str, rows: slice) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The actions for some of the rows, and their worst-case costs."""
        actions, mask = self._tables_of_actions[name], self.mask[rows]
        if self.decided is None:
            return best_actions(actions, mask)
        chosen = self.decided.actions[name][rows]
        return chosen, worst_of(actions, mask, chosen)

    @cached_property
    def handed_over(self) -> npt.NDArray[np.bool_] | None:
        """Which sets cost c, for a loss min(L, c), so that the row is handed over; None for other losses.

        With `conditional="decision"`, the rows for which that was decided beforehand, whatever their sets cost.
        """
        if self.decided is not None:
            return self.decided.handed_over
        return None if self.loss.ceiling is None else self.costs >= self.loss.ceiling

    @property
    def decision_names(self) -> npt.NDArray[np.str_] | None:
        """The decision for each row by which coverage is shown: kept or handed over; the action only if it was decided
        before the sets were made. None if there is nothing to decide."""
        if self.decided is not None:
            return self.decided.names(self.loss.actions)
        return None if self.handed_over is None else Decided(self.handed_over).names({})

    @property
    def decisions(self) -> dict[str, npt.NDArray[Any]]:
        """The columns action, certificate and handed_over, where they apply; an empty mapping for most losses.

        With several actions, each column has the name of the actions after a colon.
        """
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, actions in self.loss.actions.items():
            after = f":{name}" if len(self.loss.actions) > 1 else ""
            chosen, worst = self._decided[name]
            columns |= {f"action{after}": np.array(actions.actions)[chosen], f"certificate{after}": worst}
        return columns if self.handed_over is None else columns | {"handed_over": self.handed_over}

    def to_pandas(self) -> pd.DataFrame:
        """The sets as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Columns labels, size, cost and those of `decisions`; indexed by the ids, or as the probabilities were.
        """
        columns = {"labels": self.labels, "size": self.sizes, "cost": self.costs, **self.decisions}
        return as_pandas(columns, self.index) if self.ids is None else as_pandas(columns, self.ids, "id")

    def to_lists(self) -> list[list[Any]]:
        """The sets as lists.

        Returns
        -------
        list of lists
            Labels of each set.

        Examples
        --------
        >>> import numpy as np, udcp_dsl as udcp
        >>> loss = udcp.loads("labels {1, 2}  loss l = size")
        >>> sets = PredictionSets(loss, np.eye(2, dtype=bool), given_labels=(1, 2))
        >>> sets.to_lists(), sets.to_dicts()[0]
        ([[1], [2]], {'labels': [1], 'size': 1, 'cost': 1.0})
        """
        return [list(labels) for labels in self.labels]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The sets as dicts of plain Python values, ready for JSON.

        Returns
        -------
        list of dicts
            Keys id (if rows have ids or a pandas index), labels, size, cost and those of `decisions`.
        """
        columns = {name: column if name == "labels" else column.tolist() for name, column in self._columns().items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_polars(self) -> pl.DataFrame:
        """The sets as a polars frame.

        Returns
        -------
        polars.DataFrame
            Columns as in `to_dicts`. Labels of mixed types become strings.
        """
        of_one_type = len({type(name) for name in self._names}) == 1
        sets = self if of_one_type else replace(self, given_labels=None)
        return as_polars(sets._columns(), {"labels": sets._names.tolist()})

    def _columns(self) -> dict[str, Any]:
        named = self.index if self.ids is None else self.ids
        columns = {"labels": self.to_lists(), "size": self.sizes, "cost": self.costs, **self.decisions}
        return columns if named is None else {"id": np.asarray(named), **columns}

    def plot(self) -> Any:
        """Draw how large the sets are and what they cost.

        Returns
        -------
        matplotlib.figure.Figure
            Needs the extra `report`.
        """
        from udcp_dsl.report.drawing import plot_sets

        return plot_sets(self)

    def describe(self) -> Description:
        """What is printed: the first ten sets, and how many more there are."""
        first = self[:_SHOWN]
        named = self.ids is not None or self.index is not None
        names = first.ids if first.ids is not None else first.index if first.index is not None else range(len(first))
        columns: tuple[Column, ...] = (
            Column("id" if named else "row", lambda row: str(row[0])),
            Column("size", 1, "d"),
            Column(in_unit("cost", self.loss.unit), 2, ".4g", bar=True),
            Column("labels", lambda row: listed(list(map(str, row[3])), _LABELS)),
        )
        truths: Sequence[Any] = [None] * len(first)
        if first.truth is not None:
            truths = [str(self._names[y]) for y in first.truth]
            columns = (*columns, Column("truth", _marked_truth))
        rows = list(zip(names, first.sizes, first.costs, first, truths, strict=True))
        more = f"and {len(self) - len(first):,} more" if len(self) > len(first) else ""
        return Description(title=repr(self), tables=(Table(columns, rows, note=more),))


def _marked_truth(row: tuple[Any, ...]) -> Line:
    """The true label of a row, with a mark that shows whether the set contains it."""
    *_, labels, truth = row
    holds = truth in map(str, labels)
    return Styled(f"{MARKS[holds]} ", STATES[holds]), truth


def _describing_hierarchy(loss: Loss) -> Hierarchy:
    """The hierarchy whose nodes describe the sets of a loss."""
    read = {id(atom.hierarchy): atom.hierarchy for atom in loss.expression.atoms.values() if isinstance(atom, Nodes)}
    found = list(read.values()) or list(loss.hierarchies)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"loss {loss.name!r} has no hierarchy to describe sets with: declare one in its spec")
    names = ", ".join(h.name for h in found)
    raise InputError(f"loss {loss.name!r} has several hierarchies ({names}): use one of them in the loss, as nodes(h)")


def _as_row_index(which: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    rows = np.asarray(which)
    if rows.size == 0:
        rows = rows.astype(np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "iub":
        raise TypeError("sets are indexed by a position, a slice, positions or a mask of rows")
    return rows
