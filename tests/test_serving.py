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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"probs": [[1, 0, 0]], "ids": ["\\ud800"]}', "sample ids: row 0 (counted from 0) has half a character"),
        (b'{"probs": [[1, 0, 0]], "ids": ["\xed\xa0\x80"]}', "half a character"),
        ('{"probs": [[1, 0, 0]], "ids": [1e400]}', "sample ids: row 0 (counted from 0) is inf"),
        ('{"probs": [[1, 0, 0]], "groups": ["\\ud800"]}', "groups"),
        ('{"probs": [[1, 0, 0]], "inputs": {"km": [' + "9" * 400 + "]}}", "input 'km' is too large"),
        ('{"probs": [[1, 0, 0]], "inputs": {"\\ud800": [1]}}', "no input"),
        ("[]", '{"probs": [[0.7, 0.2, 0.1]]}'),
        ("null", '{"probs": [[0.7, 0.2, 0.1]]}'),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_hostile_request_is_told_what_is_wrong(
    body: str | bytes, message: str, served: Callable[[udcp.SetPredictor], TestClient]
) -> None:
    """With status 422, also where the message quotes what cannot be written as UTF-8."""
    loss = udcp.loads("labels {cat, dog, wolf}  input km in [0, 9]  loss l = km * size")
    inputs = {"km": [1.0, 1.0, 1.0]}
    predictor = udcp.SetPredictor(loss, "lac", alpha=0.5).calibrate(np.eye(3), [0, 1, 2], inputs=inputs)
    if isinstance(body, str) and "inputs" not in body:
        body = body.replace("]]", ']], "inputs": {"km": [1]}', 1)
    with served(predictor) as client:
        answer = client.post("/sets", content=body)
        assert answer.status_code == 422
        assert message in answer.json()["error"]


def test_a_length_that_is_no_number_is_refused(served: Callable[[udcp.SetPredictor], TestClient]) -> None:
    predictor = udcp.SetPredictor(size_of("cat dog"), "lac", alpha=0.5).calibrate(np.eye(2), ["cat", "dog"])
    with served(predictor) as client:
        assert client.post("/sets", content="{}", headers={"content-length": "many"}).status_code == 413


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
