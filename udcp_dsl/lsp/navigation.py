"""Navigation in a document: definition, references, rename, outline, folding, formatting."""

from __future__ import annotations

import itertools
from typing import Any

from udcp_dsl.compile.sources import Table
from udcp_dsl.diagnostics import InputError
from udcp_dsl.language import ast
from udcp_dsl.language.layout import formatted
from udcp_dsl.language.scan import STATEMENTS, comments
from udcp_dsl.language.unparse import name_text
from udcp_dsl.language.words import RESERVED, is_name
from udcp_dsl.lsp.describe import described
from udcp_dsl.lsp.document import Document
from udcp_dsl.lsp.occurrences import Occurrence, Symbol, occurrence_at, occurrences, occurrences_of

# The symbol kind of the protocol for each kind of declaration.
_KINDS = {
    3: "hierarchy",
    5: "category categories",
    10: "labels",
    12: "limit loss",
    13: "input let",
    14: "param",
    18: "costs distance actions",
}
_OUTLINE = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_ENUM_MEMBER = 22


def definition(document: Document, position: dict[str, int]) -> list[dict[str, Any]]:
    """Where the name at a position is declared: in the text, or in the data file that it is read from."""
    found = occurrence_at(document, document.offset(position))
    if found is None:
        return []
    defining = [x for x in occurrences_of(document, found.symbol) if x.defines]
    if defining:
        return [_location(document, x) for x in defining]
    return _in_file(document, found.symbol)


def references(document: Document, position: dict[str, int], declaration: bool = True) -> list[dict[str, Any]]:
    """Every occurrence of the name at a position."""
    found = occurrence_at(document, document.offset(position))
    everywhere = occurrences_of(document, found.symbol) if found is not None else []
    return [_location(document, x) for x in everywhere if declaration or not x.defines]


def renamable(document: Document, position: dict[str, int]) -> dict[str, Any]:
    """The range and the text of the name at a position; InputError says why it cannot be renamed."""
    found = _renamed(document, position)
    return {"range": document.lines.range(found.span), "placeholder": found.symbol.name}


def rename(document: Document, position: dict[str, int], new: str) -> dict[str, Any]:
    """The edits that rename the symbol at a position everywhere; InputError if the new name is not allowed."""
    symbol = _renamed(document, position).symbol
    if symbol.kind == "name":
        if not is_name(new) or new in RESERVED:
            raise InputError(f"{new!r} cannot name a declaration: a name is letters, digits and '_', and no keyword")
        if new in document.declarations and new != symbol.name:
            raise InputError(f"{new!r} is declared already")
        text = new
    else:
        if not new:
            raise InputError(f"a {symbol.kind} needs a name")
        others = {x.symbol.name for x in _same_kind(document, symbol)}
        if new in others and new != symbol.name:
            raise InputError(f"there is a {symbol.kind} {new!r} already")
        text = name_text(new)
    if symbol.kind != "name" and new == "default":
        text = '"default"'  # without quotes, it is a keyword of costs
    edits = [{"range": document.lines.range(x.span), "newText": text} for x in occurrences_of(document, symbol)]
    return {"changes": {document.uri: edits}}


def _same_kind(document: Document, symbol: Symbol) -> list[Occurrence]:
    """The occurrences of all symbols of the same kind and owner: family, hierarchy, or list of labels."""
    return [x for x in occurrences(document) if (x.symbol.kind, x.symbol.of) == (symbol.kind, symbol.of)]


def _renamed(document: Document, position: dict[str, int]) -> Occurrence:
    found = occurrence_at(document, document.offset(position))
    if found is None:
        raise InputError("there is no name here")
    symbol = found.symbol
    if symbol.kind in ("column", "file"):
        raise InputError(f"{symbol.name!r} names a {symbol.kind} on disk, which is not renamed")
    if not any(x.defines for x in occurrences_of(document, symbol)):
        raise InputError(f"{symbol.name!r} is not declared in this text")
    if symbol.kind == "level":
        raise InputError(f"{symbol.name!r} names a column on disk, which is not renamed")
    if symbol.kind == "label" and document.files:
        raise InputError(
            f"rows of {document.files[0]} may be matched by the label {symbol.name!r}: change both by hand"
        )
    return found


def _location(document: Document, x: Occurrence) -> dict[str, Any]:
    return {"uri": document.uri, "range": document.lines.range(x.span)}


def _in_file(document: Document, symbol: Symbol) -> list[dict[str, Any]]:
    """The place in a data file that a label, category, node or column comes from; for a file, its first line."""
    bodies: list[tuple[str, str | None]] = []  # files, and the column in which the name is a cell
    for x in document.checked.spec.declarations:
        file = getattr(x, "body", None)
        if not isinstance(file, ast.File):
            continue
        column = file.column.text if file.column is not None else None
        if symbol.kind in ("file", "column") and file.path == (symbol.name if symbol.kind == "file" else symbol.of):
            bodies.append((file.path, None))
        elif symbol.kind == "label" and isinstance(x, ast.Labels):
            bodies.append((file.path, column or ""))
        elif symbol.kind == "category" and isinstance(x, ast.Categories) and x.name.text == symbol.of:
            bodies.append((file.path, column))
        elif symbol.kind == "node" and isinstance(x, ast.Hierarchy) and x.name.text == symbol.of:
            bodies += [(file.path, level.text) for level in file.levels]
    for path, wanted in bodies:
        line, text = _line_of(document.table(path), symbol, wanted)
        if document.folder is not None and line is not None:
            start = {"line": line, "character": 0}
            end = {"line": line, "character": len(text)}
            return [{"uri": (document.folder / path).resolve().as_uri(), "range": {"start": start, "end": end}}]
    return []


def _line_of(table: Table | None, symbol: Symbol, column: str | None) -> tuple[int | None, str]:
    """The line (from 0) of a table on which a name is in a column, or that of the header; and its text."""
    if table is None:
        return (0, "") if symbol.kind == "file" else (None, "")
    if symbol.kind in ("file", "column"):
        return 0, ",".join(table.header)
    at = table.positions.get(column or table.header[0])
    if at is not None:
        for row, line in zip(table.rows, table.lines, strict=True):
            if row[at] == symbol.name:
                return line - 1, ",".join(row)
    return None, ""


# The outline ---------------------------------------------------------------------------------------------------------


def symbols(document: Document) -> list[dict[str, Any]]:
    """All statements, even those that do not parse, with the categories and nodes that are written in place."""
    read = {x.span.start: x for x in document.checked.spec.declarations}
    found = []
    for statement in document.statements:
        word, start, end = statement.tokens[0], statement.tokens[0].start, statement.tokens[-1].end
        if word.text not in STATEMENTS:
            continue
        name = word
        if word.text != "labels" and len(statement.tokens) > 1 and is_name(statement.tokens[1].text):
            name = statement.tokens[1]
        x = read.get(start)
        detail = described(document, name.text) if x is not None and name is not word else ""
        if isinstance(x, ast.Labels):
            detail = f"{len(document.declared.labels):,} labels"
        found.append(
            {
                "name": name.text,
                "detail": detail,
                "kind": _OUTLINE[word.text],
                "range": document.lines.span(start, end),
                "selectionRange": document.lines.span(name.start, name.end),
                "children": _children(document, x),
            }
        )
    return found


def _children(document: Document, x: ast.Declaration | ast.Branch | None) -> list[dict[str, Any]]:
    parts: tuple[object, ...] = ()
    if isinstance(x, ast.Branch):
        parts = x.children
    elif isinstance(x, ast.Hierarchy | ast.Categories) and not isinstance(x.body, ast.File):
        parts = x.body
    return [
        {
            "name": part.name.text or '""',
            "kind": _ENUM_MEMBER,
            "range": document.lines.range(part.span),
            "selectionRange": document.lines.range(part.name.span),
            "children": _children(document, part) if isinstance(part, ast.Branch) else [],
        }
        for part in parts
        if isinstance(part, ast.Branch | ast.Member)
    ]


def folding(document: Document) -> list[dict[str, Any]]:
    """Statements and comments of several lines."""
    found = []
    for statement in document.statements:
        range_ = document.lines.span(statement.tokens[0].start, statement.tokens[-1].end)
        if range_["start"]["line"] < range_["end"]["line"]:
            found.append({"startLine": range_["start"]["line"], "endLine": range_["end"]["line"]})
    own = [document.lines.position(span.start) for span in comments(document.source)]
    lines = [at["line"] for at in own]
    for _, run in itertools.groupby(enumerate(lines), lambda pair: pair[1] - pair[0]):
        rows = [line for _, line in run]
        if len(rows) > 1:
            found.append({"startLine": rows[0], "endLine": rows[-1], "kind": "comment"})
    return found


def formatting(document: Document) -> list[dict[str, Any]]:
    """The edit that formats the text; none if it is formatted already, or has syntax errors."""
    if any(x.code.startswith("E1") for x in document.checked.diagnostics):
        return []
    text = formatted(document.source, document.checked.spec)
    if text == document.text:
        return []
    return [{"range": document.lines.span(0, len(document.text)), "newText": text}]
