"""Plant known faults, one at a time, in a copy of the source, and see that each is caught.

    python tests/mutation/run.py [--only TEXT] [--write]

Every check is first run without faults, and must pass; then each fault, and its check must fail. Prints the table;
`--write` puts it into docs/testing.md. Exit status 1 if a fault is not caught. Takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fault import Fault
from faults import FAULTS
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "testing.md"
BEGIN, END = "<!-- faults: made by tests/mutation/run.py --write -->\n", "<!-- end of faults -->\n"
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "results")


class Copy:
    """A copy of the repository, in which one file at a time is changed and put back with its old time stamp."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=_LEFT_OUT, dirs_exist_ok=True)
        roots = (folder, folder / "solvers", folder / "grammars")
        paths = os.pathsep.join(map(str, roots))
        self._environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder / "cache")}

    def check(self, by: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        if by[0] == "validate":
            command = ["-m", "udcp_dsl.cli", *by]
        else:
            command = ["-m", "pytest", "-x", "-q", "--hypothesis-seed=0", "-p", "no:cacheprovider", *by]
        return subprocess.run(
            [sys.executable, *command], cwd=self.folder, env=self._environment, capture_output=True, text=True
        )

    def with_fault(self, fault: Fault) -> subprocess.CompletedProcess[str]:
        path = self.folder / fault.file
        text, stamp = path.read_text(encoding="utf-8"), path.stat()
        if text.count(fault.old) != 1:
            raise SystemExit(
                f"{fault.name}: {fault.file} holds the text to change {text.count(fault.old)} times, not once"
            )
        path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        try:
            return self.check(fault.by)
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose name holds this text")
    parser.add_argument("--write", action="store_true", help="put the table into docs/testing.md")
    arguments = parser.parse_args()
    faults = [fault for fault in FAULTS if arguments.only in fault.name]
    console = Console()
    caught: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for by in track(list(dict.fromkeys(fault.by for fault in faults)), "without faults", console=console):
            done = copy.check(by)
            if done.returncode != 0:
                console.print(done.stdout[-3000:], done.stderr[-3000:], f"fails without a fault: {' '.join(by)}")
                return 2
        for fault in track(faults, "with each fault", console=console):
            # 1: a test failed, or the checked thing does not hold. Anything else is a check that could not run.
            done = copy.with_fault(fault)
            caught[fault.name] = done.returncode == 1
            if not caught[fault.name]:
                console.print(f"[red]not caught[/]: {fault.name} (status {done.returncode})", done.stderr[-500:])
    table = Table("fault", "caught", "by")
    for fault in faults:
        table.add_row(fault.name, "yes" if caught[fault.name] else "NO", " ".join(fault.by))
    console.print(table)
    console.print(f"{sum(caught.values())} of {len(faults)} faults caught")
    if arguments.write:
        _write(faults, caught)
    return 0 if all(caught.values()) else 1


def _write(faults: list[Fault], caught: dict[str, bool]) -> None:
    rows = [
        f"| {fault.name.replace('<', '&lt;')} | `{fault.file}` | {'yes' if caught[fault.name] else 'NO'} | "
        f"`{'udcp ' if fault.by[0] == 'validate' else ''}{' '.join(fault.by)}` |\n"
        for fault in faults
    ]
    text = DOCS.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    head = (
        f"{sum(caught.values())} of {len(faults)} caught.\n\n| fault | planted in | caught | by |\n|---|---|---|---|\n"
    )
    DOCS.write_text(before + BEGIN + head + "".join(rows) + END + after, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
