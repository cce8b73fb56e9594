"""The order in which an oracle adds the labels of one row, with mass and cost at each step.

For an oracle that explains itself (`price`), also the lower hull of mass and cost: at which price each label enters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from udcp_dsl.diagnostics import InputError, worded
from udcp_dsl.showing import Column, Description, Result, Styled, Table, in_unit

if TYPE_CHECKING:
    from udcp_dsl.predict.oracle import Floats, Oracle, Probabilities

_SHOWN = 20
_WIDEST = 40  # columns of a list of labels


class Vertex(Protocol):
    """What is read of a step in an oracle's `explain`."""

    @property
    def price(self) -> float: ...
    @property
    def entered(self) -> tuple[str, ...]: ...
    @property
    def left(self) -> tuple[str, ...]: ...
    @property
    def mass(self) -> float: ...
    @property
    def cost(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Order(Result):
    """The order of the labels of one row; `Oracle.order` makes it.

    Attributes
    ----------
    oracle : Oracle
        The oracle, for the loss of this row.
    steps : tuple of dict
        One per label, in order: `rank`, `label`, `p`, `score`, and the `mass` and `cost` of the set up to this label.
    hull : sequence or None
        The sets that are best at some price, each with its `price`, `mass`, `cost` and the labels that `entered` and
        `left`; None if the oracle does not explain itself.
    row : int or None
        The position of the row, if it is one of many.
    id : str or None
        The row's id.
    """

    oracle: Oracle
    steps: tuple[dict[str, Any], ...]
    hull: Sequence[Vertex] | None
    row: int | None = None
    id: str | None = None

    @property
    def title(self) -> str:
        """Which row and which oracle this is."""
        row = "" if self.row is None else f", row {self.row}"
        name = "" if self.id is None else f", {self.id}"
        about = f", {self.oracle.about}" if self.oracle.about else ""
        return f"{row}{name}, by {self.oracle.name}{about}"

    def table(self) -> Mapping[str, Sequence[Any]]:
        """The columns by name, all of one length."""
        return {name: [step[name] for step in self.steps] for name in ("rank", "label", "p", "mass", "cost", "score")}

    def describe(self, most: int = _SHOWN) -> Description:
        """The steps and the hull; of each, at most so many are shown."""
        oracle, loss = self.oracle, self.oracle.loss
        cost = in_unit("cost", loss.unit)
        columns = (
            Column("rank", "rank", "d"),
            Column("label", "label"),
            Column("p", "p", ".4g"),
            Column("mass", "mass", ".6g"),
            Column(cost, "cost", ".6g"),
            Column("score", "score", ".6g"),
        )
        shown = self.steps[:most]
        more = f"the first {len(shown)} of {loss.K} labels; " if len(shown) < loss.K else ""
        note = Styled(f"{more}mass and cost of the set of all labels up to this one", "dim")
        tables = [Table(columns, self.steps, note=note, key="order", shown=shown)]
        return Description(
            title=(Styled(loss.name, "bold"), self.title),
            tables=(*tables, *([] if self.hull is None else [_hull_table(self.hull, most, cost)])),
            data={
                "loss": loss.name,
                "unit": loss.unit,
                "oracle": oracle.name,
                "about": oracle.about,
                "options": oracle.options,
                "row": self.row,
                "id": self.id,
                "labels": loss.K,
                "hull": None,
            },
        )


def order_of(oracle: Oracle, p: Probabilities, most: int | None = None) -> Order:
    """The first labels of one row (K,), all of them by default, for an oracle whose loss reads no inputs."""
    if oracle.untuned:
        way_out = worded("lam=0.1", "--option lam=0.1")
        raise InputError(f"oracle {oracle.name!r} has no lambda before it is calibrated: give one, {way_out}")
    (scores,) = oracle.scores(p[None, :])
    return Order(oracle, tuple(_steps(oracle, p, scores, most)), _explained(oracle, p, scores))


def _steps(oracle: Oracle, p: Probabilities, scores: Floats, most: int | None) -> list[dict[str, Any]]:
    """The labels by increasing score (ties: higher p, then lower index), and their prefixes."""
    p = p.astype(np.float64)
    order = np.lexsort((np.arange(p.size), -p, scores))[:most]
    grow = oracle.loss.increments(1)
    steps = []
    for rank, y in enumerate(order.tolist(), start=1):
        grow.push([y])
        score = float(scores[y])
        steps.append(
            {
                "rank": rank,
                "label": oracle.loss.labels[y],
                "p": float(p[y]),
                "mass": math.fsum(p[order[:rank]]),
                "cost": float(grow.value[0]) + 0.0,
                "score": score if math.isfinite(score) else str(score),
            }
        )
    return steps


def _explained(oracle: Oracle, p: Probabilities, scores: Floats) -> Sequence[Vertex] | None:
    """The hull of one row, if the oracle has one; it gets the known scores, if it takes them."""
    explain = getattr(oracle, "explain", None)
    if explain is None:
        return None
    hull: Sequence[Vertex] = explain(p, scores) if "scores" in signature(explain).parameters else explain(p)
    return hull


def vertex_as_dict(x: Vertex) -> dict[str, Any]:
    """Plain data for JSON."""
    return {"price": x.price, "entered": list(x.entered), "left": list(x.left), "mass": x.mass, "cost": x.cost + 0.0}


def _hull_table(hull: Sequence[Vertex], most: int, cost: str) -> Table:
    """The set at each price, one line per vertex; labels that left have a column only if there are any."""
    leaving = any(vertex.left for vertex in hull)
    columns = (
        Column("price", "price", ".6g"),
        Column("enter", lambda vertex: ", ".join(vertex["entered"]), width=_WIDEST),
        *([Column("left", lambda vertex: ", ".join(vertex["left"]), width=_WIDEST)] if leaving else []),
        Column("labels", "labels", "d"),
        Column("mass", "mass", ".6g"),
        Column(cost, "cost", ".6g"),
    )
    sizes = accumulate(len(vertex.entered) for vertex in hull)
    vertices = [vertex_as_dict(vertex) for vertex in hull]
    shown = [{**vertex, "labels": size} for vertex, size in zip(vertices, sizes, strict=True)][:most]
    more = f"the first {len(shown)} of {len(hull)} prices; " if len(shown) < len(hull) else ""
    note = (
        "sets are unions of the best sets up to their price; labels in the column 'left' are no longer in the best set"
        if leaving
        else "mass and cost of the best set at each price"
    )
    title = Styled("the hull: what each price of probability buys", "bold")
    return Table(columns, vertices, title, Styled(more + note, "dim"), "hull", shown)
