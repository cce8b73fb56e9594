"""What may be written at a place: the grammar gives the kinds of word that may follow, the declarations the words.

The parser reads only the statement up to the word that is being typed, so the statement may be incomplete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from udcp_dsl.compile.type_checker import signature
from udcp_dsl.expression.atoms import ATOMS
from udcp_dsl.expression.domain import Actions, Category, Costs, Family, Hierarchy, Metric
from udcp_dsl.expression.inputs import RowInput
from udcp_dsl.language.parse import expected_after
from udcp_dsl.language.scan import STATEMENTS, Token
from udcp_dsl.language.syntax_faults import CLAUSES
from udcp_dsl.language.unparse import name_text
from udcp_dsl.language.words import FUNCTION_NAMES, KEYWORDS
from udcp_dsl.lsp.describe import described, page
from udcp_dsl.lsp.document import Document

_MOST = 200  # items per answer; the editor asks again as the user types on
_DATA_FILES = (".csv", ".json", ".npy")
_MOST_FILES = 500


class Kind(IntEnum):
    """The completion kinds of the protocol that we use."""

    ATOM = 3
    COLUMN = 5
    NAME = 6
    LEVEL = 13
    KEYWORD = 14
    FILE = 17
    LABEL = 12
    NODE = 20


@dataclass(frozen=True)
class _Item:
    text: str
    kind: Kind
    detail: str = ""
    label: str = ""
    documentation: str = ""


def completion(document: Document, position: dict[str, int]) -> dict[str, Any]:
    """`items` of the protocol, at most 200; `isIncomplete` if there are more."""
    offset = document.offset(position)
    if _in_comment(document, offset):
        return {"isIncomplete": False, "items": []}
    place = _place(document, offset)
    typed = place.typed
    fitting = [x for x in dict.fromkeys(_items(document, place)) if typed in (x.label or x.text).casefold()]
    fitting.sort(key=lambda x: not (x.label or x.text).strip('"').casefold().startswith(typed))
    range_ = document.lines.span(place.start, place.end)
    return {
        "isIncomplete": len(fitting) > _MOST,
        "items": [
            {
                "label": x.label or x.text,
                "kind": int(x.kind),
                "sortText": f"{i:04d}",
                "filterText": x.text,
                "textEdit": {"range": range_, "newText": x.text},
                **({"detail": x.detail} if x.detail else {}),
                **({"documentation": {"kind": "markdown", "value": x.documentation}} if x.documentation else {}),
            }
            for i, x in enumerate(fitting[:_MOST])
        ],
    }


@dataclass(frozen=True)
class _Place:
    """The word being typed, from `start` to `end`; the tokens before it in its statement; the expected terminals."""

    start: int
    end: int
    before: list[Token]
    expected: frozenset[str]
    first_of_line: bool
    typed: str  # the word up to the cursor, casefolded

    def text(self, i: int) -> str:
        """The i-th token before the word; "" if there is none."""
        return self.before[i].text if -len(self.before) <= i < len(self.before) else ""

    @property
    def keyword(self) -> str:
        return self.text(0)


def _in_comment(document: Document, offset: int) -> bool:
    start = max(document.text.rfind("\n", 0, offset), document.text.rfind("\r", 0, offset)) + 1
    line = document.text[start:offset]
    outside = line.split('"')[::2]  # a '#' in a string starts no comment
    return any("#" in part for part in outside)


def _place(document: Document, offset: int) -> _Place:
    statement = document.statement_at(max(offset - 1, 0))
    tokens = statement.tokens if statement is not None else []
    typed = next((t for t in tokens if t.start < offset <= t.end and t.kind in ("word", "string", "unended")), None)
    if typed is not None and typed.kind == "string" and offset == typed.end:
        typed = None  # after a complete string, a new word begins
    start = offset if typed is None else typed.start
    end = offset if typed is None or typed.kind == "unended" else typed.end
    before = [t for t in tokens if t.end <= start]
    line = document.text[max(document.text.rfind("\n", 0, start), document.text.rfind("\r", 0, start)) + 1 : start]
    expected = frozenset[str]()
    if before:
        expected = expected_after(document.text[before[0].start : start])
    word = document.text[start:offset].strip('"').casefold()
    return _Place(start, end, before, expected, not line.strip(), word)


def _items(document: Document, place: _Place) -> Iterator[_Item]:
    expects = place.expected.__contains__
    if not place.before or (expects("$END") and place.first_of_line) or not place.expected:
        yield from (_Item(word, Kind.KEYWORD, "statement") for word in STATEMENTS)
    if place.before and not place.expected:  # a syntax error before the word: offer every expression
        yield from _expressions(document)
    if expects("PART"):
        yield from _parts(document, place)
    if expects("NODE"):
        yield from _indexed(document, place)
    if expects("ATOM"):
        yield from _arguments(document, place)
    elif expects("NAME") and len(place.before) > 1:
        yield from _families(document) if place.text(-1) == "of" else _things(document, Hierarchy)
    if expects("LABEL") or (expects("STRING") and expects("INT") and place.text(-1) in ("{", ",")):
        yield from _labels(document, place)
    if expects("COLUMN_NAME") or expects("LEVEL_NAME"):
        yield from _columns(document, place)
    if place.text(-1) == "from" and expects("STRING"):
        yield from _files(document)
    if not (expects("PART") or expects("NODE") or _kinds(place)):
        yield from _keywords(place)


def _keywords(place: _Place) -> Iterator[_Item]:
    clauses = {word for words in CLAUSES.values() for word in words}
    used = {token.text for token in place.before}
    for terminal in sorted(place.expected):
        word = terminal.strip("_").lower()
        if word in clauses and (word in used or word not in CLAUSES.get(place.keyword, ())):
            continue
        if word in KEYWORDS and word not in STATEMENTS:
            text = {"default": "default: ", "edge": "edge: "}.get(word, word)
            yield _Item(text, Kind.KEYWORD, label=word)


def _things(document: Document, *kinds: type, of: bool | None = None) -> Iterator[_Item]:
    """The names of things of some kinds; of costs, only those of families (`of=True`) or of labels (`of=False`)."""
    for name, thing in document.last_good_declarations.things.items():
        if isinstance(thing, kinds) and (of is None or not isinstance(thing, Costs) or (thing.of is not None) == of):
            yield _Item(name, Kind.NAME, described(document, name))


def _families(document: Document) -> Iterator[_Item]:
    """Families, and the levels of hierarchies, which are families too."""
    yield from _things(document, Family)
    for name, thing in document.last_good_declarations.things.items():
        if isinstance(thing, Hierarchy):
            levels = [name_text(level) for level in thing.levels] or [f"level({i})" for i in range(1, thing.height + 1)]
            for level in levels:
                yield _Item(f"{name}.{level}", Kind.LEVEL, f"level of {name}")


def _categories(document: Document) -> Iterator[_Item]:
    yield from _things(document, Category)
    for item in _things(document, Family, Hierarchy):
        yield _Item(f"{item.text}.", item.kind, item.detail, item.text)
    yield _Item("{ ", Kind.KEYWORD, "labels in place", "{ }")


_BY_KIND: dict[str, Callable[[Document], Iterator[_Item]]] = {
    "category": _categories,
    "family": _families,
    "costs": lambda d: _things(d, Costs, of=False),
    "costs of family": lambda d: _things(d, Costs, of=True),
    "hierarchy": lambda d: _things(d, Hierarchy),
    "distance": lambda d: _things(d, Metric, Hierarchy),
    "any distance": lambda d: _things(d, Metric, Hierarchy),
    "actions": lambda d: _things(d, Actions),
}


def _arguments(document: Document, place: _Place) -> Iterator[_Item]:
    """Inside an atom, what it takes; elsewhere, and also in max and min, expressions."""
    kinds = _kinds(place)
    for kind in sorted(kinds):
        yield from _BY_KIND[kind](document)
    if not kinds or _open_call(place.before)[0] in ("max", "min"):
        yield from _expressions(document)


def _kinds(place: _Place) -> set[str]:
    """The kinds of argument that the atom around the word takes here; none outside of atoms."""
    atom, index = _open_call(place.before)
    return {s[index] for s in ATOMS[atom].signatures if len(s) > index} if atom in ATOMS else set()


def _open_call(tokens: list[Token]) -> tuple[str, int]:
    """The name of the innermost open call, and the number of the argument that is being written, from 0."""
    depth, commas = 0, 0
    for i in range(len(tokens) - 1, 0, -1):
        text = tokens[i].text
        if text in (")", "}", "]"):
            depth += 1
        elif text in ("(", "{", "["):
            if depth == 0:
                return (tokens[i - 1].text, commas) if text == "(" else ("", 0)
            depth -= 1
        elif text == "," and depth == 0:
            commas += 1
    return "", 0


def _expressions(document: Document) -> Iterator[_Item]:
    for name in document.last_good_declarations.definitions:
        yield _Item(name, Kind.NAME, described(document, name))
    for name, thing in document.last_good_declarations.things.items():
        if isinstance(thing, float | RowInput):
            yield _Item(name, Kind.NAME, described(document, name))
    for name, atom in ATOMS.items():
        forms = [signature(name, kinds) for kinds in atom.signatures]
        text = name if () in atom.signatures else f"{name}("
        yield _Item(text, Kind.ATOM, " or ".join(forms), name, page(name))
    for name in FUNCTION_NAMES:
        yield _Item(f"{name}(", Kind.ATOM, f"{name}(e)", name, page(name))


def _parts(document: Document, place: _Place) -> Iterator[_Item]:
    """After a dot: the categories of a family, the levels of a hierarchy, the nodes of a level."""
    tokens = place.before
    first = len(tokens) - 1
    while first >= 2 and tokens[first].text == "." and tokens[first - 2].text == ".":
        first -= 2
    thing = document.last_good_declarations.things.get(tokens[first - 1].text) if first >= 1 else None
    level = tokens[first + 1].text if first + 1 < len(tokens) else None
    if isinstance(thing, Family):
        yield from (_Item(name_text(name), Kind.NODE, f"category of {thing.name}") for name in thing.names)
    elif isinstance(thing, Hierarchy) and level is None:
        yield from (_Item(name_text(name), Kind.LEVEL, f"level of {thing.name}") for name in thing.levels)
        yield _Item("node(", Kind.KEYWORD, "a node by its name", "node")
        yield _Item("level(", Kind.KEYWORD, "a level by its depth", "level")
    elif isinstance(thing, Hierarchy):
        name = _unquoted(level or "")
        if name in thing.levels:
            nodes = np.unique(thing.nodes_at(thing.levels.index(name) + 1)).tolist()
            yield from _nodes(thing, nodes)
        else:
            yield from _nodes(thing, range(1, len(thing.names)))


def _nodes(h: Hierarchy, nodes: Iterable[int]) -> Iterator[_Item]:
    for name in dict.fromkeys(h.names[v] for v in nodes):
        yield _Item(name_text(name), Kind.NODE, f"node of {h.name}")


def _indexed(document: Document, place: _Place) -> Iterator[_Item]:
    """`h.node(` and `h.level(`"""
    thing = document.last_good_declarations.things.get(place.text(-4))
    if isinstance(thing, Hierarchy) and place.text(-2) == "node":
        yield from _nodes(thing, range(1, len(thing.names)))
    elif isinstance(thing, Hierarchy):
        yield from (_Item(str(depth), Kind.LEVEL, f"depth in {thing.name}") for depth in range(thing.height + 1))


def _labels(document: Document, place: _Place) -> Iterator[_Item]:
    """Labels, or for costs of a family its categories, except those that the statement already lists."""
    if place.keyword == "labels":
        return
    listed = {_unquoted(t.text) for t in place.before if t.kind in ("word", "string")}
    d, names, what = document.last_good_declarations, document.last_good_declarations.labels, "label"
    if place.keyword == "costs" and place.text(2) == "of":
        family = d.things.get(place.text(3))
        if isinstance(family, Hierarchy) and place.text(4) == "." and _unquoted(place.text(5)) in family.levels:
            family = family.level(family.levels.index(_unquoted(place.text(5))) + 1)
        names, what = (family.names, f"category of {family.name}") if isinstance(family, Family) else ((), "")
    colon = ": " if place.keyword == "costs" else ""
    fitting = [name for name in names if place.typed in name.casefold() and name not in listed]
    fitting.sort(key=lambda name: not name.casefold().startswith(place.typed))
    for name in fitting[: _MOST + 1]:  # of ten thousand, the rest is not shown
        text = '"default"' if colon and name == "default" else name_text(name)
        yield _Item(text + colon, Kind.LABEL, what, text)


def _columns(document: Document, place: _Place) -> Iterator[_Item]:
    path = next((_unquoted(t.text) for t in reversed(place.before) if t.kind == "string"), None)
    table = document.table(path) if path is not None else None
    if table is not None:
        yield from (_Item(name_text(name), Kind.COLUMN, f"column of {path}") for name in table.header)


def _files(document: Document) -> Iterator[_Item]:
    """The data files below the folder of the spec, those beside it first."""
    if document.folder is None or not document.folder.is_dir():
        return
    seen = 0
    for where, folders, names in os.walk(document.folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            seen += 1
            if name.lower().endswith(_DATA_FILES):
                path = Path(where, name).relative_to(document.folder).as_posix()
                yield _Item(json.dumps(path, ensure_ascii=False), Kind.FILE, label=path)
        if seen > _MOST_FILES:
            return


def _unquoted(text: str) -> str:
    if text.startswith('"'):
        try:
            return str(json.loads(text))
        except ValueError:
            return text.strip('"')
    return text
