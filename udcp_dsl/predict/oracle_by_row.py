"""Oracles for losses with inputs: each row is scored by the oracle for its own loss, in which all numbers are known.

A score is still a function of the row, that is of its probabilities and inputs: so coverage holds if rows with their
inputs are exchangeable. The kind of oracle, the facts it needs and its algorithm are decided once, by facts that hold
for all values of the inputs. Rows whose losses have the same structure share an oracle that is made with the numbers of
all of them (`udcp_dsl.per_row`). An oracle that takes only single numbers is made for each row; rows with the same
inputs share it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from udcp_dsl.diagnostics import InputError, OracleError, keeping_warnings, warn
from udcp_dsl.expression.given import RowInputs
from udcp_dsl.per_row import NotVectorised, PerRow, Split
from udcp_dsl.predict.oracle import (
    Columns,
    Floats,
    Given,
    Indices,
    Masks,
    Oracle,
    Probabilities,
    SolvingOracle,
    make_oracle,
)
from udcp_dsl.rows.rows import Rows

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

# Maximum numbers of cached oracles: for single rows (a search for an anchor asks the same rows twenty times), and for
# batches of rows.
_MAX_CACHED_ROWS, _MAX_CACHED_BATCHES = 2048, 32
# A batch has _BATCH_CELLS entries (a megabyte, which stays in the cache), its rows counted as having at least
# _MIN_LABELS labels. If _MIN_EQUAL_ROWS rows or more have the same inputs, on average, rows are scored one by one, and
# those with the same inputs share an oracle. So are fewer than _MIN_STRUCTURE_ROWS rows of one structure, and those
# left after _MAX_TRIES + rows / _MIN_STRUCTURE_ROWS attempts.
_BATCH_CELLS, _MIN_LABELS, _MIN_EQUAL_ROWS, _MIN_STRUCTURE_ROWS, _MAX_TRIES = 1 << 17, 1 << 7, 8, 8, 16
# `OracleGroups`: the rows of a batch by structure, with their oracle; None for rows that are scored one by one.
Positions: TypeAlias = "Indices | slice"
OracleGroups: TypeAlias = "list[tuple[Indices, Oracle | None]]"


S = TypeVar("S", bound=np.generic)


class OracleByRow(Oracle):
    """An oracle for a loss with inputs. `model` is the oracle for an example row, and `make` makes it for any row."""

    def __init__(
        self, model: Oracle, loss: Loss, options: Mapping[str, object], make: Callable[[Loss], Oracle]
    ) -> None:
        settled = {k: x for k, x in model.options.items() if k in options or k not in model.settled_by_row}
        super().__init__(loss, **settled)
        self.name, self.declaration, self.__doc__ = model.name, model.declaration, model.__doc__
        self.priced, self.has_best, self.reads = model.priced, model.has_best, ("inputs", *model.reads)
        self._make, self._model = make, model
        self._row_cache: OrderedDict[bytes, Oracle] = OrderedDict()
        self._batch_cache: list[tuple[RowInputs, OracleGroups]] = []
        self._unproved: dict[int, int | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self.name, self.loss, self.options)

    @property
    def about(self) -> str | None:
        return self._model.about

    @property
    def unproved(self) -> int | None:
        return self._unproved.get(get_ident(), self._model.unproved)

    def with_multipliers(self, multipliers: tuple[float, ...]) -> OracleByRow:
        if not any(multipliers):
            return self
        made = type(self)(self._model, self.loss.with_multipliers(multipliers), self.options, self._make)
        made._listeners, made._unproved = self._listeners, self._unproved
        return made

    def _scores(self, P: Probabilities, inputs: RowInputs | None = None, **own: Any) -> Floats:
        return self._apply(np.empty(P.shape), P, inputs, own, lambda oracle, rows, some: oracle.scores(some))

    def _score_of(self, P: Probabilities, y: Indices, inputs: RowInputs | None = None, **own: Any) -> Floats:
        return self._apply(np.empty(len(P)), P, inputs, own, lambda oracle, rows, some: oracle.score_of(some, y[rows]))

    def _sets(self, P: Probabilities, tau: Floats, inputs: RowInputs | None = None, **own: Any) -> Masks:
        by_row = tau.shape[1] == 1
        out = np.empty(P.shape, dtype=np.bool_)
        return self._apply(
            out, P, inputs, own, lambda oracle, rows, some: oracle.sets(some, tau[rows] if by_row else tau)
        )

    def _first(self, P: Probabilities, inputs: RowInputs | None = None, **own: Any) -> Indices:
        out = np.empty(len(P), dtype=np.int64)
        return self._apply(out, P, inputs, own, lambda oracle, rows, some: oracle.first(some))

    def _best(self, P: Probabilities, mu: Floats, inputs: RowInputs | None = None, **own: Any) -> Masks:
        out = np.empty(P.shape, dtype=np.bool_)
        return self._apply(out, P, inputs, own, lambda oracle, rows, some: oracle.best(some, mu[rows]))

    def _apply(
        self,
        out: NDArray[S],
        P: Probabilities,
        inputs: RowInputs | None,
        own: Columns,
        function: Callable[[Oracle, Positions, Rows], NDArray[S]],
    ) -> NDArray[S]:
        """Fill `out` with the answers of the rows' oracles; if the rows of a shared oracle turn out to differ in
        structure, they are asked one by one."""
        every = Rows(self.loss.labels, P, **own)
        for rows, oracle in self._oracles(self._own_inputs(inputs, len(out))):
            try:
                out[rows] = function(oracle, rows, every.take(rows))
            except (Split, NotVectorised):
                if not oracle.loss.of_rows:
                    raise
                assert inputs is not None
                for some, one in self._one_by_one(inputs, np.arange(len(out))[rows]):
                    out[some] = function(one, some, every.take(some))
        return out

    def _own_inputs(self, inputs: RowInputs | None, n: int) -> RowInputs:
        """The inputs that the loss reads, of n rows; an error if there are none."""
        if inputs is None:
            names = ", ".join(f"{name!r}: ..." for name in self.loss.inputs)
            raise InputError(f"the loss reads inputs: give inputs={{{names}}}")
        if inputs.n != n:
            raise InputError(f"inputs of {inputs.n} rows for {n} rows of probabilities")
        return RowInputs({name: inputs[name] for name in self.loss.inputs}, n)

    def _oracles(self, inputs: RowInputs) -> Iterator[tuple[Positions, Oracle]]:
        """The rows with their oracles, once per shared oracle. Sets that are not proved optimal are counted, and
        reported in one warning."""
        open_rows: int | None = 0
        with keeping_warnings():
            for rows, oracle in self._oracle_groups(inputs):
                yield rows, oracle
                found = oracle.unproved
                open_rows = None if open_rows is None or found is None else open_rows + found
        self._unproved[get_ident()] = open_rows
        if open_rows:
            warn(
                f"oracle {self.name!r}: {open_rows} of {inputs.n} rows are not proved optimal; coverage does not "
                "depend on it"
            )

    def _oracle_groups(self, inputs: RowInputs) -> Iterator[tuple[Positions, Oracle]]:
        """One oracle per structure, made with the numbers of all its rows, if this kind of oracle supports that; else
        oracles for single rows."""
        if not self._model.takes_rows:
            yield from self._one_by_one(inputs, np.arange(inputs.n))
            return
        step, n = max(1, _BATCH_CELLS // max(self.loss.K, _MIN_LABELS)), inputs.n
        for start in range(0, n, step):
            block = slice(start, min(start + step, n))
            own = inputs if step >= n else inputs[block].copy()
            for some, oracle in self._together(own):
                if oracle is None:
                    yield from self._one_by_one(inputs, start + some)
                else:
                    yield block if len(some) == own.n else start + some, oracle

    def _together(self, inputs: RowInputs) -> OracleGroups:
        """The rows of a batch by structure, with their oracles, which are cached by the batch's inputs."""
        for known, parts in tuple(self._batch_cache):  # a copy, since other threads may change the list
            if known.equals(inputs):
                return parts
        parts = self._by_structure(inputs)
        self._batch_cache[:] = [*self._batch_cache[1 - _MAX_CACHED_BATCHES :], (inputs, parts)]
        return parts

    def _by_structure(self, inputs: RowInputs) -> OracleGroups:
        every = np.arange(inputs.n)
        if inputs.estimate_distinct() * _MIN_EQUAL_ROWS <= inputs.n:
            return [(every, None)]
        found: OracleGroups = []
        waiting, tries = [every], _MAX_TRIES + inputs.n // _MIN_STRUCTURE_ROWS
        while waiting:
            rows = waiting.pop()
            tries -= 1
            if len(rows) < _MIN_STRUCTURE_ROWS or tries < 0:
                found.append((rows, None))
                continue
            part = inputs if len(rows) == inputs.n else inputs[rows]
            columns = {name: PerRow(column) for name, column in part.columns.items()}
            try:
                found.append((rows, self._make(self.loss._at(columns))))
            except Split as split:
                waiting += [rows[~split.holds], rows[split.holds]]
            except NotVectorised:
                found.append((rows, None))
        return found

    def _one_by_one(self, inputs: RowInputs, rows: Indices) -> Iterator[tuple[Positions, Oracle]]:
        """Single-row oracles for these rows; rows with the same inputs share one."""
        first, which = inputs[rows].group_rows()
        order, starts = np.argsort(which, kind="stable"), np.searchsorted(np.sort(which), np.arange(len(first) + 1))
        for g, row in enumerate(first.tolist()):
            yield rows[order[starts[g] : starts[g + 1]]], self._oracle_of(inputs.row(int(rows[row])))

    def _oracle_of(self, values: Mapping[str, Any]) -> Oracle:
        key = b"".join(np.asarray(value).tobytes() for value in values.values())
        found = self._row_cache.get(key)
        if found is None:
            found = self._make(self.loss._at(values))
            self._row_cache[key] = found
            while len(self._row_cache) > _MAX_CACHED_ROWS:
                self._row_cache.popitem(last=False)
        return found


class SolvingByRow(OracleByRow, SolvingOracle):
    """An `OracleByRow` that solves a program for each row, in this process and without a checkpoint."""

    _advance: Callable[[], None] | None = None
    _ALONE: ClassVar[str] = "a loss with inputs has a separate program for each row: leave out"

    @contextmanager
    def running(
        self,
        *,
        workers: int | None = None,
        checkpoint: str | Path | None = None,
        advance: Callable[[], None] | None = None,
    ) -> Iterator[None]:
        if checkpoint is not None:
            raise OracleError(f"oracle {self.name!r}: {self._ALONE} the checkpoint (--resume)")
        before, self._advance = self._advance, advance
        try:
            yield
        finally:
            self._advance = before

    def _oracles(self, inputs: RowInputs) -> Iterator[tuple[Positions, Oracle]]:
        for rows, oracle in super()._oracles(inputs):
            yield rows, oracle
            for _ in np.arange(inputs.n)[rows] if self._advance is not None else ():
                self._advance()  # type: ignore[misc]  # it is not None here

    def optimal(self, P: Given) -> tuple[Masks, Masks]:
        rows = P if isinstance(P, Rows) else Rows(self.loss.labels, np.asarray(P))
        masks, proved = np.zeros(rows.P.shape, dtype=bool), np.zeros(len(rows), dtype=bool)
        for some, oracle in self._oracles(self._own_inputs(rows.inputs, len(rows))):
            assert isinstance(oracle, SolvingOracle)
            masks[some], proved[some] = oracle.optimal(rows.P[some])
        return masks, proved

    def export(self, path: str) -> None:
        raise OracleError(f"oracle {self.name!r}: {self._ALONE} the file, or export the model of one row, loss.at(...)")


def by_row(make: Callable[[Loss], Oracle], loss: Loss, options: Mapping[str, object]) -> Oracle:
    """The oracle for a loss with inputs; OracleError if it does not apply for all values of these."""
    model = make(loss.example)
    if model.declaration is not None:
        for name in model.declaration.needs:
            fact = getattr(loss.facts, name)
            if not fact:
                raise OracleError(f"oracle {model.name!r} needs {name}, which is {fact} for some inputs: {fact.reason}")
        if not model.by_cost:  # of the loss, it reads only the labels
            return make(loss)
    return (SolvingByRow if isinstance(model, SolvingOracle) else OracleByRow)(model, loss, options, make)


def _made_again(name: str, loss: Loss, options: Mapping[str, object]) -> Oracle:
    return make_oracle(name, loss, **options)
