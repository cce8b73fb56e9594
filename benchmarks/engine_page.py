"""The figure and the tables of docs/engine.md: one row of five labels, watched on its way through the search.

    python benchmarks/engine_page.py

The kernels run as plain Python, so that they can be watched: numba is told not to compile, which has to be done before
it is imported. Writes docs/figures/engine.svg and the tables of the page; the same input gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

os.environ["NUMBA_DISABLE_JIT"] = "1"

import numpy as np
from idea import STYLE
from writing import between_markers, write

import udcp_dsl as udcp
from udcp_solvers.search import best, hull, layout
from udcp_solvers.search.model import model_of
from udcp_solvers.search.prices import SearchPrices
from udcp_solvers.search.workspace import Question, workspace_of

DOCS = Path(__file__).parent.parent / "docs"
PAGE, FIGURE = DOCS / "engine.md", DOCS / "figures" / "engine.svg"
TEXT = "0.5 * size + any(wild) + 2 * (any(pets) and any(wild))"
SPEC = f"""
labels {{ cat, dog, lynx, wolf, fox }}
category pets {{ cat, dog }}
category wild {{ lynx, wolf, fox }}
loss keepers = {TEXT}
"""
CATEGORIES = {("cat", "dog"): "pets", ("lynx", "wolf", "fox"): "wild"}
P = np.array([0.3, 0.15, 0.25, 0.2, 0.1])
MU = 5.0
# The names of integers, as the modules have them.
KINDS = "CONSTANT QUANTITY TABLE ADD SCALE GATE LARGER SMALLER AT_LEAST EQUAL NOT IF WORST FARTHEST PAIRS".split()
QUESTIONS = "ANCHOR_SET INNER_END LEFT_END RIGHT_END LAST_END BETWEEN".split()
STRETCHES = "PLAIN INSIDE UP_TO BEYOND".split()
assert all(getattr(layout, name) == k for k, name in enumerate(KINDS))
assert all(getattr(hull, name) == k for k, name in enumerate(QUESTIONS))
assert all(getattr(hull, name) == k for k, name in enumerate(STRETCHES))

LOSS = udcp.loads(SPEC)
MODEL = model_of(LOSS)


def named(labels: Any) -> str:
    """A set, by its marks or places."""
    chosen = np.flatnonzero(np.asarray(labels) == layout.IN)
    return ", ".join(LOSS.labels[y] for y in chosen) or "none"


def number(x: float) -> str:
    return f"{x:.4g}" if np.isfinite(x) else "none"


# Watched ------------------------------------------------------------------------------------------------------------


@contextmanager
def watched(module: Any, name: str, see: Callable[..., None]) -> Iterator[None]:
    """In the block, each call of a kernel is shown to `see`: what it returned, then its arguments."""
    kernel = getattr(module, name)

    def call(*arguments: Any) -> Any:
        answer = kernel(*arguments)
        see(answer, *arguments)
        return answer

    with patch.object(module, name, call):
        yield


class Looked(NamedTuple):
    """A node that was bounded: what is decided in it, its bound, the set that attains that and its L - mu p, that of
    the best set known when the node is done, and whether two nodes took its place."""

    decided: str
    bound: float
    chosen: str
    value: float
    incumbent: float
    divided: bool


def nodes() -> list[Looked]:
    """The nodes of the search for the best set at the price MU, in order."""
    T, found = workspace_of(MODEL.ints), np.zeros(LOSS.K, np.int8)
    low, high = LOSS.facts.interval
    question = Question(P, MU, np.zeros(LOSS.K, np.int8), high - low, 1000, False, low)
    seen: list[Looked] = []

    def bounded(bound: float, ints: Any, floats: Any, node: Any, T: Any) -> None:
        labels = [LOSS.labels[y] for y in range(LOSS.K) if node.x[y] == layout.OUT]
        members, starts = layout.part(ints, layout.CATEGORY_LABELS), layout.part(ints, layout.CATEGORY_STARTS)
        touched = [
            CATEGORIES[tuple(LOSS.labels[y] for y in members[starts[c] : starts[c + 1]])]
            for c in np.flatnonzero(node.must_touch)
        ]
        decided = [*(f"{name} touched" for name in touched), *([f"{', '.join(labels)} out"] if labels else [])]
        chosen = [LOSS.labels[y] for y in np.flatnonzero(T.chosen == layout.IN)]
        value = LOSS(chosen) - MU * P[T.chosen == layout.IN].sum()
        seen.append(Looked("; ".join(decided) or "nothing", bound, named(T.chosen), value, np.inf, False))

    def branched(end: int, ints: Any, floats: Any, top: int, T: Any) -> None:
        if end > top:
            seen[-1] = seen[-1]._replace(divided=True)

    def stepped(_: None, *arguments: Any) -> None:
        seen[-1] = seen[-1]._replace(incumbent=float(T.search.best))

    with watched(best, "bounded", bounded), watched(best, "branch", branched), watched(best, "_step", stepped):
        best.best_set(MODEL.ints, MODEL.floats, question, found, False, T)
    return seen


class Asked(NamedTuple):
    """A question of the tracing, and its answer."""

    asked: str
    stretch: str
    mu: float
    found: str
    cost: float
    mass: float
    nodes: int


def questions() -> tuple[list[Asked], np.ndarray]:
    """What is asked for the plain scores of the row, and the scores."""
    seen: list[Asked] = []

    def answered(gap: float, ints: Any, floats: Any, rows: Any, R: Any, T: Any) -> None:
        state, place = R.state, R.state.place
        mass = float(P[R.marks[place] == layout.IN].sum())
        asked, stretch = QUESTIONS[state.asked], STRETCHES[state.stretch]
        cost, found = float(R.corners[place].cost), named(R.marks[place])
        mu = 0.0 if state.asked == hull.LEFT_END else float(state.mu)
        seen.append(Asked(asked, stretch, mu, found, cost, mass, int(T.search.node_count)))

    with watched(hull, "_answer", answered):
        scores = SearchPrices(LOSS).scores(P[None])[0]
    return seen, scores


# Tables -------------------------------------------------------------------------------------------------------------


def table(head: list[str], rows: list[list[str]]) -> str:
    """In Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in [head, *rows]]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def arrays_table() -> str:
    """The quantities and operations of the loss."""
    ints, floats = MODEL
    costs = layout.numbers(ints, floats, layout.COSTS).reshape(-1, LOSS.K)
    starts, of = layout.part(ints, layout.QUANTITY_STARTS), layout.part(ints, layout.QUANTITY_CATEGORIES)
    weights = layout.numbers(ints, floats, layout.WEIGHTS)
    members, begin = layout.part(ints, layout.CATEGORY_LABELS), layout.part(ints, layout.CATEGORY_STARTS)
    names = [CATEGORIES[tuple(LOSS.labels[y] for y in members[a:b])] for a, b in pairwise(begin)]
    code, numbers = layout.part(ints, layout.CODE), layout.numbers(ints, floats, layout.NUMBERS)
    rows = []
    for i in range(len(code) // 4):
        kind, a, b, _ = layout.operation(code, i)
        if kind == layout.QUANTITY:
            parts = [f"{number(costs[a, 0])} for each label"] if costs[a].any() else []
            parts += [f"{number(weights[e])} for `{names[of[e]]}`" for e in range(starts[a], starts[a + 1])]
            said = f"quantity {a}: {', '.join(parts)}"
        elif kind == layout.SCALE:
            said = f"{number(numbers[2 * i])} times operation {a}"
        else:
            said = f"operations {a} and {b}"
        rows.append([str(i), f"`{KINDS[kind]}`", said])
    return table(["operation", "kind", "of"], rows)


def nodes_table() -> str:
    rows = []
    for node in nodes():
        then = "branch" if node.divided else "close"
        rows.append([node.decided, number(node.bound), node.chosen, number(node.value), number(node.incumbent), then])
    return table(["decided in the node", "bound", "set that attains it", "L - mu p of it", "incumbent", "then"], rows)


def questions_table() -> str:
    rows = [
        [f"`{asked.asked}`", number(asked.mu), asked.found, number(asked.cost), number(asked.mass), str(asked.nodes)]
        for asked in questions()[0]
    ]
    return table(["question", "price mu", "best set", "cost", "mass", "nodes"], rows)


# Figure -------------------------------------------------------------------------------------------------------------


def text(x: float, y: float, words: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.0f}" y="{y:.0f}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, lines: list[tuple[str, str]], kind: str = "chip") -> list[str]:
    shape = f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
    return [shape, *(text(x + 10, y + 19 + 18 * i, words, style) for i, (words, style) in enumerate(lines))]


def line(*points: tuple[float, float]) -> str:
    return f'<path class="arrow" d="M{" L".join(f"{x:.0f} {y:.0f}" for x, y in points)}"/>'


def drawn_loss() -> list[str]:
    lines = ["0.5 * size + any(wild)", "+ 2 * (any(pets)", "       and any(wild))"]
    parts = [text(28, 66 + 20 * i, words, "code") for i, words in enumerate(lines)]
    for i, name in enumerate(LOSS.labels):
        y = 128 + 28 * i
        parts += [
            text(28, y + 14, name, "small"),
            f'<rect class="bar" x="68" y="{y + 1}" width="{220 * P[i]:.0f}" height="17" rx="4"/>',
            text(76 + 220 * P[i], y + 14, f"{P[i]:g}", "small"),
        ]
    return parts


def drawn_arrays() -> list[str]:
    return [
        *(line((300, 102), (300, 132)), line((300, 178), (270, 208)), line((300, 178), (376, 208))),
        *box(232, 52, 190, 50, [("ADD", "code"), ("0.5 a label, 1 for wild, +", "small")]),
        *box(232, 132, 190, 46, [("SCALE 2 of SMALLER", "code"), ("the smaller of two", "small")]),
        *box(232, 208, 88, 46, [("QUANTITY", "code"), ("any(pets)", "small")]),
        *box(334, 208, 88, 46, [("QUANTITY", "code"), ("any(wild)", "small")]),
    ]


def drawn_nodes() -> list[str]:
    root, here, there = nodes()

    def lines(node: Looked) -> list[tuple[str, str]]:
        chosen = "all labels" if node.chosen.count(",") == LOSS.K - 1 else node.chosen
        title = "all sets" if node.decided == "nothing" else node.decided
        said = [f"bound {number(node.bound)}, by", chosen, f"L - mu p = {number(node.value)}"]
        return [(title, ""), *((words, "small") for words in said)]

    return [
        *(line((578, 140), (512, 186)), line((578, 140), (650, 186))),
        *box(504, 52, 148, 88, lines(root)),
        *box(446, 186, 132, 88, lines(here), "odd"),
        *box(590, 186, 132, 88, lines(there)),
        text(450, 294, "the best set", "small"),
        text(594, 294, "no better set here", "small"),
    ]


def drawn_prices() -> list[str]:
    asked, _ = questions()
    corners = sorted({(asked.mass, asked.cost, asked.found) for asked in asked})
    left, zero, bottom, wide, high = 756.0, 244.0, 270.0, 160.0, 165.0
    at = [(left + wide * mass, zero - high * cost / corners[-1][1]) for mass, cost, _ in corners]
    parts = [line((left, 56), (left, bottom), (left + wide + 16, bottom)), text(left + 8, 64, "cost", "small")]
    parts += [text(left + wide - 56, bottom + 18, "probability", "small")]
    parts.append(f'<path class="hull" d="M{" L".join(f"{x:.0f} {y:.0f}" for x, y in at)}"/>')
    for (x, y), (_, _, found) in zip(at, corners, strict=True):
        parts.append(f'<circle class="in" cx="{x:.0f}" cy="{y:.0f}" r="4"/>')
        if found.count(",") < 2 and found != "none":
            parts.append(text(x - 8 - 6 * len(found), y - 8, found, "small"))
    parts.append(text(at[-1][0] - 32, at[-1][1] + 4, "all", "small"))
    for (mass, cost, _), (more, most, _), (x, y), (x2, y2) in zip(corners, corners[1:], at, at[1:], strict=False):
        parts.append(text((x + x2) / 2 + 2, (y + y2) / 2 + 18, number((most - cost) / (more - mass)), "slope"))
    return parts


def drawn() -> str:
    said = (
        "Left to right: a loss and the probabilities of one row; the operations of the loss as a tree; a search of"
        f" three nodes for the best set at price {MU:g}; the lower hull of (probability, cost), whose slopes are prices"
    )
    heads = ((28, "A loss and a row"), (232, "Arrays"), (446, f"Best set at price {MU:g}"), (752, "Prices"))
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 312" role="img" aria-labelledby="t">',
        f'<title id="t">{escape(said)}</title>',
        f"<style>{STYLE}  .hull {{ stroke: #0b62a8; fill: none; stroke-width: 2 }}",
        "  .slope { font-size: 13px; fill: #c8500a; font-weight: 600 }",
        "</style>",
        '<rect class="card" x="1" y="1" width="958" height="310" rx="12"/>',
        *(text(x, 34, words, "head") for x, words in heads),
        *(f'<path class="tip" d="M{x} 29 l-9 -5 v10 z"/>' for x in (216, 430, 736)),
        *drawn_loss(),
        *drawn_arrays(),
        *drawn_nodes(),
        *drawn_prices(),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def page(before: str) -> str:
    """The page with its tables made anew."""
    for name, made in (("arrays", arrays_table()), ("nodes", nodes_table()), ("questions", questions_table())):
        begin, end = f"<!-- {name}: made by benchmarks/engine_page.py -->", f"<!-- end of {name} -->"
        before = between_markers(before, begin, end, made)
    return before


if __name__ == "__main__":
    write(FIGURE, drawn())
    write(PAGE, page(PAGE.read_text(encoding="utf-8")))
