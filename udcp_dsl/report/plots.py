"""Functions that draw the figures into a given matplotlib figure.

Figures have no title, as pages and papers have captions. Names are cut to a length, so that none runs over the edge.
Each function returns the texts to show when a reader points at its marks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from udcp_dsl.measure.coverage import Stratum
from udcp_dsl.report.look import GRID, INK, MUTED, OTHER_TERMS, PAPER, TERMS, Style, number, percent, shown
from udcp_dsl.showing import in_unit

if TYPE_CHECKING:
    from udcp_dsl.measure.monitored import Stream
    from udcp_dsl.predict.repair.reliability import ReliabilityCurve

_BINS = 40
_NAME_LENGTH = 20  # characters of a name on an axis
_TERM_LENGTH = 46  # characters of a term in a legend
_LEGEND_INCHES = 4.6  # inches that a line of a legend may fill
_LEAST_EVIDENCE = -6.0  # least evidence that is drawn, in powers of 10
_MIN_TICK_GAP = 0.09  # least distance of two ticks with texts, as a share of the axis
_LOG_SCALE_RATIO = 8.0  # ratio of the largest cost to the least above which a linear axis would hide small ones

# The line at the target coverage.
_TARGET: dict[str, Any] = {"color": INK.light, "linestyle": "--", "linewidth": 1, "zorder": 1}

Values = Mapping[str, Mapping[str, float]]
# Artists, each with a text for every mark: the markers of a line, or a single shape.
Hover = list[tuple[Any, list[str]]]


def cost_label(what: str, unit: str | None) -> str:
    """The label of an axis of costs."""
    return shown(in_unit(what, unit), _TERM_LENGTH)


def headline_height(costs: Values) -> float:
    return 0.1 + sum(0.42 + 0.21 * len(held) for held in costs.values())


def headline(figure: Any, *, costs: Values, looks: Mapping[str, Style], units: Mapping[str, str | None]) -> Hover:
    """The mean cost of each oracle as bars, by loss, the cheapest first."""
    heights = [len(held) + 1 for held in costs.values()]
    rows = figure.subplots(len(costs), 1, squeeze=False, height_ratios=heights)[:, 0]
    hover: Hover = []
    for axes, (name, held) in zip(rows, costs.items(), strict=True):
        ranked = sorted(held, key=lambda oracle: held[oracle])
        at = np.arange(len(ranked))
        bars = axes.barh(
            at, [held[oracle] for oracle in ranked], height=0.66, linewidth=0, zorder=2,
            color=[looks[oracle].colour.light for oracle in ranked],
        )  # fmt: skip
        for y, oracle in enumerate(ranked):
            style = {"va": "center", "color": INK.light, "fontweight": "bold" if y == 0 else "normal"}
            axes.annotate(number(held[oracle]), (max(held[oracle], 0), y), (4, 0), textcoords="offset points", **style)
        hover += [(bar, [f"{oracle}: {number(held[oracle])}"]) for bar, oracle in zip(bars, ranked, strict=True)]
        axes.set_yticks(at, [shown(oracle, _NAME_LENGTH) for oracle in ranked])
        axes.invert_yaxis()
        axes.margins(x=0.16)
        axes.set_xlim(left=None if min(held.values()) < 0 else 0)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False)
        axes.set_title(shown(in_unit(name, units[name]), 2 * _NAME_LENGTH), loc="left", fontsize=9, color=MUTED.light)
    return hover


def curves(
    figure: Any,
    *,
    curves: Mapping[str, Sequence[tuple[float, float, float]]],
    looks: Mapping[str, Style],
    levels: Sequence[float],
    unit: str | None = None,
    worths: Sequence[tuple[float, float]] = (),
) -> Hover:
    """Cost against coverage; above, the worth of a missed truth, from pairs (coverage, worth)."""
    axes = figure.subplots()
    hover: Hover = []
    for level in levels:
        axes.axvline(level, color=MUTED.light, linestyle=":", linewidth=1, zorder=1)
    for oracle, points in curves.items():
        _, coverage, cost = zip(*sorted(points), strict=True)
        (line,) = axes.plot(coverage, cost, label=shown(oracle, _NAME_LENGTH), **_line(looks[oracle]))
        texts = [f"{oracle}, alpha {a:g}: coverage {c:.3f}, cost {number(x)}" for a, c, x in sorted(points)]
        hover.append((line, texts))
    axes.set(xlabel="coverage", ylabel=cost_label("mean cost", unit))
    _cost_axis(axes, [cost for points in curves.values() for _, _, cost in points])
    if len(worths) > 1:
        _worth_axis(axes, worths, unit)
    _legend(figure, axes)
    return hover


def _worth_axis(axes: Any, worths: Sequence[tuple[float, float]], unit: str | None) -> None:
    """A second axis above, with ticks where there is room, from the highest coverage down."""
    above = axes.secondary_xaxis("top")
    low, high = axes.get_xlim()
    ticks: list[tuple[float, float]] = []
    for coverage, worth in sorted(worths, reverse=True):
        if low <= coverage <= high and (not ticks or ticks[-1][0] - coverage > _MIN_TICK_GAP * (high - low)):
            ticks.append((coverage, worth))
    above.set_xticks([coverage for coverage, _ in ticks], [number(worth) for _, worth in ticks])
    above.set_xlabel(cost_label("a missed true label is valued at", unit))


def evidence_and_coverage(figure: Any, *, streams: Sequence[Stream], alpha: float) -> Hover:
    """Above, the evidence of each stream as a share of what raises its alarm; below, the coverage so far."""
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    colours = (INK, *TERMS)
    for stream, colour in zip(streams, colours, strict=False):
        course, name = stream.course, "all rows" if stream.name is None else shown(stream.name, _NAME_LENGTH)
        rows = [*course.rows.tolist()]
        log_ratio = (course.log_evidence + math.log(stream.level)) / math.log(10)
        style = {"color": colour.light, "linewidth": 1.6 if stream.name is None else 1.1}
        above.plot(rows, np.maximum(log_ratio, _LEAST_EVIDENCE), label=name, **style)
        below.plot(rows, 1 - course.missed / np.maximum(course.seen, 1), **style)
        if stream.alarm is not None:
            above.axvline(stream.alarm.row, color=colour.light, linestyle=":", linewidth=1)
    above.axhline(0, color=MUTED.light, linestyle="--", linewidth=1)
    above.annotate("alarm", (1, 0), (0, 3), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right")
    below.axhline(1 - alpha, color=MUTED.light, linestyle="--", linewidth=1)
    above.set(ylabel="evidence (powers of 10)")
    below.set(xlabel="rows", ylabel="coverage so far")
    below.set_ylim(min(below.get_ylim()[0], 1 - 2 * alpha) if 2 * alpha < 1 else None, 1.01)
    if len(streams) > 1:
        _legend(figure, above)
    return []


def reliability(figure: Any, *, curves: Mapping[str, ReliabilityCurve]) -> Hover:
    """Share right against the highest probability, in bins; marks by number of rows, bars of two standard errors."""
    axes = figure.subplots()
    hover: Hover = []
    axes.plot([0, 1], [0, 1], color=MUTED.light, linestyle="--", linewidth=1, zorder=1)
    most = max(b.n for curve in curves.values() for b in curve.bins)
    for (name, curve), colour, marker in zip(curves.items(), (TERMS[5], TERMS[0]), "so", strict=False):
        x, y, count = (np.array(values) for values in zip(*curve.bins, strict=True))
        reach = 2 * np.sqrt(x * (1 - x) / count)
        axes.plot(x, y, linewidth=1.2, color=colour.light, zorder=2)
        axes.vlines(x, np.maximum(y - reach, 0), np.minimum(y + reach, 1), color=colour.light, linewidth=0.9, zorder=2)
        label = f"{name}: calibration error {curve.error:.3f}"
        size = {"s": 40 * count / most, "edgecolors": PAPER.light, "linewidths": 0.5}
        marks = axes.scatter(x, y, marker=marker, color=colour.light, label=label, zorder=3, **size)
        hover.append((marks, [f"{name}: p {b[0]:.3f}, right {b[1]:.3f}, {b[2]:,.0f} rows" for b in curve.bins]))
    axes.set(xlabel="highest probability of a row", ylabel="share of rows where it is right")
    axes.set(xlim=(-0.01, 1.02), ylim=(-0.01, 1.03))
    _legend(figure, axes)
    return hover


def terms_height(paid: Values) -> float:
    return 0.85 + 0.34 * len(paid) + 0.19 * min(len(_all_terms(paid)), len(TERMS) + 1)


def terms(figure: Any, *, paid: Values, unit: str | None = None) -> Hover:
    """Stacked bars: what is paid to the right of 0, what is earned to the left."""
    axes = figure.subplots()
    hover: Hover = []
    biggest = sorted(_all_terms(paid), key=lambda t: -max(abs(p.get(t, 0.0)) for p in paid.values()))
    named = [t for t in _all_terms(paid) if t in biggest[: len(TERMS)]]
    bars = {t: [p.get(t, 0.0) for p in paid.values()] for t in named}
    if len(biggest) > len(named):
        others = [sum(cost for t, cost in p.items() if t not in named) for p in paid.values()]
        bars[f"{len(biggest) - len(named)} smaller terms"] = others
    left, right = np.zeros(len(paid)), np.zeros(len(paid))
    at = np.arange(len(paid))
    for (term, costs), colour in zip(bars.items(), (*TERMS[: len(named)], OTHER_TERMS), strict=False):
        width = np.array(costs)
        start = np.where(width >= 0, right, left)
        drawn = axes.barh(
            at, width, left=start, height=0.62, color=colour.light, edgecolor=PAPER.light, linewidth=0.6,
            label=shown(term, _TERM_LENGTH), zorder=2,
        )  # fmt: skip
        hover += [(bar, [f"{o}, {term}: {number(c)}"]) for bar, o, c in zip(drawn, paid, costs, strict=True)]
        right += np.maximum(width, 0)
        left += np.minimum(width, 0)
    for y, (total, end) in enumerate(zip(left + right, right, strict=True)):
        axes.annotate(number(total), (end, y), (4, 0), textcoords="offset points", va="center", color=INK.light)
    if (left < 0).any():
        axes.axvline(0, color=INK.light, linewidth=0.8)
    axes.margins(x=0.12)
    axes.set_xlim(left=None if (left < 0).any() else 0)
    axes.set_yticks(at, [shown(oracle, _NAME_LENGTH) for oracle in paid])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel=cost_label("mean cost", unit))
    _legend(figure, axes, columns=1)
    return hover


def _all_terms(paid: Values) -> list[str]:
    return list(dict.fromkeys(term for p in paid.values() for term in p))


def sizes_height(oracles: int) -> float:
    return 0.55 + 0.52 * oracles


def sizes(
    figure: Any,
    *,
    counts: Mapping[str, Mapping[int, int]],
    means: Mapping[str, float],
    looks: Mapping[str, Style],
) -> Hover:
    largest = max(size for held in counts.values() for size in held)
    width = -(-(largest + 1) // _BINS)
    rows = figure.subplots(len(counts), 1, sharex=True, squeeze=False)[:, 0]
    hover: Hover = []
    for axes, (oracle, held) in zip(rows, counts.items(), strict=True):
        bars = np.zeros(largest // width + 1)
        for size, count in held.items():
            bars[size // width] += count
        starts = np.arange(len(bars)) * width - 0.5
        colour = looks[oracle].colour.light
        drawn = axes.bar(starts, bars / bars.max(), width=width, align="edge", color=colour, linewidth=0, zorder=2)
        for i, bar in enumerate(drawn):
            which = f"{i * width}" if width == 1 else f"{i * width} to {(i + 1) * width - 1}"
            if bars[i]:
                hover.append((bar, [f"{oracle}, {which} labels: {percent(bars[i] / bars.sum())} of the sets"]))
        axes.axvline(means[oracle], color=INK.light, linewidth=1.2, zorder=3)
        axes.set_ylim(0, 1.08)
        axes.set_yticks([])
        axes.set_ylabel(f"{shown(oracle, 14)}\nmean {number(means[oracle])}", rotation=0, ha="right", va="center")
    rows[-1].set_xlim(-0.5, max(largest + 0.5, 1.5))
    rows[-1].set_xlabel("labels in the set" + (f", in bins of {width}" if width > 1 else ""))
    rows[-1].xaxis.get_major_locator().set_params(integer=True)
    return hover


def sizes_and_costs(figure: Any, *, sizes: Any, costs: Any, unit: str | None = None) -> Hover:
    """The sets of one oracle: histograms of their sizes and of their costs, side by side."""
    left, right = figure.subplots(1, 2, sharey=False)
    width = -(-(int(sizes.max()) + 1) // _BINS)
    left.hist(sizes, bins=np.arange(0, sizes.max() + width + 1, width) - 0.5, color=TERMS[0].light, zorder=2)
    left.xaxis.get_major_locator().set_params(integer=True)
    right.hist(costs, bins=min(_BINS, max(1, len(np.unique(costs)))), color=TERMS[1].light, zorder=2)
    left.set(xlabel="labels in the set", ylabel="sets")
    right.set(xlabel=cost_label("cost", unit))
    return []


def listed_height(strata: int, oracles: int) -> float:
    return 1.0 + strata * max(0.3, 0.085 * oracles)


def coverage(
    figure: Any,
    *,
    found: Mapping[str, Sequence[Stratum]],
    order: Sequence[str],
    looks: Mapping[str, Style],
    level: float | None,
    along: str | None = None,
) -> Hover:
    """In each stratum the oracles, with error bars: the strata side by side or, without a name for what they are
    `along`, one below the other, with names of any length."""
    axes = figure.subplots()
    down = along is None
    if level is not None:
        (axes.axvline if down else axes.axhline)(level, **_TARGET)
    hover: Hover = []
    step = 0.72 / len(found)
    for i, (oracle, strata) in enumerate(found.items()):
        by_name = {p.name: p for p in strata}
        at = [x for x, name in enumerate(order) if name in by_name]
        points = [by_name[order[x]] for x in at]
        places = np.array(at) + (i - (len(found) - 1) / 2) * step
        covered, low, high = np.array([(p.coverage, *p.interval) for p in points]).reshape(-1, 3).T
        bars = {"xerr" if down else "yerr": (covered - low, high - covered)}
        xy = (covered, places) if down else (places, covered)
        drawn = axes.errorbar(*xy, **bars, label=shown(oracle, _NAME_LENGTH), **_marks(looks[oracle]))
        ends = [f"{a:.3f} to {b:.3f}" for a, b in (p.interval for p in points)]
        texts = [f"{p.name}: {p.coverage:.3f} ({x}), {p.n:,} rows" for p, x in zip(points, ends, strict=True)]
        hover.append((drawn.lines[0], [f"{oracle}, {text}" for text in texts]))
    least = min(p.interval[0] for points in found.values() for p in points)
    limits = max(-0.02, np.floor(least * 20) / 20 - 0.01), 1.01
    if down:
        axes.set_yticks(range(len(order)), [shown(name, _NAME_LENGTH) for name in order])
        for place in range(1, len(order)):
            axes.axhline(place - 0.5, color=GRID.light, linewidth=0.8, zorder=0)
        axes.set(xlabel="coverage", xlim=limits, ylim=(len(order) - 0.5, -0.5))
    else:
        axes.set_xticks(range(len(order)), [shown(name, 12) for name in order])
        axes.set(xlabel=along, ylabel="coverage", xlim=(-0.5, len(order) - 0.5), ylim=limits)
    axes.grid(axis="y" if down else "x", visible=False)
    _legend(figure, axes)
    return hover


def lines(
    figure: Any,
    *,
    values: Values,
    order: Sequence[str],
    looks: Mapping[str, Style],
    along: str,
    up: str,
    whole: bool = False,
) -> Hover:
    """A line per oracle over the strata; with `whole`, values are shares on an axis from 0 to 1."""
    axes = figure.subplots()
    hover: Hover = []
    for oracle, held in values.items():
        at = [x for x, name in enumerate(order) if name in held]
        (line,) = axes.plot(at, [held[order[x]] for x in at], label=shown(oracle, _NAME_LENGTH), **_line(looks[oracle]))
        hover.append((line, [f"{oracle}, {order[x]}: {number(held[order[x]])}" for x in at]))
    axes.set_xticks(range(len(order)), [shown(name, 12) for name in order])
    axes.set_xlim(-0.5, len(order) - 0.5)
    axes.grid(axis="x", visible=False)
    axes.set(xlabel=along, ylabel=up)
    if whole:
        axes.set_ylim(-0.02, 1.02)
    else:
        _cost_axis(axes, [value for held in values.values() for value in held.values()])
    _legend(figure, axes)
    return hover


def cost_and_coverage(
    figure: Any,
    *,
    lines: Mapping[str, Sequence[tuple[float, float, float]]],
    looks: Mapping[str, Style],
    along: str,
    level: float | None,
    unit: str | None = None,
) -> Hover:
    """Cost above, coverage below, from points (x, cost, coverage) of each oracle; the promised coverage as a line."""
    above, below = figure.subplots(2, 1, sharex=True)
    hover: Hover = []
    for oracle, points in lines.items():
        x = [point[0] for point in points]
        for axes, at in ((above, 1), (below, 2)):
            (line,) = axes.plot(
                x, [point[at] for point in points], label=shown(oracle, _NAME_LENGTH), **_line(looks[oracle])
            )
            hover.append((line, [f"{oracle}, {along} {point[0]:g}: {number(point[at])}" for point in points]))
    if level is not None:
        below.axhline(level, color=MUTED.light, linewidth=0.9, linestyle=":")
    above.set(ylabel=cost_label("cost", unit))
    below.set(xlabel=shown(along, _NAME_LENGTH), ylabel="coverage")
    _legend(figure, above)
    return hover


def distribution(
    figure: Any, *, found: Mapping[str, Sequence[Stratum]], looks: Mapping[str, Style], level: float | None
) -> Hover:
    axes = figure.subplots()
    hover: Hover = []
    if level is not None:
        axes.axvline(level, **_TARGET)
    for oracle, points in found.items():
        values = np.sort([p.coverage for p in points])
        share = np.arange(1, len(values) + 1) / len(values)
        style = _line(looks[oracle]) | {"markevery": max(1, len(values) // 6)}
        at, up = np.concatenate([values[:1], values, [1.0]]), np.concatenate([[0.0], share, [1.0]])
        (line,) = axes.step(at, up, where="post", label=shown(oracle, _NAME_LENGTH), **style)
        marked = range(0, len(at), style["markevery"])
        hover.append((line, [f"{oracle}: {percent(up[i])} of the classes at {at[i]:.3f} or less" for i in marked]))
    axes.set_ylim(-0.02, 1.02)
    axes.set(xlabel="coverage of a class", ylabel="share of classes, at most that")
    _legend(figure, axes)
    return hover


# Shared parts


def _line(style: Style) -> dict[str, Any]:
    return {
        "color": style.colour.light,
        "marker": style.marker,
        "markersize": 6,
        "markeredgecolor": PAPER.light,
        "markeredgewidth": 0.5,
        "linewidth": 1.6,
        "zorder": 3,
    }


def _marks(style: Style) -> dict[str, Any]:
    return {**_line(style), "linestyle": "none", "elinewidth": 1.2, "ecolor": style.colour.light}


def _cost_axis(axes: Any, values: Sequence[float]) -> None:
    """Start the axis at 0, or make it logarithmic if the values are far apart."""
    least, largest = min(values), max(values)
    if least > 0 and largest / least > _LOG_SCALE_RATIO:
        axes.set_yscale("log")
        axes.set_ylabel(f"{axes.get_ylabel()}, log scale")
        axes.yaxis.set_major_formatter(lambda value, _: number(value))
        if largest / least < 1000:
            axes.yaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
        axes.yaxis.set_minor_locator(_no_ticks())
    elif least >= 0:
        axes.set_ylim(0, 1.06 * largest if largest > 0 else 1)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _legend(figure: Any, axes: Any, columns: int | None = None) -> None:
    handles, names = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, names, loc="outside upper left", ncols=columns or _columns(names))


def _columns(names: Sequence[str]) -> int:
    """The number of columns of a legend with as few lines as fit, filled evenly; names go down the columns."""
    widths = [0.45 + 0.08 * len(name) for name in names]  # inches, about
    for columns in range(len(names), 1, -1):
        if sum(column.max() for column in np.array_split(widths, columns)) <= _LEGEND_INCHES:
            return math.ceil(len(names) / math.ceil(len(names) / columns))
    return 1
