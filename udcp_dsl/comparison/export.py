"""Write the runs of a comparison to a file, one row per run: .parquet, .arrow, .feather or .csv."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from udcp_dsl.comparison.results import Comparison
from udcp_dsl.prediction.files import PathLike, atomic_write, known_ending, require_pyarrow
from udcp_dsl.prediction.writing import as_cell

_ENDINGS = (".parquet", ".arrow", ".feather", ".csv")


def runs_ending(path: PathLike) -> str:
    """The ending of a file for `write_runs`; raises an error for those that it cannot write."""
    ending = known_ending(Path(path), _ENDINGS)
    if ending != ".csv":
        require_pyarrow(ending)
    return ending


def write_runs(path: PathLike, comparison: Comparison) -> None:
    """Write the columns of `comparison.table()`; in a .csv, missing values are empty cells."""
    ending = runs_ending(path)
    columns = comparison.table()
    with atomic_write(path) as temporary:
        if ending == ".csv":
            with temporary.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out, lineterminator="\n")
                writer.writerow(columns)
                for row in zip(*columns.values(), strict=True):
                    writer.writerow(map(as_cell, row))
        else:
            _write_arrow(temporary, columns, ending)


def _write_arrow(file: Path, columns: dict[str, list[Any]], ending: str) -> None:
    pa = require_pyarrow(ending)
    # An empty column has no type of its own: these would hold numbers, all others text.
    numbers = ("lam", "handed_over", "size_violation", "risk")
    empty = {name: pa.float64() if name in numbers else pa.string() for name, x in columns.items() if set(x) == {None}}
    table = pa.table({name: pa.array(values, empty.get(name)) for name, values in columns.items()})
    writer = pa.parquet.ParquetWriter if ending == ".parquet" else pa.ipc.new_file
    with writer(file, table.schema) as out:
        out.write_table(table)
