"""Diagnostics as data: what is wrong, where else to look, and the ways out that an editor can carry out by itself.

A way out is told in words. What they may say to write is tried, and is a quick fix where the fault is gone with it and
nothing is wrong with what was written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from udcp_dsl.diagnostics import Diagnostic
from udcp_dsl.language import ast
from udcp_dsl.language.scan import Token
from udcp_dsl.language.unparse import written
from udcp_dsl.lsp.document import Document, expressions_at
from udcp_dsl.lsp.occurrences import occurrence_at, same

_ERROR, _WARNING = 1, 2
_MOST_TRIED = 12  # texts, for one request
# A name in a help text, as repr writes it.
_NAME = re.compile(r"'((?:[^'\\\\]|\\\\.)*)'|\"((?:[^\"\\\\]|\\\\.)*)\"")
# Between two ways out: `sum(c) or max(c)`, `diameter(d), spread(d) or radius(d)`.
_BETWEEN = re.compile(r" or |, (?=[a-z]+\()")

# What to write from one offset to another.
_Edit = tuple[int, int, str]


def diagnostics(document: Document) -> list[dict[str, Any]]:
    """Every fault and warning of a document; the help is part of the message, and by itself in `data`."""
    return [_as_data(document, x) for x in document.diagnostics]


def code_actions(document: Document, start: dict[str, int], end: dict[str, int]) -> list[dict[str, Any]]:
    """The quick fixes for what is wrong between two positions."""
    first, last = document.offset(start), document.offset(end)
    found = []
    tried = 0
    for x in document.diagnostics:
        if not (x.span.start <= last and first <= x.span.end):
            continue
        fixes = []
        for edit in dict.fromkeys(_edits(document, x)):
            tried += 1
            if tried <= _MOST_TRIED and _mends(document, x, edit):
                fixes.append(edit)
        for begin, stop, text in fixes:
            change = {"range": document.lines.span(begin, stop), "newText": text}
            found.append(
                {
                    "title": f"Write {text.strip()}" if begin < stop else f"Add {text.strip(' ,')}",
                    "kind": "quickfix",
                    "diagnostics": [_as_data(document, x)],
                    "isPreferred": len(fixes) == 1,
                    "edit": {"changes": {document.uri: [change]}},
                }
            )
    return found


def _as_data(document: Document, x: Diagnostic) -> dict[str, Any]:
    found: dict[str, Any] = {
        "range": document.lines.range(x.span),
        "severity": _ERROR if x.severity == "error" else _WARNING,
        "code": x.code,
        "source": "udcp",
        "message": x.message + (f"\nhelp: {x.help}" if x.help else ""),
        "data": {"help": x.help},
    }
    related = _related(document, x)
    if related:
        found["relatedInformation"] = related
    return found


def _related(document: Document, x: Diagnostic) -> list[dict[str, Any]]:
    """The other places that a fault is about: the first declaration of a name, the first of a label, a cycle."""

    def place(start: int, end: int, message: str) -> dict[str, Any]:
        return {"location": {"uri": document.uri, "range": document.lines.span(start, end)}, "message": message}

    if x.code == "E201":
        first = document.declarations.get(x.span.text)
        if first is not None and not isinstance(first, ast.Labels):
            return [place(first.name.span.start, first.name.span.end, "it is declared here first")]
    if x.code == "E202":
        labels = next(y for y in document.checked.spec.declarations if isinstance(y, ast.Labels))
        return [place(labels.span.start, labels.span.end, "the labels are declared here first")]
    if x.code in ("E205", "E231") and (here := occurrence_at(document, x.span.start)) is not None:
        earlier = [y for y in same(document, here.symbol) if y.span.start < x.span.start]
        statement = document.statement_at(x.span.start)
        inside = [y for y in earlier if statement is not None and y.span.start >= statement.tokens[0].start]
        return [place(y.span.start, y.span.end, "it is listed here first") for y in inside[:1]]
    if x.code == "E250":
        param = next((y for y in document.declarations.values() if y.span.start <= x.span.start <= y.span.end), None)
        if isinstance(param, ast.Param) and param.low is not None and param.high is not None:
            return [place(param.low.span.start, param.high.span.end, "its range")]
    if x.code == "E260":
        names = x.message.partition(": ")[2].split(" -> ")[:-1]
        found = (document.declarations.get(name) for name in names)
        return [
            place(y.name.span.start, y.name.span.end, "part of the cycle")
            for y in found
            if y is not None and not isinstance(y, ast.Labels)
        ]
    return []


def _mends(document: Document, x: Diagnostic, edit: _Edit) -> bool:
    """Whether there are fewer faults of this kind after an edit, no more of syntax, and none in what was written."""
    start, end, text = edit
    after = document.check(document.text[:start] + text + document.text[end:])
    if x.severity == "warning":
        return after.checked.sound and (x.code, x.message) not in {(y.code, y.message) for y in after.diagnostics}
    wrong = [y for y in after.checked.diagnostics if y.severity == "error"]
    codes, before = Counter(y.code for y in wrong), Counter(y.code for y in document.checked.diagnostics)
    inside = any(start <= y.span.start and y.span.end <= start + len(text) for y in wrong) if text else False
    return not inside and codes[x.code] < before[x.code] and _syntax(codes) <= _syntax(before)


def _syntax(codes: Counter[str]) -> int:
    return sum(many for code, many in codes.items() if code.startswith("E1"))


def _edits(document: Document, x: Diagnostic) -> Iterator[_Edit]:
    """What the words of a way out may mean."""
    start, end = x.span.start, x.span.end
    if x.code == "E408":  # underlined is an argument, and the way out is about the call
        calls = [y.span for y in expressions_at(document, start) if isinstance(y, ast.Call)]
        start, end = (calls[-1].start, calls[-1].end) if calls else (start, end)
    if x.help.startswith("did you mean "):
        token = _wrong_name(document, x)
        for name in (_named(a, b) for a, b in _NAME.findall(x.help)):
            if token is None:
                yield start, end, written(name)
            else:
                path = token.kind == "string" and x.code == "E301"
                yield token.start, token.end, json.dumps(name, ensure_ascii=False) if path else written(name)
    elif "write " in x.help:
        meant = x.help[x.help.index("write ") + len("write ") :].partition(";")[0].strip()
        quoted = [a for a, _ in _NAME.findall(meant) if a]
        for way in quoted or (meant, *_BETWEEN.split(meant), *meant.split(", ")[:1]):
            bare = way.strip()
            if bare and "..." not in bare:
                yield start, end, bare
    elif x.help.startswith("remove it"):
        yield start, end, ""
    elif "`default: 0`" in x.help:
        close = document.text.find("}", end)
        before = document.text[: max(close, 0)].rstrip()
        yield len(before), len(before), " default: 0" if before.endswith(("{", ",")) else ", default: 0"
    if "+ 0.01 * size" in x.help:
        yield end, end, " + 0.01 * size"
    if x.help.startswith("add '") and len(x.help) > 5:  # a bracket that is never closed
        statement = document.statement_at(start)
        if statement is not None:
            last = statement.tokens[-1].end
            yield last, last, f" {x.help[5]}"


def _named(single: str, double: str) -> str:
    """A name as `repr` wrote it, in the quotes that it chose."""
    return (single or double).replace("\\'", "'").replace("\\\\", "\\")


def _wrong_name(document: Document, x: Diagnostic) -> Token | None:
    """The name that the message is about, where the span has more in it, as that of a file's clauses does."""
    statement = document.statement_at(x.span.start)
    for token in statement.tokens if statement is not None else ():
        if x.span.start <= token.start and token.end <= x.span.end and token.kind in ("word", "string"):
            try:
                name = json.loads(token.text) if token.kind == "string" else token.text
            except ValueError:
                continue
            if repr(name) in x.message:
                return token
    return None
