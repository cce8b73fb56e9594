"""A validation as one self-contained HTML page: no script, no font, no image from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from udcp_dsl.prediction.calibrate import show_level
from udcp_dsl.validation.verdicts import Stage, Validation, Verdict, counted

_STYLE = """
:root { color-scheme: light dark; -webkit-print-color-adjust: exact; print-color-adjust: exact; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2 { line-height: 1.25; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #ddd; }
td:last-child { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
tr, pre { break-inside: avoid; } h2 { break-after: avoid; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
.holds { color: #17692d; } .fails { color: #b00020; font-weight: bold; } .untried { color: #777; }
pre { white-space: pre-wrap; background: #fbeaec; padding: 0.75rem; }
@media print { .scroll { overflow: visible; } }
@media screen and (prefers-color-scheme: dark) {
  body { background: #161616; color: #ddd; } th, td { border-color: #444; } pre { background: #3a1a1f; }
  .holds { color: #6cc58a; } .fails { color: #ff7a8a; }
}
"""
_KINDS = {True: "holds", False: "fails", None: "untried"}


def page(validation: Validation) -> str:
    """The page as text; everything that comes from the spec is escaped."""
    v = validation
    title = f"{v.loss} in {v.source}: {v.conclusion}"
    amount = f"{v.rounds} rounds a stage" if v.rounds is not None else f"a budget of {v.budget:g} s"
    alphas = ", ".join(map(show_level, v.alphas))
    about = (
        f"{v.labels:,} labels; alpha {alphas}; seed {v.seed}; {amount}; oracles: {', '.join(v.oracles)}. "
        f"A correct spec fails with a chance of at most {v.family_wise:g}."
    )
    smallest = v.counter_example
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1><p>{escape(about)}</p>",
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
    return head + _table(heads + rows)


def _verdict(verdict: Verdict) -> str:
    kind, word = _KINDS[verdict.holds], verdict.word
    note = verdict.note if verdict.counter_example is None else verdict.counter_example.text
    return (
        f'<tr><td>{escape(verdict.claim)}</td><td class="{kind}">{word}</td>'
        f'<td class="number">{verdict.cases:,}</td><td>{escape(note)}</td></tr>'
    )


def _costs(validation: Validation) -> Iterable[str]:
    if validation.costs:
        head = _row(("classifier", "alpha", "oracle", "mean cost", "mean size", "coverage"), "th")
        rows = "".join(
            _row((x.classifier, x.alpha, x.oracle, f"{x.mean_cost:.4g} ± {x.cost_error:.2g}", f"{x.mean_size:.4g}",
                  f"{x.coverage:.3f}"))
            for x in validation.costs
        )  # fmt: skip
        yield "<h2>mean cost of a set</h2>" + _table(head + rows)


def _left_out(validation: Validation) -> Iterable[str]:
    if validation.left_out:
        rows = "".join(_row(pair) for pair in validation.left_out.items())
        yield "<h2>oracles that do not apply</h2>" + _table(rows)


def _table(rows: str) -> str:
    """On a narrow screen it scrolls by itself, and the page does not."""
    return f'<div class="scroll" tabindex="0"><table>{rows}</table></div>'


def _row(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
