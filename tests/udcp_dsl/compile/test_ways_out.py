"""A way out leads out: what the help of a diagnostic says to write compiles when it is written."""

from __future__ import annotations

import pytest

import udcp_dsl as udcp
from udcp_dsl.diagnostics import Diagnostic

HEAD = """
labels { a, b, c }
hierarchy h { x { a, b }, c }
hierarchy skin from "skin.csv" levels kind, family
categories team { Security: { a }, "Front desk": { b, c } }
"""
FILES = {"skin.csv": b"label,kind,family\na,benign,x\nb,benign,y\nc,malignant,x\n"}


def _fault(body: str) -> Diagnostic:
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads(f"{HEAD} {body}", files=FILES)
    (fault,) = caught.value.diagnostics
    return fault


@pytest.mark.parametrize(
    ("body", "wrong", "right", "help"),
    [
        ("loss l = count(h.x)", "h.x", "h.level(1)", "'x' is a node, and a family is a whole level: write h.level(1)"),
        (
            "loss l = count(skin.malignant)",
            "skin.malignant",
            "skin.kind",
            "'malignant' is a node, and a family is a whole level: write skin.kind",
        ),
        ("costs w of h.x { default: 1 } loss l = size", "h.x", "h.level(1)", "write h.level(1)"),
        (
            "loss l = count(h.node(x))",
            "count(h.node(x))",
            "any(h.node(x))",
            "a node is one category: write any(h.node(x))",
        ),
        ("loss l = any(h.x)", "h.x", "h.node(x)", "'x' is a node: write h.node(x)"),
        ("loss l = any(Security)", "Security", "team.Security", "write team.Security"),
        ("loss l = 2 * Security", "Security", "any(team.Security)", "write any(team.Security)"),
        ("loss l = size(malignant)", "malignant", "skin.node(malignant)", "write skin.node(malignant)"),
        ("loss l = count(kind)", "kind", "skin.kind", "write skin.kind"),
    ],
)
def test_another_name_for_it(body: str, wrong: str, right: str, help: str) -> None:
    fault = _fault(body)
    assert fault.help.endswith(help)
    assert right in fault.help
    udcp.loads(f"{HEAD} {body.replace(wrong, right)}", files=FILES)


@pytest.mark.parametrize(
    ("list", "message", "help"),
    [
        ("{ Tax & VAT, b }", "a label that contains '&' must be quoted", 'write "Tax & VAT"'),
        ("{ b, R|S }", "a label that contains '|' must be quoted", 'write "R|S"'),
        ("{ why?, b }", "a label that contains '?' must be quoted", 'write "why?"'),
        ("{ 10% off }", "a label that contains '%' must be quoted", 'write "10% off"'),
        ("{ a; b }", "';' is not part of this language", "write ','"),
    ],
)
def test_signs_in_labels(list: str, message: str, help: str) -> None:
    for text in (f"labels {list}  loss l = size", f"labels 0..9  loss l = any({list})"):
        with pytest.raises(udcp.SpecError) as caught:
            udcp.loads(text)
        (fault,) = caught.value.diagnostics
        assert (fault.message, fault.help) == (message, help)
        mended = list.replace(fault.span.text, help.removeprefix("write ").strip("'"))
        udcp.loads(f"labels {mended}  loss l = size")


def test_a_percentage_is_no_label() -> None:
    with pytest.raises(udcp.SpecError) as caught:
        udcp.loads("labels { a }  costs c { a: 10% }  loss l = sum(c)")
    assert caught.value.diagnostics[0].help == "write 0.05 for five percent"
