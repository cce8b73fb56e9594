"""Numbers: `costs` of labels or of categories, `actions`, `param`; `input` and costs `per row`, given with each row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.compile.declare.families import family_of
from udcp_dsl.compile.declare.labels import expand, find
from udcp_dsl.compile.declare.matching import (
    column,
    ending,
    key_column,
    listed,
    require_all_keys,
    require_ending,
    rows_of,
)
from udcp_dsl.compile.sources import FileFault, finite, read_json, read_npy
from udcp_dsl.diagnostics import Fix, Related, Span
from udcp_dsl.expression.domain import Actions, Costs, Floats
from udcp_dsl.expression.inputs import RowCosts, RowInput
from udcp_dsl.language import ast

_NO_NAME = "rename one of them, or give the costs in order, as .npy"


def build_costs(d: Declared, x: ast.Costs) -> Costs:
    if isinstance(x.body, ast.PerRow):
        return build_row_costs(d, x, x.body)
    family = None
    keys: Sequence[str] = d.labels
    of = ""
    if x.of is not None:
        found = family_of(d, x.of)
        if found is None:
            raise DeclarationFailed
        family, keys, of = found, found.names, found.name
    what = "label" if family is None else "category"
    several: set[str] = set()
    if family is not None:  # nodes of one name under different parents; labels have different names
        several = {key for key, many in Counter(keys).items() if many > 1}
    if isinstance(x.body, ast.File):
        if several and ending(x.body) != "npy":
            raise FileFault("E215", f"{min(several)!r} names several categories of {of!r}", _NO_NAME)
        return Costs(x.name.text, _costs_from(d, x.body, keys, what, family is not None), family)
    index = d.index if family is None else {name: i for i, name in enumerate(keys)}
    values = np.full(len(keys), np.nan if x.default is None else x.default.value)
    entries = []
    for entry in x.body:
        ambiguous = next((key for key in expand(entry.key) if key in several), None)
        if ambiguous is None:
            entries.append(entry)
        else:
            d.error("E215", entry.key.span, f"{ambiguous!r} names several categories of {of!r}", _NO_NAME)
    given, good = find(d, [entry.key for entry in entries], index, what, "already has a cost", "give it one cost")
    good = good and len(entries) == len(x.body)
    values[list(given)] = [entries[number].value.value for number in given.values()]
    missing = [key for i, key in enumerate(keys) if i not in given] if x.default is None else []
    if missing and good:
        them = "it" if len(missing) == 1 else "them"
        message, way_out = f"no cost for {listed(missing, what)}", f"add {them}, or `default: 0`"
        d.error("E220", x.name.span, message, way_out, fixes=[_default_of_zero(x)])
        good = False
    if not good:
        raise DeclarationFailed
    return Costs(x.name.text, values, family)


def _default_of_zero(x: ast.Costs) -> Fix:
    """`, default: 0` after the last entry, or after the comma that follows it."""
    assert isinstance(x.body, tuple)
    source, end = x.span.source, x.body[-1].span.end
    rest = source.text[end : x.span.end].lstrip()
    if not rest.startswith(","):
        return Fix.add(source, end, ", default: 0")
    return Fix.add(source, x.span.end - len(rest) + 1, " default: 0")


def _costs_from(d: Declared, file: ast.File, keys: Sequence[str], what: str, of_family: bool) -> Floats:
    kind = ending(file)
    if kind == "csv":
        table, rows = rows_of(d, file, None if not of_family else keys, what)
        at = column(file, table)
        return np.array([table.number(row, at) for row in rows])
    if kind == "npy":
        array = read_npy(file.path, d.files.read(file.path))
        if array.shape != (len(keys),):
            raise FileFault(
                "E307",
                f"{file.path} has shape {array.shape}, not ({len(keys)},)",
                f"give one number per {what}, in order",
            )
        return array
    require_ending(file, "costs", "csv", "json", "npy")
    value = read_json(file.path, d.files.read(file.path))
    if not isinstance(value, dict):
        raise FileFault("E303", f"{file.path} is not an object", 'write {"name": 1.5, ...}')
    require_all_keys(d, file, value, keys, what)
    return np.array([finite(value[key], f"{file.path}: {key!r}") for key in keys])


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


def build_param(d: Declared, x: ast.Param, params: Mapping[str, float]) -> float:
    name, written = x.name.text, x.value.value
    value = params.get(name, written)
    low = -math.inf if x.low is None else x.low.value
    high = math.inf if x.high is None else x.high.value
    if x.low is not None and x.high is not None and low > high:
        d.error(
            "E251", x.low.span.to(x.high.span), f"the range [{low:g}, {high:g}] is empty", "write the smaller end first"
        )
        raise DeclarationFailed
    for number, span in ((written, x.value.span), (value, x.name.span)):
        if not low <= number <= high:
            message = f"parameter {name} = {number:g} is outside [{low:g}, {high:g}]"
            ends = [] if x.low is None or x.high is None else [Related(x.low.span.to(x.high.span), "its range")]
            d.error("E250", span, message, "choose a value in the range, or widen it", related=ends)
            raise DeclarationFailed
    return float(value)


def build_actions(d: Declared, x: ast.Actions) -> Actions:
    file = x.body
    if ending(file) == "csv":
        table, rows = rows_of(d, file)
        key = table.keyed(key_column(d, file, table))[0]
        columns = [i for i in range(len(table.header)) if i != key]
        actions = tuple(table.header[i] for i in columns)
        values = [[table.number(row, i) for i in columns] for row in rows]
    else:
        require_ending(file, "actions", "csv", "json")
        value = read_json(file.path, d.files.read(file.path))
        if not isinstance(value, dict) or not all(isinstance(row, dict) for row in value.values()):
            raise FileFault(
                "E303", f"{file.path} is not an object of objects", 'write {"label": {"action": 1.5, ...}, ...}'
            )
        require_all_keys(d, file, value, d.labels, "label")
        actions = tuple(value[d.labels[0]])
        for label in d.labels:
            if set(value[label]) != set(actions):
                raise FileFault(
                    "E303",
                    f"{file.path}: {label!r} has other actions than {d.labels[0]!r}",
                    "give each label all actions",
                )
        values = [[finite(value[label][a], f"{file.path}: {label!r}: {a!r}") for a in actions] for label in d.labels]
    if not actions:
        raise FileFault("E303", f"{file.path} has no action", "give at least one column of losses")
    return Actions(x.name.text, actions, np.array(values, dtype=np.float64))
