"""After `udcp warm` nothing is compiled, in another process and for either float type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import udcp_dsl as udcp

Udcp = Callable[..., Result]

# What a new process compiles when it calibrates and predicts; what it finds in the cache is not compiled.
_COUNTED = """
import sys
import numpy as np
from numba.core import event
import udcp_dsl as udcp

class Counter(event.Listener):
    compiled = []
    def on_start(self, started):
        self.compiled.append(str(started.data["dispatcher"]))
    def on_end(self, ended):
        pass

event.register("numba:compile", Counter())
rng = np.random.default_rng(1)
for dtype in (np.float32, np.float64):
    P = rng.dirichlet([0.3] * 4, 90).astype(dtype)
    y = [rng.choice(4, p=p / p.sum()) for p in P.astype(float)]
    loss = udcp.load("pets.loss")
    for oracle in sys.argv[1:]:
        predictor = udcp.SetPredictor(loss, oracle, alpha=0.1).calibrate(P, y)
        udcp.evaluate(predictor, P, y)
        predictor.predict_set(P[:1])
print(len(Counter.compiled), *Counter.compiled)

import numba

numba.njit(lambda x: x + 1)(1)
print(len(Counter.compiled))
"""


def _run(cache: Path, *arguments: str) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _warm_and_count(folder: Path, oracles: tuple[str, ...]) -> None:
    cache = folder / "cache"
    named = [word for name in oracles for word in ("--oracle", name)]
    told = json.loads(_run(cache, "-m", "udcp_dsl.cli", "warm", "pets.loss", *named, "--json"))
    assert (told["ok"], told["failed"], told["floats"]) == (True, {}, ["float32", "float64"])
    assert [oracle["name"] for oracle in told["oracles"]] == list(oracles)
    assert _run(cache, "-c", _COUNTED, *oracles) == "0\n1\n"  # the count does count


@pytest.mark.slow
def test_nothing_is_compiled_after_it(folder: Path) -> None:
    _warm_and_count(folder, ("lac",))


@pytest.mark.slow
def test_nothing_is_compiled_after_it_for_any_oracle(folder: Path) -> None:
    _warm_and_count(folder, ("base", "greedy", "lac", "penalized", "price", "raps"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, object]]]:
    """What would be compiled, in place of compiling it."""
    asked: list[tuple[str, str, dict[str, object]]] = []

    def side_by_side(function: object, tasks: list[tuple[udcp.Loss, str, dict[str, object]]]) -> list[object]:
        if len(tasks[0]) == 1:  # all of them once more, in turn
            return [None]
        asked.extend((loss.name, name, dict(options)) for loss, name, options in tasks)
        return [udcp.OracleError("it broke") if name == "greedy" else 1.5 for _, name, _ in tasks]

    monkeypatch.setattr("udcp_dsl.cli.compiling.side_by_side", side_by_side)
    return asked


def test_all_that_apply_and_do_not_solve(udcp: Udcp, quick: list[tuple[str, str, dict[str, object]]]) -> None:
    result = udcp("warm", "pets.loss", "--json")
    told = json.loads(result.stdout)
    assert [name for _, name, _ in quick] == ["base", "greedy", "lac", "penalized", "price", "raps"]
    assert set(told["left_out"]) == {"ilp", "ratio"}
    assert told["failed"] == {"greedy": "it broke"}
    assert (result.exit_code, told["ok"]) == (1, False)
    shown = udcp("warm", "pets.loss", "--oracle", "lac", "--loss", "plain")
    assert (shown.exit_code, quick[-1]) == (0, ("plain", "lac", {}))
    assert shown.stdout.startswith("plain: compiled and cached for float32 and float64\n")


def test_a_saved_predictor_has_its_own_oracle(udcp: Udcp, quick: list[tuple[str, str, dict[str, object]]]) -> None:
    rows = np.random.default_rng(0).dirichlet([1] * 4, 40)
    loss = _load("pets.loss")
    predictor = _predictor(loss, "raps", options={"k": 2}).calibrate(rows, [*loss.labels] * 10)
    predictor.save("kept.json")
    assert udcp("warm", "kept.json").exit_code == 0
    assert predictor.oracle.options["k"] == 2
    assert quick == [("pets", "raps", predictor.oracle.options)]
    for more in (["--oracle", "lac"], ["--param", "weight=1"], ["--loss", "plain"]):
        refused = udcp("warm", "kept.json", *more)
        assert refused.exit_code == 2
        assert "a saved predictor has its own" in refused.stderr


_load, _predictor = udcp.load, udcp.SetPredictor  # the fixture has the name of the package
