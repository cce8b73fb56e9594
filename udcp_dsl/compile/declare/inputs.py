"""`input`, and costs `per row`: numbers that are given with each row, within a range that the spec declares."""

from __future__ import annotations

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.compile.declare.families import family_of
from udcp_dsl.diagnostics import Span
from udcp_dsl.expression.rows.declared import RowCosts, RowInput
from udcp_dsl.language import ast


def build_input(d: Declared, x: ast.Input) -> RowInput:
    low, high = _range(d, x.low, x.high)
    _refuse_label(d, x.name)
    return RowInput(x.name.text, low, high)


def build_row_costs(d: Declared, x: ast.Costs, body: ast.PerRow) -> RowCosts:
    family = None if x.of is None else family_of(d, x.of)
    if x.of is not None and family is None:
        raise DeclarationFailed
    low, high = _range(d, body.low, body.high)
    _refuse_label(d, x.name)
    return RowCosts.of_range(x.name.text, d.K if family is None else len(family), family, low, high)


def declared_input(d: Declared, thing: object) -> RowInput | None:
    """The input that a thing of a spec declares, or None."""
    if isinstance(thing, RowInput):
        return thing
    if not isinstance(thing, RowCosts):
        return None
    entries = d.labels if thing.of is None else thing.of.names
    return RowInput(thing.name, thing.low, thing.high, entries, None if thing.of is None else thing.of.name)


def _range(d: Declared, low: ast.Signed, high: ast.Signed) -> tuple[float, float]:
    if low.value > high.value:
        span: Span = low.span.to(high.span)
        message = f"the range [{low.value:g}, {high.value:g}] is empty"
        d.error("E251", span, message, "write the smaller end first")
        raise DeclarationFailed
    return low.value, high.value


def _refuse_label(d: Declared, name: ast.Name) -> None:
    """Refuse an input with the name of a label: in a table, both would have the same column."""
    if name.text in d.index:
        message = f"{name.text!r} is a label: an input of this name would share its column in tables"
        d.error("E252", name.span, message, f"choose another name, such as {name.text}_input")
        raise DeclarationFailed
