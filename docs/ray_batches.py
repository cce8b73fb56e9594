"""Prediction sets on Ray Data: a predictor in each actor, and batches of Arrow in and out.

    python docs/ray_batches.py triage.json 'day/*.parquet' sets/ --id photo --column p --actors 8

The file is not called ray.py, which would hide the package. Ray wants aiohttp. Needs `ray[data]`.
"""

from __future__ import annotations

import argparse
import glob
import os
from pathlib import Path

import pyarrow as pa
import ray

import udcp_dsl as udcp


class Sets:
    """An actor: it loads the predictor once."""

    def __init__(self, predictor: str, id_column: str, column: str) -> None:
        os.environ["NUMBA_NUM_THREADS"] = "1"  # an actor has a core, and kernels would take all of them
        self._predictor = udcp.SetPredictor.load(predictor)
        self._columns = {"id_column": id_column, "column": column}

    def __call__(self, table: pa.Table) -> pa.Table:
        return pa.Table.from_batches(self._predictor.predict_batches(table.to_batches(), **self._columns))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("predictor")
    options.add_argument("probs", help="parquet, with the probabilities in a column of lists; a pattern")
    options.add_argument("sets", help="a folder")
    options.add_argument("--id", required=True, metavar="COLUMN")
    options.add_argument("--column", required=True, metavar="COLUMN", help="of the probabilities")
    options.add_argument("--actors", type=int, default=1, help="half a CPU each, so that readers have the rest")
    chosen = options.parse_args()
    predictor = str(Path(chosen.predictor).absolute())
    rows = max(1, (1 << 22) // udcp.SetPredictor.load(predictor).loss.K)
    files = [str(Path(name).absolute()) for name in sorted(glob.glob(chosen.probs))]
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    (
        ray.data.read_parquet(files, columns=[chosen.id, chosen.column])
        .map_batches(
            Sets,
            fn_constructor_args=(predictor, chosen.id, chosen.column),
            batch_format="pyarrow",
            batch_size=rows,
            concurrency=chosen.actors,
            num_cpus=0.5,
        )
        .write_parquet(str(Path(chosen.sets).absolute()))
    )


if __name__ == "__main__":
    main()
