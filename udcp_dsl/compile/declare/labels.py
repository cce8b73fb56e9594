"""Labels: in place, as a range, from a file, or passed by the caller; and lists of labels anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from udcp_dsl.compile.declare.declared import DeclarationFailed, Declared
from udcp_dsl.compile.declare.matching import ending, label_array, refuse_column_clauses, require_ending
from udcp_dsl.compile.sources import FileFault, read_json
from udcp_dsl.diagnostics import Fix, Related, Span
from udcp_dsl.expression.domain import Ints
from udcp_dsl.language import ast
from udcp_dsl.language.unparse import name_text

LISTED_FIRST = "it is listed here first"


def declare_labels(d: Declared, spec: ast.Spec, given: Sequence[str] | None) -> None:
    declared = [x for x in spec.declarations if isinstance(x, ast.Labels)]
    for second in declared[1:]:
        first = Related(declared[0].span, "the labels are declared here first")
        way_out = "a spec has one list of labels"
        d.error("E202", second.span, "labels are declared twice", way_out, related=[first])
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
    except DeclarationFailed:
        return
    except FileFault as fault:
        fixes = fault.fixes(declaration.body) if isinstance(declaration.body, ast.File) else ()
        d.error(fault.code, declaration.span, fault.message, fault.help, fixes=fixes)
        return
    if given is not None and list(given) != names:
        d.error("E204", declaration.span, "the labels that were passed differ from those of the spec",
                "pass no labels, or remove `labels` from the spec")  # fmt: skip
        return
    _take_labels(d, names, declaration.span)


def _declared_labels(d: Declared, declaration: ast.Labels) -> list[str]:
    body = declaration.body
    if isinstance(body, ast.File):
        names = _labels_from(d, body)
    else:
        names = []
        first: dict[str, ast.Item] = {}
        for item in body:
            for name in expand(item):
                if name in first:
                    report_twice(d, item, f"label {name!r} is listed twice", "list it once", first[name])
                    break  # go on without it, so that the other faults are found too
                first[name] = item
                names.append(name)
    return names


def _labels_from(d: Declared, file: ast.File) -> list[str]:
    refuse_column_clauses(file)
    if ending(file) == "csv":
        table = d.files.table(file.path)
        if table.starts_with_index and file.column is None:
            named = [name_text(name) for name in table.header[1:] if name]
            ways = [Fix.add(file.span.source, file.span.end, f" column {name}") for name in named]
            d.error(
                "E309", file.span,
                f"the first column of {file.path} is an index of its rows ({table.rows[0][0]}, ...) without a name",
                f"add `column NAME`; it has {', '.join(named)}", fixes=ways,
            )  # fmt: skip
            raise DeclarationFailed
        d.label_column = file.column.text if file.column else table.header[0]
        return list(table.keyed(d.label_column)[1])
    require_ending(file, "labels", "csv", "json")
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


def report_twice(d: Declared, item: ast.Item, message: str, way_out: str, first: ast.Item) -> None:
    """E205, with the place where it is listed first."""
    d.error("E205", item.span, message, way_out, related=[Related(first.span, LISTED_FIRST)])


def report_unknown(
    d: Declared, unknown: Iterable[tuple[ast.Item, str]], known: Sequence[str], items: Iterable[ast.Item], what: str
) -> None:
    """Report E210 for each; a fix is a near name that is not among the `items`."""
    listed: set[str] | None = None
    for item, name in unknown:
        suggestion = d.suggest_name(name, known)
        fixes: tuple[Fix, ...] = ()
        if isinstance(item, ast.Name) and suggestion.names:
            listed = {other.text for other in items if isinstance(other, ast.Name)} if listed is None else listed
            fixes = suggestion.fixes(item.span, name_text, lambda other, listed=listed: other not in listed)  # type: ignore[misc]
        d.error("E210", item.span, f"unknown {what} {name!r}", suggestion.help, fixes=fixes)


def positions(d: Declared, items: Sequence[ast.Item]) -> Ints:
    """The positions of listed labels; every unknown or repeated one is reported before giving up."""
    found, good = find(d, items, d.index, "label", "is listed twice", "list it once")
    if not good:
        raise DeclarationFailed
    return np.array(sorted(found), dtype=np.int64)


def find(
    d: Declared, items: Sequence[ast.Item], index: Mapping[str, int], what: str, again: str, way_out: str
) -> tuple[dict[int, int], bool]:
    """The number of the item that lists each position, and whether there was no error, all of which are reported."""
    found: dict[int, int] = {}
    unknown: list[tuple[ast.Item, str]] = []
    good = True
    for number, item in enumerate(items):
        for name in expand(item):
            y = index.get(name)
            if y is None:
                unknown.append((item, name))
                break
            if y in found:
                report_twice(d, item, f"{what} {name!r} {again}", way_out, items[found[y]])
                good = False
                break
            found[y] = number
    report_unknown(d, unknown, tuple(index), items, what)
    return found, good and not unknown
