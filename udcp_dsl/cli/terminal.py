"""What the commands print: results on stdout, diagnostics on stderr, data as JSON.

Colour and the width of the window are for terminals; anything else gets plain text, 100 columns wide.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import TextWrapper
from typing import TYPE_CHECKING, TextIO

import click

from udcp_dsl.diagnostics import Diagnostic, InputError, OracleError, SpecError, nearest, shown_of
from udcp_dsl.showing import MARKS, visible_lines

if TYPE_CHECKING:
    from rich.console import Console

    from udcp_dsl.showing import Description

STDOUT = "-"  # the name that writes a table to standard output
_PLAIN_WIDTH = 100


def coloured(stream: TextIO) -> bool:
    """Whether colour is wanted: on a terminal, unless NO_COLOR is set or the terminal is dumb."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(
        file=stream,
        color_system="auto" if coloured(stream) else None,
        force_terminal=stream.isatty(),
        width=None if stream.isatty() else _PLAIN_WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
    )


def print_described(description: Description, *, err: bool = False, apart: bool = False) -> None:
    """Print a result (`apart`: after a blank line), without trailing blanks."""
    from udcp_dsl.showing.text import as_rich

    stream = sys.stderr if err else sys.stdout
    screen = _console(stream)
    with screen.capture() as captured:
        screen.print(as_rich(description), crop=False)
    lines = captured.get().translate(_marks(stream)).split("\n")
    kept = lines if coloured(stream) else [line.rstrip() for line in lines]
    click.echo("\n" * apart + "\n".join(kept), nl=False, err=err, color=True)


def _marks(stream: TextIO) -> dict[int, str]:
    """Replacements for the marks of states, if the encoding lacks them."""
    unicode = (stream.encoding or "").lower().startswith("utf")
    return {} if unicode else str.maketrans({MARKS[True]: "+", MARKS[False]: "x"})


@contextmanager
def written_to(output: str, ending: str) -> Iterator[str]:
    """A file to write a table to: `output` or, if that is `-`, one whose bytes are printed at the end of the block."""
    if output != STDOUT:
        yield output
        return
    with TemporaryDirectory() as folder:
        file = Path(folder, f"table{ending}")
        yield str(file)
        with file.open("rb") as table:
            shutil.copyfileobj(table, sys.stdout.buffer)


def show_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics on stderr, as a compiler does."""
    paint = coloured(sys.stderr)
    rendered, more = shown_of(tuple(diagnostics))
    for diagnostic in rendered:
        text = visible_lines(diagnostic.render())
        click.echo((_painted(diagnostic, text) if paint else text) + "\n", err=True, color=True)
    if more:
        click.echo(more, err=True)


def _painted(diagnostic: Diagnostic, text: str) -> str:
    """The text of a diagnostic in colour: the code, the underline, and the word help."""
    colour = "red" if diagnostic.severity == "error" else "yellow"
    code = f"{diagnostic.severity}[{diagnostic.code}]"
    head, *rows = text.split("\n")
    if diagnostic.help:
        rows[-1] = rows[-1].replace("help:", click.style("help:", fg="cyan"), 1)
    if diagnostic.span.source.text:  # else there is no line to show, and none to mark
        at = -2 if diagnostic.help else -1
        rows[at] = rows[at].rstrip("^") + click.style("^" * rows[at].count("^"), fg=colour, bold=True)
    return "\n".join([head.replace(code, click.style(code, fg=colour, bold=True), 1), *rows])


def emit(data: Mapping[str, object], *, ok: bool = True) -> None:
    """Print one JSON object; `ok` says whether the command succeeded."""
    click.echo(json.dumps({"ok": ok, **data}, indent=2))


def report_error(error: Exception, as_json: bool) -> None:
    """Report a user's mistake: with --json as data on stdout, else as text on stderr."""
    if isinstance(error, click.NoSuchOption):  # click suggests options that are hardly alike
        offered = {option.lstrip("-"): option for option in error.possibilities or ()}
        near = [offered[name] for name in nearest(error.option_name.lstrip("-"), offered)]
        error = click.NoSuchOption(error.option_name, error.message, near, error.ctx)
    if as_json:
        emit({"diagnostics": error_as_data(error)}, ok=False)
    elif isinstance(error, SpecError):
        show_diagnostics(error.diagnostics)
    elif isinstance(error, click.ClickException):
        text = StringIO()
        error.show(text)
        click.echo(visible_lines(text.getvalue()), nl=False, err=True, color=True)
    else:
        tell("error:", "red", _message(error))


def tell(mark: str, colour: str, message: str) -> None:
    """A line on stderr that begins with a mark, such as `error:`; on a terminal it is broken between words."""
    shown = click.style(mark, fg=colour, bold=True) if coloured(sys.stderr) else mark
    text = f"{mark} {visible_lines(message)}"
    if sys.stderr.isatty():
        width = os.get_terminal_size(sys.stderr.fileno()).columns or _PLAIN_WIDTH
        # Paths and options stay whole, so that they can be copied.
        wrap = TextWrapper(max(width, 20), break_long_words=False, break_on_hyphens=False)
        text = "\n".join(map(wrap.fill, text.split("\n")))
    click.echo(shown + text[len(mark) :], err=True, color=True)


def error_as_data(error: Exception) -> list[dict[str, object]]:
    """An error as the diagnostics of `--json`."""
    if isinstance(error, SpecError):
        return [diagnostic.as_dict() for diagnostic in error.diagnostics]
    kinds = {InputError: "input", OracleError: "oracle", click.ClickException: "usage", OSError: "file"}
    code = next(code for kind, code in kinds.items() if isinstance(error, kind))
    nowhere = dict.fromkeys(("file", "line", "column", "end_line", "end_column"))
    content = {"message": _message(error), "help": "", "fixes": [], "related": []}
    return [{"code": code, "severity": "error", **nowhere, **content}]


def _message(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return str(error)
