"""How benchmarks write what they measured: whole files or none, and tables between the markers of a page."""

from __future__ import annotations

from pathlib import Path

from udcp_dsl.files import atomic_write


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def between_markers(text: str, begin: str, end: str, content: str) -> str:
    """A page with the part between two markers made anew."""
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"
