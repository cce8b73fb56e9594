"""Sets from parquet in bounded memory: rows a second and peak memory as n grows, and two Dask workers against one.

    python benchmarks/scale.py [--rows 10000 100000 1000000] [--labels 1000] [--layouts] [--dask] [--stages]

Rows are made on the fly, a list column of float32 in parts of 10,000 rows: of a classifier that is right 8 times in
10, and of one that is right 3 times in 10, whose sets have many labels. Each case is predicted in a process of its own,
from files to files (ids, labels, sizes, costs), against `predict_set(...).costs` on as many rows that are in memory (of
which 20,000 are held, and taken over and over), in the same process and by the same kernels, by turns (the more often,
the fewer rows), of which the quickest counts; and by calibrate, whose rows stay in the files. "MiB" is the peak of
predicting, above the imports. "ratio" is that of rows a second, "of CPU" that of rows for a CPU second, the median of
turns; the first can be the larger, as reading and writing take what cores `predict_set` leaves idle. "bare" is the
ratio to `predict_set` without the costs, which the files do have.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PART = 10_000
HELD = 20_000  # rows in memory, for the rate of `predict_set`
TURNS = 40  # of as many rows as one part has
MADE = 4  # parts that differ in their numbers; all do in their ids
SCALE = {"sure": 12.0, "unsure": 3.0}  # of the logits
CASES = [("sure", "price"), ("unsure", "price"), ("sure", "greedy"), ("sure", "lac")]


def spec(K: int) -> str:
    families = ", ".join(f"f{f}: {{ {', '.join(str(y) for y in range(f, K, K // 20))} }}" for f in range(K // 20))
    return f"labels 0..{K - 1}\ncategories family {{ {families} }}\nloss l = count(family) + 0.01 * size\n"


def rows(n: int, K: int, seed: int, kind: str) -> np.ndarray:
    logits = np.random.default_rng(seed).standard_normal((n, K), dtype=np.float32) * np.float32(SCALE[kind])
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def truth(P: np.ndarray, seed: int) -> list[str]:
    """Labels that are as likely as P says."""
    likely = np.random.default_rng(seed).random((len(P), 1)) < np.cumsum(P, axis=1, dtype=np.float64)
    return [str(label) for label in likely.argmax(axis=1)]


def make(folder: Path, n: int, K: int, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    made: list[tuple[Any, list[str]]] = []
    for number, start in enumerate(range(0, n, PART)):
        if number < MADE:
            P = rows(PART, K, number, kind)
            made.append((pa.FixedSizeListArray.from_arrays(pa.array(P.ravel()), K), truth(P, number)))
        lists, y = made[number % MADE]
        many = min(PART, n - start)
        ids = [f"row{start + i}" for i in range(many)]
        table = pa.table({"id": ids, "y": y[:many], "p": lists[:many]})
        pq.write_table(table, folder / f"part-{number}.parquet", use_dictionary=["y"], compression="none")
    if hasattr(os, "sync"):
        os.sync()  # else they are written to the disk while something is measured


def predictor_of(K: int, kind: str, oracle: str) -> Any:
    import udcp_dsl as udcp

    P = rows(4000, K, 10**6, kind)
    return udcp.SetPredictor(udcp.loads(spec(K)), oracle, alpha=0.1, repair=None).calibrate(P, truth(P, 10**6))


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and CPU seconds of all threads."""
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - cpu


def measured(folder: Path, K: int, kind: str) -> dict[str, float]:
    """In a process of its own: rates from files to files and of rows in memory, and the peak above the imports."""
    import pyarrow as pa
    import pyarrow.parquet  # an import, and not memory that rows take

    pa.array([0])  # imports pandas, where that is installed

    import udcp_dsl as udcp
    from udcp_dsl.cluster.folders import open_folder
    from udcp_dsl.cluster.streams import predict_parts
    from udcp_dsl.rows.source import open_rows

    predictor = udcp.SetPredictor.load(folder / "predictor.json")
    level, labels = predictor.alphas[0], predictor.loss.labels
    predictor.predict_set(rows(512, K, 1, kind))  # compiled, or read from the cache
    before = _peak()

    def stream(files: Path = folder / "in") -> None:
        shutil.rmtree(folder / "out", ignore_errors=True)
        source = open_rows(files, labels, id_column="id")
        predict_parts(predictor, open_folder(folder / "out", ".parquet", predictor, source, level), level)

    def calibrate() -> None:
        again = udcp.SetPredictor(predictor.loss, predictor.oracle.name, alpha=0.1, repair=None)
        again.calibrate(open_rows(folder / "in", labels, truth_column="y").stored())

    source = open_rows(folder / "in", labels, id_column="id")
    n = source.rows or 0
    stream(folder / "in" / "part-0.parquet")  # once through all of it, as the memory of it is taken anew at first
    streamed = [spent(stream)]
    above = _peak() - before
    calibrated = n / spent(calibrate)[0]
    held = rows(min(n, HELD), K, 0, kind)
    size = float(predictor.predict_set(held).sizes.mean())

    def hold() -> None:  # as many rows as there are in the files: what is timed for longer meets more of a busy machine
        for _ in range(n // len(held)):
            _ = predictor.predict_set(held).costs

    def hold_bare() -> None:
        for _ in range(n // len(held)):
            predictor.predict_set(held)

    in_memory, bare = [spent(hold)], [spent(hold_bare)]
    for _ in range(max(1, TURNS * PART // n)):
        streamed.append(spent(stream))
        in_memory.append(spent(hold))
        bare.append(spent(hold_bare))
    wall, cpu = (np.array(times) / n for times in zip(*streamed, strict=True))
    many = n // len(held) * len(held)
    held_wall, held_cpu = (np.array(times) / many for times in zip(*in_memory, strict=True))
    bare_wall = np.array([wall for wall, _ in bare]) / many
    return {
        "size": size,
        "streamed": 1 / wall.min(),
        "in_memory": 1 / held_wall.min(),
        "ratio": float(np.median(held_wall / wall)),
        "bare_ratio": float(np.median(bare_wall / wall)),
        "cpu_ratio": float(np.median(held_cpu / cpu)),
        "calibrated": calibrated,
        "peak": above,
    }


def stages(folder: Path) -> dict[str, float]:
    """CPU microseconds a row of reading and checking, of scoring, of costs, and of writing, one after the other."""
    import udcp_dsl as udcp
    from udcp_dsl.cluster.streams import output_of
    from udcp_dsl.rows.source import open_rows
    from udcp_dsl.rows.writing import open_sets

    predictor = udcp.SetPredictor.load(folder / "predictor.json")
    source = open_rows(folder / "in" / "part-0.parquet", predictor.loss.labels, id_column="id")
    level, least = predictor.alphas[0], dict.fromkeys(("read and check", "score", "costs", "write"), math.inf)
    for _ in range(5):
        taken = dict.fromkeys(least, 0.0)
        many, at = 0, time.process_time()

        def lap(stage: str) -> None:
            nonlocal at
            taken[stage] += time.process_time() - at  # noqa: B023  # called within the turn of the loop alone
            at = time.process_time()

        with open_sets(folder / "stage.parquet") as write:
            for batch in source.batches():
                lap("read and check")
                made = predictor.make_sets_and_warn(batch.rows, level)
                lap("score")
                block = output_of(predictor, made, batch.rows.ids, first=batch.at)
                lap("costs")
                write(block)
                lap("write")
                many += len(made.mask)
        least = {stage: min(before, 1e6 * taken[stage] / many) for stage, before in least.items()}
    return least


def layouts(folder: Path, K: int) -> None:
    """CPU microseconds a row of reading and checking the same rows, as they may lie in a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from udcp_dsl.rows.source import open_rows

    P = rows(PART, K, 0, "sure")
    labels = [str(y) for y in range(K)]
    plain: dict[str, Any] = {"use_dictionary": False, "compression": "none"}

    def table(dtype: Any = np.float32, required: bool = False, fixed: bool = True) -> Any:
        flat = pa.array(P.astype(dtype).ravel())
        item = pa.field("element", flat.type, nullable=not required)
        if fixed:
            lists = pa.FixedSizeListArray.from_arrays(flat, type=pa.list_(item, K))
        else:
            lists = pa.ListArray.from_arrays(np.arange(PART + 1, dtype=np.int32) * K, flat, type=pa.list_(item))
        return pa.table({"p": lists})

    def ipc(file: Path) -> None:
        with pa.ipc.new_file(file, table().schema) as out:
            out.write_table(table(), max_chunksize=1000)

    def columns(file: Path) -> None:
        pq.write_table(pa.table({label: P[:, y] for y, label in enumerate(labels)}), file, **plain)

    def parquet(made: Any, **options: Any) -> Callable[[Path], None]:
        return lambda file: pq.write_table(made, file, **{**plain, **options})

    ways: dict[str, tuple[str, Callable[[Path], None]]] = {
        "parquet, lists, plain": (".parquet", parquet(table(fixed=False))),
        "parquet, fixed-size lists, plain": (".parquet", parquet(table())),
        "the same, float16": (".parquet", parquet(table(np.float16))),
        "the same, float64": (".parquet", parquet(table(np.float64))),
        "the same, with checksums of pages": (".parquet", parquet(table(), write_page_checksum=True)),
        "the same with checksums, elements not null": (
            ".parquet",
            parquet(table(required=True, fixed=False), write_page_checksum=True),
        ),
        "the same, snappy": (".parquet", parquet(table(), compression="snappy")),
        "the same, zstd": (".parquet", parquet(table(), compression="zstd")),
        "the same, as pyarrow writes it unasked": (
            ".parquet",
            parquet(table(), compression="snappy", use_dictionary=True),
        ),
        "parquet, a column a label, plain": (".parquet", columns),
        ".arrow, batches of 1,000 rows": (".arrow", ipc),
        ".npy": (".npy", lambda file: np.save(file, P)),
    }
    print(f"{'layout':<46} {'bytes a row':>11} {'CPU us a row':>13}")
    for way, (ending, write) in ways.items():
        file = folder / f"layout{ending}"
        write(file)
        source = open_rows(file, labels)
        least = min(spent(lambda: [len(batch.rows) for batch in source.batches()])[1] for _ in range(5))  # noqa: B023
        print(f"{way:<46} {file.stat().st_size // PART:>11,} {1e6 * least / PART:>13.2f}", flush=True)
        file.unlink()


def by_dask(folder: Path, workers: int) -> float:
    """Rows a second of so many workers, which have begun already."""
    import udcp_dsl as udcp
    from udcp_dsl.cluster.dask import connected, predict_parts

    predictor = udcp.SetPredictor.load(folder / "predictor.json")
    with connected(None, workers) as client:
        for name in ("warm", "out"):
            shutil.rmtree(folder / name, ignore_errors=True)
        predict_parts(client, predictor, f"{folder}/in/part-[0-{4 * workers - 1}].parquet", folder / "warm")
        began = time.perf_counter()
        n = predict_parts(client, predictor, folder / "in", folder / "out", id_column="id").n
        return n / (time.perf_counter() - began)


def _peak() -> float:
    """MiB that this process has taken at most."""
    status = Path("/proc/self/status")
    if status.exists():  # where Linux counts; what it says of resources begins with what the parent had taken
        return int(re.search(r"VmHWM:\s+([0-9]+) kB", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--labels", type=int, default=1000)
    options.add_argument("--oracle", help="this one alone, on rows of both kinds")
    options.add_argument("--dask", action="store_true", help="two workers against one, on the largest n")
    options.add_argument("--stages", action="store_true", help="what reading, scoring, costs and writing take")
    options.add_argument("--layouts", action="store_true", help="what reading takes, by how rows lie in a file")
    options.add_argument("--measure", nargs=2, metavar=("FOLDER", "KIND"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    K = chosen.labels
    if chosen.measure:
        print(json.dumps(measured(Path(chosen.measure[0]), K, chosen.measure[1])))
        return
    cases = CASES if chosen.oracle is None else [(kind, chosen.oracle) for kind in SCALE]
    print(f"{K} labels, {os.cpu_count()} cores, parquet with a list column of float32")
    print(
        f"{'rows':>9} {'kind':>6} {'oracle':>7} {'labels':>6} {'rows/s':>8} {'in memory':>9} {'ratio':>5} "
        f"{'of CPU':>6} {'bare':>4} {'calibrate':>9} {'MiB':>4}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for n in sorted(chosen.rows):
            # What depends on the case is seen at the middle size; how it grows with n, from the first case.
            at_all = n == sorted(chosen.rows)[len(chosen.rows) // 2]
            for kind in dict.fromkeys(kind for kind, _ in (cases if at_all else cases[:1])):
                make(folder / "in", n, K, kind)
                for oracle in [oracle for of, oracle in (cases if at_all else cases[:1]) if of == kind]:
                    predictor_of(K, kind, oracle).save(folder / "predictor.json")
                    _print_case(folder, n, K, kind, oracle, chosen.stages and at_all)
        if chosen.dask:
            kind, oracle = cases[0]
            make(folder / "in", max(chosen.rows), K, kind)
            predictor_of(K, kind, oracle).save(folder / "predictor.json")
            turns = [[by_dask(folder, workers) for workers in (1, 2)] for _ in range(3)]
            rates = [max(column) for column in zip(*turns, strict=True)]
            print(f"dask: one worker {rates[0]:,.0f} rows/s, two {rates[1]:,.0f}: {rates[1] / rates[0]:.2f} times")
        if chosen.layouts:
            layouts(folder, K)


def _print_case(folder: Path, n: int, K: int, kind: str, oracle: str, with_stages: bool) -> None:
    command = [sys.executable, __file__, "--measure", str(folder), kind, "--labels", str(K)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(
        f"{n:>9,} {kind:>6} {oracle:>7} {found['size']:>6.1f} {found['streamed']:>8,.0f} {found['in_memory']:>9,.0f} "
        f"{found['ratio']:>5.2f} {found['cpu_ratio']:>6.2f} {found['bare_ratio']:>4.2f} "
        f"{found['calibrated']:>9,.0f} {found['peak']:>4,.0f}",
        flush=True,
    )
    if with_stages:
        micros_by_stage = ", ".join(f"{stage} {micros:.1f}" for stage, micros in stages(folder).items())
        print(f"{'':>9} CPU microseconds a row: {micros_by_stage}", flush=True)


if __name__ == "__main__":
    main()
