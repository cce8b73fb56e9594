"""The command line: `udcp VERB ...`. One file a verb, loaded when it is called, and one line in the table below.

Exit status: 0 done, 1 the checked thing does not hold, 2 wrong input, 130 interrupted, 141 the reader has gone.
A user's mistake is told on stderr (with `--json` as data on stdout) and never as a traceback.
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

# A verb's module in this package defines `command`.
_VERBS = {
    "new": "write a commented starting spec",
    "check": "diagnostics, facts with reasons, bounds, and which oracles apply",
    "format": "print a spec as canonical text",
    "eval": "the cost of one set, term by term",
    "fit": "parameters from comparisons of sets, and which of these contradict each other",
    "order": "one instance's ordering, with mass and cost at each step",
    "calibrate": "thresholds from rows with known truth, saved as a predictor",
    "show": "what a saved predictor is: loss, oracle, promise, thresholds",
    "evaluate": "how a saved predictor does on rows with known truth",
    "predict": "the prediction sets of new rows",
    "monitor": "does the promise still hold? asked of rows as their truth comes in",
    "compare": "every oracle that applies, side by side, over repeated splits",
    "gap": "what oracles leave on the table against sets proved optimal",
    "warm": "compile and cache all that a spec or a saved predictor needs",
    "demo": "all of it on a real classifier, with a report",
    "studio": "write a loss with its sets in view, on a page on localhost",
    "lsp": "the language server, for editors",
    "validate": "is this spec safe to use? answered by generated cases",
}

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
        with formatter.section("Commands"):
            formatter.write_dl(list(_VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _VERBS and not name.startswith("-"):
            ctx.fail(f"there is no command {name!r}; {did_you_mean(name, _VERBS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        # Here, since click ends the process by itself where a broken pipe reaches it.
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
        options["obj"] = shlex.join(["udcp", *arguments])  # what a report says that it was made by
        before_labels = arguments[: arguments.index("--")] if "--" in arguments else arguments
        as_json = "--json" in before_labels
        os.environ.setdefault("UDCP_QUIET", "1")  # progress lines say what is compiled, here and in processes started
        # A stream that was closed for us (2>&-) is None: what is said to it goes nowhere, and the rest goes on.
        sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # what an encoding lacks is shown by its number, never a traceback
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
    """Send what is left to nowhere, so that the flush at exit does not fail too."""
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
    """Prediction sets that are cheap by your own measure of cost, with guaranteed coverage.

    A spec (a .loss file) says what a set of labels costs. Each command has its own --help.
    """
