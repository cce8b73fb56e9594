"""An atom is one file, one line, one page: added to a copy by these three touches alone, it has all its uses.

`gravest` grows as compiled orders know it and has a linear form; `swing` has neither, and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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


def with_atoms(folder: Path, *names: str) -> None:
    """A copy of the package, its grammar and its manual, and the three touches for each atom."""
    for place, original in ORIGINALS.items():
        # With its bytecode, which a process takes seconds to make, and without what is just being written.
        shutil.copytree(original, folder / place, ignore=shutil.ignore_patterns("*.pyc.*", "*.nb?", "*.tmp*"))
    for name in names:
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
    with_atoms(tmp_path, "swing")
    with (tmp_path / "udcp_grammars/loss.lark").open("a", encoding="utf-8") as grammar:
        grammar.write("// swing\n")
    assert len(touched(tmp_path)) == 4


def test_three_touches_are_enough(tmp_path: Path) -> None:
    """For each of two atoms, which are tried together: starting a process on a copy takes longer than what it does."""
    names = ("gravest", "swing")
    with_atoms(tmp_path, *names)
    files = {f"udcp_dsl/expression/atoms/{name}.py" for name in names} | {f"specs/reference/{n}.md" for n in names}
    changed = touched(tmp_path)
    assert set(changed) == {*files, TABLE}
    assert changed[TABLE] == 2

    (tmp_path / "tests").mkdir()
    shutil.copy(TESTS / "test_reference.py", tmp_path / "tests")
    told = run(tmp_path, str(TOYS / "use.py"), *names)
    assert told.split()[: 2 * len(USES)] == 2 * USES
    passed = {line.rpartition("::")[2] for line in told.splitlines() if line.startswith("PASSED")}
    assert "test_every_page_is_in_the_index" in passed
    for name in names:
        assert f"test_every_atom_has_a_page[{name}]" in passed
        assert len([test for test in passed if test.startswith(f"test_spec[{name}:")]) == 2
    assert set(touched(tmp_path)) == {*files, TABLE}, "what was run has written to the copy"
