"""The command line: `udcp VERB ...`. One file per verb, loaded when it is called, and one line in the table below.

Exit status: 0 if all went well, 1 if the check failed, 2 for invalid input, 130 if interrupted, 141 if the reader of a
pipe has gone. A user's mistake is reported on stderr (with `--json` as data on stdout) and never as a traceback.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

import udcp_dsl
from udcp_dsl.cli.terminal import report_error
from udcp_dsl.diagnostics import InputError, OracleError, SpecError, did_you_mean

# Groups of verbs, and what each does. A verb's module in this package defines `command`.
_GROUPS = {
    "Write a loss": {
        "new": "write a starting spec with comments",
        "check": "find errors, list the applicable oracles and their speed",
        "eval": "compute the cost of one set, term by term",
        "fit": "fit parameters to comparisons of sets, and find contradictions",
        "format": "rewrite a spec in the canonical layout",
    },
    "Try it on data": {
        "demo": "see it work on a real classifier",
        "compare": "compare oracles by cost and coverage, over repeated splits",
        "order": "show in which order an oracle adds the labels of one row",
        "gap": "compare oracles with sets that are proved optimal",
        "validate": "test a spec, its oracles and their coverage",
        "studio": "edit a loss in the browser and see its sets",
    },
    "Use it": {
        "calibrate": "set thresholds on labelled rows, and save a predictor",
        "predict": "predict sets for new rows",
        "show": "describe a saved predictor",
    },
    "Watch it": {
        "evaluate": "measure coverage and cost of a saved predictor",
        "monitor": "test whether new rows are still like the calibration rows",
    },
    "Tools": {
        "warm": "compile in advance, for containers",
        "lsp": "run the language server, for editors",
    },
}
_VERBS = {verb: about for verbs in _GROUPS.values() for verb, about in verbs.items()}

_WRONG_INPUT, _INTERRUPTED, _READER_GONE = 2, 130, 141


class _Verbs(click.Group):
    """A group that imports a verb's module only when the verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _VERBS:
            return None
        command: click.Command = import_module(f"udcp_dsl.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{verb:<9}", about) for verb, about in verbs.items()])  # columns of one width

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _VERBS and not name.startswith("-"):
            ctx.fail(f"there is no command {name!r}; {did_you_mean(name, _VERBS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        # Caught here, since click itself ends the process at a broken pipe.
        try:
            status = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            return _READER_GONE
        return status

    def main(  # type: ignore[override]  # click's overloads differ in what they return; this one always exits
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **options: Any
    ) -> Any:
        arguments = list(sys.argv[1:] if args is None else args)
        options["obj"] = shlex.join(["udcp", *arguments])  # the command that a report names
        before_labels = arguments[: arguments.index("--")] if "--" in arguments else arguments
        as_json = "--json" in before_labels
        os.environ.setdefault("UDCP_QUIET", "1")  # progress lines report compiling, here and in child processes
        # A stream that was closed (2>&-) is None: its output is dropped, and the command goes on.
        sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # characters that the encoding lacks are escaped, never a traceback
                stream.reconfigure(errors="backslashreplace")
        try:
            try:
                status = super().main(arguments, prog_name or "udcp", **{**options, "standalone_mode": False})
            except (SpecError, InputError, OracleError, OSError, click.ClickException) as error:
                report_error(error, as_json)
                status = _WRONG_INPUT
            except (click.Abort, KeyboardInterrupt, EOFError) as error:
                advice = str(error.__cause__ or error)  # click raises its own from Python's
                click.echo(": ".join(filter(None, ("interrupted", advice))), err=True)
                status = _INTERRUPTED
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            status = _READER_GONE
        sys.exit(status or 0)


def _drop_output() -> None:
    """Discard the remaining output, so that the flush at exit does not fail, too."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError:  # a stdout without a file
        return


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  udcp new pets.loss && udcp check pets.loss",
)
@click.version_option(udcp_dsl.__version__, prog_name="udcp")
def main() -> None:
    """Prediction sets that contain the true label as often as you require, and are cheap under a cost you define.

    A spec (a .loss file) says what a set of labels costs. `udcp COMMAND --help` explains a command, with an example.
    """
