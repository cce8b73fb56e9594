"""A validation as one self-contained HTML page: no script, no font, no image from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from udcp_dsl.prediction.calibrate import show_level
from udcp_dsl.validation.verdicts import Stage, Validation, Verdict, counted

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
.holds { color: #17692d; } .fails { color: #b00020; font-weight: bold; } .untried { color: #855500; }
.apart { color: #666; }
pre { white-space: pre-wrap; background: #fbeaec; padding: 0.75rem; }
@media print { .scroll { overflow: visible; } }
@media screen and (prefers-color-scheme: dark) {
  body { background: #161616; color: #ddd; } th, td { border-color: #444; } pre { background: #3a1a1f; }
  .holds { color: #6cc58a; } .fails { color: #ff7a8a; } .untried { color: #e2b04a; } .apart { color: #9a9a9a; }
}
"""
_KINDS = {True: "holds", False: "fails", None: "untried"}


def page(validation: Validation) -> str:
    """The page as text; everything that comes from the spec is escaped."""
    v = validation
    title = f"{v.loss} in {v.source}: {v.conclusion}"
    state = _KINDS[False if not v.ok else None if v.untried else True]
    amount = f"{v.rounds} rounds a stage" if v.rounds is not None else f"a budget of {v.budget:g} s"
    alphas = ", ".join(map(show_level, v.alphas))
    about = (
        f"{v.source}: {v.labels:,} labels; alpha {alphas}; seed {v.seed}; {amount}; oracles: {', '.join(v.oracles)}. "
        f"A correct spec fails with a chance of at most {v.family_wise:g}."
    )
    smallest = v.counter_example
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f'<h1>{escape(v.loss)}: <span class="{state}">{escape(v.conclusion)}</span></h1><p>{escape(about)}</p>',
        *([] if smallest is None else [f"<pre>{escape(smallest.text)}</pre>"]),
        *(_stage(stage) for stage in v.stages),
        *_costs(v),
        *_left_out(v),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _stage(stage: Stage) -> str:
    seconds = "" if stage.seconds is None else f", {stage.seconds:.1f} s"
    rows = "".join(_verdict(verdict) for verdict in stage.verdicts)
    untried = f', <span class="untried">{counted(stage.untried, "claim")} not tried</span>' if stage.untried else ""
    head = f"<h2>{escape(stage.name)}: {escape(stage.question)}</h2><p>{stage.cases:,} cases{seconds}{untried}</p>"
    heads = '<tr><th>claim</th><th>verdict</th><th class="number">cases</th><th></th></tr>'
    return head + _table(rows, heads)


def _verdict(verdict: Verdict) -> str:
    kind, word = _KINDS[verdict.holds] if verdict.applies else "apart", verdict.word
    note = verdict.note if verdict.counter_example is None else verdict.counter_example.text
    return (
        f'<tr><td>{escape(verdict.claim)}</td><td class="{kind}">{word}</td>'
        f'<td class="number">{verdict.cases:,}</td><td>{escape(note)}</td></tr>'
    )


def _costs(validation: Validation) -> Iterable[str]:
    if validation.costs:
        head = _row(("classifier", "alpha", "oracle", "mean cost", "mean size", "coverage"), "th", numbers=3)
        rows = "".join(
            _row((x.classifier, x.alpha, x.oracle, f"{x.mean_cost:.4g} ± {x.cost_error:.2g}", f"{x.mean_size:.4g}",
                  f"{x.coverage:.3f}"), numbers=3)
            for x in validation.costs
        )  # fmt: skip
        yield "<h2>mean cost of a set</h2>" + _table(rows, head)


def _left_out(validation: Validation) -> Iterable[str]:
    if validation.left_out:
        rows = "".join(_row(pair) for pair in validation.left_out.items())
        yield "<h2>oracles that do not apply</h2>" + _table(rows)


def _table(rows: str, heads: str = "") -> str:
    """On a narrow screen it scrolls by itself, and the page does not; printed, each page of it has the heads."""
    return f'<div class="scroll" tabindex="0"><table><thead>{heads}</thead><tbody>{rows}</tbody></table></div>'


def _row(cells: Sequence[str], tag: str = "td", numbers: int = 0) -> str:
    """Of the cells the last are numbers."""
    kinds = [""] * (len(cells) - numbers) + [' class="number"'] * numbers
    return "<tr>" + "".join(f"<{tag}{kind}>{escape(x)}</{tag}>" for x, kind in zip(cells, kinds, strict=True)) + "</tr>"
