"""Compare the sets of oracles, row by row, with sets that are proved optimal.

In each row an oracle's set is the shortest prefix of its order that has mass 1 - alpha; the optimum is the cheapest of
all sets with that mass. The gap is the difference of their costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from udcp_dsl.diagnostics import InputError, OracleError, worded
from udcp_dsl.loss import Loss
from udcp_dsl.predict.calibrate import Level, exact_level, show_level
from udcp_dsl.predict.oracle import Floats, Indices, Masks, Oracle, SolvingOracle, make_oracle
from udcp_dsl.rows.rows import Rows, rows_of
from udcp_dsl.showing import Column, Description, Result, Styled, Table, in_unit, with_unit

USUAL = ("greedy", "price")
_SHOWN = 5
# Costs this close, relative to their size, are one cost that was added up in another order.
_EQUAL = 1e-9


@dataclass(frozen=True)
class GapSummary:
    """One oracle over the rows whose optimum is proved."""

    oracle: str
    mean_cost: float
    mean_size: float
    mean_gap: float
    relative_gap: float | None  # relative to the mean optimum; None unless that is above 0
    largest_gap: float
    optimal_rows: int


@dataclass(frozen=True, eq=False)
class Gap(Result):
    """The costs of oracles' sets and of the cheapest sets of the same mass; `gap` measures it.

    Attributes
    ----------
    loss : Loss
        The loss.
    alpha : Fraction
        Sets have at least the mass 1 - alpha.
    n : int
        The number of rows from which the sample was drawn.
    rows : array of int
        The positions of the rows in the sample.
    ids : array or None
        Their ids.
    optimum : array of float
        The cost of the cheapest set of each row.
    sizes : array of int
        The number of its labels.
    proved : array of bool
        Whether the set is proved to be the cheapest.
    costs : mapping of str to array of float
        The costs of each oracle's sets.
    oracle_sizes : mapping of str to array of int
        The number of labels in them.
    left_out : mapping of str to str
        The usual oracles that do not apply, and why.
    """

    loss: Loss
    alpha: Fraction
    n: int
    rows: Indices
    ids: Any
    optimum: Floats
    sizes: Indices
    proved: Masks
    costs: Mapping[str, Floats]
    oracle_sizes: Mapping[str, Indices]
    left_out: Mapping[str, str]

    def summaries(self) -> list[GapSummary]:
        """Means over the rows whose optimum is proved, one entry per oracle; empty if there are no such rows."""
        if not self.proved.any():
            return []
        best = self.optimum[self.proved]
        mean, found = float(best.mean()), []
        for name, costs in self.costs.items():
            cost = costs[self.proved]
            gaps = cost - best
            found.append(
                GapSummary(
                    oracle=name,
                    mean_cost=float(cost.mean()),
                    mean_size=float(self.oracle_sizes[name][self.proved].mean()),
                    mean_gap=float(gaps.mean()),
                    relative_gap=float(gaps.mean()) / mean if mean > 0 else None,
                    largest_gap=float(gaps.max()),
                    optimal_rows=int((gaps <= _EQUAL * np.maximum(1.0, np.abs(best))).sum()),
                )
            )
        return found

    def table(self) -> Mapping[str, Sequence[Any]]:
        """The columns by name: row, id (if there are ids), optimum, proved, size, and the cost by each oracle."""
        ids = {} if self.ids is None else {"id": list(map(str, self.ids))}
        named = {"optimum": self.optimum, "proved": self.proved, "size": self.sizes, **self.costs}
        return {"row": self.rows.tolist(), **ids, **{name: column.tolist() for name, column in named.items()}}

    def describe(self) -> Description:
        """The mean cost of each oracle beside the optimum, and the rows with the largest gaps."""
        loss, unproved = self.loss, int((~self.proved).sum())
        mean = float(self.optimum[self.proved].mean()) if self.proved.any() else None
        least = "" if mean is None else with_unit(f"{mean:.6g}", loss.unit)
        average = f"the optimum costs {least} on average" if least else "no optimum is proved"
        chosen = len(self.rows)
        many = f"{chosen:,} of {self.n:,} rows" if chosen < self.n else f"{chosen:,} rows"
        return Description(
            title=(Styled(loss.name, "bold"), f" over {many}, sets of mass {float(1 - self.alpha):g}: {average}"),
            lines=(f"{unproved:,} rows are left out: their optimum is not proved",) if unproved else (),
            tables=(self._summary_table(), self._row_table()),
            notes=tuple(f"{name} does not apply: {why}" for name, why in self.left_out.items()),
            data={
                "loss": loss.name,
                "alpha": show_level(self.alpha),
                "n": chosen,
                "unproved": unproved,
                "mean_optimum": mean,
                "left_out": self.left_out,
            },
        )

    def _summary_table(self) -> Table:
        proved = int(self.proved.sum())
        columns = (
            Column("oracle", "oracle"),
            Column(in_unit("mean cost", self.loss.unit), "mean_cost", ".6g"),
            Column("mean size", "mean_size", ".4g"),
            Column("gap", "mean_gap", ".4g"),
            Column("of optimum", "relative_gap", ".1%"),
            Column("largest", "largest_gap", ".4g"),
            Column("optimal", lambda x: x.optimal_rows / proved, ".0%"),
        )
        return Table(columns, self.summaries(), key="oracles")

    def _row_table(self) -> Table:
        """All rows; shown are those with the largest gap of any oracle, the largest first."""
        records = [
            {
                "row": int(row),
                "id": None if self.ids is None else str(self.ids[i]),
                "optimum": float(self.optimum[i]),
                "proved": bool(self.proved[i]),
                "size": int(self.sizes[i]),
                "costs": {name: float(cost[i]) for name, cost in self.costs.items()},
            }
            for i, row in enumerate(self.rows)
        ]
        gaps = np.where(self.proved, np.max([cost - self.optimum for cost in self.costs.values()], axis=0), 0.0)
        ranked = np.argsort(-gaps, kind="stable")[:_SHOWN]
        worst = [records[i] for i in ranked if gaps[i] > _EQUAL * max(1.0, abs(self.optimum[i]))]
        columns = (
            Column("row", "row", "d"),
            *([Column("id", "id")] if self.ids is not None else []),
            Column("optimum", "optimum", ".6g"),
            *(Column(name, lambda row, name=name: row["costs"][name], ".6g") for name in self.costs),  # type: ignore[misc]
        )
        title = f"{in_unit('rows with the largest gaps, cost', self.loss.unit)}:"
        return Table(columns if worst else (), records, title, "", "rows", worst)


def gap(
    loss: Loss,
    probs: Any,
    *,
    oracles: Sequence[str] | None = None,
    alpha: Level = 0.1,
    sample: int = 200,
    seed: int = 0,
    ids: Any = None,
    class_names: Sequence[object] | None = None,
    inputs: Any = None,
    options: Mapping[str, object] | None = None,
    running: Callable[[SolvingOracle, int], AbstractContextManager[Any]] = lambda exact, rows: nullcontext(),
) -> Gap:
    """Compare the sets of oracles with the cheapest sets of the same mass, row by row: is `ilp` worth its time?

    An oracle such as `price`, which covers more where that is cheap, may cost more in one row and less overall.

    Parameters
    ----------
    loss : Loss
        The loss.
    probs : array, shape (n, K), or Rows
        Probabilities; true labels are not needed.
    oracles : sequence of str, optional
        The oracles to examine; `greedy` and `price` by default, as far as they apply.
    alpha : float, str or Fraction
        Sets have a mass of at least 1 - alpha.
    sample : int
        The number of rows to examine, drawn at random if there are more.
    seed : int
        Random seed for the sample.
    ids : array, optional
        The ids of the rows.
    class_names : sequence, optional
        The names of the columns, if they are not in the order of the spec.
    inputs : mapping or frame, optional
        Numbers that the loss reads for each row, by name.
    options : mapping, optional
        Options of the oracle `ilp`: `time_limit` in seconds per row, `solver` by its name in PuLP.
    running : callable, optional
        Called with the exact oracle and the number of rows; the context that it returns is entered while they are
        solved, for progress or worker processes.

    Returns
    -------
    Gap
        The costs by row, and their means by oracle.

    Raises
    ------
    InputError
        The rows are invalid, or an oracle has no order before it is calibrated.
    OracleError
        An oracle that was named does not apply to the loss.

    Examples
    --------
    >>> import udcp_dsl as udcp
    >>> loss = udcp.loads("labels {a, b, c}  loss l = size")
    >>> probs = [[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]]
    >>> found = udcp.gap(loss, probs, oracles=["lac"], alpha=0.2)
    >>> found.optimum.tolist(), found.costs["lac"].tolist()
    ([2.0, 1.0], [2.0, 1.0])
    """
    level = exact_level(alpha)
    # A float, as the exact oracle reads its levels: by the decimal as which it is printed.
    mass = float(1 - level)
    made, left_out = _made(loss, oracles)
    exact = solving_oracle(loss, levels=[mass], **(options or {}))
    rows = rows_of(probs, loss.labels, ids=ids, class_names=class_names, inputs=inputs, loss=loss)
    n, rng = len(rows), np.random.default_rng(seed)
    chosen = np.arange(n) if n <= sample else np.sort(rng.choice(n, sample, replace=False))
    some = rows.take(chosen)
    with running(exact, len(some)):
        optimal, proved = exact.optimal(some)
    masks = {oracle.name: prefixes(oracle, some, Fraction(repr(mass))) for oracle in made}
    return Gap(
        loss,
        level,
        n,
        chosen,
        some.ids,
        loss.batch(optimal, inputs=some.inputs),
        optimal.sum(axis=1),
        proved,
        {name: loss.batch(mask, inputs=some.inputs) for name, mask in masks.items()},
        {name: mask.sum(axis=1) for name, mask in masks.items()},
        left_out,
    )


def solving_oracle(loss: Loss, **options: object) -> SolvingOracle:
    """The oracle `ilp`, which reports whether the cost of a set is proved optimal."""
    exact = make_oracle("ilp", loss, **options)
    if not isinstance(exact, SolvingOracle):
        raise OracleError("oracle 'ilp' comes from another package and reports no proved costs: uninstall that package")
    return exact


def _made(loss: Loss, names: Sequence[str] | None) -> tuple[list[Oracle], dict[str, str]]:
    """The named oracles, or those of the usual ones that apply; and why the others do not."""
    made, left_out = list[Oracle](), dict[str, str]()
    for name in dict.fromkeys(names or USUAL):
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
        way_out = worded('oracles=["base"]', "--oracle base")
        raise InputError(f"none of the usual oracles applies to this loss: name one, {way_out}")
    return made, left_out


def prefixes(oracle: Oracle, rows: Rows, level: Fraction) -> Masks:
    """The shortest prefix of each row's order with the share `level` of the row's mass, in exact arithmetic."""
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
