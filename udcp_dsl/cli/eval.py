"""`udcp eval SPEC LABEL...`: the cost of one set, term by term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import finish
from udcp_dsl.cli.spec import reads_spec
from udcp_dsl.showing import Column, Description, Styled, Table

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@click.command("eval", epilog="Example:  udcp eval pets.loss cat wolf")
@reads_spec
@click.argument("members", nargs=-1, metavar="[LABEL]...")
def command(loss: Loss, members: tuple[str, ...]) -> int:
    """Print what the set of the LABELs costs, term by term; without labels, the empty set."""
    mask = loss.mask(members)
    inside = [label for label, within in zip(loss.labels, mask, strict=True) if within]
    # Adding 0 turns -0 into 0.
    terms = [{"text": text, "cost": value + 0.0} for text, value in loss.terms(mask).items()]
    total = loss(mask) + 0.0
    columns = (Column("term", "text"), Column("cost", "cost", ".10g"))
    described = Description(
        title=(Styled(loss.name, "bold"), f" of {{{', '.join(inside)}}}"),
        tables=(Table(columns, terms, key="terms", foot={"text": "total", "cost": total}),),
        data={"loss": loss.name, "labels": inside, "total": total},
    )
    return finish(described, {"diagnostics": loss.warnings})
