"""What is known about a loss, as text and as data: facts with reasons, for the loss and for each summand.

A fact that is not proved names the smallest subexpression that prevents the proof.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import Diagnostic, Edit, Fix, Span
from udcp_dsl.expression.facts import Fact, Facts, Interval
from udcp_dsl.expression.ir import Node, Scale, summands
from udcp_dsl.language import ast

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_WIDTH = 100


def facts_as_dict(loss: Loss) -> dict[str, object]:
    """Facts, interval and summands as plain data: the facts of `udcp check --json`."""
    return {
        "interval": _ends(loss.facts.interval),
        "facts": {name: _fact_as_dict(fact) for name, fact in loss.facts},
        "summands": [_summand_as_dict(node, loss.facts_of(node)) for node in summands(loss.expression.root)],
    }


def explain(loss: Loss) -> str:
    """Every fact of the loss with its reason, then each summand with its facts in short form.

    >>> import udcp_dsl as udcp
    >>> print(udcp.loads("labels {a, b}  loss l = size + 2 * any({a, b})").explain().splitlines()[0])
    l: 2 labels, values in [0, 4]
    """
    lines = [f"{loss.name}: {summary(loss)}", ""]
    for name, fact in loss.facts:
        lines.extend(_wrapped(f"  {name:<14} {fact.state:<8} ", fact.reason))
        if fact.blame is not None:
            lines.extend(_wrapped(" " * 26, f"because of {shown_blame(fact.blame)}"))
    parts = list(summands(loss.expression.root))
    if len(parts) > 1:
        lines += ["", "summands"]
        for node in parts:
            facts = loss.facts_of(node)
            lines.extend(_wrapped("  ", f"{written(node)}  in {_shown(facts.interval)}"))
            for state in ("proved", "refuted", "unknown"):
                names = [name for name, fact in facts if fact.state == state]
                if names:
                    lines.extend(_wrapped(f"    {state:<8} ", ", ".join(names)))
    return "\n".join(lines)


def free_labels_warning(loss: Loss) -> Diagnostic | None:
    """W601: labels that cost nothing on their own, if there are any."""
    free = loss.free_labels
    if not free:
        return None
    negative = loss.negative_labels
    gain, below = bool(negative), set(negative)
    groups = {
        "labels of negative cost": negative,
        "labels that cost nothing": [label for label in free if label not in below],
    }
    what = ", and ".join(f"{kind}: {first_names(labels)}" for kind, labels in groups.items() if labels)
    way_out = (
        "give each label a cost above 0; is the sign right?" if gain else "give `size` a small weight: + 0.01 * size"
    )
    message, fixes = f"{what}; cost-aware oracles put them into every set", () if gain else (_small_weight(loss),)
    return Diagnostic("W601", loss.expression.root.span, message, way_out, "warning", fixes)


def first_names(labels: Sequence[str]) -> str:
    """Some labels in a message: the first three, and how many more."""
    return ", ".join(map(repr, labels[:3])) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")


def _small_weight(loss: Loss) -> Fix:
    """The fix that adds `+ 0.01 * size` to the loss; a body that binds less tightly than a sum gets parentheses."""
    body = loss._compiled.body
    source, start, end = body.span.source, body.span.start, body.span.end
    added = " + 0.01 * size"
    loose = isinstance(body, ast.If | ast.Or | ast.And | ast.Not | ast.Comparison)
    if not loose or body.span.text.startswith("("):
        return Fix.add(source, end, added)
    opened, closed = Edit(Span(source, start, start), "("), Edit(Span(source, end, end), ")" + added)
    return Fix(f"Add {added.strip()}", (opened, closed))


def summary(loss: Loss) -> str:
    """The number of labels, and the bounds of the loss."""
    return f"{loss.K} label{'s' if loss.K > 1 else ''}, values in {_shown(loss.facts.interval)}"


def shown_blame(blame: Span) -> str:
    """The text of a blamed subexpression, and its line."""
    return f"{blame.line} (line {blame.source.position(blame.start)[0]})"


def _ends(interval: Interval) -> list[float]:
    return [end + 0.0 for end in interval]  # -0 becomes 0


def _shown(interval: Interval) -> str:
    return "[" + ", ".join(f"{end:.10g}" for end in _ends(interval)) + "]"


def _fact_as_dict(fact: Fact) -> dict[str, object]:
    blame = None
    if fact.blame is not None:
        line, column = fact.blame.source.position(fact.blame.start)
        blame = {"text": fact.blame.line, "line": line, "column": column}
    return {"state": fact.state, "reason": fact.reason, "blame": blame, "sets": [sorted(s) for s in fact.sets]}


def _summand_as_dict(node: Node, facts: Facts) -> dict[str, object]:
    return {
        "text": written(node),
        "interval": _ends(facts.interval),
        "facts": {name: fact.state for name, fact in facts},
    }


def written(node: Node) -> str:
    """The text of a summand; the span of a subtracted one lacks the sign."""
    return f"-{node.text}" if isinstance(node, Scale) and node.span == node.operand.span else node.text


def _wrapped(lead: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False
    ) or [lead.rstrip()]
