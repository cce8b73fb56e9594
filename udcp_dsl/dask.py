"""Sets of parts by the workers of a Dask cluster, in the same bytes as one process writes them.

    client = distributed.Client("tcp://...")
    predict_parts(client, predictor, "day/*.parquet", "sets/", id_column="photo")

A task is a part: it reads its rows and writes its sets itself, so that files must be where the workers see them, and
nothing but counts travels back. A worker that dies costs the part that it was at. Kernels take one thread a task: a
worker has as many tasks at a time as it has threads, which are its share of the machine.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from udcp_dsl.diagnostics import InputError, OracleError, warn
from udcp_dsl.prediction.calibrate import Level
from udcp_dsl.prediction.files import PathLike
from udcp_dsl.prediction.predictor import SetPredictor
from udcp_dsl.prediction.rows.source import Source, open_rows
from udcp_dsl.prediction.streams.answering import check_groups
from udcp_dsl.prediction.streams.identities import refuse_shared_ids
from udcp_dsl.prediction.streams.manifest import Parts, open_folder, remove_leftovers
from udcp_dsl.prediction.streams.predicting import Tally, predict_file
from udcp_dsl.prediction.writing import refuse_taken_names, sets_ending

_PATIENCE = 10  # seconds for a scheduler to answer


def predict_parts(
    client: Any,
    predictor: SetPredictor,
    probs: PathLike,
    folder: PathLike,
    *,
    alpha: Level | None = None,
    form: str = "parquet",
    **columns: Any,
) -> Tally:
    """Write the sets of all parts of `probs`, one part each, into a folder, by the workers of a `distributed.Client`.

    `columns` are those of `open_rows` (`id_column`, `group_column`, `column`, `carry`, `ignore`). Run again, what is
    there is left out, by whichever engine it was written. Gives what the sets come to that were made now.
    """
    level = predictor.calibrated.level(alpha)
    check_groups(predictor, columns.get("group_column") is not None)
    refuse_taken_names(columns.get("carry", ()))
    ending = f".{form}"
    sets_ending(f"part{ending}")
    source = open_rows(
        probs,
        predictor.loss.labels,
        **{"class_names": predictor.class_names, **columns},
        logits=predictor.logits,
        normalize=predictor.normalize,
    )
    refuse_shared_ids(source)
    parts = open_folder(Path(folder), ending, predictor, source, level)
    return write_parts(client, predictor, source, parts, level)


def write_parts(
    client: Any,
    predictor: SetPredictor,
    source: Source,
    parts: Parts,
    level: Fraction,
    tell: Callable[[int], None] | None = None,
) -> Tally:
    """Write the parts that are left; `tell` hears how many rows are done, whichever worker did them."""
    from distributed import as_completed

    # As a task, so that it is made again where all who had it are gone.
    loaded = client.submit(_loaded, _saved(predictor), pure=False)
    here = replace(source, parts=tuple(replace(part, path=part.path.absolute()) for part in source.parts))
    futures = [
        client.submit(_write, loaded, here.part(which), parts.files[which].absolute(), level, pure=False)
        for which in parts.left
    ]
    tally, told = Tally(), set[str]()
    try:
        for _, (of_part, messages) in as_completed(futures, loop=client.loop, with_results=True):
            if isinstance(of_part, str):
                raise InputError(of_part)
            tally += of_part
            if tell is not None:
                tell(tally.n)
            for message in messages:
                if message not in told:
                    told.add(message)
                    warn(message)
    except BaseException:
        client.cancel(futures)
        raise
    remove_leftovers(parts.folder)  # of workers that died
    return tally


@contextmanager
def connected(scheduler: str | None, workers: int) -> Iterator[Any]:
    """A client of the scheduler at an address, or of so many processes of this machine, which end with the block."""
    try:
        import distributed
    except ImportError as error:
        raise InputError("the engine dask needs distributed: pip install 'udcp_dsl[dask]'") from error
    import logging

    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=f"{_PATIENCE}s", set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(f"there is no scheduler at {scheduler!r}: {error}") from error
        with client:
            yield client
        return
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def _saved(predictor: SetPredictor) -> str:
    with TemporaryDirectory() as folder:
        file = Path(folder, "predictor.json")
        predictor.save(file)
        return file.read_text(encoding="utf-8")


def _loaded(text: str) -> SetPredictor:
    with TemporaryDirectory() as folder:
        file = Path(folder, "predictor.json")
        file.write_text(text, encoding="utf-8", newline="\n")
        return SetPredictor.load(file)


def _write(predictor: SetPredictor, source: Source, file: Path, level: Fraction) -> tuple[Tally | str, list[str]]:
    """What a worker does: one part, in one thread of kernels; what was warned of on the way, and what is wrong with it.

    That is handed back and not raised: a fault of the input is no failure of the worker, and is not tried again.
    """
    _one_thread()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UserWarning)
        try:
            tally: Tally | str = predict_file(predictor, source, file, level)
        except (InputError, OracleError) as error:
            tally = str(error)
    return tally, [str(message.message) for message in heard if issubclass(message.category, UserWarning)]


def _one_thread() -> None:
    """Compiled kernels, and what decodes parquet, each take all cores of a machine unless they are told."""
    os.environ["NUMBA_NUM_THREADS"] = "1"  # read when numba is imported
    numba: Any = sys.modules.get("numba")
    if hasattr(numba, "config"):
        numba.config.NUMBA_NUM_THREADS = 1
    pyarrow: Any = sys.modules.get("pyarrow")
    if hasattr(pyarrow, "set_cpu_count"):
        pyarrow.set_cpu_count(1)
