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
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

UDCP = [sys.executable, "-m", "udcp_dsl.cli"]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

# Commands with commas between them, one after the other in one process, of which the most part is the start. After each
# its status is told: on a terminal once, else to both streams.
SEVERAL = """
import sys
from udcp_dsl.cli import main
arguments = sys.argv[1:]
while arguments:
    end = arguments.index(",") if "," in arguments else len(arguments)
    try:
        main(arguments[:end])
    except SystemExit as ended:
        for stream in [sys.stdout, sys.stderr][: 1 if sys.stdout.isatty() else 2]:
            print("=", ended.code, "=", file=stream, flush=True)
    arguments = arguments[end + 1 :]
"""
ENDED = re.compile(r"= (\d+) =\n")


def run(command: list[str], *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, encoding="utf-8", env={**os.environ, **environment}
    )


def several(commands: str, **environment: str) -> tuple[list[str], list[str]]:
    """What each says on stdout, and on stderr."""
    done = run([sys.executable, "-c", SEVERAL], *commands.split(), **environment)
    return ENDED.split(done.stdout)[::2][:-1], ENDED.split(done.stderr)[::2][:-1]


def on_terminal(columns: int, commands: str, **environment: str) -> list[tuple[int, str]]:
    """Of each command the exit status, and what a terminal of that width shows, colours included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
    env = {**plain, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **environment}
    program = [sys.executable, "-c", SEVERAL, *commands.split()]
    process = subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while block := os.read(ours, 1 << 16):
            shown += block
    os.close(ours)
    assert process.wait() == 0
    *parts, rest = ENDED.split(shown.decode().replace("\r\n", "\n"))
    assert rest == ""
    return [(int(status), text) for text, status in zip(parts[::2], parts[1::2], strict=True)]


@pytest.fixture
def bad(folder: Path) -> None:
    (folder / "bad.loss").write_text("labels { a }\n\tloss l = sise")


@pytest.mark.usefixtures("bad")
def test_a_terminal_is_used_to_its_width_and_coloured(udcp: Callable[..., Result]) -> None:
    (status, shown), (refused, faults) = on_terminal(132, "check pets.loss , check bad.loss")
    assert (status, refused) == (0, 2)
    assert "\x1b[32m✓ yes" in shown
    widths = [len(ESCAPE.sub("", line)) for line in shown.splitlines()]
    assert max(widths) == 129  # wider than its text a table does not grow
    assert "\x1b[31m\x1b[1merror[E211]\x1b[0m" in faults
    assert ESCAPE.sub("", faults) == udcp("check", "bad.loss").stderr


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize("columns", [40, pytest.param(80, marks=pytest.mark.slow)])
def test_a_narrow_one_is_not_exceeded_and_not_coloured_against_its_will(columns: int) -> None:
    (status, shown), (refused, faults) = on_terminal(columns, "check pets.loss , check bad.loss", NO_COLOR="1")
    assert (status, refused) == (0, 2)
    assert "\x1b" not in shown + faults
    assert "✓ yes" in shown
    assert max(map(len, shown.splitlines())) == columns


@pytest.mark.usefixtures("bad")
def test_a_dumb_one_gets_no_colour() -> None:
    (status, shown), (refused, faults) = on_terminal(80, "eval pets.loss , check bad.loss", TERM="dumb")
    assert (status, refused) == (0, 2)
    assert "\x1b" not in shown + faults


@pytest.mark.usefixtures("bad")
def test_a_pipe_gets_plain_text_whatever_the_environment_says(udcp: Callable[..., Result]) -> None:
    (shown, _), (_, faults) = several("check pets.loss , check bad.loss", FORCE_COLOR="1", COLUMNS="30")
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) == 100
    assert faults == udcp("check", "bad.loss").stderr
    assert "\x1b" not in faults


def test_a_process_of_its_own_answers_as_json(folder: Path) -> None:
    result = run(UDCP, "eval", "pets.loss", "cat", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["total"] == 2.01


@pytest.mark.parametrize(
    "arguments",
    [
        "check pets.loss",
        pytest.param("check pets.loss --json", marks=pytest.mark.slow),
        "format pets.loss",
        "check nowhere.loss --json",
    ],
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
    commands = "check l.loss , eval l.loss λ , eval l.loss λλ"
    (checked, shown, _), (_, _, faults) = several(commands, PYTHONIOENCODING="latin-1")
    assert "+ yes" in checked
    assert checked.isascii()
    assert shown.startswith(r"l of {\u03bb}")
    assert faults.startswith(r"error: unknown label '\u03bb\u03bb'")


def test_help_and_check_import_no_more_than_they_need(folder: Path) -> None:
    """In one process, as what is imported stays: first what needs the least."""
    program = (
        "import sys\n"
        "from udcp_dsl.cli import main\n"
        "heavy = 'numpy lark rich scipy numba pulp highspy torch pandas pyarrow multiprocessing'.split()\n"
        "for arguments in ('--help', 'check pets.loss --json', 'check pets.loss'):\n"
        "    try: main(arguments.split())\n"
        "    except SystemExit as end: assert not end.code\n"
        "    print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["[]", "['numpy', 'lark']", "['numpy', 'lark', 'rich']"]


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_stream_that_is_closed_is_done_without(folder: Path, closed: str) -> None:
    command = f'"$0" -m udcp_dsl.cli check pets.loss {closed}>&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert ("monotone" in done.stdout) == (closed == "2")
