""" "A or B?": the pair that is worth asking, the answer kept as a case, and the parameters that follow from it."""

from __future__ import annotations

from typing import Any

import pytest

import udcp_dsl as udcp

SPEC = """labels { cat, dog, ant, wolf, bear }
category wild { wolf, bear }
costs care { cat: 1, dog: 3, ant: 5, wolf: 0.5, bear: 0.9 }
param fear = 1 in [0, 10]
loss plain = sum(care)
loss l = sum(care) + fear * any(wild)
"""


@pytest.fixture
def asking(page: Any) -> Any:
    page.change(text={"text": SPEC, "by": "me"})
    page.until(lambda v: v["spec"]["loss"] == "l")
    return page


def test_answers_narrow_the_range_and_are_kept(asking: Any) -> None:
    truth = udcp.loads(SPEC, params={"fear": 2.4})
    first = asking.post("question", {}).json()
    assert (first["cases"], first["agrees"], first["params"][0]["determined"]) == (0, True, 1.0)
    for number in range(4):
        pair = asking.post("question", {"seed": number}).json()["pair"]
        if pair is None:
            break
        a, b = pair["first"], pair["second"]
        assert pair["text"].startswith("does { ")
        sign = ">" if truth(a) > truth(b) else "<"
        assert asking.post("case", {"name": f"answer {number}", "cost": [a, sign, b]}).status_code == 200
    last = asking.post("question", {}).json()
    assert last["cases"] == number + (pair is not None)
    assert last["params"][0]["determined"] < 0.3
    low, high = last["params"][0]["solutions"]
    assert low <= 2.4 <= high


def test_contradicting_answers_are_named(asking: Any) -> None:
    for sign in ("<", ">"):
        asking.post("case", {"name": f"wolf {sign}", "cost": [["wolf"], sign, ["cat", "dog"]]})
    answer = asking.post("question", {}).json()
    assert not answer["agrees"]
    assert answer["pair"] is None
    (group,) = answer["contradictions"]
    assert [x.partition(":")[0] for x in group] == ["wolf <", "wolf >"]


@pytest.mark.parametrize("body", [{"seed": -1}, {"seed": "x"}, {"seed": 10**400}, {"seed": True}, [], "x"])
def test_a_body_that_is_none(asking: Any, body: Any) -> None:
    assert asking.post("question", body).status_code == 400


def test_without_a_parameter_to_fit(asking: Any) -> None:
    asking.change(loss="plain")
    asking.until(lambda v: v["spec"]["loss"] == "plain")
    answer = asking.post("question", {})
    assert answer.status_code == 400
    assert "no parameters to fit" in answer.json()["error"]
