"""Plant known faults, one at a time, in a copy of the source, and see that each is caught.

    python tests/mutation/run.py [--only TEXT] [--folder PATH] [--write]

With the fault a test must fail, and that test must pass without it. Results are printed as they come. With `--folder`
they are kept there, with the copy and its compiled kernels, and a run that was cut off goes on where it was: what was
tried is not tried again while fault, source file and tests are the same. `--write` puts the table into
docs/planted-faults.md. Exit status 1 if a fault is not caught. The whole run takes about an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from fault import Fault
from faults import FAULTS, KINDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "planted-faults.md"
BEGIN, END = "<!-- faults: made by tests/mutation/run.py --write -->\n", "<!-- end of faults -->\n"
PYTEST = ("-m", "pytest", "-p", "no:xdist", "-x", "--hypothesis-seed=0")
OPTIONS = "addopts=--import-mode=importlib -m 'not slow' -q --doctest-modules"  # those of the project, in one process
FAILED, ENDLESS = 1, -1  # a test failed, or what `udcp validate` checks does not hold; other codes: it could not run
_LONGEST = 1800  # seconds
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "results")


@dataclass(frozen=True)
class Result:
    """How a check ended: its exit status, its seconds, the end of what it printed, and the tests that failed."""

    status: int
    seconds: float
    said: str
    failed: tuple[str, ...] = ()


class Copy:
    """A copy of the repository, in which one file at a time is changed and put back with its old time stamp."""

    def __init__(self, folder: Path) -> None:
        self.tree, self._kernels, self._log = folder / "tree", folder / "kernels", folder / "results.jsonl"
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(ROOT, self.tree, ignore=_LEFT_OUT)
        self._kernels.mkdir(exist_ok=True)
        lines = self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []
        self._known = {key: Result(*found[:3], tuple(*found[3:])) for key, *found in map(json.loads, lines)}

    def without_fault(self, by: tuple[str, ...]) -> Result:
        return self._remembered((by, ""), by, lambda: self._run(by, self._kernels))

    def with_fault(self, fault: Fault) -> Result:
        def run() -> Result:
            with self._planted(fault), self._kernels_beside(fault) as kernels:
                return self._run(fault.by, kernels)

        text = (self.tree / fault.file).read_text(encoding="utf-8")
        return self._remembered((fault, text), fault.by, run)

    def _remembered(self, what: object, by: tuple[str, ...], run: Callable[[], Result]) -> Result:
        paths = [part.split("::")[0] for part in by]
        tests = [(self.tree / path).read_text(encoding="utf-8") for path in paths if path.endswith((".py", ".loss"))]
        key = hashlib.sha256(repr((what, tests)).encode()).hexdigest()
        if key not in self._known:
            self._known[key] = found = run()
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps([key, *astuple(found)]) + "\n")
        return self._known[key]

    def _run(self, by: tuple[str, ...], kernels: Path) -> Result:
        cache = kernels.with_name("pytest")
        shutil.rmtree(cache, ignore_errors=True)
        paths = os.pathsep.join(str(self.tree / part) for part in ("", "solvers", "grammars"))
        test = (*PYTEST, "-o", OPTIONS, "-o", f"cache_dir={cache}", *by)
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [sys.executable, *(("-m", "udcp_dsl.cli", *by) if by[0] == "validate" else test)],
                cwd=self.tree,
                env={**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(kernels)},
                capture_output=True,
                text=True,
                timeout=_LONGEST,
            )
        except subprocess.TimeoutExpired:
            return Result(ENDLESS, time.monotonic() - begun, "")
        last = cache / "v" / "cache" / "lastfailed"
        failed = tuple(json.loads(last.read_text(encoding="utf-8"))) if last.exists() else ()
        return Result(done.returncode, time.monotonic() - begun, (done.stdout + done.stderr)[-2000:], failed)

    @contextlib.contextmanager
    def _planted(self, fault: Fault) -> Iterator[None]:
        path = self.tree / fault.file
        text, stamp = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    @contextlib.contextmanager
    def _kernels_beside(self, fault: Fault) -> Iterator[Path]:
        """The compiled kernels; for a fault in their source a copy, as numba forgets those of a file that changes."""
        if not fault.file.startswith("solvers/"):
            yield self._kernels
            return
        linked = self._kernels.with_name("faulty")
        shutil.rmtree(linked, ignore_errors=True)
        shutil.copytree(self._kernels, linked, copy_function=os.link)
        yield linked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose kind and name hold this text")
    parser.add_argument("--folder", type=Path, help="keep copy, kernels and results here, and go on from them")
    parser.add_argument("--write", action="store_true", help="put the table into docs/planted-faults.md")
    arguments = parser.parse_args()
    faults = [fault for title, kind in KINDS.items() for fault in kind if arguments.only in f"{title}: {fault.name}"]
    stale = [fault.name for fault in FAULTS if (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old) != 1]
    if stale:
        raise SystemExit("the text to change is not in its file exactly once: " + "; ".join(stale))
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        caught = _try_all(faults, Copy(folder.absolute()))
    missed = [name for name, was in caught.items() if not was]
    print(f"{len(faults) - len(missed)} of {len(faults)} faults caught", *missed, sep="\n  not caught: ")
    if arguments.write:
        _write(faults, caught)
    return 1 if missed else 0


def _try_all(faults: list[Fault], copy: Copy) -> dict[str, bool]:
    """Whether each fault is caught: a test fails with it, and that test passes without it."""
    caught = {}
    for fault in faults:
        found = copy.with_fault(fault)
        verdict = "caught" if found.status == FAILED else f"NOT CAUGHT (status {found.status})"
        if found.status == FAILED and (sound := copy.without_fault(found.failed or fault.by)).status != 0:
            verdict = f"FAILS WITHOUT THE FAULT TOO (status {sound.status})\n{sound.said}"
        caught[fault.name] = verdict == "caught"
        print(f"{len(caught)}/{len(faults)} {verdict}: {fault.name} ({found.seconds:.0f} s)", flush=True)
    return caught


def _write(faults: list[Fault], caught: dict[str, bool]) -> None:
    rows = []
    for title, kind in KINDS.items():
        chosen = [fault for fault in kind if fault in faults]
        if chosen:
            rows += [f"\n## {title}\n\n", "| fault | planted in | caught by |\n", "|---|---|---|\n"]
        for fault in chosen:
            by = f"`{'udcp ' if fault.by[0] == 'validate' else ''}{' '.join(fault.by)}`"
            name = fault.name.replace("<", "&lt;")
            rows.append(f"| {name} | `{fault.file}` | {by if caught[fault.name] else '**not caught** by ' + by} |\n")
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    head = f"{sum(caught.values())} of {len(faults)} are caught.\n"
    PAGE.write_text(before + BEGIN + head + "".join(rows) + END + after, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
