"""The figures and the small table of docs/price-oracle.md: hull.svg, two-kinds.svg and cost-coverage.svg.

    python benchmarks/price_figures.py

Takes some seconds; the same input gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dominance import PAGE, ROOT, Sample, cost_at, mixed
from dominance_cases import SYNTHETIC, declarations, posteriors
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_dsl.predict.calibrate import DEFAULT_GRID
from udcp_dsl.report.drawing import rendered
from udcp_dsl.report.figures import Figure
from udcp_dsl.report.hull import Point, hull_figure
from udcp_dsl.report.look import MUTED, styles
from udcp_dsl.report.plots import Hover

FOLDER = ROOT / "docs" / "figures"
BEGIN, END = "<!-- two kinds: made by benchmarks/price_figures.py -->", "<!-- end of two kinds -->"

SKIN = """
labels { nevus, wart, keratosis, melanoma, nodular, morphoeic }
hierarchy skin { benign { nevus, wart, keratosis }, malignant { melanoma, bcc { nodular, morphoeic } } }
loss triage = 2 * count(skin.level(1)) + 0.5 * size
"""
LESION = (0.34, 0.2, 0.08, 0.22, 0.12, 0.04)

# Two kinds of instances, equally frequent: one nearly sure, one that knows nothing.
KINDS = np.array([[0.9, 0.1, *[0.0] * 8], [0.1] * 10])
COVERAGES = (0.45, 0.7, 0.9)


# One instance -------------------------------------------------------------------------------------------------------


def hull() -> Figure:
    """All sets of one instance as dots, and the hull below them."""
    loss = udcp.loads(SKIN)
    oracle: Any = udcp.make_oracle("price", loss)
    p = np.array(LESION)
    masks = (np.arange(1 << loss.K)[:, None] >> np.arange(loss.K) & 1).astype(np.bool_)
    order = np.lexsort((-p, oracle.scores(p[None])[0]))
    prefixes = [Point(float(p[order[:k]].sum()), loss(order[:k].tolist())) for k in range(loss.K + 1)]
    figure = hull_figure("2 * count(kind) + 0.5 * size", "price", prefixes, oracle.explain(p))

    def draw(canvas: Any) -> Hover:
        hover = figure.draw(canvas)
        canvas.axes[0].plot(masks @ p, loss.batch(masks), ".", color=MUTED.light, markersize=3, alpha=0.5, zorder=1)
        return hover

    text = "Mass and cost of all 64 sets of one instance; the lower hull, its vertices named by the labels that enter."
    return replace(figure, draw=draw, text=text)


# Conditional coverage -----------------------------------------------------------------------------------------------


def by_kind(oracle: str, target: float) -> tuple[float, float, float]:
    """Coverage of each kind and mean cost where the mean coverage is `target`, two neighbouring thresholds mixed."""
    loss = udcp.loads("labels 0..9  loss l = size")
    sample = Sample.of(udcp.make_oracle(oracle, loss), KINDS, None)
    covered, costs = mixed(sample, target)
    return float(covered[0]), float(covered[1]), float(costs.mean())


def two_kinds_table() -> str:
    """In Markdown."""
    lines = [
        "| mean coverage | `price`: sure, unsure | mean size | `base`: sure, unsure | mean size |",
        "|---|---|---|---|---|",
    ]
    for target in COVERAGES:
        cells = [f"{target:g}"]
        for oracle in ("price", "base"):
            sure, unsure, cost = by_kind(oracle, target)
            cells += [f"{sure:.2f}, {unsure:.2f}", f"{cost:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def two_kinds() -> Figure:
    """Coverage within each kind against mean coverage."""

    def draw(canvas: Any) -> Hover:
        left, right = canvas.subplots(1, 2)
        looks = styles(["price", "base"])
        grid = np.linspace(0.01, 1.0, 100)
        for oracle, look in looks.items():
            sure, unsure, cost = zip(*(by_kind(oracle, x) for x in grid), strict=True)
            colour = look.colour.light
            left.plot(grid, sure, color=colour, label=f"{oracle}, the sure kind")
            left.plot(grid, unsure, color=colour, linestyle="--", label=f"{oracle}, the unsure kind")
            right.plot(grid, cost, color=colour)
        left.set(xlabel="mean coverage", ylabel="coverage of the kind")
        right.set(xlabel="mean coverage", ylabel="mean size")
        canvas.legend(loc="outside lower center", ncols=2)
        return []

    text = (
        "Coverage of a sure and of an unsure kind of instances, and mean size, against mean coverage: price and base."
    )
    return Figure("two-kinds", "", "", text, 3.2, draw)


# Cost against coverage ----------------------------------------------------------------------------------------------


def cost_coverage(n: int = 1500, points: int = 30) -> Figure:
    """The oracles on synthetic posteriors, where p is true."""
    name, k, _, text, _ = next(case for case in SYNTHETIC if case[0] == "tree diameter + counts + size")
    loss = udcp.loads(f"{declarations(k)}\nloss l = {text}")
    P = posteriors(n, k, np.random.default_rng(0))
    grid = np.linspace(0.5, 0.99, points)

    def costs(oracle: str, **options: object) -> list[float]:
        sample = Sample.of(udcp.make_oracle(oracle, loss, **options), P, None)
        return [cost_at(sample, target) for target in grid]

    curves: dict[str, Sequence[float]] = {
        oracle: costs(oracle) for oracle in ("price", "greedy", "base", "lac", "raps")
    }
    # The best lambda at each coverage: a bound on what tuning can do.
    curves["penalized"] = np.min([costs("penalized", lam=lam) for lam in DEFAULT_GRID], axis=0).tolist()

    def draw(canvas: Any) -> Hover:
        axes = canvas.subplots()
        for oracle, look in styles(curves).items():
            axes.plot(grid, curves[oracle], color=look.colour.light, marker=look.marker, markevery=4, label=oracle)
        axes.set(xlabel="coverage", ylabel="mean cost", title=text)
        canvas.legend(loc="outside lower center", ncols=len(curves) // 2)
        return []

    return Figure("cost-coverage", "", "", f"Mean cost against coverage: {name}, K = {k}.", 3.8, draw)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for figure in (hull(), two_kinds(), cost_coverage()):
        write(FOLDER / f"{figure.name}.svg", rendered(figure, "svg")["svg"].decode())
    write(PAGE, between_markers(PAGE.read_text(encoding="utf-8"), BEGIN, END, two_kinds_table()))


if __name__ == "__main__":
    main()
