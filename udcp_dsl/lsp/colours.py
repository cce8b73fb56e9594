"""Semantic tokens: the type of each word, which depends on its declaration, in the encoding of the protocol.

Five numbers per token: lines and characters since the previous token, its length, its type and its modifiers.
"""

from __future__ import annotations

from typing import Any

from udcp_dsl.language import ast
from udcp_dsl.language.scan import Token, comments
from udcp_dsl.language.words import CALLED, KEYWORDS
from udcp_dsl.lsp.document import Document
from udcp_dsl.lsp.occurrences import Occurrence, occurrences

TYPES = ("comment", "keyword", "function", "variable", "parameter", "class", "enumMember", "property", "string",
         "number", "operator")  # fmt: skip
MODIFIERS = ("declaration",)


def semantic_tokens(document: Document) -> dict[str, Any]:
    """The tokens of the whole document, as {"data": [...]}."""
    known = {x.span.start: x for x in occurrences(document)}
    found = [(span.start, span.end, "comment", False) for span in comments(document.source)]
    for statement in document.statements:
        for token in statement.tokens:
            occurrence = known.get(token.start)
            kind = _of_occurrence(document, occurrence) if occurrence is not None else _of_token(token)
            if kind is not None:
                found.append((token.start, token.end, kind, occurrence is not None and occurrence.defines))
    data: list[int] = []
    line = character = 0
    for start, end, kind, defines in sorted(found):
        at = document.lines.position(start)
        before = character if at["line"] == line else 0
        length = document.lines.length(document.text[start:end])
        data += [at["line"] - line, at["character"] - before, length, TYPES.index(kind), int(defines)]
        line, character = at["line"], at["character"]
    return {"data": data}


def _of_occurrence(document: Document, x: Occurrence) -> str:
    match x.symbol.kind:
        case "name":
            declaration = document.declarations.get(x.symbol.name)
            if isinstance(declaration, ast.Param | ast.Input):
                return "parameter"
            return "variable" if isinstance(declaration, ast.Let | ast.LossDecl | ast.Limit) else "class"
        case "label" | "category" | "node":
            return "enumMember"
        case "level" | "column":
            return "property"
        case _:
            return "string"


def _of_token(token: Token) -> str | None:
    if token.kind == "string":
        return "string"
    if token.kind == "sign":
        return "operator"
    if token.kind != "word":
        return None
    if token.text[0].isdecimal():
        return "number"
    return "function" if token.text in CALLED else "keyword" if token.text in KEYWORDS else None
