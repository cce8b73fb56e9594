"""`explain`: facts, reasons and blame as text and as data."""

from __future__ import annotations

import json

from udcp_dsl.expression.explain import explain, facts_as_dict, free_labels_warning
from udcp_dsl.expression.facts import FACT_NAMES
from udcp_dsl.loss import loads

LOSS = loads("labels { a, b, c }\nloss l = size\n  + 2 * any({ a, b })\n  - all({ b, c })")


def test_the_text_names_every_fact_with_its_reason_and_blame() -> None:
    lines = explain(LOSS).splitlines()
    assert lines[0] == "l: 3 labels, values in [-1, 5]"
    heads = [line.split()[0] for line in lines[2 : lines.index("summands") - 1] if not line.startswith("   ")]
    assert tuple(heads) == FACT_NAMES
    assert "  normalized     proved   it is 0 on the empty set" in lines
    at = next(i for i, line in enumerate(lines) if line.startswith("  separable      refuted  L("))
    assert lines[at + 1].strip() == "because of any({ a, b }) (line 3)"
    assert LOSS.explain() == explain(LOSS)


def test_summands_follow_in_short_form() -> None:
    text = explain(LOSS)
    summands = text[text.index("\nsummands\n") :].splitlines()
    assert summands[2] == "  size  in [0, 3]"
    assert "  2 * any({ a, b })  in [0, 2]" in summands
    minus = summands.index("  -all({ b, c })  in [-1, 0]")
    assert summands[minus + 1].startswith("    proved   normalized, antitone, submodular")
    assert "summands" not in explain(loads("labels { a } loss l = size"))


def test_no_line_is_longer_than_100() -> None:
    labels = [f"a label with a long name, number {i}" for i in range(5)]
    loss = loads("loss l = size + " + " + ".join(f'any({{ "{x}", "{labels[0]}" }})' for x in labels[1:]), labels=labels)
    assert max(map(len, explain(loss).splitlines())) <= 100


def test_data_is_plain_and_whole() -> None:
    data = json.loads(json.dumps(facts_as_dict(LOSS)))
    assert data["interval"] == [-1, 5]
    assert tuple(data["facts"]) == FACT_NAMES
    separable = data["facts"]["separable"]
    assert separable["blame"] == {"text": "any({ a, b })", "line": 3, "column": 9}
    values = [LOSS(set(s)) for s in separable["sets"]]
    assert values[0] + values[1] != values[2] + values[3]
    assert [s["text"] for s in data["summands"]] == ["size", "2 * any({ a, b })", "-all({ b, c })"]
    assert data["summands"][2]["facts"]["antitone"] == "proved"


def test_free_labels() -> None:
    assert free_labels_warning(LOSS) is None
    one = free_labels_warning(loads("labels { a, b } loss l = any({ a })"))
    assert one is not None
    assert (one.code, one.severity, one.span.text) == ("W601", "warning", "any({ a })")
    assert one.message == "labels that cost nothing: 'b'; cost-aware oracles put them into every set"
    assert one.help == "give `size` a small weight: + 0.01 * size"
