"""`udcp eval SPEC LABEL...`: the cost of one set, term by term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.spec import reads_spec
from udcp_dsl.cli.terminal import emit, plain_table, show, visible

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss


@click.command("eval", epilog="Example:  udcp eval pets.loss cat wolf")
@reads_spec
@click.argument("members", nargs=-1, metavar="[LABEL]...")
def command(loss: Loss, members: tuple[str, ...], as_json: bool) -> None:
    """Print what the set of the LABELs costs, term by term; without labels, the empty set."""
    mask = loss.mask(members)
    inside = [label for label, within in zip(loss.labels, mask, strict=True) if within]
    # Adding 0 turns -0 into 0.
    terms = {text: value + 0.0 for text, value in loss.terms(mask).items()}
    total = loss(mask) + 0.0
    if as_json:
        emit(
            {
                "diagnostics": [x.as_dict() for x in loss.warnings],
                "loss": loss.name,
                "labels": inside,
                "terms": [{"text": text, "cost": cost} for text, cost in terms.items()],
                "total": total,
            }
        )
        return
    from rich.text import Text

    table = plain_table(show_footer=True)
    table.add_column("term", "total", overflow="fold")
    table.add_column("cost", f"{total:.10g}", justify="right", no_wrap=True, footer_style="bold")
    for text, cost in terms.items():
        table.add_row(Text(visible(text)), f"{cost:.10g}")
    show(Text.assemble((loss.name, "bold"), visible(f" of {{{', '.join(inside)}}}")), "", table)
