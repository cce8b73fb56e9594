"""Build the wheel, install it into a fresh environment, and use it with the source tree out of reach.

The tests that run here are those of what an installation could break: commands, package data, entry points.

Run as `python3 .ci/packaging.py`; it needs nothing but Python and pip.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARRIED = ("tests", "specs", "docs", "benchmarks", "README.md", "pyproject.toml", "constraints.txt")
MUST_HOLD = (
    *("udcp_dsl/py.typed", "udcp_solvers/py.typed", "udcp_grammars/loss.lark"),
    *("udcp_dsl/report/page.css", "udcp_dsl/report/browser.js"),
    *(f"udcp_dsl/studio/page/studio.{ending}" for ending in ("js", "css", "js.licenses.txt")),
    *(f"udcp_dsl/datasets/arrays/{name}.npz" for name in ("source_code", "icons")),
    *(f"udcp_dsl/datasets/spec_files/{name}" for name in ("dermatology/triage.loss", "dermatology/skin.csv")),
)
# What an installation could break, one file or so for each: the script and the grammar, the oracles (entry points), the
# plugin of pytest, the page of the report, that of the studio, the manual that editors show, the rows of classifiers.
# Tests that compile many kernels are not among them: the suite has run those.
TESTS = (
    *(f"tests/udcp_dsl/cli/test_{name}.py" for name in ("new", "predict", "process")),
    "tests/udcp_dsl/predict/test_oracle.py",
    *(
        f"tests/udcp_dsl/report/test_page.py::test_{name}"
        for name in ("nothing_partial_is_written", "no_examples_no_browser")
    ),
    *(
        f"tests/udcp_dsl/test_pytest_plugin.py::test_{name}"
        for name in ("a_spec_that_does_not_compile_fails_as_a_compiler_says_it", "nothing_is_done_without_the_option")
    ),
    *(f"tests/udcp_dsl/studio/test_{name}.py" for name in ("studio", "command")),
    *("tests/udcp_dsl/lsp/test_hover.py", "tests/test_reference.py", "tests/udcp_dsl/datasets/test_kept_rows.py"),
)
# Which package is imported, what it says of its version, and what its metadata says.
TELL = """
import udcp_dsl
from importlib.metadata import version
print(udcp_dsl.__file__, udcp_dsl.__version__, version("udcp_dsl"))
"""


def run(*command: str | Path, cwd: Path) -> None:
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        away = Path(name)
        venv.create(away / "env", with_pip=True)
        python = away / "env" / "bin" / "python"
        # From a copy, so that nothing is written into the source tree.
        shutil.copytree(
            ROOT, away / "source", ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "node_modules")
        )
        run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", away / "dist", away / "source", cwd=away)
        shutil.rmtree(away / "source")
        (wheel,) = (away / "dist").glob("*.whl")
        listed = subprocess.run(
            [sys.executable, "-m", "zipfile", "-l", str(wheel)], capture_output=True, text=True, check=True
        ).stdout
        missing = [path for path in MUST_HOLD if path not in listed]
        if missing:
            sys.exit(f"the wheel lacks {', '.join(missing)}")
        run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", f"{wheel}[test]", cwd=away)
        work = away / "work"
        work.mkdir()
        for part in CARRIED:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, work / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, work / part)
        # No source root on the path: what is imported is what was installed.
        run(python, "-m", "pytest", "-o", "pythonpath=", "-p", "no:cacheprovider", *TESTS, cwd=work)
        told = subprocess.run([python, "-c", TELL], cwd=work, capture_output=True, text=True, check=True).stdout
        file, version, declared = told.rsplit(maxsplit=2)
        if file.startswith(str(ROOT)):
            sys.exit(f"the tests ran on the source tree: {file}")
        if version != declared:
            sys.exit(f"the package says that it is {version}, its metadata that it is {declared}")


if __name__ == "__main__":
    main()
