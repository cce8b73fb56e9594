"""The oracles that apply, with their time, above each loss; behind subexpressions, the oracles that they rule out."""

from __future__ import annotations

from typing import Any

from udcp_dsl.diagnostics import Span
from udcp_dsl.loss import Loss
from udcp_dsl.lsp.document import Document
from udcp_dsl.predict.applicability import Applicability, lost_by, oracles


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
