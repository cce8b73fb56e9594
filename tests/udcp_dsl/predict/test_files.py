"""Temporary files: what a killed process left behind is removed, and what another one writes is not."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from udcp_dsl import files
from udcp_dsl.cluster.folders import remove_leftovers
from udcp_dsl.files import atomic_write, check_writable

KILLED = """
import os, signal, sys
from udcp_dsl.files import atomic_write, check_writable
from udcp_dsl.cluster.folders import remove_leftovers
with atomic_write(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print(temporary.name, flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""
needs_locks = pytest.mark.skipif(os.name == "nt", reason="Windows has no locks that end with their process")


def writer(path: Path, fate: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", KILLED, str(path), fate]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@needs_locks
def test_what_a_killed_process_left_behind_is_removed_when_the_file_is_written_again(tmp_path: Path) -> None:
    writer(tmp_path / "out", "killed").wait()
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".udcp-")
    others = [".udcp-0123456789abcdef.tmp", ".udcp-mine.tmp"]  # of another target or machine, and of somebody
    for name in others:
        (tmp_path / name).touch()
    with atomic_write(tmp_path / "another"):
        pass
    assert left in os.listdir(tmp_path)
    check_writable(tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == [*others, "another"]


@needs_locks
def test_a_file_that_another_process_is_writing_stays(tmp_path: Path) -> None:
    at_work = writer(tmp_path / "out", "waits")
    assert at_work.stdout is not None
    name = at_work.stdout.readline().strip()
    with atomic_write(tmp_path / "out") as temporary:
        temporary.write_text("mine")
        assert temporary.name != name
        remove_leftovers(tmp_path)
        assert {temporary.name, name} <= set(os.listdir(tmp_path))
    at_work.communicate("")
    assert at_work.returncode == 0
    assert (tmp_path / "out").read_text() == "half"
    assert os.listdir(tmp_path) == ["out"]


@needs_locks
def test_a_file_that_another_user_or_machine_could_have_made_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer(tmp_path / "out", "killed").wait()
    left = os.listdir(tmp_path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("udcp_dsl.files._machine_id", lambda: "another")
        check_writable(tmp_path / "out")
        assert os.listdir(tmp_path) == left
    with monkeypatch.context() as somebody:
        uid = os.geteuid() + 1
        somebody.setattr(os, "geteuid", lambda: uid)
        check_writable(tmp_path / "out")
        assert os.listdir(tmp_path) == left
    check_writable(tmp_path / "out")
    assert os.listdir(tmp_path) == []


@needs_locks
def test_a_file_system_without_locks_writes_and_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer(tmp_path / "out", "killed").wait()
    left = os.listdir(tmp_path)

    def unsupported(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unsupported)
    for _ in range(2):
        with atomic_write(tmp_path / "out") as temporary:
            temporary.write_text("new")
    assert sorted(os.listdir(tmp_path)) == [*left, "out"]


@needs_locks
def test_a_name_that_a_cleaner_takes_away_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the making of a file and its lock, another process may take it for abandoned."""
    taken: list[Path] = []

    def late(descriptor: int) -> bool | None:
        if not taken:
            (path,) = tmp_path.iterdir()
            taken.append(path)
            path.unlink()
        return True

    monkeypatch.setattr(files, "try_lock", late)
    with atomic_write(tmp_path / "out") as temporary:
        assert temporary != taken[0]
        temporary.write_text("whole")
    assert (tmp_path / "out").read_text() == "whole"
    assert os.listdir(tmp_path) == ["out"]
