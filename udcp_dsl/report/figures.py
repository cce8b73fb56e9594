"""The figures of a comparison: what each shows, and its texts; `plots` draws them, `drawing` renders them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from udcp_dsl.measure.coverage import Stratum
from udcp_dsl.measure.evaluate import QUARTERS, SIZE_BINS, Evaluation, pooled_by
from udcp_dsl.predict.calibrate import show_level
from udcp_dsl.predict.repair.reliability import Reliability
from udcp_dsl.predict.stages.repair import RepairStage
from udcp_dsl.report import look as palette
from udcp_dsl.report import plots
from udcp_dsl.report.look import Style, number, percent, shown, target
from udcp_dsl.report.plots import Hover

if TYPE_CHECKING:
    from udcp_dsl.measure.comparison import Comparison, Summary

WORST = 8  # classes that are shown one by one
GROUPS = 12  # groups that are shown
HEADLINES = 3  # losses in the first figure
FEWEST = 5  # fewest rows of a fold for a coverage worth drawing
_HEIGHT = 3.1  # inches
_SQUARE = 4.2  # about as high as wide

_INTERVALS = "Bars: exact 95 % intervals of a single test fold."
_DASHED = "Dashed: the target coverage"


@dataclass(frozen=True)
class Figure:
    """`draw` draws into a matplotlib figure and returns the texts of its marks.

    `name` is unique; `text` describes the figure to those who cannot see it.
    """

    name: str
    title: str
    caption: str
    text: str
    height: float
    draw: Callable[[Any], Hover]


def figures(comparison: Comparison) -> list[Figure]:
    """All figures, each once."""
    found = first_figures(comparison)
    for loss in comparison.names:
        found += figures_over_alpha(comparison, loss)
        for alpha in comparison.alphas:
            found += [*figures_at(comparison, loss, alpha), *figures_beside(comparison, loss, alpha)]
    return list({figure.name: figure for figure in (*found, *reliability_figures(comparison))}.values())


def first_figures(comparison: Comparison) -> list[Figure]:
    """The most useful figures, at the first loss and level: mean cost, cost against coverage, coverage by difficulty.

    A figure is left out if there are too few rows for it.
    """
    loss, alpha = comparison.names[0], comparison.alphas[0]
    whom = [figure for figure in figures_at(comparison, loss, alpha) if "coverage-by-difficulty" in figure.name]
    return [*headline_figures(comparison), *figures_over_alpha(comparison, loss), *whom]


def headline_figures(comparison: Comparison) -> list[Figure]:
    """The mean cost of each oracle's sets, at the first level; empty if nothing was measured."""
    alpha = comparison.alphas[0]
    costs: dict[str, dict[str, float]] = {}
    for s in comparison.summaries():
        if s.alpha == alpha and (s.loss in costs or len(costs) < HEADLINES):
            costs.setdefault(s.loss, {})[s.oracle] = s.cost_mean
    over = f"Over {comparison.splits} splits" if comparison.splits > 1 else "Over the test fold"
    more = f" {len(comparison.names) - len(costs)} more losses are below." if len(costs) < len(comparison.names) else ""
    parts = [f"{shown(loss)}: {_listed({o: number(c) for o, c in held.items()})}" for loss, held in costs.items()]
    figure = Figure(
        "headline",
        f"Mean cost of a set, alpha {show_level(alpha)}",
        f"{over}, the cheapest oracle first.{more}",
        f"Mean cost of a set at alpha {show_level(alpha)}. {' '.join(parts)}",
        plots.headline_height(costs),
        partial(plots.headline, costs=costs, looks=_looks(comparison), units=_units(comparison)),
    )
    return [figure] if costs else []


def reliability_figures(comparison: Comparison) -> list[Figure]:
    """The reliability of p before and after its repair, if one was fitted."""
    fitted = (stage.repair.reliability for stage in comparison.repairs if isinstance(stage, RepairStage))
    return [reliability_figure(found) for found in fitted if found is not None]


def reliability_figure(found: Reliability) -> Figure:
    """The reliability before and after a fitted repair; if p is left as it is, only before."""
    curves = {"p as it is": found.before}
    if found.after is not None:
        curves["after repair"] = found.after
    errors = {name: f"{curve.error:.3f}, by chance alone {curve.chance:.3f}" for name, curve in curves.items()}
    rows = f"{found.before.n:,.0f} held-out rows in bins of equal counts"
    return Figure(
        "reliability",
        found.finding,
        f"How often the likeliest label is right, against its probability: {rows}. Dashed: p that is right as often as "
        f"it says; bars: two standard errors. Expected calibration error: {_listed(errors)}",
        f"Reliability of p. {found.finding}. Expected calibration error: {_listed(errors)}",
        _SQUARE,
        partial(plots.reliability, curves=curves),
    )


def _stem(comparison: Comparison, loss: str) -> str:
    """A loss's part of a file's name; starts with the loss's place if two losses would have the same file."""
    stems = [re.sub(r"[^\w.-]+", "-", name).strip(".-").casefold() for name in comparison.names]
    place = comparison.names.index(loss)
    return stems[place] if stems.count(stems[place]) == 1 and stems[place] else f"{place + 1}-{stems[place]}"


def figures_over_alpha(comparison: Comparison, loss: str) -> list[Figure]:
    """The figures of a loss over many levels."""
    curves = {oracle: points for (name, oracle), points in comparison.curves.items() if name == loss and points}
    if not curves:
        return []
    ranges = {oracle: [cost for _, _, cost in points] for oracle, points in curves.items()}
    asked = ", ".join(target(alpha) for alpha in comparison.alphas)
    by_coverage = comparison.promise.risk is None
    priced = [oracle for name, oracle in comparison.worths if name == loss]
    return [
        Figure(
            f"{_stem(comparison, loss)}-cost-by-coverage",
            "Cost against coverage",
            "Each point is one alpha, on the first split; at equal coverage, lower is cheaper."
            + (f" Dotted: the target coverage ({asked})." if by_coverage else "")
            + (f" Above: what a missed true label is valued at, by the thresholds of {priced[0]}." if priced else ""),
            "Mean cost against coverage over many alphas. "
            + _listed({oracle: f"cost {number(min(r))} to {number(max(r))}" for oracle, r in ranges.items()}),
            _HEIGHT,
            partial(
                plots.curves,
                curves=curves,
                looks=_looks(comparison),
                levels=[float(1 - alpha) for alpha in comparison.alphas] if by_coverage else [],
                unit=_units(comparison)[loss],
                worths=comparison.worths[loss, priced[0]] if priced else (),
            ),
        )
    ]


@dataclass(frozen=True)
class _Measured:
    """One loss at one level: the measures by oracle, one per split, how oracles are drawn, the requested coverage."""

    splits: dict[str, list[Evaluation]]
    looks: Mapping[str, Style]
    level: float | None

    @classmethod
    def of(cls, comparison: Comparison, loss: str, alpha: Fraction) -> _Measured:
        splits: dict[str, list[Evaluation]] = {}
        for run in comparison.runs:
            if run.loss == loss and run.alpha == alpha:
                splits.setdefault(run.oracle, []).append(run.evaluation)
        looks = {oracle: style for oracle, style in _looks(comparison).items() if oracle in splits}
        return cls(splits, looks, asked_for(comparison, alpha))

    def pooled(self, kind: str) -> dict[str, list[Stratum]]:
        """The strata by oracle, over all splits."""
        return {oracle: pooled_by(held, kind) for oracle, held in self.splits.items()}


def figures_at(comparison: Comparison, loss: str, alpha: Fraction) -> list[Figure]:
    """The figures of a loss at one level."""
    at = _Measured.of(comparison, loss, alpha)
    if not at.splits:
        return []
    groups = at.pooled("group")
    classes = {
        oracle: [replace(point, name=comparison.called(point.name)) for point in points]
        for oracle, points in at.pooled("class").items()
    }
    found = [
        _terms({s.oracle: s for s in comparison.summaries() if s.loss == loss and s.alpha == alpha}),
        _sizes(at),
        *_by_size(at),
        *_by_difficulty(at),
        *_least_covered(at, "coverage-by-group", "Coverage by group", "groups", groups, GROUPS),
        *_over_classes(at, classes),
        *_least_covered(at, "worst-classes", "The classes covered least", "classes", classes, WORST),
    ]
    return [_placed(figure, comparison, loss, alpha) for figure in found]


def figures_beside(comparison: Comparison, loss: str, alpha: Fraction) -> list[Figure]:
    """Coverage and cost by difficulty of the comparison `beside`, if there is one."""
    beside = comparison.beside
    if beside is None:
        return []
    found = _by_difficulty(_Measured.of(beside, loss, alpha))
    named = (replace(x, name=f"within-bins-{x.name}", title=f"{x.title}{beside.within}") for x in found)
    return [_placed(figure, beside, loss, alpha) for figure in named]


def asked_for(comparison: Comparison, alpha: Fraction) -> float | None:
    """The requested coverage; None if harm is bounded instead."""
    return None if comparison.promise.risk is not None else float(1 - alpha)


def _placed(figure: Figure, comparison: Comparison, loss: str, alpha: Fraction) -> Figure:
    """The figure with a unique name, and with the level in its text."""
    at = show_level(alpha)
    name = f"{_stem(comparison, loss)}-{figure.name}-alpha-{at.replace('/', '-')}"
    return replace(figure, name=name, text=f"Alpha {at}{comparison.within}. {figure.text}")


def _looks(comparison: Comparison) -> dict[str, Style]:
    return palette.styles(run.oracle for run in comparison.runs)


def _units(comparison: Comparison) -> dict[str, str | None]:
    return {name: loss.unit for name, loss in zip(comparison.names, comparison.losses, strict=True)}


def _listed(values: Mapping[str, str]) -> str:
    return "; ".join(f"{shown(name)}: {value}" for name, value in values.items()) + "."


def _terms(summaries: Mapping[str, Summary]) -> Figure:
    paid = {oracle: dict(s.cost_by_term) for oracle, s in summaries.items()}
    return Figure(
        "cost-by-term",
        "What the cost is paid for",
        "Mean cost of a set over the splits, by the terms of the loss; the number is the total.",
        "Mean cost by term. "
        + _listed({o: ", ".join(f"{shown(t)} {number(c)}" for t, c in terms.items()) for o, terms in paid.items()}),
        plots.terms_height(paid),
        partial(plots.terms, paid=paid, unit=next(iter(summaries.values())).unit),
    )


def _sizes(at: _Measured) -> Figure:
    counts: dict[str, dict[int, int]] = {}
    for oracle, evaluations in at.splits.items():
        held = counts.setdefault(oracle, {})
        for evaluation in evaluations:
            for size, count in evaluation.size_counts.items():
                held[size] = held.get(size, 0) + count
    totals = {oracle: sum(held.values()) for oracle, held in counts.items()}
    means = {oracle: sum(s * c for s, c in held.items()) / totals[oracle] for oracle, held in counts.items()}
    empty = {oracle: held.get(0, 0) / totals[oracle] for oracle, held in counts.items()}
    return Figure(
        "sizes",
        "How large the sets are",
        "Labels in a set, over all splits; each histogram is as high as its own tallest bar. Line: the mean.",
        "Set sizes. " + _listed({o: f"mean {number(means[o])}, {percent(empty[o])} empty" for o in counts}),
        plots.sizes_height(len(counts)),
        partial(plots.sizes, counts=counts, means=means, looks=at.looks),
    )


def _by_size(at: _Measured) -> Iterator[Figure]:
    # Empty sets never cover; the table counts them.
    found = {oracle: [p for p in points if p.name != "0"] for oracle, points in at.pooled("size").items()}
    along = "labels in the set"
    yield from _coverage(at, "coverage-by-size", "Coverage by size, empty sets aside", found, SIZE_BINS, along)
    yield from _lines(
        at,
        "true-probability-by-size",
        "Probability of the true label against set size",
        "What the classifier gave the true label, on average, where the set had this size: "
        "large sets should stand where it was unsure.",
        "Mean probability of the true label by set size.",
        {o: {p.name: p.mean_true_probability for p in points} for o, points in found.items()},
        "{:.3f}".format,
        {"order": SIZE_BINS, "along": along, "up": "mean probability of the true label", "whole": True},
    )


def _by_difficulty(at: _Measured) -> Iterator[Figure]:
    found = at.pooled("difficulty")
    along = "rows by the classifier's highest probability, in quarters"
    unit = next((held[0].unit for held in at.splits.values()), None)
    yield from _coverage(at, "coverage-by-difficulty", "Coverage by difficulty", found, QUARTERS, along)
    yield from _lines(
        at,
        "cost-by-difficulty",
        "Cost by difficulty",
        "What sets cost where the classifier is less or more sure, and so less or more accurate.",
        "Mean cost by quarter of the rows, hardest first.",
        {o: {p.name: p.mean_cost for p in points} for o, points in found.items()},
        number,
        {"order": QUARTERS, "along": along, "up": plots.cost_label("mean cost", unit)},
    )


def _lines(
    at: _Measured,
    name: str,
    title: str,
    caption: str,
    text: str,
    values: Mapping[str, Mapping[str, float]],
    show: Callable[[float], str],
    how: Mapping[str, Any],
) -> Iterator[Figure]:
    """A line per oracle over strata of which there are any."""
    order = [stratum for stratum in how["order"] if any(stratum in held for held in values.values())]
    if order:
        said = _listed({o: ", ".join(f"{shown(s)} {show(x)}" for s, x in held.items()) for o, held in values.items()})
        draw = partial(plots.lines, values=values, looks=at.looks, **{**how, "order": order})
        yield Figure(name, title, caption, f"{text} {said}", _HEIGHT, draw)


def _over_classes(at: _Measured, found: Mapping[str, Sequence[Stratum]]) -> Iterator[Figure]:
    kept, note = _large_enough(found)
    if kept:
        level = at.level
        least = {o: f"least {min(p.coverage for p in points):.3f}" for o, points in kept.items()}
        asked, text = "", f"Coverage over the classes. {_listed(least)}"
        if level is not None:
            below = {o: sum(p.coverage < level for p in points) / len(points) for o, points in kept.items()}
            asked = f" {_DASHED}, which is guaranteed on average, not for each class."
            text = f"Classes below the target coverage. {_listed({o: percent(x) for o, x in below.items()})}"
        yield Figure(
            "classes",
            "Coverage over the classes",
            f"For each coverage, the share of the classes that are covered no better.{asked} {note}".strip(),
            text,
            _HEIGHT,
            partial(plots.distribution, found=kept, looks=at.looks, level=level),
        )


def _least_covered(
    at: _Measured, name: str, title: str, kind: str, found: Mapping[str, Sequence[Stratum]], most: int
) -> Iterator[Figure]:
    """The strata covered least, one below the other, as names may be long; chosen by the mean over all oracles."""
    coverages: dict[str, list[float]] = {}
    for points in _large_enough(found)[0].values():
        for point in points:
            coverages.setdefault(point.name, []).append(point.coverage)
    worst = sorted(coverages, key=lambda name: sum(coverages[name]) / len(coverages[name]))
    cut = f"The {most} of {len(worst)} {kind} covered least, by the mean over the oracles." if worst[most:] else ""
    yield from _coverage(at, name, title, found, worst[:most], note=cut)


def _coverage(
    at: _Measured,
    name: str,
    title: str,
    found: Mapping[str, Sequence[Stratum]],
    order: Sequence[str],
    along: str | None = None,
    note: str = "",
) -> Iterator[Figure]:
    """The strata of `order` that have enough points: side by side or, without `along`, one below the other."""
    enough, few = _large_enough(found)
    kept = {oracle: [p for p in points if p.name in order] for oracle, points in enough.items()}
    order = [stratum for stratum in order if any(p.name == stratum for points in kept.values() for p in points)]
    if order:
        asked = "" if at.level is None else f", target {at.level:g}"
        said = _listed({o: ", ".join(f"{shown(p.name)} {p.coverage:.3f}" for p in x) for o, x in kept.items()})
        caption = f"{_INTERVALS} {_DASHED}." if asked else _INTERVALS
        height = _HEIGHT if along is not None else plots.listed_height(len(order), len(kept))
        draw = partial(plots.coverage, found=kept, order=order, looks=at.looks, along=along, level=at.level)
        yield Figure(name, title, " ".join(filter(None, (caption, note, few))), f"{title}{asked}. {said}", height, draw)


def _large_enough(found: Mapping[str, Sequence[Stratum]]) -> tuple[dict[str, list[Stratum]], str]:
    """The strata with enough points, by oracle, without oracles that have none; and a note on the others."""
    kept = {oracle: [p for p in points if p.n >= FEWEST] for oracle, points in found.items()}
    few = any(p.n < FEWEST for points in found.values() for p in points)
    note = f"Not shown: strata with fewer than {FEWEST} rows in a test fold." if few else ""
    return {oracle: points for oracle, points in kept.items() if points}, note
