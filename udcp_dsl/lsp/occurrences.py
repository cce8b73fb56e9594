"""The occurrences of each name in a document, for hover, definition, references, rename and semantic tokens.

A symbol is identified by its kind, its name and its owner: a declared name, a label, a category of a family, a node or
a level of a hierarchy, a column of a file, or a file. In a statement that does not parse, symbols are guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

from udcp_dsl.diagnostics import Span
from udcp_dsl.language import ast
from udcp_dsl.language.scan import STATEMENTS, Statement, Token
from udcp_dsl.language.words import RESERVED
from udcp_dsl.lsp.document import Document

Kind = Literal["name", "label", "category", "node", "level", "column", "file"]


@dataclass(frozen=True)
class Symbol:
    """What a name stands for; `of` is its owner: a family, a hierarchy or a file."""

    kind: Kind
    name: str
    of: str = ""


@dataclass(frozen=True)
class Occurrence:
    """A symbol at a place in the text; `defines` is true where it is declared, not used."""

    symbol: Symbol
    span: Span
    defines: bool = False


def occurrences(document: Document) -> list[Occurrence]:
    """Every occurrence, in the order of the text."""
    found = _CACHE.get(document)
    if found is None:
        found = list(_OccurrenceFinder(document).all())
        found.sort(key=lambda x: (x.span.start, x.span.end))
        _CACHE[document] = found
    return found


def occurrence_at(document: Document, offset: int) -> Occurrence | None:
    """The occurrence around an offset, its end included."""
    return next((x for x in occurrences(document) if x.span.start <= offset <= x.span.end), None)


def occurrences_of(document: Document, symbol: Symbol) -> list[Occurrence]:
    """All occurrences of one symbol."""
    return [x for x in occurrences(document) if x.symbol == symbol]


class _OccurrenceFinder:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._read = {x.span.start for x in document.checked.spec.declarations}

    def all(self) -> Iterator[Occurrence]:
        for statement in self._document.statements:
            if statement.tokens[0].start not in self._read:
                yield from self._guessed(statement)
        for x in self._document.checked.spec.declarations:
            yield from self._declaration(x)

    def _declaration(self, x: ast.Declaration) -> Iterator[Occurrence]:
        if not isinstance(x, ast.Labels):
            yield Occurrence(Symbol("name", x.name.text), x.name.span, True)
        match x:
            case ast.Labels(body) if not isinstance(body, ast.File):
                yield from self._labels(body, True)
            case ast.Hierarchy(name, body) if not isinstance(body, ast.File):
                yield from self._branches(name.text, body)
            case ast.Costs(_, of, body) if not isinstance(body, ast.File | ast.PerRow):
                for entry in body:
                    if isinstance(entry.key, ast.Name):
                        symbol = Symbol("label", entry.key.text)
                        if of is not None:
                            symbol = self._category(of, entry.key.text)
                        yield Occurrence(symbol, entry.key.span)
            case ast.Distance(body=ast.Path(hierarchy)):
                yield Occurrence(Symbol("name", hierarchy.text), hierarchy.span)
            case ast.Category(_, body) if not isinstance(body, ast.File):
                yield from self._labels(body)
            case ast.Categories(name, body) if not isinstance(body, ast.File):
                for member in body:
                    yield Occurrence(Symbol("category", member.name.text, name.text), member.name.span, True)
                    yield from self._labels(member.items)
            case ast.Let(_, expr) | ast.LossDecl(_, expr) | ast.Limit(_, expr):
                yield from self._expression(expr)
        if isinstance(x, ast.Costs | ast.Distance) and x.of is not None:
            yield from self._reference(x.of)
        file = getattr(x, "body", None)
        if isinstance(file, ast.File):
            yield from self._file(x, file)

    def _labels(self, items: tuple[ast.Item, ...], defines: bool = False) -> Iterator[Occurrence]:
        for item in items:
            if isinstance(item, ast.Name):
                yield Occurrence(Symbol("label", item.text), item.span, defines)

    def _branches(self, hierarchy: str, body: tuple[ast.Branch | ast.Item, ...]) -> Iterator[Occurrence]:
        stack = list(body)
        while stack:
            part = stack.pop()
            if isinstance(part, ast.Branch):
                yield Occurrence(Symbol("node", part.name.text, hierarchy), part.name.span, True)
                stack.extend(part.children)
            else:
                yield from self._labels((part,))

    def _category(self, family: ast.Ref, name: str) -> Symbol:
        """The symbol of a category of `of`; if that is a level of a hierarchy, the category is a node."""
        if isinstance(self._document.declarations.get(family.head.text), ast.Hierarchy):
            return Symbol("node", name, family.head.text)
        return Symbol("category", name, family.head.text)

    def _expression(self, body: ast.Expr) -> Iterator[Occurrence]:
        stack: list[ast.Expr] = [body]
        while stack:
            expr = stack.pop()
            if isinstance(expr, ast.Ref):
                yield from self._reference(expr)
            elif isinstance(expr, ast.Call):
                for argument in expr.arguments or ():
                    if isinstance(argument, ast.SetLiteral):
                        yield from self._labels(argument.items)
            stack.extend(ast.children(expr))

    def _reference(self, ref: ast.Ref) -> Iterator[Occurrence]:
        head = ref.head.text
        yield Occurrence(Symbol("name", head), ref.head.span)
        declaration = self._document.declarations.get(head)
        for i, part in enumerate(ref.parts):
            if isinstance(part, ast.Indexed):
                if part.kind == "node":
                    yield Occurrence(Symbol("node", part.argument.text, head), part.argument.span)
            elif isinstance(declaration, ast.Hierarchy):
                yield Occurrence(Symbol("node" if i else "level", part.text, head), part.span)
            else:
                yield Occurrence(Symbol("category", part.text, head), part.span)

    def _file(self, x: ast.Declaration, file: ast.File) -> Iterator[Occurrence]:
        statement = self._document.statement_at(file.span.start)
        tokens = statement.tokens if statement is not None else []
        path = next((t for t in tokens if t.kind == "string" and t.start >= file.span.start), None)
        if path is not None:
            yield Occurrence(Symbol("file", file.path), Span(x.span.source, path.start, path.end))
        for column in (file.column, file.by):
            if column is not None:
                yield Occurrence(Symbol("column", column.text, file.path), column.span)
        for level in file.levels:
            assert isinstance(x, ast.Hierarchy), "`levels` elsewhere is a fault of the statement"
            yield Occurrence(Symbol("level", level.text, x.name.text), level.span, True)

    def _guessed(self, statement: Statement) -> Iterator[Occurrence]:
        """The words of a statement that does not parse: declared names, and labels between braces."""
        d, tokens, braces = self._document, statement.tokens, 0
        for i, token in enumerate(tokens):
            braces += (token.text == "{") - (token.text == "}")
            symbol = self._guess(tokens, i, braces > 0)
            if symbol is not None:
                named = i == 1 and tokens[0].text in STATEMENTS and tokens[0].text != "labels"
                yield Occurrence(symbol, Span(d.source, token.start, token.end), named)

    def _guess(self, tokens: list[Token], i: int, in_braces: bool) -> Symbol | None:
        d, token = self._document, tokens[i]
        if token.kind != "word" or token.text[0].isdecimal() or (i and tokens[i - 1].text == "."):
            return None
        if in_braces:
            return Symbol("label", token.text) if token.text in d.last_good_declarations.index else None
        if token.text in RESERVED or token.text in STATEMENTS:
            return None
        first = i == 1 and tokens[0].text in STATEMENTS and tokens[0].text != "labels"
        return Symbol("name", token.text) if first or token.text in d.declarations else None


# A cache, because several features ask for the same document; weak, so that old documents are freed.
_CACHE: WeakKeyDictionary[Document, list[Occurrence]] = WeakKeyDictionary()
