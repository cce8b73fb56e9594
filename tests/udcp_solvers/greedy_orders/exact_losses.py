"""Losses over seven labels whose every sum is exact, so that the greedy formula has one value."""

from __future__ import annotations

import io
from functools import cache

import numpy as np

import udcp_dsl as udcp
from udcp_dsl.loss import Loss

DECLARED = """
labels { a, b, c, d, e, f, g }
hierarchy h { x { u { a, b }, v { c } }, y { d, e, w { f, g } } }
categories F { p: { a, c }, q: { b, d }, r: { e, f, g } }
categories O { p: { a, b, c, d }, q: { c, d, e }, r: { a, g } }
costs w of F { p: 0.5, q: 2, r: 1.25 }
category C { a, d, f }
costs k { a: 1, b: 0.5, c: 1, d: 2.25, e: 0, f: 0.5, g: 4 }
costs s { a: 1, b: -0.5, c: -1, d: 2.25, e: 0, f: 0.5, g: -4 }
distance d from "d.npy"
distance g of O from "g.csv"
actions u from "u.csv"
"""
# Binary fractions: every sum is exact, whatever its order, so that the formula has one value.
EXACT = [
    "size", "sum(k)", "sum(s)", "max(k)", "min(s)", "diameter(h)", "diameter(d)", "spread(h)", "radius(d)",
    "radius(h)", "count(F)", "count(F, w)", "count(O)", "count(O) + 0.25 * size", "any(C)", "all(C)", "within(C)",
    "4 * empty + size", "worst(u)", "count(h.level(1)) + 2 * count(h.level(2)) + 0.125 * size",
    "diameter(h) + sum(k) + count(F)", "diameter(d) + max(k) + 0.5 * count(O)", "size ^ 2 - 3 * size",
    "diameter(g)", "diameter(g) + sum(k) + count(F)", "diameter(g) + diameter(d) + diameter(h)",
    "5 * (any(C) and count(F) >= 2) + max(size - 2, 0)", "if any(C) then 3 else max(k)", "min(sum(k), 2)",
]  # fmt: skip


@cache
def exact_loss(body: str) -> Loss:
    rng = np.random.default_rng(7)
    distance = np.triu(rng.integers(1, 9, size=(7, 7)) / 2, 1)
    matrix = io.BytesIO()
    np.save(matrix, distance + distance.T)
    actions = "label,m,n\n" + "".join(f"{y},{rng.integers(8) / 4},{rng.integers(8) / 4}\n" for y in "abcdefg")
    apart = b"team,r,p,q\nq,2.5,1,0\np,3,0,1\nr,0,3,2.5\n"
    files = {"d.npy": matrix.getvalue(), "u.csv": actions.encode(), "g.csv": apart}
    return udcp.loads(f"{DECLARED} loss l = {body}", files=files)
