"""What does the user gain? The mean cost of each oracle's sets, on the same rows of generated classifiers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from udcp_dsl.prediction.calibrate import points_needed, show_level
from udcp_dsl.prediction.stages.multipliers import LimitError
from udcp_dsl.testing.coverage import Problem, drawn_rows
from udcp_dsl.validation.coverage_trials import predictor_of
from udcp_dsl.validation.verdicts import MeanCost, Verdict

if TYPE_CHECKING:
    from udcp_dsl.loss import Loss
    from udcp_dsl.testing.coverage import Source
    from udcp_dsl.validation.oracles import Chosen
    from udcp_dsl.validation.own_rows import OwnRows
    from udcp_dsl.validation.plan import Plan

QUESTION = "what does each oracle's set cost?"
KINDS = ("calibrated", "overconfident", "long-tailed")
_ROWS = 200
_OWN = "yours"


def cost(
    loss: Loss, chosen: Sequence[Chosen], alphas: Sequence[Fraction], plan: Plan, own: OwnRows | None = None
) -> tuple[list[Verdict], list[MeanCost]]:
    """Mean costs over all rounds; in each round all oracles see the same rows. Slow oracles are left out.

    If time is short, as judged by the first few rows, there are fewer rows, and none for some classifiers.
    """
    quick = [item for item in chosen if not item.slow]
    least = max(3 * points_needed(alpha) for alpha in alphas)
    most = max(_ROWS, least)
    seen: dict[tuple[str, str, str], list[tuple[float, int, bool]]] = defaultdict(list)
    each = 0.0  # seconds per row, over all oracles and levels
    unseen = dict.fromkeys(KINDS if own is None else (*KINDS, _OWN))
    for number, rng in enumerate(plan.rounds_of("cost")):
        sources: dict[str, Source] = {kind: Problem.generated(loss.K, rng, kind=kind) for kind in KINDS}
        tasks = [(kind, source, most) for kind, source in sources.items()]
        if own is not None and number == 0:
            tasks.append((_OWN, own, own.half))
        if plan.rounds is None and number == 0:
            tasks.insert(0, (KINDS[0], sources[KINDS[0]], least))
        for place, (kind, source, wanted) in enumerate(tasks):
            share = max(0.0, plan.left("cost")) / (len(tasks) - place)
            rows = int(min(wanted, share / each)) if each else wanted
            if rows < min(least, wanted):
                continue
            unseen.pop(kind, None)
            began = plan.now()
            P, y, inputs = drawn_rows(source, loss.inputs, 2 * rows, rng)
            before, after = (None if inputs is None else inputs[part] for part in (slice(rows), slice(rows, None)))
            names = np.array(loss.labels)[y]
            for alpha in alphas:
                for item in quick:
                    try:
                        predictor = predictor_of(loss, item, alpha).calibrate(P[:rows], names[:rows], inputs=before)
                    except LimitError:  # a limit that cannot be reached with these probabilities
                        continue
                    sets = predictor.predict_set(P[rows:], inputs=after)
                    inside = sets.mask[np.arange(len(sets)), y[rows:]]
                    found = zip(sets.costs.tolist(), sets.sizes.tolist(), inside.tolist(), strict=True)
                    seen[item.name, show_level(alpha), kind].extend(found)
            each = (plan.now() - began) / rows
    means = [_mean(*key, rows) for key, rows in seen.items()]
    slow = ", ".join(item.name for item in chosen if item.slow)
    notes = [f"left out, because they solve each row separately: {slow}"] if slow else []
    measured = Verdict("mean costs were measured", bool(means) or None, sum(x.sets for x in means), "; ".join(notes))
    no_time = "there was no time: give a larger budget"
    missing = [Verdict(f"costs were measured, classifier {kind}", None, 0, no_time) for kind in unseen]
    return [measured, *missing], means


def _mean(oracle: str, alpha: str, kind: str, rows: Sequence[tuple[float, int, bool]]) -> MeanCost:
    costs, sizes, inside = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    error = float(costs.std(ddof=1) / np.sqrt(len(costs)))
    return MeanCost(
        oracle, alpha, kind, float(costs.mean()), error, float(sizes.mean()), float(inside.mean()), len(costs)
    )
