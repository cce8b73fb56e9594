"""Is the spec what its author meant? The costs of single labels, the cases that hold, coverage on the author's rows.

These are the answers that a user can judge; everything else in a validation tests this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.showing import counted, with_unit
from udcp_dsl.validation.verdicts import CONSISTENT, DRIFT, ON_YOUR_ROWS

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.validation.verdicts import Stage, Verdict

_NAMED = 3  # labels shown at each end


def answers(loss: Loss, stages: Sequence[Stage]) -> tuple[tuple[str, str], ...]:
    """Questions about the spec, each with its answer."""
    return tuple(_answers(loss, {stage.name: stage.verdicts for stage in stages}))


def _answers(loss: Loss, verdicts: dict[str, tuple[Verdict, ...]]) -> Iterator[tuple[str, str]]:
    costs = loss.example.batch(np.eye(loss.K, dtype=bool))
    order = np.argsort(costs, kind="stable")

    def shown(places: Sequence[int]) -> str:
        return ", ".join(f"{loss.labels[y]} {costs[y]:.4g}" for y in places)

    few = min(_NAMED, loss.K // 2)
    ends = loss.example.batch(np.array([[False] * loss.K, [True] * loss.K]))
    unit = "" if loss.unit is None else f" (in {loss.unit})"
    if few:
        yield f"cheapest single labels{unit}", shown(order[:few].tolist())
        yield f"most expensive single labels{unit}", shown(np.argsort(-costs, kind="stable")[:few].tolist())
    yield "the empty set, and all labels", f"{ends[0]:.4g}, {with_unit(f'{ends[1]:.4g}', loss.unit)}"
    if loss.free_labels:
        yield "labels that cost nothing", f"{counted(len(loss.free_labels), 'label')}: give them a small cost"
    cases = [v for v in verdicts.get("cases", ()) if v.claim != CONSISTENT]
    if cases:
        failed = [verdict.claim for verdict in cases if verdict.holds is False]
        which = f"; these fail: {'; '.join(failed)}" if failed else ""
        yield "your cases", f"{len(cases) - len(failed)} of {len(cases)} hold{which}"
    else:
        yield "your cases", "none: write what you expect into NAME.cases beside the spec"
    for verdict in verdicts.get("cases", ()):
        if verdict.claim == CONSISTENT and verdict.counter_example is not None:
            yield "contradictions", verdict.counter_example.text
    own = [v for v in verdicts["coverage"] if ON_YOUR_ROWS in v.claim]
    if not own:
        yield "coverage on your rows", "not tested: give --probs and --truth"
        return
    failed = [v.claim.partition(" ")[0] for v in own if v.holds is False]
    tested = [v.claim.partition(" ")[0] for v in own if v.holds]
    parts = [f"wrong for {', '.join(failed)}"] if failed else []
    parts += [f"as guaranteed for {', '.join(tested)}"] if tested else []
    yield "coverage on your rows", "; ".join(parts) or "not tested: these oracles solve each row separately"
    drift = [v for v in verdicts["coverage"] if v.claim == DRIFT]
    if drift and drift[0].holds is not None:
        yield "drift along your file", "none found" if drift[0].holds else "found: later rows differ from earlier ones"
