"""The categories in which sets are drawn: the hierarchy that a loss uses, else a family that it counts or measures."""

from __future__ import annotations

from dataclasses import dataclass

from udcp_dsl.expression.domain import CategoryMetric, Family, Hierarchy, TreeMetric
from udcp_dsl.loss import Loss


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
