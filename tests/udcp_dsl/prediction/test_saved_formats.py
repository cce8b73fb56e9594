"""Predictors saved by 0.1.0 (format 1) and 0.2.0 (format 2): each gives the sets that it gave there.

The files in tests/corpus/saved were written by these versions, with the sets that they predicted for the rows below.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from udcp_dsl import SetPredictor
from udcp_dsl.prediction.saved import saved_by

CORPUS = Path(__file__).parents[2] / "corpus" / "saved"
FILES = sorted(path.name for path in CORPUS.glob("format*.json") if not path.name.endswith("-sets.json"))


def new_rows() -> np.ndarray:
    rng = np.random.default_rng(7)
    P = rng.dirichlet(np.full(6, 0.5), 400)
    for p in P:
        rng.choice(6, p=p)  # the true labels
    return rng.dirichlet(np.full(6, 0.5), 40)


NEW = new_rows()


def predicted(predictor: SetPredictor) -> dict[str, list[list[str]]]:
    beside = {}
    if predictor.conditional == "group":
        beside = {"groups": np.arange(40) % 2}
    elif predictor.calibrated.weighted:
        beside = {"weights": 1 + NEW[:, 0]}
    return {
        str(alpha): [list(labels) for labels in predictor.predict_set(NEW, alpha=alpha, **beside).labels]
        for alpha in predictor.alphas
    }


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_file_of_an_older_format_gives_the_same_sets(name: str, tmp_path: Path) -> None:
    made_by = name.partition("-")[0]
    expected = json.loads((CORPUS / f"{made_by}-sets.json").read_text(encoding="utf-8"))[name]
    predictor = SetPredictor.load(CORPUS / name)
    assert saved_by(CORPUS / name)[1] == int(made_by.removeprefix("format"))
    assert predicted(predictor) == expected
    predictor.save(tmp_path / "again.json")  # in the format of today
    assert saved_by(tmp_path / "again.json")[1] == 3
    assert predicted(SetPredictor.load(tmp_path / "again.json")) == expected


def test_every_kind_of_stage_and_promise_is_among_them() -> None:
    assert len(FILES) == 18
