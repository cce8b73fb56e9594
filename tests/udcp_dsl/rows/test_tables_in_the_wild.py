"""Tables as others write them: more columns than labels, pandas' index, semicolons, decimal commas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pandas as pd
import polars as pl

from udcp_dsl import InputError
from udcp_dsl.rows.rows import rows_of
from udcp_dsl.rows.source import open_rows, read_column, read_rows

ABC = ["a", "b", "c"]
P = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])
FRAME = pd.DataFrame(P, columns=ABC).assign(site=["x", "y"], age=[1, 2], note="")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    FRAME.to_csv(tmp_path / "p.csv", index=False)
    return tmp_path / "p.csv"


def test_all_unexpected_columns_are_named_at_once(table: Path) -> None:
    with pytest.raises(InputError, match="columns 'site', 'age' and 'note' are not labels; name them as"):
        read_rows(table, ABC)
    with pytest.raises(InputError, match="column 'note' is not a label; name it as the column of"):
        read_rows(table, ABC, id_column="site", ignore=["age"])
    with pytest.raises(InputError, match=r"'x0', .*'x29' and 71 more are not labels"):
        rows_of(pd.DataFrame(P, columns=ABC).assign(**{f"x{i}": 0.0 for i in range(101)}), ABC)


def test_only_labels_leaves_all_else_unread(table: Path) -> None:
    np.testing.assert_array_equal(read_rows(table, ABC, only_labels=True).P, P)
    rows = open_rows(table, ABC, only_labels=True, id_column="site").stored()
    assert rows.ids is not None
    assert rows.ids.tolist() == ["x", "y"]
    np.testing.assert_array_equal(next(rows.blocks()).P, P)
    with pytest.raises(InputError, match="no column for label 'd'"):
        read_rows(table, [*ABC, "d"], only_labels=True)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_the_index_that_pandas_writes_is_ignored(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame(P, columns=ABC).assign(__index_level_0__=[7, 9], __index_level_1__=["u", "v"])
    getattr(frame, f"to_{ending}")(tmp_path / f"p.{ending}")
    np.testing.assert_array_equal(read_rows(tmp_path / f"p.{ending}", ABC).P, P)
    np.testing.assert_array_equal(rows_of(pl.DataFrame(frame), ABC).P, P)
    assert read_rows(tmp_path / f"p.{ending}", ABC, id_column="__index_level_0__").ids is not None


SEPARATED = {
    "semicolons": ("a;b;c\n0.5;0.25;0.25\n", "its fields are separated by ';', not by commas; convert it: .*sep=';'"),
    "decimal commas": ("a;b;c\n0,5;0,25;0,25\n", "separated by ';', .* have decimal commas; .*decimal=','"),
    "tabs": ("a\tb\tc\n0.5\t0.25\t0.25\n", r"separated by '\\t', not by commas; convert it: .*sep='\\t'"),
    "bars": ("a|b|c\n0.5|0.25|0.25\n", r"separated by '\|'"),
    "more than one": ("id;a;b;c;n\n1;0,5;0,25;0,25;x\n", "separated by ';'"),
    "quoted": (
        'a,b,c\n"0,5","0,25","0,25"\n',
        "line 2, column 'a': '0,5' has a decimal comma; .*decimal=','",
    ),
}


@pytest.mark.parametrize(("text", "message"), SEPARATED.values(), ids=SEPARATED)
def test_other_separators_are_recognised(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(InputError, match=rf"p\.csv: .*{message}"):
        read_rows(tmp_path / "p.csv", ABC)


def test_other_separators_are_recognised_where_labels_have_commas(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a,b;c\n0,5;0,5\n")
    with pytest.raises(InputError, match="separated by ';', not by commas, and its numbers have decimal commas"):
        read_rows(tmp_path / "p.csv", ["a,b", "c"])


def test_other_separators_are_recognised_in_a_file_of_true_labels(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("id;truth\n1;a\n2;b\n")
    for column in (None, "truth"):
        with pytest.raises(InputError, match=r"y\.csv: its fields are separated by ';'"):
            read_column(tmp_path / "y.csv", column)
