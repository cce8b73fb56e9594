"""The program as it is run: real processes, terminals and pipes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

UDCP = [sys.executable, "-m", "udcp_dsl.cli"]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*UDCP, *arguments], capture_output=True, text=True, encoding="utf-8", env={**os.environ, **environment}
    )


def on_terminal(columns: int, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit status, and what a terminal of that width shows, colours included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    env = {**plain, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **environment}
    process = subprocess.Popen([*UDCP, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while block := os.read(ours, 1 << 16):
            shown += block
    os.close(ours)
    return process.wait(), shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 80, 132])
def test_a_terminal_of_any_width_is_used_and_not_exceeded(folder: Path, columns: int) -> None:
    status, shown = on_terminal(columns, "check", "pets.loss")
    assert status == 0
    assert "\x1b[32m✓ proved" in shown
    widths = [len(ESCAPE.sub("", line)) for line in shown.splitlines()]
    assert max(widths) == min(columns, 129)  # wider than its text a table does not grow


def test_diagnostics_are_coloured_on_a_terminal_and_say_the_same(folder: Path) -> None:
    (folder / "bad.loss").write_text("labels { a }\n\tloss l = sise")
    status, shown = on_terminal(80, "check", "bad.loss")
    assert status == 2
    assert "\x1b[31m\x1b[1merror[E211]\x1b[0m" in shown
    piped = run("check", "bad.loss")
    assert "\x1b" not in piped.stderr
    assert ESCAPE.sub("", shown) == piped.stderr


def test_no_color(folder: Path) -> None:
    (folder / "bad.loss").write_text("labels { a } loss l = sise")
    assert "\x1b" not in on_terminal(80, "check", "pets.loss", NO_COLOR="1")[1]
    assert "\x1b" not in on_terminal(80, "check", "bad.loss", NO_COLOR="1")[1]
    assert "\x1b" not in on_terminal(80, "eval", "pets.loss", TERM="dumb")[1]


def test_a_pipe_gets_plain_text_whatever_the_environment_says(folder: Path) -> None:
    result = run("check", "pets.loss", FORCE_COLOR="1", COLUMNS="30")
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) == 100


def test_a_process_of_its_own_answers_as_json(folder: Path) -> None:
    result = run("eval", "pets.loss", "cat", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["total"] == 2.01


@pytest.mark.parametrize(
    "arguments", ["check pets.loss", "check pets.loss --json", "format pets.loss", "check nowhere.loss --json"]
)
def test_a_reader_that_has_gone_is_no_error_to_print(folder: Path, arguments: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen([*UDCP, *arguments.split()], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert process.communicate()[1] == ""
    assert process.returncode == 141


def test_an_encoding_without_the_characters_gets_others(folder: Path) -> None:
    (folder / "l.loss").write_text("labels { λ, b } loss l = any({ λ }) + 0.5 * size", encoding="utf-8")
    result = run("check", "l.loss", PYTHONIOENCODING="latin-1")
    assert result.returncode == 0
    assert "+ proved" in result.stdout
    assert result.stdout.isascii()
    assert run("eval", "l.loss", "λ", PYTHONIOENCODING="latin-1").stdout.startswith(r"l of {\u03bb}")
    assert run("eval", "l.loss", "λλ", PYTHONIOENCODING="latin-1").stderr.startswith(
        r"error: unknown label '\u03bb\u03bb'"
    )


def test_help_and_check_import_no_more_than_they_need(folder: Path) -> None:
    program = (
        "import sys\n"
        "from udcp_dsl.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = 'numpy lark rich scipy numba pulp highspy torch pandas pyarrow multiprocessing'.split()\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )

    def imported(*arguments: str) -> str:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr.strip()

    assert imported("--help") == "[]"
    assert imported("check", "pets.loss") == "['numpy', 'lark', 'rich']"
    assert imported("check", "pets.loss", "--json") == "['numpy', 'lark']"


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_stream_that_is_closed_is_done_without(folder: Path, closed: str) -> None:
    command = f'"$0" -m udcp_dsl.cli check pets.loss {closed}>&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert ("monotone" in done.stdout) == (closed == "2")
