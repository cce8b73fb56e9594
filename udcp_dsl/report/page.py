"""A comparison as one page that opens offline and makes no request.

The page contains its styles, its script and its data; a content security policy forbids everything else, so that even a
label that slipped through as markup could neither run nor fetch.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from udcp_dsl import __version__
from udcp_dsl.expression.decisions import HANDED_OVER, KEPT
from udcp_dsl.files import PathLike, atomic_write
from udcp_dsl.loss import Loss
from udcp_dsl.measure.evaluate import QUARTERS
from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.report.browser import as_script, browser_data
from udcp_dsl.report.drawing import inline_svg, require_matplotlib
from udcp_dsl.report.figures import (
    Figure,
    figures_at,
    figures_beside,
    figures_over_alpha,
    first_figures,
    reliability_figures,
)
from udcp_dsl.report.look import Style, head, isolated, number, packaged, percent, seconds, shown, styles, target
from udcp_dsl.showing import Description, Table, in_unit, pieces, with_unit
from udcp_dsl.showing.html import marked, paragraphs, table_html

if TYPE_CHECKING:
    from udcp_dsl.measure.comparison import Comparison, MatchedCost, Summary

TITLE = "Prediction sets compared"


@dataclass(frozen=True)
class Origin:
    """Where a page comes from: its data, the command that made it (either may be unknown), and the date."""

    data: str | None
    command: str | None
    date: datetime.date


def write_report(
    path: PathLike,
    comparison: Comparison,
    *,
    title: str = TITLE,
    data: str | None = None,
    command: str | None = None,
    date: datetime.date | None = None,
) -> None:
    """Write a comparison as one HTML page, whole or not at all. The same arguments give the same bytes.

    `data` describes the rows in a few words, `command` is the command that was typed, `date` is today by default; all
    are shown below the title. Raises InputError without matplotlib (the extra `report`), and if the file cannot be
    written.
    """
    require_matplotlib()
    origin = Origin(data, command, datetime.date.today() if date is None else date)
    content = page(comparison, title, origin).encode("utf-8")
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def page(comparison: Comparison, title: str, origin: Origin) -> str:
    """The text of the page."""
    script = packaged("browser.js")
    data = browser_data(comparison)
    parts = [
        head(title if origin.data is None else f"{title}: {origin.data}", script),
        _header(comparison, title, origin, bool(data["losses"])),
        "<main>",
        *(_loss_section(comparison, place) for place in range(len(comparison.names))),
        *_browser_section(comparison, data["losses"]),
        _repair_section(comparison),
        _limits(comparison),
        "</main>",
        _footer(comparison),
    ]
    if data["losses"]:
        parts += [
            f'<script type="application/json" id="instances">{as_script(data)}</script>',
            f"<script>{script}</script>",
        ]
    return "\n".join([*parts, "</body>", "</html>", ""])


def _header(comparison: Comparison, title: str, origin: Origin, browser: bool) -> str:
    levels = ", ".join(show_level(alpha) for alpha in comparison.alphas)
    folds = " : ".join(f"{100 * f:g}" for f in comparison.fractions)
    facts = {
        "rows": f"{comparison.n:,}",
        "labels": f"{comparison.K:,}",
        "top-1 accuracy": f"{comparison.accuracy:.3f}",
        "random splits": f"{comparison.splits}",
        "calibrate : tune : test": folds,
        "alpha": levels,
    }
    promise = comparison.promise
    facts["repair of p"] = isolated(comparison.about_p)
    if promise.confidence is not None:
        facts["confidence over calibrations"] = show_level(promise.confidence)
    if promise.risk is not None:
        facts["alpha bounds the mean of"] = isolated(promise.risk)
    listed = "".join(f"<li>{name} <b>{value}</b></li>" for name, value in facts.items())
    answers = [answer(comparison, name) for name in comparison.names]
    links = [(f"loss-{place}", isolated(name)) for place, name in enumerate(comparison.names)]
    links += [("instances-shown", "Instances")] if browser else []
    links += [("repair", "Repair of p")] if reliability_figures(comparison) else []
    links += [("limits", "What this does not show")]
    contents = "".join(f'<li><a href="#{target}">{text}</a></li>' for target, text in links)
    return f"""<header>
<h1>{isolated(title)}</h1>
{_origin(origin)}
{"".join(answer_html(comparison, found) for found in answers if found is not None)}
<nav aria-label="Contents"><ul>{contents}</ul></nav>
{_figures(first_figures(comparison), "first", "h2")}
<ul class="facts">{listed}</ul>
</header>"""


def _both(comparison: Comparison) -> list[Comparison]:
    """The comparison and, if there is one, its `beside`."""
    return [comparison] if comparison.beside is None else [comparison, comparison.beside]


def _origin(origin: Origin) -> str:
    parts = [] if origin.data is None else [isolated(origin.data)]
    parts += [] if origin.command is None else [f"<code>{escape(shown(origin.command))}</code>"]
    parts += [f'<time datetime="{origin.date}">{origin.date}</time>', f"udcp_dsl {escape(__version__)}"]
    return f'<ul class="origin">{"".join(f"<li>{part}</li>" for part in parts)}</ul>'


def _repair_section(comparison: Comparison) -> str:
    """How p was repaired, and how reliable it is."""
    found = reliability_figures(comparison)
    if not found:
        return ""
    return f"""<section aria-labelledby="repair">
<h2 id="repair">Repair of p</h2>
<p>{isolated(comparison.about_p)}.</p>
{_figures(found, "repair", "h3")}
</section>"""


def _loss_section(comparison: Comparison, place: int) -> str:
    name, loss = comparison.names[place], comparison.losses[place]
    first, *others = comparison.alphas
    summaries = [(kept, [s for s in kept.summaries() if s.loss == name]) for kept in _both(comparison)]
    parts = [
        f'<section aria-labelledby="loss-{place}">',
        f'<h2 id="loss-{place}">The loss {isolated(name)}</h2>',
        *(f"<p>{escape(finding(kept, name, alpha))}</p>" for alpha in comparison.alphas for kept in _both(comparison)),
        _spec(loss),
        *(
            _table(kept, alpha, [s for s in found if s.alpha == alpha])
            for alpha in comparison.alphas
            for kept, found in summaries
        ),
        _skipped(comparison, name),
        f"<h3>Figures at alpha {show_level(first)}</h3>" if others else "<h3>Figures</h3>",
        _figures(_not_first(comparison, name, first), f"f{place}-0"),
    ]
    for i, alpha in enumerate(others, start=1):
        drawn = _figures(_figures_at(comparison, name, alpha), f"f{place}-{i}")
        parts.append(f"<details><summary>Figures at alpha {show_level(alpha)}</summary>{drawn}</details>")
    return "\n".join([*parts, "</section>"])


def _not_first(comparison: Comparison, name: str, alpha: Fraction) -> list[Figure]:
    """The figures of a loss, except those at the top of the page."""
    top = {figure.name for figure in first_figures(comparison)}
    found = [*figures_over_alpha(comparison, name), *_figures_at(comparison, name, alpha)]
    return [figure for figure in found if figure.name not in top]


def _figures_at(comparison: Comparison, name: str, alpha: Fraction) -> list[Figure]:
    return [*figures_at(comparison, name, alpha), *figures_beside(comparison, name, alpha)]


def _spec(loss: Loss) -> str:
    file = PurePath(loss.source.name).name
    settings = ", ".join(f"{name} = {number(value)}" for name, value in loss.params.items())
    with_settings = f' <span class="muted">with {escape(settings)}</span>' if settings else ""
    return (
        f"<details><summary>The spec, {isolated(file)}</summary>"
        f'<pre tabindex="0"><code>{escape(loss.source.text)}</code></pre></details>{with_settings}'
    )


# The heading of a column as HTML (empty: the column is a bar), and the cell of a record.
Columns: TypeAlias = "list[tuple[str, Callable[[Any], str]]]"


def _scrolled(label: str, caption: str, columns: Columns, rows: Sequence[tuple[str, Any]]) -> str:
    """A table of rows, each with its attributes and its record, that scrolls by itself on a narrow screen."""

    def cell(head: str, content: str) -> str:
        return f"<td>{content}</td>" if head else f'<td aria-hidden="true" class="bars">{content}</td>'

    heads = "".join(f'<th scope="col">{head}</th>' if head else '<td class="bars"></td>' for head, _ in columns)
    (_, first), *rest = columns
    body = "".join(
        f'<tr{kind}><th scope="row">{first(x)}</th>{"".join(cell(head, of(x)) for head, of in rest)}</tr>'
        for kind, x in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f"<table><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _table(comparison: Comparison, alpha: Fraction, summaries: Sequence[Summary]) -> str:
    if not summaries:
        return ""
    ranked = sorted(summaries, key=lambda summary: summary.cost_mean)
    least, most, any_of = ranked[0].cost_mean, ranked[-1].cost_mean, summaries[0]
    looks = styles(run.oracle for run in comparison.runs)
    even = {s.oracle: cost for s in summaries if (cost := matched(comparison, s)) is not None}

    def greyed(s: Summary) -> bool:
        low, high = s.coverage_interval
        return s.risk is None and not low <= float(1 - alpha) <= high

    def attributes(s: Summary) -> str:
        kind = "misses" if greyed(s) else "best" if s.cost_mean == least else ""
        return f' style="--c:var({looks[s.oracle].colour.variable})" class="{kind}"'

    def cost_text(s: Summary) -> str:
        return number(s.cost_mean) + (
            "" if s.cost_error is None else f' <span class="range">± {s.cost_error:.2g}</span>'
        )

    def bar(s: Summary) -> str:
        width = max(0.0, 100 * s.cost_mean / most) if least >= 0 and most > 0 else 0.0
        return f'<span class="bar"><i style="width:{width:.1f}%"></i></span>'

    def above(s: Summary) -> str:
        if s.cost_mean == least:
            return ""
        return f"+ {percent(s.cost_mean / least - 1)}" if least > 0 else f"+ {number(s.cost_mean - least)}"

    def at_target(s: Summary) -> str:
        if s.oracle not in even:
            return ""
        ends = " to ".join(map(number, even[s.oracle].interval))
        return f'{number(even[s.oracle].mean)} <span class="range below">{ends}</span>'

    columns: Columns = [("oracle", lambda s: f"{_swatch(looks[s.oracle])}{isolated(s.oracle)}{_about(comparison, s)}")]
    if any_of.risk is not None:
        columns += [(f'harm <span class="range">at most {show_level(alpha)}</span>', lambda s: number(s.risk))]
    interval = "over the splits" if comparison.splits > 1 else "exact interval"
    quarters = '<span class="quarters"><br>by quarter of the rows, hardest first</span>' if any_of.by_difficulty else ""
    columns += [
        (f'coverage <span class="range">{interval}{quarters}</span>', _coverage),
        (isolated(in_unit("cost", any_of.unit)), cost_text),
        ("", bar),
        ("above cheapest", above),
    ]
    columns += [(f"cost at coverage {target(alpha)}", at_target)] if even else []
    columns += [("size", lambda s: number(s.size)), ("empty sets", lambda s: percent(s.empty))]
    columns += [('handed over <span class="range">coverage of the kept</span>', _handed)] if any_of.by_decision else []
    columns += [("time", lambda s: seconds(s.seconds))]
    level = f"{show_level(alpha)}{comparison.within}"
    caption = _caption(bool(even), any(map(greyed, summaries)))
    table = _scrolled(f"Summary at alpha {level}", caption, columns, [(attributes(s), s) for s in ranked])
    # What is covered too little, empty sets, remedies, and limits.
    below = "".join(f"<p>{isolated(line)}</p>" for line in comparison.left_out(summaries))
    return f"<h3>At alpha {level}</h3>{table}{below}"


def _caption(curves: bool, misses: bool) -> str:
    caption = "By oracle, the cheapest first."
    if curves:
        caption += " Cost at the same coverage: read off the curve of the first split, with 95 % intervals over rows."
    return f"{caption} Greyed: the coverage differs from the target by more than chance." if misses else caption


def _swatch(style: Style) -> str:
    """The mark of an oracle: its colour and its shape, as in the figures."""
    return f'<svg class="swatch" viewBox="-6 -6 12 12" aria-hidden="true"><path d="{style.path}"/></svg>'


def _coverage(summary: Summary) -> str:
    """The coverage with its interval and, as a second line, that in each quarter of the rows by highest probability."""
    low, high = summary.coverage_interval
    text = f'{summary.coverage:.3f} <span class="range">{low:.3f} to {high:.3f}</span>'
    if not summary.by_difficulty:
        return text
    covered = ", ".join(f"{summary.by_difficulty[quarter][0]:.2f}" for quarter in QUARTERS)
    return f'{text}<span class="quarters"><br><span class="range">{covered}</span></span>'


def _handed(summary: Summary) -> str:
    """For a loss min(L, c): the share of rows that are handed over, and the coverage of those that are kept."""
    share = summary.by_decision.get(HANDED_OVER, (0.0, 0.0))[1]
    kept = f"{summary.by_decision[KEPT][0]:.3f}" if KEPT in summary.by_decision else "none is kept"
    return f'{percent(share)} <span class="range">{kept}</span>'


def _about(comparison: Comparison, summary: Summary) -> str:
    """The variant of the oracle's score, and the lambdas that were tuned."""
    cell = (summary.loss, summary.oracle, summary.alpha)
    parts = [escape(comparison.about[summary.oracle])] if summary.oracle in comparison.about else []
    tuned = sorted({r.lam for r in comparison.runs if (r.loss, r.oracle, r.alpha) == cell and r.lam is not None})
    if tuned:
        parts.append("lambda " + (f"{tuned[0]:g}" if len(tuned) == 1 else f"{tuned[0]:g} to {tuned[-1]:g}"))
    return f' <span class="range muted">{", ".join(parts)}</span>' if parts else ""


def _skipped(comparison: Comparison, name: str) -> str:
    reasons = [(oracle, why) for (loss, oracle), why in comparison.skipped.items() if loss == name]
    if not reasons:
        return ""
    listed = "".join(f"<li><b>{isolated(oracle)}</b>: {escape(shown(why))}</li>" for oracle, why in reasons)
    return f'<details class="small"><summary>Left out: {len(reasons)}</summary><ul>{listed}</ul></details>'


def _figures(figures: Sequence[Figure], prefix: str, heading: str = "h4") -> str:
    drawn = "".join(_figure(figure, f"{prefix}-{i}-", heading) for i, figure in enumerate(figures))
    return f'<div class="figures{" first" if prefix == "first" else ""}">{drawn}</div>' if figures else ""


def _figure(figure: Figure, prefix: str, heading: str) -> str:
    return (
        f"<figure><{heading}>{escape(figure.title)}</{heading}>{inline_svg(figure, prefix)}"
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def _browser_section(comparison: Comparison, losses: Sequence[object]) -> Iterator[str]:
    if losses:
        yield f"""<section aria-labelledby="instances-shown">
<h2 id="instances-shown">Instances</h2>
<p>Rows of the test fold of the first split at alpha {show_level(comparison.alphas[0])}. The first two show the method
cheaper and right, and where it misses; then come those whose sets differ most in cost, so none of these is typical. The
later ones are spread over the rest.</p>
<div id="browser"><noscript>To look at single rows, allow this page its script.</noscript></div>
</section>"""


def _limits(comparison: Comparison) -> str:
    overlap = (
        f"""<li><b>The splits overlap.</b> All {comparison.splits} draw on the same {comparison.n:,} rows. Their spread
shows how much the dealing of the rows matters, and understates how much fresh rows would. A standard error over them
(±) counts them as if they were independent.</li>"""
        if comparison.splits > 1
        else """<li><b>One split.</b> Another dealing of the rows would give other numbers; the intervals say roughly
how different.</li>"""
    )
    promised = "Coverage is promised" if comparison.promise.risk is None else "Harm is bounded"
    beside = comparison.beside
    parts = "" if beside is None else f", and beside that in {beside.promise.bin_count} bins by difficulty"
    return f"""<section aria-labelledby="limits">
<h2 id="limits">What this does not show</h2>
<ul>
<li><b>{promised} on average over all rows</b>{parts}, not for a class, a group, a size of set, or a row. The figures
by stratum show where it falls short; with many strata some do by chance alone.</li>
{overlap}
<li><b>Only rows like these.</b> The promise needs new rows to come from where the calibration rows came from; a shift
of the data breaks it, and nothing here would tell.</li>
<li><b>Only this loss.</b> An oracle that is cheap under one loss may be dear under another. Oracles at one alpha may
differ slightly in the coverage they reach; the curves of cost against coverage compare them where they are equal.</li>
<li><b>Difficulty is not accuracy.</b> The quarters sort the rows of one classifier by how sure it was. What a more
accurate classifier would gain is another experiment.</li>
<li><b>Times</b> are of one machine and of scoring, thresholds and sets alone.</li>
</ul>
</section>"""


def _footer(comparison: Comparison) -> str:
    cost = "mean over the splits" if comparison.splits > 1 else "mean over the test fold"
    return f"""<footer>
<p>Cost: {cost}. Seed {comparison.seed}.</p>
</footer>"""


# The answer of a comparison, for its first screen: which oracle and alpha, what it saves, and for which rows coverage
# is too low.
#
# Oracles are compared at the same coverage, on the same rows (`comparison.curves`). Intervals are of 95 percent over
# the test rows of one split.


LEVELS = tuple(Fraction(k, 20) for k in (4, 2, 1))  # alphas that are shown side by side
_BLIND = ("lac", "base", "raps")  # oracles that ignore costs, the first choice of a rival
_TOO_RARELY = "Which rows are covered too rarely?"


@dataclass(frozen=True)
class Choice:
    """One alpha: the cost of the sets at exactly coverage 1 - alpha, that of a rival's, and the worth of a miss."""

    alpha: Fraction
    cost: MatchedCost
    rival: MatchedCost | None
    worth: float | None

    @property
    def saving(self) -> tuple[float, float, float] | None:
        """The share of the rival's cost that is saved, and its interval; None without a rival of positive cost."""
        return None if self.rival is None else self.cost.saving(self.rival)


@dataclass(frozen=True)
class Answer:
    """For one loss: the oracle whose sets are cheapest at the same coverage, and the rival that it is compared with."""

    loss: str
    best: Summary
    rival: Summary | None
    choices: tuple[Choice, ...]

    @property
    def choice(self) -> Choice | None:
        """The choice at the first alpha."""
        return next((x for x in self.choices if x.alpha == self.best.alpha), None)


def matched(comparison: Comparison, summary: Summary, alpha: Fraction | None = None) -> MatchedCost | None:
    """The cost of an oracle's sets at exactly the requested coverage 1 - alpha, on the first split; None if unknown."""
    curve = comparison.along.get((summary.loss, summary.oracle))
    if comparison.promise.risk is not None or curve is None:
        return None
    return curve.at(float(1 - (summary.alpha if alpha is None else alpha)))


def answer(comparison: Comparison, loss: str) -> Answer | None:
    """The answer for a loss at the first alpha; None if nothing was measured."""
    summaries = [s for s in comparison.summaries() if s.loss == loss and s.alpha == comparison.alphas[0]]
    if not summaries:
        return None
    even = {s.oracle: matched(comparison, s) for s in summaries}

    def cost(summary: Summary) -> tuple[bool, float]:
        found = even[summary.oracle]
        return found is None, summary.cost_mean if found is None else found.mean

    ranked = sorted(summaries, key=cost)
    # On one split several may be equally cheap up to chance: then the mean over the splits decides.
    best = min((s for s in ranked if _as_cheap(s, ranked[0], even)), key=lambda s: s.cost_mean)
    others = [s for s in ranked if s is not best]
    rival = next((s for s in others if s.oracle in _BLIND), others[0] if others else None)
    levels = sorted({*LEVELS, comparison.alphas[0]}, reverse=True) if comparison.promise.risk is None else []
    found = (_choice(comparison, best, rival, level) for level in levels)
    return Answer(loss, best, rival, tuple(choice for choice in found if choice is not None))


def _as_cheap(summary: Summary, first: Summary, even: Mapping[str, MatchedCost | None]) -> bool:
    """Whether an oracle that reaches the requested coverage costs no more than the first, up to chance."""
    least, cost = even[first.oracle], even[summary.oracle]
    if summary is first or least is None or cost is None:
        return summary is first
    saving, (low, high) = least.saving(cost), summary.coverage_interval
    return saving is not None and saving[1] <= 0 and low <= float(1 - summary.alpha) <= high


def _choice(comparison: Comparison, best: Summary, rival: Summary | None, alpha: Fraction) -> Choice | None:
    cost = matched(comparison, best, alpha)
    if cost is None:
        return None
    priced = comparison.along.get((best.loss, "price"))
    points = () if priced is None else priced.points
    worth = next((point.worth for point in points if math.isclose(point.alpha, float(alpha))), None)
    return Choice(alpha, cost, None if rival is None else matched(comparison, rival, alpha), worth)


def answer_html(comparison: Comparison, found: Answer) -> str:
    """The answer as four parts of a page."""
    parts = [_oracle(found), _saved(comparison, found), _failed(comparison, found.best), _alphas(found)]
    head = f"<h2>The answer{f' for {isolated(found.loss)}' if len(comparison.names) > 1 else ''}</h2>"
    return f'<div class="answer">{head}{"".join(parts)}</div>'


def _part(kind: str, question: str, *lines: str) -> str:
    text = "".join(f"<p>{line}</p>" for line in lines if line)
    return f'<div class="part {kind}"><h3>{question}</h3>{text}</div>'


def _oracle(found: Answer) -> str:
    best, choice = found.best, found.choice
    cost = best.cost_mean if choice is None else choice.cost.mean
    text = f'<b class="figure">{isolated(best.oracle)}</b>, {escape(with_unit(number(cost), best.unit))} per row'
    asked = "" if best.risk is not None else f" at coverage {target(best.alpha)}"
    ends = "" if choice is None else " (95 %: {} to {})".format(*map(number, choice.cost.interval))
    return _part("", "Which oracle?", f"{text}{asked}{ends}.")


def _saved(comparison: Comparison, found: Answer) -> str:
    choice, rival = found.choice, found.rival
    saving = None if choice is None else choice.saving
    if rival is None:
        return _part("", "What is saved?", "No other oracle was measured.")
    name = isolated(rival.oracle)
    if saving is None or choice is None or choice.rival is None:
        return _part("", "What is saved?", f"Too few rows to compare with {name} at the same coverage.")
    share, low, high = saving
    spared = with_unit(number(abs(choice.rival.mean - choice.cost.mean)), rival.unit)
    blind = (
        ", the cheapest oracle that ignores your cost,"
        if found.best.oracle not in _BLIND and rival.oracle in _BLIND
        else ""
    )
    than = f"than {name}{blind} at the same coverage: {escape(spared)} per row"
    one_split = "On the first split, " if comparison.splits > 1 else "On these rows, "
    range_ = f"(95 %: {_signed(low)} to {_signed(high)})"
    chance = "" if low > 0 or high < 0 else f" {one_split}chance alone could explain this."
    if chance and comparison.splits > 1:
        means = f"{number(found.best.cost_mean)} against {with_unit(number(rival.cost_mean), rival.unit)}"
        chance += f" Mean costs over all {comparison.splits} splits: {escape(means)}."
    word = "less" if share >= 0 else "more"
    big = f'<b class="figure {"yes" if low > 0 else ""}">{percent(abs(share))} {word}</b>'
    return _part("saved", "What is saved?", f"{big} {than} {range_}.{chance}")


def _signed(share: float) -> str:
    return percent(share) if share >= 0 else f"−{percent(-share)}"  # noqa: RUF001  # a minus sign


def _failed(comparison: Comparison, best: Summary) -> str:
    """Rows that are covered too rarely: the least covered class and the hardest quarter, in red if they fall short."""
    asked = float(1 - best.alpha)
    if best.risk is not None:
        return _part("", _TOO_RARELY, f"Harm is bounded instead of coverage: {number(best.risk)} on average.")
    lines = []
    least = best.least_covered
    short = {(part.kind, part.name) for part in (() if least is None else least.short)}
    if least is not None and least.worst is not None:
        failed = ("class", least.worst.name) in short
        lines.append(
            _share(
                least.worst.coverage, failed, f"of the rows of class {isolated(comparison.called(least.worst.name))}"
            )
        )
    if best.by_difficulty:
        coverage, failed = best.by_difficulty[QUARTERS[0]][0], any(kind == "quarter" for kind, _ in short)
        lines.append(_share(coverage, failed, "of the hardest quarter of the rows"))
    if not lines:
        return _part("", _TOO_RARELY, "Too few rows to say.")
    note = f"Target: {target(best.alpha)} of all rows together; reached: {best.coverage:.3f}."
    if not short:
        note += " No class and no quarter falls short by more than chance."
    elif best.coverage >= asked - 0.02:
        note += " Red: below that by more than chance."
    return _part("failed" if short else "", _TOO_RARELY, *lines, f'<span class="muted">{note}</span>')


def _share(coverage: float, failed: bool, whom: str) -> str:
    return f'<b class="figure {"no" if failed else ""}">{coverage:.2f}</b> {whom} are covered'


def _alphas(found: Answer) -> str:
    if not found.choices:
        return ""
    unit = found.best.unit

    def cost(choice: Choice) -> str:
        low, high = map(number, choice.cost.interval)
        return f'{number(choice.cost.mean)} <span class="range">{low} to {high}</span>'

    columns: Columns = [("alpha", lambda choice: show_level(choice.alpha))]
    columns += [("coverage", lambda choice: target(choice.alpha)), (isolated(in_unit("cost", unit)), cost)]
    if found.rival is not None and any(choice.saving is not None for choice in found.choices):
        columns += [(f"saved against {isolated(found.rival.oracle)}", _cell)]
    caption = f"Which alpha? {shown(found.best.oracle)} at exactly these coverages, on one split, with 95 % intervals."
    if any(choice.worth is not None for choice in found.choices):
        worth = isolated(in_unit("a miss is worth", unit))
        columns += [(worth, lambda choice: "" if choice.worth is None else number(choice.worth))]
        caption += " The threshold of price is what it values a missed true label at."
    chosen = {True: ' class="best"', False: ""}
    rows = [(chosen[choice.alpha == found.best.alpha], choice) for choice in found.choices]
    return _scrolled("Which alpha", escape(caption), columns, rows)


def _cell(choice: Choice) -> str:
    if choice.saving is None:
        return ""
    share, low, high = choice.saving
    return f'{_signed(share)} <span class="range">{_signed(low)} to {_signed(high)}</span>'


# The finding of a comparison in one sentence per loss and level, computed from the runs and no stronger than they.


def finding(comparison: Comparison, loss: str, alpha: Fraction) -> str:
    """Which oracle is cheapest, by how much, on how many of the splits, and at what coverage."""
    ranked = sorted(
        (s for s in comparison.summaries() if s.loss == loss and s.alpha == alpha),
        key=lambda summary: summary.objective,
    )
    level = "With" if comparison.promise.miss is not None else "At"
    within = f"{comparison.within}," if comparison.within or comparison.promise.miss is not None else ""
    at = f"{level} {comparison.at(alpha)}{within}"
    if not ranked:
        return f"{at} no oracle was measured."
    best = ranked[0]
    name = shown(best.oracle)
    if len(ranked) == 1:
        cost = with_unit(number(best.objective), best.unit)
        return f"{at} {name} alone was measured: cost {cost}{_included(best)}, {_covered(comparison, best)}."
    return f"{at} {_against(comparison, best, ranked[1])}; {_covered(comparison, best)}."


def _against(comparison: Comparison, best: Summary, next_best: Summary) -> str:
    name, other = shown(best.oracle), shown(next_best.oracle)
    ours, theirs = best.objective, next_best.objective
    if ours == theirs:
        return f"{name} and {other} cost the same, {with_unit(number(ours), best.unit)}{_included(best)}"
    miss = comparison.promise.miss or 0.0
    costs = {
        (run.oracle, run.split): run.evaluation.mean_cost + miss * (1 - run.evaluation.coverage)
        for run in comparison.runs
        if run.loss == best.loss and run.alpha == best.alpha
    }
    cheaper = sum(costs[best.oracle, i] < costs[next_best.oracle, i] for i in range(comparison.splits))
    by = percent((theirs - ours) / theirs) if theirs > 0 and ours >= 0 else number(theirs - ours)
    more = with_unit(number(theirs), best.unit)
    figures = f"{number(ours)} against {more}{_included(best)}"
    text = f"{name} costs {by} less than the next cheapest, {other} ({figures})"
    if comparison.splits == 1:
        return f"{text}, on a single split"
    but = "and is cheaper on" if cheaper == comparison.splits else "but is cheaper on only"
    return f"{text}, {but} {cheaper} of {comparison.splits} splits"


def _covered(comparison: Comparison, summary: Summary) -> str:
    if summary.risk is not None:
        return f"mean harm {number(summary.risk)} (at most: {show_level(summary.alpha)})"
    if summary.total is None:
        goal, least = f"target: {target(summary.alpha)}", float(1 - summary.alpha)
    else:  # each split has found an alpha of its own
        least = 1 - (summary.alpha_found or 0.0)
        goal = f"alpha found: {1 - least:.3f}"
    text = f"coverage {summary.coverage:.3f} ({goal})"
    low = ", too low" if summary.coverage_interval[1] < least else ""
    worst = "" if summary.least_covered is None else shown(summary.least_covered.about_worst(comparison.called))
    return f"{text}{low}{f'; {worst}' if worst else ''}"


def _included(summary: Summary) -> str:
    return "" if summary.total is None else ", misses included"


# Verdicts, such as those of `udcp validate`, as a page in the design of our reports; it makes no request.


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
