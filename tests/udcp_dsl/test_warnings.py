"""Warnings point at the user's line, from whatever depth, and come before the work that they are about."""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import udcp_dsl as udcp
from udcp_dsl import SetPredictor
from udcp_dsl.diagnostics import keeping_warnings, warn
from udcp_dsl.predict.calibrate import CalibrationWarning, threshold
from udcp_dsl.predict.oracle import Oracle

LOSS = udcp.loads("labels {cat, dog, wolf}  category wild {wolf}  loss l = size + 5 * any(wild)")
FREE = udcp.loads("labels {cat, dog, wolf}  category wild {wolf}  loss l = any(wild)")
rng = np.random.default_rng(0)
P = rng.dirichlet([1, 1, 1], 240)
Y = np.array([rng.choice(3, p=p) for p in P])
ZERO = np.eye(3)[np.where(np.arange(240) % 4, Y, (Y + 1) % 3)]  # a quarter of the true labels has p = 0

UNUSED = "labels {a, b}  category c {a}  loss l = size"
FEW: dict[str, Callable[[], Any]] = {
    "threshold": lambda: threshold([1.0], 0.1),
    "calibrate": lambda: SetPredictor(LOSS, "lac").calibrate(P[:5], Y[:5]),
    "by group": lambda: SetPredictor(LOSS, "lac", conditional="group").calibrate(P, Y, groups=["a"] * 235 + ["b"] * 5),
    "by class": lambda: SetPredictor(LOSS, "lac", conditional="class").calibrate(P[:20], Y[:20]),
    "tuned": lambda: SetPredictor(LOSS, "penalized").calibrate(P[:12], Y[:12]),
    "zeros": lambda: SetPredictor(LOSS, "lac").calibrate(ZERO, Y),
    "free labels": lambda: SetPredictor(FREE, "price").calibrate(P, Y),
    "compare": lambda: udcp.compare(LOSS, P[:30], Y[:30], oracles=["lac"], alphas=0.01, splits=1),
    "ids": lambda: SetPredictor(LOSS, "lac").calibrate(P, Y).predict_set(P[:2], ids=["x", "x"]),
    "logits": lambda: SetPredictor(LOSS, "lac").calibrate(P, Y, logits=True),
    "order": lambda: SetPredictor(LOSS, "lac", class_names=["wolf", "cat", "dog"]).calibrate(P, Y),
    "bound": lambda: udcp.make_oracle("greedy", LOSS, M=1.0),
}


@pytest.mark.parametrize("way", FEW.values(), ids=FEW)
def test_they_point_at_the_line_of_the_user(way: Callable[[], Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        way()
    assert caught
    start = inspect.getsourcelines(way)[1]
    assert {(x.filename, x.lineno) for x in caught} == {(__file__, start)}


def test_spec_warnings_too(tmp_path: Any) -> None:
    (tmp_path / "a.csv").write_text("name,cost\na,1\nb,2\nz,3\n")
    text = 'labels {a, b}  costs c from "a.csv" column cost  loss l = sum(c)'
    with pytest.warns(udcp.SpecWarning) as caught:
        udcp.loads(text, folder=tmp_path)
    assert caught[0].filename == __file__


def test_through_the_standard_library_and_our_own_packages() -> None:
    names: dict[str, Any] = {"__name__": "udcp_solvers.deep", "warn": warn}
    exec("from functools import cached_property\nclass C:\n  @cached_property\n  def x(self): warn('deep')\n", names)
    with pytest.warns(UserWarning, match="deep") as caught:
        _ = names["C"]().x
    assert caught[0].filename == __file__


def test_in_a_thread_of_ours_there_is_no_line_of_the_user() -> None:
    names: dict[str, Any] = {"__name__": "udcp_solvers.deep", "warn": warn}
    exec(compile("def f(): warn('deep')\n", "ours.py", "exec"), names)
    with pytest.warns(UserWarning, match="deep") as caught, ThreadPoolExecutor(1) as pool:
        pool.submit(names["f"]).result()
    assert caught[0].filename == "ours.py"


def test_python_says_them_once_a_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            SetPredictor(LOSS, "lac").calibrate(P[:5], Y[:5])
    assert len(caught) == 1


class Counting(Oracle):
    """lac, which counts the calls."""

    name = "counting"

    def __init__(self, loss: udcp.Loss) -> None:
        super().__init__(loss)
        self.calls = 0

    def _scores(self, P: Any) -> Any:
        self.calls += 1
        return -P.astype(np.float64)


@pytest.mark.parametrize(
    ("settings", "rows", "groups"),
    [
        ({}, P[:5], None),
        ({}, ZERO, None),
        ({"conditional": "class"}, P[:20], None),
        ({"conditional": "group"}, P, ["a"] * 235 + ["b"] * 5),
        ({"conditional": "group", "pool": True}, P[:5], ["a"] * 5),
        ({"randomize": True}, P[:5], None),
    ],
)
def test_they_come_before_the_work_and_once(settings: dict[str, Any], rows: Any, groups: Any) -> None:
    oracle = Counting(LOSS)
    predictor = SetPredictor(LOSS, oracle, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        with pytest.raises(CalibrationWarning):
            predictor.calibrate(rows, Y[: len(rows)], groups=groups)
    assert oracle.calls == 0
    with pytest.warns(CalibrationWarning) as caught:
        predictor.calibrate(rows, Y[: len(rows)], groups=groups)
    assert len([warning for warning in caught if "on average" not in str(warning.message)]) == 1
    assert oracle.calls > 0


def test_what_a_thread_keeps_is_its_own() -> None:
    kept_before, both = threading.Barrier(2), threading.Barrier(2)

    def keep() -> list[str]:
        with keeping_warnings() as kept:
            kept_before.wait(10)
            both.wait(10)  # the other thread warns meanwhile, with filters of its own
            warn("of the thread")
        return kept

    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        other = pool.submit(keep)
        kept_before.wait(10)
        warn("of the main thread")
        both.wait(10)
        assert other.result() == ["of the thread"]
    assert [str(w.message) for w in caught] == ["of the main thread"]


def test_warnings_of_other_kinds_pass_a_keeper() -> None:
    with keeping_warnings(CalibrationWarning) as kept:
        warn("kept", CalibrationWarning)
        with pytest.warns(udcp.SpecWarning, match="said"):
            warn("said", udcp.SpecWarning)
    assert kept == ["kept"]
