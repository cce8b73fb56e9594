"""What a calibrated predictor holds, as data and as a table: thresholds, anchors, and how its lambda was tuned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from udcp_dsl.showing import Column, Table

if TYPE_CHECKING:
    from fractions import Fraction

    from udcp_dsl.predict.calibrate import Tuning
    from udcp_dsl.predict.predictor import SetPredictor
    from udcp_dsl.rows.rows import Rows
    from udcp_dsl.spec_warnings import SpecFinding

_SHOWN = 12


def cells(predictor: SetPredictor, alpha: Fraction) -> list[tuple[str | None, int, float]]:
    """The name, number of points and threshold of all rows, or of each group or class."""
    calibration = predictor.at(alpha).thresholds.calibration
    thresholds: Any = calibration.thresholds
    counts = [cell.n for cell in calibration.cells]
    if predictor.promise.is_marginal:
        return [(None, counts[0], thresholds)]
    if predictor.promise.by_class:
        return list(zip(predictor.loss.labels, counts, thresholds.tolist(), strict=True))
    return list(zip(thresholds, counts, thresholds.values(), strict=True))


def calibration_as_data(predictor: SetPredictor) -> dict[str, Any]:
    """The loss, the oracle, the thresholds and the tuning of a predictor, for `--json`."""
    from udcp_dsl.predict.calibrate import show_level

    tuning = predictor.tuning
    return {
        "loss": predictor.loss.name,
        "oracle": predictor.oracle.name,
        "options": predictor.oracle.options,
        "n": predictor.fitted.thresholds.calibration.n,
        "conditional": predictor.conditional,
        "thresholds": [
            {
                "alpha": show_level(alpha),
                "cells": [
                    {"name": name, "n": n, "threshold": tau if math.isfinite(tau) else str(tau)}
                    for name, n, tau in cells(predictor, alpha)
                ],
            }
            for alpha in predictor.alphas
        ],
        "limits": None
        if (multipliers := predictor.multipliers) is None
        else {show_level(alpha): found.effects.as_dict() for alpha, found in multipliers.items()},
        "worths": [_finite(predictor.worth(alpha)) for alpha in predictor.alphas],
        "tuning": None if tuning is None else {**tuning.as_dict(), "best": tuning.best, "excess": tuning.excess},
    }


def spec_findings(predictor: SetPredictor, rows: Rows | None) -> tuple[SpecFinding, ...]:
    """Findings W602 to W605 about the spec, for sets on rows like these and for the calibrated price."""
    from udcp_dsl.rows.columns import to_array
    from udcp_dsl.spec_warnings import some_rows, spec_warnings

    promise = predictor.promise
    priced = (
        predictor.oracle.name == "price"
        and promise.risk is None
        and not predictor.fitted.thresholds.calibration.weighted
    )
    taus = [tau for alpha in predictor.alphas for _, _, tau in cells(predictor, alpha)] if priced else []
    P = None if rows is None else to_array(predictor.repaired(rows.take(some_rows(len(rows))).P))
    return spec_warnings(predictor.loss, P, max(taus, default=None))


def _finite(worth: float | dict[str, float] | None) -> Any:
    """A worth for JSON, which has no infinity."""
    if isinstance(worth, dict):
        return {name: _finite(x) for name, x in worth.items()}
    return worth if worth is None or math.isfinite(worth) else str(worth)


def found_lines(predictor: SetPredictor) -> list[str]:
    """Lines on how alpha was found, how rows are decided on, and the worth of a miss, as far as they apply."""
    from udcp_dsl.showing import with_unit

    fitted, decision = predictor.fitted, predictor.decision
    worth = fitted.find("alpha")
    unit = with_unit("", predictor.loss.unit)
    lines = [] if worth is None else [worth.sentence(fitted.context)]
    lines += [] if decision is None else [f"decided {decision.sentence(unit)}"]
    return [*lines, *([line] if (line := worth_line(predictor)) else [])]


def worth_line(predictor: SetPredictor) -> str:
    """A sentence on the worth of a missed truth by the thresholds of an oracle with prices; empty for others."""
    from udcp_dsl.predict.calibrate import show_level
    from udcp_dsl.showing import with_unit

    unit = predictor.loss.unit

    def worth_text(worth: float) -> str:
        return with_unit(f"{worth:.4g}", unit) if math.isfinite(worth) else "more than any label costs"

    parts: list[str] = []
    for alpha in predictor.alphas:
        worth = predictor.worth(alpha)
        if worth is None:
            return ""
        named = {"": worth} if isinstance(worth, float) else dict(list(worth.items())[:_SHOWN])
        values = ", ".join(f"at {worth_text(x)}{f' in {name!r}' if name else ''}" for name, x in named.items())
        parts.append(f"at {'alpha ' if not parts else ''}{show_level(alpha)} {values}")
    first, *others = parts
    return "; ".join([first.replace(" at ", " a missed true label is valued at ", 1), *others])


def threshold_table(predictor: SetPredictor) -> Table:
    """The thresholds; only the first ones, if there are many groups or classes."""
    from udcp_dsl.predict.calibrate import show_level

    kind = predictor.conditional
    found = {show_level(alpha): cells(predictor, alpha) for alpha in predictor.alphas}
    rows = [(alpha, *cell) for alpha, of_alpha in found.items() for cell in of_alpha[:_SHOWN]]
    columns = (
        Column("alpha", 0, kind="number"),
        *([] if kind is None else [Column(kind, 1)]),
        Column("rows", 2, ",d"),
        Column("threshold", 3, ".10g"),
    )
    more = len(next(iter(found.values()))) - _SHOWN
    return Table(columns, rows, note=f"and {more} more, at each alpha" if more > 0 else "")


def limits_shown(predictor: SetPredictor) -> tuple[Table, tuple[str, ...]]:
    """The effect of the spec's limits, as a table and in lines."""
    from udcp_dsl.predict.calibrate import show_level
    from udcp_dsl.predict.stages.limits import effect_lines, effect_table

    stage, loss = predictor.multipliers, predictor.loss
    found = {} if stage is None else {show_level(alpha): x.effects for alpha, x in stage.items()}
    return effect_table(found, loss.limits), tuple(effect_lines(found, loss.unit))


def tuning_lines(tuning: Tuning) -> tuple[str, str]:
    """The chosen lambda, the grid with its mean costs, and how far the choice may be from the best."""
    grid = ", ".join(f"{lam:g}" for lam in tuning.grid)
    costs = ", ".join(f"{cost:.4g}" for cost in tuning.mean_costs)
    return (
        f"lambda {tuning.best:g} of {grid}, which cost {costs} on {tuning.n:,} other rows;",
        f"with probability at least {1 - tuning.delta:.0%}, at most {tuning.excess:.4g} above the best of these "
        f"(costs lie in [{tuning.lo:.6g}, {tuning.hi:.6g}])",
    )
