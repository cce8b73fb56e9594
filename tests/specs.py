"""Specs that several test files share; what is read off a spec in a test stands in that test."""

from __future__ import annotations

from functools import cache

import numpy as np

import udcp_dsl as udcp


@cache
def size_of(labels: str) -> udcp.Loss:
    """The loss `size` over labels with blanks between them, or over a range."""
    listed = labels if ".." in labels else "{ " + ", ".join(labels.split()) + " }"
    return udcp.loads(f"labels {listed}  loss l = size")


# Not submodular: `price` takes an anchor.
ANCHORED = udcp.loads("labels { a, b, c }  category two { a, b }  loss l = size + 3 * all(two)")

# Seven labels, so that brute force over all sets is quick; all numbers are binary fractions, so that sums are exact.
SEVEN = """
labels { a, b, c, d, e, f, g }
hierarchy h { x { a, b, q { c, d } }, y { e, f }, g }
hierarchy u { x { p1 { a, b }, p2 { c, d } }, y { p3 { e, f }, p4 { g } } }
hierarchy deep { a, x { b, y { c, z { d, w { e, f, v { g } } } } } }
costs k { a: 1, b: 0.5, c: 0.25, d: 0, e: 2, f: 0.5, g: 0.75 }
costs s { a: 1, b: 0.5, c: -0.25, d: 0, e: 2, f: -0.5, g: 0.75 }
categories over { m: { a, b, c }, n: { c, d, e }, o: { e, f, a }, r: { g, d } }
costs w of over { m: 1, n: 0.5, o: 0.25, r: 2 }
category A { a, b }
category B { c, e, f }
distance dense = path(h, edge: 1.5)
"""


@cache
def of_seven(body: str) -> udcp.Loss:
    """The loss `body` over the seven labels."""
    return udcp.loads(f"{SEVEN} loss l = {body}")


# Twelve labels, categories that overlap: a mixed integer program is small, and its relaxation is not exact.
TWELVE = udcp.loads("""
labels 0..11
categories F { a: { 0..4 }, b: { 3..8 }, c: { 8..11, 0 } }
costs c { 0: 1.5, 3: 0.25, 7: 3, default: 1 }
hierarchy h { x { 0..4 }, y { yy { 5..7 }, 8 }, 9..11 }
loss l = 2 * count(F) + sum(c) + 0.5 * diameter(h)
""")


@cache
def hard_to_solve(K: int = 60, many: int = 40) -> udcp.Loss:
    """Many categories that overlap: an integer program of it takes far longer than a millisecond."""
    rng = np.random.default_rng(3)
    members = [", ".join(map(str, sorted(rng.choice(K, 9, replace=False)))) for _ in range(many)]
    groups = ", ".join(f"g{i}: {{ {some} }}" for i, some in enumerate(members))
    return udcp.loads(f"labels 0..{K - 1}  categories F {{ {groups} }}  loss l = count(F)")
