"""Generated examples are the same in every run, whatever was loaded or run before."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from tests.conftest import Sizes


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


def test_a_profile_decides_how_much_is_tried(sizes: Sizes) -> None:
    assert len(drawn()) == sizes.examples


def test_no_test_has_a_size_of_its_own() -> None:
    """Programs that tests run in another process aside, which no profile reaches."""
    tests = Path(__file__).parent
    own = re.compile(r"hypothesis import .*\bsettings\b|max_examples|parametrize\(\"seed\"")
    found = [path.name for path in tests.rglob("test_*.py") if own.search(path.read_text(encoding="utf-8"))]
    assert found == [Path(__file__).name]
