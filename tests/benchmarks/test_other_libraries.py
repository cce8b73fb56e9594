"""Pages that show other libraries: the code side by side with MAPIE gives equal sets, the MLflow script runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import udcp_dsl as udcp
from tests.specs import size_of

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_the_two_blocks_of_the_page_on_mapie_give_equal_sets() -> None:
    pytest.importorskip("mapie")
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.linear_model import LogisticRegression

    X, y = datasets.load_digits(return_X_y=True)
    given = {
        "model": LogisticRegression(max_iter=200).fit(X[:600], y[:600]),
        "loss": size_of("0..9"),
        "X_cal": X[600:1200],
        "y_cal": y[600:1200],
        "X_new": X[1200:],
    }
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "how-to/mapie.md").read_text(encoding="utf-8"), re.S | re.M)
    found = []
    for code in blocks:
        names = dict(given)
        exec(compile(code, "mapie.md", "exec"), names)
        found.append(names["inside"])
    assert len(found) == 2
    assert np.array_equal(*found)


@pytest.mark.slow
def test_a_predictor_is_logged_and_loaded_by_mlflow(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    loss = size_of("cat dog wolf")
    rows = np.tile(np.eye(3) * 0.7 + 0.1, (20, 1))
    udcp.SetPredictor(loss, "lac", alpha=0.1).calibrate(rows, np.arange(60) % 3).save(tmp_path / "pets.json")
    np.save(tmp_path / "probs.npy", rows[:3])
    command = [sys.executable, str(DOCS / "mlflow_model.py"), str(tmp_path / "pets.json"), str(tmp_path / "probs.npy")]
    environment = {**os.environ, "MLFLOW_TRACKING_URI": f"file://{tmp_path}/runs"} | {
        "MLFLOW_ALLOW_FILE_STORE": "true"  # without a database, which the smaller package lacks
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "[wolf]" in done.stdout
