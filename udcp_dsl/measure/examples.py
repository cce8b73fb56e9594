"""Example rows: first two instructive ones, then those whose sets differ most in cost, then some of the rest.

In each row, one oracle (`price` if it is compared, otherwise the cheapest overall) is compared with a rival: the
cheapest other oracle whose set differs. In the first of the two instructive rows, the oracle is cheaper and right. In
the second, it misses a truth that is in the rival's set, and the row shows what including the truth would have cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from udcp_dsl.expression.decisions import best_actions
from udcp_dsl.loss import Loss
from udcp_dsl.measure.comparison import Example
from udcp_dsl.predict.oracle import Floats, Masks
from udcp_dsl.predict.sets import PredictionSets
from udcp_dsl.rows.rows import Rows

Places: TypeAlias = npt.NDArray[np.intp]  # positions of rows

_OURS = "price"
_EXAMPLES = 40
_COMPETING = 3
_TOP = 12  # likeliest labels of an example, kept whatever the sets
_READABLE = 9  # most labels of a set that is easy to read


def examples(
    loss: Loss,
    data: Rows,
    test: Places,
    masks: Mapping[str, Masks],
    called: Callable[[str], str] = str,
    p_values: Mapping[str, Callable[[Places], Floats]] | None = None,
    numbers: Places | None = None,
) -> tuple[Example, ...]:
    """Rows of the test fold with the set of each oracle, in the order above; `called` gives a label's name.

    `numbers` are the positions in the given rows, if `data` holds only some of them.

    Rows are ranked by the difference in cost among the three oracles that are cheapest overall, relative to the size of
    their sets: a very uncertain row has large, expensive sets under every oracle and shows little.
    """
    inputs = None if data.inputs is None else data.inputs[test]
    costs = {name: loss.batch(mask, inputs=inputs) for name, mask in masks.items()}
    order = sorted(costs, key=lambda name: costs[name].mean())
    ours = _OURS if _OURS in masks else order[0]
    others = [name for name in order if name != ours]
    cheapest = order[:_COMPETING]
    sizes = np.max([np.count_nonzero(masks[name], axis=1) for name in cheapest], axis=0)
    ranked = np.argsort(-np.ptp([costs[name] for name in cheapest], axis=0) / (1 + sizes), kind="stable")
    taught = _instructive(data.truth[test], masks, costs, ours, others)
    differing = [i for i in ranked.tolist() if i not in taught]
    head, rest = differing[: _EXAMPLES // 2 - len(taught)], differing[_EXAMPLES // 2 - len(taught) :]
    places = np.unique(np.linspace(0, max(0, len(rest) - 1), _EXAMPLES // 2).astype(int)).tolist()
    found = []
    chosen = [*taught, *head, *(rest[place] for place in places[: len(rest)])]
    of_oracle = {name: p_of(np.array(chosen, dtype=np.intp)) for name, p_of in (p_values or {}).items()}
    for at, i in enumerate(chosen):
        row = int(test[i])
        one = loss if inputs is None or not loss.inputs else loss.at({name: inputs[name][i] for name in loss.inputs})
        likeliest = np.argsort(-data.P[row], kind="stable").tolist()
        kept = np.any([mask[i] for mask in masks.values()], axis=0)
        kept[likeliest[:_TOP]] = True
        rival = next((name for name in others if not np.array_equal(masks[name][i], masks[ours][i])), None)
        example = Example(
            row=row if numbers is None else int(numbers[row]),
            name=None if data.ids is None else str(data.ids[row]),
            truth=loss.labels[data.truth[row]],
            probabilities={loss.labels[y]: float(data.P[row, y]) for y in likeliest if kept[y]},
            sets={name: tuple(loss.labels[y] for y in likeliest if mask[i, y]) for name, mask in masks.items()},
            costs={name: float(cost[i]) for name, cost in costs.items()},
            terms={name: one.terms(mask[i]) for name, mask in masks.items()},
            p_values={
                name: {loss.labels[y]: float(p[at, y]) for y in likeliest if kept[y]} for name, p in of_oracle.items()
            },
            decisions={name: _decision(one, mask[i]) for name, mask in masks.items()} if _decides(loss) else {},
            pair=None if rival is None else (ours, rival),
            why="" if rival is None else _why(one, masks, i, data.P[row], int(data.truth[row]), ours, rival, called),
        )
        found.append(example)
    return tuple(found)


def _decides(loss: Loss) -> bool:
    return bool(loss.actions) or loss.ceiling is not None


def _decision(loss: Loss, mask: npt.NDArray[np.bool_]) -> str:
    """The decision that one set leads to, in words."""
    sets = PredictionSets(loss, mask[None, :])
    if sets.handed_over is not None and sets.handed_over[0]:
        return "handed over"
    named = {name: best_actions(actions, sets.mask) for name, actions in loss.actions.items()}
    several = len(named) > 1
    return "; ".join(
        f"{f'{name}: ' if several else ''}{loss.actions[name].actions[chosen[0]]}, at worst {worst[0]:.4g}"
        for name, (chosen, worst) in named.items()
    )


def _instructive(
    truth: npt.NDArray[np.int64],
    masks: Mapping[str, Masks],
    costs: Mapping[str, Floats],
    ours: str,
    others: Sequence[str],
) -> list[int]:
    """The places of the instructive rows: one of each kind, if any, preferably with sets that are easy to read."""
    if not others:
        return []
    rows = np.arange(len(truth))
    differ = np.array([(masks[name] != masks[ours]).any(axis=1) for name in others])
    rival = differ.argmax(axis=0)  # the first that differs
    held, paid, sized = (
        np.array([value(name) for name in others])[rival, rows]
        for value in (
            lambda name: masks[name][rows, truth],
            lambda name: costs[name],
            lambda name: np.count_nonzero(masks[name], axis=1),
        )
    )
    size, cost, holds = np.count_nonzero(masks[ours], axis=1), costs[ours], masks[ours][rows, truth]
    cheaper = differ.any(axis=0) & held & (cost < paid)
    readable = (size >= 1) & (size <= _READABLE) & (sized <= _READABLE)
    saved = (paid - cost) / (1 + np.maximum(size, sized))
    found = []
    for kind in (cheaper & holds, cheaper & ~holds):
        for wanted in (kind & readable, kind):
            if wanted.any():
                found.append(int(np.argmax(np.where(wanted, saved, -np.inf))))
                break
    return found


def _why(
    loss: Loss,
    masks: Mapping[str, Masks],
    i: int,
    p: npt.NDArray[np.floating],
    truth: int,
    ours: str,
    rival: str,
    called: Callable[[str], str],
) -> str:
    """In words: how the sets of two oracles for a row differ, what that costs, and which of them holds the truth."""
    here, there = masks[ours][i], masks[rival][i]
    paid = {term: (loss.terms(there)[term], cost) for term, cost in loss.terms(here).items()}
    term = max(paid, key=lambda term: abs(paid[term][0] - paid[term][1]))
    paid_for = f"{paid[term][0]:.4g} for {term} instead of {paid[term][1]:.4g}"
    name = called(loss.labels[truth])
    if there[truth] and not here[truth]:
        fuller = here.copy()
        fuller[truth] = True
        return (
            f"{ours} misses the true label, {name}: its probability is {p[truth]:.2g}, and with it the set would cost "
            f"{loss(fuller):.4g} instead of {loss(here):.4g}. {rival} contains it and costs {paid_for}."
        )
    names = [called(label) for label in loss.labels]
    likeliest = np.argsort(-p, kind="stable")
    more, less = ([names[y] for y in likeliest if mask[y]] for mask in (there & ~here, here & ~there))
    deeds = [f"takes {_listed(more)}, which {ours} leaves out"] if more else []
    deeds += [f"leaves out {_listed(less)}, which {ours} takes"] if less else []
    holds = [oracle for oracle, mask in ((ours, here), (rival, there)) if mask[truth]]
    held = {0: "Neither contains", 2: "Both contain"}.get(len(holds)) or f"Only {holds[0]} contains"
    return f"{rival} {', and '.join(deeds)}: {paid_for}. {held} the true label, {name}."


def _listed(labels: Sequence[str]) -> str:
    more = len(labels) - _READABLE
    return ", ".join(labels[:_READABLE]) + (f" and {more} more" if more > 0 else "")
