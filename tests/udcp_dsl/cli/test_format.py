"""`udcp format`: canonical text to print, to write back, to compare with."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Udcp = Callable[..., Result]

MESSY = "labels {a,b,\n c}   loss   l=((size))+1*any({ a,b, })"
TIDY = "labels { a, b, c }\n\nloss l = size + 1 * any({ a, b })\n"


def test_prints_canonical_text_and_leaves_the_file(udcp: Udcp, folder: Path) -> None:
    (folder / "m.loss").write_text(MESSY)
    result = udcp("format", "m.loss")
    assert (result.exit_code, result.stdout, result.stderr) == (0, TIDY, "")
    assert (folder / "m.loss").read_text() == MESSY


def test_write_rewrites_in_place_and_keeps_permissions_and_links(udcp: Udcp, folder: Path) -> None:
    spec, link = folder / "m.loss", folder / "link.loss"
    spec.write_text(MESSY)
    spec.chmod(0o640)
    link.symlink_to("m.loss")
    result = udcp("format", "link.loss", "--write")
    assert (result.exit_code, result.stdout) == (0, "")
    assert spec.read_text() == TIDY
    assert link.is_symlink()
    assert stat.S_IMODE(spec.stat().st_mode) == 0o640
    assert sorted(os.listdir(folder)) == ["link.loss", "m.loss", "pets.loss"]
    assert udcp("format", "m.loss", "--check").exit_code == 0


def test_write_keeps_comments(udcp: Udcp, folder: Path) -> None:
    spec = folder / "m.loss"
    spec.write_text("# what\n" + MESSY + " # why")
    assert udcp("format", "m.loss", "--write").exit_code == 0
    assert spec.read_text() == "# what\n" + TIDY.removesuffix("\n") + "  # why\n"
    assert udcp("format", "m.loss", "--check").exit_code == 0


def test_a_hash_in_a_string_is_no_comment(udcp: Udcp, folder: Path) -> None:
    (folder / "m.loss").write_text('labels {"a # b"} loss l = size')
    assert udcp("format", "m.loss", "--write").exit_code == 0
    assert (folder / "m.loss").read_text() == 'labels { "a # b" }\n\nloss l = size\n'


def test_check_tells_by_status(udcp: Udcp, folder: Path) -> None:
    (folder / "m.loss").write_text(MESSY)
    (folder / "t.loss").write_text(TIDY)
    (folder / "c.loss").write_text(TIDY + "# why\n")
    assert (udcp("format", "t.loss", "--check").exit_code, udcp("format", "t.loss", "--check").stdout) == (0, "")
    result = udcp("format", "m.loss", "--check")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "m.loss is not canonical: see udcp format\n")
    assert udcp("format", "c.loss", "--check").exit_code == 0


def test_line_ends_and_a_byte_order_mark_are_not_canonical(udcp: Udcp, folder: Path) -> None:
    (folder / "t.loss").write_bytes(b"\xef\xbb\xbf" + TIDY.replace("\n", "\r\n").encode())
    assert udcp("format", "t.loss", "--check").exit_code == 1
    udcp("format", "t.loss", "--write")
    assert (folder / "t.loss").read_bytes() == TIDY.encode()


def test_json(udcp: Udcp, folder: Path) -> None:
    (folder / "m.loss").write_text(MESSY)
    data = {"diagnostics": [], "file": "m.loss", "canonical": False, "text": TIDY}
    assert json.loads(udcp("format", "m.loss", "--json").stdout) == {"ok": True, **data}
    result = udcp("format", "m.loss", "--json", "--check")
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"ok": False, **data})


def test_formatting_needs_no_data(udcp: Udcp, folder: Path) -> None:
    (folder / "d.loss").write_text('labels from "nowhere.csv"  loss l = size')
    assert udcp("format", "d.loss").stdout == 'labels from "nowhere.csv"\n\nloss l = size\n'
