"""`udcp gap SPEC --probs P`: compare the sets of oracles, row by row, with sets that are proved optimal.

In each row an oracle's set is the shortest prefix of its order that has mass 1 - alpha; the optimum is the cheapest of
all sets with that mass. The gap is the difference of their costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

import click

from udcp_dsl.cli.ending import FAILED, finish
from udcp_dsl.cli.row_options import RowOptions, collect_warnings, reads_rows
from udcp_dsl.cli.solving import Computing, computes, solving, solving_oracle
from udcp_dsl.cli.spec import diagnostics_of, reads_spec
from udcp_dsl.diagnostics import InputError, OracleError
from udcp_dsl.showing import Column, Description, Styled, Table, in_unit, with_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from udcp_dsl.loss import Loss
    from udcp_dsl.predict.oracle import Floats, Masks, Oracle
    from udcp_dsl.rows.rows import Rows

_USUAL = ("greedy", "price")
_SHOWN = 5
_WORST = "rows with the largest gaps, cost"
# Costs this close, relative to their size, are one cost that was added up in another order.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Summary:
    """One oracle over the rows whose optimum is proved."""

    oracle: str
    mean_cost: float
    mean_size: float
    mean_gap: float
    relative_gap: float | None  # relative to the mean optimum; None unless that is above 0
    largest_gap: float
    optimal_rows: int


@click.command("gap", epilog="Example:  udcp gap pets.loss --probs p.csv --sample 50 --alpha 0.05 --oracle greedy")
@reads_spec
@reads_rows("id_column", numbers=True)
@click.option(
    "--oracle",
    "names",
    multiple=True,
    metavar="NAME",
    help=f"Oracle to examine; may be repeated (default: {' and '.join(_USUAL)}).",
)
@click.option(
    "--alpha", default="0.1", show_default=True, metavar="LEVEL", help="Sets have a probability of at least 1 - alpha."
)
@click.option("--sample", type=click.IntRange(min=1), default=200, show_default=True, help="Number of rows to sample.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed for the sample.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Time limit for the optimum of each row.")
@click.option(
    "--solver",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Solver, by its name in PuLP.",
)
@computes
def command(
    loss: Loss,
    row_options: RowOptions,
    names: tuple[str, ...],
    alpha: str,
    sample: int,
    seed: int,
    time_limit: float | None,
    solver: str,
    computing: Computing,
) -> int:
    """Compare the sets of oracles with the cheapest sets of the same probability: is `ilp` worth its time?

    The comparison is row by row. An oracle such as `price`, which covers more where that is cheap, may cost more in one
    row and less overall. Exit status 1 if the optimum of some row could not be proved.
    """
    from udcp_dsl.predict.calibrate import exact_level, show_level

    level = exact_level(alpha)
    # A float, as the exact oracle reads its levels: by the decimal as which it is printed.
    mass = float(1 - level)

    diagnostics = diagnostics_of(loss, names or _USUAL)
    with collect_warnings() as warnings:
        made, left_out = _made(loss, names)
        exact = solving_oracle(loss, levels=[mass], solver=solver, time_limit=time_limit)
        rows = row_options.read(loss)
        chosen = _sample(len(rows), sample, seed)
        inputs = None if rows.inputs is None else rows.inputs[chosen]
        some = rows.take(chosen)
        with solving(exact, len(some), computing):
            optimal, proved = exact.optimal(some)
        masks = {x.name: prefixes(x, some, Fraction(repr(mass))) for x in made}
    optimum = loss.batch(optimal, inputs=inputs)
    costs = {name: loss.batch(mask, inputs=inputs) for name, mask in masks.items()}
    summaries = [summary(name, costs[name], masks[name], optimum, proved) for name in masks] if proved.any() else []
    rows_of = [
        {
            "row": int(row),
            "id": None if rows.ids is None else str(rows.ids[row]),
            "optimum": float(optimum[i]),
            "proved": bool(proved[i]),
            "size": int(optimal[i].sum()),
            "costs": {name: float(cost[i]) for name, cost in costs.items()},
        }
        for i, row in enumerate(chosen)
    ]
    mean = float(optimum[proved].mean()) if proved.any() else None
    least = "" if mean is None else with_unit(f"{mean:.6g}", loss.unit)
    average = f"the optimum costs {least} on average" if least else "no optimum is proved"
    many = f"{len(chosen):,} of {len(rows):,} rows" if len(chosen) < len(rows) else f"{len(chosen):,} rows"
    unproved = int((~proved).sum())
    about = {"loss": loss.name, "alpha": show_level(level), "n": len(chosen), "unproved": unproved}
    most = f"{in_unit(_WORST, loss.unit)}:"
    worst = [rows_of[i] for i in _worst(costs, optimum, proved)]
    described = Description(
        title=(Styled(loss.name, "bold"), f" over {many}, sets of mass {mass:g}: {average}"),
        lines=(f"{unproved:,} rows are left out: their optimum is not proved",) if unproved else (),
        tables=(
            _summaries(summaries, int(proved.sum()), loss.unit),
            Table(_row_columns(rows.ids is not None, list(costs)) if worst else (), rows_of, most, "", "rows", worst),
        ),
        notes=tuple(f"{name} does not apply: {why}" for name, why in left_out.items()),
        data={**about, "mean_optimum": mean, "left_out": left_out},
    )
    return finish(described, {"diagnostics": diagnostics, "warnings": warnings}, status=FAILED if unproved else 0)


def _made(loss: Loss, names: tuple[str, ...]) -> tuple[list[Oracle], dict[str, str]]:
    """The named oracles, or those of the usual ones that apply; and why the others do not."""
    from udcp_dsl.predict.oracle import make_oracle

    made, left_out = [], dict[str, str]()
    for name in dict.fromkeys(names or _USUAL):
        try:
            oracle = make_oracle(name, loss)
        except OracleError as error:
            if names:
                raise
            left_out[name] = str(error)
            continue
        if oracle.untuned:
            raise InputError(f"oracle {name!r} has no order before it is calibrated: leave it out")
        made.append(oracle)
    if not made:
        raise InputError("none of the usual oracles applies to this loss: name one, --oracle base")
    return made, left_out


def _sample(n: int, count: int, seed: int) -> npt.NDArray[np.int64]:
    import numpy as np

    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, count, replace=False))


def prefixes(oracle: Oracle, rows: Rows, level: Fraction) -> Masks:
    """The shortest prefix of each row's order with the share `level` of the row's mass, in exact arithmetic."""
    import numpy as np

    scores = oracle.scores(rows)
    masks = np.zeros(scores.shape, dtype=bool)
    for i, row in enumerate(rows.P.astype(np.float64)):
        order = np.lexsort((np.arange(len(row)), -row, scores[i]))
        sums = list(accumulate(_units(row[order])))
        target = _rounded_down(level * sums[-1] / 2**1074)
        count = next(k for k, mass in enumerate(sums, start=1) if Fraction(mass, 2**1074) >= target)
        masks[i, order[:count]] = True
    return masks


def _units(p: Floats) -> list[int]:
    """Floats as multiples of 2^-1074, which all floats are."""
    return [numerator * (2**1074 // denominator) for numerator, denominator in map(float.as_integer_ratio, p.tolist())]


def _rounded_down(exact: Fraction) -> float:
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, 0.0)


def summary(name: str, costs: Floats, masks: Masks, optimum: Floats, proved: Masks) -> Summary:
    """Means over the rows whose optimum is proved."""
    import numpy as np

    cost, best = costs[proved], optimum[proved]
    gap = cost - best
    mean = float(best.mean())
    return Summary(
        oracle=name,
        mean_cost=float(cost.mean()),
        mean_size=float(masks[proved].sum(axis=1).mean()),
        mean_gap=float(gap.mean()),
        relative_gap=float(gap.mean()) / mean if mean > 0 else None,
        largest_gap=float(gap.max()),
        optimal_rows=int((gap <= _EQUAL * np.maximum(1.0, np.abs(best))).sum()),
    )


def _summaries(summaries: list[Summary], rows: int, unit: str | None) -> Table:
    columns = (
        Column("oracle", "oracle"),
        Column(in_unit("mean cost", unit), "mean_cost", ".6g"),
        Column("mean size", "mean_size", ".4g"),
        Column("gap", "mean_gap", ".4g"),
        Column("of optimum", "relative_gap", ".1%"),
        Column("largest", "largest_gap", ".4g"),
        Column("optimal", lambda x: x.optimal_rows / rows, ".0%"),
    )
    return Table(columns, summaries, key="oracles")


def _worst(costs: dict[str, Floats], optimum: Floats, proved: Masks) -> list[int]:
    """The rows with the largest gap of any oracle, the largest first."""
    import numpy as np

    gap = np.where(proved, np.max([cost - optimum for cost in costs.values()], axis=0), 0.0)
    ranked = np.argsort(-gap, kind="stable")[:_SHOWN]
    return [int(i) for i in ranked if gap[i] > _EQUAL * max(1.0, abs(optimum[i]))]


def _row_columns(named: bool, oracles: Sequence[str]) -> tuple[Column, ...]:
    return (
        Column("row", "row", "d"),
        *([Column("id", "id")] if named else []),
        Column("optimum", "optimum", ".6g"),
        *(Column(name, lambda row, name=name: row["costs"][name], ".6g") for name in oracles),  # type: ignore[misc]
    )
