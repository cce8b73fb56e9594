"""Files of prediction sets: one row an instance, with its labels, its size and what it costs."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.prediction.cells import looks_like_formula, to_cell
from udcp_dsl.prediction.files import ARROW, PathLike, atomic_write, known_ending, require_pyarrow

_SETS = (*ARROW, ".csv", ".jsonl", ".npy")
_BLOCK = 1 << 22  # entries of a mask that are written at a time


def sets_ending(path: PathLike) -> str:
    """The ending of a file for `write_sets`; refuses those that it cannot write, here and now."""
    ending = known_ending(Path(path), _SETS)
    if ending in ARROW:
        require_pyarrow(ending)
    return ending


def write_sets(
    path: PathLike,
    *,
    mask: npt.NDArray[np.bool_],
    labels: Sequence[str],
    ids: Sequence[str] | npt.NDArray[np.str_] | None = None,
    costs: npt.NDArray[np.floating[Any]] | None = None,
    sizes: npt.NDArray[np.integer[Any]] | None = None,
    more: Mapping[str, npt.NDArray[Any]] | None = None,
) -> None:
    """Write prediction sets, one a row: id (row number if there are none), labels, size and, where given, cost.

    `more` are further columns of texts, numbers or truth values, such as the `decisions` of prediction sets.

    .parquet, .arrow, .feather: labels are a list of strings. .jsonl: one object a row. .csv: labels are joined by `|`;
    if any label of the spec is empty, contains `|`, starts with `[` or as formulas of spreadsheets do (`=`, `+`, `-`,
    `@`), every cell is a JSON array instead; an id that would be a formula has an apostrophe before it, which
    `read_column` and `read_rows` take away. .npy: the boolean mask alone.
    """
    file = Path(path)
    ending = sets_ending(path)
    n = len(mask)
    if mask.dtype != np.bool_ or mask.shape != (n, len(labels)):
        raise InputError(
            f"the mask has dtype {mask.dtype} and shape {mask.shape}, expected bool and (n, {len(labels)})"
        )
    counted = mask.sum(axis=1)
    columns = dict(more or {})
    for name, column in (("ids", ids), ("costs", costs), ("sizes", sizes), *columns.items()):
        if column is not None and len(column) != n:
            raise InputError(f"{name}: {len(column)} entries for {n} sets")
    if sizes is not None and not np.array_equal(sizes, counted):
        raise InputError(f"sizes: row {int(np.flatnonzero(sizes != counted)[0])} is not the size of its set")
    if costs is not None and not np.isfinite(costs).all():
        raise InputError(f"costs: row {int(np.flatnonzero(~np.isfinite(costs))[0])} is not a finite number")
    names = list(range(n)) if ids is None else [str(name) for name in ids]
    paid = None if costs is None else np.asarray(costs, np.float64)
    if paid is not None:
        columns = {"cost": paid, **columns}
    sets = _Sets(mask, list(labels), names, counted.astype(np.int64), columns)
    with atomic_write(file) as temporary:
        if ending == ".npy":
            with temporary.open("wb") as out:
                np.save(out, mask)
        elif ending == ".csv":
            _write_csv(temporary, sets)
        elif ending == ".jsonl":
            _write_jsonl(temporary, sets)
        else:
            _write_arrow(temporary, sets, ending)


@dataclass(frozen=True)
class _Sets:
    mask: npt.NDArray[np.bool_]
    labels: list[str]
    ids: list[Any]  # all str, or all int
    sizes: npt.NDArray[np.int64]
    more: Mapping[str, npt.NDArray[Any]]  # cost first, where it is known

    def blocks(self) -> Iterator[slice]:
        step = max(1, _BLOCK // max(1, len(self.labels)))
        return (slice(start, start + step) for start in range(0, len(self.mask), step))

    def rows(self) -> Iterator[tuple[str | int, list[str], int, dict[str, Any]]]:
        for block in self.blocks():
            members = [self.labels[label] for label in np.nonzero(self.mask[block])[1].tolist()]
            end = 0
            sizes = self.sizes[block].tolist()
            more = zip(*(column[block].tolist() for column in self.more.values()), strict=True)
            columns = list(more) if self.more else [()] * len(sizes)
            for name, size, values in zip(self.ids[block], sizes, columns, strict=True):
                start, end = end, end + size
                yield name, members[start:end], size, dict(zip(self.more, values, strict=True))


def _write_csv(file: Path, sets: _Sets) -> None:
    as_json = any(
        not label or "|" in label or label.startswith("[") or looks_like_formula(label) for label in sets.labels
    )
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["id", "labels", "size", *map(to_cell, sets.more)])
        for name, members, size, more in sets.rows():
            cell = json.dumps(members, ensure_ascii=False) if as_json else "|".join(members)
            writer.writerow([_cell(name), cell, size, *map(_cell, more.values())])


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return short(value)
    return to_cell(value) if isinstance(value, str) else value


def short(value: float) -> str:
    """A number as a CSV has it: to 12 digits, where those after them are what rounding left, and whole ones in full.

    >>> short(0.1 + 0.2), short(1 / 3), short(123456789012345.0)
    ('0.3', '0.333333333333', '123456789012345.0')
    """
    return repr(value if value.is_integer() else float(f"{value:.12g}"))


def _write_jsonl(file: Path, sets: _Sets) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        for name, members, size, more in sets.rows():
            row = {"id": name, "labels": members, "size": size, **more}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_arrow(file: Path, sets: _Sets, ending: str) -> None:
    pa = require_pyarrow(ending)
    ids = pa.array(sets.ids, pa.int64() if sets.ids and isinstance(sets.ids[0], int) else pa.string())
    names = pa.array(sets.labels, pa.string())
    fields = {"id": ids.type, "labels": pa.list_(pa.string()), "size": pa.int64()}
    kinds = {"b": pa.bool_(), "f": pa.float64(), "U": pa.string()}
    fields |= {name: kinds[column.dtype.kind] for name, column in sets.more.items()}
    schema = pa.schema(fields)
    with pa.parquet.ParquetWriter(file, schema) if ending == ".parquet" else pa.ipc.new_file(file, schema) as writer:
        for block in sets.blocks():
            members = names.take(pa.array(np.nonzero(sets.mask[block])[1]))
            offsets = np.concatenate([[0], np.cumsum(sets.sizes[block])]).astype(np.int32)
            columns = [ids[block], pa.ListArray.from_arrays(pa.array(offsets), members), pa.array(sets.sizes[block])]
            columns += [pa.array(column[block], fields[name]) for name, column in sets.more.items()]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
