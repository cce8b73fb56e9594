"""Sets from parquet in bounded memory: rows a second and peak memory as n grows, and two Dask workers against one.

    python benchmarks/scale.py [--rows 10000 100000 1000000] [--labels 1000] [--oracle price] [--dask] [--stages]

Rows are made on the fly, a list column of float32 in parts of 10,000 rows. Each size is predicted in a process of its
own, from files to files, against `predict_set` on rows that are in memory, in the same process and by the same kernels;
and by calibrate, whose rows stay in the files. A ratio of times is that of a machine with cores to spare, which the
ratio of CPU seconds is not; `--stages` says what reading, scoring and writing take of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PART = 10_000
HELD = 20_000  # rows in memory, for the rate of `predict_set`


def spec(K: int) -> str:
    families = ", ".join(f"f{f}: {{ {', '.join(str(y) for y in range(f, K, K // 20))} }}" for f in range(K // 20))
    return f"labels 0..{K - 1}\ncategories family {{ {families} }}\nloss l = count(family) + 0.01 * size\n"


def rows(n: int, K: int, seed: int) -> np.ndarray:
    logits = 3 * np.random.default_rng(seed).standard_normal((n, K), dtype=np.float32)
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (P / P.sum(axis=1, keepdims=True)).astype(np.float32)


def make(folder: Path, n: int, K: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, start in enumerate(range(0, n, PART)):
        P = rows(min(PART, n - start), K, number)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(P.ravel()), K)
        likely = np.random.default_rng(number).random((len(P), 1)) < np.cumsum(P, axis=1, dtype=np.float64)
        y = [str(label) for label in likely.argmax(axis=1)]
        table = pa.table({"id": [f"row{start + i}" for i in range(len(P))], "y": y, "p": lists})
        pq.write_table(table, folder / f"part-{number}.parquet", use_dictionary=["id", "y"], compression="none")


def measured(folder: Path, K: int) -> dict[str, float]:
    """In a process of its own: rates from files to files and of rows in memory, and the peak above the imports."""
    import pyarrow as pa
    import pyarrow.parquet  # an import, and not memory that rows take

    pa.array([0])  # imports pandas, where that is installed

    import udcp_dsl as udcp
    from udcp_dsl.prediction.rows.source import open_rows
    from udcp_dsl.prediction.streams.manifest import open_folder
    from udcp_dsl.prediction.streams.predicting import predict_parts

    predictor = udcp.SetPredictor.load(folder / "predictor.json")
    few = rows(512, K, 1)
    predictor.predict_set(few)  # compiled, or read from the cache
    before = _peak()
    source = open_rows(folder / "in", predictor.loss.labels, id_column="id")
    level = predictor.alphas[0]
    parts = open_folder(folder / "out", ".parquet", predictor, source, level)
    began, cpu = time.perf_counter(), time.process_time()
    n = predict_parts(predictor, source, parts, level).n
    streamed, cpu = n / (time.perf_counter() - began), (time.process_time() - cpu) / n
    again = udcp.SetPredictor(predictor.loss, predictor.oracle.name, alpha=0.1)
    began = time.perf_counter()
    again.calibrate(open_rows(folder / "in", predictor.loss.labels, truth_column="y").stored())
    calibrated = n / (time.perf_counter() - began)
    above = _peak() - before
    held = rows(min(n, HELD), K, 0)
    times, cpus = [], []
    for _ in range(3):
        began, spent = time.perf_counter(), time.process_time()
        sets = predictor.predict_set(held)
        _ = sets.costs
        times.append(time.perf_counter() - began)
        cpus.append(time.process_time() - spent)
    in_memory = len(held) / min(times)
    return {
        "streamed": streamed,
        "in_memory": in_memory,
        "ratio": streamed / in_memory,
        "cpu_ratio": min(cpus) / len(held) / cpu,
        "calibrated": calibrated,
        "peak": above,
    }


def stages(folder: Path) -> dict[str, float]:
    """CPU microseconds a row of reading and checking, of scoring, and of writing, one after the other."""
    import udcp_dsl as udcp
    from udcp_dsl.prediction.rows.source import open_rows
    from udcp_dsl.prediction.streams.answering import answers
    from udcp_dsl.prediction.writing import open_sets

    predictor = udcp.SetPredictor.load(folder / "predictor.json")
    source = open_rows(folder / "in" / "part-0.parquet", predictor.loss.labels, id_column="id")
    level, least = predictor.alphas[0], dict.fromkeys(("read", "score", "write"), math.inf)
    for _ in range(4):
        ends = [time.process_time()]
        batches = list(source.batches())
        ends.append(time.process_time())
        blocks = [answers(predictor, batch.rows, level, first=batch.at) for batch in batches]
        ends.append(time.process_time())
        with open_sets(folder / "stage.parquet") as write:
            for block in blocks:
                write(block)
        ends.append(time.process_time())
        many = sum(len(batch.rows) for batch in batches)
        for stage, spent in zip(least, np.diff(ends), strict=True):
            least[stage] = min(least[stage], 1e6 * float(spent) / many)
    return least


def by_dask(folder: Path, workers: int) -> float:
    import shutil

    import udcp_dsl as udcp
    from udcp_dsl.dask import connected, predict_parts

    predictor = udcp.SetPredictor.load(folder / "predictor.json")
    with connected(None, workers) as client:
        shutil.rmtree(folder / "warm", ignore_errors=True)
        shutil.rmtree(folder / "out", ignore_errors=True)
        predict_parts(client, predictor, f"{folder}/in/part-[0-{2 * workers - 1}].parquet", folder / "warm")
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
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--labels", type=int, default=1000)
    options.add_argument("--oracle", default="price")
    options.add_argument("--dask", action="store_true", help="two workers against one, on the largest n")
    options.add_argument("--stages", action="store_true", help="what reading, scoring and writing take")
    options.add_argument("--measure", metavar="FOLDER", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.measure:
        print(json.dumps(measured(Path(chosen.measure), chosen.labels)))
        return
    import udcp_dsl as udcp

    K = chosen.labels
    P = rows(2000, K, 10**6)
    y = [np.random.default_rng(i).choice(K, p=p / p.sum()) for i, p in enumerate(P.astype(np.float64))]
    predictor = udcp.SetPredictor(udcp.loads(spec(K)), chosen.oracle, alpha=0.1).calibrate(
        P, [str(label) for label in y]
    )
    print(f"{K} labels, {os.cpu_count()} cores, oracle {chosen.oracle}, parquet with a list column of float32")
    print(f"{'rows':>10} {'rows/s':>9} {'in memory':>10} {'ratio':>6} {'of CPU':>7} {'calibrate':>10} {'MiB':>5}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        predictor.save(folder / "predictor.json")
        for n in chosen.rows:
            for part in ("in", "out"):
                subprocess.run(["rm", "-rf", folder / part], check=True)
            (folder / "in").mkdir()
            make(folder / "in", n, K)
            command = [sys.executable, __file__, "--measure", str(folder), "--labels", str(K)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(
                f"{n:>10,} {found['streamed']:>9,.0f} {found['in_memory']:>10,.0f} {found['ratio']:>6.2f} "
                f"{found['cpu_ratio']:>7.2f} {found['calibrated']:>10,.0f} {found['peak']:>5,.0f}",
                flush=True,
            )
        if chosen.stages:
            found = stages(folder)
            print("CPU microseconds a row:", ", ".join(f"{stage} {spent:.1f}" for stage, spent in found.items()))
        if chosen.dask:
            rates = [by_dask(folder, workers) for workers in (1, 2)]
            print(f"dask: one worker {rates[0]:,.0f} rows/s, two {rates[1]:,.0f}: {rates[1] / rates[0]:.2f} times")


if __name__ == "__main__":
    main()
