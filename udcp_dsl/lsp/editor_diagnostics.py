"""Diagnostics in the shapes of the protocol: what is wrong, where else to look, and quick fixes."""

from __future__ import annotations

from typing import Any

from udcp_dsl.diagnostics import Diagnostic
from udcp_dsl.lsp.document import Document

_ERROR, _WARNING = 1, 2
_MOST = 1000  # diagnostics of one text: no editor shows more


def diagnostics(document: Document) -> list[dict[str, Any]]:
    """The errors and warnings of a document; the help is part of the message, and also in `data`."""
    return [_as_data(document, x) for x in document.diagnostics[:_MOST]]


def code_actions(document: Document, start: dict[str, int], end: dict[str, int]) -> list[dict[str, Any]]:
    """The quick fixes for diagnostics between two positions."""
    first, last = document.offset(start), document.offset(end)
    return [
        {
            "title": fix.title,
            "kind": "quickfix",
            "diagnostics": [_as_data(document, x)],
            "isPreferred": len(x.fixes) == 1,
            "edit": {
                "changes": {
                    document.uri: [
                        {"range": document.lines.range(edit.span), "newText": edit.text} for edit in fix.edits
                    ]
                }
            },
        }
        for x in document.diagnostics[:_MOST]
        if x.span.start <= last and first <= x.span.end
        for fix in x.fixes
    ]


def _as_data(document: Document, x: Diagnostic) -> dict[str, Any]:
    found: dict[str, Any] = {
        "range": document.lines.range(x.span),
        "severity": _ERROR if x.severity == "error" else _WARNING,
        "code": x.code,
        "source": "udcp",
        "message": x.message + (f"\nhelp: {x.help}" if x.help else ""),
        "data": {"help": x.help},
    }
    if x.related:
        found["relatedInformation"] = [
            {"location": {"uri": document.uri, "range": document.lines.range(other.span)}, "message": other.message}
            for other in x.related
        ]
    return found
