"""`udcp check SPEC`: diagnostics, every fact with its reason, the bounds, and which oracles apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.row_options import check_output
from udcp_dsl.cli.solving import solving_oracle
from udcp_dsl.cli.spec import reads_spec
from udcp_dsl.cli.terminal import emit, plain_table, show, show_diagnostics, symbols, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table
    from rich.text import Text

    from udcp_dsl.loss import Loss
    from udcp_dsl.prediction.applicability import Applicability

_COLOURS = {"proved": "green", "refuted": "red", "unknown": "yellow"}


@click.command("check", epilog="Example:  udcp check pets.loss --param coherence=3")
@reads_spec
@click.option("--ilp", "sized", is_flag=True, help="The size of the loss as a mixed-integer model, or why it has none.")
@click.option(
    "--export",
    "model_file",
    metavar="FILE",
    help="Write that model as .lp or .mps: x0, x1, ... are the labels; each instance would add the row of its mass.",
)
@click.option("--time", "timed", is_flag=True, help="Measure what a row takes, on a few generated rows.")
def command(loss: Loss, sized: bool, model_file: str | None, timed: bool, as_json: bool) -> int:
    """Check a spec, and say what is proved about its loss, which oracles apply, by what way and in what time.

    Exact: sets are the best there are for what they are asked for, a price or a mass. The time is that of one row among
    many. Nothing is compiled to say so, but with --time.
    """
    from udcp_dsl.expression.explain import facts_as_dict, free_labels_warning
    from udcp_dsl.prediction.applicability import lost_by, oracles

    if model_file is not None:
        check_output(model_file)
        solving_oracle(loss).export(model_file)
    size, why = _model_size(loss) if sized or model_file is not None else (None, None)
    free = free_labels_warning(loss)
    applicable = oracles(loss)
    lost = {name: lost_by(name, loss, applicable) for name, _ in loss.facts}
    seconds = _measured(loss, applicable) if timed else None
    if as_json:
        emit(
            {
                "diagnostics": [x.as_dict() for x in (*loss.warnings, *([free] if free else []))],
                "file": loss.source.name,
                "loss": loss.name,
                "losses": list(loss.losses),
                "labels": loss.K,
                "params": dict(loss.params),
                **facts_as_dict(loss),
                "lost": {name: list(what) for name, what in lost.items()},
                "oracles": [_as_data(x, seconds) for x in applicable],
                "free_labels": list(loss.free_labels),
                **({"ilp": size, "why_not_ilp": why} if sized or model_file is not None else {}),
                **({} if model_file is None else {"exported": model_file}),
            },
            ok=why is None,
        )
        return 0 if why is None else 1
    if free:
        show_diagnostics([free])
    show(_heading(loss), "", _facts(loss, lost), "", _oracles(applicable, seconds))
    from rich.text import Text

    if size is not None:
        show("", "ilp: " + ", ".join(f"{count:,} {what}" for what, count in size.items()))
    if why is not None:
        show("", Text(f"ilp: {visible(why)}"))
    if model_file is not None:
        show(Text(f"written to {visible(model_file)}"))
    return 0 if why is None else 1


def _model_size(loss: Loss) -> tuple[dict[str, int] | None, str | None]:
    """How large the linear model is, or why there is none."""
    from udcp_dsl.expression.lower import LoweringError

    try:
        return loss.linear_model.size, None
    except LoweringError as error:
        return None, str(error)


def _heading(loss: Loss) -> Text:
    from rich.text import Text

    from udcp_dsl.expression.explain import summary

    heading = Text.assemble((loss.name, "bold"), f" in {visible(loss.source.name)}: {summary(loss)}")
    if loss.params:
        heading.append("\nwith " + ", ".join(f"{name} = {value:.10g}" for name, value in loss.params.items()))
    others = [name for name in loss.losses if name != loss.name]
    if others:
        heading.append(f"\nthe spec has {', '.join(others)} as well: choose with --loss")
    return heading


def _table(*columns: str) -> Table:
    table = plain_table()
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    return table


def _facts(loss: Loss, lost: dict[str, tuple[str, ...]]) -> Table:
    from rich.text import Text

    from udcp_dsl.expression.explain import shown_blame

    marks = symbols()
    table = _table("fact", "state", "why")
    for name, fact in loss.facts:
        why = Text(visible(fact.reason))
        if fact.blame is not None:
            why.append(f"\nbecause of {visible(shown_blame(fact.blame))}", "dim")
        if lost[name]:
            why.append(f"\nlost: {', '.join(lost[name])}", "bold")
        table.add_row(name, Text(f"{marks[fact.state]} {fact.state}", _COLOURS[fact.state]), why)
    return table


def _measured(loss: Loss, applicable: Sequence[Applicability]) -> dict[str, float | None]:
    from udcp_dsl.cli.progress import waiting
    from udcp_dsl.cli.timing import seconds_a_row

    found = dict[str, float | None]()
    for oracle in applicable:
        if oracle.applies:
            with waiting(f"measuring {oracle.name}"):
                found[oracle.name] = seconds_a_row(oracle.name, loss)
    return found


def _as_data(oracle: Applicability, seconds: Mapping[str, float | None] | None) -> dict[str, object]:
    says = oracle.says
    return {
        "name": oracle.name,
        "applies": oracle.applies,
        "why": oracle.why,
        "exact": oracle.exact,
        "time": oracle.time,
        "declared": says is not None,
        "does": None if says is None else says.does,
        "tuned": None if says is None else says.tuned,
        "solves": None if says is None else says.solves,
        **({} if seconds is None else {"seconds_a_row": seconds.get(oracle.name)}),
    }


def _oracles(applicable: Sequence[Applicability], seconds: Mapping[str, float | None] | None) -> Table:
    from rich.text import Text

    marks = symbols()
    table = _table("oracle", "applies", "exact", "time a row", *([] if seconds is None else ["measured"]), "way")
    for oracle in applicable:
        mark = Text(f"{marks['proved']} yes", "green") if oracle.applies else Text(f"{marks['refuted']} no", "red")
        exact = "" if oracle.exact is None else "exact" if oracle.exact else "no"
        measured = [] if seconds is None else [_shown(seconds.get(oracle.name))]
        table.add_row(Text(oracle.name), mark, exact, oracle.time or "", *measured, Text(visible(oracle.why)))
    return table


def _shown(seconds: float | None) -> str:
    """Two digits, in the unit that fits."""
    if seconds is None:
        return ""
    unit, many = next((x for x in (("s", 1.0), ("ms", 1e-3)) if seconds >= x[1]), ("us", 1e-6))
    return f"{seconds / many:.2g} {unit}" if seconds < 99.5 * many else f"{seconds / many:.0f} {unit}"
