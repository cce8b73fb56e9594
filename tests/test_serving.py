"""docs/serving.py: the sets of `predict_set` over HTTP, and a mistake is an answer, not a failure."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

import udcp_dsl as udcp
from tests.specs import size_of

FILE = Path(__file__).parents[1] / "docs" / "serving.py"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[udcp.SetPredictor], TestClient]:
    """A client of the endpoint, for a predictor."""

    def serve(predictor: udcp.SetPredictor) -> TestClient:
        predictor.save(tmp_path / "pets.json")
        monkeypatch.setenv("PREDICTOR", str(tmp_path / "pets.json"))
        spec = importlib.util.spec_from_file_location("serving", FILE)
        assert spec is not None
        assert spec.loader is not None
        serving = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(serving)
        return TestClient(serving.app)

    return serve


def test_inputs_are_part_of_a_request(served: Callable[[udcp.SetPredictor], TestClient]) -> None:
    loss = udcp.loads(
        "labels {cat, dog}  input km in [2, 9]  costs fee per row in [0, 5]  loss l = km * size + sum(fee)"
    )
    inputs = {"km": [3.0, 4.0, 5.0], "fee": [[1.0, 2.0]] * 3}
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.5).calibrate(np.eye(2)[[0, 1, 0]], [0, 1, 0], inputs=inputs)
    row = {"probs": [[1.0, 0.0]], "inputs": {"km": [6.0], "fee": [[1.0, 2.0]]}}
    with served(predictor) as client:
        assert client.post("/sets", json=row).json() == [{"id": 0, "labels": ["cat"], "size": 1, "cost": 7.0}]
        answer = client.post("/sets", json={"probs": row["probs"]})
        assert answer.status_code == 422
        assert "km" in answer.json()["error"]


def test_a_saved_predictor_is_served(served: Callable[[udcp.SetPredictor], TestClient]) -> None:
    predictor = udcp.SetPredictor(size_of("cat dog wolf"), "lac", alpha=0.5).calibrate(
        np.eye(3), ["cat", "dog", "wolf"]
    )
    with served(predictor) as client:
        answer = client.post("/sets", json={"probs": [[1.0, 0.0, 0.0]], "ids": ["a"]})
        assert answer.json() == [{"id": "a", "labels": ["cat"], "size": 1, "cost": 1.0}]
        for wrong, message in {
            '{"probs": [[2, 0, 0]]}': "row 0, label 'cat'",
            "{}": "there is no 'probs'",
            "[": "Expect",
        }.items():
            answer = client.post("/sets", content=wrong)
            assert answer.status_code == 422
            assert message in answer.json()["error"]


def test_columns_need_names_if_calibration_matched_them_by_name(
    served: Callable[[udcp.SetPredictor], TestClient],
) -> None:
    frame = pd.DataFrame(np.eye(3), columns=["wolf", "cat", "dog"])
    predictor = udcp.SetPredictor(size_of("cat dog wolf"), "lac", alpha=0.5).calibrate(frame, list(frame.columns))
    rows = {"probs": [[1.0, 0.0, 0.0]], "class_names": ["wolf", "cat", "dog"]}
    with served(predictor) as client:
        assert client.post("/sets", json=rows).json()[0]["labels"] == ["wolf"]
        answer = client.post("/sets", json={"probs": rows["probs"]})
        assert answer.status_code == 422
        assert "class_names=" in answer.json()["error"]
        wrong = client.post("/sets", json={**rows, "class_names": ["wolf", "cat"]})
        assert wrong.status_code == 422
        assert "class_names has 2 names" in wrong.json()["error"]


@pytest.mark.slow
def test_the_load_test_ends_and_tells_latencies() -> None:
    pytest.importorskip("uvicorn")
    root = FILE.parents[1]
    path = os.pathsep.join([str(root), str(root / "solvers"), str(root / "grammars")])
    command = [sys.executable, str(root / "benchmarks" / "serving.py"), "--labels", "40", "--requests", "40"]
    done = subprocess.run(
        [*command, "--seconds", "5"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == ["in process", "over HTTP, 1 client", "over HTTP, 4 clients"]
