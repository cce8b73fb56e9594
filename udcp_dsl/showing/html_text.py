"""A description as HTML: a fragment for notebooks, and a page that stands alone. Every text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from udcp_dsl.showing.description import Description, Line, Table, pieces
from udcp_dsl.showing.shared_wording import visible_lines

_STYLE = """
:root { color-scheme: light dark; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2 { line-height: 1.25; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #ddd; }
td { overflow-wrap: break-word; } td:first-child, td:last-child:not(:empty) { min-width: 9rem; }
td:nth-child(2) { white-space: nowrap; } td.number:last-child { min-width: 0; }
.scroll { overflow-x: auto; }
tr, pre { break-inside: avoid; } h2, h2 + p, thead { break-after: avoid; }
th.number, td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.good { color: #17692d; } .bad { color: #b00020; font-weight: bold; } .open { color: #855500; }
.bold { font-weight: bold; } .dim { color: #666; } h2 .dim { font-weight: normal; }
pre { white-space: pre-wrap; background: #fbeaec; padding: 0.75rem; }
@media print { .scroll { overflow: visible; } }
@media screen and (prefers-color-scheme: dark) {
  body { background: #161616; color: #ddd; } th, td { border-color: #444; } pre { background: #3a1a1f; }
  .good { color: #6cc58a; } .bad { color: #ff7a8a; } .open { color: #e2b04a; } .dim { color: #9a9a9a; }
}
"""
_TEXT, _NUMBER = 'style="text-align: left"', 'class="number" style="text-align: right"'
_BOLD = ' style="font-weight: bold"'


def as_html(description: Description) -> str:
    """A fragment, for notebooks."""
    d = description
    tables = (f"{_paragraphs([t.title])}{_table(t)}{_paragraphs([t.note])}" for t in d.tables if t.columns)
    folded = (
        f"<details><summary>{escape(head)}</summary><pre>{escape(visible_lines(text))}</pre></details>"
        for head, text in d.folded.items()
    )
    parts = [_paragraphs([d.title, *d.lines]), *tables, _paragraphs([*d.notes, *d.verdict]), *folded]
    return f"<div>{''.join(parts)}</div>"


def as_page(description: Description) -> str:
    """A page without scripts, fonts or images, headed by the subject and the first line of the verdict.

    What else the verdict says stands below, before the tables.
    """
    d = description
    (subject, _), *_ = pieces(d.title)
    verdict, *why = d.verdict
    told = "".join(text for text, _ in pieces(verdict))
    tables = (f"<h2>{_marked(t.title)}</h2>{_table(t)}{_paragraphs([t.note])}" for t in d.tables if t.columns)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(f'{subject}: {told}')}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(subject)}: {_marked(verdict)}</h1>",
        _paragraphs([d.title, *d.lines]),
        *(["<pre>" + "\n".join(map(_marked, why)) + "</pre>"] if why else []),
        *tables,
        _paragraphs(d.notes),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _marked(line: Line) -> str:
    marked = (
        escape(text) if style is None else f'<span class="{style}">{escape(text)}</span>'
        for text, style in pieces(line)
    )
    return "".join(marked).replace("\n", "<br>")


def _paragraphs(lines: Sequence[Line]) -> str:
    return "".join(f"<p>{_marked(line)}</p>" for line in lines if line)


def _table(table: Table) -> str:
    """Aligned by itself, as a notebook has no styles for it. On a narrow screen it scrolls, and the page does not."""
    kinds = [_NUMBER if column.is_number else _TEXT for column in table.columns]

    def row(cells: Sequence[Line], tag: str, bold: bool = False) -> str:
        marked = (f"<{tag} {kind}>{_marked(x)}</{tag}>" for x, kind in zip(cells, kinds, strict=True))
        return f"<tr{_BOLD if bold else ''}>{''.join(marked)}</tr>"

    head = f"<thead>{row([column.head for column in table.columns], 'th')}</thead>" if table.columns[0].head else ""
    body = [row(cells, "td", bold) for cells, bold in table.rows]
    body += [] if table.foot is None else [row([column.cell(table.foot) for column in table.columns], "td", True)]
    return f'<div class="scroll" tabindex="0"><table>{head}<tbody>{"".join(body)}</tbody></table></div>'
