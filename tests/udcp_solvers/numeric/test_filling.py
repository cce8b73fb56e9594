"""Orders inside kernels against numpy's stable sort; kernels that kernels call, against what the functions say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.filling import fill, order_by, put


@given(st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 7.0, np.inf]), max_size=70), st.integers(0, 2**32))
def test_an_order_is_numpys_stable_one(values: list[float], seed: int) -> None:
    these = np.array(values, dtype=float)
    places = np.random.default_rng(seed).permutation(len(these))
    expected = places[np.argsort(these[places], kind="stable")]
    order_by(these, places, np.empty(len(these) + 1, np.int64))
    assert places.tolist() == expected.tolist()


def test_long_orders() -> None:
    rng = np.random.default_rng(0)
    for n in (7, 8, 9, 16, 17, 1000, 4097):
        for these in (rng.normal(size=n), rng.integers(0, 5, n).astype(float), np.arange(n, 0.0, -1.0)):
            places = np.arange(n)
            order_by(these, places, np.empty(n, np.int64))
            assert (places == np.argsort(these, kind="stable")).all()


@jit
def _inner(a: np.ndarray, b: float) -> float:
    fill(a[1:], b)
    return float(a.sum())


@jit
def _twice(b: float) -> float:
    return 2.0 * b


@jit
def _outer(a: np.ndarray, b: float) -> float:
    kept = np.empty(len(a))
    put(kept, a)
    return _inner(a, b) - _inner(kept, _twice(b))


def test_parts_compute_what_the_functions_say() -> None:
    a = np.arange(5.0)
    assert _outer(a, 3.0) == 4 * 3.0 - 4 * 6.0
    assert a.tolist() == [0.0, 3.0, 3.0, 3.0, 3.0]
    assert _inner(a, 1.0) == 4.0  # by Python too, though it was compiled as a part


def test_what_only_kernels_call_is_not_made_ready_for_python() -> None:
    _outer(np.arange(5.0), 3.0)
    outer, twice = vars(_outer), vars(_twice)
    assert outer["dispatcher"].signatures
    assert not twice["dispatcher"].signatures
