"""docs/spark.py and docs/ray_batches.py: the sets of one process, by engines that are not among our dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

import udcp_dsl as udcp

ROOT = Path(__file__).parents[1]
SPARK = pytest.mark.skipif(not (find_spec("pyspark") and shutil.which("java")), reason="no pyspark, or no Java")
RAY = pytest.mark.skipif(find_spec("ray") is None, reason="no ray")


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [pytest.param("spark.py", marks=SPARK), pytest.param("ray_batches.py", marks=RAY)],
)
def test_an_engine_gives_the_sets_of_one_process(tmp_path: Path, script: str) -> None:
    rng = np.random.default_rng(0)
    labels = ["cat", "dog", "wolf"]
    P = rng.dirichlet(np.ones(3), 90).astype(np.float32)
    y = [labels[rng.choice(3, p=p / p.sum())] for p in P.astype(float)]
    ids = [f"photo{i:02}" for i in range(90)]
    loss = udcp.loads("labels {cat, dog, wolf}  category wild {wolf}  loss l = size + any(wild)")
    predictor = udcp.SetPredictor(loss, "price", alpha=0.3).calibrate(P, y)
    predictor.save(tmp_path / "pets.json")
    (tmp_path / "in").mkdir()
    for part in range(3):
        rows = slice(30 * part, 30 * part + 30)
        table = pa.table({"photo": ids[rows], "p": pa.array(P[rows].tolist(), pa.list_(pa.float32()))})
        pq.write_table(table, tmp_path / "in" / f"part-{part}.parquet")
    path = os.pathsep.join([str(ROOT), str(ROOT / "solvers"), str(ROOT / "grammars")])
    command = [sys.executable, str(ROOT / "docs" / script), "pets.json", "in/*.parquet", "sets"]
    done = subprocess.run(
        [*command, "--id", "photo", "--column", "p"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = pa.concat_tables([pq.read_table(file) for file in sorted((tmp_path / "sets").glob("*.parquet"))])
    found = found.sort_by("id")
    sets = predictor.predict_set(P, ids=ids)
    assert found["id"].to_pylist() == ids
    assert [tuple(names) for names in found["labels"].to_pylist()] == sets.labels
    assert found["size"].to_pylist() == sets.sizes.tolist()
    assert found["cost"].to_pylist() == sets.costs.tolist()
