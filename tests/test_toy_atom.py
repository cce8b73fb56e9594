"""An atom is one file, one line, one page: added to a copy by these three touches alone, it has all its uses.

`gravest` grows as compiled orders know it and has a linear form; `swing` has neither, and says so.
"""

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

TESTS = Path(__file__).parent
TOYS = TESTS / "toy_atoms"
ORIGINALS = {
    "udcp_dsl": Path(udcp_dsl.__file__).parent,
    "udcp_grammars": Path(udcp_grammars.__path__[0]),
    "specs/reference": TESTS.parent / "specs" / "reference",
}
TABLE = "udcp_dsl/language/words.py"
USES = ["parse", "prove", "order", "lower_or_decline", "generate", "validate"]


def with_atom(name: str, folder: Path) -> None:
    """A copy of the package, its grammar and its manual, and the three touches."""
    for place, original in ORIGINALS.items():
        shutil.copytree(original, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TOYS / f"{name}.py", folder / "udcp_dsl/expression/atoms")
    shutil.copy(TOYS / f"{name}.md", folder / "specs/reference")
    table = folder / TABLE
    text = table.read_text(encoding="utf-8")
    assert text.count('    "worst",\n') == 1
    table.write_text(text.replace('    "worst",\n', f'    "worst",\n    "{name}",\n'), encoding="utf-8")


def touched(folder: Path) -> dict[str, int]:
    """The files of the copy that are new or changed, and by how many lines."""
    found: dict[str, int] = {}
    for place, original in ORIGINALS.items():
        kept = {path.relative_to(original) for path in original.rglob("*") if path.is_file()}
        copied = {path.relative_to(folder / place) for path in (folder / place).rglob("*") if path.is_file()}
        assert {path for path in kept - copied if "__pycache__" not in path.parts} == set()
        for path in copied:
            now = (folder / place / path).read_bytes()
            before = (original / path).read_bytes() if path in kept else b""
            if now != before:
                found[f"{place}/{path.as_posix()}"] = now.count(b"\n") - before.count(b"\n")
    return found


def run(folder: Path, *command: str) -> str:
    # The solvers are those of this tree, with what numba has compiled for them.
    paths = [folder, Path(udcp_solvers.__file__).parents[1]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_fourth_touch_is_seen(tmp_path: Path) -> None:
    with_atom("swing", tmp_path)
    with (tmp_path / "udcp_grammars/loss.lark").open("a", encoding="utf-8") as grammar:
        grammar.write("// swing\n")
    assert len(touched(tmp_path)) == 4


@pytest.mark.parametrize("name", ["gravest", "swing"])
def test_three_touches_are_enough(name: str, tmp_path: Path) -> None:
    with_atom(name, tmp_path)
    file, page = f"udcp_dsl/expression/atoms/{name}.py", f"specs/reference/{name}.md"
    changed = touched(tmp_path)
    assert set(changed) == {file, TABLE, page}
    assert changed[TABLE] == 1

    assert run(tmp_path, str(TOYS / "use.py"), name).split() == USES

    (tmp_path / "tests").mkdir()
    shutil.copy(TESTS / "test_reference.py", tmp_path / "tests")
    chosen = f"{name} or page or index or links"
    told = run(tmp_path, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider", "tests/test_reference.py", "-k", chosen)
    passed = {line.rpartition("::")[2] for line in told.splitlines() if line.startswith("PASSED")}
    assert {f"test_every_atom_has_a_page[{name}]", "test_every_page_is_in_the_index"} <= passed
    assert len([test for test in passed if test.startswith(f"test_spec[{name}:")]) == 2
    assert set(touched(tmp_path)) == {file, TABLE, page}, "what was run has written to the copy"
