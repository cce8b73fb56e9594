"""From the files of a source to a file of sets, in bounded memory: read, scored and written at the same time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from udcp_dsl.diagnostics import InputError, RowFault
from udcp_dsl.prediction.declaration import Time, Way
from udcp_dsl.prediction.evaluation import Risk, risk_of
from udcp_dsl.prediction.files import PathLike
from udcp_dsl.prediction.least_covered import LeastCovered
from udcp_dsl.prediction.rows.prefetch import prefetch, write_behind
from udcp_dsl.prediction.rows.source import BATCH, Batch, Source
from udcp_dsl.prediction.streams.answering import answers
from udcp_dsl.prediction.streams.manifest import Parts
from udcp_dsl.prediction.streams.ordered_pool import in_lanes, lanes_here
from udcp_dsl.prediction.writing import Answers, Judged, Write, open_p_values, open_sets

if TYPE_CHECKING:
    from udcp_dsl.prediction.predictor import SetPredictor

# Hears after how many rows a batch begins.
Tell: TypeAlias = Callable[[int], None]


@dataclass(frozen=True)
class Tally:
    """Totals over sets: their number, how many are empty, the sums of sizes and costs, how many are handed over; if the
    truth is known, whether each row is covered (17 bytes per row)."""

    n: int = 0
    empty: int = 0
    size: int = 0
    cost: float = 0.0
    handed_over: int = 0
    judged: tuple[Judged, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def judgement(self, predictor: SetPredictor, level: Fraction) -> LeastCovered | Risk | None:
        """Who is covered least, or the mean harm where alpha bounds that; None where no truth is known."""
        if not self.judged:
            return None
        truth, covered, highest = (np.concatenate(column) for column in zip(*self.judged, strict=True))
        harm = predictor.promise.harm(predictor.loss)
        if harm is not None:
            return risk_of(harm, covered, truth, level)
        labels, within = predictor.loss.labels, predictor.conditional
        return LeastCovered.of_rows(level, labels, truth, covered, highest, conditional=within)

    @classmethod
    def of(cls, block: Answers) -> Tally:
        cost = 0.0 if block.costs is None else float(block.costs.sum())
        judged = () if block.judged is None else (block.judged,)
        handed = int(np.count_nonzero(block.more.get("handed_over", ())))
        return cls(len(block.sizes), int((block.sizes == 0).sum()), int(block.sizes.sum()), cost, handed, judged)


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
    """Write the sets of all rows of a source to one file, in order; it appears whole or not at all.

    `overlap=False` reads, scores and writes by turns, in this thread alone. `plain_ids` are written as text, as `id`.
    """
    answering = _Answering(predictor, level, plain_ids)

    def batches() -> Iterator[Batch]:
        for batch in source.batches():
            if tell is not None:
                tell(batch.at)
            yield batch

    with open_sets(path) as write:
        writer = _File(write)
        lanes = answering.lanes(source) if overlap else 1
        in_lanes(batches(), lambda batch: answering(source, batch), writer, lanes)
    return writer.tally


def predict_parts(
    predictor: SetPredictor, source: Source, parts: Parts, level: Fraction, tell: Tell | None = None
) -> Tally:
    """Write the parts that are left, one after the other; what is told is counted over these.

    A part is read while the one before is still scored and written. Where something is wrong with one, those before it
    are finished.
    """
    answering = _Answering(predictor, level, parts.plain_ids)

    def answered(item: tuple[int, Batch | None]) -> tuple[int, Answers | None]:
        which, batch = item
        return which, None if batch is None else answering(source.part(which), batch)

    with parts.writing(), closing(_Folder(parts)) as writer:
        in_lanes(_batches(source, parts.left, tell), answered, writer, answering.lanes(source))
    return writer.tally


def write_p_values(predictor: SetPredictor, source: Source, path: PathLike, tell: Tell | None = None) -> None:
    """Write the p-values of all rows of a source to one file, in order; it appears whole or not at all."""
    if source.parts[0].stream is not None:
        raise InputError(f"{source.parts[0].path}: is read once, for the sets: for p-values, save the rows in a file")
    step = max(1, BATCH // (2 * predictor.loss.K))  # p-values are of double precision
    named = source.wanted.columns.id_column or "id"
    with open_p_values(path, predictor.loss.labels, named) as write, write_behind(write) as put:
        for batch in prefetch(source.batches(step)):
            if tell is not None:
                tell(batch.at)
            with blamed(source, batch):
                p = predictor.p_values(batch.rows)
            ids = batch.rows.ids
            put((p, range(batch.at, batch.at + len(p)) if ids is None else ids.tolist()))


def _batches(source: Source, left: Iterable[int], tell: Tell | None) -> Iterator[tuple[int, Batch | None]]:
    """The batches of some parts, each with the position of its part, and None at the end of one."""
    done = 0
    for which in left:
        for batch in source.part(which).batches():
            if tell is not None:
                tell(done)
            done += len(batch.rows)
            yield which, batch
        yield which, None


class _Answering:
    """From a batch to what is written of it, by several threads at once where the oracle may be asked so."""

    def __init__(self, predictor: SetPredictor, level: Fraction, plain_ids: bool) -> None:
        self._predictor, self._level, self._plain_ids = predictor, level, plain_ids
        declared, way = predictor.oracle.declaration, predictor.oracle.way
        quick = isinstance(way, Way) and way.time is not Time.LONGER
        self._in_threads = declared is not None and declared.in_threads and quick

    def lanes(self, source: Source) -> int:
        """How many may be asked at once; how many batches there will be is judged by how large the files are."""
        if not self._in_threads:
            return 1
        streamed = any(part.stream is not None for part in source.parts)
        size = math.inf if streamed else sum(part.identity["bytes"] for part in source.parts)
        return lanes_here(size / (np.dtype(np.float32).itemsize * BATCH))

    def __call__(self, source: Source, batch: Batch) -> Answers:
        with blamed(source, batch):
            found = answers(self._predictor, batch.rows, self._level, first=batch.at, carried=batch.carried)
        if not self._plain_ids:
            found = found.with_ids(source.wanted.columns.id_column, batch.ids)
        _ = found.sizes  # looked for here, where others need not wait for it
        return found


class _File:
    """Writes sets to an open file, and adds up their totals."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self.tally = Tally()

    def __call__(self, block: Answers) -> None:
        self.tally += Tally.of(block)
        self._write(block)


class _Folder:
    """Writes sets to the file of their part, which appears at the end of the part; what is not ended is dropped."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._open: ExitStack | None = None
        self._file: _File
        self.tally = Tally()

    def __call__(self, item: tuple[int, Answers | None]) -> None:
        which, found = item
        if self._open is None:
            self._open = ExitStack()
            self._file = _File(self._open.enter_context(open_sets(self._parts.files[which])))
        if found is not None:
            try:
                self._file(found)
            except OSError:  # which file it is, is told where that is open
                opened, self._open = self._open, None
                with opened:
                    raise
            return
        self._open.close()
        self._open = None
        self.tally += self._file.tally

    def close(self) -> None:
        if self._open is not None:
            with suppress(_Dropped), self._open:
                raise _Dropped


class _Dropped(Exception):
    """A part that was not finished."""


@contextmanager
def blamed(source: Source, batch: Batch) -> Iterator[None]:
    """Faults of a batch that are found here are faults of its part, at the row that it has there."""
    try:
        yield
    except InputError as error:
        fault = error.moved(batch.start) if isinstance(error, RowFault) else error
        raise InputError(f"{source.parts[batch.part].path}: {fault}") from error
