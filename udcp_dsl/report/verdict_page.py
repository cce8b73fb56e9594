"""Verdicts, such as those of `udcp validate`, as a page in the design of our reports; it makes no request."""

from __future__ import annotations

from html import escape

from udcp_dsl.report.design import head
from udcp_dsl.showing import Description, Table
from udcp_dsl.showing.description import pieces
from udcp_dsl.showing.html_text import marked, paragraphs, table_html


def verdict_page(description: Description) -> str:
    """A page without a script, headed by the subject and the first line of the verdict.

    The other lines of the verdict follow, before the tables.
    """
    d = description
    (subject, _), *_ = pieces(d.title)
    verdict, *why = d.verdict
    text = "".join(text for text, _ in pieces(verdict))
    parts = [
        head(f"{subject}: {text}"),
        f"<header><h1>{escape(subject)}</h1>",
        f'<div class="verdict"><p class="conclusion">{marked(verdict)}</p>',
        *(['<pre tabindex="0">' + "\n".join(map(marked, why)) + "</pre>"] if why else []),
        f'</div><div class="muted">{paragraphs([d.title, *d.lines])}</div></header>',
        "<main>",
        *(_section(table) for table in d.tables if table.columns),
        paragraphs(d.notes),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _section(table: Table) -> str:
    title = "".join(text for text, _ in pieces(table.title))
    caption = f'<span class="hidden">{escape(title)}</span>'
    return f"<section><h2>{marked(table.title)}</h2>{table_html(table, caption)}{paragraphs([table.note])}</section>"
