"""What `udcp check` says of an oracle is what the oracle says of itself, and what its constructor does."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given

from udcp_dsl import OracleError
from udcp_dsl.check import losses
from udcp_dsl.loss import Loss, loads
from udcp_dsl.predict import applicability
from udcp_dsl.predict.applicability import lost_by, oracles
from udcp_dsl.predict.oracle import Declaration, Refusal, Way, make_oracle, oracle_names

BODIES = ["size", "-size", "sum(c)", "sum(d)", "any({x, y})", "diameter(h)", "spread(h)", "3", "max(size - 1, 0) ^ 2"]
SPEC = """
labels { x, y, z }
hierarchy h { a { x, y }, z }
costs c { x: 1, y: 2, default: 0 }
costs d { x: 1, y: -2, default: 0 }
loss l = """


def taken(name: str, loss: Loss) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make_oracle(name, loss)
    except OracleError:
        return False
    return True


@pytest.mark.parametrize("body", BODIES)
def test_what_is_said_is_what_is_done(body: str) -> None:
    loss = loads(SPEC + body)
    assert {x.name: x.applies for x in oracles(loss)} == {name: taken(name, loss) for name in oracle_names()}


@given(losses())
def test_what_is_said_of_any_loss_is_what_is_done(loss: Loss) -> None:
    for said in oracles(loss):
        assert said.applies == taken(said.name, loss), (said.name, said.why)
        assert said.why
        assert (said.exact is None, said.time is None) == (not said.applies, not said.applies)


class Stranger:
    """What it does.

    And more of it."""


def test_an_undeclared_oracle_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(name: str, loss: object) -> object:
        if name == "picky":
            raise OracleError("needs another loss")
        if name == "broken":
            raise KeyError("oops")
        return Stranger()

    monkeypatch.setattr(applicability, "oracle_names", lambda: ("broken", "friendly", "picky"))
    monkeypatch.setattr(applicability, "declaration_of", lambda name: None)
    monkeypatch.setattr(applicability, "make_oracle", made)
    loss = loads(SPEC + "size")
    found = [(x.name, x.applies, x.why, x.exact, x.time) for x in oracles(loss)]
    assert found == [
        ("broken", False, "its constructor fails: KeyError: 'oops'", None, None),
        ("friendly", True, "undeclared: What it does.", None, None),
        ("picky", False, "needs another loss", None, None),
    ]
    assert lost_by("separable", loads(SPEC + "any({x, y})"), oracles(loss)) == ()


def test_a_stranger_that_declares_is_asked_and_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def ways(loss: Loss) -> Way | Refusal:
        return Way("by magic", exact=True, seconds=0.5) if loss.K < 4 else Refusal("too many labels")

    says = Declaration(does="magic", choose_for="all", chooses=ways, needs=("monotone",), quick_with=("laminar",))
    monkeypatch.setattr(applicability, "oracle_names", lambda: ("magic",))
    monkeypatch.setattr(applicability, "declaration_of", lambda name: says)
    monkeypatch.setattr(applicability, "make_oracle", lambda *_: pytest.fail("it was made"))
    (found,) = oracles(loads(SPEC + "spread(h)"))
    assert (found.applies, found.why, found.exact, found.time) == (True, "by magic", True, "milliseconds")
    assert lost_by("laminar", loads(SPEC + "spread(h)"), [found]) == ("magic in microseconds",)
    (found,) = oracles(loads("labels 0..9 loss l = size"))
    assert (found.applies, found.why, found.exact) == (False, "too many labels", None)
    (found,) = oracles(loads(SPEC + "-size"))
    assert found.why.startswith("needs monotone, which is refuted because of ")
    assert lost_by("monotone", loads(SPEC + "-size"), [found]) == ("magic",)
