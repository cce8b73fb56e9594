"""Mistakes with files of rows, predictors and levels: the message names the file that is at fault, and the way out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl

Udcp = Callable[..., Result]

P = np.random.default_rng(0).dirichlet(np.ones(4), 40)
ROWS = "--probs p.npy --truth y.npy -o o.json"

# What is typed, and all that is answered.
MISTAKES = [
    ("calibrate pets.loss --probs p.npy --truth short.npy -o o.json", "short.npy: true labels: 10 entries for 40 rows"),
    (
        "calibrate pets.loss --probs p.npy --truth misspelt.npy -o o.json",
        "misspelt.npy: true labels: row 7 (counted from 0) is 'dgo', which is not a label; did you mean 'dog'?",
    ),
    (
        "calibrate pets.loss --probs y.npy --truth p.npy -o o.json",
        "p.npy: true labels: the shape is (40, 4), expected one dimension; pass one column (of one-hot rows, "
        ".argmax(axis=1)); were probabilities given in its place?",
    ),
    (
        f"calibrate pets.loss {ROWS} --weights y.npy",
        "y.npy: weights: row 0 (counted from 0) is 'cat', not a number",
    ),
    (f"calibrate pets.loss {ROWS} --group short.npy", "short.npy: groups: 10 entries for 40 rows"),
    (
        f"calibrate pets.loss {ROWS} --alpha 90",
        "alpha is '90': give a number strictly between 0 and 1, such as 0.1 or 1/10; "
        "for a coverage of 90 percent give 0.1",
    ),
    (
        f"calibrate pets.loss {ROWS} --alpha 5%",
        "alpha is '5%': give a number strictly between 0 and 1, such as 0.1 or 1/10; for 5 percent give 0.05",
    ),
    (
        f"calibrate pets.loss {ROWS} --alpha 0,1",
        "alpha is '0,1': give a number strictly between 0 and 1, such as 0.1 or 1/10; write 0.1, with a point",
    ),
    (
        f"calibrate pets.loss {ROWS} --confidence 95",
        "confidence is '95': give a number strictly between 0 and 1, such as 0.1 or 1/10; for 95 percent give 0.95",
    ),
    ("predict ketp.json --probs p.npy -o s.csv", "there is no file 'ketp.json'; did you mean 'kept.json'?"),
]
NO_SPEC = ["p.npy", "kept.json", "rows.csv"]


@pytest.fixture
def rows(folder: Path) -> Path:
    y = np.array(["cat", "dog", "wolf", "lynx"] * 10)
    np.save("p.npy", P)
    np.save("y.npy", y)
    np.save("short.npy", y[:10])
    np.save("misspelt.npy", np.where(np.arange(40) == 7, "dgo", y))
    (folder / "rows.csv").write_text("cat,dog,wolf,lynx\n0.25,0.25,0.25,0.25\n")
    loss = udcp_dsl.load("pets.loss", loss="plain")
    udcp_dsl.SetPredictor(loss, "lac", alpha=0.2).calibrate(P, y).save("kept.json")
    return folder


@pytest.mark.parametrize(("typed", "answered"), MISTAKES, ids=lambda x: x[:60])
def test_the_message_names_what_is_at_fault(rows: Path, udcp: Udcp, typed: str, answered: str) -> None:
    result = udcp(*typed.split(), *(["--loss", "plain"] if typed.startswith("calibrate") else []))
    assert isinstance(result.exception, SystemExit)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"error: {answered}\n"


@pytest.mark.parametrize("name", NO_SPEC)
@pytest.mark.parametrize("verb", ["check", "format", "eval"])
def test_a_file_that_is_no_spec_is_called_so(rows: Path, udcp: Udcp, verb: str, name: str) -> None:
    result = udcp(verb, name)
    assert result.exit_code == 2
    assert re.sub(r"\s+", " ", result.stderr) == (
        f"{name}:1:1: error[E100]: {name} is data or a saved predictor, not a spec = help: give a .loss file "
    )


def test_in_a_folder_a_spec_is_named(rows: Path, udcp: Udcp) -> None:
    result = udcp("check", ".")
    assert result.exit_code == 2
    assert "give a file, such as 'pets.loss'" in result.stderr
    (rows / "empty").mkdir()
    assert "it contains no .loss file" in udcp("check", "empty").stderr
