"""Values of parameters that are given from outside."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (10**400, "parameter p is too large: the largest number is about 1.8e308"),
        pytest.param(10**5000, "parameter p is too large", id="more digits than are written"),
        (-(10**400), "parameter p is too large"),
        (Fraction(10**400, 3), "parameter p is too large"),
        (np.inf, "parameter p: inf is not a finite number"),
        ("2", "parameter p: '2' is not a number"),
        (None, "parameter p: None is not a number"),
        (True, "parameter p: True is not a number"),
    ],
)
def test_parameters_that_are_no_numbers(value: Any, message: str) -> None:
    with pytest.raises(udcp.InputError, match=message):
        udcp.loads("labels { a }  param p = 1  loss l = p * size", params={"p": value})
