"""True labels, groups and sample ids from every container; every bad one has its own message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.columns import groups_of, sample_ids, truth

try:
    import torch
except ImportError:
    torch = None  # its cases are left out
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

ABC = ["a", "b", "c"]

COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": iter,
    "numpy": np.array,
    "numpy objects": lambda y: np.array(y, dtype=object),
    "numpy scalars": lambda y: list(np.array(y)),
    "pandas": pd.Series,
    "pandas categorical": lambda y: pd.Series(pd.Categorical(y)),
    "pandas index": pd.Index,
    "pandas nullable": lambda y: pd.Series(y).convert_dtypes(),
    "polars": pl.Series,
    "arrow": pa.array,
}


@pytest.mark.parametrize("container", COLUMNS)
@given(y=st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_truth_comes_through_every_container(container: str, y: list[int]) -> None:
    labels = ["north", "south", "east", "west", "x y"]
    numbers = ["40", "-3", "0", "7", "1"]
    for given_y, names in ((y, labels), ([labels[i] for i in y], labels), ([int(numbers[i]) for i in y], numbers)):
        out = truth(COLUMNS[container](given_y), names, len(y))
        assert out.dtype == np.int64
        assert out.tolist() == y
    assert truth([numbers[i] for i in y], numbers).tolist() == y


@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_truth_from_torch(dtype: str) -> None:
    tensor = torch.tensor([2, 0, 1], dtype=getattr(torch, dtype))
    assert truth(tensor, ABC, 3).tolist() == [2, 0, 1]
    assert truth(list(tensor), ABC, 3).tolist() == [2, 0, 1]


NUMBERS = ["1", "2", "3"]
BAD_TRUTH: dict[str, tuple[Any, list[str], str]] = {
    "too large": ([0, 3], ABC, r"row 1 \(counted from 0\) is 3, which is out of range; positions run from 0 to 2"),
    "negative": (np.array([0, 1, -1]), ABC, r"row 2 .* is -1, which is negative; positions run from 0 to 2"),
    "unknown": (["a", "B1"], ["a", "b1"], r"row 1 .* is 'B1', which is not a label; did you mean 'b1'\?"),
    "unknown number": (
        [1, 0],
        NUMBERS,
        r"row 1 .* is 0, which is not a label; known: 1, 2, 3; the labels are numbers, so integers are names",
    ),
    "position as text": (
        ["0", "1"],
        ABC,
        r"row 0 .* is the string '0', which is not a label; positions must be integers",
    ),
    "ambiguous": (
        [1],
        ["1", "b"],
        r"row 0 .* is the integer 1; some labels are numbers and some are not, .* as strings",
    ),
    "floats": (np.array([0.0, 1.0]), ABC, r"row 0 .* is 0\.0, a float; pass names, or positions as .*y.astype\(int\)"),
    "floats for numbers": ([2.0], NUMBERS, r"row 0 .* is 2\.0, a float; pass integers: y.astype\(int\)$"),
    "fractions": ([0.5], ABC, r"row 0 .* is 0\.5, a float"),
    "booleans": (
        np.array([True, False]),
        ABC,
        r"row 0 .* is True, a truth value; pass names, or positions as integers",
    ),
    "booleans for numbers": ([True], NUMBERS, r"row 0 .* is True, a truth value"),
    "bytes": ([b"a"], ABC, r"row 0 .* is a bytes; pass names or positions"),
    "one-hot": (np.eye(3, dtype=int), ABC, r"the shape is \(3, 3\), expected one dimension; .*\.argmax\(axis=1\)"),
    "one-hot lists": (
        [[0, 1, 0]],
        ABC,
        r"row 0 .* is a sequence; of one-hot rows or scores pass np\.argmax\(y, axis=1\)",
    ),
    "column": (np.zeros((4, 1), int), ABC, r"the shape is \(4, 1\), expected one dimension; pass \.ravel\(\)"),
    "scalar": (np.array(1), ABC, r"the shape is \(\), expected one dimension"),
    "frame": (pd.DataFrame({"y": [1]}), ABC, r"true labels: a frame; pass one of its columns"),
    "polars frame": (pl.DataFrame({"y": [1]}), ABC, r"true labels: a frame; pass one of its columns"),
    "masked": (np.ma.masked_equal([0, 1], 1), ABC, r"true labels: a masked array"),
    "None": (["a", None], ABC, r"true labels: row 1 \(counted from 0\) is missing"),
    "NaN": (np.array([0, np.nan]), ABC, r"true labels: row 1 \(counted from 0\) is missing"),
    "pandas NA": (pd.Series([0, None], dtype="Int64"), ABC, r"true labels: row 1 \(counted from 0\) is missing"),
    "polars null": (pl.Series([0, None]), ABC, r"true labels: row 1 \(counted from 0\) is missing"),
    "NaT": (pd.Series(["a", pd.NaT], dtype=object), ABC, r"true labels: row 1 \(counted from 0\) is missing"),
    "empty": ([], ABC, r"true labels: empty"),
}
if torch is not None:
    BAD_TRUTH |= {
        "meta tensor": (
            torch.zeros(2, dtype=torch.int64, device="meta"),
            ABC,
            r"the tensor \(device meta, .* no values",
        ),
        "float tensor": (torch.tensor([1.0]), ABC, r"row 0 .* is 1\.0, a float"),
        "bfloat16 tensor": (torch.tensor([1.0]).bfloat16(), ABC, r"row 0 .* is 1\.0, a float"),
    }


@pytest.mark.parametrize(("y", "labels", "message"), BAD_TRUTH.values(), ids=BAD_TRUTH)
def test_bad_truth(y: Any, labels: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        truth(y, labels)


def test_truth_of_another_length() -> None:
    with pytest.raises(InputError, match="true labels: 2 entries for 3 rows"):
        truth([0, 1], ABC, 3)


@pytest.mark.parametrize("y", ["abc", b"abc", {"a": 1}, {"a"}, 3, None])
def test_truth_that_is_no_sequence_is_a_type_error(y: Any) -> None:
    with pytest.raises(TypeError, match=f"true labels: expected a sequence, not {type(y).__name__}"):
        truth(y, ABC)


# --- groups and ids ---


@pytest.mark.parametrize("container", COLUMNS)
@pytest.mark.parametrize("read", [groups_of, sample_ids])
def test_groups_and_ids_come_through_every_container(container: str, read: Any) -> None:
    for values in (["x", "yy", "x"], [3, 1, 3]):
        out = read(COLUMNS[container](values), 3)
        assert out.dtype.kind == "U"
        assert out.tolist() == [str(value) for value in values]


def test_equal_numbers_are_one_group() -> None:
    assert groups_of([1, 1.0, "1", np.float32(1), 1.5], 5).tolist() == ["1", "1", "1", "1", "1.5"]
    assert groups_of([("x", 1), True], 2).tolist() == ["('x', 1)", "True"]


BAD_GROUPS: dict[str, tuple[Any, str]] = {
    "missing": (["x", None, "y"], r"groups: row 1 \(counted from 0\) is missing"),
    "NaN": ([1.0, 2.0, float("nan")], r"groups: row 2 \(counted from 0\) is missing"),
    "too few": (["x", "y"], r"groups: 2 entries for 3 rows"),
    "unhashable": (["x", ["y"], "z"], r"groups: row 1 \(counted from 0\) is a list, not a single value"),
    "NUL at the end": (["a", "a\0", "b"], r"groups: row 1 \(counted from 0\) ends in the character NUL: strip it"),
    "NUL alone": (["a", "b", "\0"], r"groups: row 2 \(counted from 0\) ends in the character NUL"),
    "infinite": (["a", "b", float("inf")], r"groups: row 2 \(counted from 0\) is inf, not a finite number: pass texts"),
    "half a character": (
        ["a", "x\ud800", "b"],
        r"groups: row 1 \(counted from 0\) has half a character, .*: 'x\\ud800'",
    ),
    "two dimensions": (np.zeros((3, 2)), r"groups: the shape is \(3, 2\), expected one dimension; pass one column"),
}


@pytest.mark.parametrize(("values", "message"), BAD_GROUPS.values(), ids=BAD_GROUPS)
def test_bad_groups_and_ids(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        groups_of(values, 3)
    with pytest.raises(InputError, match=message.replace("groups", "sample ids")):
        sample_ids(values, 3)
