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
from udcp_dsl.expression.rows.given import RowInputs
from udcp_dsl.per_row import NotVectorised, PerRow, Split
from udcp_dsl.prediction.oracle import (
    AnchoredOracle,
    Floats,
    Indices,
    Masks,
    Oracle,
    Probabilities,
    SolvingOracle,
    as_probabilities,
    make_oracle,
)

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
Rows: TypeAlias = "Indices | slice"
OracleGroups: TypeAlias = "list[tuple[Indices, Oracle | None]]"


S = TypeVar("S", bound=np.generic)


class OracleByRow(Oracle):
    """An oracle for a loss with inputs. `model` is the oracle for an example row, and `make` makes it for any row."""

    anchors: Floats | None = None

    def __init__(
        self, model: Oracle, loss: Loss, options: Mapping[str, object], make: Callable[[Loss], Oracle]
    ) -> None:
        settled = {k: x for k, x in model.options.items() if k in options or k not in model.settled_by_row}
        super().__init__(loss, **settled)
        self.name, self.declaration, self.__doc__ = model.name, model.declaration, model.__doc__
        self.priced = model.priced
        self._make, self._model = make, model
        self._inputs: RowInputs | None = None
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

    def with_inputs(self, inputs: RowInputs | None) -> Oracle:
        if inputs is None:
            return self
        return self._copy(_inputs=RowInputs({name: inputs[name] for name in self.loss.inputs}, inputs.n))

    def _copy(self, **changed: object) -> OracleByRow:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.update(changed)
        return other

    @property
    def inputs(self) -> RowInputs:
        """The inputs of its rows; an error if there are none."""
        if self._inputs is None:
            names = ", ".join(f"{name!r}: ..." for name in self.loss.inputs)
            raise InputError(f"the loss reads inputs: give inputs={{{names}}}, or oracle.with_inputs(...)")
        return self._inputs

    def costs(self, masks: Masks) -> Floats:
        return self.loss.batch(masks, inputs=self.inputs)

    @property
    def own_columns(self) -> tuple[Floats, ...]:
        inputs = () if self._inputs is None else tuple(self._inputs[name] for name in self.loss.inputs)
        return inputs if self.anchors is None else (*inputs, self.anchors)

    def of_rows(self, *own: Floats) -> Oracle:
        if not own:
            return self
        many = len(self.loss.inputs)
        inputs = RowInputs(dict(zip(self.loss.inputs, own, strict=False)), len(own[0]))
        return self._copy(_inputs=inputs, anchors=own[many] if len(own) > many else None)

    def _scores(self, P: Probabilities) -> Floats:
        return self._apply(np.empty(P.shape), lambda oracle, rows: oracle.scores(P[rows]))

    def _score_of(self, P: Probabilities, y: Indices) -> Floats:
        return self._apply(np.empty(len(P)), lambda oracle, rows: oracle.score_of(P[rows], y[rows]))

    def _sets(self, P: Probabilities, tau: Floats) -> Masks:
        by_row = tau.shape[1] == 1
        out = np.empty(P.shape, dtype=np.bool_)
        return self._apply(out, lambda oracle, rows: oracle.sets(P[rows], tau[rows] if by_row else tau))

    def _first(self, P: Probabilities) -> Indices:
        return self._apply(np.empty(len(P), dtype=np.int64), lambda oracle, rows: oracle.first(P[rows]))

    def _apply(self, out: NDArray[S], function: Callable[[Oracle, Rows], NDArray[S]]) -> NDArray[S]:
        """Fill `out` with the answers of the rows' oracles; if the rows of a shared oracle turn out to differ in
        structure, they are asked one by one."""
        for rows, oracle in self._oracles(len(out)):
            try:
                out[rows] = function(oracle, rows)
            except (Split, NotVectorised):
                if not oracle.loss.of_rows:
                    raise
                for some, one in self._one_by_one(np.arange(len(out))[rows]):
                    out[some] = function(self._anchored(one, some), some)
        return out

    def _oracles(self, n: int) -> Iterator[tuple[Rows, Oracle]]:
        """The rows with their oracles, once per shared oracle. Sets that are not proved optimal are counted, and
        reported in one warning."""
        if self.inputs.n != n:
            raise InputError(f"inputs of {self.inputs.n} rows for {n} rows of probabilities")
        open_rows: int | None = 0
        with keeping_warnings():
            for rows, oracle in self._oracle_groups():
                yield rows, self._anchored(oracle, rows)
                found = oracle.unproved
                open_rows = None if open_rows is None or found is None else open_rows + found
        self._unproved[get_ident()] = open_rows
        if open_rows:
            warn(
                f"oracle {self.name!r}: {open_rows} of {n} rows are not proved optimal; coverage does not depend on it"
            )

    def _anchored(self, oracle: Oracle, rows: Rows) -> Oracle:
        if self.anchors is None:
            return oracle
        assert isinstance(oracle, AnchoredOracle)
        return oracle.anchored(self.anchors[rows])

    def _oracle_groups(self) -> Iterator[tuple[Rows, Oracle]]:
        """One oracle per structure, made with the numbers of all its rows, if this kind of oracle supports that; else
        oracles for single rows."""
        if not self._model.takes_rows:
            yield from self._one_by_one(np.arange(self.inputs.n))
            return
        step, n = max(1, _BATCH_CELLS // max(self.loss.K, _MIN_LABELS)), self.inputs.n
        for start in range(0, n, step):
            block = slice(start, min(start + step, n))
            inputs = self.inputs if step >= n else self.inputs[block].copy()
            for some, oracle in self._together(inputs):
                if oracle is None:
                    yield from self._one_by_one(start + some)
                else:
                    yield block if len(some) == inputs.n else start + some, oracle

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

    def _one_by_one(self, rows: Indices) -> Iterator[tuple[Rows, Oracle]]:
        """Single-row oracles for these rows; rows with the same inputs share one."""
        first, which = self.inputs[rows].group_rows()
        order, starts = np.argsort(which, kind="stable"), np.searchsorted(np.sort(which), np.arange(len(first) + 1))
        for g, row in enumerate(first.tolist()):
            yield rows[order[starts[g] : starts[g + 1]]], self._oracle_of(int(rows[row]))

    def _oracle_of(self, row: int) -> Oracle:
        values = self.inputs.row(row)
        key = b"".join(np.asarray(value).tobytes() for value in values.values())
        found = self._row_cache.get(key)
        if found is None:
            found = self._make(self.loss._at(values))
            self._row_cache[key] = found
            while len(self._row_cache) > _MAX_CACHED_ROWS:
                self._row_cache.popitem(last=False)
        return found


class AnchoredByRow(OracleByRow, AnchoredOracle):
    """An `OracleByRow` whose scores may be anchored."""

    def anchored(self, anchors: Floats) -> AnchoredByRow:
        other = self._copy(anchors=np.asarray(anchors, dtype=np.float64))
        assert isinstance(other, AnchoredByRow)
        return other

    def limited(self, multipliers: tuple[float, ...]) -> AnchoredByRow:
        if not any(multipliers):
            return self
        other = self._copy(loss=self.loss.with_multipliers(multipliers), _row_cache=OrderedDict(), _batch_cache=[])
        assert isinstance(other, AnchoredByRow)
        return other

    def best(self, P: Probabilities, mu: Floats) -> Masks:
        P = as_probabilities(P, self.loss.K)

        def function(oracle: Oracle, rows: Rows) -> Masks:
            assert isinstance(oracle, AnchoredOracle)
            return oracle.best(P[rows], mu[rows])

        return self._apply(np.empty(P.shape, dtype=np.bool_), function)


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

    def _oracles(self, n: int) -> Iterator[tuple[Rows, Oracle]]:
        for rows, oracle in super()._oracles(n):
            yield rows, oracle
            for _ in np.arange(n)[rows] if self._advance is not None else ():
                self._advance()  # type: ignore[misc]  # it is not None here

    def optimal(self, P: Probabilities) -> tuple[Masks, Masks]:
        masks, proved = np.zeros(P.shape, dtype=bool), np.zeros(len(P), dtype=bool)
        for rows, oracle in self._oracles(len(P)):
            assert isinstance(oracle, SolvingOracle)
            masks[rows], proved[rows] = oracle.optimal(P[rows])
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
    kind = AnchoredByRow if isinstance(model, AnchoredOracle) else OracleByRow
    return (SolvingByRow if isinstance(model, SolvingOracle) else kind)(model, loss, options, make)


def _made_again(name: str, loss: Loss, options: Mapping[str, object]) -> Oracle:
    return make_oracle(name, loss, **options)
