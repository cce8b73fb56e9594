"""A stage is one file and one line, an option one declaration and two signatures: shown on a copy of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import udcp_dsl
import udcp_grammars
import udcp_solvers

pytest.importorskip("sklearn")
pytest.importorskip("distributed")

TOY = Path(__file__).parent / "toy_stage"
OPTION = """    sharpen: float | None = option(
        Option(
            "Power that p is raised to.",
            "a number",
            check=lambda value, name: value,
            parse=lambda text, name: float(text),
            metavar="POWER",
            compared=True,
            refuse=lambda p: "sharpen and randomize exclude each other" if p.sharpen and p.randomize else None,
        )
    )
"""
KEYWORD = "        sharpen: float | None = None,\n"
# The file, the line that is there, and what is put before it.
EDITS = [
    ("predict/promise.py", "    nonempty: bool = option(", OPTION),
    ("predict/predictor.py", "        nonempty: bool = False,\n", KEYWORD),
    ("sklearn.py", "        nonempty: bool = False,\n", KEYWORD),
]
STAGES = "STAGES = (\n"
ENTRY = '    Entry("sharpening", "sharpening:Sharpening", lambda context: context.promise.sharpen is not None),\n'


def test_a_stage_and_an_option(tmp_path: Path) -> None:
    root = Path(udcp_dsl.__file__).parent
    ignore = shutil.ignore_patterns("*.pyc.*", "*.nb?", "*.tmp*")
    shutil.copytree(root, tmp_path / "udcp_dsl", ignore=ignore)
    shutil.copy(TOY / "sharpening.py", tmp_path / "udcp_dsl/predict/stages")
    for name, before, added in [*EDITS, ("predict/chain.py", STAGES, "")]:
        file = tmp_path / "udcp_dsl" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1, (name, before)
        changed = before + ENTRY if before is STAGES else added + before
        file.write_text(text.replace(before, changed), encoding="utf-8")
    paths = [tmp_path, *(Path(package.__path__[0]).parent for package in (udcp_solvers, udcp_grammars))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, TOY / "use.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "fitted",
        "saved and loaded",
        "in a stream",
        "on a cluster",
        "on the command line",
        "in the scikit-learn class",
        "in a comparison",
        "in the reference table",
    ]
