"""Labels that are given from outside: lists of names, and what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("abc", "labels is one string, 'abc': give a list"),
        ({"a", "b"}, "labels is of type set: give a list of labels in the order of the columns"),
        (frozenset({"a"}), "labels is of type frozenset: give a list"),
        ({"a": 1, "b": 2}, "labels is of type dict: give a list"),
        (b"ab", "labels is of type bytes: give a list"),
        (3, "labels is of type int: give a list"),
        ([None], "label number 1 is None: labels are strings or whole numbers"),
        (["a", 1.5], "label number 2 is 1.5: labels are strings or whole numbers"),
        (["a", True], "label number 2 is True: labels are strings or whole numbers"),
        ([["a"]], r"label number 1 is \['a'\]: labels are strings or whole numbers"),
    ],
)
@pytest.mark.parametrize("text", ["loss l = size", "labels { a, b }  loss l = size"])
def test_labels_that_are_no_list_of_names(text: str, labels: Any, message: str) -> None:
    with pytest.raises(udcp.InputError, match=message):
        udcp.loads(text, labels=labels)


@pytest.mark.parametrize("labels", [("7", "8"), [7, 8], np.array([7, 8]), np.array(["7", "8"]), range(7, 9)])
def test_lists_of_names_in_any_clothes(labels: Any) -> None:
    assert udcp.loads("loss l = size", labels=labels).labels == ("7", "8")
