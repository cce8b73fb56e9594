"""How many of our modules plain arrays enter on their way to sets, and what the predictor imports for it.

The bounds are what was reached, so that a change which lengthens the walk is noticed; docs/architecture.md describes
the walk.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp

HEAD = "labels { a, b, c, d, e, f }  category g { a, b }  category h { c, d }"
SIZE, MIXED = "loss l = size", "loss l = size + 3 * (any(g) and any(h))"


def entered(loss: udcp.Loss, oracle: str, settings: dict[str, Any]) -> set[str]:
    """The modules of which a function is entered by calibrate and predict_set, once everything is imported."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(6, 0.4), 600)
    y = np.array(loss.labels)[(P.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)]
    seen: set[str] = set()

    def note(frame: Any, event: str, argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith(("udcp_dsl", "udcp_solvers")):
            seen.add(name)

    def walk() -> None:
        predictor.calibrate(P, y).predict_set(P[:50])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predictor = udcp.SetPredictor(loss, oracle, **settings)
        walk()
        sys.setprofile(note)
        try:
            walk()
        finally:
            sys.setprofile(None)
    return seen


@pytest.mark.parametrize(
    ("body", "oracle", "settings", "most"),
    [(SIZE, "lac", {"repair": None}, 23), (MIXED, "price", {}, 38)],
    ids=["lac, no repair", "price, repair and anchor"],
)
def test_the_walk_is_no_longer_than_it_was(body: str, oracle: str, settings: dict[str, Any], most: int) -> None:
    found = entered(udcp.loads(f"{HEAD} {body}"), oracle, settings)
    assert len(found) <= most, sorted(found)


def test_what_does_not_apply_is_not_imported() -> None:
    """A stage is imported where it applies: `lac` without a repair needs none."""
    code = (
        "import sys, numpy as np, udcp_dsl as udcp\n"
        "loss = udcp.loads('labels {a, b, c} loss l = size')\n"
        "udcp.SetPredictor(loss, 'lac', repair=None, alpha=0.4).calibrate(np.eye(3), list('abc'))\n"
        "print(sorted(m for m in sys.modules if m.startswith('udcp_dsl.predict.stages.')))\n"
        "print(sum(m.startswith('udcp_dsl.') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    stages, many = done.stdout.splitlines()
    assert stages == "['udcp_dsl.predict.stages.stage']"
    assert int(many) <= 120
