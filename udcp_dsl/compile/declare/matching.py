"""What several declarations do with their files: match rows with labels, and check entries and extensions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from udcp_dsl.compile.declare.declared import Declared
from udcp_dsl.compile.sources import FileFault, Table, shown
from udcp_dsl.expression.domain import Family, Hierarchy, Ints
from udcp_dsl.language import ast


def rows_of(
    d: Declared, file: ast.File, keys: Sequence[str] | None = None, what: str = "label"
) -> tuple[Table, list[int]]:
    """The table, and the row of each key (of each label, if none are given)."""
    table = d.files.table(file.path)
    by = key_column(d, file, table) if keys is None or file.by is not None else None
    rows = table.keyed(by)[1]
    wanted = d.labels if keys is None else keys
    matched = "by `by COLUMN`, else by the column of the labels, else by the first"
    require_all_keys(
        d, file, rows, wanted, what, matched if keys is None else "by `by COLUMN`, else by the first column"
    )
    return table, [rows[key] for key in wanted]


def key_column(d: Declared, file: ast.File, table: Table) -> str | None:
    """The column whose cells are labels: `by`, else the one that `labels` named, else the first."""
    if file.by is not None:
        return file.by.text
    return d.label_column if d.label_column in table.positions else None


def require_all_keys(
    d: Declared, file: ast.File, found: Iterable[str], wanted: Sequence[str], what: str, matched: str = ""
) -> None:
    """Every wanted key must be there; others cause a warning. `matched`, for the message, is how rows are matched."""
    there = set(found)
    missing = [key for key in wanted if key not in there]
    if missing:
        way_out = f"add {'it' if len(missing) == 1 else 'them'}"
        if matched:
            way_out += f"; rows are matched {matched}"
        elif what == "label" and there.isdisjoint(wanted) and (family := _family_of(d, there)):
            way_out = f"these are the categories of {family!r}: costs and distances may be `of {family}`; "
            way_out += "else give an entry for each label"
        raise FileFault("E308", f"{file.path} has no entry for {listed(missing, what)}", way_out)
    extra = there.difference(wanted)
    if extra:
        message = f"{file.path} has entries for {listed(sorted(extra), what)}, which the spec does not know"
        d.warn("W501", file.span, message, "they are ignored: remove them, or add them to the spec")


def _family_of(d: Declared, names: set[str]) -> str | None:
    """A family, or a level of a hierarchy, that has all these categories."""
    families = [thing for thing in d.things.values() if isinstance(thing, Family)]
    trees = [thing for thing in d.things.values() if isinstance(thing, Hierarchy)]
    families += [tree.level(depth) for tree in trees for depth in range(1, tree.height + 1)]
    return next((family.name for family in families if names <= set(family.names)), None)


def known_positions(d: Declared, file: ast.File, names: Sequence[str]) -> Ints:
    seen: set[str] = set()
    for name in names:
        if name not in d.index:
            raise FileFault("E210", f"{file.path}: unknown label {name!r}", d.suggest_name(name, d.labels).help)
        if name in seen:
            raise FileFault("E306", f"{file.path}: label {name!r} is listed twice", "list it once")
        seen.add(name)
    return np.array(sorted(d.index[name] for name in names), dtype=np.int64)


def label_array(value: object, where: str) -> list[str]:
    """An array of labels: strings, or whole numbers that stand for themselves."""
    if not isinstance(value, list):
        raise FileFault("E303", f"{where} is not an array", 'write ["label", ...]')
    for item in value:
        if not isinstance(item, str) and (isinstance(item, bool) or not isinstance(item, int)):
            raise FileFault("E303", f"{where}: {shown(item)} is not a label", "labels are strings or whole numbers")
    return [str(item) for item in value]


def ending(file: ast.File) -> str:
    return file.path.rpartition(".")[2].lower()


def require_ending(file: ast.File, what: str, *endings: str) -> None:
    if ending(file) not in endings:
        listed = ", ".join(f".{e}" for e in endings)
        raise FileFault("E307", f"{what} cannot be read from {file.path!r}", f"known endings: {listed}")


def refuse_column_clauses(file: ast.File) -> None:
    """Refuse clauses for columns, if the file is not CSV."""
    if ending(file) in ("json", "npy") and (file.column or file.by or file.levels):
        word = "column" if file.column else "by" if file.by else "levels"
        raise FileFault("E309", f"`{word}` is for CSV files, and {file.path} is read whole", f"leave out `{word}`")


def column(file: ast.File, table: Table) -> int:
    """The position of the column that the file's clause names."""
    if file.column is None:
        has = ", ".join(table.header)
        raise FileFault("E309", f"which column of {file.path} is meant?", f"add `column NAME`; it has {has}")
    return table.position(file.column.text)


def listed(names: Sequence[str], what: str) -> str:
    many = len(names)
    shown_names = ", ".join(repr(n) for n in names[:3])
    if many == 1:
        return f"{what} {shown_names}"
    plural = "categories" if what == "category" else f"{what}s"
    return f"{many} {plural}: {shown_names}" + (", ..." if many > 3 else "")
