"""`udcp eval SPEC LABEL...`: the cost of one set, term by term."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from udcp_dsl.cli.ending import finish
from udcp_dsl.cli.spec import reads_spec, takes_inputs, wanted
from udcp_dsl.diagnostics import InputError
from udcp_dsl.showing import Column, Description, Styled, Table, in_unit

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@click.command("eval", epilog="Example:  udcp eval pets.loss cat wolf")
@reads_spec
@takes_inputs
@click.argument("members", nargs=-1, metavar="[LABEL]...")
def command(loss: Loss, members: tuple[str, ...], inputs: dict[str, Any] | None) -> int:
    """Print the cost of the set of LABELs, term by term; without labels, of the empty set."""
    if loss.inputs and inputs is None:
        raise InputError(f"the loss reads inputs of the row: give {wanted(loss.inputs)}")
    mask = loss.mask(members)
    inside = [label for label, within in zip(loss.labels, mask, strict=True) if within]
    # Adding 0 turns -0 into 0.
    terms = [{"text": text, "cost": value + 0.0} for text, value in loss.terms(mask, inputs=inputs).items()]
    total = loss(mask, inputs=inputs) + 0.0
    columns = (Column("term", "text"), Column(in_unit("cost", loss.unit), "cost", ".10g"))
    described = Description(
        title=(Styled(loss.name, "bold"), f" of {{{', '.join(inside)}}}"),
        tables=(Table(columns, terms, key="terms", foot={"text": "total", "cost": total}),),
        data={"loss": loss.name, "labels": inside, "total": total, "unit": loss.unit},
    )
    return finish(described, {"diagnostics": loss.warnings})
