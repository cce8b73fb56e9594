"""Good input comes through unchanged from every container; every bad input has its own message."""

from __future__ import annotations

import doctest
import math
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from udcp_dsl.diagnostics import InputError
from udcp_dsl.rows.matrix import probabilities, sum_tolerance
from udcp_dsl.rows.rows import rows_of

try:
    import torch
except ImportError:
    torch = None  # its cases are left out
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

ABC = ["a", "b", "c"]
GOOD = np.array([[0.5, 0.25, 0.25], [0.125, 0.375, 0.5], [0.0, 1.0, 0.0]])


def changed(row: int, column: int, value: float) -> np.ndarray:
    P = GOOD.copy()
    P[row, column] = value
    return P


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# --- good probabilities ---


@st.composite
def matrices(draw: st.DrawFn) -> tuple[np.ndarray, list[str]]:
    n, K = draw(st.integers(1, 6)), draw(st.integers(2, 7))
    weights = np.array(draw(st.lists(st.lists(st.integers(0, 50), min_size=K, max_size=K), min_size=n, max_size=n)))
    weights[:, draw(st.integers(0, K - 1))] += 1
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    P = (weights / weights.sum(axis=1, keepdims=True)).astype(dtype)
    text = st.text("abcxyz 0|ü", min_size=1, max_size=4)
    names = st.one_of(st.lists(text, min_size=K, max_size=K, unique=True), st.just([str(i) for i in range(K)]))
    return P, draw(names)


ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda P: P,
    "fortran": np.asfortranarray,
    "strided": lambda P: np.repeat(P, 2, axis=0)[::2],
    "read-only": lambda P: np.frombuffer(P.tobytes(), P.dtype).reshape(P.shape),
    "big-endian": lambda P: P.astype(P.dtype.newbyteorder(">")),
    "longdouble": lambda P: P.astype(np.longdouble),
    "lists": lambda P: P.tolist(),
    "tuples of arrays": tuple,
}
if torch is not None:
    ARRAYS |= {
        "torch": torch.tensor,
        "torch with gradient": lambda P: torch.tensor(P, requires_grad=True),
        "torch parameter": lambda P: torch.nn.Parameter(torch.tensor(P)),
        "list of tensors": lambda P: [torch.tensor(row) for row in P],
    }

FRAMES: dict[str, Callable[[np.ndarray, list[Any]], Any]] = {
    "pandas": lambda P, names: pd.DataFrame(P, columns=names),
    "pandas nullable": lambda P, names: pd.DataFrame(P, columns=names).astype("Float64"),
    "pandas mixed": lambda P, names: pd.DataFrame(P, columns=names).astype({names[0]: np.float64}),
    "pandas with an index": lambda P, names: pd.DataFrame(P, columns=names, index=np.arange(len(P))[::-1]),
    "polars": lambda P, names: pl.DataFrame(P, schema=[str(name) for name in names], orient="row"),
}


@pytest.mark.parametrize("container", ARRAYS)
@given(case=matrices(), seed=st.integers(0, 2**32 - 1))
def test_arrays_come_through_unchanged_and_in_label_order(
    container: str, case: tuple[np.ndarray, list[str]], seed: int
) -> None:
    P, labels = case
    out = probabilities(ARRAYS[container](P), labels)
    assert out.flags.c_contiguous
    assert out.flags.aligned
    assert out.dtype in (np.float32, np.float64)
    np.testing.assert_array_equal(out, P)
    order = np.random.default_rng(seed).permutation(len(labels))
    shuffled = ARRAYS[container](np.ascontiguousarray(P[:, order]))
    np.testing.assert_array_equal(probabilities(shuffled, labels, class_names=[labels[i] for i in order]), P)


@pytest.mark.parametrize("container", FRAMES)
@given(case=matrices(), seed=st.integers(0, 2**32 - 1))
def test_frames_are_matched_by_name(container: str, case: tuple[np.ndarray, list[str]], seed: int) -> None:
    P, labels = case
    order = np.random.default_rng(seed).permutation(len(labels))
    frame = FRAMES[container](P[:, order], [labels[i] for i in order])
    out = probabilities(frame, labels)
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, P)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_good_array_is_not_copied(dtype: type) -> None:
    P = GOOD.astype(dtype)
    assert np.shares_memory(probabilities(P, ABC), P)
    assert np.shares_memory(probabilities(P, ABC, class_names=ABC), P)
    if torch is not None:
        assert np.shares_memory(probabilities(torch.from_numpy(P), ABC), P)
    half_cast_up = softmax(np.random.default_rng(0).standard_normal((50, 3))).astype(np.float16).astype(dtype)
    assert np.shares_memory(probabilities(half_cast_up, ABC), half_cast_up)


def test_dtypes() -> None:
    assert probabilities(GOOD.astype(np.float16), ABC).dtype == np.float32
    if torch is not None:
        assert probabilities(torch.tensor(GOOD, dtype=torch.bfloat16), ABC).dtype == np.float32
    whole = probabilities([[0, 1, 0], [1, 0, 0]], ABC)
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(whole, [[0, 1, 0], [1, 0, 0]])


def test_numbers_name_columns_as_their_text_does() -> None:
    labels = ["10", "7", "3"]
    tensors = [] if torch is None else [torch.tensor([3, 7, 10])]
    for names in ([3, 7, 10], np.array([3, 7, 10]), ["3", "7", "10"], pd.Index([3, 7, 10]), *tensors):
        np.testing.assert_array_equal(probabilities(GOOD, labels, class_names=names), GOOD[:, ::-1])
    np.testing.assert_array_equal(probabilities(pd.DataFrame(GOOD, columns=[3, 7, 10]), labels), GOOD[:, ::-1])


def test_a_frame_without_names_is_an_array_where_class_names_are_given() -> None:
    frame = pd.DataFrame(GOOD)
    np.testing.assert_array_equal(probabilities(frame, ABC, class_names=["c", "b", "a"]), GOOD[:, ::-1])
    np.testing.assert_array_equal(probabilities(frame, ["2", "1", "0"], class_names=[0, 1, 2]), GOOD[:, ::-1])
    with pytest.raises(InputError, match=r"class_names and the names of the frame's columns disagree"):
        probabilities(frame, ["0", "1", "2"], class_names=[2, 1, 0])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_other_columns_and_ids(make: Any) -> None:
    frame = make({"site": ["x", "y", "z"], "c": GOOD[:, 2], "id": [7, 8, 9], "a": GOOD[:, 0], "b": GOOD[:, 1]})
    rows = rows_of(frame, ABC, ignore=["site", "id"], ids=frame["id"])
    np.testing.assert_array_equal(rows.P, GOOD)
    assert rows.ids is not None
    assert rows.ids.tolist() == ["7", "8", "9"]
    assert rows_of(frame, ABC, ignore=["site", "id"]).ids is None


def test_minus_zero_becomes_zero() -> None:
    P = changed(2, 0, -0.0)
    out = probabilities(P, ABC)
    assert not np.signbit(out).any()
    assert np.signbit(P[2, 0])
    assert not np.signbit(probabilities(P, ABC, normalize=True)).any()


@given(st.integers(1, 4), st.integers(2, 6), st.sampled_from([np.float16, np.float32, np.float64]), st.data())
@pytest.mark.filterwarnings("ignore:logits=True, but every row is a distribution")
def test_logits_are_made_into_probabilities_in_float64(n: int, K: int, dtype: type, data: st.DataObject) -> None:
    x = np.array(
        data.draw(st.lists(st.lists(st.integers(-60, 60), min_size=K, max_size=K), min_size=n, max_size=n))
    ).astype(dtype)
    x /= 2
    if data.draw(st.booleans()):
        x[0, 0] = -np.inf
    out = probabilities(x, [f"l{i}" for i in range(K)], logits=True)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, softmax(x.astype(np.longdouble)).astype(np.float64), rtol=1e-14, atol=0)


@given(st.integers(1, 4), st.integers(2, 6), st.sampled_from([np.float32, np.float64]), st.data())
def test_scores_are_normalized_in_float64(n: int, K: int, dtype: type, data: st.DataObject) -> None:
    scores = np.array(
        data.draw(st.lists(st.lists(st.floats(0, 1e6, width=32), min_size=K, max_size=K), min_size=n, max_size=n))
    ).astype(dtype)
    scores[:, 0] += 1
    out = probabilities(scores, [f"l{i}" for i in range(K)], normalize=True)
    assert out.dtype == np.float64
    exact = scores.astype(np.longdouble)
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(out, exact.astype(np.float64), rtol=1e-15, atol=0)


def test_large_logits_do_not_overflow() -> None:
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(probabilities([[1e308, 1e308, -1e308]], ABC, logits=True), [[0.5, 0.5, 0.0]])
    out = probabilities([[1e4, 1e4, -1e4]], ABC, logits=True)
    np.testing.assert_array_equal(out, [[0.5, 0.5, 0.0]])


def test_probabilities_passed_as_logits_are_noticed() -> None:
    with pytest.warns(UserWarning, match="every row is a distribution already"):
        probabilities(GOOD, ABC, logits=True)


# --- the tolerance of row sums ---


@needs_torch
@pytest.mark.parametrize("K", [2, 3, 10, 100, 1000, 10000])
@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0, 20.0])
def test_softmaxes_of_every_precision_pass_and_a_sum_of_102_percent_does_not(K: int, scale: float) -> None:
    x = np.random.default_rng(K).standard_normal((max(3, 20000 // K), K)) * scale
    labels = [f"l{i}" for i in range(K)]
    tensor = torch.tensor(x)
    rows: list[Any] = [softmax(x.astype(dtype)) for dtype in (np.float16, np.float32, np.float64)]
    rows += [torch.softmax(tensor.to(dtype), 1) for dtype in (torch.bfloat16, torch.float16, torch.float32)]
    rows += [row.float() for row in rows[3:5]]  # half precision that was cast up
    rows.append(np.round(softmax(x), 6))
    for P in rows:
        probabilities(P, labels)
    for dtype in (np.float16, np.float32, np.float64):
        P = softmax(x).astype(dtype)
        P[-1] *= dtype(1.02)
        wrong = rf"row {len(P) - 1}\b.*(not to 1|greater than 1) \(in 1 of {len(P)} rows"
        with pytest.raises(InputError, match=wrong):
            probabilities(P, labels)


@given(st.integers(1, 3000), st.integers(0, 2**32 - 1), st.floats(0.9, 1.1))
def test_sums_in_single_precision_let_nothing_through(K: int, seed: int, of_tolerance: float) -> None:
    """Rows that are off by about the tolerance are judged as their sums in double precision are."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, rng.choice([0.01, 1.0])), 5)
    tolerance = sum_tolerance(K, 24)
    P = (P * (1 + of_tolerance * tolerance * rng.choice([-1, 1]))).astype(np.float32)
    sums = [math.fsum(row) for row in P.tolist()]
    if max(abs(total - 1) for total in sums) > tolerance * (1 + 1e-9):
        with pytest.raises(InputError, match=r"sums to|greater than 1"):
            probabilities(P, [str(y) for y in range(K)])
    elif max(abs(total - 1) for total in sums) < tolerance * (1 - 1e-9):
        probabilities(P, [str(y) for y in range(K)])


def test_the_tolerance_stays_below_two_percent() -> None:
    assert sum_tolerance(10_000, 8) < 0.013
    assert sum_tolerance(1000, 11) < 0.0016
    assert sum_tolerance(1000, 24) < 1.1e-4
    assert sum_tolerance(10, 24) < 1.2e-5


# --- bad probabilities ---

BAD_VALUES: dict[str, tuple[Any, str]] = {
    "NaN": (
        changed(1, 2, np.nan),
        r"probabilities: row 1, label 'c', is NaN \(in 1 of 3 rows; rows are counted from 0\)",
    ),
    "-NaN": (changed(1, 2, -np.nan), r"row 1, label 'c', is NaN"),
    "infinite": (changed(2, 0, np.inf), r"row 2, label 'a', is infinite \(in 1 of 3 rows; rows are counted from 0\)"),
    "minus infinite": (changed(2, 0, -np.inf), r"row 2, label 'a', is infinite"),
    "negative": (
        np.array([[0.5, 0.25, 0.25], [0.6, -0.1, 0.5], [0.5, 0.6, -0.1]]),
        r"row 1, label 'b', is -0\.1, which is negative \(in 2 of 3 rows; .*\); for logits pass logits=",
    ),
    "above one": (
        np.array([[50.0, 25.0, 25.0], [0.5, 0.5, 0.0]]),
        r"row 0, label 'a', is 50, which is greater than 1 \(in 1 of 2 rows; .*\); .*pass normalize=True",
    ),
    "above one as integers": ([[0, 1, 0], [0, 2, 0]], r"row 1, label 'b', is 2, which is greater than 1"),
    "sum too large": (
        changed(1, 1, 0.4),
        r"row 1 sums to 1\.025, not to 1 \(in 1 of 3 rows; .*\); .*normalize=True",
    ),
    "sum too small": (changed(2, 1, 0.98), r"row 2 sums to 0\.98, not to 1"),
    "sum of zeros": (np.zeros((2, 3)), r"row 0 sums to 0, not to 1 \(in 2 of 2 rows"),
    "half precision, not by rounding": (
        np.array([[0.5, 0.5, 0.03125]], np.float16),
        r"row 0 sums to 1\.03125, not to 1",
    ),
}

BAD_SHAPES: dict[str, tuple[Any, str]] = {
    "vector": (GOOD[0], r"a vector of 3; for one instance pass a \(1, K\) matrix: probs\[None, :\]"),
    "true labels": (
        np.zeros(8),
        r"a vector of 8; expected a matrix, \(n, 3\); are probabilities and true labels swapped",
    ),
    "series": (pd.Series(GOOD[0]), r"a vector of 3"),
    "three dimensions": (GOOD[None], r"have shape \(1, 3, 3\); expected two dimensions, \(n, 3\)"),
    "wrong K": (np.full((5, 4), 0.25), r"^the probabilities have 4 columns, but there are 3 labels$"),
    "transposed": (
        np.full((3, 4), 0.25),
        r"have 4 columns, but there are 3 labels; they look transposed: pass probs.T",
    ),
    "no rows": (np.empty((0, 3)), r"the probabilities are empty: there are no rows"),
    "empty list": ([], r"the probabilities are empty: there are no rows"),
    "empty frame": (pd.DataFrame({"a": [], "b": [], "c": []}, dtype=float), r"the probabilities are empty"),
    "ragged": ([[0.5, 0.25, 0.25], [0.5, 0.5]], r"are ragged: row 1 has 2 entries, row 0 has 3"),
    "ragged below": ([[[1, 2], 0, 0], [0, 0, 0]], r"the probabilities cannot be read as a matrix"),
}

BAD_KINDS: dict[str, tuple[Any, str]] = {
    "missing": ([[0.5, 0.5, 0], [None, 0.5, 0.5]], r"row 1, label 'a', is None, not a number"),
    "text": ([[0.5, 0.5, 0], [0.5, "n/a", 0.5]], r"row 1, label 'b', is .*'n/a'.*, not a number"),
    "numbers as text": ([["0.5", "0.5", "0"]], r"have dtype <U3: pass np.asarray\(probs, dtype=float\)"),
    "objects": (GOOD.astype(object), r"have dtype object: pass np.asarray\(probs, dtype=float\)"),
    "complex": (GOOD.astype(complex), r"are complex numbers, not real numbers"),
    "boolean": (GOOD > 0, r"are true or false, not real numbers"),
    "dates": (np.zeros((2, 3), "M8[s]"), r"are datetime64\[s\], not real numbers"),
    "masked": (np.ma.masked_less(GOOD, 0.2), r"are a masked array: drop the masked rows"),
    "sparse": (scipy.sparse.csr_matrix(GOOD), r"are a sparse matrix: pass probs.toarray\(\)"),
    "lazy frame": (pl.LazyFrame({"a": [1.0]}), r"are a LazyFrame of polars: pass a .*\.collect\(\)"),
    "arrow table": (pa.table({"a": [1.0]}), r"are a Table of pyarrow: pass a pandas or polars DataFrame"),
}
if torch is not None:
    BAD_KINDS |= {
        "complex tensor": (torch.tensor(GOOD, dtype=torch.complex64), r"are complex numbers, not real numbers"),
        "sparse tensor": (torch.tensor(GOOD).to_sparse(), r"the tensor is sparse: pass tensor.to_dense\(\)"),
    }


@pytest.mark.parametrize(
    ("probs", "message"),
    [*BAD_VALUES.values(), *BAD_SHAPES.values(), *BAD_KINDS.values()],
    ids=[*BAD_VALUES, *BAD_SHAPES, *BAD_KINDS],
)
def test_bad_probabilities(probs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probabilities(probs, ABC)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf, -0.25, 1.25, 0.7])
@pytest.mark.parametrize("row", [0, 12_345, 179_999])  # of the first piece that is looked at, and of the next
def test_a_fault_anywhere_in_a_large_matrix_is_found(dtype: type, fault: float, row: int) -> None:
    P = np.tile(GOOD[0].astype(dtype), (180_000, 1))
    P[row, 2] = fault
    with pytest.raises(InputError, match=rf"probabilities: row {row}\b.* \(in 1 of 180000 rows"):
        probabilities(P, ABC)


@pytest.mark.parametrize("probs", [None, "abc", {"a": 1.0}, 0.5, {1, 2}])
def test_what_is_no_matrix_is_a_type_error(probs: Any) -> None:
    with pytest.raises(TypeError, match=f"the probabilities are a {type(probs).__name__}; expected a matrix"):
        probabilities(probs, ABC)


def test_one_column_for_two_labels() -> None:
    with pytest.raises(InputError, match=r"have 1 columns, but there are 2 labels; pass both columns"):
        probabilities(np.full((5, 1), 0.5), ["no", "yes"])


BAD_LOGITS: dict[str, tuple[Any, str]] = {
    "NaN": (changed(1, 2, np.nan), r"logits: row 1, label 'c', is NaN \(in 1 of 3 rows"),
    "infinite": (changed(1, 2, np.inf), r"logits: row 1, label 'c', is infinite .*; only -inf is allowed"),
    "nothing left": (np.vstack([GOOD, [[-np.inf] * 3]]), r"logits: row 3 is -inf for every label \(in 1 of 4 rows"),
}

BAD_SCORES: dict[str, tuple[Any, str]] = {
    "NaN": (changed(1, 2, np.nan), r"scores: row 1, label 'c', is NaN"),
    "infinite": (changed(1, 2, np.inf), r"scores: row 1, label 'c', is infinite"),
    "negative": (changed(1, 2, -3.0), r"scores: row 1, label 'c', is -3, which is negative"),
    "zeros": (
        np.array([[1.0, 2, 3], [0, 0, 0]]),
        r"scores: row 1 is zero for every label .*; it has no sum to divide by",
    ),
    "overflow": (np.full((1, 3), 1e308), r"scores: row 0 sums to more than float64 can represent"),
}


@pytest.mark.parametrize(("probs", "message"), BAD_LOGITS.values(), ids=BAD_LOGITS)
def test_bad_logits(probs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probabilities(probs, ABC, logits=True)


@pytest.mark.parametrize(("probs", "message"), BAD_SCORES.values(), ids=BAD_SCORES)
def test_bad_scores(probs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probabilities(probs, ABC, normalize=True)


def test_logits_and_normalize_exclude_each_other() -> None:
    with pytest.raises(InputError, match="exclude each other"):
        probabilities(GOOD, ABC, logits=True, normalize=True)


BAD_CLASS_NAMES: dict[str, tuple[Any, str]] = {
    "too few": (["a", "b"], r"class_names has 2 names, but there are 3 labels"),
    "twice": (["a", "b", "b"], r"class_names: 'b' appears twice"),
    "unknown": (["a", "b", "C"], r"class_names: 'C' is not a label; did you mean 'c'\?"),
    "frame": (pd.DataFrame({"a": ABC}), r"class_names: a frame; pass one of its columns"),
}


@pytest.mark.parametrize(("names", "message"), BAD_CLASS_NAMES.values(), ids=BAD_CLASS_NAMES)
def test_bad_class_names(names: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        probabilities(GOOD, ABC, class_names=names)


def test_class_names_must_be_a_sequence() -> None:
    with pytest.raises(TypeError, match="class_names: expected a sequence, not str"):
        probabilities(GOOD, ABC, class_names="abc")


BAD_FRAMES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "misspelt": (
        {"a": [0.5], "b": [0.5], "cc": [0.0]},
        {},
        r"no column for label 'c' \(1 of 3 labels have none\); did you mean 'cc'\?",
    ),
    "missing": ({"a": [0.5], "b": [0.5]}, {}, r"no column for label 'c' \(1 of 3 labels have none\); known: a, b"),
    "extra": (
        {"a": [0.5], "b": [0.5], "c": [0.0], "age": [40]},
        {},
        r"column 'age' is not a label; name it as the column of ids, groups or true labels",
    ),
    "no such column": (
        {"a": [0.5], "b": [0.5], "c": [0.0]},
        {"ignore": ["id"]},
        r"there is no column 'id'; known: a, b, c",
    ),
    "ignored label": (
        {"a": [0.5], "b": [0.5], "c": [0.0]},
        {"ignore": ["c"]},
        r"column 'c' is a label and cannot contain ids, groups or true labels as well",
    ),
    "text": ({"a": [0.5], "b": [0.5], "c": ["zero"]}, {}, r"column 'c' has dtype \w+, not a type of real numbers"),
    "boolean": ({"a": [0.5], "b": [0.5], "c": [False]}, {}, r"column 'c' has dtype \w+, not a type of real numbers"),
    "missing value": ({"a": [0.5, 0.5], "b": [0.5, None], "c": [0.0, 0.0]}, {}, r"row 1, label 'b', is NaN"),
    "missing id": (
        {"a": [0.5, 0.5], "b": [0.5, 0.5], "c": [0.0, 0.0], "id": ["x", None]},
        {"ignore": ["id"], "ids": ["x", None]},
        r"sample ids: row 1 \(counted from 0\) is missing",
    ),
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(("data", "options", "message"), BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_bad_frames(make: Any, data: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(make(data), ABC, **options)


def test_bad_pandas_frames() -> None:
    with pytest.raises(InputError, match=r"the columns are named 0 to 2, not by label: name them, or pass an array"):
        probabilities(pd.DataFrame(GOOD), ABC)
    with pytest.raises(InputError, match=r"column 'b' appears twice"):
        probabilities(pd.DataFrame(GOOD, columns=["a", "b", "b"]), ABC)
    nullable = pd.DataFrame(GOOD, columns=ABC).astype("Float64")
    nullable.loc[2, "a"] = pd.NA
    with pytest.raises(InputError, match=r"row 2, label 'a', is NaN"):
        probabilities(nullable, ABC)


def test_arrays_have_no_columns_to_name() -> None:
    with pytest.raises(InputError, match="'x' names a column of a frame; an array has no named columns"):
        rows_of(GOOD, ABC, ignore=["x"])


# --- the module ---


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, udcp_dsl.rows.source, udcp_dsl.rows.writing; "
        "print([m for m in ('torch', 'pandas', 'polars', 'pyarrow', 'scipy', 'numba') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_examples() -> None:
    for module in ("roles", "matrix", "columns", "rows"):
        result = doctest.testmod(import_module(f"udcp_dsl.rows.{module}"))
        assert result.attempted
        assert result.failed == 0


def test_messages_are_one_line() -> None:
    for probs, _ in BAD_VALUES.values():
        with pytest.raises(InputError) as caught:
            probabilities(probs, ABC)
        assert not re.search("\n", str(caught.value))
