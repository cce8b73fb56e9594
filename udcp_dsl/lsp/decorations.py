"""What an editor shows of a text unasked: diagnostics with quick fixes, hints and lenses of oracles, and colours."""

from __future__ import annotations

from typing import Any

from udcp_dsl.diagnostics import Diagnostic, Span
from udcp_dsl.language import ast
from udcp_dsl.language.scan import Token, comments
from udcp_dsl.language.words import CALLED, KEYWORDS
from udcp_dsl.loss import Loss
from udcp_dsl.lsp.document import Document
from udcp_dsl.lsp.occurrences import Occurrence, occurrences
from udcp_dsl.predict.applicability import Applicability, lost_by, oracles

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


def inlay_hints(document: Document) -> list[dict[str, Any]]:
    """Facts that are not proved and rule out an oracle, each behind the smallest subexpression to blame."""
    found: dict[Span, list[tuple[str, str, tuple[str, ...]]]] = {}
    for loss in _losses(document):
        installed = oracles(loss)
        for name, fact in loss.facts:
            lost = lost_by(name, loss, installed)
            if lost and fact.blame is not None:
                state = "not" if fact.state == "refuted" else "not known to be"
                found.setdefault(fact.blame, []).append((f"{state} {name.replace('_', ' ')}", fact.reason, lost))
    hints = []
    for blame, facts in found.items():
        lost_here = list(dict.fromkeys(what for _, _, lost in facts for what in lost))
        named = list(dict.fromkeys(name for name, _, _ in facts))
        hints.append(
            {
                "position": document.lines.position(blame.end),
                "label": f"{', '.join(named)}: no {', no '.join(lost_here)}",
                "paddingLeft": True,
                "tooltip": "\n".join(dict.fromkeys(f"{name}: {reason}" for name, reason, _ in facts)),
            }
        )
    return hints


def code_lenses(document: Document) -> list[dict[str, Any]]:
    """Above each loss the oracles that apply, which are exact, and the order of magnitude of their time per row."""
    lenses = []
    for loss in _losses(document):
        declaration = document.declarations[loss.name]
        range_ = document.lines.span(declaration.span.start, declaration.span.start)
        taking = [x for x in oracles(loss) if x.applies]
        lo, hi = loss.facts.interval
        title = f"{', '.join(map(_shown, taking))}; values in [{lo + 0.0:.6g}, {hi + 0.0:.6g}]"
        lenses.append({"range": range_, "command": {"title": title, "command": ""}})
    return lenses


def _shown(oracle: Applicability) -> str:
    says = [*(["exact"] if oracle.exact else []), *([oracle.time.per_row] if oracle.time is not None else [])]
    return f"{oracle.name} ({', '.join(says)})" if says else oracle.name


def _losses(document: Document) -> list[Loss]:
    made = (document.loss(x.name.text) for x in document.checked.losses) if document.checked.sound else ()
    return [loss for loss in made if loss is not None]


TYPES = ("comment", "keyword", "function", "variable", "parameter", "class", "enumMember", "property", "string",
         "number", "operator")  # fmt: skip
MODIFIERS = ("declaration",)


def semantic_tokens(document: Document) -> dict[str, Any]:
    """The type of each word, which depends on its declaration, for the whole document: {"data": [...]}.

    Five numbers per token: lines and characters since the previous token, its length, its type and its modifiers.
    """
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
