"""Mistakes of types at the prompt, which would end in an error of Python's own or of numpy's."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from tests.specs import size_of

LOSS = size_of("cat dog wolf")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (1, r"not a int: write \{1\}"),
        (2.5, r"not a float: write \{2.5\}"),
        (None, r"not a NoneType: for the empty set pass set\(\)"),
    ],
)
def test_what_is_no_set(given: Any, message: str) -> None:
    with pytest.raises(udcp.InputError, match=f"a set of labels is expected, {message}"):
        LOSS(given)


def test_a_path_is_no_text() -> None:
    with pytest.raises(udcp.InputError, match=r"'specs/pets.loss' is a path, .* udcp.load"):
        udcp.loads("specs/pets.loss")
    assert udcp.loads('labels {a, "pets.loss"}  loss l = size').K == 2


def test_bytes_are_no_text() -> None:
    with pytest.raises(TypeError, match="text is a bytes, not a str: decode bytes"):
        udcp.loads(b"labels {a}  loss l = size")  # type: ignore[arg-type]


def test_levels_in_an_array_are_levels() -> None:
    predictor = udcp.SetPredictor(LOSS, "lac", alpha=np.array([0.1, 0.2]))
    assert predictor.alphas == (Fraction(1, 10), Fraction(1, 5))


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (90, "for a coverage of 90 percent give 0.1"),
        (5.0, "for 5 percent give 0.05"),
        ("99.5%", "for a coverage of 99.5 percent give 0.005"),
        (1, "such as 0.1 or 1/10"),
        (-5, "such as 0.1 or 1/10"),
        ("1e400", "such as 0.1 or 1/10"),
    ],
)
def test_percent_are_no_level(alpha: Any, message: str) -> None:
    with pytest.raises(udcp.InputError, match=f"strictly between 0 and 1.*{message}"):
        udcp.SetPredictor(LOSS, "lac", alpha=alpha)
