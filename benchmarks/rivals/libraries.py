"""MAPIE, TorchCP, crepes and puncc as they are released, each in an environment of its own: their needs clash.

A method of a library is a `Family` as the published ones are: its sets by the confidence level that it is asked for,
calibrated on the rows of tuning. What it gives at a level does not depend on the loss, and is asked for once.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from rivals import Family, Floats, Ints, Masks, as_rows

# What pip installs, one step after the other; TorchCP without torchsort, which only some of its losses need.
_NEEDS_OF_TORCHCP = ("torch==2.13.0", "scikit-learn", "pandas", "tqdm", "Pillow", "torch_geometric", "transformers")
INSTALLED: dict[str, tuple[tuple[str, ...], ...]] = {
    "mapie": (("mapie==1.6.0",),),
    "torchcp": (_NEEDS_OF_TORCHCP, ("--no-deps", "torchcp==1.2.1")),
    "crepes": (("scikit-learn", "crepes==0.9.1"),),
    "puncc": (("puncc==0.9.3",),),
}
METHODS = tuple(
    [(library, method) for library in ("mapie", "torchcp", "puncc") for method in ("lac", "aps", "raps")]
    + [("crepes", "lac"), ("crepes", "margin")]
)
NAMES = {"mapie": "MAPIE", "torchcp": "TorchCP", "crepes": "crepes", "puncc": "puncc"}
LEVELS = np.concatenate([np.linspace(0.1, 0.7, 13), np.linspace(0.71, 0.99, 57), [0.993, 0.996, 0.998, 0.999]])


def environment(folder: Path, library: str) -> Path:
    """The Python of an environment that has the library; made, with what it needs, if it is not there."""
    python = folder / library / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    done = folder / library / "installed"
    if not done.exists():
        venv.create(folder / library, with_pip=True, clear=True)
        for step in INSTALLED[library]:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *step], check=True)
        done.touch()
    return python


def versions() -> dict[str, str]:
    return {NAMES[library]: steps[-1][-1].partition("==")[2] for library, steps in INSTALLED.items()}


class Refused(RuntimeError):
    """A library raised an error on the rows."""


class Asked:
    """The libraries on the rows of one classifier: a process each, which ends with this."""

    def __init__(self, folder: Path, P: Floats, y: Ints, Q: Floats) -> None:
        self.shape = Q.shape
        self._folder = TemporaryDirectory()
        rows = Path(self._folder.name) / "rows.npz"
        # Where p is 0 a logarithm is not; the least float32 is as good as 0.
        least = np.finfo(np.float32).tiny
        np.savez(
            rows,
            P=np.maximum(as_rows(P), least).astype(np.float32),
            y=y,
            Q=np.maximum(as_rows(Q), least).astype(np.float32),
        )
        self._workers: dict[str, subprocess.Popen[str]] = {}
        self._environments, self._rows = folder, rows
        self._held: dict[tuple[str, str, float], tuple[NDArray[np.uint8], float]] = {}

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self._workers.values():
            with suppress(BrokenPipeError):  # it ended before
                _pipe(worker.stdin).close()
            worker.wait()
        self._folder.cleanup()

    def sets(self, library: str, method: str, level: float) -> Masks:
        key = library, method, level
        if key not in self._held:
            if library not in self._workers:
                python = environment(self._environments, library)
                command = [str(python), str(Path(__file__).with_name("library_worker.py")), library, str(self._rows)]
                self._workers[library] = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
            worker, file = self._workers[library], Path(self._folder.name) / "sets.npy"
            with suppress(BrokenPipeError):  # it ended before, and answers no more
                print(method, level, file, sep="\t", file=_pipe(worker.stdin), flush=True)
            answer = _pipe(worker.stdout).readline()
            try:
                seconds = float(answer)
            except ValueError:
                raise Refused(
                    f"{NAMES[library]}, {method} at level {level:g}: {answer.strip() or 'it ended'}"
                ) from None
            self._held[key] = np.load(file), seconds
        return np.unpackbits(self._held[key][0], axis=1, count=self.shape[1]).astype(bool)

    def ms_a_row(self, library: str, method: str) -> float:
        """Of calibrating and predicting at one level: the least of those asked, as the first one warms up; of crepes
        the first, since its p-values are found once for all levels."""
        spent = [s for (a, b, _), (_, s) in self._held.items() if (a, b) == (library, method)]
        return 1000 * (max if library == "crepes" else min)(spent) / self.shape[0]


class Library(Family):
    def __init__(self, asked: Asked, library: str, method: str) -> None:
        self.asked, self.library, self.method = asked, library, method

    def at(self, level: float) -> Masks:
        return self.asked.sets(self.library, self.method, level)

    def levels(self, y: Ints) -> Floats:
        return LEVELS


def _pipe(found: IO[str] | None) -> IO[str]:
    assert found is not None
    return found
