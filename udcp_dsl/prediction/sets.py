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
from udcp_dsl.expression.decisions import best_actions
from udcp_dsl.expression.domain import Hierarchy
from udcp_dsl.loss import Loss
from udcp_dsl.showing import MARKS, STATES, Column, Description, Line, Shown, Styled, Table, in_unit, listed
from udcp_dsl.showing.frames import as_pandas, as_polars

_SHOWN = 10  # sets in a notebook
_LABELS = 9  # of each
_BLOCK = 1 << 20  # entries of masks that are decided on at a time

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from udcp_dsl.expression.domain import Actions
    from udcp_dsl.expression.rows.given import RowInputs


class MadeSets(NamedTuple):
    """Sets as a mask (n, K); the number of full ones, as no threshold is high enough for the weight of the row; and of
    those that are not proved to be the best for the p that the oracle was given, None where it proves nothing."""

    mask: npt.NDArray[np.bool_]
    full: int
    unproved: int | None


@dataclass(frozen=True, eq=False)
class PredictionSets(Shown):
    """Prediction sets for n instances, with their costs under the loss.

    `sets[i]` and iteration give the labels of one set; a slice, a list of positions or a mask of rows gives prediction
    sets again. `index` is that of the pandas frame that the probabilities came in.

    Labels in sets have the type in which they were given (`given_labels`, in the order of the spec; None: texts). They
    are integers where the labels are numbers and the true labels of calibration were integers, so that `truth in
    sets[i]` holds. Where true labels do not say (they are positions, or were read from a file), the `class_names` of
    the predictor decide; otherwise labels are strings. `loss.labels`, `nodes` and files of sets hold strings always.

    >>> import numpy as np, udcp_dsl as udcp
    >>> sets = PredictionSets(udcp.loads("labels {a, b}  loss l = size"), np.array([[True, True], [False, True]]))
    >>> sets, sets[0], list(sets[1:])
    (PredictionSets(2 sets of 2 labels, loss 'l': mean size 1.5, 0 empty), ('a', 'b'), [('b',)])
    """

    loss: Loss
    mask: npt.NDArray[np.bool_]
    ids: npt.NDArray[np.str_] | None = None
    index: pd.Index[Any] | None = field(default=None, kw_only=True)
    given_labels: tuple[Any, ...] | None = field(default=None, kw_only=True)
    inputs: RowInputs | None = field(default=None, kw_only=True)  # that the loss reads of each row
    truth: npt.NDArray[np.integer[Any]] | None = field(default=None, kw_only=True)  # where known: places of labels

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        told = f"{len(self):,} sets of {self.loss.K:,} labels, loss {self.loss.name!r}"
        if len(self):
            empty = np.count_nonzero(self.sizes == 0)
            told += f": mean size {self.sizes.mean():.4g}, {empty:,} empty"
        return f"PredictionSets({told})"

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
            which = _rows(which)
        ids = None if self.ids is None else self.ids[which]
        index = None if self.index is None else self.index[which]
        inputs = None if self.inputs is None else self.inputs[which]
        truth = None if self.truth is None else self.truth[which]
        more: dict[str, Any] = {"index": index, "given_labels": self.given_labels, "inputs": inputs, "truth": truth}
        return PredictionSets(self.loss, self.mask[which], ids, **more)

    @cached_property
    def _names(self) -> npt.NDArray[np.object_]:
        given: Sequence[Any] = self.loss.labels if self.given_labels is None else self.given_labels
        return np.fromiter(given, dtype=object, count=self.loss.K)

    @cached_property
    def labels(self) -> list[tuple[Any, ...]]:
        """The labels of each set, in the order of the spec: strings, or of the type in which they were given."""
        return [tuple(self._names[row]) for row in self.mask]

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The number of labels of each set."""
        return np.asarray(np.count_nonzero(self.mask, axis=1), dtype=np.int64)

    @cached_property
    def nodes(self) -> list[tuple[str, ...]]:
        """Each set as the fewest nodes of a hierarchy whose labels are exactly its own, labels being nodes: of the one
        that `nodes(h)` in the loss names, else of the only one that the spec declares; InputError if that says none.

        Where several nodes have one name, it is told with what is above it: `kind/family`. The root is called as the
        hierarchy.

        >>> import numpy as np, udcp_dsl as udcp
        >>> text = "labels {cat, dog, trout}  hierarchy life { mammals {cat, dog}, trout }  loss l = size"
        >>> PredictionSets(udcp.loads(text), np.array([[True, True, False], [False, True, True], [True] * 3])).nodes
        [('mammals',), ('dog', 'trout'), ('life',)]
        """
        tree = _told_by(self.loss)
        names = np.array(tree.node_names, dtype=object)
        return [tuple(names[row]) for row in tree.topmost(self.mask)]

    @cached_property
    def views(self) -> Sets:
        """The sets as losses see them: what is found out about them for one purpose serves another."""
        return Sets(self.mask)

    @cached_property
    def costs(self) -> npt.NDArray[np.float64]:
        """L(S) of each set, in the unit of the loss (`loss.unit`)."""
        return self.loss.costs_of(self.views, self.inputs)

    @property
    def actions(self) -> npt.NDArray[np.str_] | dict[str, npt.NDArray[np.str_]]:
        """For a loss with `worst(u)` the best action for each set: the one whose worst loss over its labels is least.

        For an empty set the best one for all labels. Of several `worst`, a mapping by the name of the actions. Refuses
        a loss without.
        """
        found = {name: np.array(self._asked[name].actions)[chosen] for name, (chosen, _) in self._decided.items()}
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def certificates(self) -> npt.NDArray[np.float64] | dict[str, npt.NDArray[np.float64]]:
        """What the action of each set costs at worst, over the labels of the set (of an empty one, over all).

        Wherever the truth is in the set the action costs no more: so with probability 1 - alpha, at least.
        """
        found = {name: worst for name, (_, worst) in self._decided.items()}
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def _asked(self) -> Mapping[str, Actions]:
        if not self.loss.actions:
            raise InputError(
                f"loss {self.loss.name!r} asks for no action: declare actions in the spec, and add worst(...) of them"
            )
        return self.loss.actions

    @cached_property
    def _decided(self) -> dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
        step = max(1, _BLOCK // max(1, self.loss.K))
        blocks = [self.mask[start : start + step] for start in range(0, max(1, len(self)), step)]
        found = {name: [best_actions(actions, block) for block in blocks] for name, actions in self._asked.items()}
        return {
            name: (np.concatenate([chosen for chosen, _ in parts]), np.concatenate([worst for _, worst in parts]))
            for name, parts in found.items()
        }

    @cached_property
    def handed_over(self) -> npt.NDArray[np.bool_] | None:
        """For a loss min(L, c) the sets that cost c: these cases are handed over. None for other losses."""
        return None if self.loss.ceiling is None else self.costs >= self.loss.ceiling

    @property
    def decisions(self) -> dict[str, npt.NDArray[Any]]:
        """What is decided, as columns of a table: action and certificate (of several actions, each with its name after
        a colon), and handed_over; of most losses nothing."""
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, actions in self.loss.actions.items():
            after = f":{name}" if len(self.loss.actions) > 1 else ""
            chosen, worst = self._decided[name]
            columns |= {f"action{after}": np.array(actions.actions)[chosen], f"certificate{after}": worst}
        return columns if self.handed_over is None else columns | {"handed_over": self.handed_over}

    def to_pandas(self) -> pd.DataFrame:
        """A frame with columns labels, size and cost (in `loss.unit`), and those of `decisions`; indexed by the ids,
        else as the probabilities were."""
        columns = {"labels": self.labels, "size": self.sizes, "cost": self.costs, **self.decisions}
        return as_pandas(columns, self.index) if self.ids is None else as_pandas(columns, self.ids, "id")

    def to_lists(self) -> list[list[Any]]:
        """The labels of each set as a list.

        >>> import numpy as np, udcp_dsl as udcp
        >>> loss = udcp.loads("labels {1, 2}  loss l = size")
        >>> sets = PredictionSets(loss, np.eye(2, dtype=bool), given_labels=(1, 2))
        >>> sets.to_lists(), sets.to_dicts()[0]
        ([[1], [2]], {'labels': [1], 'size': 1, 'cost': 1.0})
        """
        return [list(labels) for labels in self.labels]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each set as a dict: id (where rows have ids or a pandas index), labels, size, cost and `decisions`.

        The values are Python's own.
        """
        columns = {name: column if name == "labels" else column.tolist() for name, column in self._columns().items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_polars(self) -> pl.DataFrame:
        """A frame of polars with the columns of `to_dicts`; labels that are of several types are texts."""
        of_one_type = len({type(name) for name in self._names}) == 1
        sets = self if of_one_type else replace(self, given_labels=None)
        return as_polars(sets._columns(), {"labels": sets._names.tolist()})

    def _columns(self) -> dict[str, Any]:
        named = self.index if self.ids is None else self.ids
        columns = {"labels": self.to_lists(), "size": self.sizes, "cost": self.costs, **self.decisions}
        return columns if named is None else {"id": np.asarray(named), **columns}

    def plot(self) -> Any:
        """A matplotlib figure: how large the sets are and what they cost. Needs the extra `report`."""
        from udcp_dsl.report.views import plot_sets

        return plot_sets(self)

    def describe(self) -> Description:
        """The first ten sets, and how many more there are."""
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
    """The truth of a row, with whether its set holds it."""
    *_, labels, truth = row
    holds = truth in map(str, labels)
    return Styled(f"{MARKS[holds]} ", STATES[holds]), truth


def _told_by(loss: Loss) -> Hierarchy:
    """The hierarchy in whose nodes the sets of a loss are told."""
    read = {id(atom.hierarchy): atom.hierarchy for atom in loss.expression.atoms.values() if isinstance(atom, Nodes)}
    found = list(read.values()) or list(loss.hierarchies)
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"loss {loss.name!r} has no hierarchy to tell sets by: declare one in its spec")
    names = ", ".join(h.name for h in found)
    raise InputError(f"loss {loss.name!r} has several hierarchies ({names}): put nodes(h) of one of them into it")


def _rows(which: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    rows = np.asarray(which)
    if rows.size == 0:
        rows = rows.astype(np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "iub":
        raise TypeError("sets are indexed by a position, a slice, positions or a mask of rows")
    return rows
