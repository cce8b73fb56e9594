"""Random losses with more labels than `udcp_dsl.check` gives, for kernels that behave differently on long rows."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl.loss import Loss

SUMS = """size | 0.01 * size | sum(c) | sum(few) | count(F) | 2 * count(F) | count(F, w) | count(O) | any(C) | max(few)
    | diameter(t) | diameter(d) | diameter(h) | diameter(g) | diameter(g2) | count(h.level(1)) | count(h.level(2))
    | 0.5 * diameter(t)""".split("|")
OTHERS = """sum(signed) | -1 * size | all(C) | within(C) | empty | max(signed) | min(signed) | min(few) | spread(d)
    | spread(t) | radius(t) | radius(d) | sqrt(size) | sqrt(count(F)) | size ^ 2 | 5 * (any(C) and count(F) >= 2)
    | (if any(C) then 2 else max(few)) | max(sum(c), 2 * count(F)) | min(size, 3) | size(C) | max(size - 2, 0)
    | (count(F) == 2) | any(C) * sum(c) | -1 * count(F) | worst(u)""".split("|")


def between_categories(rng: np.random.Generator, names: list[str]) -> bytes:
    """A table of distances, the categories in any order; those that overlap are apart all the same."""
    d = np.triu(rng.integers(0, 6, size=(len(names), len(names))) / 4, 1)
    order = rng.permutation(len(names))
    rows = [",".join([names[a], *(f"{(d + d.T)[a, b]:g}" for b in order)]) for a in order[::-1]]
    return "\n".join([",".join(["category", *(names[b] for b in order)]), *rows]).encode()


@pytest.fixture(scope="session")
def random_loss() -> Callable[[np.random.Generator, int], Loss]:
    """A function of an rng and K: a sum of one to four terms, of atoms of all kinds over random declarations."""

    def make(rng: np.random.Generator, K: int) -> Loss:
        labels = [f"y{y}" for y in range(K)]
        unit = (4, 10)[rng.integers(2)]  # binary fractions add up exactly, decimal ones do not

        def number(low: int = 0) -> str:
            return f"{rng.integers(low * unit, 3 * unit) / unit:g}"

        def listed(members: list[str]) -> str:
            return "{ " + ", ".join(members) + " }"

        def some() -> str:
            chosen = rng.random(K) < rng.choice([0.1, 0.3, 0.6])
            chosen[rng.integers(K)] = True
            return listed([labels[y] for y in np.flatnonzero(chosen)])

        def costs(name: str, values: list[str]) -> str:
            return f"costs {name} " + listed([f"{y}: {v}" for y, v in zip(labels, values, strict=True)])

        family = rng.integers(max(1, K // 3), size=K)
        of_family = {c: listed([labels[y] for y in np.flatnonzero(family == c)]) for c in np.unique(family)}
        three = [number() for _ in range(3)]
        branches = [(f"a{a}", f"b{a}{rng.integers(3)}") for a in rng.integers(3, size=K)]
        tree = [
            f"{a} "
            + listed(
                [
                    f"{b} " + listed([labels[y] for y in range(K) if branches[y] == (a, b)])
                    for b in sorted({b for above, b in branches if above == a})
                ]
            )
            for a in sorted({a for a, _ in branches})
        ]
        distance = np.triu(rng.integers(0, 6, size=(K, K)) / float(rng.choice([1, 7])), 1)
        matrix = io.BytesIO()
        np.save(matrix, distance + distance.T)
        many = rng.integers(1, 4)
        apart = {"g.csv": between_categories(rng, [f"f{c}" for c in of_family])}
        apart |= {"g2.csv": between_categories(rng, [f"o{c}" for c in range(many)])}
        actions = "label,a,b\n" + "".join(f"{y},{number()},{number()}\n" for y in labels)
        pool = SUMS if rng.random() < 0.5 else SUMS + OTHERS
        text = [
            "labels " + listed(labels),
            "categories F " + listed([f"f{c}: {members}" for c, members in of_family.items()]),
            "costs w of F " + listed([f"f{c}: {number()}" for c in of_family]),
            "categories O " + listed([f"o{c}: {some()}" for c in range(many)]),
            "category C " + some(),
            costs("c", [number() for _ in labels]),
            costs("few", [three[rng.integers(3)] for _ in labels]),
            costs("signed", [number(-2) for _ in labels]),
            "hierarchy h " + listed(tree),
            f"distance t = path(h, edge: {rng.choice(['1', '0.5', '0.3'])})",
            'distance d from "d.npy"',
            'distance g of F from "g.csv"',
            'distance g2 of O from "g2.csv"',
            'actions u from "u.csv"',
            "loss l = " + " + ".join(rng.choice(pool, size=rng.integers(1, 5))),
        ]
        return udcp.loads("\n".join(text), files={"d.npy": matrix.getvalue(), "u.csv": actions.encode(), **apart})

    return make
