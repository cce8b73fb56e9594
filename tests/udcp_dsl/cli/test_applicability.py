"""What `udcp check` says of an oracle is what its constructor does."""

from __future__ import annotations

import pytest

from udcp_dsl import OracleError
from udcp_dsl.cli import applicability
from udcp_dsl.cli.applicability import oracles
from udcp_dsl.loss import loads
from udcp_dsl.prediction.oracle import make_oracle, oracle_names

BODIES = ["size", "-size", "sum(c)", "sum(d)", "any({x, y})", "diameter(h)", "spread(h)", "3", "max(size - 1, 0) ^ 2"]
SPEC = """
labels { x, y, z }
hierarchy h { a { x, y }, z }
costs c { x: 1, y: 2, default: 0 }
costs d { x: 1, y: -2, default: 0 }
loss l = """


@pytest.mark.parametrize("name", oracle_names())
def test_what_is_said_is_what_is_done(name: str) -> None:
    try:
        make_oracle(name, loads(SPEC + "size"))
    except OracleError as error:
        if "cannot be loaded" in str(error):
            pytest.skip(str(error))
        raise
    for body in BODIES:
        loss = loads(SPEC + body)
        try:
            make_oracle(name, loss)
            takes = True
        except OracleError:
            takes = False
        (said,) = [x for x in oracles(loss) if x.name == name]
        assert said.applies == takes, (body, said.why)


def test_an_oracle_that_is_not_listed_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stranger:
        """What it does.

        And more of it."""

    def made(name: str, loss: object) -> object:
        if name == "picky":
            raise OracleError("needs another loss")
        if name == "broken":
            raise KeyError("oops")
        return Stranger()

    monkeypatch.setattr(applicability, "oracle_names", lambda: ("broken", "friendly", "picky"))
    monkeypatch.setattr(applicability, "make_oracle", made)
    found = [(x.name, x.applies, x.why) for x in oracles(loads(SPEC + "size"))]
    assert found == [
        ("broken", False, "its constructor fails: KeyError: 'oops'"),
        ("friendly", True, "What it does."),
        ("picky", False, "needs another loss"),
    ]
