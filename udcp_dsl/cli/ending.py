"""The end of every command: print the result as text or JSON, write files, and exit with a status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.terminal import emit, error_as_data, print_described
from udcp_dsl.diagnostics import InputError
from udcp_dsl.showing import visible

if TYPE_CHECKING:
    from udcp_dsl.showing import Description, Result

FAILED, WRONG_INPUT = 1, 2  # exit status

_JSON = "udcp_dsl.cli.json"  # the key of a command's context under which --json is kept


def _keep(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    ctx.meta[_JSON] = wanted


json_option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_keep, is_eager=True, help="Print the result as JSON."
)


def wants_json() -> bool:
    """Whether the command that runs was called with --json."""
    return bool(click.get_current_context().meta.get(_JSON))


def show(*described: Description | Result, err: bool = False) -> None:
    """Print results as text; with --json, print nothing."""
    if not wants_json():
        for number, result in enumerate(described):
            print_described(result.describe(), err=err, apart=number > 0)


def finish(
    result: Description | Result,
    fields: Mapping[str, object] | None = None,
    *,
    status: int = 0,
    write: Callable[[], Iterable[str]] = tuple,
    key: str = "",
    message: str = "{} is written",
    err: bool = False,
) -> int:
    """Show the result, write the files, and return the exit status.

    JSON has `fields` and, under `key`, the files: a list if the key is "files", otherwise one name or None. With
    --json, a file that cannot be written is reported in the diagnostics, with status 2, and the result is still
    printed.
    """
    if not wants_json():
        show(result, err=err)
        for file in write():
            if message:
                click.echo(message.format(visible(file)), err=err)
        return status
    from udcp_dsl.showing.data import as_data, plain

    data = {name: plain(value) for name, value in (fields or {}).items()}
    try:
        written, faults = list(write()), []
    except (InputError, OSError) as error:
        written, faults = [], error_as_data(error)
        data["diagnostics"] = [*data.get("diagnostics", ()), *faults]
    if key:
        data[key] = written if key == "files" else next(iter(written), None)
    emit({**data, **as_data(result.describe())}, ok=status != FAILED and not faults)
    return WRONG_INPUT if faults else status
