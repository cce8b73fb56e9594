"""A validation as one self-contained HTML page: no script, no font, no image from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from udcp_dsl.prediction.calibrate import show_level
from udcp_dsl.validation.verdicts import Stage, Validation, Verdict

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1.5rem; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #ddd; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.holds { color: #17692d; } .fails { color: #b00020; font-weight: bold; } .untried { color: #777; }
pre { white-space: pre-wrap; background: #fbeaec; padding: 0.75rem; }
@media (prefers-color-scheme: dark) {
  body { background: #161616; color: #ddd; } th, td { border-color: #444; } pre { background: #3a1a1f; }
  .holds { color: #6cc58a; } .fails { color: #ff7a8a; }
}
"""
_WORDS = {True: ("holds", "holds"), False: ("fails", "fails"), None: ("untried", "not tried")}


def page(validation: Validation) -> str:
    """The page as text; everything that comes from the spec is escaped."""
    v = validation
    title = f"{v.loss} in {v.source}: {'all holds' if v.ok else 'a claim fails'}"
    amount = f"{v.rounds} rounds a stage" if v.rounds is not None else f"a budget of {v.budget:g} s"
    alphas = ", ".join(map(show_level, v.alphas))
    about = (
        f"{v.labels:,} labels; alpha {alphas}; seed {v.seed}; {amount}; oracles: {', '.join(v.oracles)}. "
        f"A correct spec fails with a chance of at most {v.family_wise:g}."
    )
    smallest = v.counter_example
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
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
    head = f"<h2>{escape(stage.name)}: {escape(stage.question)}</h2><p>{stage.cases:,} cases{seconds}</p>"
    return f"{head}<table>{_row(('claim', 'verdict', 'cases', ''), 'th')}{rows}</table>"


def _verdict(verdict: Verdict) -> str:
    kind, word = _WORDS[verdict.holds]
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
        yield f"<h2>mean cost of a set</h2><table>{head}{rows}</table>"


def _left_out(validation: Validation) -> Iterable[str]:
    if validation.left_out:
        rows = "".join(_row(pair) for pair in validation.left_out.items())
        yield f"<h2>oracles that do not apply</h2><table>{rows}</table>"


def _row(cells: Iterable[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
