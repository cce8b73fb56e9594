"""Hover texts: first the meaning (an atom's page up to its first section, what a name stands for, the comment of its
declaration), then the type and the facts of the expression, and the rest of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from udcp_dsl.compile.sources import FileFault
from udcp_dsl.compile.type_checker import Value
from udcp_dsl.expression.domain import Category, Costs, Family, Hierarchy
from udcp_dsl.expression.explain import shown_blame
from udcp_dsl.expression.facts import Facts
from udcp_dsl.expression.inputs import RowCosts, RowInput
from udcp_dsl.language import ast
from udcp_dsl.language.words import RESERVED
from udcp_dsl.lsp.describe import described, described_thing, page, type_of
from udcp_dsl.lsp.document import Document, expressions_at
from udcp_dsl.lsp.occurrences import Symbol, occurrence_at

_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_PER_ROW = ("per", "row")  # which are names elsewhere
_SHOWN = 12  # labels, nodes, costs of a list


def hover(document: Document, position: dict[str, int]) -> dict[str, Any] | None:
    """The Markdown for a position and the range that it is about, or None."""
    offset = document.offset(position)
    found = occurrence_at(document, offset)
    if found is not None:
        text = "\n\n".join(part for part in _TEXTS[found.symbol.kind](document, found.symbol) if part)
        return _shown(document, text, found.span.start, found.span.end) if text else None
    token = document.token_at(offset)
    if token is None:
        return None
    around = expressions_at(document, offset)
    meaning, rest = "", ""
    if token.kind == "word" and (token.text in RESERVED or (token.text in _PER_ROW and not around)):
        meaning, heading, rest = page(token.text).partition("\n## ")
        rest = heading.strip() + " " + rest if rest else ""
    facts = list(_expression(document, around[-1])) if around else []
    parts = [meaning.strip(), *(["---"] if meaning and facts else []), *facts, *(["---", rest] if rest else [])]
    start, end = (around[-1].span.start, around[-1].span.end) if around else (token.start, token.end)
    text = "\n\n".join(part for part in parts if part)
    return _shown(document, text, start, end) if text else None


def _shown(document: Document, text: str, start: int, end: int) -> dict[str, Any]:
    return {"contents": {"kind": "markdown", "value": text}, "range": document.lines.span(start, end)}


def _expression(document: Document, expr: ast.Expr) -> Iterator[str]:
    value = document.checked.checker.checked.get(id(expr))
    if value is not None:
        yield f"`{_short(expr.span.line)}`: {type_of(value)}"
        yield from _facts_of(document, value)


def _facts_of(document: Document, value: Value) -> Iterator[str]:
    if value.number is None and document.declared.labels:
        yield facts_table(document.facts(value.node))


def facts_table(facts: Facts) -> str:
    """The interval, and every fact with its state and its reason, as a table of Markdown."""
    lo, hi = facts.interval
    rows = [f"values in [{lo + 0.0:.10g}, {hi + 0.0:.10g}]", "", "| fact | state | why |", "|---|---|---|"]
    for name, fact in facts:
        why = fact.reason + (f"; because of {shown_blame(fact.blame)}" if fact.blame is not None else "")
        rows.append(f"| {name} | {fact} | {_cell(why)} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _short(text: str) -> str:
    return text.replace("`", "'") if len(text) <= 80 else text[:77].replace("`", "'") + "..."


def _name(document: Document, symbol: Symbol) -> Iterator[str]:
    name = symbol.name
    if name not in document.declarations and name not in document.last_good_declarations.things:
        return
    yield f"**{name}** {described(document, name)}"
    yield _comment(document, name)
    d = document.last_good_declarations
    thing = d.things.get(name)
    match thing:
        case RowInput() | RowCosts():
            column = "a column of lists" if isinstance(thing, RowCosts) else "a column"
            yield f"Given with each row: {column} `{name}` of the table, or `inputs=` in Python."
        case Costs(_, values, of):
            yield _listed(f"{key}: {value:.10g}" for key, value in _largest(of.names if of else d.labels, values))
        case Category():
            yield _listed(d.labels[y] for y in thing.members.tolist())
        case Family():
            yield _listed(f"{key} ({thing.starts[i + 1] - thing.starts[i]})" for i, key in enumerate(thing.names))
        case Hierarchy():
            yield _listed(f"{thing.names[v]} ({len(thing.members(v))})" for v in thing.children[0])
    value = document.checked.checker.values.get(name)
    if value is not None:
        yield from _facts_of(document, value)


def _comment(document: Document, name: str) -> str:
    """The author's comment on a declaration: at the end of its first line, else the lines above it."""
    declared = document.declarations.get(name)
    if declared is None:
        return ""
    text, start = declared.span.source.text, declared.span.start
    line = text[start:].split("\n", 1)[0]
    strings = _STRING.sub(lambda found: " " * len(found[0]), line)
    if "#" in strings:
        return _cell(line[strings.index("#") :].lstrip("# ").strip())
    above: list[str] = []
    for before in reversed(text[:start].split("\n")[:-1]):
        if not before.startswith("#"):
            break
        above.append(before.lstrip("# ").strip())
    return _cell(" ".join(reversed(above)))


def _largest(names: tuple[str, ...], values: Any) -> list[tuple[str, float]]:
    """The costs, the largest first."""
    return [(names[i], float(values[i])) for i in np.argsort(-values, kind="stable")[: _SHOWN + 1].tolist()]


def _label(document: Document, symbol: Symbol) -> Iterator[str]:
    d, label = document.last_good_declarations, symbol.name
    if label not in d.index:
        yield f"**{label}**: no label of this spec"
        return
    y = d.index[label]
    yield f"**{label}**: label {y + 1} of {len(d.labels):,}"
    rows = []
    for name, thing in d.things.items():
        if isinstance(thing, RowCosts) and thing.of is None:
            rows.append(f"- {name}: given with each row, {thing.low:.10g} to {thing.high:.10g}")
        elif isinstance(thing, Costs) and thing.of is None and len(thing.values) > y:
            rows.append(f"- {name}: {thing.values[y]:.10g}")
        elif isinstance(thing, Category) and thing.mask[y]:
            rows.append(f"- in {name}")
        elif isinstance(thing, Family):
            starts, category = thing.by_label
            inside = [thing.names[i] for i in category[starts[y] : starts[y + 1]].tolist()]
            rows.append(f"- {name}: {', '.join(inside) or 'none'}")
        elif isinstance(thing, Hierarchy):
            rows.append(f"- {name}: {' > '.join(thing.path_to(int(thing.leaf[y])))}")
    yield "\n".join(rows)


def _members(document: Document, symbol: Symbol) -> Iterator[str]:
    d = document.last_good_declarations
    thing = d.things.get(symbol.of)
    if isinstance(thing, Family) and symbol.name in thing.names:
        category = thing.category(thing.names.index(symbol.name))
        yield f"**{symbol.of}.{symbol.name}** {described_thing(category)}"
        yield _listed(d.labels[y] for y in category.members.tolist())
    elif isinstance(thing, Hierarchy):
        for node in [v for v, name in enumerate(thing.names) if name == symbol.name][:3]:
            inside = thing.members(node).tolist()
            yield f"**{' > '.join(thing.path_to(node)) or 'the root'}** node of {symbol.of}, {len(inside):,} labels"
            yield _listed(d.labels[y] for y in inside)


def _level(document: Document, symbol: Symbol) -> Iterator[str]:
    thing = document.last_good_declarations.things.get(symbol.of)
    if isinstance(thing, Hierarchy) and symbol.name in thing.levels:
        family = thing.level(thing.levels.index(symbol.name) + 1)
        yield f"**{symbol.of}.{symbol.name}** level {thing.levels.index(symbol.name) + 1}: {len(family)} nodes"
        yield _listed(f"{name} ({family.starts[i + 1] - family.starts[i]})" for i, name in enumerate(family.names))


def _column(document: Document, symbol: Symbol) -> Iterator[str]:
    table = document.table(symbol.of)
    if table is not None and symbol.name in table.header:
        at = table.positions[symbol.name]
        yield f"**{symbol.name}** column of {symbol.of}, {len(table.rows):,} rows"
        yield _listed(dict.fromkeys(row[at] for row in table.rows))


def _file(document: Document, symbol: Symbol) -> Iterator[str]:
    path, table = symbol.name, document.table(symbol.name)
    if table is not None:
        yield f"**{path}** {len(table.rows):,} rows"
        yield _listed(table.header)
        return
    try:
        yield f"**{path}** {len(document.declared.files.read(path)):,} bytes"
    except FileFault as fault:
        yield f"{fault.message}: {fault.help}"


def _listed(names: Any) -> str:
    shown = list(islice(names, _SHOWN + 1))
    return ", ".join(_cell(name) for name in shown[:_SHOWN]) + (", ..." if len(shown) > _SHOWN else "")


_TEXTS: dict[str, Callable[[Document, Symbol], Iterator[str]]] = {
    "name": _name,
    "label": _label,
    "category": _members,
    "node": _members,
    "level": _level,
    "column": _column,
    "file": _file,
}
