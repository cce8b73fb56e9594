"""A file of finished instances, so that a run that was stopped, even by kill -9, resumes where it was.

One line per record: the CRC-32 of the rest, then JSON. Lines are only appended, each by one write; a line that a killed
process left incomplete fails its checksum, and its instance is solved again. The first line identifies the loss and
options of the records. The key of an instance is a hash of its probabilities and of what was asked.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from udcp_dsl.diagnostics import OracleError
from udcp_solvers.numeric.arrays import Floats
from udcp_solvers.programs.instance import ChainGoal, Outcome

_FORMAT = "udcp_dsl ilp checkpoint 2"


def fingerprint(data: object) -> str:
    """A hash of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


class Checkpoint:
    """The finished instances in a file, and those that are added to it."""

    def __init__(self, path: str | Path, belongs_to: str) -> None:
        self._path = Path(path)
        self._done: dict[str, Any] = {}
        header = _line([_FORMAT, belongs_to])
        try:
            content = self._path.read_bytes() if self._path.exists() else b""
            fresh = header.startswith(content)  # empty, or a process was killed while it wrote the first line
            if not fresh:
                self._read(content, header)
            self._file = self._path.open("wb" if fresh else "ab", buffering=0)
            if fresh:
                self._file.write(header)
            elif not content.endswith(b"\n"):
                self._file.write(b"\n")
        except OSError as error:
            raise OracleError(f"oracle 'ilp': checkpoint {path}: {error.strerror or error}") from error

    def _read(self, content: bytes, header: bytes) -> None:
        first, *lines = content.split(b"\n")
        if first + b"\n" != header:
            found = _record(first)
            if not (isinstance(found, list) and found[:1] == [_FORMAT]):
                raise OracleError(f"oracle 'ilp': {self._path} is not a checkpoint: give another file")
            raise OracleError(
                f"oracle 'ilp': checkpoint {self._path} belongs to another loss, other options or another version: "
                "give another file"
            )
        for line in lines:
            found = _record(line)
            if found is not None:
                key, data = found
                self._done[key] = data

    def __len__(self) -> int:
        return len(self._done)

    def close(self) -> None:
        self._file.close()

    def find(self, p: Floats, goal: ChainGoal) -> Outcome | None:
        """The outcome of an instance; None if it is not finished."""
        data = self._done.get(_key(p, goal))
        return None if data is None else Outcome.of_data(data)

    def add(self, p: Floats, goal: ChainGoal, outcome: Outcome) -> None:
        """Append a finished instance; it stays in the file even if this process is killed."""
        key, data = _key(p, goal), outcome.as_data()
        line = _line([key, data])
        written = self._file.write(line)
        if written != len(line):
            raise OracleError(f"oracle 'ilp': checkpoint {self._path}: no space left to write to")
        self._done[key] = data


def _key(p: Floats, goal: ChainGoal) -> str:
    asked = f"{goal.until} {goal.value.hex()}".encode()
    return hashlib.sha256(asked + b"\n" + p.tobytes()).hexdigest()[:32]


def _line(record: object) -> bytes:
    text = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _record(line: bytes) -> Any:
    """The content of a line, or None if the line is incomplete."""
    checksum, _, text = line.partition(b" ")
    return json.loads(text) if checksum == b"%08x" % zlib.crc32(text) else None
