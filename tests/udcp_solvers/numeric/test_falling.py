"""The compiled order is Python's stable sort by falling value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udcp_solvers.numeric.falling import bits_of, falling_order, order_scratch, value_of

# Few distinct values, so that ties abound; both zeros; denormals of float32 and float64.
values = st.sampled_from([0.0, -0.0, 5e-324, 1e-310, 1e-45, 1e-30, 0.25, 0.25 + 2**-20, 0.5, 1.0]) | st.floats(0.0, 1.0)


@given(
    st.lists(values, min_size=1, max_size=60) | st.lists(values, min_size=49, max_size=300),
    st.sampled_from([np.float32, np.float64]),
)
def test_order(row: list[float], dtype: type[np.floating]) -> None:
    array = np.array(row, dtype=dtype)
    expected = sorted(range(len(array)), key=lambda j: (-array[j], j))
    assert falling_order(array, order_scratch(len(array))).tolist() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_and_values_are_inverse_and_rise(dtype: type[np.floating]) -> None:
    row = np.sort(np.concatenate([np.geomspace(np.finfo(dtype).smallest_subnormal, 1, 50), [0.0]])).astype(dtype)
    bits = [bits_of(row, x) for x in row]
    assert bits == sorted(bits)
    assert [value_of(row, b) for b in bits] == row.tolist()
