"""`%%loss` cells, in a shell of IPython."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import udcp_dsl as udcp

IPython = pytest.importorskip("IPython")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    from IPython.core.interactiveshell import InteractiveShell

    made = InteractiveShell()
    made.run_line_magic("load_ext", "udcp_dsl")
    return made


def test_a_cell_is_a_loss(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text("name,cost\ncat,1\nwolf,5\n")
    cell = 'labels from "pets.csv" column name\ncosts c from "pets.csv" column cost\nparam k = 2\nloss l = k * sum(c)'
    result = shell.run_cell(f"%%loss bill\n{cell}")
    assert result.success
    loss = shell.user_ns["bill"]
    assert isinstance(loss, udcp.Loss)
    assert loss({"wolf"}) == 10
    assert result.result is loss
    shell.run_cell(f"%%loss bill k=3\n{cell}")
    assert shell.user_ns["bill"]({"wolf"}) == 15


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("x", "labels {a}\nloss l = sizee", "did you mean 'size'?"),
        ("", "labels {a}\nloss l = size", "%%loss NAME"),
        ("x k", "labels {a}\nloss l = size", "PARAMETER=NUMBER"),
        ("x k=3", "labels {a}\nloss l = size", "no parameter 'k'"),
    ],
)
def test_faults_are_shown_in_place_without_a_traceback(
    shell: Any, capsys: pytest.CaptureFixture[str], line: str, cell: str, said: str
) -> None:
    result = shell.run_cell(f"%%loss {line}\n{cell}\n")
    captured = capsys.readouterr()
    assert result.success
    assert said in captured.err
    assert "Traceback" not in captured.out + captured.err
    assert "x" not in shell.user_ns
