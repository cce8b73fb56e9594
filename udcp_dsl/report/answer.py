"""The answer of a comparison, for its first screen: which oracle and alpha, what it saves, and for which rows coverage
is too low.

Oracles are compared at the same coverage, on the same rows (`comparison.curves`). Intervals are of 95 percent over the
test rows of one split.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from udcp_dsl.prediction.calibrate import show_level
from udcp_dsl.prediction.evaluation import QUARTERS
from udcp_dsl.report.wording import isolated, number, percent, shown, target
from udcp_dsl.showing import in_unit, with_unit

if TYPE_CHECKING:
    from udcp_dsl.comparison import Comparison, MatchedCost, Summary

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
    worths = any(choice.worth is not None for choice in found.choices)
    saved = any(choice.saving is not None for choice in found.choices)
    heads = ["alpha", "coverage", isolated(in_unit("cost", unit))]
    heads += [f"saved against {isolated(found.rival.oracle)}"] if saved and found.rival is not None else []
    heads += [isolated(in_unit("a miss is worth", unit))] if worths else []
    rows = []
    for choice in found.choices:
        low, high = map(number, choice.cost.interval)
        cells = [target(choice.alpha), f'{number(choice.cost.mean)} <span class="range">{low} to {high}</span>']
        cells += [_cell(choice)] if saved else []
        cells += ["" if choice.worth is None else number(choice.worth)] if worths else []
        chosen = ' class="best"' if choice.alpha == found.best.alpha else ""
        first = f'<th scope="row">{show_level(choice.alpha)}</th>'
        rows.append(f"<tr{chosen}>{first}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    caption = f"Which alpha? {shown(found.best.oracle)} at exactly these coverages, on one split, with 95 % intervals."
    if worths:
        caption += " The threshold of price is what it values a missed true label at."
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="Which alpha">'
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(choice: Choice) -> str:
    if choice.saving is None:
        return ""
    share, low, high = choice.saving
    return f'{_signed(share)} <span class="range">{_signed(low)} to {_signed(high)}</span>'
