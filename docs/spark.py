"""Prediction sets on Spark: `predict_batches` is the shape of `mapInArrow`, so that no wrapper is needed.

    spark-submit docs/spark.py triage.json 'day/*.parquet' sets/ --id photo --column p

The predictor travels by pickle, once with the function; executors need udcp_dsl installed. Rows without ids would be
numbered within each partition: give --id. Needs pyspark and Java.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import udcp_dsl as udcp

SETS = "id string, labels array<string>, size bigint, cost double"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("predictor")
    options.add_argument("probs", help="parquet, with the probabilities in a column of lists")
    options.add_argument("sets", help="a folder that is not there yet")
    options.add_argument("--id", required=True, metavar="COLUMN")
    options.add_argument("--column", required=True, metavar="COLUMN", help="of the probabilities")
    chosen = options.parse_args()
    predictor = udcp.SetPredictor.load(chosen.predictor)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    def sets(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        # Each task has a core of its own, and kernels would take all of them.
        os.environ["NUMBA_NUM_THREADS"] = "1"
        return predictor.predict_batches(batches, id_column=chosen.id, column=chosen.column)

    # In a batch as many rows as have 4 million probabilities: memory depends on neither rows nor labels.
    rows = max(1, (1 << 22) // predictor.loss.K)
    spark = (
        SparkSession.builder.appName("udcp_dsl")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", rows)
        .config("spark.executorEnv.NUMBA_NUM_THREADS", "1")
        .getOrCreate()
    )
    spark.read.parquet(chosen.probs).select(chosen.id, chosen.column).mapInArrow(sets, SETS).write.parquet(chosen.sets)
    spark.stop()


if __name__ == "__main__":
    main()
