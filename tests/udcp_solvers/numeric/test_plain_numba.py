"""Kernels compile by numba's public interface alone where our own compilers cannot be used, with the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from udcp_solvers.numeric import compiled
from udcp_solvers.numeric.compiled import TESTED, Kernel, jit


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    compiled._own_compilers.cache_clear()
    yield
    compiled._own_compilers.cache_clear()
    if Kernel._plain:
        Kernel.compile_anew(plain=False)


def kernels() -> tuple[Any, Any]:
    """A kernel that calls another, made anew."""

    def part(x: float) -> float:
        return x / 3.0 + 0.1

    inner = jit(part)

    def whole(values: np.ndarray) -> float:
        total = 0.0
        for value in values:
            total += inner(value)
        return total

    for function in (part, whole):
        function.__qualname__ = function.__name__  # as functions of a module have it
    return inner, jit(whole)


VALUES = np.random.default_rng(0).random(100)


def test_the_version_here_is_tested() -> None:
    """Where this fails: run the suite with the new version, then move the bound."""
    version = tuple(int(x) for x in numba.__version__.split(".")[:2])
    assert TESTED[0] <= version <= TESTED[1]
    assert compiled._own_compilers() is not None


@pytest.mark.parametrize("version", ["0.59.1", "0.99.0", "1.0.0rc1"])
def test_an_unknown_version_gets_numbas_own_compiler(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "__version__", version)
    assert compiled._own_compilers() is None
    assert kernels()[1](VALUES) == sum(x / 3.0 + 0.1 for x in VALUES)


def test_so_does_whoever_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UDCP_PLAIN_NUMBA", "1")
    assert compiled._own_compilers() is None


def test_insides_of_numba_that_are_not_there_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "udcp_solvers.numeric.parts", None)  # importing it fails
    assert compiled._own_compilers() is None


def test_a_compiler_that_fails_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from udcp_solvers.numeric.parts import KernelCompiler

    def broken(self: object) -> list[Any]:
        raise AttributeError("renamed in this version of numba")

    monkeypatch.setattr(KernelCompiler, "define_pipelines", broken)
    assert kernels()[1](VALUES) == sum(x / 3.0 + 0.1 for x in VALUES)
    assert Kernel._plain


def test_a_kernel_that_is_wrong_is_no_reason_to_give_up() -> None:
    def wrong(values: np.ndarray) -> float:
        return values.no_such_thing  # type: ignore[attr-defined,no-any-return]

    wrong.__qualname__ = "wrong"
    with pytest.raises(numba.TypingError, match="no_such_thing"):
        jit(wrong)(VALUES)
    assert not Kernel._plain


# A kernel that is compiled twice, for two types, each time for longer than the notice waits.
COMPILES = """
import numpy as np
from udcp_solvers.numeric import compile_notice
from udcp_solvers.numeric.compiled import Kernel
compile_notice._PATIENCE = 0.001
def total(values):
    found = 0.0
    for value in values:
        found += value
    return found
kernel = Kernel(total)
print(kernel(np.ones(3)), kernel(np.ones(3, dtype=np.float32)))
"""
# To our module; the modules of numba have imported theirs by then.
WITHOUT_EVENTS = "import types, numba.core.dispatcher; numba.core.event = types.ModuleType('event')"


@pytest.mark.parametrize(
    ("first", "quiet", "announced"),
    [
        ("", "", 1),
        ("", "1", 0),
        ("import logging; logging.basicConfig(level=logging.ERROR)", "", 0),
        (WITHOUT_EVENTS, "", 0),
    ],
)
def test_compiling_is_announced_once_unless_silenced(first: str, quiet: str, announced: int, tmp_path: Path) -> None:
    program = tmp_path / "compiles.py"  # a file, as numba's cache needs one
    program.write_text(f"import numba\n{first}\n{COMPILES}")
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(program)],
        env={**os.environ, "UDCP_QUIET": quiet, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "3.0 3.0\n"
    assert ran.stderr.count("compiling kernels") == announced, ran.stderr
