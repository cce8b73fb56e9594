"""What a predictor says of itself: its loss, oracle, guarantee, rows and thresholds, as tables, lines and data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from udcp_dsl.expression.explain import facts_as_dict, summary
from udcp_dsl.predict.calibrate import Tuning, show_level
from udcp_dsl.predict.promise import OPTIONS
from udcp_dsl.showing import Column, Description, Shown, Styled, Table, listed, with_unit

if TYPE_CHECKING:
    from udcp_dsl.predict.applicability import Applicability
    from udcp_dsl.predict.predictor import SetPredictor

_STATES = ("proved", "refuted", "unknown")
_LISTED = 8
_SHOWN = 12  # groups or classes
_SHOWN_AS_FOUND = ("alpha", "repair", "temperature")  # options of a promise that are shown as found, not as requested


class DescribedPredictor(Shown):
    """Base of `SetPredictor` that shows it: for `rich.print`, notebooks and `udcp show`."""

    def describe(self: SetPredictor) -> Description:  # type: ignore[misc]  # of its only subclass
        """The loss, the oracle, the guarantee, the thresholds, and the rows that are covered least."""
        from udcp_dsl.predict.applicability import applicability
        from udcp_dsl.predict.row_warnings import limits_not_enforced

        title = (Styled(self.loss.name, "bold"), f" by {self.oracle.name}, alpha {self.promise.shown_alphas}")
        if not self.fits:
            return Description(title, verdict=(Styled("not calibrated: call calibrate(probs, y)", "open"),))
        way = applicability(self.oracle.name, self.loss)
        columns = (Column("", 0, kind="word", style="dim"), Column("", 1))
        limits, limit_lines = limits_shown(self)
        unenforced = limits_not_enforced(self.oracle)
        return Description(
            title,
            lines=tuple(line for fitted in self.fits.values() if fitted.in_sample for line in fitted.in_sample.lines),
            tables=(Table(columns, list(_lines(self, way))), threshold_table(self), limits),
            notes=(*limit_lines, *([unenforced] if unenforced else []), *tuning_lines(self.tuning)),
            data=_as_data(self, way),
        )


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


def _finite(worth: float | dict[str, float] | None) -> Any:
    """A worth for JSON, which has no infinity."""
    if isinstance(worth, dict):
        return {name: _finite(x) for name, x in worth.items()}
    return worth if worth is None or math.isfinite(worth) else str(worth)


def found_lines(predictor: SetPredictor) -> list[str]:
    """Lines on how alpha was found, how rows are decided on, and the worth of a miss, as far as they apply."""

    fitted, decision = predictor.fitted, predictor.decision
    worth = fitted.find("alpha")
    unit = with_unit("", predictor.loss.unit)
    lines = [] if worth is None else [worth.sentence(fitted.context)]
    lines += [] if decision is None else [f"decided {decision.sentence(unit)}"]
    return [*lines, *([line] if (line := worth_line(predictor)) else [])]


def worth_line(predictor: SetPredictor) -> str:
    """A sentence on the worth of a missed truth by the thresholds of an oracle with prices; empty for others."""

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
    kind = predictor.conditional
    found = {show_level(alpha): cells(predictor, alpha) for alpha in predictor.alphas}
    rows = [(alpha, *cell) for alpha, of_alpha in found.items() for cell in of_alpha[:_SHOWN]]
    columns = (
        Column("alpha", 0, kind="number"),
        *([] if kind is None else [Column(kind, 1)]),
        Column("rows", 2, ",d"),
        Column("threshold", lambda row: "none: all labels" if row[3] == math.inf else row[3], ".10g"),
    )
    more = len(next(iter(found.values()))) - _SHOWN
    return Table(columns, rows, note=f"and {more} more, at each alpha" if more > 0 else "")


def limits_shown(predictor: SetPredictor) -> tuple[Table, tuple[str, ...]]:
    """The effect of the spec's limits, as a table and in lines."""

    from udcp_dsl.predict.stages.limits import effect_lines, effect_table

    stage, loss = predictor.multipliers, predictor.loss
    found = {} if stage is None else {show_level(alpha): x.effects for alpha, x in stage.items()}
    return effect_table(found, loss.limits), tuple(effect_lines(found, loss.unit))


def tuning_lines(tuning: Tuning | None) -> tuple[str, ...]:
    """The chosen lambda, the grid with its mean costs, and how far the choice may be from the best."""
    if tuning is None:
        return ()
    grid = ", ".join(f"{lam:g}" for lam in tuning.grid)
    costs = ", ".join(f"{cost:.4g}" for cost in tuning.mean_costs)
    return (
        f"lambda {tuning.best:g} of {grid}, which cost {costs} on {tuning.n:,} other rows;",
        f"with probability at least {1 - tuning.delta:.0%}, at most {tuning.excess:.4g} above the best of these "
        f"(costs lie in [{tuning.lo:.6g}, {tuning.hi:.6g}])",
    )


def _as_data(predictor: SetPredictor, way: Applicability) -> dict[str, Any]:
    loss, anchors, promise = predictor.loss, predictor.anchors, predictor.promise
    asked = {name: getattr(promise, name) for name in OPTIONS if name not in _SHOWN_AS_FOUND}
    return {
        **calibration_as_data(predictor),
        "labels": list(loss.labels),
        "params": dict(loss.params),
        "expression": loss.expression.root.span.line,
        "spec": {"name": loss.source.name, "text": loss.source.text, "files": list(loss.files)},
        **facts_as_dict(loss),
        "way": {"algorithm": way.why, "exact": way.exact, "time": way.time},
        "promise": {
            "alphas": [str(alpha) for alpha in predictor.alphas],
            "coverage": [float(1 - alpha) for alpha in predictor.alphas] if promise.risk is None else None,
            "told": [fitted.guarantee for fitted in predictor.fits.values()],
            **asked,
            "bins": promise.bin_count if promise.by_difficulty else None,
            "confidence": None if promise.confidence is None else float(promise.confidence),
            "weighted": predictor.fitted.thresholds.calibration.weighted,
        },
        "input": {
            "class_names": None if predictor.class_names is None else list(predictor.class_names),
            "columns": None if predictor.columns is None else list(predictor.columns),
            "logits": predictor.logits,
            "normalize": predictor.normalize,
            "inputs": [
                {"name": x.name, "range": [x.low, x.high], "entries": None if x.entries is None else list(x.entries)}
                for x in predictor.inputs.values()
            ],
        },
        "groups": list(predictor.fitted.context.strata.names) if predictor.promise.by_name else [],
        "decision": None if predictor.decision is None else predictor.decision.as_dict(),
        "anchors": None if anchors is None else {str(alpha): anchor.as_dict() for alpha, anchor in anchors.items()},
        "repair": None if predictor.repair is None else {**predictor.repair.as_dict(), "about": str(predictor.repair)},
        "temperature": predictor.temperature,
    }


def _lines(predictor: SetPredictor, way: Applicability) -> Iterator[tuple[str, str]]:
    loss = predictor.loss
    yield "loss", f"{loss.name} = {loss.expression.root.span.line}"
    yield "", f"{summary(loss)}, from {loss.source.name}"
    if loss.params:
        yield "with", _settings(loss.params)
    for state in _STATES:
        names = [name.replace("_", " ") for name, fact in loss.facts if fact.state == state]
        if names:
            yield state, ", ".join(names)
    yield "labels", listed(loss.labels, _LISTED)
    exact = "" if way.exact is None else ", exact" if way.exact else ", a heuristic"
    time = "" if way.time is None else f"; {way.time.per_row}"
    yield "oracle", f"{predictor.oracle.name}, by {way.why}{exact}{time}"
    settings = {name: x for name, x in predictor.oracle.options.items() if x is not None and x is not False}
    if settings:
        yield "options", _settings(settings)
    yield "guarantee", _promise(predictor)
    yield from (("", line) for line in found_lines(predictor))
    yield "rows", predictor.fitted.rows_used
    takes = "logits" if predictor.logits else "numbers to be normalised" if predictor.normalize else "probabilities"
    order = "" if predictor.class_names is None else f"; columns of arrays: {listed(predictor.class_names, _LISTED)}"
    if predictor.columns is not None:
        order = f"; columns by name (in calibration: {listed(predictor.columns, _LISTED)})"
    yield "input", takes + order
    yield from (("" if i else "inputs", str(x)) for i, x in enumerate(predictor.inputs.values()))
    yield "repair", predictor.fitted.about_p
    yield from _anchors(predictor)


def _promise(predictor: SetPredictor) -> str:
    text = "; ".join(fitted.guarantee for fitted in predictor.fits.values())
    if predictor.fitted.thresholds.calibration.weighted:
        text += "; for new rows whose shift the weights describe"
    if predictor.pool:
        text += "; those with too few rows share a threshold, without a guarantee"
    if predictor.nonempty:
        text += "; no set is empty"
    if predictor.randomize:
        text += f"; randomised, seed {predictor.seed}"
    return text


def _anchors(predictor: SetPredictor) -> Iterator[tuple[str, str]]:
    if predictor.anchors is None:
        return
    every = predictor.anchors
    found = [f"{show_level(alpha)}: {_anchor(anchor.overall)}" for alpha, anchor in every.items()]
    yield "anchor", "at alpha " + ", ".join(found)
    for name in list(next(iter(every.values())).by_stratum)[:_LISTED]:
        found = [f"{show_level(alpha)}: {_anchor(anchor.by_stratum[name])}" for alpha, anchor in every.items()]
        yield "", f"of {name}, at alpha " + ", ".join(found)


def _anchor(price: float | None) -> str:
    return "none" if price is None else f"{price:.6g}"


def _settings(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {f'{x:.10g}' if isinstance(x, float) else x}" for name, x in values.items())
