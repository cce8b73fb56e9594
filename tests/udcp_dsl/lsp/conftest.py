"""A document with the place of the cursor, written as `|` in the text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from udcp_dsl.lsp import Document, Reader

SPECS = Path(__file__).parents[3] / "specs"
Marked = Callable[..., tuple[Document, dict[str, int]]]


@pytest.fixture(scope="session")
def marked() -> Marked:
    """(text with one `|`, folder) -> the document without it, and its position."""
    reader = Reader()

    def read(text: str, folder: Path | None = SPECS / "dermatology") -> tuple[Document, dict[str, int]]:
        before, bar, after = text.partition("|")
        assert bar, "the text has no cursor"
        document = reader.read(before + after, folder)
        return document, document.lines.position(len(before))

    return read


@pytest.fixture(scope="session")
def triage() -> str:
    """A spec with files, a hierarchy, a parameter, a let and two losses."""
    return (SPECS / "dermatology" / "triage.loss").read_text(encoding="utf-8")
