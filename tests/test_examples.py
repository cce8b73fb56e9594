"""Generated examples are the same in every run, whatever was loaded or run before."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[tuple[int, float, str]]:
    """What a property is tried on."""
    found = []

    @given(st.integers(), st.floats(), st.text())
    def collect(n: int, x: float, text: str) -> None:
        found.append((n, x, text))

    collect()
    return found


@pytest.mark.skipif(not settings.default.derandomize, reason="examples are drawn anew")
def test_no_module_that_is_loaded_changes_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = repr(drawn())  # a NaN is not equal to itself
    path = tmp_path / "words.py"
    path.write_text("\n".join(f"x{i} = {7919 * i}, {i / 7}, 'word {i}'" for i in range(100, 300)))
    spec = importlib.util.spec_from_file_location("words", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "words", module)
    assert repr(drawn()) == before


def test_the_whole_suite_tries_fewer_examples(pytestconfig: pytest.Config) -> None:
    (conftest,) = (p for p in pytestconfig.pluginmanager.get_plugins() if hasattr(p, "try_fewer"))
    tried = dict.fromkeys((160, 60, 5), 0)

    def counting(n: int) -> Any:
        @settings(max_examples=n, database=None)
        @given(st.integers())
        def count(x: int) -> None:
            tried[n] += 1

        return count

    for n in tried:
        test = counting(n)
        conftest.try_fewer(test)
        test()
    assert tried == {160: 20, 60: 12, 5: 5}
