"""A description as HTML: a fragment for notebooks, and a page that stands alone. Every text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from udcp_dsl.showing.description import Description, Line, Styled, Table
from udcp_dsl.showing.visible_text import visible, visible_lines

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


@dataclass(frozen=True)
class _Look:
    """How tables are marked up: by attributes of their own in a notebook, by classes on a page with styles."""

    opening: str
    closing: str
    text: str
    number: str
    bold: str
    classes: bool


_NOTEBOOK = _Look(
    '<table style="margin: 0.5em 0">',
    "</table>",
    ' style="text-align: left"',
    ' style="text-align: right"',
    ' style="font-weight: bold"',
    False,
)
# On a narrow screen a table scrolls by itself, and the page does not.
_PAGE = _Look(
    '<div class="scroll" tabindex="0"><table>', "</table></div>", "", ' class="number"', ' class="bold"', True
)


def as_html(description: Description) -> str:
    """A fragment, for notebooks."""
    d = description
    parts = [
        _paragraphs([d.title, *d.lines], _NOTEBOOK),
        *(
            f"{_paragraphs([t.title], _NOTEBOOK)}{_table(t, _NOTEBOOK)}{_paragraphs([t.note], _NOTEBOOK)}"
            for t in d.tables
            if t.columns
        ),
        _paragraphs([*d.notes, *d.verdict], _NOTEBOOK),
        *(
            f"<details><summary>{escape(head)}</summary><pre>{escape(visible_lines(text))}</pre></details>"
            for head, text in d.folded.items()
        ),
    ]
    return f"<div>{''.join(parts)}</div>"


def as_page(description: Description) -> str:
    """A page without scripts, fonts or images, headed by the subject and the first line of the verdict.

    What else the verdict says stands below, before the tables.
    """
    d = description
    subject, (verdict, *why) = _pieces(d.title)[0], d.verdict
    named = escape("".join(visible(piece if isinstance(piece, str) else piece.text) for piece in _pieces(verdict)))
    title = _marked(subject if isinstance(subject, str) else subject.text, _PAGE)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}: {named}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{title}: {_marked(verdict, _PAGE)}</h1>",
        _paragraphs([d.title, *d.lines], _PAGE),
        *(["<pre>" + "\n".join(_marked(line, _PAGE) for line in why) + "</pre>"] if why else []),
        *(
            f"<h2>{_marked(t.title, _PAGE)}</h2>{_table(t, _PAGE)}{_paragraphs([t.note], _PAGE)}"
            for t in d.tables
            if t.columns
        ),
        _paragraphs(d.notes, _PAGE),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _pieces(line: Line) -> tuple[str | Styled, ...]:
    return line if isinstance(line, tuple) else (line,)


def _marked(line: Line, look: _Look) -> str:
    marked = []
    for piece in _pieces(line):
        if piece == "\n" and isinstance(line, tuple):
            marked.append("<br>")
        elif isinstance(piece, str):
            marked.append(escape(visible(piece)))
        else:
            text = escape(visible(piece.text))
            marked.append(f'<span class="{piece.style}">{text}</span>' if look.classes else text)
    return "".join(marked)


def _paragraphs(lines: Sequence[Line], look: _Look) -> str:
    return "".join(f"<p>{_marked(line, look)}</p>" for line in lines if line)


def _table(table: Table, look: _Look) -> str:
    kinds = [look.number if column.is_number else look.text for column in table.columns]

    def row(cells: Sequence[Line], tag: str, of: str = "") -> str:
        marked = (f"<{tag}{kind}>{_marked(x, look)}</{tag}>" for x, kind in zip(cells, kinds, strict=True))
        return f"<tr{of}>{''.join(marked)}</tr>"

    head = f"<thead>{row([column.head for column in table.columns], 'th')}</thead>" if table.columns[0].head else ""
    foot = [] if table.foot is None else [row([column.cell(table.foot) for column in table.columns], "td", look.bold)]
    body = [row(cells, "td", look.bold if bold else "") for cells, bold in table.rows]
    return f"{look.opening}{head}<tbody>{''.join([*body, *foot])}</tbody>{look.closing}"
