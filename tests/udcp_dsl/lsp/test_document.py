"""Compiled after every key: what did not change is not built again, and what changed is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from udcp_dsl.compile.declare import hierarchies
from udcp_dsl.lsp import Reader, diagnostics

SPEC = 'labels from "a.csv" column name\nhierarchy h from "a.csv" levels kind\nloss l = count(h.kind) + size\n'
ROWS = "name,kind\na,x\nb,y\n"


def codes(document: object) -> list[str]:
    return [x["code"] for x in diagnostics(document)]  # type: ignore[arg-type]


def test_the_same_text_is_the_same_document_until_a_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(ROWS)
    reader = Reader()
    first = reader.read(SPEC, tmp_path)
    assert codes(first) == []
    assert reader.read(SPEC, tmp_path) is first
    file.write_text(ROWS + "c,\n")
    second = reader.read(SPEC, tmp_path)
    assert second is not first
    assert second.declared.labels == ("a", "b", "c")
    file.unlink()
    assert codes(reader.read(SPEC, tmp_path)) == ["E301"]
    file.write_text(ROWS)
    assert codes(reader.read(SPEC, tmp_path)) == []


def test_data_are_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text(ROWS)
    reader = Reader()
    before = reader.read(SPEC, tmp_path).declared.things["h"]
    monkeypatch.setattr(hierarchies, "rows_of", None)  # building again would fail
    after = reader.read("# a comment\n" + SPEC + "let x = size\n", tmp_path).declared.things["h"]
    assert after is before


def test_what_is_kept_depends_on_labels_and_on_what_it_refers_to(tmp_path: Path) -> None:
    reader = Reader()
    text = "labels { a, b }\ncategories F { x: { a }, y: { b } }\ncosts w of F { x: 1, y: 2 }\nloss l = count(F, w)"
    assert codes(reader.read(text)) == []
    assert codes(reader.read(text.replace("y: { b }", "z: { b }"))) == ["E210"]
    assert codes(reader.read(text)) == []
    more = reader.read(text.replace("{ a, b }", "{ a, b, c }", 1))
    assert more.declared.things["F"].K == 3  # type: ignore[union-attr]


def test_warnings_of_what_is_kept_move_with_the_text(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("name,cost\na,1\nb,2\nc,3\n")
    text = 'labels { a, b }\ncosts w from "w.csv" column cost\nloss l = sum(w)\n'
    reader = Reader()
    (first,) = diagnostics(reader.read(text, tmp_path))
    (second,) = diagnostics(reader.read("# one line more\n" + text, tmp_path))
    assert first["code"] == second["code"] == "W501"
    assert second["range"]["start"]["line"] == first["range"]["start"]["line"] + 1


def test_a_file_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text(ROWS)
    inner = tmp_path / "specs"
    inner.mkdir()
    reader = Reader()
    for _ in range(2):  # nor when it is known from another folder
        assert codes(reader.read(SPEC.replace("a.csv", "../secret.csv"), inner)) == ["E302"]
        assert codes(reader.read(SPEC.replace("a.csv", "secret.csv"), tmp_path)) == []


def test_a_file_that_changes_in_the_same_tick_but_in_size_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(ROWS)
    there = os.stat(file)
    reader = Reader()
    reader.read(SPEC, tmp_path)
    file.write_text(ROWS + "c,x\n")
    os.utime(file, ns=(there.st_atime_ns, there.st_mtime_ns))
    assert reader.read(SPEC, tmp_path).declared.labels == ("a", "b", "c")


def test_names_are_still_known_while_the_labels_are_being_typed() -> None:
    reader = Reader()
    text = "labels { a, b }\ncosts c { a: 1, b: 2 }\nloss l = sum(c)\n"
    reader.read(text)
    half = reader.read(text.replace("labels { a, b }", "labels { a, b, 3"))
    assert half.declared.labels == ()
    assert "c" in half.last_good_declarations.things
