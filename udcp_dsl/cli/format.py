"""`udcp format SPEC`: the spec as canonical text, to print, write back, or compare."""

from __future__ import annotations

from pathlib import Path

import click

from udcp_dsl.cli.ending import FAILED, finish, json_option, show, wants_json
from udcp_dsl.diagnostics import SpecError
from udcp_dsl.showing import Description


@click.command("format", epilog="Example:  udcp format pets.loss --check || udcp format pets.loss --write")
@click.argument("spec", type=click.Path())
@click.option("--write", is_flag=True, help="Rewrite the file in place.")
@click.option("--check", is_flag=True, help="Print nothing; exit 1 if the file is not canonical.")
@json_option
def command(spec: str, write: bool, check: bool) -> int:
    """Print a spec in the canonical layout, with its comments and the blank lines between groups.

    Files that the spec names are not read.
    """
    from udcp_dsl.language.layout import formatted
    from udcp_dsl.language.parse import parse, read_source

    if write and check:
        raise click.UsageError("--write and --check exclude each other")
    source = read_source(spec)
    tree, faults = parse(source)
    if faults:
        raise SpecError(faults)
    text = formatted(source, tree)
    data = text.encode()
    canonical = Path(spec).read_bytes() == data
    if write and not canonical:
        from udcp_dsl.files import atomic_write

        with atomic_write(spec) as temporary:
            temporary.write_bytes(data)
    holds = canonical or not check
    if not holds:
        show(Description(verdict=(f"{spec} is not canonical: see udcp format",)), err=True)
    elif not write and not check and not wants_json():
        click.echo(text, nl=False)
    result = Description(data={"file": spec, "canonical": canonical, "text": text})
    return finish(result, {"diagnostics": []}, status=0 if holds else FAILED)
