"""A label, a file name or a line of a spec cannot steer the terminal: whatever a command says, it spells out."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from udcp_dsl.cli import main

_TITLE, _TURNED = "\x1b]0;mine\x07", "\u202ec"
_SPEC = r"""
labels { "\u001b]0;mine\u0007", "\u202ec", b }
categories F { "\u001b[2J": { b } }
loss l = size + any(F."\u001b[2J") + 2 * any({ "\u001b]0;mine\u0007" })
"""
_ROWS = ["0.2,0.3,0.5"] * 40


@pytest.fixture
def rows(folder: Path) -> None:
    (folder / "hostile.loss").write_text(_SPEC)
    (folder / "p.csv").write_text("\n".join([f"{_TITLE},{_TURNED},b", *_ROWS]))
    (folder / "y.txt").write_text("\n".join([_TITLE, _TURNED] * 20))
    (folder / "bad.txt").write_text("\n".join([_TITLE, "\x1b[2Jx"] * 20))
    (folder / "broken.loss").write_text("labels { a }\nloss l = size + zz  # \x1b[2J \x9b2J\n")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["eval", "hostile.loss", "b", _TITLE], 0),
        (["eval", "hostile.loss", "x"], 2),
        (["eval", "hostile.loss", "\x1b[2J"], 2),
        (["eval", "hostile.loss", _TITLE, _TITLE], 2),
        (["eval", "broken.loss"], 2),
        (["eval", "\x1b[2J.loss"], 2),
        (["check", "hostile.loss"], 0),
        (["check", "hostile.loss", "--\x1b[2J"], 2),
        (["check", "hostile.loss", "--param", "\x1b[2J=1"], 2),
        (["check", "hostile.loss", "--param", "\x1b[2J"], 2),
        (["\x1b[2J"], 2),
        (["format", "hostile.loss"], 0),
        (["new", "\x1b[2J.loss", "--labels", f"{_TITLE},{_TURNED}"], 0),
        (["order", "hostile.loss", "--probs", "p.csv", "--row", "0", "--oracle", "base"], 0),
        (["order", "hostile.loss", "--probs", "\x1b[2J.npy", "--row", "0", "--oracle", "base"], 2),
        (["calibrate", "hostile.loss", "--probs", "p.csv", "--truth", "y.txt", "--oracle", "lac", "-o", "s.json"], 0),
        (["calibrate", "hostile.loss", "--probs", "p.csv", "--truth", "bad.txt", "--oracle", "lac", "-o", "s.json"], 2),
    ],
)  # fmt: skip
def test_nothing_reaches_the_terminal_raw(rows: None, arguments: list[str], status: int) -> None:
    result = CliRunner().invoke(main, arguments, color=True)  # click would take colours out of what is no terminal
    assert result.exit_code == status
    said = result.stdout + result.stderr
    assert said
    assert [character for character in said if not (character.isprintable() or character in "\n\t")] == []
