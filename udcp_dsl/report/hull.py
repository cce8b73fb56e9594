"""One instance as a figure: mass and cost of the sets along an oracle's order, and its lower hull if it has one.

No set lies below the hull. The slope of an edge is the price at which the labels of the next vertex enter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from udcp_dsl.diagnostics import InputError
from udcp_dsl.files import PathLike, atomic_write
from udcp_dsl.report.drawing import rendered, require_matplotlib
from udcp_dsl.report.figures import Figure
from udcp_dsl.report.look import INK, MUTED, number, shown, styles
from udcp_dsl.report.plots import Hover
from udcp_dsl.showing import in_unit, visible

if TYPE_CHECKING:
    from udcp_dsl.predict.order import Order, Vertex

ENDINGS = (".svg", ".png", ".pdf")

_HEIGHT = 4.0  # inches
_NAMED_LABELS = 3  # labels that are named at a vertex
_NAME_LENGTH = 16  # characters of a label
_MIN_TEXT_GAP = (0.16, 0.055)  # shares of the width and of the height: closer than this, two texts would touch
_MIN_LABELLED_EDGE = 0.06  # share of the axes: a shorter edge is not labelled with its price
_SHOWN_MASS = 0.995  # share of the mass that is shown: the rest costs much and shows little


class Point(NamedTuple):
    mass: float
    cost: float


def check_figure(path: PathLike) -> None:
    """Raise InputError for a file that `write_hull` cannot write, before the work is done."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"{path}: unknown extension {ending!r} of a figure; known: {', '.join(ENDINGS)}")
    require_matplotlib()


def write_hull(path: PathLike, order: Order) -> None:
    """Write the figure of all labels of a row as .svg, .png or .pdf."""
    check_figure(path)
    loss = order.oracle.loss
    prefixes = [Point(0.0, loss(())), *(Point(step["mass"], step["cost"]) for step in order.steps)]
    title = visible(f"{loss.name}{order.title}")
    figure = hull_figure(title, order.oracle.name, prefixes, order.hull, loss.unit)
    ending = Path(path).suffix.lower()[1:]
    with atomic_write(path) as temporary:
        temporary.write_bytes(rendered(figure, ending)[ending])


def hull_figure(
    title: str, oracle: str, order: Sequence[Point], vertices: Sequence[Vertex] | None, unit: str | None = None
) -> Figure:
    """The figure; `order` are the prefixes of the order, from the empty set on."""
    draw = partial(_draw, title=title, oracle=oracle, order=order, vertices=vertices, unit=unit)
    text = f"Mass and cost of the sets along the order of {shown(oracle)}."
    return Figure("hull", title, "", text, _HEIGHT, draw)


def _draw(
    figure: Any,
    *,
    title: str,
    oracle: str,
    order: Sequence[Point],
    vertices: Sequence[Vertex] | None,
    unit: str | None,
) -> Hover:
    axes = figure.subplots()
    axes.set_title(shown(title, 70), fontsize=9)
    look = styles([oracle])[oracle]
    shown_up_to = _limits(axes, order)
    mass, cost = zip(*order, strict=True)
    label = f"prefixes of the order by {shown(oracle)}"
    faint = vertices is not None
    axes.plot(
        mass, cost, marker=look.marker, markersize=2.5 if faint else 4, linewidth=0 if faint else 1.2,
        color=MUTED.light if faint else look.colour.light, label=label, zorder=2,
    )  # fmt: skip
    if vertices is not None:
        _hull(axes, vertices, look.colour.light)
    hidden = sum(point.cost > shown_up_to for point in order)
    if hidden:
        note = f"{hidden} longer prefix{'es' if hidden > 1 else ''} above, of no more than {1 - _SHOWN_MASS:.1%} mass"
        axes.text(0.98, 0.02, note, ha="right", va="bottom", fontsize=7, color=MUTED.light, transform=axes.transAxes)
    axes.set(xlabel="mass p(S)", ylabel=shown(in_unit("cost L(S)", unit), 40))
    figure.legend(loc="outside lower center", ncols=2)
    return []


def _limits(axes: Any, order: Sequence[Point]) -> float:
    """Make room for the sets up to nearly all of the mass; returns the highest cost shown."""
    total = order[-1].mass
    first = next(i for i, point in enumerate(order) if point.mass >= _SHOWN_MASS * total)
    costs = [point.cost for point in order[: first + 1]]
    low, high = min(costs), max(costs)
    margin = 0.08 * (high - low) or 1.0
    axes.set_xlim(-0.04 * total, 1.2 * total)  # names of labels are to the right
    axes.set_xticks([x / 5 for x in range(6)])
    axes.set_ylim(low - margin, high + margin)
    return high + margin


def _hull(axes: Any, vertices: Sequence[Vertex], colour: str) -> None:
    corners = lower_hull([Point(v.mass, v.cost) for v in vertices])
    axes.plot(*zip(*corners, strict=True), color=colour, linewidth=1.4, label="lower hull: slopes are prices", zorder=3)
    axes.plot(*zip(*((v.mass, v.cost) for v in vertices), strict=True), "o", color=colour, markersize=4, zorder=4)
    for i in _worth_a_name(axes, vertices):
        vertex = vertices[i]
        axes.annotate(
            _names(vertex), (vertex.mass, vertex.cost), xytext=(5, -7), textcoords="offset points", fontsize=7,
            color=INK.light, annotation_clip=True, zorder=5,
        )  # fmt: skip
        if i and _distance(axes, vertices[i - 1], vertex) > _MIN_LABELLED_EDGE:
            middle = ((vertices[i - 1].mass + vertex.mass) / 2, (vertices[i - 1].cost + vertex.cost) / 2)
            axes.annotate(
                number(vertex.price), middle, xytext=(-3, 3), textcoords="offset points", ha="right", fontsize=7,
                color=colour, annotation_clip=True, zorder=5,
            )  # fmt: skip


def lower_hull(points: Sequence[Point]) -> list[Point]:
    """The corners of the lower hull, by increasing mass.

    >>> lower_hull([Point(0, 0), Point(1, 3), Point(2, 2), Point(3, 5)])
    [Point(mass=0, cost=0), Point(mass=2, cost=2), Point(mass=3, cost=5)]
    """
    corners: list[Point] = []
    for point in sorted(points):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (b.cost - a.cost) * (point.mass - a.mass) < (point.cost - a.cost) * (b.mass - a.mass):
                break
            corners.pop()
        corners.append(point)
    return corners


def _worth_a_name(axes: Any, vertices: Sequence[Vertex]) -> Iterator[int]:
    """The vertices to name, those that add most mass first, unless their texts would touch."""
    gains = [v.mass - (vertices[i - 1].mass if i else 0.0) for i, v in enumerate(vertices)]
    placed: list[tuple[float, float]] = []
    for i in sorted(range(len(vertices)), key=lambda i: -gains[i]):
        x, y = _place(axes, vertices[i])
        free = all(abs(x - u) > _MIN_TEXT_GAP[0] or abs(y - v) > _MIN_TEXT_GAP[1] for u, v in placed)
        if vertices[i].entered and 0 <= y <= 1 and free:
            placed.append((x, y))
            yield i


def _place(axes: Any, vertex: Vertex) -> tuple[float, float]:
    """The place of a vertex, as shares of the axes."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    return (vertex.mass - left) / (right - left), (vertex.cost - low) / (high - low)


def _distance(axes: Any, a: Vertex, b: Vertex) -> float:
    (x, y), (u, v) = _place(axes, a), _place(axes, b)
    return float(((x - u) ** 2 + (y - v) ** 2) ** 0.5)


def _names(vertex: Vertex) -> str:
    text = f"+ {_listed(vertex.entered)}"
    return f"{text}; left: {_listed(vertex.left)}" if vertex.left else text


def _listed(labels: Sequence[str]) -> str:
    named = ", ".join(shown(label, _NAME_LENGTH) for label in labels[:_NAMED_LABELS])
    return f"{named} and {len(labels) - _NAMED_LABELS} more" if len(labels) > _NAMED_LABELS else named
