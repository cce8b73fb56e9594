"""`udcp format SPEC`: the spec as canonical text, to look at, to write back, or to compare with."""

from __future__ import annotations

from pathlib import Path

import click

from udcp_dsl.cli.spec import json_option
from udcp_dsl.cli.terminal import emit, visible
from udcp_dsl.diagnostics import InputError, Source, Span, SpecError


@click.command("format", epilog="Example:  udcp format pets.loss --check || udcp format pets.loss --write")
@click.argument("spec", type=click.Path())
@click.option("--write", is_flag=True, help="Rewrite the file in place.")
@click.option("--drop-comments", is_flag=True, help="Let --write leave out the comments of the file.")
@click.option("--check", is_flag=True, help="Print nothing; exit 1 if the file is not canonical.")
@json_option
def command(spec: str, write: bool, drop_comments: bool, check: bool, as_json: bool) -> int:
    """Print a spec as canonical text, which has no comments. The files that it names are not read."""
    from udcp_dsl.language.parse import parse, read_source
    from udcp_dsl.language.unparse import unparse

    if write and check:
        raise click.UsageError("--write and --check exclude each other")
    if drop_comments and not write:
        raise click.UsageError("--drop-comments goes with --write")
    source = read_source(spec)
    tree, faults = parse(source)
    if faults:
        raise SpecError(faults)
    text = unparse(tree)
    data = text.encode()
    canonical = Path(spec).read_bytes() == data
    commented = _has_comments(source)
    if write and not canonical:
        if commented and not drop_comments:
            raise InputError(f"{spec} has comments, and canonical text has none: leave them out with --drop-comments")
        from udcp_dsl.prediction.files import atomic_write

        with atomic_write(spec) as temporary:
            temporary.write_bytes(data)
    holds = canonical or not check
    if as_json:
        emit({"diagnostics": [], "file": spec, "canonical": canonical, "comments": commented, "text": text}, ok=holds)
    elif check and not canonical:
        reason = "it has comments, which canonical text has not" if commented else "see udcp format"
        click.echo(f"{visible(spec)} is not canonical: {reason}", err=True)
    elif not write and not check:
        click.echo(text, nl=False)
    return 0 if holds else 1


def _has_comments(source: Source) -> bool:
    whole = Span(source, 0, len(source.text))
    return whole.line != " ".join(source.text.split())  # `line` leaves comments out
