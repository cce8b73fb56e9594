"""`udcp studio [SPEC] [--probs P --truth Y]`: write a loss with its sets in view, on a page on localhost."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import finish, json_option
from udcp_dsl.cli.row_options import alpha_option, heeding_warnings, id_option, numbers_options, rows_from
from udcp_dsl.cli.spec import parse_labels
from udcp_dsl.diagnostics import InputError
from udcp_dsl.showing import Description

if TYPE_CHECKING:
    from udcp_dsl.studio.instances import Supply
    from udcp_dsl.studio.place import Place

_FIRST = "dermatology/triage"  # the example that it opens on


@click.command("studio", epilog="Example:  udcp studio pets.loss --probs p.npy --truth y.npy")
@click.argument("spec", required=False, type=click.Path())
@click.option(
    "--probs", "probs_file", metavar="FILE", help="Your own probabilities; without, a classifier is generated."
)
@click.option("--truth", "truth_source", metavar="FILE|COLUMN", help="Their true labels; goes with --probs.")
@click.option(
    "--class-names", callback=parse_labels, metavar="LIST|FILE", help="The labels of an array's columns, in order."
)
@click.option("--ignore", multiple=True, metavar="COLUMN", help="A column of the table to leave unread.")
@id_option
@numbers_options[0]
@numbers_options[1]
@alpha_option
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="Or the next free one.")
@click.option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@json_option
def command(
    spec: str | None,
    probs_file: str | None,
    truth_source: str | None,
    class_names: list[str] | None,
    ignore: tuple[str, ...],
    id_source: str | None,
    logits: bool,
    normalize: bool,
    alphas: tuple[Fraction, ...],
    port: int,
    no_browser: bool,
) -> None:
    """Write a loss with the answer in view: faults as you type, what a set costs, the sets of every oracle on rows of
    yours or of a generated classifier.

    Without SPEC it opens on the examples. The page is on 127.0.0.1 alone, at an address that holds a token; files are
    read and written in the folder of SPEC only (without SPEC, in the current one). Ctrl-C ends it.
    """
    from udcp_dsl.studio.place import open_spec
    from udcp_dsl.studio.serving import listening, require_studio, serve
    from udcp_dsl.studio.studio import Studio

    require_studio()
    if (probs_file is None) != (truth_source is None):
        raise InputError("--probs and --truth belong together: give both, or neither")
    if len(alphas) > 1:
        raise InputError("--alpha: give one; the page has a slider for others")
    if probs_file is not None and spec is None:
        raise InputError("--probs needs the SPEC whose labels its columns are")
    place, text = _example() if spec is None else open_spec(spec)
    supply = None
    if probs_file is not None:
        with heeding_warnings():
            rows = _rows(place, text, probs_file, truth_source, class_names, ignore, id_source, logits, normalize)
        supply = rows
    opened = listening(port)
    studio = Studio(place, text, alpha=alphas[0]) if supply is None else Studio(place, text, supply, alpha=alphas[0])

    def ready(address: str) -> None:
        said = (f"{place.shown} is open at", "", f"  {address}", "", "Ctrl-C ends it.")
        finish(Description(verdict=said, data={"address": address, "spec": place.shown}))
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(studio, opened, ready)


def _example() -> tuple[Place, str]:
    from udcp_dsl.datasets.example_specs import example_specs
    from udcp_dsl.studio.place import example

    specs = example_specs()
    if not specs:
        raise InputError("the examples are not part of this installation: give a SPEC, or install udcp_dsl again")
    return example(specs.get(_FIRST, next(iter(specs.values()))), Path.cwd())


def _rows(
    place: Place,
    text: str,
    probs_file: str,
    truth_source: str | None,
    class_names: list[str] | None,
    ignore: tuple[str, ...],
    id_source: str | None,
    logits: bool,
    normalize: bool,
) -> Supply:
    """The user's rows, read before anything is served: the studio itself reads none."""
    from udcp_dsl.loss import loads
    from udcp_dsl.studio.instances import own

    labels = loads(text, folder=place.folder, name=place.name).labels
    rows = rows_from(
        probs_file,
        labels,
        class_names=class_names,
        ignore=ignore,
        id_source=id_source,
        truth_source=truth_source,
        logits=logits,
        normalize=normalize,
    )
    return own(rows, f"{len(rows):,} rows of {Path(probs_file).name}")
