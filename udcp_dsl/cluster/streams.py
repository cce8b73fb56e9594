"""From batches of rows to batches of sets (id, labels, size, cost), and from the files of a source to files of sets.

All engines use this code: they pass batches and receive batches (Spark's `mapInArrow`, Ray, Dask, and our own files).
Memory is bounded; with several threads, scoring overlaps reading and writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.cluster.folders import ResultFolder
from udcp_dsl.diagnostics import InputError, RowFault
from udcp_dsl.expression.given import RowInputs
from udcp_dsl.files import PathLike
from udcp_dsl.measure.coverage import LeastCovered
from udcp_dsl.measure.evaluate import Risk, risk_of
from udcp_dsl.predict.calibrate import Level
from udcp_dsl.predict.oracle import Time, Way
from udcp_dsl.predict.row_warnings import Guesses, warn_of_another_order
from udcp_dsl.predict.sets import MadeSets, PredictionSets
from udcp_dsl.rows.arrow import block_of
from udcp_dsl.rows.columns import Names, joined_columns
from udcp_dsl.rows.matrix import check_class_names, names_of_classes
from udcp_dsl.rows.roles import Columns
from udcp_dsl.rows.rows import Rows
from udcp_dsl.rows.selection import ColumnSpec
from udcp_dsl.rows.source import BATCH, Batch, Source, block_rows
from udcp_dsl.rows.writing import CoverageRecord, OutputBlock, open_p_values, open_sets, refuse_taken_names
from udcp_dsl.threads import in_order, thread_count

if TYPE_CHECKING:
    from udcp_dsl.predict.predictor import SetPredictor

# Called with the number of rows before a batch.
Tell: TypeAlias = Callable[[int], None]

_MOST_WORKERS = 4


@dataclass(frozen=True)
class Tally:
    """Totals over sets: their number, how many are empty, the sums of sizes and costs, how many are handed over.

    If the truth is known, `coverage` says, among other things, which rows are covered (26 bytes per row).
    """

    n: int = 0
    empty: int = 0
    size: int = 0
    cost: float = 0.0
    handed_over: int = 0
    coverage: tuple[CoverageRecord, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def coverage_summary(self, predictor: SetPredictor, level: Fraction) -> LeastCovered | Risk | None:
        """The parts covered least, or the mean harm if alpha bounds it; None if no truth is known."""
        found, harm = self._known, predictor.promise.harm(predictor.loss)
        if found is None:
            return None
        if harm is not None and found.harms is not None:
            return risk_of(harm, found.covered, found.harms, level)
        labels, promise = predictor.loss.labels, predictor.promise
        return LeastCovered.of_rows(level, labels, found.truth, found.covered, found.highest, promise)

    def warn_of_another_order(self, labels: tuple[str, ...]) -> None:
        """Warn if columns seem to be in another order than the labels, once for all rows with known truth."""
        found = self._known
        if found is not None:
            warn_of_another_order(Guesses(labels, found.likeliest, found.truth, found.untied))

    @property
    def _known(self) -> CoverageRecord | None:
        """The rows with known truth; None if there are none."""
        if not self.coverage or not self.n:
            return None
        return CoverageRecord(*joined_columns(self.coverage))

    @classmethod
    def of(cls, block: OutputBlock) -> Tally:
        cost = 0.0 if block.costs is None else float(block.costs.sum())
        coverage = () if block.coverage is None else (block.coverage,)
        handed = int(np.count_nonzero(block.more.get("handed_over", ())))
        return cls(len(block.sizes), int((block.sizes == 0).sum()), int(block.sizes.sum()), cost, handed, coverage)


def predict_file(
    predictor: SetPredictor,
    source: Source,
    path: PathLike,
    level: Fraction,
    tell: Tell | None = None,
    *,
    overlap: bool = True,
    plain_ids: bool = False,
) -> Tally:
    """Write the sets of all rows of a source (zero rows are allowed) to one file, in order; it appears only when it is
    complete.

    `overlap=False` reads, scores and writes in turn, in this thread only. `plain_ids=True` writes ids as text, as `id`.
    """
    begun = source.parts[0].start  # the number of the first row, if rows have no ids

    def block_of(batch: Batch) -> OutputBlock:
        return _predicted(predictor, source, batch, level, begun + batch.at, plain_ids)

    workers, tally = _workers(predictor) if overlap else 1, Tally()
    with open_sets(path) as write, closing(in_order(source.batches(empty=True), block_of, workers)) as found:
        for block in found:
            write(block)
            tally += Tally.of(block)
            if tell is not None:
                tell(tally.n)
    return tally


def predict_parts(predictor: SetPredictor, parts: ResultFolder, level: Fraction, tell: Tell | None = None) -> Tally:
    """Write the remaining parts, one after the other; the rows reported to `tell` are counted over these parts.

    With several threads, a part is read while the one before it is still scored. If a part is invalid, those before it
    are finished. A part without rows gets a file without sets.
    """
    left, source = parts.remaining, parts.source
    rows = replace(source, parts=tuple(source.parts[which] for which in left), model=source.model or source.parts[0])

    def block_of(item: tuple[int, Batch | None]) -> OutputBlock | None:  # None marks the end of a part
        batch = item[1]
        return None if batch is None else _predicted(predictor, rows, batch, level, batch.start, parts.plain_ids)

    batches, tally = rows.by_part(empty=True) if left else (), Tally()
    with parts.writing(), closing(in_order(batches, block_of, _workers(predictor))) as found:
        for which in left:
            of_part = Tally()
            with open_sets(parts.files[which]) as write:
                while (block := next(found)) is not None:
                    write(block)
                    of_part += Tally.of(block)
                    if tell is not None:
                        tell(tally.n + of_part.n)
            tally += of_part
    return tally


def write_p_values(predictor: SetPredictor, source: Source, path: PathLike, tell: Tell | None = None) -> None:
    """Write the p-values of all rows of a source to one file, in order; it appears only when it is complete."""
    if source.parts[0].stream is not None:
        raise InputError(
            f"{source.parts[0].path}: can be read only once, for the sets: for p-values, save the rows in a file"
        )
    step = max(1, BATCH // (2 * predictor.loss.K))  # p-values are float64
    named = source.wanted.columns.id_column or "id"

    def found(batch: Batch) -> tuple[npt.NDArray[np.float64], Sequence[str] | range]:
        with naming_part_in_errors(source, batch):
            p = predictor.p_values(batch.rows)
        ids = batch.rows.ids
        return p, range(batch.at, batch.at + len(p)) if ids is None else ids.tolist()

    batches, done = source.batches(step, empty=True), 0
    with (
        open_p_values(path, predictor.loss.labels, named) as write,
        closing(in_order(batches, found, _workers(predictor))) as blocks,
    ):
        for block in blocks:
            write(block)
            done += len(block[0])
            if tell is not None:
                tell(done)


def _workers(predictor: SetPredictor) -> int:
    """Threads that may call its oracle at once; each has a batch in memory."""
    declared, way = predictor.oracle.declaration, predictor.oracle.way
    quick = isinstance(way, Way) and way.time is not Time.LONGER
    return min(_MOST_WORKERS, thread_count()) if quick and declared is not None and declared.in_threads else 1


def _predicted(
    predictor: SetPredictor, source: Source, batch: Batch, level: Fraction, first: int, plain_ids: bool
) -> OutputBlock:
    """From a batch to what is written for it; `first` is the number of its first row, used if rows have no ids."""
    with naming_part_in_errors(source, batch):
        found = predict_block(predictor, batch.rows, level, first=first, carried=batch.carried)
    if not plain_ids:
        found = found.with_ids(source.wanted.columns.id_column, batch.ids)
    _ = found.sizes  # computed here, in a worker thread, so that the writer need not wait
    return found


@contextmanager
def naming_part_in_errors(source: Source, batch: Batch) -> Iterator[None]:
    """Errors about a batch name its file, and the row by its number in that file."""
    try:
        yield
    except InputError as error:
        fault = error.moved(batch.start) if isinstance(error, RowFault) else error
        raise InputError(f"{source.parts[batch.part].path}: {fault}") from error


def output_of(
    predictor: SetPredictor,
    made: MadeSets,
    ids: Names | None,
    *,
    first: int = 0,
    carried: Any = None,
    inputs: RowInputs | None = None,
) -> OutputBlock:
    """What is written for rows with these sets; rows without ids are numbered from `first` on."""
    sets = PredictionSets(predictor.loss, made.mask, ids, inputs=inputs, decided=made.decided)
    _ = sets.views.members  # needed for writing; once they are cached, costs are computed faster
    names: Sequence[str] | range = range(first, first + len(sets)) if ids is None else ids.tolist()
    return OutputBlock(predictor.loss.labels, sets.views, names, sets.costs, sets.decisions, carried)


def predict_block(
    predictor: SetPredictor, rows: Rows, level: Fraction, *, first: int = 0, carried: Any = None
) -> OutputBlock:
    """Make the sets of rows, and what is written for them; if truth is known, also which rows are covered."""
    predictor.check_columns(rows)
    made = predictor.make_sets_and_warn(rows, level)
    found = output_of(predictor, made, rows.ids, first=first, carried=carried, inputs=rows.inputs)
    if rows.y is None:
        return found
    covered = made.mask[np.arange(len(rows)), rows.truth]
    harm = predictor.promise.harm(predictor.loss)
    harms = None if harm is None else harm.of_truth(rows.truth, rows.inputs)
    known = rows.truth, covered, rows.highest_probabilities, rows.likeliest, rows.untied
    return replace(found, coverage=CoverageRecord(*known, harms))


def predict_batches(
    predictor: SetPredictor,
    batches: Iterable[Any],
    alpha: Level | None,
    columns: Columns,
    class_names: Sequence[object] | None = None,
) -> Iterator[Any]:
    """`SetPredictor.predict_batches`; what can be checked without a batch is checked at the call."""
    level = predictor.level(alpha)
    refuse_taken_names(columns.carry)
    predictor.promise.check_groups(columns.group_column is not None)
    loss = predictor.loss
    names = predictor.class_names if class_names is None else names_of_classes(class_names)
    if names is not None:
        check_class_names(names, loss.labels)
    wanted = ColumnSpec.of(loss.labels, names, columns, predictor.inputs, unread=loss.declared_inputs)
    return _answered(predictor, batches, level, wanted)


def _answered(predictor: SetPredictor, batches: Iterable[Any], level: Fraction, wanted: ColumnSpec) -> Iterator[Any]:
    first, numbers = 0, {"logits": predictor.logits, "normalize": predictor.normalize}
    for number, batch in enumerate(batches):
        try:
            block = block_of(batch, wanted.choose)
            found = wanted.roles(block.texts)
            rows = block_rows(block, wanted, found, **numbers, empty=True)
            made = predict_block(predictor, rows, level, first=first, carried=block.carried).batch()
        except InputError as error:
            counted = " (rows counted from 0 in their batch, as are batches)" if isinstance(error, RowFault) else ""
            raise InputError(f"batch {number}: {error}{counted}") from error
        first += len(rows)
        yield made
