"""Data files that are not what they should be: indexes of pandas, other separators, links to themselves, huge files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import udcp_dsl as udcp
from udcp_dsl.cli import new, row_options
from udcp_dsl.compile import sources
from udcp_dsl.compile.sources import FileFault, read_csv
from udcp_dsl.diagnostics import Diagnostic, InputError, SpecError
from udcp_dsl.studio.spec_folder import SpecFolder

INDEXED = ",name,cost\n0,cat,1\n1,dog,2\n2,wolf,5\n"


def _fault(folder: Path, text: str) -> Diagnostic:
    with pytest.raises(SpecError) as caught:
        udcp.loads(text, folder=folder)
    (fault,) = caught.value.diagnostics
    return fault


@pytest.mark.parametrize("first", ["", "Unnamed: 0"])
def test_labels_are_not_read_from_an_index(tmp_path: Path, first: str) -> None:
    (tmp_path / "pets.csv").write_text(first + INDEXED)
    text = 'labels from "pets.csv"  loss l = size'
    fault = _fault(tmp_path, text)
    assert (fault.code, fault.span.text) == ("E309", 'from "pets.csv"')
    assert fault.message == "the first column of pets.csv is an index of its rows (0, ...) without a name"
    assert fault.help == "add `column NAME`; it has name, cost"
    (fix, _) = fault.fixes
    assert udcp.loads(fix.applied(text), folder=tmp_path).labels == ("cat", "dog", "wolf")


def test_an_index_that_begins_at_one_too(tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text(",name\n1,cat\n2,dog\n")
    assert _fault(tmp_path, 'labels from "pets.csv"  loss l = size').code == "E309"


@pytest.mark.parametrize(
    ("table", "labels"),
    [
        (",0,1,2\n0,0,1,2\n1,1,0,3\n2,2,3,0\n", ("0", "1", "2")),  # a distance matrix
        ("label,name\n0,cat\n1,dog\n", ("0", "1")),  # a column with a name
        (",name\n0,cat\n2,dog\n", ("0", "2")),  # not consecutive
        (",cost\ncat,0\ndog,1\n", ("cat", "dog")),
    ],
)
def test_what_is_no_index(tmp_path: Path, table: str, labels: tuple[str, ...]) -> None:
    (tmp_path / "x.csv").write_text(table)
    assert udcp.loads('labels from "x.csv"  loss l = size', folder=tmp_path).labels == labels


def test_new_takes_no_labels_from_an_index(tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text(INDEXED)
    done = CliRunner().invoke(new.command, [str(tmp_path / "x.loss"), "--labels", str(tmp_path / "pets.csv")])
    assert isinstance(done.exception, InputError)
    assert "the first column is an index of the rows (0, ...) without a name" in str(done.exception)
    assert not (tmp_path / "x.loss").exists()


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("name;cost\ncat;1,5\ndog;2\n", "has semicolons between its fields and decimal commas"),
        ("name;cost\ncat;1\ndog;2\n", "has semicolons between its fields; CSV"),
        ("name\tcost\ncat\t1\n", "has tabs between its fields; CSV"),
    ],
)
def test_other_separators_are_recognised(table: str, named: str) -> None:
    with pytest.raises(FileFault) as caught:
        read_csv("pets.csv", table.encode())
    assert (caught.value.code, named in caught.value.message) == ("E303", True)
    assert "read_csv('pets.csv', sep=" in caught.value.help


def test_semicolons_within_fields_are_left_alone() -> None:
    assert read_csv("x.csv", b'"name; code"\n"cat; 1"\n').header == ("name; code",)
    assert read_csv("x.csv", b"name,note\ncat,a;b\n").rows == (("cat", "a;b"),)
    assert read_csv("x.csv", b"name\ncat;dog\n").rows == (("cat;dog",),)


def test_a_decimal_comma_in_quotes_is_named(tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text('name,cost\ncat,"1,5"\n')
    fault = _fault(tmp_path, 'labels { cat }  costs c from "pets.csv" column cost  loss l = sum(c)')
    assert (fault.code, fault.help) == ("E305", "write a decimal point: 1.5")
    assert fault.message.endswith("'1,5' has a decimal comma")


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    fault = _fault(tmp_path, 'labels from "loop.csv"  loss l = size')
    assert (fault.code, "loop.csv" in fault.message) == ("E301", True)
    with pytest.raises(InputError, match="loop"):
        SpecFolder(tmp_path, "x.loss").inside("loop.csv")
    assert not row_options._is_same_file(str(tmp_path / "loop.csv"), str(tmp_path / "x.csv"))
    assert row_options._is_same_file(str(tmp_path / "loop.csv"), str(tmp_path / "loop.csv"))


@pytest.mark.parametrize("name", ["huge.csv", "huge.json", "huge.npy"])
def test_a_sparse_file_of_20_gb_is_not_read(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(20_000_000_000)
    clause = " column cost" if name.endswith("csv") else ""
    fault = _fault(tmp_path, f'labels {{ a }}  costs c from "{name}"{clause}  loss l = sum(c)')
    most = "1,000" if name.endswith("npy") else "100"
    assert fault.code == "E301"
    assert fault.message == f"{name} is too large: it has 20,000 MB, and at most {most} MB are read"


def test_an_array_that_grows_when_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MOST_ARRAY", 4000)
    np.save(tmp_path / "c.npy", np.zeros(1000, dtype=np.int8))
    fault = _fault(tmp_path, 'labels 0..999  costs c from "c.npy"  loss l = sum(c)')
    assert fault.message == "c.npy is too large: it has 1,000 numbers, and at most 500 are read"
