"""The second float type finds most of what the first has had compiled: only loops over the rows themselves differ."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_COUNTED = """
import numpy as np
from numba.core import event

import udcp_dsl as udcp


class Counter(event.Listener):
    many = 0

    def on_start(self, started):
        Counter.many += 1

    def on_end(self, ended):
        pass


event.register("numba:compile", Counter())
oracle = udcp.make_oracle("base", udcp.loads("labels 0..9  loss l = size"))
P = np.full((3, 10), 0.1)
oracle.scores(P.astype(np.float32))
first = Counter.many
oracle.scores(P)
print(first, Counter.many - first)
"""


@pytest.mark.slow
def test_another_float_type_compiles_little(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_COUNTED)
    paths = os.pathsep.join(path for path in sys.path if path)
    ended = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths},
    )
    first, second = map(int, ended.stdout.split())
    assert first > 10, "the cache was not empty"
    assert second < first / 4
