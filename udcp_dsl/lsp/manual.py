"""The pages of the language manual: a wheel has them in this package, a checkout in specs/reference."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "reference", _HERE.parents[1] / "specs" / "reference")

# A link to another page, which an editor would look for in the user's folder.
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")

# Words of the language that are not atoms, and the pages that explain them.
_PAGES = {
    "labels": "labels",
    "hierarchy": "hierarchies",
    "levels": "hierarchies",
    "costs": "costs",
    "distance": "distances",
    "path": "distances",
    "category": "categories",
    "categories": "categories",
    "actions": "actions",
    "param": "params-and-lets",
    "input": "inputs",
    "per": "inputs",
    "row": "inputs",
    "limit": "limits",
    "let": "params-and-lets",
    "loss": "params-and-lets",
    "from": "files",
    "column": "files",
    "by": "files",
    "sqrt": "operators",
    "log1p": "operators",
    "if": "operators",
    "and": "operators",
    "or": "operators",
    "not": "operators",
}


@cache
def page(word: str) -> str:
    """The manual page of an atom or another word, up to its examples; "" if there is none.

    >>> page("size").splitlines()[0], page("no such word")
    ('# size', '')
    """
    name = _PAGES.get(word, word)
    if not name.replace("-", "").isalnum():
        return ""
    for folder in _FOLDERS:
        if (folder / f"{name}.md").is_file():
            text = (folder / f"{name}.md").read_text(encoding="utf-8")
            return _LINK.sub(r"\1", text.partition("\n## Examples")[0].partition("\n```")[0].strip())
    return ""
