"""Work in processes: all of it is done, and an interrupt does not wait for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from udcp_dsl.cli.compiling import side_by_side

_INTERRUPTED = """
import os, signal, threading, time
from udcp_dsl.cli.compiling import side_by_side

if __name__ == "__main__":
    threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        side_by_side(time.sleep, [(3600,)] * 4)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_every_task_is_done(tmp_path: Path) -> None:
    side_by_side(Path.touch, [(tmp_path / str(i),) for i in range(5)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3", "4"]


def test_an_interrupt_does_not_wait_for_what_is_under_way(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_INTERRUPTED)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")
