"""All rows: what each oracle's sets cost and cover, by quarter of difficulty, and what the last edit has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from udcp_dsl.report.palette import styles
from udcp_dsl.studio.fitting import Fitted
from udcp_dsl.studio.instances import Instances

_CHANGED = 40  # rows that are listed


def overall_data(
    fitted: Mapping[str, Fitted],
    curves: Mapping[str, Sequence[tuple[float, float, float]]],
    instances: Instances,
    missing: Mapping[str, str],
    before: Fitted | None,
    main: str,
) -> dict[str, Any]:
    """`missing` says of an oracle why it has no sets here: it does not apply, it was stopped."""
    looks = styles(fitted)
    return {
        "about": instances.about,
        "calibration": len(instances.calibration),
        "rows": len(instances.shown),
        "missing": dict(missing),
        "repair": next((one.predictor.fitted.about_p for one in fitted.values()), ""),
        "main": main,
        "oracles": [
            {
                "oracle": name,
                "colour": looks[name].colour.variable,
                "coverage": one.evaluation.coverage,
                "interval": list(one.evaluation.interval),
                "cost": one.evaluation.mean_cost,
                "size": one.evaluation.mean_size,
                "empty": one.evaluation.empty,
                "certified": one.evaluation.certified,
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
                "curve": [list(point) for point in curves.get(name, ())],
                "warnings": list(one.warnings),
            }
            for name, one in fitted.items()
        ],
        "change": None if before is None or main not in fitted else change(before, fitted[main], instances),
    }


def change(before: Fitted, after: Fitted, instances: Instances) -> dict[str, Any]:
    """The sets of one oracle on the same rows under two specs. What it saved is counted by the new cost: what the old
    sets would cost now, less what the new ones do."""
    old, new = before.evaluation.sets.mask, after.evaluation.sets.mask
    changed = np.flatnonzero((old != new).any(axis=1))
    now = after.evaluation.sets.costs
    kept = after.loss.batch(old)
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
