"""While kernels are compiled numba looks up a call once; before and after it is as it always is."""

from __future__ import annotations

import gc
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.base import BaseContext
from numba.core.types.functions import BaseFunction

from udcp_solvers.numeric.compiled import jit
from udcp_solvers.numeric.remembered import cached_calls

_LOOK_UP: Any = BaseFunction.get_call_type
_SIZE: Any = BaseContext.get_abi_sizeof


def test_numba_is_left_as_it_was() -> None:
    thresholds = gc.get_threshold()
    with cached_calls(), cached_calls():
        assert BaseFunction.get_call_type is not _LOOK_UP
        assert BaseContext.get_abi_sizeof is not _SIZE
    assert BaseFunction.get_call_type is _LOOK_UP
    assert BaseContext.get_abi_sizeof is _SIZE
    assert gc.get_threshold() == thresholds


def test_numba_is_left_as_it_was_where_a_kernel_does_not_compile() -> None:
    thresholds = gc.get_threshold()
    kernel: Any = jit(lambda x: x.no_such_thing)
    kernel.function.__qualname__ = "wrong"
    with pytest.raises(numba.TypingError, match="no_such_thing"):
        kernel(np.ones(3))
    assert BaseFunction.get_call_type is _LOOK_UP
    assert gc.get_threshold() == thresholds


def test_the_same_call_is_looked_up_once_for_its_types_and_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """One text, compiled for several types and flags, is right for all of them, with fewer questions than numba's."""
    asked: list[Any] = []

    def counting(*call: Any) -> Any:
        asked.append(call)
        return _LOOK_UP(*call)

    monkeypatch.setattr(BaseFunction, "get_call_type", counting)

    def total(x: Any, k: int) -> Any:
        return x[k] + x[k + 1] + x[k] * x[k] - x[k + 1]

    def questions(dtype: type, **flags: Any) -> int:
        asked.clear()
        assert numba.njit(**flags)(total)(np.array([3, 5], dtype), 0) == 3 + 9
        return len(asked)

    plain = questions(np.int8)
    for dtype in (np.int16, np.float32, np.float64):
        for flags in ({}, {"error_model": "numpy"}):
            with cached_calls():
                assert 0 < questions(dtype, **flags) < plain
                assert questions(dtype, **flags) == 0
    assert BaseFunction.get_call_type is counting


def test_the_size_of_a_type_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counting(context: Any, kind: Any) -> Any:
        asked.append(str(kind))
        return _SIZE(context, kind)

    monkeypatch.setattr(BaseContext, "get_abi_sizeof", counting)

    def total(x: Any) -> Any:
        odd = even = 0
        for i in range(x.size):
            if x[i] % 2:
                odd += x[i]
            else:
                even += x[i]
        return odd - even

    def questions() -> int:
        asked.clear()
        assert numba.njit(total)(np.array([3, 4, 5], np.int16)) == 4
        return len(asked)

    plain = questions()
    assert plain > len(set(asked))
    with cached_calls():
        assert questions() <= len(set(asked))
        assert questions() == 0
    assert questions() == plain
