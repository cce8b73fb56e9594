"""Commands run in a fresh folder, in this process, with stdout and stderr apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from udcp_dsl.cli import main, progress

PETS = """\
labels { cat, dog, wolf, lynx }
hierarchy kinds { feline { cat, lynx }, canine { dog, wolf } }
category wild { wolf, lynx }
param weight = 2 in [0, 10]
loss plain = size
loss pets = weight * count(kinds.level(1)) + 5 * any(wild) + 0.01 * size
"""


@pytest.fixture(autouse=True)
def hardly_any_promises(few_promises: None) -> None:
    pass


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with one good spec in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pets.loss").write_text(PETS)
    return tmp_path


@pytest.fixture
def udcp(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run `udcp ARGUMENTS...`, without lines of progress: on a busy machine any command may take seconds."""
    monkeypatch.setattr(progress, "_LINE_SECONDS", 3600.0)
    return lambda *arguments: CliRunner().invoke(main, list(arguments))
