"""The text in an editor, compiled as far as possible, and what is cached from one keystroke to the next.

`Reader.read(text, folder)` returns a `Document`. Every feature of the language server is a function of a document (and
a position) that returns plain data in the shapes of the protocol; none needs an editor. Places are counted as editors
do: lines from 0 (they end at CR LF, LF or CR), and characters in units of UTF-16.
"""

from __future__ import annotations

import bisect
import os
import re
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from udcp_dsl.compile.declare import DeclarationCache, Declared
from udcp_dsl.compile.passes import Checked, check_spec, choose
from udcp_dsl.compile.sources import FileFault, Files, Table, read_csv
from udcp_dsl.diagnostics import Diagnostic, Source, Span, SpecError, keeping_warnings
from udcp_dsl.expression.facts import Facts
from udcp_dsl.expression.ir import Expression, Node
from udcp_dsl.language import ast
from udcp_dsl.language.scan import Statement, Token, scan
from udcp_dsl.loss import Loss

_LINE_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """The lines of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]
        self._plain = text.isascii()

    def position(self, offset: int) -> dict[str, int]:
        """
        >>> Lines("a\\n🙂x").position(3)
        {'line': 1, 'character': 2}
        """
        line = bisect.bisect_right(self._starts, offset) - 1
        return {"line": line, "character": self.length(self._text[self._starts[line] : offset])}

    def offset(self, line: int, character: int) -> int:
        """The nearest offset to a position, which may be outside of the text: an editor may have a newer one.

        >>> Lines("a\\n🙂x").offset(1, 2), Lines("a").offset(7, 0)
        (3, 1)
        """
        if line >= len(self._starts):
            return len(self._text)
        start, end = self._starts[max(line, 0)], self._ends[max(line, 0)]
        if self._plain:
            return min(start + max(character, 0), end)
        units = 0
        for at in range(start, end):
            if units >= character:
                return at
            units += self.length(self._text[at])
        return end

    def span(self, start: int, end: int) -> dict[str, Any]:
        """The range from one offset to another."""
        return {"start": self.position(start), "end": self.position(end)}

    def range(self, span: Span) -> dict[str, Any]:
        """The range of a span of the text."""
        return self.span(span.start, span.end)

    def length(self, text: str) -> int:
        """The length of a text in units of UTF-16."""
        return len(text) if self._plain else len(text.encode("utf-16-le", "surrogatepass")) // 2


Stamp = tuple[int, int, int]


class _FileCache:
    """A cache of the bytes and tables of data files, each valid until the file on disk changes."""

    def __init__(self) -> None:
        self.data: dict[tuple[Path, str], tuple[Stamp, bytes]] = {}
        self.tables: dict[tuple[Path | None, str], tuple[bytes, Table]] = {}


class CachedFiles(Files):
    """The files of one spec; those that did not change are not read again."""

    def __init__(self, folder: Path | None, cache: _FileCache) -> None:
        super().__init__(folder)
        self._cache = cache

    def _from_disk(self, path: str) -> bytes:
        if self.folder is None:
            return super()._from_disk(path)
        try:
            there = os.stat(self.folder / path)
        except (OSError, ValueError):
            return super()._from_disk(path)
        key, stamp = (self.folder, path), (there.st_mtime_ns, there.st_size, there.st_ino)
        if key in self._cache.data and self._cache.data[key][0] == stamp:
            return self._cache.data[key][1]
        data = super()._from_disk(path)
        self._cache.data[key] = stamp, data
        return data

    def table(self, path: str) -> Table:
        data = self.read(path)
        key = self.folder, path
        known = self._cache.tables.get(key)
        if known is None or known[0] is not data:
            known = self._cache.tables[key] = data, read_csv(path, data)
        return known[1]


class Document:
    """One state of a text. `declared` are its compiled declarations; `last_good_declarations` are the same or, if its
    labels do not compile, those of the last state whose labels did."""

    def __init__(self, checked: Checked, folder: Path | None, uri: str, before: Declared | None = None) -> None:
        self.checked = checked
        self.folder = folder
        self.uri = uri
        self.source: Source = checked.source
        self.text: str = checked.source.text
        self.declared: Declared = checked.declared
        current = checked.declared
        self.last_good_declarations: Declared = current if current.labels or before is None else before
        self._facts: dict[int, Facts] = {}
        self._losses: dict[str, Loss | SpecError] = {}

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.text)

    @cached_property
    def statements(self) -> list[Statement]:
        return scan(self.source)

    @cached_property
    def declarations(self) -> dict[str, ast.Declaration]:
        """The first declaration of each name."""
        found: dict[str, ast.Declaration] = {}
        for x in self.checked.spec.declarations:
            if not isinstance(x, ast.Labels):
                found.setdefault(x.name.text, x)
        return found

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the data files that the text names, as written."""
        bodies = (getattr(x, "body", None) for x in self.checked.spec.declarations)
        return tuple(dict.fromkeys(body.path for body in bodies if isinstance(body, ast.File)))

    def offset(self, position: dict[str, int]) -> int:
        return self.lines.offset(position["line"], position["character"])

    def statement_at(self, offset: int) -> Statement | None:
        """The last statement that starts at or before an offset."""
        found = None
        for statement in self.statements:
            if statement.tokens[0].start > offset:
                break
            found = statement
        return found

    def token_at(self, offset: int) -> Token | None:
        """The token around an offset; between two adjacent tokens, preferably a word or string."""
        statement = self.statement_at(offset)
        touching = [t for t in statement.tokens if t.start <= offset <= t.end] if statement is not None else []
        return max(touching, key=lambda t: (t.kind in ("word", "string"), t.start), default=None)

    def table(self, path: str) -> Table | None:
        """A CSV file that the text names, if it can be read."""
        try:
            return self.declared.files.table(path) if path.lower().endswith(".csv") else None
        except FileFault:
            return None

    def loss(self, name: str) -> Loss | None:
        """One loss of the text, or None if it does not compile."""
        found = self._loss(name)
        return found if isinstance(found, Loss) else None

    def _loss(self, name: str) -> Loss | SpecError:
        if name not in self._losses:
            try:
                self._losses[name] = Loss(choose(self.checked, name))
            except SpecError as error:
                self._losses[name] = error
        return self._losses[name]

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every error and warning, including those about single losses."""
        from udcp_dsl.expression.explain import free_labels_warning

        found = list(self.checked.diagnostics)
        if self.checked.sound:
            for declaration in self.checked.losses:
                loss = self._loss(declaration.name.text)
                if isinstance(loss, SpecError):
                    found += [x for x in loss.diagnostics if x not in found]
                elif (free := free_labels_warning(loss)) is not None:
                    found.append(free)
        return tuple(found)

    def facts(self, node: Node) -> Facts:
        """The facts of one expression, cached."""
        from udcp_dsl.expression.prove import prove

        if id(node) not in self._facts:
            with keeping_warnings():  # they are reported with the loss
                self._facts[id(node)] = prove(Expression(node), self.declared.labels)[id(node)]
        return self._facts[id(node)]


def expressions_at(document: Document, offset: int) -> list[ast.Expr]:
    """The expressions around an offset, from the body of a let, loss or limit down to the smallest."""
    bodies = [x.body for x in document.checked.spec.declarations if isinstance(x, ast.Let | ast.LossDecl | ast.Limit)]
    found: list[ast.Expr] = []
    inside = [body for body in bodies if body.span.start <= offset <= body.span.end]
    while inside:
        found.append(inside[0])
        inside = [e for e in ast.children(inside[0]) if e.span.start <= offset <= e.span.end]
    return found


class Reader:
    """Reads texts, and caches what the next state of the same text will need again: data, tables, declarations."""

    def __init__(self) -> None:
        self._file_cache = _FileCache()
        self._declaration_caches: dict[str, DeclarationCache] = {}
        self._documents: dict[str, Document] = {}
        self._lock = Lock()  # a server calls from several threads

    def read(self, text: str, folder: str | Path | None = None, uri: str = "untitled:spec.loss") -> Document:
        """The document of a text whose data files lie below `folder`. The same text and files give the same object."""
        where = None if folder is None else Path(folder)
        with self._lock:
            files, last = CachedFiles(where, self._file_cache), self._documents.get(uri)
            if last is not None and last.text == text and last.folder == where and self._unchanged(last, files):
                return last
            cache = self._declaration_caches.setdefault(uri, DeclarationCache())
            checked = check_spec(Source(uri.rpartition("/")[2], text), files, cache=cache)
            document = Document(checked, where, uri, None if last is None else last.last_good_declarations)
            self._documents[uri] = document
            return document

    def forget(self, uri: str) -> None:
        """Drop the cache of a text that was closed."""
        self._documents.pop(uri, None)
        self._declaration_caches.pop(uri, None)

    @staticmethod
    def _unchanged(document: Document, files: Files) -> bool:
        before = document.declared.files.read_so_far
        for path in document.files:
            try:
                if files.read(path) is not before.get(path):
                    return False
            except FileFault:
                if path in before:
                    return False
        return True
