"""Prediction and calibration on a Dask cluster, file by file; the output is byte-identical to that of one process.

    client = distributed.Client("tcp://...")
    predictor.calibrate(rows_of_parts(client, "labelled/*.parquet", loss, truth_column="label"))
    predict_parts(client, predictor, "day/*.parquet", "sets/", id_column="photo")

A task is one file: it reads the rows and writes the sets, so workers must see the files. It returns only counts or, for
calibration, scores. If a worker dies, only its current file is lost. Kernels use one thread per task, since a worker
runs as many tasks at a time as it has threads.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from udcp_dsl.cluster.folders import ResultFolder, open_folder, refuse_shared_ids, remove_leftovers
from udcp_dsl.cluster.streams import Tally, predict_file
from udcp_dsl.diagnostics import InputError, OracleError, install_hint, keeping_warnings, warn
from udcp_dsl.files import PathLike
from udcp_dsl.loss import Loss
from udcp_dsl.predict.calibrate import Level
from udcp_dsl.predict.predictor import SetPredictor
from udcp_dsl.rows.columns import BlockedMatrix
from udcp_dsl.rows.matrix import Matrix
from udcp_dsl.rows.rows import Rows
from udcp_dsl.rows.source import Source, open_rows
from udcp_dsl.rows.writing import refuse_taken_names, sets_ending

_PATIENCE = 10  # seconds for a scheduler to answer
_TOLD_AFTER, _TOLD_EVERY = 10.0, 60.0  # seconds without workers until it is said, and between two times
_LOST_AFTER = 60.0  # seconds without workers until a local cluster is given up, which restarts them in a few
_LOOKS_EVERY, _POLL_SECONDS = 1.0, 0.02  # seconds between looks for workers, and for answers
# Dask makes its workers return freed memory to the system at once. Each new batch would then request all its pages
# again and clear them: a sixth of the time. The memory of a worker is bounded anyway.
_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 26}
# Dask profiles its workers a hundred times a second, and monitors the machine: a tenth of the time, for unused data.
_UNWATCHED = {"distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "10s"}


def predict_parts(
    client: Any,
    predictor: SetPredictor,
    probs: PathLike,
    folder: PathLike,
    *,
    alpha: Level | None = None,
    form: str = "parquet",
    wait: float | None = None,
    **columns: Any,
) -> Tally:
    """Predict sets for files of probabilities on a Dask cluster, one output file per input file.

    Run again, it skips the files that are already there, whichever engine wrote them.

    Parameters
    ----------
    client : distributed.Client
        The cluster. Its workers must see the files.
    predictor : SetPredictor
        A calibrated predictor.
    probs : str or path
        A file, a folder, or a pattern such as `day/*.parquet`.
    folder : str or path
        Where to write the sets.
    alpha : float, optional
        Which alpha to use, if several were calibrated.
    form : {"parquet", "arrow", "csv", "jsonl"}, default "parquet"
        Format of the output.
    wait : float, optional
        How many seconds to wait for workers while there are none. By default as long as it takes, since a cluster may
        scale up; a minute if the cluster is local.
    **columns
        Roles of columns: `id_column`, `group_column`, `column`, `carry`, `ignore`; and `class_names`, as for
        `predict_set`.

    Returns
    -------
    Tally
        Number, size and cost of the sets that were made now.

    Raises
    ------
    InputError
        Invalid rows, or no workers for longer than `wait`. Parts that are finished stay.
    """
    level = predictor.level(alpha)
    ending = f".{form}"
    sets_ending(f"part{ending}")
    unread = {name: x for name, x in predictor.loss.declared_inputs.items() if name not in predictor.inputs}
    known = {"class_names": predictor.class_names, "inputs": predictor.inputs, "unread": unread, **columns}
    how: dict[str, Any] = {**known, "logits": predictor.logits, "normalize": predictor.normalize}
    source = open_rows(probs, predictor.loss.labels, **how)
    predictor.promise.check_groups(source.wanted.columns.group_column is not None)
    refuse_taken_names(source.wanted.columns.carry)
    refuse_shared_ids(source)
    parts = open_folder(Path(folder), ending, predictor, source, level)
    return write_parts(Cluster(client, wait), predictor, parts, level)


def write_parts(
    cluster: Cluster,
    predictor: SetPredictor,
    parts: ResultFolder,
    level: Fraction,
    tell: Callable[[int], None] | None = None,
) -> Tally:
    """Write the remaining parts; `tell` is called with the number of rows that all workers have done."""
    with parts.writing():
        # A task, which Dask repeats if all workers that had its result are gone.
        client = cluster.client
        sent = client.submit(_identity, predictor, pure=False)
        here = _absolute(parts.source)
        files = [file.absolute() for file in parts.files]
        futures = [
            client.submit(_write, sent, here.part(which), files[which], level, parts.plain_ids, pure=False)
            for which in parts.remaining
        ]
        tally = Tally()
        for _, of_part in cluster.answers(futures):
            tally += of_part
            if tell is not None:
                tell(tally.n)
        remove_leftovers(parts.folder)  # of workers that died
    return tally


def rows_of_parts(
    client: Any, probs: PathLike, labels: Sequence[str] | Loss, *, wait: float | None = None, **columns: Any
) -> Rows:
    """Rows for `SetPredictor.calibrate` that stay in their files; the workers of a Dask cluster score them.

    Parameters
    ----------
    client : distributed.Client
        The cluster. Its workers must see the files.
    probs : str or path
        A file, a folder, or a pattern such as `labelled/*.parquet`.
    labels : sequence of str, or Loss
        The labels; for a loss with inputs per row, the loss itself, so that their columns are read.
    wait : float, optional
        How many seconds to wait for workers while there are none, as in `predict_parts`.
    **columns
        Roles of columns and options: `truth_column`, `group_column`, `weight_column`, `logits` and so on. `inputs`
        (by default `loss.inputs`) are the inputs to read: `predictor.inputs` also has those of a harm per row.

    Returns
    -------
    Rows
        Rows to calibrate with.
    """
    if isinstance(labels, Loss):
        columns = {"inputs": labels.inputs, "unread": labels.declared_inputs, **columns}
        labels = labels.labels
    return spread(Cluster(client, wait), open_rows(probs, labels, **columns))


def spread(cluster: Cluster, source: Source, tell: Callable[[int, int], None] | None = None) -> Rows:
    """The rows of a source, which stay in their parts; `tell` is called with the rows that are done, and how many there
    are, in each pass through some rows."""
    rows = source.stored()
    numbers = _absolute(replace(source, wanted=source.wanted.probabilities_only, beside={}))
    counts = [len(numbers.part(which).stored()) for which in range(len(source.parts))]
    if sum(counts) != len(rows):
        raise InputError(f"{source.parts[0].path}: had {len(rows)} rows before, and now has {sum(counts)}")
    ends = np.cumsum([0, *counts])
    return replace(rows, P=cast("Matrix", RemoteMatrix(cluster, numbers, ends, np.arange(len(rows)), (), tell)))


def _absolute(source: Source) -> Source:
    """The same files with absolute paths, since workers may run in other folders."""
    return replace(source, parts=tuple(replace(part, path=part.path.absolute()) for part in source.parts))


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster, for how many seconds to wait for workers while it has none (None: see `predict_parts`), and the
    function to call with a text that says so."""

    client: Any
    wait: float | None = None
    say: Callable[[str], None] = warn

    def answers(self, futures: list[Any]) -> Iterator[tuple[Any, Any]]:
        """The futures and their results as they are done; passes on each warning once, and raises errors."""
        from distributed import KilledWorker, as_completed

        shown = set[str]()
        watch = _WorkerWatch(self)
        try:
            completed = as_completed(futures, loop=self.client.loop, with_results=True)
            while not completed.is_empty():
                if not completed.has_ready():
                    watch.look()
                    time.sleep(_POLL_SECONDS)
                    continue
                future, found = next(completed)
                if future.cancelled():
                    raise InputError(
                        "the Dask scheduler was lost, or cancelled the work: see its log, and run this again"
                    )
                answer, messages = found
                if isinstance(answer, str):
                    raise InputError(answer)
                for message in messages:
                    if message not in shown:
                        shown.add(message)
                        warn(message)
                yield future, answer
        except KilledWorker as error:
            why = "several workers died while they worked on the same file: was there too little memory?"
            raise InputError(f"{why} {error}") from error
        except BaseException:
            self.client.cancel(futures)
            raise


class _WorkerWatch:
    """Says when a cluster has had no workers for a while, and gives up when it has had none for too long."""

    def __init__(self, cluster: Cluster) -> None:
        from distributed import LocalCluster

        self._client, self._say = cluster.client, cluster.say
        self._local = isinstance(cluster.client.cluster, LocalCluster)
        self._wait = _LOST_AFTER if cluster.wait is None and self._local else cluster.wait
        self._alone_since: float | None = None
        self._next_look, self._next_word = 0.0, 0.0

    def look(self) -> None:
        """Ask the scheduler for its workers, if it was not asked just now."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOKS_EVERY
        if self._has_workers():
            self._alone_since = None
            return
        if self._alone_since is None:
            self._alone_since, self._next_word = now, now + _TOLD_AFTER
        alone = now - self._alone_since
        if self._wait is not None and alone >= self._wait:
            raise InputError(self._words(alone))
        if now >= self._next_word:
            self._next_word = now + _TOLD_EVERY
            self._say(f"{self._words(alone)}; still waiting for workers")

    def _has_workers(self) -> bool:
        try:
            return bool(self._client.nthreads())
        except OSError:  # no scheduler: the futures are cancelled when the client gives it up
            return True

    def _words(self, seconds: float) -> str:
        told = f"Dask cluster has had no workers for {seconds:.0f} seconds"
        if self._local:
            return f"the local {told}: if they ran out of memory, use fewer"
        return f"the {told}: start some, with dask worker {self._client.scheduler.address}"


class RemoteMatrix(BlockedMatrix):
    """A matrix in parts: to compute on its rows, a worker reads a part and applies `changes`, then the function."""

    is_remote = True

    def __init__(
        self,
        cluster: Cluster,
        numbers: Source,
        ends: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.int64],
        changes: tuple[Callable[[Any], Any], ...],
        tell: Callable[[int, int], None] | None,
    ) -> None:
        super().__init__((len(chosen), len(numbers.labels)), lambda: iter([self.apply(_identity)]))
        self._of = partial(RemoteMatrix, cluster, numbers, ends, tell=tell)
        self._cluster, self._numbers, self._ends, self._tell = cluster, numbers, ends, tell
        self._chosen, self._changes = chosen, changes

    def map(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> RemoteMatrix:
        return self._of(self._chosen, (*self._changes, change))

    def __getitem__(self, rows: slice | npt.NDArray[np.integer[Any]]) -> RemoteMatrix:
        return self._of(self._chosen[rows], self._changes)

    def apply(self, function: Callable[..., npt.NDArray[Any]], *columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """As for any `BlockedMatrix`; each part is a task, which is sent the entries of its own rows in the columns."""
        if not len(self):
            return function(np.empty(self.shape), *columns)
        client = self._cluster.client
        places = np.searchsorted(self._chosen, self._ends)
        task = client.submit(_identity, (function, self._changes), pure=False)
        futures, slices = [], {}
        for which, (first, last) in enumerate(pairwise(places.tolist())):
            if last > first:
                own = self._chosen[first:last] - self._ends[which]
                sent = [column[first:last] for column in columns]
                future = client.submit(_apply_to_part, task, self._numbers.part(which), own, sent, pure=False)
                futures.append(future)
                slices[future.key] = slice(first, last)
        out, done = np.empty(0), 0
        if self._tell is not None:
            self._tell(0, len(self))
        for future, answer in self._cluster.answers(futures):
            at = slices[future.key]
            if not done:
                out = np.empty((len(self), *answer.shape[1:]), dtype=answer.dtype)
            out[at] = answer
            done += at.stop - at.start
            if self._tell is not None:
                self._tell(done, len(self))
        return out


def _identity(value: Any) -> Any:
    return value


def _apply_to_part(task: Any, source: Source, own: npt.NDArray[np.int64], columns: list[Any]) -> tuple[Any, list[str]]:
    """The task of a worker: read rows of a part, apply the changes, then the function that was sent."""
    function, changes = task

    def answer() -> Any:
        P: Any = source.stored().P[own]
        for change in changes:
            P = P.map(change)
        return P.apply(function, *columns)

    return _run_task(answer)


@contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Any]:
    """A client of the scheduler at this address or, if None, of local worker processes, which end with the block."""
    try:
        import distributed
    except ImportError as error:
        raise InputError(f"the engine dask needs distributed: {install_hint('dask')}") from error
    import logging

    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=f"{_PATIENCE}s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(f"there is no scheduler at {scheduler!r}: {error}") from error
        with client:
            yield client
        return
    import dask

    kept = {f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in _KEEP_MEMORY.items()}
    with dask.config.set({**kept, **_UNWATCHED}):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def _write(
    predictor: SetPredictor, source: Source, file: Path, level: Fraction, plain_ids: bool
) -> tuple[Tally | str, list[str]]:
    """The task of a worker: write the sets of one part, in one thread. To read and write in parallel would take a
    second core, which another worker needs."""
    return _run_task(lambda: predict_file(predictor, source, file, level, overlap=False, plain_ids=plain_ids))


def _run_task(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Run `work` with single-threaded kernels; return its result or its error as text, and its warnings.

    An error is returned, not raised: invalid input is no failure of the worker, and Dask must not try again.
    """
    _one_thread()
    with keeping_warnings() as messages:
        try:
            found = work()
        except (InputError, OracleError) as error:
            found = str(error)
    return found, messages


def _one_thread() -> None:
    """Limit numba and pyarrow to one thread each; by default, each uses all cores of the machine."""
    os.environ["NUMBA_NUM_THREADS"] = "1"  # read when numba is imported
    numba: Any = sys.modules.get("numba")
    if hasattr(numba, "config"):
        numba.config.NUMBA_NUM_THREADS = 1
    pyarrow: Any = sys.modules.get("pyarrow")
    if hasattr(pyarrow, "set_cpu_count"):
        pyarrow.set_cpu_count(1)
