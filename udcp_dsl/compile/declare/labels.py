"""The labels: in place, as a range, from a file, or given from outside; and lists of labels anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from udcp_dsl.compile.declare.declared import Declared, Fault
from udcp_dsl.compile.declare.matching import ending, label_array, only, whole
from udcp_dsl.compile.sources import FileFault, read_json
from udcp_dsl.diagnostics import Span
from udcp_dsl.expression.domain import Ints
from udcp_dsl.language import ast


def declare_labels(d: Declared, spec: ast.Spec, given: Sequence[str] | None) -> None:
    declared = [x for x in spec.declarations if isinstance(x, ast.Labels)]
    for second in declared[1:]:
        d.error("E202", second.span, "labels are declared a second time", "a spec has one list of labels")
    if not declared:
        start = Span(spec.span.source, 0, 0)
        if given is not None:
            _take_labels(d, list(given), start)
        elif "labels" not in spec.unread:
            way_out = "write `labels { a, b }` or `labels 0..9`, or give labels= to load"
            d.error("E203", start, "the spec declares no labels, and none were given", way_out)
        return
    declaration = declared[0]
    try:
        names = _declared_labels(d, declaration)
    except Fault:
        return
    except FileFault as fault:
        d.error(fault.code, declaration.span, fault.message, fault.help)
        return
    if given is not None and list(given) != names:
        d.error("E204", declaration.span, "the labels given from outside differ from the spec's own",
                "leave them out, or leave out the spec's `labels`")  # fmt: skip
        return
    _take_labels(d, names, declaration.span)


def _declared_labels(d: Declared, declaration: ast.Labels) -> list[str]:
    body = declaration.body
    if isinstance(body, ast.File):
        names = _labels_from(d, body)
    else:
        names = []
        seen: set[str] = set()
        for item in body:
            for name in expand(item):
                if name in seen:
                    d.error("E205", item.span, f"label {name!r} is listed twice", "list it once")
                    break  # go on without it, so that the other faults are found too
                seen.add(name)
                names.append(name)
    return names


def _labels_from(d: Declared, file: ast.File) -> list[str]:
    whole(file)
    if ending(file) == "csv":
        table = d.files.table(file.path)
        d.label_column = file.column.text if file.column else table.header[0]
        return list(table.keyed(d.label_column)[1])
    only(file, "labels", "csv", "json")
    value = read_json(file.path, d.files.read(file.path))
    names = label_array(value, file.path)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise FileFault("E306", f"{file.path}: label {name!r} is listed twice", "list it once")
        seen.add(name)
    return names


def _take_labels(d: Declared, names: list[str], span: Span) -> None:
    if not names:
        d.error("E206", span, "there are no labels", "list at least one")
        return
    blank = next((i for i, name in enumerate(names) if not name), None)
    if blank is not None:
        d.error("E207", span, f"label number {blank + 1} is empty", "give every label a name")
        return
    d.labels = tuple(names)
    d.index = {name: y for y, name in enumerate(names)}
    if len(d.index) != len(names):
        twice = next(name for y, name in enumerate(names) if d.index[name] != y)
        d.error("E205", span, f"label {twice!r} is listed twice", "list it once")


def expand(item: ast.Item) -> Iterable[str]:
    """The names that a name or a range stands for."""
    if isinstance(item, ast.Name):
        return (item.text,)
    return (str(i) for i in range(item.first, item.last + 1))


def positions(d: Declared, items: Sequence[ast.Item]) -> Ints:
    """The positions of listed labels; every unknown or repeated one is reported before giving up."""
    found: dict[int, None] = {}
    good = True
    for item in items:
        for name in expand(item):
            y = d.index.get(name)
            if y is None:
                d.error("E210", item.span, f"unknown label {name!r}", d.meant(name, d.labels))
                good = False
                break
            if y in found:
                d.error("E205", item.span, f"label {name!r} is listed twice", "list it once")
                good = False
                break
            found[y] = None
    if not good:
        raise Fault
    return np.array(sorted(found), dtype=np.int64)
