"""All rows: what each oracle's sets cost and cover, by quarter of difficulty, and what the last edit has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from udcp_dsl.measure.comparison import CostCurve
from udcp_dsl.report.look import styles
from udcp_dsl.studio.fitting import Fitted
from udcp_dsl.studio.instances import Instances

_CHANGED = 40  # changed rows that are listed
_ENOUGH = 8  # fewest rows of a class for which a coverage is shown


def overall_data(
    fitted: Mapping[str, Fitted],
    curves: Mapping[str, CostCurve],
    instances: Instances,
    missing: Mapping[str, str],
    before: Fitted | None,
    main: str,
) -> dict[str, Any]:
    """The results of all oracles; `missing` says why an oracle has no sets: it does not apply, or it was stopped."""
    looks = styles(fitted)
    target = float(1 - next(iter(fitted.values())).predictor.alphas[0])
    along = {name: curves.get(name, CostCurve()) for name in fitted}
    return {
        "about": instances.about,
        "calibration": len(instances.calibration),
        "rows": len(instances.shown),
        "places": list(instances.places),
        "target": target,
        "missing": dict(missing),
        "repair": next((one.predictor.fitted.about_p for one in fitted.values()), ""),
        "main": main,
        "oracles": [
            {
                "oracle": name,
                "colour": looks[name].colour.variable,
                "mark": looks[name].path,
                "coverage": one.evaluation.coverage,
                "interval": list(one.evaluation.interval),
                "cost": one.evaluation.mean_cost,
                "size": one.evaluation.mean_size,
                "empty": one.evaluation.empty,
                "certified": one.evaluation.certified,
                "worth": one.worth,
                "lambda": one.predictor.oracle.options.get("lam"),
                "quarters": [
                    {
                        "name": s.name,
                        "n": s.n,
                        "coverage": s.coverage,
                        "interval": list(s.interval),
                        "cost": s.mean_cost,
                    }
                    for s in one.evaluation.by_difficulty
                ],
                "least": _least_covered(one),
                "matched": _matched(along[name], target),
                # What the main oracle saves, compared with this one.
                "saved": _saving(along[main], along[name], target) if main in along and main != name else None,
                "curve": [[x.alpha, x.coverage, x.cost, x.worth] for x in along[name].points],
                "warnings": list(one.warnings),
            }
            for name, one in fitted.items()
        ],
        "change": None if before is None or main not in fitted else change(before, fitted[main], instances),
    }


def _matched(curve: CostCurve, coverage: float) -> list[float] | None:
    """Mean cost at this coverage, and its interval."""
    found = curve.at(coverage)
    return None if found is None else [found.mean, *found.interval]


def _saving(one: CostCurve, other: CostCurve, coverage: float) -> list[float] | None:
    """The share of the other's cost that this oracle saves at the same coverage, on the same rows, and its interval."""
    ours, theirs = one.at(coverage), other.at(coverage)
    found = None if ours is None or theirs is None else ours.saving(theirs)
    return None if found is None else list(found)


def _least_covered(one: Fitted) -> dict[str, Any] | None:
    """The class that is covered least, of those with enough rows to say so."""
    enough = [stratum for stratum in one.evaluation.by_class if stratum.n >= _ENOUGH]
    if not enough:
        return None
    worst = min(enough, key=lambda stratum: stratum.coverage)
    return {"name": worst.name, "n": worst.n, "coverage": worst.coverage}


def change(before: Fitted, after: Fitted, instances: Instances) -> dict[str, Any]:
    """The sets of one oracle on the same rows under two specs.

    Savings are measured by the new cost: what the old sets would cost now, less the cost of the new ones.
    """
    old, new = before.evaluation.sets.mask, after.evaluation.sets.mask
    changed = np.flatnonzero((old != new).any(axis=1))
    now = after.evaluation.sets.costs
    kept = after.loss.batch(old, inputs=instances.shown.inputs)
    order = changed[np.argsort(-np.abs(kept - now)[changed], kind="stable")]
    return {
        "oracle": after.predictor.oracle.name,
        "changed": len(changed),
        "rows": len(instances.shown),
        "saved": float((kept - now).mean()) + 0.0,
        "cost_before": before.evaluation.mean_cost,
        "cost_after": after.evaluation.mean_cost,
        "coverage_before": before.evaluation.coverage,
        "coverage_after": after.evaluation.coverage,
        "size_before": before.evaluation.mean_size,
        "size_after": after.evaluation.mean_size,
        "listed": [
            {
                "row": row,
                "truth": int(instances.shown.truth[row]),
                "entered": np.flatnonzero(new[row] & ~old[row]).tolist(),
                "left": np.flatnonzero(old[row] & ~new[row]).tolist(),
                "saved": float(kept[row] - now[row]) + 0.0,
            }
            for row in order[:_CHANGED].tolist()
        ],
    }
