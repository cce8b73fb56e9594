"""`costs`: a number for each label, or for each category of a family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.compile.declare.families import build_row_costs, family_of
from udcp_dsl.compile.declare.labels import expand, report_twice, report_unknown
from udcp_dsl.compile.declare.matching import column, ending, listed, require_all_keys, require_ending, rows_of
from udcp_dsl.compile.sources import FileFault, finite, read_json, read_npy
from udcp_dsl.diagnostics import Fix
from udcp_dsl.expression.domain import Costs, Floats
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
    given: dict[int, ast.Item] = {}
    unknown: list[tuple[ast.Item, str]] = []
    good = True
    for entry in x.body:
        for key in expand(entry.key):
            i = index.get(key)
            if i is None:
                unknown.append((entry.key, key))
                break
            if key in several:
                d.error("E215", entry.key.span, f"{key!r} names several categories of {of!r}", _NO_NAME)
                good = False
                break
            if i in given:
                report_twice(d, entry.key, f"{what} {key!r} already has a cost", "give it one cost", given[i])
                good = False
                break
            given[i] = entry.key
            values[i] = entry.value.value
    report_unknown(d, unknown, keys, (entry.key for entry in x.body), what)
    good = good and not unknown
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
