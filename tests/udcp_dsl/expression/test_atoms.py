"""Every atom with every kind of argument, on all sets of six labels: all ways to compute it agree, its facts hold.

Costs are of both signs, a category is shared, and nothing that holds of one family, tree or distance holds by chance.
"""

from __future__ import annotations

import pytest

import udcp_dsl as udcp
from udcp_dsl.check import assert_facts, assert_meaning
from udcp_dsl.expression.atoms import ATOMS

DATA = """
labels { a, b, c, d, e, f }
costs k { a: 1, b: -2, c: 3, d: 0, e: 0.5, f: -1 }
costs below { default: -3, b: -1 }
category C { a, b, e }
categories F { x: { a, b }, y: { b, c, d }, z: { e } }
costs w of F { x: 1, y: -2, z: 0.5 }
hierarchy h { p { r { a, b }, c }, q { d, e }, f }
distance path_of_h = path(h)
distance far from "far.csv"
distance apart of F from "apart.csv"
actions act from "act.csv"
"""
FILES = {
    "far.csv": "label,a,b,c,d,e,f\na,0,1,5,2,3,4\nb,1,0,1,7,2,2\nc,5,1,0,4,1,6\n"
    "d,2,7,4,0,3,1\ne,3,2,1,3,0,2\nf,4,2,6,1,2,0\n",
    "apart.csv": "category,x,y,z\nx,0,2,5\ny,2,0,1\nz,5,1,0\n",
    "act.csv": "label,treat,wait\na,1,0\nb,0,3\nc,2,2\nd,-1,4\ne,0.5,0.5\nf,3,-2\n",
}
ARGUMENTS = {
    (): [""],
    ("category",): ["(C)", "({ b, d, f })", "(h.node(p))", "(F.y)"],
    ("costs",): ["(k)", "(below)"],
    ("any distance",): ["(far)", "(path_of_h)", "(h)", "(apart)"],
    ("distance",): ["(far)", "(path_of_h)", "(h)"],
    ("family",): ["(F)", "(h.level(1))"],
    ("family", "costs of family"): ["(F, w)"],
    ("hierarchy",): ["(h)"],
    ("actions",): ["(act)"],
}
USES = [f"{name}{text}" for name, atom in ATOMS.items() for kind in atom.signatures for text in ARGUMENTS[kind]]
OPERATORS = [
    "size >= 2", "size > 2", "size <= 2", "size < 2", "size == 2", "sum(k) >= 1", "sum(k) > 1", "sum(k) <= -2",
    "any(C) and not within(C)", "any(C) or size > 3", "-sum(k)", "2 * sum(k) - 3 * max(k)", "size ^ 2", "size / 4",
    "size * any(C)", "if any(C) then sum(k) else size", "max(size, sum(k))", "min(size, sum(k), 2)",
]  # fmt: skip


@pytest.mark.parametrize("body", [*USES, *OPERATORS])
def test_all_ways_to_compute_it_agree_and_its_facts_hold(body: str) -> None:
    loss = udcp.loads(f"{DATA} loss l = {body}", files={name: text.encode() for name, text in FILES.items()})
    assert_meaning(loss)
    assert_facts(loss)
