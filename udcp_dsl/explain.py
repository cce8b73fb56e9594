"""What is known about a loss, put for people and machines: facts with reasons and blame, and what they buy.

A fact that fails names the smallest subexpression that stands in its way, and the oracle that is lost by it.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from udcp_dsl.diagnostics import Diagnostic, OracleError, Span
from udcp_dsl.facts import Fact, Facts, Interval
from udcp_dsl.ir import Node, Scale, summands

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss

_WIDTH = 100


@dataclass(frozen=True)
class Applicability:
    """Whether an oracle takes a loss: what it does for it, or why it does not."""

    name: str
    applies: bool
    why: str


@dataclass(frozen=True)
class _Use:
    """What an oracle does, the facts that it needs, and those of which one is enough to make it quick."""

    does: str
    needs: tuple[str, ...] = ()
    quick_when: tuple[str, ...] = ()
    quick: str = ""
    slow: str = ""


# Importing a solver takes longer than all the rest of a check, so what is said here of the usual oracles is said
# without loading them (and the tests hold it to what their constructors do). An oracle that is not listed is made.
_USES = {
    "base": _Use("labels by falling p; knows no cost"),
    "lac": _Use("labels above one p; knows no cost, sets are small"),
    "raps": _Use("base, with a penalty on rank"),
    "penalized": _Use("base, with a penalty on cost that is tuned on rows of its own"),
    "ratio": _Use("cost by probability: exactly optimal", needs=("separable", "monotone")),
    "greedy": _Use(
        "adds the label that leaves most room below the bound",
        quick_when=("monotone",),
        quick="lazy",
        slow="every label anew at each step",
    ),
    "price": _Use(
        "buys coverage where it is cheapest",
        quick_when=("separable", "laminar", "tree_diameter", "cardinality"),
        quick="very fast",
        slow="by an exact search at every price",
    ),
}


def oracles(loss: Loss) -> tuple[Applicability, ...]:
    """Every oracle that is installed, and whether it applies to the loss."""
    from udcp_dsl.oracle import oracle_names

    return tuple(_applicability(name, loss) for name in oracle_names())


def lost_by(name: str, loss: Loss, installed: Sequence[str]) -> tuple[str, ...]:
    """Of the installed oracles, what the loss cannot have because the fact called `name` is not proved."""
    return tuple(_lost(name, loss.facts, installed))


def facts_as_dict(loss: Loss) -> dict[str, object]:
    """Facts, interval and summands as plain data: the facts of `udcp check --json`."""
    return {
        "interval": list(loss.facts.interval),
        "facts": {name: _fact_as_dict(fact) for name, fact in loss.facts},
        "summands": [_summand_as_dict(node, loss.facts_of(node)) for node in summands(loss.expression.root)],
    }


def explain(loss: Loss) -> str:
    """Every fact of the loss with its reason, then each summand with its facts in short form.

    >>> import udcp_dsl as udcp
    >>> print(udcp.loads("labels {a, b}  loss l = size + 2 * any({a, b})").explain().splitlines()[0])
    l: 2 labels, values in [0, 4]
    """
    lines = [f"{loss.name}: {loss.K} labels, values in {shown_interval(loss.facts.interval)}", ""]
    for name, fact in loss.facts:
        lines.extend(_wrapped(f"  {name:<14} {fact.state:<8} ", fact.reason))
        if fact.blame is not None:
            lines.extend(_wrapped(" " * 26, f"because of {shown_blame(fact.blame)}"))
    parts = list(summands(loss.expression.root))
    if len(parts) > 1:
        lines += ["", "summands"]
        for node in parts:
            facts = loss.facts_of(node)
            lines.extend(_wrapped("  ", f"{_written(node)}  in {shown_interval(facts.interval)}"))
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
    named = ", ".join(map(repr, free[:3])) + (f" and {len(free) - 3} more" if len(free) > 3 else "")
    return Diagnostic(
        "W601",
        loss.expression.root.span,
        f"{named}: {'free labels' if len(free) > 1 else 'a free label'}, at no cost beyond that of the empty set;"
        " oracles that are led by cost put such labels into every set",
        "give `size` a small weight: + 0.01 * size",
        "warning",
    )


def shown_interval(interval: Interval) -> str:
    return f"[{interval.lo:.10g}, {interval.hi:.10g}]"


def shown_blame(blame: Span) -> str:
    """The subexpression that stands in the way, and where it is written."""
    return f"{blame.line} (line {blame.source.position(blame.start)[0]})"


def _applicability(name: str, loss: Loss) -> Applicability:
    use = _USES.get(name)
    if use is None:
        return _tried(name, loss)
    for need in use.needs:
        fact: Fact = getattr(loss.facts, need)
        if not fact:
            return Applicability(name, False, f"needs {need}, which is {fact}: {fact.reason}")
    if not use.quick_when:
        return Applicability(name, True, use.does)
    quick = next((fact for fact in use.quick_when if getattr(loss.facts, fact)), None)
    return Applicability(name, True, f"{use.does}; {use.slow if quick is None else f'{use.quick} ({quick})'}")


def _tried(name: str, loss: Loss) -> Applicability:
    from udcp_dsl.oracle import make_oracle

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when it is used
            made = make_oracle(name, loss)
    except OracleError as error:
        return Applicability(name, False, str(error))
    except Exception as error:  # whatever a stranger's constructor raises is no fault of the spec
        return Applicability(name, False, f"its constructor fails: {type(error).__name__}: {error}")
    lines = (type(made).__doc__ or "").strip().splitlines()
    return Applicability(name, True, lines[0] if lines else "its constructor takes the loss")


def _lost(name: str, facts: Facts, installed: Sequence[str]) -> Iterator[str]:
    if getattr(facts, name):
        return
    for oracle in installed:
        use = _USES.get(oracle)
        if use is None:
            continue
        if name in use.needs:
            yield oracle
        elif name in use.quick_when and not any(getattr(facts, other) for other in use.quick_when):
            yield f"{oracle} is not {use.quick}"


def _fact_as_dict(fact: Fact) -> dict[str, object]:
    blame = None
    if fact.blame is not None:
        line, column = fact.blame.source.position(fact.blame.start)
        blame = {"text": fact.blame.line, "line": line, "column": column}
    return {"state": fact.state, "reason": fact.reason, "blame": blame, "sets": [sorted(s) for s in fact.sets]}


def _summand_as_dict(node: Node, facts: Facts) -> dict[str, object]:
    return {
        "text": _written(node),
        "interval": list(facts.interval),
        "facts": {name: fact.state for name, fact in facts},
    }


def _written(node: Node) -> str:
    """The text of a summand; one that is taken away has the span of what it takes away."""
    return f"-{node.text}" if isinstance(node, Scale) and node.span == node.operand.span else node.text


def _wrapped(lead: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False
    ) or [lead.rstrip()]
