"""Files of older formats: those that 0.3 converted give their sets, those of 0.1 and 0.2 themselves say what to do.

The files in tests/corpus/saved were written by these versions, with the sets that they predicted for the rows below;
what 0.3 saved itself is held by tests/test_stored_fits.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl import SetPredictor
from udcp_dsl.predict.saved import saved_by

CORPUS = Path(__file__).parents[2] / "corpus" / "saved"
FILES = sorted(path.name for path in CORPUS.glob("format3-from[12]-*.json"))
BY_RANK = "format3-from2-difficulty.json"


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


@pytest.mark.parametrize("name", [name for name in FILES if name != BY_RANK])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_file_that_0_3_converted_gives_the_same_sets(name: str, tmp_path: Path) -> None:
    expected = json.loads((CORPUS / "format3-from-sets.json").read_text(encoding="utf-8"))[name]
    predictor = SetPredictor.load(CORPUS / name)
    assert saved_by(CORPUS / name)[1] == 3
    assert predicted(predictor) == expected
    predictor.save(tmp_path / "again.json")  # in the format of today
    assert saved_by(tmp_path / "again.json")[1] == 4
    assert predicted(SetPredictor.load(tmp_path / "again.json")) == expected


def test_every_kind_of_stage_and_promise_is_among_them() -> None:
    assert len(FILES) == 18


def test_bins_by_rank_have_to_be_calibrated_again() -> None:
    with pytest.raises(udcp.InputError, match=r"bins have fitted edges since version 0\.4: calibrate again"):
        SetPredictor.load(CORPUS / BY_RANK)


@pytest.mark.parametrize("name", ["format1-price.json", "format2-temperature.json"])
def test_a_file_of_0_1_or_0_2_names_the_version_that_converts_it(name: str) -> None:
    with pytest.raises(udcp.InputError, match=r"is of format [12], .*: load and save it with version 0\.3"):
        SetPredictor.load(CORPUS / name)
