"""The data of the instance browser: some rows with each oracle's set, as JSON that is safe inside a page.

Labels are numbered, as each occurs in many sets. Only labels and categories that occur are written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from udcp_dsl.expression.domain import CategoryMetric, Family, Hierarchy, TreeMetric
from udcp_dsl.loss import Loss
from udcp_dsl.report.look import shown, styles

if TYPE_CHECKING:
    from udcp_dsl.measure.comparison import Comparison, Example


def browser_data(comparison: Comparison) -> dict[str, Any]:
    """Everything that `browser.js` reads."""
    looks = styles(run.oracle for run in comparison.runs)
    losses = [
        _of_loss(comparison, name, loss)
        for name, loss in zip(comparison.names, comparison.losses, strict=True)
        if comparison.examples.get(name)
    ]
    colours = {shown(oracle): style.colour.variable for oracle, style in looks.items()}
    marks = {shown(oracle): style.path for oracle, style in looks.items()}
    return {"losses": losses, "colours": colours, "marks": marks}


def as_script(data: Any) -> str:
    """JSON for a script element: nothing in it can end the element or begin a comment, whatever the labels are."""
    text = json.dumps(data, separators=(",", ":"))
    for unsafe in "<>&":
        text = text.replace(unsafe, f"\\u{ord(unsafe):04x}")
    return text


def _of_loss(comparison: Comparison, name: str, loss: Loss) -> dict[str, Any]:
    examples, oracles = comparison.examples[name], _in_order(comparison, name)
    place: dict[str, int] = {}
    for example in examples:
        for label in (*example.probabilities, example.truth):
            place.setdefault(label, len(place))
    tree = tree_of(loss)
    return {
        "name": shown(name),
        "labels": [shown(comparison.called(label)) for label in place],
        "tree": None if tree is None else _of_tree(tree, [loss.labels.index(label) for label in place]),
        "oracles": [shown(oracle) for oracle in oracles],
        "terms": [shown(term) for term in next(iter(examples[0].terms.values()), {})],
        "examples": [_of_example(example, place, oracles) for example in examples],
    }


def _in_order(comparison: Comparison, loss: str) -> list[str]:
    """`price` first, where a narrow screen begins, then the others by cost, the cheapest first."""
    cost = {s.oracle: s.cost_mean for s in comparison.summaries() if s.loss == loss and s.alpha == comparison.alphas[0]}
    return sorted(comparison.examples[loss][0].sets, key=lambda oracle: (oracle != "price", cost.get(oracle, 0.0)))


def _of_tree(tree: Tree, labels: Sequence[int]) -> dict[str, Any]:
    """The tree as data, with only the nodes above these labels."""
    used: set[int] = set()
    for label in labels:
        for node in tree.above[label]:
            while node >= 0 and node not in used:
                used.add(node)
                node = tree.parent[node]
    place = {node: i for i, node in enumerate(sorted(used))} | {-1: -1}
    return {
        "name": shown(tree.name),
        "nodes": [[shown(tree.names[v]), place[tree.parent[v]], tree.sizes[v]] for v in sorted(used)],
        "above": [[place[v] for v in tree.above[label]] for label in labels],
    }


def _of_example(example: Example, place: dict[str, int], oracles: Sequence[str]) -> dict[str, Any]:
    return {
        "row": example.row,
        "name": None if example.name is None else shown(example.name),
        "truth": place[example.truth],
        "p": [[place[label], round(p, 6)] for label, p in example.probabilities.items()],
        "sets": [[place[label] for label in example.sets[oracle]] for oracle in oracles],
        "costs": [example.costs[oracle] for oracle in oracles],
        "terms": [list(example.terms[oracle].values()) for oracle in oracles],
        # In the order of "p": the alpha from which each label is left out.
        "from": [
            [round(example.p_values[oracle][label], 4) for label in example.probabilities]
            for oracle in oracles
            if oracle in example.p_values
        ],
        "decided": [shown(example.decisions[oracle]) for oracle in oracles if example.decisions],
        "why": shown(example.why),
    }


# The categories in which sets are drawn: the hierarchy that a loss uses, else a family that it counts or measures.


@dataclass(frozen=True)
class Tree:
    """Node i is called `names[i]`, lies below `parent[i]` (-1: at the top) and holds `sizes[i]` labels.

    Label y lies below the nodes `above[y]`: in a hierarchy one, in a family any number.
    """

    name: str
    names: tuple[str, ...]
    parent: tuple[int, ...]
    sizes: tuple[int, ...]
    above: tuple[tuple[int, ...], ...]


def tree_of(loss: Loss) -> Tree | None:
    """The tree in which to draw sets, preferably a hierarchy that the loss uses; None if there are only labels."""
    atoms = loss.expression.atoms.values()
    distances = [getattr(atom, "metric", None) for atom in atoms]
    metrics = [metric for metric in distances if isinstance(metric, TreeMetric)]
    families = [family for atom in atoms if isinstance(family := getattr(atom, "family", None), Family)]
    families += [metric.family for metric in distances if isinstance(metric, CategoryMetric)]
    counted = {family.name.partition(".")[0] for family in families}
    measured = {id(metric.hierarchy) for metric in metrics}
    measured |= {id(getattr(atom, "hierarchy", None)) for atom in atoms}
    used = [h for h in loss.hierarchies if id(h) in measured or h.name in counted]
    if used or (loss.hierarchies and not families):
        return _of_hierarchy((used or loss.hierarchies)[0])
    return _of_family(families[0]) if families else None


def _of_hierarchy(hierarchy: Hierarchy) -> Tree:
    """The tree of a hierarchy, without its root and its leaves."""
    leaves = set(hierarchy.leaf.tolist())
    inner = [v for v in range(1, len(hierarchy.names)) if v not in leaves]
    place = {v: i for i, v in enumerate(inner)} | {0: -1}
    parents = hierarchy.parent.tolist()
    above = [place[parents[v]] for v in hierarchy.leaf.tolist()]
    return Tree(
        hierarchy.name,
        tuple(hierarchy.names[v] for v in inner),
        tuple(place[parents[v]] for v in inner),
        tuple(int(hierarchy.high[v] - hierarchy.low[v]) for v in inner),
        tuple((node,) if node >= 0 else () for node in above),
    )


def _of_family(family: Family) -> Tree:
    starts, category = (part.tolist() for part in family.by_label)
    return Tree(
        family.name,
        family.names,
        (-1,) * len(family),
        tuple((family.starts[1:] - family.starts[:-1]).tolist()),
        tuple(tuple(category[starts[y] : starts[y + 1]]) for y in range(family.K)),
    )
