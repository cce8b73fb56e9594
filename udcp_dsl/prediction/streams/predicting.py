"""From the files of a source to a file of sets, in bounded memory: read, scored and written at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError, OracleError, RowFault
from udcp_dsl.prediction.files import PathLike
from udcp_dsl.prediction.rows.overlap import ahead, behind
from udcp_dsl.prediction.rows.source import BATCH, Batch, Source
from udcp_dsl.prediction.streams.answering import masks, told
from udcp_dsl.prediction.streams.manifest import Parts
from udcp_dsl.prediction.writing import Answers, Write, open_p_values, open_sets

if TYPE_CHECKING:
    from udcp_dsl.prediction.predictor import SetPredictor

# Hears after how many rows a batch begins.
Tell: TypeAlias = Callable[[int], None]


@dataclass(frozen=True)
class Tally:
    """What sets come to: how many, how many empty, the sums of their sizes and costs, how many are handed over."""

    n: int = 0
    empty: int = 0
    size: int = 0
    cost: float = 0.0
    handed_over: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @classmethod
    def of(cls, block: Answers) -> Tally:
        cost = 0.0 if block.costs is None else float(block.costs.sum())
        handed = int(np.count_nonzero(block.more.get("handed_over", ())))
        return cls(len(block.mask), int((block.sizes == 0).sum()), int(block.sizes.sum()), cost, handed)


def predict_file(
    predictor: SetPredictor,
    source: Source,
    path: PathLike,
    level: Fraction,
    tell: Tell | None = None,
    *,
    overlap: bool = True,
) -> Tally:
    """Write the sets of all rows of a source to one file, in order; it appears whole or not at all.

    `overlap=False` reads, scores and writes by turns, in this thread alone.
    """
    with open_sets(path) as write:
        writer = _File(predictor, write)
        with behind(writer) if overlap else nullcontext(writer) as put:
            for batch in ahead(source.batches()) if overlap else source.batches():
                if tell is not None:
                    tell(batch.at)
                with blamed(source, batch):
                    found = _Found(masks(predictor, batch.rows, level), batch)
                put(found)
    return writer.tally


def predict_parts(
    predictor: SetPredictor, source: Source, parts: Parts, level: Fraction, tell: Tell | None = None
) -> Tally:
    """Write the parts that are left, one after the other; what is told is counted over these.

    A part is read while the one before is still scored and written. Where something is wrong with one, those before it
    are finished.
    """
    done, failed = 0, None
    with closing(_Folder(predictor, parts)) as writer, behind(writer) as put:
        try:
            for which, batch in ahead(_batches(source, parts.left)):
                if batch is None:
                    put((which, None))
                    continue
                if tell is not None:
                    tell(done)
                with blamed(source.part(which), batch):
                    found = _Found(masks(predictor, batch.rows, level), batch)
                done += len(found.mask)
                put((which, found))
        except (InputError, OracleError) as error:
            failed = error
    if failed is not None:
        raise failed
    return writer.tally


def write_p_values(predictor: SetPredictor, source: Source, path: PathLike, tell: Tell | None = None) -> None:
    """Write the p-values of all rows of a source to one file, in order; it appears whole or not at all."""
    if source.parts[0].stream is not None:
        raise InputError(f"{source.parts[0].path}: is read once, for the sets: for p-values, save the rows in a file")
    step = max(1, BATCH // (2 * predictor.loss.K))  # p-values are of double precision
    with open_p_values(path, predictor.loss.labels) as write, behind(write) as put:
        for batch in ahead(source.batches(step)):
            if tell is not None:
                tell(batch.at)
            with blamed(source, batch):
                p = predictor.p_values(batch.rows)
            ids = batch.rows.ids
            put((p, range(batch.at, batch.at + len(p)) if ids is None else ids.tolist()))


def _batches(source: Source, left: Iterable[int]) -> Iterator[tuple[int, Batch | None]]:
    """The batches of some parts, each with the position of its part, and None at the end of one."""
    for which in left:
        for batch in source.part(which).batches():
            yield which, batch
        yield which, None


class _Found:
    """The sets of a batch; of its rows what is still needed of them, and not the probabilities."""

    def __init__(self, mask: npt.NDArray[np.bool_], batch: Batch) -> None:
        self.mask, self.ids, self.at, self.carried = mask, batch.rows.ids, batch.at, batch.carried


class _File:
    """Writes sets to an open file. What they cost is found here, beside the scoring of the next, and added up."""

    def __init__(self, predictor: SetPredictor, write: Write) -> None:
        self._predictor, self._write = predictor, write
        self.tally = Tally()

    def __call__(self, found: _Found) -> None:
        block = told(self._predictor, found.mask, found.ids, first=found.at, carried=found.carried)
        self.tally += Tally.of(block)
        self._write(block)


class _Folder:
    """Writes sets to the file of their part, which appears at the end of the part; what is not ended is dropped."""

    def __init__(self, predictor: SetPredictor, parts: Parts) -> None:
        self._predictor, self._parts = predictor, parts
        self._open: ExitStack | None = None
        self._file: _File
        self.tally = Tally()

    def __call__(self, item: tuple[int, _Found | None]) -> None:
        which, found = item
        if self._open is None:
            self._open = ExitStack()
            self._file = _File(self._predictor, self._open.enter_context(open_sets(self._parts.files[which])))
        if found is not None:
            self._file(found)
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
