"""`udcp studio [SPEC] [--probs P --truth Y]`: write a loss with its sets in view, on a page on localhost."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import finish, json_option
from udcp_dsl.cli.row_options import RowOptions, alpha_option, collect_warnings, reads_rows
from udcp_dsl.diagnostics import InputError
from udcp_dsl.showing import Description

if TYPE_CHECKING:
    from udcp_dsl.studio.instances import Supply
    from udcp_dsl.studio.spec_folder import SpecFolder

_FIRST = "dermatology/triage"  # the example that it opens on


@click.command("studio", epilog="Example:  udcp studio pets.loss --probs p.npy --truth y.npy")
@click.argument("spec", required=False, type=click.Path())
@reads_rows(
    "truth_column",
    "id_column",
    numbers=True,
    optional="Your own probabilities, with --truth (default: a generated classifier).",
)
@alpha_option
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8765,
    show_default=True,
    help="Port; falls back to the next free one.",
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@json_option
def command(
    spec: str | None,
    row_options: RowOptions | None,
    alphas: tuple[Fraction, ...],
    port: int,
    no_browser: bool,
) -> None:
    """Open a page in the browser to write a loss: errors as you type, the cost of a set, and the sets of every oracle.

    Rows are yours or those of a generated classifier. Without SPEC, the page opens with the examples. It is served on
    127.0.0.1 only, at an address that contains a token. Files are read and written only in the folder of SPEC (without
    SPEC, in the current one). Press Ctrl-C to stop it.
    """
    from udcp_dsl.studio.serving import listening, require_studio, serve
    from udcp_dsl.studio.spec_folder import open_spec
    from udcp_dsl.studio.studio import Studio

    require_studio()
    if len(alphas) > 1:
        raise InputError("--alpha takes one value here: the page has a slider for others")
    if row_options is not None and spec is None:
        raise InputError("--probs needs a SPEC, whose labels name its columns")
    place, text = _example() if spec is None else open_spec(spec)
    supply = None
    if row_options is not None:
        with collect_warnings():
            supply = _rows(place, text, row_options)
    opened = listening(port)
    studio = Studio(place, text, alpha=alphas[0]) if supply is None else Studio(place, text, supply, alpha=alphas[0])

    def ready(address: str) -> None:
        lines = (f"{place.shown} is open at", "", f"  {address}", "", "Ctrl-C stops it.")
        finish(Description(verdict=lines, data={"address": address, "spec": place.shown}))
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(studio, opened, ready)


def _example() -> tuple[SpecFolder, str]:
    from udcp_dsl.datasets.kept_rows import example_specs
    from udcp_dsl.studio.spec_folder import example

    specs = example_specs()
    if not specs:
        raise InputError("the examples are not part of this installation: give a SPEC, or install udcp_dsl again")
    return example(specs.get(_FIRST, next(iter(specs.values()))), Path.cwd())


def _rows(place: SpecFolder, text: str, row_options: RowOptions) -> Supply:
    """The user's rows, read before anything is served: the studio itself reads none."""
    from udcp_dsl.loss import loads
    from udcp_dsl.studio.instances import own

    loss = loads(text, folder=place.folder, name=place.name)
    bare = row_options.of_arrays and row_options.inputs_file is None
    rows = row_options.read(loss.labels if bare else loss)  # inputs that an array lacks are drawn
    return own(rows, f"{len(rows):,} rows of {Path(row_options.file).name}")
