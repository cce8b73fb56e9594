"""Files of prediction sets: one row per instance, with its labels, size and cost; written in blocks."""

from __future__ import annotations

import csv
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.diagnostics import InputError
from udcp_dsl.expression.atoms import Sets
from udcp_dsl.files import ARROW, PathLike, atomic_write, growing_array, known_ending, require_pyarrow
from udcp_dsl.rows.text import looks_like_formula, to_cell

SETS = (*ARROW, ".csv", ".jsonl", ".npy")
P_VALUES = (".npy", ".csv")
_BLOCK = 1 << 22  # mask entries written at a time


def sets_ending(path: PathLike) -> str:
    """The ending of a file for `write_sets`; refuses one that cannot be written (unknown, or pyarrow is missing)."""
    ending = known_ending(Path(path), SETS)
    if ending in ARROW:
        require_pyarrow(ending)
    return ending


class CoverageRecord(NamedTuple):
    """Rows with known truth: true labels, whether they are covered, the likeliest labels and whether no other is as
    likely, and the highest probabilities."""

    truth: npt.NDArray[np.int64]
    covered: npt.NDArray[np.bool_]
    highest: npt.NDArray[np.float64]
    likeliest: npt.NDArray[np.int64]
    untied: npt.NDArray[np.bool_]
    harms: npt.NDArray[np.float64] | None = None  # of missing the truth, if harm is bounded


@dataclass(frozen=True, eq=False)
class OutputBlock:
    """What is written for some rows: ids (or row numbers), sets, costs, and further columns.

    `more` has a column of numbers, texts or truth values for each name; `carried` is a RecordBatch of input columns to
    copy. `ids` are texts, a range, or in the type of the input: an Arrow or numpy array, or JSON values.
    """

    labels: Sequence[str]
    sets: Sets
    ids: Any
    costs: npt.NDArray[np.float64] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    carried: Any = None
    id_name: str = "id"
    coverage: CoverageRecord | None = None  # not written

    def with_ids(self, name: str | None, values: Any) -> OutputBlock:
        """The same with these values as ids, in their own type, and this name for their column, if it is not taken."""
        named = self.id_name if name is None or name in self.header[1:] else name
        return replace(self, ids=self.ids if values is None else values, id_name=named)

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        return np.diff(self.sets.offsets)

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        cost = [] if self.costs is None else ["cost"]
        carried = [] if self.carried is None else self.carried.schema.names
        return [self.id_name, "labels", "size", *cost, *self.more, *carried]

    def rows(self) -> Iterator[list[Any]]:
        """One list of plain Python values per row, in the order of `header`."""
        members = [self.labels[label] for label in self.sets.members.tolist()]
        lists = [members[start:end] for start, end in pairwise(self.sets.offsets.tolist())]
        ids = self.ids.tolist() if hasattr(self.ids, "tolist") else self.ids  # arrays of numpy and of Arrow
        columns: list[Sequence[Any]] = [ids, lists, self.sizes.tolist()]
        columns += [] if self.costs is None else [self.costs.tolist()]
        columns += [np.asarray(column).tolist() for column in self.more.values()]
        columns += [] if self.carried is None else [column.to_pylist() for column in self.carried.columns]
        return (list(row) for row in zip(*columns, strict=True))

    def batch(self, *, numbered: bool = False) -> Any:
        """The rows as a pyarrow.RecordBatch: labels are lists of strings, dictionary-encoded if `numbered`."""
        pa = require_pyarrow("Arrow")
        ids = self.ids
        if isinstance(ids, Sequence):  # a range, texts, or JSON values, which may have another type in the next block
            ids = pa.array(ids, pa.int64()) if isinstance(ids, range) else pa.array(map(str, ids), pa.string())
        elif isinstance(ids, np.ndarray):
            ids = pa.array(ids)
        members, names = pa.array(self.sets.members), pa.array(list(self.labels), pa.string())
        members = pa.DictionaryArray.from_arrays(members, names) if numbered else names.take(members)
        offsets = pa.array(self.sets.offsets.astype(np.int32))
        columns = [ids, pa.ListArray.from_arrays(offsets, members), pa.array(self.sizes)]
        columns += [] if self.costs is None else [pa.array(self.costs)]
        columns += [pa.array(np.asarray(column)) for column in self.more.values()]
        columns += [] if self.carried is None else self.carried.columns
        return pa.RecordBatch.from_arrays(columns, names=self.header)


def refuse_taken_names(carry: Sequence[str]) -> None:
    """Refuse to copy input columns whose names the output uses itself."""
    for name in carry:
        if name in ("id", "labels", "size", "cost"):
            raise InputError(f"column {name!r} cannot be carried along: the sets have a column of that name; rename it")


# Writes a block; all blocks of a file have the same columns.
Write: TypeAlias = Callable[[OutputBlock], None]


@contextmanager
def open_sets(path: PathLike) -> Iterator[Write]:
    """A file of sets, written block by block; it appears under its name only when it is complete.

    .parquet, .arrow, .feather: labels are a list of strings. .jsonl: one object per row. .csv: labels are joined by
    `|`; if any label of the spec is empty, contains `|`, starts with `[` or like a formula of a spreadsheet (`=`, `+`,
    `-`, `@`), the labels of each row are a JSON array instead; an id that looks like a formula gets an apostrophe in
    front, which `read_column` and `read_rows` remove. .npy: only the boolean mask.
    """
    ending = sets_ending(path)
    writers: dict[str, Callable[[Path, str], AbstractContextManager[Write]]]
    writers = {".npy": _npy, ".csv": _csv, ".jsonl": _jsonl, **dict.fromkeys(ARROW, _arrow)}
    with atomic_write(path) as temporary, writers[ending](temporary, ending) as write:
        yield write


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
    """Write prediction sets, one per row: id (the row number if there are no ids), labels, size and, if given, cost.

    `more` are further columns of texts, numbers or truth values, such as the `decisions` of prediction sets. The
    formats are those of `open_sets`.
    """
    sets_ending(path)
    n = len(mask)
    if mask.dtype != np.bool_ or mask.shape != (n, len(labels)):
        raise InputError(
            f"the mask has dtype {mask.dtype} and shape {mask.shape}, expected bool and (n, {len(labels)})"
        )
    columns = dict(more or {})
    for name, column in (("ids", ids), ("costs", costs), ("sizes", sizes), *columns.items()):
        if column is not None and len(column) != n:
            raise InputError(f"{name}: {len(column)} entries for {n} sets")
    counted = mask.sum(axis=1)
    if sizes is not None and not np.array_equal(sizes, counted):
        raise InputError(f"sizes: row {int(np.flatnonzero(sizes != counted)[0])} is not the size of its set")
    if costs is not None and not np.isfinite(costs).all():
        raise InputError(f"costs: row {int(np.flatnonzero(~np.isfinite(costs))[0])} is not a finite number")
    names: Sequence[str] | range = range(n) if ids is None else [str(name) for name in ids]
    paid = None if costs is None else np.asarray(costs, np.float64)
    step = max(1, _BLOCK // max(1, len(labels)))
    with open_sets(path) as write:
        for start in range(0, max(n, 1), step):
            part = slice(start, start + step)
            others = {name: column[part] for name, column in columns.items()}
            write(OutputBlock(labels, Sets(mask[part]), names[part], None if paid is None else paid[part], others))


@contextmanager
def _csv(file: Path, ending: str) -> Iterator[Write]:
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        as_json: bool | None = None

        def write(block: OutputBlock) -> None:
            nonlocal as_json
            if as_json is None:
                as_json = any(
                    not label or "|" in label or label.startswith("[") or looks_like_formula(label)
                    for label in block.labels
                )
                writer.writerow(map(as_cell, block.header))
            for name, members, *others in block.rows():
                cell = json.dumps(members, ensure_ascii=False) if as_json else "|".join(members)
                writer.writerow([as_cell(name), cell, *map(as_cell, others)])

        yield write


def as_cell(value: Any) -> Any:
    """A value as a CSV cell."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return short(value)
    return to_cell(value) if isinstance(value, str) else value


def short(value: float) -> str:
    """A number as text for a CSV: 12 significant digits, which hides rounding errors; whole numbers in full.

    >>> short(0.1 + 0.2), short(1 / 3), short(123456789012345.0)
    ('0.3', '0.333333333333', '123456789012345.0')
    """
    return repr(value if value.is_integer() else float(f"{value:.12g}"))


@contextmanager
def _jsonl(file: Path, ending: str) -> Iterator[Write]:
    with file.open("w", encoding="utf-8", newline="") as out:

        def write(block: OutputBlock) -> None:
            header = block.header
            for row in block.rows():
                values = dict(zip(header, row, strict=True))
                out.write(json.dumps(values, ensure_ascii=False, default=str) + "\n")

        yield write


@contextmanager
def _arrow(file: Path, ending: str) -> Iterator[Write]:
    pa = require_pyarrow(ending)
    numbered = ending == ".parquet"  # parquet stores strings as a dictionary: passing one is faster
    writer: Any = None

    def write(block: OutputBlock) -> None:
        nonlocal writer
        batch = block.batch(numbered=numbered)
        if writer is None:
            writer = _parquet(pa, file, batch.schema) if numbered else pa.ipc.new_file(file, batch.schema)
        writer.write_batch(batch)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _parquet(pa: Any, file: Path, schema: Any) -> Any:
    """A parquet writer for such batches; the schema in the file says that labels are lists of strings, not numbered."""
    # No statistics of labels: nobody needs them, and they take a third of the time. No dictionary of ids: few repeat.
    with_statistics = [name for name in schema.names if name != "labels"]
    paths = ["labels.list.element" if name == "labels" else name for name in schema.names[1:]]
    writer = pa.parquet.ParquetWriter(
        file, schema, write_statistics=with_statistics, use_dictionary=paths, store_schema=False
    )
    place = schema.get_field_index("labels")
    plain = schema.set(place, schema.field(place).with_type(pa.list_(pa.string())))
    writer.add_key_value_metadata({"ARROW:schema": b64encode(plain.serialize().to_pybytes()).decode()})
    return writer


@contextmanager
def _npy(file: Path, ending: str) -> Iterator[Write]:
    with growing_array(file, np.dtype(bool)) as append:
        yield lambda block: append(block.sets.mask)


@contextmanager
def open_p_values(
    path: PathLike, labels: Sequence[str], id_name: str = "id"
) -> Iterator[Callable[[tuple[npt.NDArray[np.float64], Sequence[str] | range]], None]]:
    """A file of p-values, written in blocks of rows (m, K) with ids or row numbers; it appears when it is complete.

    A .npy has only the matrix; a .csv has an id and one column per label.
    """
    ending = known_ending(Path(path), P_VALUES)
    with atomic_write(path) as temporary:
        if ending == ".npy":
            with growing_array(temporary, np.dtype("<f8")) as append:
                yield lambda block: append(block[0])
            return
        with temporary.open("w", encoding="utf-8", newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow([to_cell("id" if id_name in labels else id_name), *map(to_cell, labels)])

            def write(block: tuple[npt.NDArray[np.float64], Sequence[str] | range]) -> None:
                for name, row in zip(block[1], block[0].tolist(), strict=True):
                    writer.writerow([to_cell(name) if isinstance(name, str) else name, *map(short, row)])

            yield write
