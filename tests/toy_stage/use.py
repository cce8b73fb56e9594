"""What a stage and an option that were just added can do: prints a line for each use."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.cli import main
from udcp_dsl.predict.promise import OPTIONS, reference_table

rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), 200)
Y = [int(rng.choice(3, p=p)) for p in P]
TEXT = "labels {cat, dog, wolf}\nloss l = size\n"

predictor = udcp.SetPredictor(udcp.loads(TEXT), "lac", sharpen=3.0).calibrate(P, Y)  # type: ignore[call-arg]
stage, *others = predictor.fitted.stages
assert (stage.name, stage.rows_used, predictor.calibrated.n, others) == ("sharpening", 20, 180, [])
assert 2 < stage.power < 3  # type: ignore[attr-defined]
plain = udcp.SetPredictor(udcp.loads(TEXT), "lac").calibrate(P, Y)
assert (predictor.predict_set(P).mask != plain.predict_set(P).mask).any()
print("fitted")

predictor.save("toy.json")
loaded = udcp.SetPredictor.load("toy.json")
assert (loaded.predict_set(P).mask == predictor.predict_set(P).mask).all()
assert (loaded.promise, loaded.fitted.stages) == (predictor.promise, predictor.fitted.stages)
print("saved and loaded")

import pyarrow as pa  # noqa: E402
from pyarrow import parquet  # noqa: E402

SETS = predictor.predict_set(P).to_lists()
table = pa.table({name: P[:, i] for i, name in enumerate(("cat", "dog", "wolf"))})
answers = predictor.predict_batches(table.to_batches(max_chunksize=30))
assert [found for answer in answers for found in answer.to_pydict()["labels"]] == SETS
print("in a stream")

from distributed import Client  # noqa: E402

from udcp_dsl.cluster.dask import predict_parts  # noqa: E402

parquet.write_table(table, "p.parquet")
with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
    assert predict_parts(client, predictor, "p.parquet", "parts").n == len(P)
(part,) = Path("parts").glob("*.parquet")
assert parquet.read_table(part)["labels"].to_pylist() == SETS
print("on a cluster")

Path("pets.loss").write_text(TEXT)
np.save("p.npy", P)
np.save("y.npy", Y)
arguments = ["calibrate", "pets.loss", "--probs", "p.npy", "--truth", "y.npy", "--oracle", "lac", "--sharpen", "3"]
done = CliRunner().invoke(main, [*arguments, "-o", "cli.json"])
assert done.exit_code == 0, done.output
assert (udcp.SetPredictor.load("cli.json").predict_set(P).mask == predictor.predict_set(P).mask).all()
assert "Power that p is raised to." in CliRunner().invoke(main, ["calibrate", "--help"]).output
refused = CliRunner().invoke(main, [*arguments, "--randomize", "-o", "no.json"])
assert refused.exit_code == 2
assert "sharpen and randomize" in refused.output
print("on the command line")

from sklearn.datasets import load_iris  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

X, y = load_iris(return_X_y=True)
model = udcp.sklearn.UtilitySetClassifier(LogisticRegression(max_iter=500), oracle="lac", sharpen=2.0).fit(X, y)
assert model.get_params()["sharpen"] == 2.0
assert [stage.name for stage in model.predictor_.fitted.stages] == ["sharpening"]
print("in the scikit-learn class")

found = udcp.compare(udcp.loads(TEXT), P, Y, promise=udcp.Promise(sharpen=3.0), oracles=["lac"], splits=2)  # type: ignore[call-arg]
assert [stage.name for stage in found.repairs] == ["sharpening"]
print("in a comparison")

assert "| `sharpen` |" in reference_table(OPTIONS)
assert json.loads(Path("toy.json").read_text())["promise"]["sharpen"] == 3.0
print("in the reference table")
