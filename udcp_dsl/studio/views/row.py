"""One row: its probabilities, the sets of the oracles side by side, the hull of `price`, and why a label is in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from udcp_dsl.loss import Loss
from udcp_dsl.predict.oracle import make_oracle
from udcp_dsl.predict.order import vertex_as_dict
from udcp_dsl.studio.fitting import Fitted, sets_of
from udcp_dsl.studio.instances import Instances

_LIKELIEST, _MOST = 10, 60  # labels of a row that are shown: the likeliest, and those in some set
_VERTICES = 60  # of the hull


def row_data(
    fitted: Mapping[str, Fitted], instances: Instances, row: int, now: Any, why: str | None, dragged: bool
) -> dict[str, Any]:
    """The row at place `row` of the shown ones, with `now` as its probabilities."""
    whole, inputs = next(iter(fitted.values())).loss, instances.shown.inputs
    own = None if inputs is None or not whole.inputs else inputs[[row, row]]
    loss = whole if own is None else whole.at(own.row(0))
    truth = int(instances.shown.truth[row])
    found = {name: sets_of(one, now, own) for name, one in fitted.items()}
    asked = loss.labels.index(why) if why in loss.labels else truth
    order = np.lexsort((np.arange(loss.K), -now)).tolist()
    held = np.any([mask for mask, _ in found.values()], axis=0)
    kept = [y for rank, y in enumerate(order) if rank < _LIKELIEST or held[y] or y in (truth, asked)][:_MOST]
    kept += [y for y in dict.fromkeys((truth, asked)) if y not in kept]
    ids = instances.shown.ids
    return {
        "row": row,
        "rows": len(instances.shown),
        "place": instances.places[row],
        "id": None if ids is None else str(ids[row]),
        "dragged": dragged,
        "truth": truth,
        "p": [[y, float(now[y])] for y in kept],
        "folded": loss.K - len(kept),
        "sets": [
            {
                "oracle": name,
                "members": np.flatnonzero(mask).tolist(),
                "mass": math.fsum(now[mask].tolist()),
                "cost": loss(mask) + 0.0,
                "terms": [cost + 0.0 for cost in loss.terms(mask).values()],
                "holds": bool(mask[truth]),
                "tau": _finite(fitted[name].tau),
                "options": {key: value for key, value in fitted[name].options.items() if value is not None},
            }
            for name, (mask, _) in found.items()
        ],
        "inputs": {} if own is None else {n: np.asarray(own[n][0]).tolist() for n in whole.inputs},
        "hull": _hull(fitted.get("price"), now, loss),
        "why": _why(loss, asked, now, fitted, found),
    }


def _hull(price: Fitted | None, p: Any, loss: Loss) -> dict[str, Any] | None:
    """The sets of the row by increasing price of probability; `at` is the place of the set at the threshold."""
    if price is None:
        return None
    scorer = make_oracle("price", loss, **price.options) if price.loss.inputs else price.scorer
    explain = getattr(scorer, "explain", None)
    if explain is None:
        return None
    seen = price.predictor.repaired(np.repeat(p[None, :], 2, axis=0))
    vertices = explain(seen[0], scorer.scores(seen)[0])
    at = sum(vertex.price <= price.tau for vertex in vertices) - 1
    return {
        "threshold": _finite(price.tau),
        "at": at,
        "vertices": [vertex_as_dict(vertex) for vertex in vertices[: max(_VERTICES, at + 2)]],
    }


def _why(
    loss: Loss, y: int, p: Any, fitted: Mapping[str, Fitted], found: Mapping[str, tuple[Any, Any]]
) -> dict[str, Any]:
    """For one label: its score and rank by each oracle, the threshold, and what it adds to the cost of the set."""
    answers = []
    for name, (mask, scores) in found.items():
        with_y, without = mask.copy(), mask.copy()
        with_y[y], without[y] = True, False
        more, less = loss.terms(with_y), loss.terms(without)
        ahead = np.lexsort((np.arange(loss.K), -p, scores)).tolist().index(y)
        paid = [[term, cost - less[term]] for term, cost in more.items() if cost != less[term]]
        answers.append(
            {
                "oracle": name,
                "in": bool(mask[y]),
                "score": _finite(float(scores[y])),
                "tau": _finite(fitted[name].tau),
                "rank": ahead + 1,
                "adds": loss(with_y) - loss(without) + 0.0,
                "terms": paid,
            }
        )
    return {"label": y, "p": float(p[y]), "answers": answers}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
