"""Commands in a terminal of 80 columns, with colour: good and bad input, and never a traceback."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
import fcntl  # noqa: E402
import struct  # noqa: E402
import termios  # noqa: E402

ROOT = Path(__file__).parents[3]
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def seen(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of `udcp ARGUMENTS...`, and all that the terminal is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    path = os.pathsep.join(str(ROOT / part) for part in ("", "solvers", "grammars"))
    environment = {**os.environ, "PYTHONPATH": path, "TERM": "xterm-256color"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "udcp_dsl.cli", *arguments]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment)
    os.close(theirs)
    found = b""
    while True:
        if not select.select([ours], [], [], 120)[0]:
            process.kill()
            raise AssertionError(f"no answer: {found!r}")
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        found += chunk
    os.close(ours)
    return process.wait(60), found.decode("utf-8").replace("\r\n", "\n")


def lines_of(text: str) -> list[str]:
    """The lines as they end up on the screen: what a carriage return goes back over is overwritten."""
    return [line.rpartition("\r")[2] for line in _ESCAPE.sub("", text).split("\n")]


@pytest.fixture
def pets(folder: Path) -> Path:
    good = (folder / "pets.loss").read_text()
    (folder / "wrong.loss").write_text(good.replace("any(wild)", "any(wlid)").replace("+ 0.01 * size", "+ sizee"))
    (folder / "empty.loss").write_text("")
    rows = ["cat,dog,wolf,lynx,y"]
    for truth in ("cat", "lynx", "wolf", "dog") * 30:
        p = [0.1 + 0.6 * (name == truth) for name in ("cat", "dog", "wolf", "lynx")]
        rows.append(",".join(map(str, p)) + f",{truth}")
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "pets.loss"),
        ("eval", "pets.loss", "cat", "wolf"),
        (
            "compare",
            "pets.loss",
            "--probs",
            "rows.csv",
            "--truth",
            "y",
            "--oracle",
            "price",
            "--oracle",
            "lac",
            "--splits",
            "3",
        ),
        ("--help",),
    ],
)
def test_good_input_fits_the_window(pets: Path, arguments: tuple[str, ...]) -> None:
    code, text = seen(pets, *arguments)
    assert code == 0, text
    assert "Traceback" not in text
    assert [line for line in lines_of(text) if len(line) > 80] == []


ROWS = ("--probs", "rows.csv", "--truth", "y")
NPY = ("--probs", "rows.npy", "--truth", "y.npy")


@pytest.mark.slow
def test_every_command_fits_the_window(pets: Path) -> None:
    for arguments in (
        ("order", "pets.loss", "--probs", "rows.csv", "--ignore", "y", "--row", "3"),
        ("gap", "pets.loss", "--probs", "rows.csv", "--ignore", "y"),
        ("validate", "pets.loss", "--cases", "1", "--oracle", "lac"),
        ("calibrate", "pets.loss", *ROWS, "--oracle", "price", "-o", "saved.json"),
        ("show", "saved.json"),
        ("evaluate", "saved.json", *ROWS),
        ("monitor", "saved.json", *ROWS),
        ("predict", "saved.json", "--probs", "rows.csv", "--truth", "y", "-o", "sets.csv"),
    ):
        code, text = seen(pets, *arguments)
        assert code == 0, text
        assert "Traceback" not in text
        assert [line for line in lines_of(text) if len(line) > 80] == [], arguments


@pytest.mark.slow
def test_a_comparison_of_many_oracles_keeps_the_names_of_its_rows(pets: Path) -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([0.5] * 4, 400)
    np.save(pets / "rows.npy", P)
    np.save(pets / "y.npy", [rng.choice(4, p=p) for p in P])
    oracles = ("price", "lac", "base", "raps", "greedy", "penalized")
    code, text = seen(pets, "compare", "pets.loss", *NPY, *(x for name in oracles for x in ("--oracle", name)))
    assert code == 0, text
    lines = [line.rstrip() for line in lines_of(text)]
    heads = [i for i, line in enumerate(lines) if line.startswith("coverage by difficulty")]
    assert len(heads) > 1  # so many oracles that the table is told in parts
    for at in heads:
        assert [line.split()[0] for line in lines[at + 2 : at + 6]] == ["hardest", "second", "third", "easiest"]
    assert sorted(name for at in heads for name in lines[at].split()[3:]) == sorted(oracles)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    "commands",
    [
        (
            ("calibrate", "pets.loss", *ROWS, "--oracle", "lac", "-o", "p.json"),
            ("predict", "p.json", *ROWS, "-o", "s.csv"),
        ),
        pytest.param(
            (
                ("calibrate", "doubtful.loss", *ROWS, "-o", "p.json"),
                ("check", "doubtful.loss"),
                ("show", "p.json"),
                ("evaluate", "p.json", *ROWS),
                ("monitor", "p.json", *ROWS),
                ("order", "pets.loss", "--probs", "rows.csv", "--ignore", "y", "--row", "3"),
                ("gap", "pets.loss", "--probs", "rows.csv", "--ignore", "y", "--sample", "3"),
                ("fit", "pets.loss"),
                ("format", "pets.loss"),
                ("new", "mine.loss"),
                ("validate", "pets.loss", "--cases", "1", "--oracle", "lac"),
            ),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_one_command_after_the_other(pets: Path, commands: tuple[tuple[str, ...], ...]) -> None:
    (pets / "pets.cases").write_text('case "wild": cost { wolf } > cost { cat }\n')
    doubtful = "category A { cat, dog }  category B { dog, wolf }\nloss l = size + 9 * (any(A) and any(B))\n"
    (pets / "doubtful.loss").write_text(f"labels {{ cat, dog, wolf, lynx }}\n{doubtful}")
    for arguments in commands:
        code, text = seen(pets, *arguments)
        assert code == 0, text
        assert "Traceback" not in text
        # A warning is one line, which the terminal wraps.
        wide = [line for line in lines_of(text) if len(line) > 80 and not line.startswith("warning:")]
        assert wide == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("fit", "pets.loss"), "no cases beside the spec"),
        (("calibrate", "pets.loss", *ROWS, "--alpha", "2", "-o", "p.json"), "between 0 and 1"),
        (("predict", "pets.loss", "--probs", "rows.csv", "-o", "s.csv"), "pets.loss"),
        (("check", "pest.loss"), "did you mean 'pets.loss'?"),
        (("eval", "nowhere/pets.loss", "cat"), "E100"),
        (("check", "empty.loss"), "E203"),
        (("check", "wrong.loss"), "did you mean 'wild'?"),
        (("eval", "pets.loss", "cta"), "did you mean 'cat'?"),
        (("eval", "wrong.loss", "cat"), "did you mean 'size'?"),
        (("compare", "wrong.loss", "--probs", "rows.csv", "--truth", "y"), "E211"),
        (("compare", "pets.loss", "--probs", "raws.csv", "--truth", "y"), "raws.csv"),
        (("chekc", "pets.loss"), "check"),
    ],
)
def test_bad_input_is_told_in_colour_and_without_a_traceback(pets: Path, arguments: tuple[str, ...], says: str) -> None:
    code, text = seen(pets, *arguments)
    assert code not in (0, -6, -9, -11), text
    assert "Traceback" not in text
    assert says in " ".join(_ESCAPE.sub("", text).split())


def test_the_underline_and_the_code_are_coloured(pets: Path) -> None:
    _, text = seen(pets, "check", "wrong.loss")
    assert "\x1b[31m\x1b[1merror[E211]\x1b[0m" in text
    assert "\x1b[31m\x1b[1m^^^^" in text
